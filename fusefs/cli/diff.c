/*
 * Diff: two texts compared line by line. See diff.h.
 *
 * Myers' greedy search for the shortest edit. Texts that have little in common are not worth the memory:
 * beyond EDITS_MAX the whole of one is replaced by the whole of the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/diff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/text.h"

enum { AROUND = 3, EDITS_MAX = 1000 };

struct line {
    const char *text;
    int length;
};

struct lines {
    struct line *items;
    int count;
};

/* One line of the result: ' ' in both, '-' and '+' in one. */
struct edit {
    char kind;
    struct line line;
    int before, after; /* lines of each that came before it */
};

struct edits {
    struct edit *items; /* last first while they are found */
    int count;
};

static int split(struct lines *lines, const char *s)
{
    int room = 1;

    for (const char *p = s; *p; p++)
        room += *p == '\n';
    lines->items = calloc((size_t)room, sizeof(*lines->items));
    if (!lines->items)
        return -ENOMEM;
    while (*s) {
        int n = (int)strcspn(s, "\n");

        lines->items[lines->count++] = (struct line){ s, n };
        s += n + (s[n] == '\n');
    }
    return 0;
}

static bool same(const struct lines *a, int i, const struct lines *b, int k)
{
    return a->items[i].length == b->items[k].length &&
           !memcmp(a->items[i].text, b->items[k].text, (size_t)a->items[i].length);
}

/* --- the shortest edit ------------------------------------------------------------------------ */

/*
 * far[d * WIDTH + k]: how far in `a` one gets along diagonal k (place in a less place in b) with d edits.
 * Returns the number of edits, or -1 when there are too many.
 */
enum { MIDDLE = EDITS_MAX + 1, DIAGONALS = 2 * EDITS_MAX + 3 };

static int search(const struct lines *a, const struct lines *b, int *far)
{
    for (int d = 0; d <= EDITS_MAX; d++) {
        int *now = far + (size_t)d * DIAGONALS + MIDDLE, *last = now - DIAGONALS;

        for (int k = -d; k <= d; k += 2) {
            int x = d == 0                                             ? 0
                    : k == -d || (k != d && last[k - 1] < last[k + 1]) ? last[k + 1]
                                                                       : last[k - 1] + 1;

            while (x < a->count && x - k < b->count && same(a, x, b, x - k))
                x++;
            now[k] = x;
            if (x >= a->count && x - k >= b->count)
                return d;
        }
    }
    return -1;
}

static void add_edit(struct edits *e, char kind, struct line line, int before, int after)
{
    e->items[e->count++] = (struct edit){ kind, line, before, after };
}

/* Back from the end along the way that search found; the last line first. */
static void trace(const struct lines *a, const struct lines *b, const int *far, int d,
                  struct edits *e)
{
    int x = a->count, y = b->count;

    for (; d >= 0; d--) {
        const int *last = far + (size_t)(d ? d - 1 : 0) * DIAGONALS + MIDDLE;
        int k = x - y;
        bool down = d && (k == -d || (k != d && last[k - 1] < last[k + 1]));
        int from = d ? (down ? last[k + 1] : last[k - 1] + 1) : 0;

        for (; x > from; x--, y--)
            add_edit(e, ' ', a->items[x - 1], x - 1, y - 1);
        if (d && down)
            y--, add_edit(e, '+', b->items[y], x, y);
        else if (d)
            x--, add_edit(e, '-', a->items[x], x, y);
    }
}

static void replace_all(const struct lines *a, const struct lines *b, struct edits *e)
{
    for (int y = b->count; y > 0; y--)
        add_edit(e, '+', b->items[y - 1], a->count, y - 1);
    for (int x = a->count; x > 0; x--)
        add_edit(e, '-', a->items[x - 1], x - 1, 0);
}

static int find_edits(const struct lines *a, const struct lines *b, struct edits *e)
{
    int *far = calloc((size_t)(EDITS_MAX + 1) * DIAGONALS, sizeof(*far));
    int d;

    e->items = calloc((size_t)a->count + (size_t)b->count + 1, sizeof(*e->items));
    if (!far || !e->items) {
        free(far);
        return -ENOMEM;
    }
    d = search(a, b, far);
    if (d < 0)
        replace_all(a, b, e);
    else
        trace(a, b, far, d, e);
    free(far);
    for (int i = 0, k = e->count - 1; i < k; i++, k--) {
        struct edit swap = e->items[i];

        e->items[i] = e->items[k];
        e->items[k] = swap;
    }
    return 0;
}

/* --- as text ---------------------------------------------------------------------------------- */

/* The first edit behind `i` with more than twice the lines around it that stay: where a hunk ends. */
static int hunk_end(const struct edits *e, int i)
{
    int quiet = 0, last = i;

    for (; i < e->count && quiet <= 2 * AROUND; i++) {
        quiet = e->items[i].kind == ' ' ? quiet + 1 : 0;
        last = quiet ? last : i;
    }
    return last + 1;
}

static void add_hunk(struct text *out, const struct edits *e, int first, int end)
{
    int before = 0, after = 0;

    for (int i = first; i < end; i++) {
        before += e->items[i].kind != '+';
        after += e->items[i].kind != '-';
    }
    text_addf(out, "@@ -%d,%d +%d,%d @@\n", e->items[first].before + (before > 0), before,
              e->items[first].after + (after > 0), after);
    for (int i = first; i < end; i++)
        text_addf(out, "%c%.*s\n", e->items[i].kind, e->items[i].line.length,
                  e->items[i].line.text);
}

static void add_hunks(struct text *out, const struct edits *e)
{
    for (int i = 0; i < e->count; i++) {
        int first, end;

        if (e->items[i].kind == ' ')
            continue;
        first = i > AROUND ? i - AROUND : 0;
        i = hunk_end(e, i);
        end = i + AROUND < e->count ? i + AROUND : e->count;
        add_hunk(out, e, first, end);
    }
}

int diff_texts(struct text *out, const char *before_name, const char *before,
               const char *after_name, const char *after)
{
    struct lines a = { 0 }, b = { 0 };
    struct edits e = { 0 };
    int r = split(&a, before);

    if (r == 0)
        r = split(&b, after);
    if (r == 0 && strcmp(before, after))
        r = find_edits(&a, &b, &e);
    if (r == 0 && e.count) {
        text_addf(out, "--- %s\n+++ %s\n", before_name, after_name);
        add_hunks(out, &e);
    }
    free(a.items);
    free(b.items);
    free(e.items);
    return r;
}
