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

/* Steps to the next entity of a kind, beginning with the first from entity_none. */
bool entity_next(const struct world *w, enum entity_kind kind, struct entity *e);

#endif
