/*
 * Runs: workloads while they run.
 *
 * At each step every running workload moves along its timeline, asks its GPUs for what its phase
 * says, and ends when its timeline, one of its limits, its memory or its GPU does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_RUNS_H
#define SIM_RUNS_H

#include "sim/physics.h"

struct run;
struct world;
struct text;
struct why;
struct workload;

enum run_reason {
    RUN_FINISHED,  /* its timeline is over: exit code 0 */
    RUN_LIMIT,     /* detail: the limit's target */
    RUN_NO_MEMORY, /* detail: the GPU */
    RUN_GPU_LOST,  /* detail: the GPU */
    RUN_GPU_REMOVED,
    RUN_STOPPED, /* by whoever started it: exit code 0 */
};

/* Moves all runs by st->dt_ns and leaves in every GPU's load what they ask of it (loads.h). */
void runs_step(struct stepping *st);

/*
 * Starts a run that waits, if its time has come and its memory fits: 0, -EAGAIN (too early), or
 * -ENOSPC with a sentence.
 */
int run_start(struct stepping *st, uint32_t k, struct why *why);

/* Ends a run. */
void run_end(struct stepping *st, uint32_t k, enum run_reason reason, int detail);

/* Memory that workloads have on a GPU instance. */
int64_t instance_memory_used(const struct world *w, int gpu, int gi);

/* The sentence of an ended run: "Limit memory reached, terminated"; "" for one that finished. */
void run_message(struct text *out, const struct run *run);

#endif
