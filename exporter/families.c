/*
 * Families: what the exporter has to say. See families.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/families.h"

#include <string.h>

const char *family_type_name(enum family_type type)
{
    static const char *const names[] = {
        [FAMILY_GAUGE] = "gauge",         [FAMILY_COUNTER] = "counter",
        [FAMILY_HISTOGRAM] = "histogram", [FAMILY_SUMMARY] = "summary",
        [FAMILY_UNTYPED] = "untyped",
    };

    return names[type];
}

double sample_value(const struct sample *s)
{
    return s->kind == SAMPLE_INTEGER ? (double)s->integer : s->real;
}

/* How Prometheus escapes a character of a value; 0: not at all. */
static char escaped(char c)
{
    return c == '\n' ? 'n' : c == '"' || c == '\\' ? c : 0;
}

static size_t escaped_length(const char *value)
{
    size_t n = 0;

    for (; *value; value++)
        n += 1 + (escaped(*value) != 0);
    return n;
}

static char *put(char *at, const char *text)
{
    size_t n = strlen(text);

    memcpy(at, text, n);
    return at + n;
}

static char *put_value(char *at, const char *value)
{
    for (; *value; value++) {
        char e = escaped(*value);

        if (e)
            *at++ = '\\';
        *at++ = e ? e : *value;
    }
    return at;
}

/* name="value",… in one piece of the arena. */
static bool set_text(struct arena *arena, struct label_set *set)
{
    size_t length = 1;
    char *text, *at;

    for (size_t i = 0; i < set->count; i++)
        length += strlen(set->items[i].name) + escaped_length(set->items[i].value) + 4;
    text = at = arena_alloc(arena, length);
    if (!text)
        return false;
    for (size_t i = 0; i < set->count; i++) {
        at = put(at, i ? "," : "");
        at = put(at, set->items[i].name);
        at = put(at, "=\"");
        at = put_value(at, set->items[i].value);
        at = put(at, "\"");
    }
    set->text = text;
    set->text_length = (size_t)(at - text);
    return true;
}

const struct label_set *label_set_make(struct arena *arena, const struct label *labels,
                                       size_t count)
{
    struct label_set *set = arena_alloc(arena, sizeof(*set));
    struct label *items = arena_alloc(arena, (count ? count : 1) * sizeof(*items));

    if (!set || !items)
        return NULL;
    if (count)
        memcpy(items, labels, count * sizeof(*items));
    set->items = items;
    set->count = count;
    return set_text(arena, set) ? set : NULL;
}

struct sample *samples_make(struct arena *arena, size_t count)
{
    return arena_alloc(arena, (count ? count : 1) * sizeof(struct sample));
}

void family_set_release(struct family_set *set)
{
    arena_release(&set->arena);
    *set = (struct family_set){ 0 };
}
