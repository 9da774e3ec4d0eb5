/*
 * Yaml: a document as a tree in which every node knows its line and column.
 *
 * Stricter than YAML asks: one document, no tags, no duplicate keys, only scalar keys, bounded depth
 * and size (aliases are allowed, but what they expand to counts). Knows nothing of what the document
 * means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_YAML_H
#define SIM_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/arena.h"

struct why;

enum ynode_kind { YNODE_SCALAR, YNODE_LIST, YNODE_MAP };

struct ynode {
    enum ynode_kind kind;
    int line, column;     /* from 1 */
    const char *text;     /* scalar: its value, NUL-terminated, holding no other NUL */
    bool quoted;          /* scalar: written with quotes or as a block */
    struct ynode **items; /* list: the items; map: the values */
    struct ynode **keys;  /* map: scalar nodes, as many as items */
    size_t count;
    size_t weight; /* nodes in this subtree with aliases expanded; a long text counts as several */
    int height;    /* levels in this subtree, likewise; a scalar has none */
};

struct ydoc {
    const char *name;   /* what error sentences call the document; borrowed */
    struct ynode *root; /* NULL when the document is empty */
    struct arena arena; /* owns all nodes */
};

/*
 * Parses `length` bytes. On success the document must be released; on failure it is empty and `why`
 * says "name:line:column: …". -EINVAL, -E2BIG (too deep, too large), -ENOMEM.
 */
int ydoc_parse(struct ydoc *doc, const char *name, const char *text, size_t length,
               struct why *why);

/*
 * The same for a text that becomes a document only between a line before it and a tail behind it.
 * Positions are those in the text: what is wrong only at the tail is wrong at the text's end.
 */
int ydoc_parse_between(struct ydoc *doc, const char *name, const char *line, const char *text,
                       const char *tail, struct why *why);

void ydoc_release(struct ydoc *doc);

/* The value of `key` in a map, or NULL. */
const struct ynode *ynode_get(const struct ynode *map, const char *key);

/* The key itself, for its position, or NULL. */
const struct ynode *ynode_key(const struct ynode *map, const char *key);

/* A plain scalar that YAML reads as "nothing": empty, ~ or null. */
bool ynode_is_null(const struct ynode *node);

/* "a list", "a mapping" or "'text'" (on one line, shortened) for an error sentence. Lives in `arena`. */
const char *ynode_describe(struct arena *arena, const struct ynode *node);

#endif
