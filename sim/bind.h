/*
 * Bind: tables that tie the keys of a YAML mapping to the members of a C struct.
 *
 * A table row is the whole truth about a key: how it is read, checked, printed back and described in
 * the JSON Schema. Reading names file, line, column and key in every refusal. Knows nothing of GPUs.
 *
 * Every bound struct begins with a struct bind_head. Numbers are int64_t (quantities in the parts of
 * their unit) or double, names are char arrays, lists are struct bind_list in the binder's arena.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_BIND_H
#define SIM_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"
#include "sim/yaml.h"

struct bind_head {
    uint64_t set;         /* bit i: row i of the table was given */
    int32_t line, column; /* where the mapping begins; 0 when made by the program */
};

struct bind_list {
    void *items; /* count × item_size, in an arena */
    size_t count;
};

enum bind_type {
    BIND_BOOL,     /* int64_t: 0 or 1 */
    BIND_INT,      /* int64_t in low..high */
    BIND_REAL,     /* double in low..high */
    BIND_QUANTITY, /* int64_t in low..high, in the parts of `unit` */
    BIND_TEXT,     /* char[size] */
    BIND_CHOICE,   /* int64_t: position in `names` */
    BIND_STRUCT,   /* a struct of `table`, in place */
    BIND_ARRAY, /* struct with int64_t count first, then `size`-byte items up to `high` of them */
    BIND_LIST,  /* struct bind_list of `item` */
    BIND_MAP,   /* struct bind_list of `table` structs, each with its key in `key_offset` */
    BIND_CUSTOM,
};

enum bind_flags {
    BIND_REQUIRED = 1 << 0,
    BIND_SINGLE = 1 << 1, /* list: one item may stand without brackets */
    BIND_BARE = 1 << 2,   /* quantity: a number without unit counts shown units */
    BIND_HEX = 1 << 3,    /* int: printed as 0x… */
    BIND_HIDDEN = 1 << 4, /* read, but never printed */
};

struct binder;

/* What a BIND_CUSTOM row does. */
struct bind_custom {
    int (*read)(struct binder *b, const struct ynode *node, void *member);
    /* Prints behind "key:", beginning with a blank or a newline; ends the line. */
    void (*print)(struct text *out, const void *member, int indent);
    const char *schema; /* JSON Schema of the value, without "description" */
};

/* What a text must look like. */
struct bind_shape {
    bool (*ok)(const char *text);
    const char *words; /* for sentences: "allowed: …" */
    const char *regex; /* for the JSON Schema, which may be a little more generous */
};

struct bind_field {
    const char *key;
    enum bind_type type;
    unsigned flags;
    size_t offset;
    size_t size; /* text, custom: bytes of the member; list, map, array: bytes of an item */
    double low, high;
    enum unit unit;
    const char *const *names;       /* choice: NULL-terminated */
    const struct bind_table *table; /* struct, map */
    const struct bind_field *item;  /* list, array: how one item is read */
    size_t key_offset;              /* map: the char array for the key */
    size_t key_size;
    const struct bind_shape *shape; /* text, key of a map; NULL: anything */
    /* list that takes a single mapping, too: what is allowed; of any row: its type in a reference */
    const char *words;
    const struct bind_custom *custom;
    const char *help; /* one sentence, for the JSON Schema */
};

struct bind_table {
    const char *what; /* "a GPU", "a workload": for sentences */
    const char *def;  /* its name in the JSON Schema's $defs; NULL: written in place */
    const struct bind_field *fields; /* ends with a NULL key; at most 64 */
    /* Checks that need several members. May be NULL. */
    int (*check)(struct binder *b, const struct ynode *node, void *object);
    /* Gives an item of a list or map its defaults before it is read. NULL: zeroes. */
    void (*init)(void *object);
};

/* One reading of one document. */
struct binder {
    const char *file;    /* for sentences */
    struct arena *arena; /* where lists go */
    struct why *why;
    struct text path;    /* the key being read: gpus[1].power_limit */
    const void *context; /* what custom readers need; theirs to interpret */
    size_t phases;       /* read from compact activities so far: the document does not bound them */
};

/* Reads a mapping (or nothing: an empty one) into `object`, whose members hold the defaults. */
int bind_read(struct binder *b, const struct bind_table *table, const struct ynode *node,
              void *object);

/* Reads one value as `field` says, into `member`. */
int bind_read_value(struct binder *b, const struct bind_field *field, const struct ynode *node,
                    void *member);

/* "file:line:column: path: sentence". Returns -err. */
int bind_refuse(struct binder *b, int err, const struct ynode *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int bind_refuse_at(struct binder *b, int err, const struct bind_head *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Reads a mapping that has no table: an item of `size` bytes for each of its keys, in their order, into `list`. `what` is
 * allowed instead of anything else.
 */
typedef int bind_entry(struct binder *b, const struct ynode *key, const struct ynode *value,
                       void *item);
int bind_read_entries(struct binder *b, const struct ynode *node, const char *what, size_t size,
                      bind_entry *read, struct bind_list *list);

/* "found 'x'; allowed: `what`". */
int bind_expected(struct binder *b, const struct ynode *node, const char *what);

/* "unknown key 'x' in `where`", with the names that are allowed there. */
int bind_unknown_key(struct binder *b, const struct ynode *key, const char *where,
                     suggest_names *name_at, const void *names);

/* The document is not to blame. */
int bind_out_of_memory(struct binder *b);

/* Extends the path for what is read next; give the returned length to bind_leave. */
size_t bind_enter(struct binder *b, const char *key);
size_t bind_enter_index(struct binder *b, size_t index);
void bind_leave(struct binder *b, size_t length);

/* Whether the row of `key` was given in `object`. */
bool bind_is_set(const struct bind_table *table, const void *object, const char *key);

/* Marks the row of `key` as given, as if the file had said it. */
void bind_mark(const struct bind_table *table, void *object, const char *key, bool given);
void bind_mark_all(const struct bind_table *table, void *object);

/*
 * Where the value of `key` (if that is a list: its item) stands in the mapping that begins at `head`; the
 * mapping itself when it has no such key. For checks made long after reading, while the document is there.
 */
struct bind_head bind_position(const struct ynode *root, const struct bind_head *head,
                               const char *key, size_t item);

/* Gives `onto` every member that was given in `from` (nested structs member by member). */
void bind_merge(const struct bind_table *table, void *onto, const void *from);

/* Appends what was given, as block YAML that bind_read reads back. */
void bind_print(struct text *out, const struct bind_table *table, const void *object, int indent);

/* Appends `text` as a YAML scalar, quoted only where it must be. */
void bind_print_text(struct text *out, const char *text);

/*
 * Appends the members of the JSON Schema of a mapping, each line behind the first indented. Tables met on
 * the way are written in place, or as a reference to their `def`.
 */
void bind_schema(struct text *out, const struct bind_table *table, int indent);

/* A definition that a JSON Schema refers to, and what writes it. A NULL name ends a list. */
struct schema_def {
    const char *name;
    void (*add)(struct text *out);
};

/* Appends a whole JSON Schema (draft 2020-12): `more` is what it says besides its definitions and table. */
void bind_schema_document(struct text *out, const char *title, const struct schema_def *defs,
                          const char *more, const struct bind_table *table);

/* Appends the rows as a table in Markdown. */
void bind_reference(struct text *out, const struct bind_table *table);

/* Appends `text` as a JSON string. */
void bind_json_text(struct text *out, const char *text);

/* Rows. S is the struct, m the member. */
/* clang-format off */
#define BIND_AT(S, m) .offset = offsetof(struct S, m)
#define BIND_ROW_BOOL(k, S, m, h) { .key = k, .type = BIND_BOOL, BIND_AT(S, m), .help = h }
#define BIND_ROW_INT(k, S, m, lo, hi, f, h) \
    { .key = k, .type = BIND_INT, BIND_AT(S, m), .low = lo, .high = hi, .flags = f, .help = h }
#define BIND_ROW_REAL(k, S, m, lo, hi, h) \
    { .key = k, .type = BIND_REAL, BIND_AT(S, m), .low = lo, .high = hi, .help = h }
#define BIND_ROW_QUANTITY(k, S, m, u, lo, hi, f, h)                                         \
    { .key = k, .type = BIND_QUANTITY, BIND_AT(S, m), .unit = u, .low = lo, .high = hi,     \
      .flags = f, .help = h }
#define BIND_ROW_TEXT(k, S, m, f, h) \
    { .key = k, .type = BIND_TEXT, BIND_AT(S, m), .size = sizeof(((struct S *)0)->m), .flags = f, .help = h }
#define BIND_ROW_SHAPED(k, S, m, f, s, h)                                                    \
    { .key = k, .type = BIND_TEXT, BIND_AT(S, m), .size = sizeof(((struct S *)0)->m),        \
      .flags = f, .shape = s, .help = h }
#define BIND_ROW_CHOICE(k, S, m, n, h) \
    { .key = k, .type = BIND_CHOICE, BIND_AT(S, m), .names = n, .help = h }
#define BIND_ROW_STRUCT(k, S, m, t, h) \
    { .key = k, .type = BIND_STRUCT, BIND_AT(S, m), .table = t, .help = h }
#define BIND_ROW_ARRAY(k, S, m, it, max, f, h)                                            \
    { .key = k, .type = BIND_ARRAY, BIND_AT(S, m), .item = it, .high = max, .flags = f,   \
      .size = sizeof(((struct S *)0)->m.items[0]), .help = h }
#define BIND_ROW_LIST(k, S, m, it, I, max, f, h)                                             \
    { .key = k, .type = BIND_LIST, BIND_AT(S, m), .item = it, .size = sizeof(I), .high = max, \
      .flags = f, .help = h }
#define BIND_ROW_MAP(k, S, m, t, I, max, h)                                                  \
    { .key = k, .type = BIND_MAP, BIND_AT(S, m), .table = t, .size = sizeof(struct I),       \
      .key_offset = offsetof(struct I, key), .key_size = sizeof(((struct I *)0)->key),       \
      .high = max, .help = h }
#define BIND_ROW_CUSTOM(k, S, m, c, h) \
    { .key = k, .type = BIND_CUSTOM, BIND_AT(S, m), .custom = c,                             \
      .size = sizeof(((struct S *)0)->m), .help = h }
/* The same, and what a reference calls its type. */
#define BIND_ROW_TYPED(k, S, m, c, w, h) \
    { .key = k, .type = BIND_CUSTOM, BIND_AT(S, m), .custom = c,                             \
      .size = sizeof(((struct S *)0)->m), .words = w, .help = h }

/* A fixed array inside a flat struct. */
#define BIND_ARRAY_OF(type, max) struct { int64_t count; type items[max]; }
/* clang-format on */

#endif
