/*
 * Tree branch: the rows of node.h, component by component. See tree_branch.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/tree_branch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rng.h"

enum entity_kind token_kind(char token)
{
    switch (token) {
    case 'i':
    case 'm':
    case 'b':
    case 'u':
    case 'r':
    case 'n':
    case 'j':
        return ENTITY_GPU;
    case 'g':
    case 'k':
        return ENTITY_GI;
    case 'c':
    case 'K':
        return ENTITY_CI;
    case 'w':
        return ENTITY_WORKLOAD;
    default:
        return ENTITY_NONE;
    }
}

uint32_t branch_id(const char *path, size_t n)
{
    struct rng r = { 0x66676673 };

    for (size_t i = 0; i < n; i++)
        r.state = (r.state ^ (unsigned char)path[i]) * UINT64_C(0x100000001b3);
    /* 0 and 1 stay free: the root is 1, and no inode is 0. */
    return (uint32_t)(rng_next(&r) % ((UINT64_C(1) << BRANCH_ID_BITS) - 2)) + 2;
}

static struct branch *branch_new(struct branch *parent, const char *path, size_t from, size_t to)
{
    struct branch *b = calloc(1, sizeof(*b)), **last;
    const char *percent;

    if (!b)
        return NULL;
    b->name = strndup(path + from, to - from);
    if (!b->name) {
        free(b);
        return NULL;
    }
    percent = strchr(b->name, '%');
    b->prefix = percent ? (size_t)(percent - b->name) : strlen(b->name);
    b->token = percent ? percent[1] : 0;
    b->kind = percent ? token_kind(b->token) : ENTITY_NONE;
    if (b->kind == ENTITY_NONE)
        b->kind = parent->kind;
    b->id = branch_id(path, to);
    b->parent = parent;
    /* In the order of the tables, so that listings read well. */
    for (last = &parent->children; *last; last = &(*last)->next)
        ;
    *last = b;
    return b;
}

static struct branch *branch_find(struct branch *parent, const char *path, size_t from, size_t to)
{
    for (struct branch *b = parent->children; b; b = b->next)
        if (strlen(b->name) == to - from && !memcmp(b->name, path + from, to - from))
            return b;
    return NULL;
}

static int tree_insert(struct tree *t, const struct node_def *def, struct why *why)
{
    struct branch *at = t->root;
    size_t from = 0, to;

    do {
        struct branch *b;

        to = from + strcspn(def->path + from, "/");
        b = branch_find(at, def->path, from, to);
        if (!b) {
            b = branch_new(at, def->path, from, to);
            t->count++;
        }
        if (!b)
            return why_set(why, ENOMEM, "out of memory");
        at = b;
        from = to + 1;
    } while (def->path[to]);
    if (at->def || at->children)
        return why_set(why, EEXIST, "two rows for %s", def->path);
    at->def = def;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const struct branch *x = *(struct branch *const *)a, *y = *(struct branch *const *)b;

    return (x->id > y->id) - (x->id < y->id);
}

static void gather(struct tree *t, struct branch *b)
{
    t->by_id[t->count++] = b;
    for (struct branch *c = b->children; c; c = c->next)
        gather(t, c);
}

static int tree_index(struct tree *t, struct why *why)
{
    t->by_id = calloc(t->count + 1, sizeof(struct branch *));
    if (!t->by_id)
        return why_set(why, ENOMEM, "out of memory");
    t->count = 0;
    gather(t, t->root);
    qsort(t->by_id, t->count, sizeof(struct branch *), by_id);
    for (size_t i = 1; i < t->count; i++)
        if (t->by_id[i]->id == t->by_id[i - 1]->id)
            return why_set(why, EEXIST, "'%s' and '%s' have the same hash: rename one",
                           t->by_id[i]->name, t->by_id[i - 1]->name);
    return 0;
}

struct tree *tree_new(struct why *why)
{
    struct tree *t = calloc(1, sizeof(*t));

    if (t)
        t->root = calloc(1, sizeof(*t->root));
    if (!t || !t->root) {
        why_set(why, ENOMEM, "out of memory");
        goto fail;
    }
    t->root->id = TREE_ROOT;
    t->count = 1;
    for (int i = 0; node_tables[i]; i++)
        for (const struct node_def *def = node_tables[i]; def->path; def++)
            if (tree_insert(t, def, why) < 0)
                goto fail;
    if (tree_index(t, why) < 0)
        goto fail;
    return t;

fail:
    tree_free(t);
    return NULL;
}

static void branch_free(struct branch *b)
{
    while (b) {
        struct branch *next = b->next;

        branch_free(b->children);
        free(b->name);
        free(b);
        b = next;
    }
}

void tree_free(struct tree *t)
{
    if (!t)
        return;
    branch_free(t->root);
    free(t->by_id);
    free(t);
}

const struct branch *tree_branch(const struct tree *t, uint32_t id)
{
    struct branch key = { .id = id };
    const struct branch *wanted = &key, *const * found;

    found = bsearch(&wanted, t->by_id, t->count, sizeof(struct branch *), by_id);
    return found ? *found : NULL;
}
