/*
 * Change: one command to one GPU, from its check to its publication.
 *
 * Between begin and commit the copy that is being changed can be dropped at any point by returning: then
 * nothing has happened. For the files of sim/ only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CHANGE_H
#define SIM_CHANGE_H

#include "sim/sim.h"

struct change {
    struct stepping st;
    struct gpu *g;
    const struct gpu_plan *plan;
    const struct gpu_model *m;
};

/* -ENODEV when there is no such GPU, -ENOMEM. */
int change_begin(struct sim *sim, int gpu, struct change *c, struct why *why);

/* The same, for what only a GPU that is there can do: -ENODEV when it fell off the bus. */
int change_begin_present(struct sim *sim, int gpu, struct change *c, struct why *why);

/* Works out what follows, and publishes. 0. */
int change_commit(struct sim *sim, int gpu, struct change *c);

#endif
