/*
 * Tree: the rows of node.h as a tree of names, and inode numbers computed from what they name.
 *
 * An inode number is the entity (a GPU's or workload's id, never reused; 0 for none) and a hash of the
 * row's path. So nothing is allocated at lookup or forgotten later, and another process, or another
 * version of the program, computes the same numbers. A stale inode resolves to nothing. Pure: knows no
 * FUSE and keeps no state but the tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_TREE_H
#define FUSEFS_TREE_H

#include "fusefs/node.h"

struct tree;

/* Builds the tree of all node_tables. NULL with a sentence. */
struct tree *tree_new(struct why *why);
void tree_free(struct tree *tree);

enum { TREE_ROOT = 1 };

/* The world as the tree is looked at. */
struct tree_view {
    const struct tree *tree;
    const struct host *host;
    const struct world_store *store;
    const struct world *world;
    uint64_t
        *looked; /* counts the entities that are compared with a name or a directory; NULL: not */
};

/* A place in the tree. */
struct place {
    uint64_t ino;
    bool directory;
    struct node_ctx cx; /* cx.def is NULL for a directory */
    const void *node;   /* the tree's own */
};

/* What an inode number names now. -ENOENT when that is gone. */
int tree_resolve(const struct tree_view *view, uint64_t ino, struct place *place);

/* A name in a directory. -ENOENT, -ENOTDIR. */
int tree_lookup(const struct tree_view *view, const struct place *parent, const char *name,
                struct place *place);

/* Calls `add` for every name in a directory. Stops when it returns non-zero, and returns that. */
typedef int tree_add(void *into, const char *name, const struct place *place);
int tree_list(const struct tree_view *view, const struct place *directory, tree_add *add,
              void *into);

/* The directory's own parent. */
uint64_t tree_parent(const struct tree_view *view, const struct place *place);

/* Number of directories in a directory, as st_nlink counts them. */
unsigned tree_links(const struct tree_view *view, const struct place *place);

/* The same place, but about that GPU: for rows that tell of all of them. */
void tree_set_gpu(struct place *place, int gpu);

/* Whether a place is there as long as what it belongs to is; if not, it may vanish at any time. */
bool tree_lasts(const struct place *place);

/* Whether the directory holds workloads (mkdir and rmdir are for it and its children). */
bool tree_holds_workloads(const struct place *place);
bool tree_is_workload(const struct place *place);

/* The inode of the row with that path and entity: for notifications. */
uint64_t tree_ino(const char *path, uint64_t entity);

/* st_mode of a place. */
uint32_t tree_mode(const struct place *place);

#endif
