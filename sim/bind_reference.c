/*
 * Bind: tables as tables in Markdown, for a page of reference. See bind.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/bind.h"

#include <inttypes.h>

static const char *quantity_name(enum unit unit)
{
    switch (unit) {
    case UNIT_NANOSECOND:
        return "time";
    case UNIT_BYTES:
        return "size";
    case UNIT_CELSIUS:
        return "temperature";
    default:
        return unit_name(unit);
    }
}

/* The bounds a person would want to know; the largest times and sizes are none. */
static void add_range(struct text *out, const struct bind_field *f)
{
    if (f->type == BIND_QUANTITY) {
        text_add(out, quantity_name(f->unit));
        if (f->low > 0) {
            text_add(out, ", at least ");
            unit_print(out, f->unit, (int64_t)f->low);
        }
        return;
    }
    text_addf(out, "%s, %.10g to %.10g", f->type == BIND_INT ? "integer" : "number", f->low,
              f->high);
}

static void add_names(struct text *out, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        text_addf(out, "%s`%s`", i ? ", " : "", names[i]);
}

static void add_type(struct text *out, const struct bind_field *f)
{
    if (f->words) {
        text_add(out, f->words);
        return;
    }
    switch (f->type) {
    case BIND_BOOL:
        text_add(out, "`true` or `false`");
        break;
    case BIND_INT:
    case BIND_REAL:
    case BIND_QUANTITY:
        add_range(out, f);
        break;
    case BIND_CHOICE:
        add_names(out, f->names);
        break;
    case BIND_STRUCT:
        text_addf(out, "mapping: %s", f->table->what);
        break;
    case BIND_MAP:
        text_addf(out, "mapping of names to %s", f->table->what);
        break;
    case BIND_ARRAY:
    case BIND_LIST:
        text_add(out, f->flags & BIND_SINGLE ? "one or a list: " : "list: ");
        add_type(out, f->item);
        break;
    case BIND_TEXT:
    case BIND_CUSTOM:
        text_add(out, f->shape ? f->shape->words : "text");
        break;
    }
}

void bind_reference(struct text *out, const struct bind_table *table)
{
    text_addf(out, "| key of %s | type | what it is |\n| --- | --- | --- |\n", table->what);
    for (const struct bind_field *f = table->fields; f->key; f++) {
        text_addf(out, "| `%s` | ", f->key);
        add_type(out, f);
        text_addf(out, "%s | %s |\n", f->flags & BIND_REQUIRED ? "; must be given" : "",
                  f->help ? f->help : "");
    }
}
