/*
 * Tree entity: what the tokens of a path stand for: a GPU, a MIG instance of it, or a workload.
 *
 * An entity is a position in one world; its number, of which inodes are made, holds for the entity's life
 * and is not given again. Knows no paths.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_TREE_ENTITY_H
#define FUSEFS_TREE_ENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct world;

enum entity_kind { ENTITY_NONE, ENTITY_GPU, ENTITY_GI, ENTITY_CI, ENTITY_WORKLOAD };

/* Positions, or -1. A compute instance has its GPU instance and its GPU, too. */
struct entity {
    int gpu, gi, ci, workload;
};

extern const struct entity entity_none;

/* The number that stands for an entity in inodes; 0 for none. */
uint64_t entity_number(const struct world *w, enum entity_kind kind, const struct entity *e);

/* The entity behind a number, as it is now. False when it is gone. */
bool entity_of_number(const struct world *w, enum entity_kind kind, uint64_t number,
                      struct entity *e);

/* Entities of a kind, one after the other: all of them, or those of some GPUs. */
struct entities {
    enum entity_kind kind;
    const uint32_t *order; /* NULL: GPUs in their own order */
    int at, end;           /* GPUs: places in that order, the next one and behind the last */
    struct entity e;       /* entity_none before the first */
};

/* Steps to the next one, or the first. */
bool entities_next(const struct world *w, struct entities *all);

#endif
