/*
 * Bind: reading a YAML mapping into a struct by its table. See bind.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/bind.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/suggest.h"

/* --- sentences and the path ------------------------------------------------------------------ */

static int refuse_v(struct binder *b, int err, int line, int column, const char *fmt, va_list ap)
{
    struct text sentence = TEXT_INIT;
    int r;

    text_vaddf(&sentence, fmt, ap);
    r = why_set(b->why, err, "%s:%d:%d: %s%s%s", b->file, line, column, text_str(&b->path),
                b->path.length ? ": " : "", text_str(&sentence));
    text_release(&sentence);
    return r;
}

int bind_refuse(struct binder *b, int err, const struct ynode *at, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = refuse_v(b, err, at ? at->line : 1, at ? at->column : 1, fmt, ap);
    va_end(ap);
    return r;
}

int bind_refuse_at(struct binder *b, int err, const struct bind_head *at, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = refuse_v(b, err, at->line, at->column, fmt, ap);
    va_end(ap);
    return r;
}

size_t bind_enter(struct binder *b, const char *key)
{
    size_t length = b->path.length;

    text_addf(&b->path, "%s%s", length ? "." : "", key);
    return length;
}

size_t bind_enter_index(struct binder *b, size_t index)
{
    size_t length = b->path.length;

    text_addf(&b->path, "[%zu]", index);
    return length;
}

void bind_leave(struct binder *b, size_t length)
{
    text_cut(&b->path, length);
}

int bind_expected(struct binder *b, const struct ynode *node, const char *what)
{
    return bind_refuse(b, EINVAL, node, "found %s; allowed: %s", ynode_describe(b->arena, node),
                       what);
}

int bind_unknown_key(struct binder *b, const struct ynode *key, const char *where,
                     suggest_names *name_at, const void *names)
{
    struct text hint = TEXT_INIT;
    int r;

    suggest_add(&hint, key->text, name_at, names);
    r = bind_refuse(b, EINVAL, key, "unknown key %s in %s%s", ynode_describe(b->arena, key), where,
                    text_str(&hint));
    text_release(&hint);
    return r;
}

int bind_out_of_memory(struct binder *b)
{
    return why_set(b->why, ENOMEM, "%s: out of memory", b->file);
}

/* --- scalars --------------------------------------------------------------------------------- */

static int out_of_range(struct binder *b, const struct bind_field *f, const struct ynode *node)
{
    struct text range = TEXT_INIT;
    int r;

    if (f->type == BIND_QUANTITY) {
        unit_print(&range, f->unit, (int64_t)f->low);
        text_add(&range, " to ");
        unit_print(&range, f->unit, (int64_t)f->high);
    } else if (f->type == BIND_REAL) {
        text_addf(&range, "%.10g to %.10g", f->low, f->high);
    } else if (f->flags & BIND_HEX) {
        text_addf(&range, "0x%x to 0x%x", (unsigned)f->low, (unsigned)f->high);
    } else if (f->low < f->high) {
        text_addf(&range, "%.0f to %.0f", f->low, f->high);
    } else {
        text_addf(&range, "%.0f", f->low);
    }
    r = bind_refuse(b, ERANGE, node, "%s is out of range; allowed: %s",
                    ynode_describe(b->arena, node), text_str(&range));
    text_release(&range);
    return r;
}

static int read_bool(struct binder *b, const struct ynode *node, int64_t *value)
{
    static const char *const words[] = { "false", "true", "off", "on", "no", "yes" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(node->text, words[i])) {
            *value = i & 1;
            return 0;
        }
    return bind_expected(b, node, "true or false");
}

static int read_int(struct binder *b, const struct bind_field *f, const struct ynode *node,
                    int64_t *value)
{
    int64_t v;
    int r = parse_i64(node->text, &v);

    if (r == -EINVAL)
        return bind_expected(b, node, "a whole number");
    if (r < 0 || (double)v < f->low || (double)v > f->high)
        return out_of_range(b, f, node);
    *value = v;
    return 0;
}

static int read_real(struct binder *b, const struct bind_field *f, const struct ynode *node,
                     double *value)
{
    double v;
    int r = parse_real(node->text, &v);

    if (r == -EINVAL)
        return bind_expected(b, node, "a number");
    if (r < 0 || v < f->low || v > f->high)
        return out_of_range(b, f, node);
    *value = v;
    return 0;
}

/* Longer ones are no numbers, and would make for long sentences. */
static bool text_is_short(const char *text)
{
    return strnlen(text, 65) < 65 && !strpbrk(text, "\r\n\t");
}

static int read_quantity(struct binder *b, const struct bind_field *f, const struct ynode *node,
                         int64_t *value)
{
    struct why inner = { 0 };
    int64_t v;
    int r;

    if (!text_is_short(node->text))
        return bind_expected(b, node, "a number with its unit");
    r = unit_parse(f->unit, node->text, f->flags & BIND_BARE ? UNIT_BARE_SHOWN : UNIT_BARE_REFUSED,
                   &v, &inner);
    if (r == -ERANGE || (r == 0 && ((double)v < f->low || (double)v > f->high)))
        r = out_of_range(b, f, node);
    else if (r < 0)
        bind_refuse(b, -r, node, "%s", why_text(&inner));
    else
        *value = v;
    why_release(&inner);
    return r;
}

/* Characters that YAML cannot print as they are: controls, other line breaks, what is no character. */
static bool has_controls(const char *text)
{
    static const char *const unprintable[] = { "\u2028", "\u2029", "\ufeff", "\xef\xbf\xbe",
                                               "\xef\xbf\xbf" };

    for (const unsigned char *p = (const void *)text; *p; p++)
        if (*p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return true;
    for (size_t i = 0; i < sizeof(unprintable) / sizeof(unprintable[0]); i++)
        if (strstr(text, unprintable[i]))
            return true;
    return false;
}

static int read_text(struct binder *b, const struct bind_field *f, const struct ynode *node,
                     char *value)
{
    size_t n = strlen(node->text);

    if (n == 0)
        return bind_refuse(b, EINVAL, node, "must not be empty");
    if (n >= f->size)
        return bind_refuse(b, E2BIG, node, "%s is longer than %zu characters",
                           ynode_describe(b->arena, node), f->size - 1);
    if (has_controls(node->text))
        return bind_refuse(b, EINVAL, node, "control characters are not allowed");
    if (f->shape && !f->shape->ok(node->text))
        return bind_expected(b, node, f->shape->words);
    memset(value, 0, f->size);
    memcpy(value, node->text, n);
    return 0;
}

static int read_choice(struct binder *b, const struct bind_field *f, const struct ynode *node,
                       int64_t *value)
{
    struct text hint = TEXT_INIT;
    int r;

    for (int i = 0; f->names[i]; i++)
        if (!strcmp(node->text, f->names[i])) {
            *value = i;
            return 0;
        }
    suggest_add(&hint, node->text, suggest_from_strings, f->names);
    r = bind_refuse(b, EINVAL, node, "%s is not known%s", ynode_describe(b->arena, node),
                    text_str(&hint));
    text_release(&hint);
    return r;
}

static int read_scalar(struct binder *b, const struct bind_field *f, const struct ynode *node,
                       void *member)
{
    switch (f->type) {
    case BIND_BOOL:
        return read_bool(b, node, member);
    case BIND_INT:
        return read_int(b, f, node, member);
    case BIND_REAL:
        return read_real(b, f, node, member);
    case BIND_QUANTITY:
        return read_quantity(b, f, node, member);
    case BIND_CHOICE:
        return read_choice(b, f, node, member);
    default:
        return read_text(b, f, node, member);
    }
}

/* --- collections ----------------------------------------------------------------------------- */

static int too_many(struct binder *b, const struct bind_field *f, const struct ynode *node)
{
    return bind_refuse(b, ERANGE, node, "has %zu entries; allowed: at most %.0f", node->count,
                       f->high);
}

static int read_item(struct binder *b, const struct bind_field *item, const struct ynode *node,
                     void *member)
{
    if (item->type == BIND_STRUCT && item->table->init)
        item->table->init(member);
    return bind_read_value(b, item, node, member);
}

static int read_items(struct binder *b, const struct bind_field *f, const struct ynode *node,
                      char *items)
{
    for (size_t i = 0; i < node->count; i++) {
        size_t path = bind_enter_index(b, i);
        int r = read_item(b, f->item, node->items[i], items + i * f->size);

        if (r < 0)
            return r;
        bind_leave(b, path);
    }
    return 0;
}

static int read_array(struct binder *b, const struct bind_field *f, const struct ynode *node,
                      void *member)
{
    int64_t *count = member;

    if (node->kind != YNODE_LIST)
        return bind_expected(b, node, "a list");
    if ((double)node->count > f->high)
        return too_many(b, f, node);
    *count = (int64_t)node->count;
    return read_items(b, f, node, (char *)member + sizeof(int64_t));
}

static int read_list(struct binder *b, const struct bind_field *f, const struct ynode *node,
                     struct bind_list *list)
{
    bool single = node->kind != YNODE_LIST && (f->flags & BIND_SINGLE);
    size_t count = single ? 1 : node->count;

    if (node->kind != YNODE_LIST && !single)
        return bind_expected(b, node, "a list");
    if (single && f->item->type == BIND_STRUCT && node->kind != YNODE_MAP)
        return bind_expected(b, node, f->words ? f->words : "a list of mappings, or one mapping");
    if ((double)count > f->high)
        return too_many(b, f, node);
    list->items = arena_alloc(b->arena, count * f->size);
    list->count = count;
    if (!list->items)
        return bind_out_of_memory(b);
    if (single)
        return read_item(b, f->item, node, list->items);
    return read_items(b, f, node, list->items);
}

/* One `key: mapping` of a map, into `item`. */
static int read_map_item(struct binder *b, const struct bind_field *f, const struct ynode *key,
                         const struct ynode *value, char *item)
{
    struct bind_field text = { .type = BIND_TEXT, .size = f->key_size, .shape = f->shape };
    size_t path;
    int r;

    if (f->table->init)
        f->table->init(item);
    r = read_text(b, &text, key, item + f->key_offset);
    if (r < 0)
        return r;
    path = bind_enter(b, key->text);
    r = bind_read(b, f->table, value, item);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_map(struct binder *b, const struct bind_field *f, const struct ynode *node,
                    struct bind_list *list)
{
    if (node->kind != YNODE_MAP)
        return bind_expected(b, node, "a mapping");
    if ((double)node->count > f->high)
        return too_many(b, f, node);
    list->items = arena_alloc(b->arena, node->count * f->size);
    list->count = node->count;
    if (!list->items)
        return bind_out_of_memory(b);
    for (size_t i = 0; i < node->count; i++) {
        int r = read_map_item(b, f, node->keys[i], node->items[i],
                              (char *)list->items + i * f->size);

        if (r < 0)
            return r;
    }
    return 0;
}

int bind_read_entries(struct binder *b, const struct ynode *node, const char *what, size_t size,
                      bind_entry *read, struct bind_list *list)
{
    char *items;

    if (node->kind != YNODE_MAP)
        return bind_expected(b, node, what);
    items = arena_alloc(b->arena, node->count * size);
    if (!items)
        return bind_out_of_memory(b);
    for (size_t i = 0; i < node->count; i++) {
        int r = read(b, node->keys[i], node->items[i], items + i * size);

        if (r < 0)
            return r;
    }
    *list = (struct bind_list){ items, node->count };
    return 0;
}

int bind_read_value(struct binder *b, const struct bind_field *f, const struct ynode *node,
                    void *member)
{
    switch (f->type) {
    case BIND_STRUCT:
        return bind_read(b, f->table, node, member);
    case BIND_ARRAY:
        return read_array(b, f, node, member);
    case BIND_LIST:
        return read_list(b, f, node, member);
    case BIND_MAP:
        return read_map(b, f, node, member);
    case BIND_CUSTOM:
        return f->custom->read(b, node, member);
    default:
        if (node->kind != YNODE_SCALAR)
            return bind_expected(b, node, "a single value");
        return read_scalar(b, f, node, member);
    }
}

/* --- mappings -------------------------------------------------------------------------------- */

static const char *field_name(const void *fields, int i)
{
    return ((const struct bind_field *)fields)[i].key;
}

static int field_find(const struct bind_table *table, const char *key)
{
    for (int i = 0; table->fields[i].key; i++)
        if (!strcmp(table->fields[i].key, key))
            return i;
    return -1;
}

/* A mapping may be left empty; and a choice may be called null. */
static bool is_nothing(const struct bind_field *f, const struct ynode *value)
{
    if (!ynode_is_null(value) || f->type == BIND_STRUCT)
        return false;
    for (int i = 0; f->type == BIND_CHOICE && f->names[i]; i++)
        if (!strcmp(f->names[i], value->text))
            return false;
    return true;
}

static int read_field(struct binder *b, const struct bind_table *table, const struct ynode *map,
                      size_t i, char *object)
{
    int row = field_find(table, map->keys[i]->text);
    const struct bind_field *f = &table->fields[row < 0 ? 0 : row];
    size_t path;
    int r;

    if (row < 0)
        return bind_unknown_key(b, map->keys[i], table->what, field_name, table->fields);
    path = bind_enter(b, f->key);
    if (is_nothing(f, map->items[i]))
        r = bind_refuse(b, EINVAL, map->keys[i], "has no value");
    else
        r = bind_read_value(b, f, map->items[i], object + f->offset);
    if (r < 0)
        return r;
    bind_leave(b, path);
    ((struct bind_head *)(void *)object)->set |= UINT64_C(1) << row;
    return 0;
}

static int check_required(struct binder *b, const struct bind_table *table,
                          const struct ynode *node, const struct bind_head *head)
{
    for (int i = 0; table->fields[i].key; i++)
        if ((table->fields[i].flags & BIND_REQUIRED) && !(head->set >> i & 1))
            return bind_refuse(b, EINVAL, node, "%s needs the key '%s'", table->what,
                               table->fields[i].key);
    return 0;
}

int bind_read(struct binder *b, const struct bind_table *table, const struct ynode *node,
              void *object)
{
    struct bind_head *head = object;
    int r;

    if (node && node->kind != YNODE_MAP && !ynode_is_null(node))
        return bind_expected(b, node, "a mapping");
    head->line = node ? node->line : 1;
    head->column = node ? node->column : 1;
    for (size_t i = 0; node && node->kind == YNODE_MAP && i < node->count; i++) {
        r = read_field(b, table, node, i, object);
        if (r < 0)
            return r;
    }
    r = check_required(b, table, node, head);
    if (r == 0 && table->check)
        r = table->check(b, node, object);
    return r;
}

bool bind_is_set(const struct bind_table *table, const void *object, const char *key)
{
    int row = field_find(table, key);

    return row >= 0 && ((const struct bind_head *)object)->set >> row & 1;
}

void bind_mark(const struct bind_table *table, void *object, const char *key, bool given)
{
    struct bind_head *head = object;
    uint64_t bit = UINT64_C(1) << field_find(table, key);

    head->set = given ? head->set | bit : head->set & ~bit;
}

void bind_mark_all(const struct bind_table *table, void *object)
{
    for (const struct bind_field *f = table->fields; f->key; f++)
        bind_mark(table, object, f->key, true);
}

static const struct ynode *map_at(const struct ynode *node, const struct bind_head *head)
{
    const struct ynode *found = NULL;

    if (!node || node->kind == YNODE_SCALAR)
        return NULL;
    if (node->kind == YNODE_MAP && node->line == head->line && node->column == head->column)
        return node;
    for (size_t i = 0; !found && i < node->count; i++)
        found = map_at(node->items[i], head);
    return found;
}

struct bind_head bind_position(const struct ynode *root, const struct bind_head *head,
                               const char *key, size_t item)
{
    const struct ynode *value = ynode_get(map_at(root, head), key);
    struct bind_head at = *head;

    if (value && value->kind == YNODE_LIST && item < value->count)
        value = value->items[item];
    if (value) {
        at.line = value->line;
        at.column = value->column;
    }
    return at;
}

static size_t member_size(const struct bind_field *f)
{
    switch (f->type) {
    case BIND_TEXT:
    case BIND_CUSTOM:
        return f->size;
    case BIND_ARRAY:
        return sizeof(int64_t) + (size_t)f->high * f->size;
    case BIND_LIST:
    case BIND_MAP:
        return sizeof(struct bind_list);
    default:
        return sizeof(int64_t); /* as large as a double */
    }
}

void bind_merge(const struct bind_table *table, void *onto, const void *from)
{
    struct bind_head *head = onto;
    const struct bind_head *given = from;

    for (int i = 0; table->fields[i].key; i++) {
        const struct bind_field *f = &table->fields[i];

        if (!(given->set >> i & 1))
            continue;
        if (f->type == BIND_STRUCT)
            bind_merge(f->table, (char *)onto + f->offset, (const char *)from + f->offset);
        else
            memcpy((char *)onto + f->offset, (const char *)from + f->offset, member_size(f));
    }
    head->set |= given->set;
    head->line = given->line;
    head->column = given->column;
}
