/*
 * Plan, what its files share while a configuration is applied: plan.c writes what it says, plan_gpus.c carries over what
 * was there. For these two only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_PLAN_APPLY_H
#define SIM_PLAN_APPLY_H

#include "sim/config_resolve.h"
#include "sim/world.h"

/* A configuration on its way into a world. */
struct applying {
    struct stepping st;
    const struct world *before; /* NULL: there is none */
    const struct config *cfg;
    const struct gpu_entry *entries;
    int count;
    int *came_from; /* position before, or -1, for every GPU */
    struct why *why;
};

/* Finds out where each GPU comes from: one of the same UUID and model is the same. */
void applying_trace_gpus(struct applying *a);

/* When all plans are set: takes over what GPUs and runs were, begins GPUs that are new, and ends runs whose GPU is gone. */
void applying_move_gpus(struct applying *a);

#endif
