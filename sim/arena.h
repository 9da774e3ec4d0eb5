/*
 * Arena: memory that is given back all at once.
 *
 * What one configuration file turns into (nodes, lists, records) lives and dies together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* owned, newest first */
};

/* clang-format off */
#define ARENA_INIT { 0 }
/* clang-format on */

/* Zeroed memory aligned for any type, or NULL. Owned by the arena. */
void *arena_alloc(struct arena *a, size_t size);

/* A copy of n bytes with a NUL behind them, or NULL. */
char *arena_strndup(struct arena *a, const char *s, size_t n);

void arena_release(struct arena *a);

#endif
