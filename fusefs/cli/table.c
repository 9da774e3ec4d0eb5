/*
 * Table: a file of a mount that has something of everyone of a kind. See table.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the next word off a line. */
static const char *cut(char **rest)
{
    const char *word = strsep(rest, " ");

    return word ? word : "";
}

static int count_lines(const char *text)
{
    int n = 1;

    while ((text = strchr(text, '\n'))) {
        text++;
        n++;
    }
    return n;
}

/* What lies further back in the text came later. */
static int by_whose(const void *a, const void *b)
{
    const struct table_line *x = a, *y = b;
    int r = strcmp(x->whose, y->whose);

    return r ? r : (x->whose > y->whose) - (x->whose < y->whose);
}

int table_read(const struct client *c, struct table *t, const char *path)
{
    char *rest, *line;
    int r;

    *t = (struct table){ 0 };
    r = client_read(c, &t->text, "%s", path);
    if (r < 0)
        return r;
    t->lines = malloc((size_t)count_lines(text_str(&t->text)) * sizeof(*t->lines));
    if (!t->lines)
        return -ENOMEM;
    rest = t->text.data;
    strsep(&rest, "\n"); /* the heading */
    while ((line = strsep(&rest, "\n"))) {
        struct table_line *l = &t->lines[t->count++];

        l->whose = cut(&line);
        l->name = cut(&line);
        l->value = line ? line : "";
    }
    if (t->count)
        qsort(t->lines, (size_t)t->count, sizeof(*t->lines), by_whose);
    return 0;
}

void table_release(struct table *t)
{
    text_release(&t->text);
    free(t->lines);
    *t = (struct table){ 0 };
}

int table_find(const struct table *t, const char *whose, const struct table_line **first)
{
    int low = 0, high = t->count, n = 0;

    while (low < high) {
        int middle = (low + high) / 2;

        if (strcmp(t->lines[middle].whose, whose) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = t->lines + low;
    while (low + n < t->count && !strcmp(t->lines[low + n].whose, whose))
        n++;
    return n;
}

const char *table_value(const struct table_line *lines, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(lines[i].name, name))
            return lines[i].value;
    return NULL;
}
