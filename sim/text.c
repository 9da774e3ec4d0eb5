/*
 * Text: a string that grows. See text.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct text *t, size_t more)
{
    size_t need = t->length + more + 1, room = t->room ? t->room : 64;
    char *data;

    if (t->failed)
        return false;
    if (need <= t->room)
        return true;
    while (room < need)
        room *= 2;
    data = realloc(t->data, room);
    if (!data) {
        t->failed = true;
        return false;
    }
    t->data = data;
    t->room = room;
    return true;
}

void text_addn(struct text *t, const char *s, size_t n)
{
    if (!text_reserve(t, n))
        return;
    memcpy(t->data + t->length, s, n);
    t->length += n;
    t->data[t->length] = '\0';
}

void text_add(struct text *t, const char *s)
{
    text_addn(t, s, strlen(s));
}

void text_vaddf(struct text *t, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || !text_reserve(t, (size_t)n))
        return;
    vsnprintf(t->data + t->length, (size_t)n + 1, fmt, ap);
    t->length += (size_t)n;
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_vaddf(t, fmt, ap);
    va_end(ap);
}

void text_cut(struct text *t, size_t length)
{
    if (length >= t->length)
        return;
    t->length = length;
    t->data[length] = '\0';
}

const char *text_str(const struct text *t)
{
    return t->data ? t->data : "";
}

void text_release(struct text *t)
{
    free(t->data);
    *t = (struct text)TEXT_INIT;
}
