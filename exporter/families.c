/*
 * Families: what the exporter has to say. See families.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/families.h"

#include <string.h>

#include "sim/text.h"

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

static void add_value(struct text *out, const char *value)
{
    for (size_t plain; *value; value += plain) {
        plain = strcspn(value, "\\\"\n");
        text_addn(out, value, plain);
        if (!value[plain])
            break;
        text_add(out, value[plain] == '\n' ? "\\n" : value[plain] == '"' ? "\\\"" : "\\\\");
        plain++;
    }
}

static bool set_text(struct arena *arena, struct label_set *set)
{
    struct text out = TEXT_INIT;

    for (size_t i = 0; i < set->count; i++) {
        text_addf(&out, "%s%s=\"", i ? "," : "", set->items[i].name);
        add_value(&out, set->items[i].value);
        text_add(&out, "\"");
    }
    set->text = out.failed ? NULL : arena_strndup(arena, text_str(&out), out.length);
    set->text_length = out.length;
    text_release(&out);
    return set->text;
}

const struct label_set *label_set_make(struct arena *arena, const struct label *labels,
                                       size_t count)
{
    struct label_set *set = arena_alloc(arena, sizeof(*set));
    struct label *items = arena_alloc(arena, (count ? count : 1) * sizeof(*items));

    if (!set || !items)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        items[i].name = arena_strndup(arena, labels[i].name, strlen(labels[i].name));
        items[i].value = arena_strndup(arena, labels[i].value, strlen(labels[i].value));
        if (!items[i].name || !items[i].value)
            return NULL;
    }
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
