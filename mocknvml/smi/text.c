/*
 * Text: what programs call themselves, fit to be shown. See text.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/text.h"

#include <stdbool.h>

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How many bytes the character at `text` has; 0 when there is none that can be shown. */
static size_t character(const char *text)
{
    static const unsigned long least[] = { 0, ' ', 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)*text;
    size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned long code = length > 1 ? first & (0x7fu >> length) : first;

    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(text[i]))
            return 0;
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (code < least[length] || (code >= 0x7f && code < 0xa0) ||
        (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe || code > 0x10ffff)
        return 0;
    return length;
}

void text_make_printable(char *text)
{
    while (*text) {
        size_t length = character(text);

        if (!length)
            *text = '?';
        text += length ? length : 1;
    }
}

size_t text_columns(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += !is_continuation(*text);
    return count;
}

const char *text_after(const char *text, size_t count)
{
    while (*text && count--)
        for (text++; is_continuation(*text); text++)
            ;
    return text;
}
