/*
 * Recording: a line that is one flat JSON object. See recording.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "fusefs/cli/recording.h"

/* Where in the line we are. What was taken is terminated in place, one byte late. */
struct cursor {
    char *line, *at;
    char *cut; /* to be ended here once what stood there was looked at */
    struct why *why;
};

static int wrong(const struct cursor *c, const char *wanted)
{
    return *c->at ? why_set(c->why, EINVAL, "found '%.1s' where %s must stand", c->at, wanted)
                  : why_set(c->why, EINVAL, "ends where %s must stand", wanted);
}

static void skip_blanks(struct cursor *c)
{
    c->at += strspn(c->at, " \t");
}

/* A text in quotes. Names and units have nothing in them that JSON would have to escape. */
static char *take_quoted(struct cursor *c)
{
    char *begin = c->at + 1, *end = *c->at == '"' ? strpbrk(begin, "\"\\") : NULL;

    if (!end || *end != '"')
        return NULL;
    *end = '\0';
    c->at = end + 1;
    return begin;
}

/* A number or a word; its end is cut when the byte behind it has been seen. */
static char *take_bare(struct cursor *c)
{
    static const char bare[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzE";
    char *begin = c->at;

    c->at += strspn(begin, bare);
    c->cut = c->at;
    return c->at == begin ? NULL : begin;
}

static int take_member(struct cursor *c, struct json_member *m)
{
    skip_blanks(c);
    m->key = take_quoted(c);
    if (!m->key)
        return wrong(c, "a name in quotes");
    skip_blanks(c);
    if (*c->at != ':')
        return wrong(c, "':'");
    c->at++;
    skip_blanks(c);
    m->column = (int)(c->at - c->line) + 1;
    m->text = *c->at == '"' ? take_quoted(c) : take_bare(c);
    return m->text ? 0 : wrong(c, "a number, a text or null");
}

int json_line(char *line, int (*take)(void *whom, const struct json_member *member), void *whom,
              int *column, struct why *why)
{
    struct cursor c = { .line = line, .at = line, .why = why };
    int r = 0;
    char next = ',';

    skip_blanks(&c);
    if (*c.at != '{')
        r = wrong(&c, "'{'");
    for (c.at++; r == 0 && next == ','; c.at++) {
        struct json_member m = { 0 };

        c.cut = NULL;
        r = take_member(&c, &m);
        *column = (int)(c.at - line) + 1;
        if (r < 0)
            return r;
        skip_blanks(&c);
        next = *c.at;
        *column = (int)(c.at - line) + 1;
        if (next != ',' && next != '}')
            return wrong(&c, "',' or '}'");
        if (c.cut)
            *c.cut = '\0';
        m.null = !strcmp(m.text, "null");
        r = take(whom, &m);
    }
    if (r < 0)
        return r;
    skip_blanks(&c);
    *column = (int)(c.at - line) + 1;
    return *c.at ? wrong(&c, "the line's end") : 0;
}
