/*
 * Out: sections and values, as indented text or as XML. See out.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/out.h"

#include <string.h>

static void indent(struct out *out, int depth)
{
    for (int i = 0; i < depth; i++)
        fputs(out->xml ? "\t" : "    ", out->file);
}

static void escaped(FILE *file, const char *text)
{
    static const struct {
        char letter;
        const char *name;
    } entities[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" } };

    while (*text) {
        size_t plain = strcspn(text, "&<>\"");

        fwrite(text, 1, plain, file);
        text += plain;
        if (!*text)
            break;
        for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
            if (*text == entities[i].letter)
                fputs(entities[i].name, file);
        text++;
    }
}

/* GPUs are at depth 0 in text and inside the log in XML. */
static int level(const struct out *out, int depth)
{
    return out->xml ? depth + 1 : depth;
}

void out_open(struct out *out, int depth, const char *label, const char *element)
{
    const char *what = out->xml ? element : label;

    if (!what)
        return;
    indent(out, level(out, depth));
    fprintf(out->file, out->xml ? "<%s>\n" : "%s\n", what);
}

void out_close(struct out *out, int depth, const char *element)
{
    if (!out->xml || !element)
        return;
    indent(out, level(out, depth));
    fprintf(out->file, "</%s>\n", element);
}

void out_value(struct out *out, int depth, const char *label, const char *element, const char *text)
{
    const char *what = out->xml ? element : label;

    if (!what)
        return;
    indent(out, level(out, depth));
    if (!out->xml) {
        fprintf(out->file, "%-*s: %s\n", out->column - 4 * depth, what, text);
        return;
    }
    fprintf(out->file, "<%s>", what);
    escaped(out->file, text);
    fprintf(out->file, "</%s>\n", what);
}

void out_raw(struct out *out, int depth, const char *text)
{
    indent(out, level(out, depth));
    fprintf(out->file, "%s\n", text);
}
