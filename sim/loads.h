/*
 * Loads: what all who run ask of each GPU together, and what each of them gets.
 *
 * Loads on one GPU add up. Where they are more than there is, each share gets its part; what is asked of a MIG
 * instance is asked of a part of its GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_LOADS_H
#define SIM_LOADS_H

#include "sim/archive.h"
#include "sim/physics.h"

struct run;
struct world;

/*
 * For a step: every GPU's load is empty but for memory taken so far; then, when all runs have moved, the rest is added
 * up and shared out.
 */
void loads_begin(struct world *w);
void loads_add(struct world *w);

/* Some of a world's GPUs. */
struct gpu_set {
    uint64_t bits[ARCHIVES / 64]; /* there are never more GPUs than archives */
};

static inline bool gpu_set_has(const struct gpu_set *set, int gpu)
{
    return gpu >= 0 && set->bits[gpu / 64] >> gpu % 64 & 1;
}

/* Adds the GPUs that a run has shares of. */
void gpu_set_add_run(struct gpu_set *set, const struct world *w, const struct run *run);

/* Works the loads of some GPUs out anew, while no time passes. Touches what it changes. */
void loads_settle(struct stepping *st, const struct gpu_set *gpus);

/*
 * The same for a run that was added behind all others and is not in any GPU's load yet. Whether that was
 * enough: false when others on its GPUs get less now, or may.
 */
bool loads_settle_last(struct stepping *st, uint32_t k);

#endif
