/*
 * Labels: lists of them, and how they are written as text. See labels.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/labels.h"

#include <errno.h>
#include <string.h>

int labels_new(struct label_list *list, size_t count, struct arena *arena)
{
    *list = (struct label_list){ .items = arena_alloc(arena, (count + 1) * sizeof(struct label)) };
    return list->items ? 0 : -ENOMEM;
}

bool label_is_plain(const char *text)
{
    for (; *text; text++)
        if (*text < '!' || *text > '~' || *text == ',')
            return false;
    return true;
}

void labels_add(struct label_list *list, const char *key, const char *value)
{
    list->items[list->count++] = (struct label){ key, value };
}

const char *labels_find(const struct label_list *list, const char *key)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].key, key))
            return list->items[i].value;
    return NULL;
}

static size_t count_parts(const char *text, char separator)
{
    size_t count = 1;

    for (; (text = strchr(text, separator)); text++)
        count++;
    return count;
}

/* 0; -EINVAL when it is not key=value with a key, -EEXIST when the key is there; -ENOMEM. */
static int add_part(struct label_list *list, const char *part, size_t length, struct arena *arena)
{
    char *key = arena_strndup(arena, part, length);
    char *equals = key ? strchr(key, '=') : NULL;

    if (!key)
        return -ENOMEM;
    if (!equals || equals == key || !label_is_plain(key) || strchr(equals + 1, '='))
        return -EINVAL;
    *equals = '\0';
    if (labels_find(list, key))
        return -EEXIST;
    labels_add(list, key, equals + 1);
    return 0;
}

int labels_parse(struct label_list *list, const char *text, size_t more, const char *where,
                 struct arena *arena, struct why *why)
{
    int r = labels_new(list, count_parts(text, '\n') + more, arena), line = 0;

    while (r == 0 && *text) {
        size_t n = strcspn(text, "\n");

        line++;
        r = n ? add_part(list, text, n, arena) : 0;
        text += n + (text[n] == '\n');
    }
    if (r == -EINVAL)
        return why_set(why, EPROTO, "line %d of %s is not a label: key=value is expected", line,
                       where);
    if (r == -EEXIST)
        return why_set(why, EPROTO, "line %d of %s has a label that was there before", line, where);
    return r < 0 ? why_set(why, ENOMEM, "out of memory") : 0;
}

/* A label has no commas. */
void labels_note(struct text *out, const struct label_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        text_addf(out, "%s%s=%s", i ? "," : "", list->items[i].key, list->items[i].value);
}

int labels_read_note(struct label_list *list, const char *note, struct arena *arena)
{
    int r = labels_new(list, count_parts(note, ','), arena);

    while (r != -ENOMEM && *note) {
        size_t n = strcspn(note, ",");

        r = add_part(list, note, n, arena);
        note += n + (note[n] == ',');
    }
    return r == -ENOMEM ? r : 0;
}
