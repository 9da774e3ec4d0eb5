/*
 * Bind: printing a struct back as YAML, and its table as JSON Schema. See bind.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "sim/bind.h"

static void pad(struct text *out, int indent)
{
    text_addf(out, "%*s", indent, "");
}

/* --- YAML ------------------------------------------------------------------------------------ */

/* Whether YAML would read a plain `s` as something else than this very text. */
static bool needs_quotes(const char *s)
{
    static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "null", "~" };
    double number;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(s, words[i]))
            return true;
    if (!*s || parse_real(s, &number) == 0)
        return true;
    if (strchr("-?:,[]{}#&*!|>'\"%@` ", *s) || s[strlen(s) - 1] == ' ')
        return true;
    return strpbrk(s, ":#[]{},\"'\\\n\t") != NULL;
}

void bind_print_text(struct text *out, const char *s)
{
    if (!needs_quotes(s)) {
        text_add(out, s);
        return;
    }
    text_add(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_addf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            text_addf(out, "\\x%02x", (unsigned)*s);
        else
            text_addn(out, s, 1);
    }
    text_add(out, "\"");
}

static void print_real(struct text *out, double v)
{
    size_t start = out->length;
    double back;

    /* The shortest form that reads back as the same number. */
    for (int digits = 6; digits <= 17; digits++) {
        text_cut(out, start);
        text_addf(out, "%.*g", digits, v);
        if (parse_real(text_str(out) + start, &back) == 0 && back == v)
            return;
    }
}

static bool is_scalar(enum bind_type type)
{
    return type <= BIND_CHOICE;
}

static void print_scalar(struct text *out, const struct bind_field *f, const void *member)
{
    const int64_t *whole = member;

    switch (f->type) {
    case BIND_BOOL:
        text_add(out, *whole ? "true" : "false");
        break;
    case BIND_INT:
        text_addf(out, f->flags & BIND_HEX ? "0x%" PRIx64 : "%" PRId64, *whole);
        break;
    case BIND_REAL:
        print_real(out, *(const double *)member);
        break;
    case BIND_QUANTITY:
        unit_print(out, f->unit, *whole);
        break;
    case BIND_CHOICE:
        bind_print_text(out, f->names[*whole]);
        break;
    default:
        bind_print_text(out, member);
        break;
    }
}

static void print_items(struct text *out, const struct bind_field *f, const char *items,
                        size_t count, int indent)
{
    if (is_scalar(f->item->type)) {
        text_add(out, " [");
        for (size_t i = 0; i < count; i++) {
            text_add(out, i ? ", " : "");
            print_scalar(out, f->item, items + i * f->size);
        }
        text_add(out, "]\n");
        return;
    }
    text_add(out, count ? "\n" : " []\n");
    for (size_t i = 0; i < count; i++) {
        struct text block = TEXT_INIT;

        bind_print(&block, f->item->table, items + i * f->size, indent + 2);
        pad(out, indent);
        text_add(out, "- ");
        /* The block's first line stands behind the dash. */
        text_add(out, block.length ? text_str(&block) + indent + 2 : "{}\n");
        text_release(&block);
    }
}

static void print_struct(struct text *out, const struct bind_table *table, const void *object,
                         int indent)
{
    struct text block = TEXT_INIT;

    bind_print(&block, table, object, indent);
    text_add(out, block.length ? "\n" : " {}\n");
    text_add(out, text_str(&block));
    text_release(&block);
}

static void print_map(struct text *out, const struct bind_field *f, const struct bind_list *list,
                      int indent)
{
    text_add(out, list->count ? "\n" : " {}\n");
    for (size_t i = 0; i < list->count; i++) {
        const char *item = (const char *)list->items + i * f->size;

        pad(out, indent);
        bind_print_text(out, item + f->key_offset);
        text_add(out, ":");
        print_struct(out, f->table, item, indent + 2);
    }
}

static void print_field(struct text *out, const struct bind_field *f, const char *member,
                        int indent)
{
    const struct bind_list *list = (const void *)member;

    pad(out, indent);
    text_addf(out, "%s:", f->key);
    switch (f->type) {
    case BIND_STRUCT:
        print_struct(out, f->table, member, indent + 2);
        break;
    case BIND_ARRAY:
        print_items(out, f, member + sizeof(int64_t),
                    (size_t) * (const int64_t *)(const void *)member, indent + 2);
        break;
    case BIND_LIST:
        print_items(out, f, list->items, list->count, indent + 2);
        break;
    case BIND_MAP:
        print_map(out, f, list, indent + 2);
        break;
    case BIND_CUSTOM:
        f->custom->print(out, member, indent + 2);
        break;
    default:
        text_add(out, " ");
        print_scalar(out, f, member);
        text_add(out, "\n");
    }
}

void bind_print(struct text *out, const struct bind_table *table, const void *object, int indent)
{
    const struct bind_head *head = object;

    for (int i = 0; table->fields[i].key; i++)
        if (head->set >> i & 1 && !(table->fields[i].flags & BIND_HIDDEN))
            print_field(out, &table->fields[i], (const char *)object + table->fields[i].offset,
                        indent);
}

/* --- JSON Schema ----------------------------------------------------------------------------- */

static void json_text(struct text *out, const char *s)
{
    text_add(out, "\"");
    for (; *s; s++)
        text_addf(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    text_add(out, "\"");
}

static void schema_value(struct text *out, const struct bind_field *f, int indent);

static void schema_choice(struct text *out, const struct bind_field *f)
{
    bool boolean = false;

    text_add(out, "\"enum\": [");
    for (int i = 0; f->names[i]; i++) {
        text_add(out, i ? ", " : "");
        json_text(out, f->names[i]);
        boolean |= !strcmp(f->names[i], "off") || !strcmp(f->names[i], "on");
    }
    /* YAML 1.1 readers hand over a plain on or off as a boolean. */
    text_add(out, boolean ? ", true, false]" : "]");
}

static void schema_list(struct text *out, const struct bind_field *f, int indent)
{
    bool single = f->flags & BIND_SINGLE;

    if (single) {
        text_add(out, "\"anyOf\": [{ ");
        schema_value(out, f->item, indent);
        text_add(out, " }, { ");
    }
    text_addf(out, "\"type\": \"array\", \"maxItems\": %.0f, \"items\": { ", f->high);
    schema_value(out, f->item, indent);
    text_add(out, single ? " } }]" : " }");
}

static void schema_quantity(struct text *out, const struct bind_field *f)
{
    static const char pattern[] = "\"pattern\": \"^[-+]?([0-9]*\\\\.?[0-9]+ ?[A-Za-z%/]*)+$\"";

    if (f->flags & BIND_BARE)
        text_addf(out, "\"type\": [\"string\", \"number\"], %s", pattern);
    else
        text_addf(out, "\"type\": \"string\", %s", pattern);
}

/* Numbers may be written as text ("0x20b0"), so whole numbers accept both. */
static void schema_number(struct text *out, const struct bind_field *f)
{
    const char *type = f->type == BIND_REAL ? "number" : "integer";

    text_addf(out, "\"type\": \"%s\", \"minimum\": %.17g, \"maximum\": %.17g", type, f->low,
              f->high);
}

static void schema_value(struct text *out, const struct bind_field *f, int indent)
{
    switch (f->type) {
    case BIND_BOOL:
        text_add(out, "\"type\": \"boolean\"");
        break;
    case BIND_INT:
    case BIND_REAL:
        schema_number(out, f);
        break;
    case BIND_QUANTITY:
        schema_quantity(out, f);
        break;
    case BIND_TEXT:
        text_addf(out, "\"type\": [\"string\", \"number\"], \"maxLength\": %zu", f->size - 1);
        break;
    case BIND_CHOICE:
        schema_choice(out, f);
        break;
    case BIND_STRUCT:
        bind_schema(out, f->table, indent);
        break;
    case BIND_ARRAY:
    case BIND_LIST:
        schema_list(out, f, indent);
        break;
    case BIND_MAP:
        text_addf(out,
                  "\"type\": \"object\", \"maxProperties\": %.0f, \"additionalProperties\": { ",
                  f->high);
        bind_schema(out, f->table, indent);
        text_add(out, " }");
        break;
    case BIND_CUSTOM:
        text_add(out, f->custom->schema);
        break;
    }
}

static void schema_required(struct text *out, const struct bind_table *table, int indent)
{
    const char *before = "";

    for (int i = 0; table->fields[i].key; i++) {
        if (!(table->fields[i].flags & BIND_REQUIRED))
            continue;
        if (!*before) {
            text_add(out, ",\n");
            pad(out, indent);
            text_add(out, "\"required\": [");
        }
        text_add(out, before);
        json_text(out, table->fields[i].key);
        before = ", ";
    }
    text_add(out, *before ? "]" : "");
}

void bind_schema(struct text *out, const struct bind_table *table, int indent)
{
    text_add(out, "\"type\": [\"object\", \"null\"], \"additionalProperties\": false,\n");
    pad(out, indent);
    text_add(out, "\"properties\": {\n");
    for (int i = 0; table->fields[i].key; i++) {
        const struct bind_field *f = &table->fields[i];

        pad(out, indent + 2);
        json_text(out, f->key);
        text_add(out, ": { \"description\": ");
        json_text(out, f->help ? f->help : "");
        text_add(out, ", ");
        schema_value(out, f, indent + 2);
        text_add(out, table->fields[i + 1].key ? " },\n" : " }\n");
    }
    pad(out, indent);
    text_add(out, "}");
    schema_required(out, table, indent);
}
