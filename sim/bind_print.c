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

void bind_json_text(struct text *out, const char *s)
{
    text_add(out, "\"");
    for (; *s; s++)
        text_addf(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    text_add(out, "\"");
}

static void schema_value(struct text *out, const struct bind_field *f, int indent);

static void schema_choice(struct text *out, const struct bind_field *f)
{
    bool null = false;

    text_add(out, "\"enum\": [");
    for (int i = 0; f->names[i]; i++) {
        text_add(out, i ? ", " : "");
        bind_json_text(out, f->names[i]);
        null |= !strcmp(f->names[i], "null");
    }
    /* Other readers hand over a plain null as nothing. */
    text_add(out, null ? ", null]" : "]");
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

/* A plain 12.4 or 0000:06:00.0 is a number to other readers: a regex is for those that are text. */
static void schema_text(struct text *out, const struct bind_field *f)
{
    text_addf(out, "\"type\": [\"string\", \"number\"], \"minLength\": 1, \"maxLength\": %zu",
              f->size - 1);
    if (f->shape) {
        text_add(out, ", \"pattern\": ");
        bind_json_text(out, f->shape->regex);
    }
}

static void schema_map(struct text *out, const struct bind_field *f, int indent)
{
    text_addf(out, "\"type\": \"object\", \"maxProperties\": %.0f, ", f->high);
    if (f->shape) {
        text_add(out, "\"propertyNames\": { \"pattern\": ");
        bind_json_text(out, f->shape->regex);
        text_add(out, " }, ");
    }
    text_add(out, "\"additionalProperties\": { ");
    schema_value(out, &(struct bind_field){ .type = BIND_STRUCT, .table = f->table }, indent);
    text_add(out, " }");
}

static void schema_number(struct text *out, const struct bind_field *f)
{
    bool real = f->type == BIND_REAL;

    text_addf(out, "\"type\": \"%s\", ", real ? "number" : "integer");
    text_addf(out,
              real ? "\"minimum\": %.10g, \"maximum\": %.10g"
                   : "\"minimum\": %.0f, \"maximum\": %.0f",
              f->low, f->high);
}

static void schema_value(struct text *out, const struct bind_field *f, int indent)
{
    switch (f->type) {
    case BIND_BOOL:
        text_add(out, "\"enum\": [true, false, \"yes\", \"no\", \"on\", \"off\"]");
        break;
    case BIND_INT:
    case BIND_REAL:
        schema_number(out, f);
        break;
    case BIND_QUANTITY:
        unit_schema(out, f->unit, f->flags & BIND_BARE ? UNIT_BARE_SHOWN : UNIT_BARE_REFUSED);
        break;
    case BIND_TEXT:
        schema_text(out, f);
        break;
    case BIND_CHOICE:
        schema_choice(out, f);
        break;
    case BIND_STRUCT:
        if (f->table->def)
            text_addf(out, "\"$ref\": \"#/$defs/%s\"", f->table->def);
        else
            bind_schema(out, f->table, indent);
        break;
    case BIND_ARRAY:
    case BIND_LIST:
        schema_list(out, f, indent);
        break;
    case BIND_MAP:
        schema_map(out, f, indent);
        break;
    case BIND_CUSTOM:
        text_add(out, f->custom->schema);
        break;
    }
}

static void schema_required(struct text *out, const struct bind_table *table)
{
    const char *before = ", \"required\": [";

    for (int i = 0; table->fields[i].key; i++) {
        if (!(table->fields[i].flags & BIND_REQUIRED))
            continue;
        text_add(out, before);
        bind_json_text(out, table->fields[i].key);
        before = ", ";
    }
    text_add(out, strlen(before) == 2 ? "]" : "");
}

void bind_schema(struct text *out, const struct bind_table *table, int indent)
{
    /* What is written in place may also be left empty. */
    text_addf(out, "\"type\": %s, \"additionalProperties\": false",
              table->def ? "\"object\"" : "[\"object\", \"null\"]");
    schema_required(out, table);
    text_add(out, ", \"properties\": {\n");
    for (int i = 0; table->fields[i].key; i++) {
        const struct bind_field *f = &table->fields[i];

        pad(out, indent + 2);
        bind_json_text(out, f->key);
        text_add(out, ": { \"description\": ");
        bind_json_text(out, f->help ? f->help : "");
        text_add(out, ", ");
        schema_value(out, f, indent + 2);
        text_add(out, table->fields[i + 1].key ? " },\n" : " }\n");
    }
    pad(out, indent);
    text_add(out, "}");
}

void bind_schema_document(struct text *out, const char *title, const struct schema_def *defs,
                          const char *more, const struct bind_table *table)
{
    const char *before = "";

    text_addf(out,
              "{\n"
              "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
              "  \"title\": \"%s\",\n"
              "  \"$defs\": {",
              title);
    for (; defs->name; defs++) {
        text_addf(out, "%s\n    \"%s\": { ", before, defs->name);
        defs->add(out);
        text_add(out, " }");
        before = ",";
    }
    text_addf(out, "\n  },\n  %s", more);
    bind_schema(out, table, 2);
    text_add(out, "\n}\n");
}
