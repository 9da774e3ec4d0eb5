/*
 * Tree branch: the rows of node.h, component by component, and found by their numbers. For tree.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_TREE_BRANCH_H
#define FUSEFS_TREE_BRANCH_H

#include <stddef.h>
#include <stdint.h>

#include "fusefs/tree.h"
#include "fusefs/tree_entity.h"

enum { BRANCH_ID_BITS = 24 };

/* One component of a row's path: a literal, or prefix and token. */
struct branch {
    char *name;            /* the component as written; owned */
    size_t prefix;         /* bytes before the token */
    char token;            /* 0: a literal */
    enum entity_kind kind; /* what the inode's entity is */
    uint32_t id;
    const struct node_def *def; /* NULL: a directory */
    struct branch *parent, *children, *next;
};

struct tree {
    struct branch *root;
    struct branch **by_id; /* sorted by id */
    size_t count;
};

/* What a token stands for. ENTITY_NONE: for no entity, as the driver version does. */
enum entity_kind token_kind(char token);

/* The number of the branch that the first n bytes of a row's path lead to. */
uint32_t branch_id(const char *path, size_t n);

/* The branch of that number, or NULL. */
const struct branch *tree_branch(const struct tree *tree, uint32_t id);

#endif
