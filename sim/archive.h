/*
 * Archive: what a GPU leaves behind: its short history, and the accounts of processes that ended.
 *
 * Like the events, archives are not copied from world to world. They are rings, and a GPU's counts in
 * the world say how much of them is there: the flip that publishes a world publishes what was
 * kept with it. A ring has more room than can be read, so that a change under way overwrites nothing that
 * the published world still shows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_ARCHIVE_H
#define SIM_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/metric.h"

struct gpu;
struct share;
struct stepping;
struct world;
struct world_store;

enum {
    ARCHIVES = 4096, /* as many as a configuration may have GPUs */
    MOMENTS_ROOM = 128,
    ACCOUNTS_KEPT = 4000, /* ended processes of a GPU, as the driver */
    ACCOUNTS_ROOM = 4096,
};

/* A moment is kept every so often; at every step where steps are longer. */
#define MOMENT_NS (100 * NS_PER_MS)

/* A process on a GPU, for the driver's accounting. */
struct account {
    uint64_t workload;        /* id; 0: it is not accounted */
    int64_t start_ns, end_ns; /* simulated; end_ns 0 while it runs */
    int64_t max_memory_bytes;
    double gpu_busy_ns, memory_busy_ns; /* utilization over its time */
    int64_t pid;                        /* of the workload; 0: it has no process of its own */
};

struct archive {
    struct moment moments[MOMENTS_ROOM];
    struct account accounts[ACCOUNTS_ROOM];
};

/* --- history --------------------------------------------------------------------------------- */

/* Gives every GPU of `w` that has no archive yet (it came from nowhere) one that is free. */
void archive_assign(struct world *w, const struct world *before, const int *came_from);

/* Keeps GPU i as it is now, if a moment is due. */
void archive_keep(struct stepping *st, int i);

/* How many moments of a GPU can be read; the k-th of them, oldest first. */
uint32_t archive_moments(const struct gpu *g);
const struct moment *archive_moment(const struct world_store *s, const struct gpu *g, uint32_t k);

/* Bytes of a GPU's archive that are in use. */
uint64_t archive_bytes(const struct gpu *g);

/* --- accounting ------------------------------------------------------------------------------ */

/* A share begins to run: it has an account if its GPU keeps accounts. */
void account_begin(struct stepping *st, struct share *share);

/* A step's time passed with the share as it is now. */
void account_step(struct stepping *st, struct share *share);

/* The share's process is gone from its GPU; its account goes to the archive. */
void account_end(struct stepping *st, struct share *share);

/* How many accounts of ended processes a GPU has; the k-th of them, oldest first. */
uint32_t archive_accounts(const struct gpu *g);
const struct account *archive_account(const struct world_store *s, const struct gpu *g, uint32_t k);

/* Forgets all accounts of a GPU, also those of processes that run. */
void accounts_forget(struct world *w, int gpu);

#endif
