/*
 * Physics: the chain of a step, whose links are files of their own.
 *
 * A step goes once through it: pins, activity, clocks, power, energy, temperature, fans, throttling,
 * counters. A metric that is pinned keeps its dictated value at its place in the chain, and everything
 * behind it follows from that value. For the files of physics only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_PHYSICS_CHAIN_H
#define SIM_PHYSICS_CHAIN_H

#include <math.h>

#include "sim/physics.h"
#include "sim/world.h"

/* All that one GPU's step needs at hand. */
struct chain {
    struct stepping *st;
    int i; /* position of the GPU */
    struct gpu *g;
    const struct gpu_plan *plan;
    const struct gpu_model *m;
    const struct physics *p;
    double dt_s;
    int64_t now_ns;

    /* worked out on the way */
    bool idle;                        /* clocks and P-state are down */
    double sm, tensor, memory, video; /* activities, 0..1 */
    double core;                      /* power weight of what the SM clock drives */
    int64_t reasons;                  /* enum throttle_reason */
    int64_t power_mw;
};

/* The chain for GPU i; what is worked out on the way is not yet there. */
struct chain chain_of(struct stepping *st, int i);

/* --- its links, in their order --------------------------------------------------------------- */

/* physics_activity.c: what keeps the GPU busy. */
void step_activity(struct chain *c);

/* physics_power.c: clocks and what they cost. */
void step_idle(struct chain *c);
void step_pstate(struct chain *c);
void step_clocks(struct chain *c);
void step_power(struct chain *c);
void step_energy(struct chain *c);

/* physics_heat.c: what follows from that cost. */
void step_temperature(struct chain *c);
void step_fan(struct chain *c);
void step_throttling(struct chain *c);

/* physics_counters.c: what adds up over time. */
void step_violations(struct chain *c);
void step_links(struct chain *c);
void step_reliability(struct chain *c);

/* --- metrics --------------------------------------------------------------------------------- */

/* Sets a metric unless it is pinned. */
static inline void put(struct gpu *g, enum metric id, int64_t value)
{
    if (!metric_mask_has(&g->pinned, id))
        g->sample.value[id] = value;
}

static inline void put_real(struct gpu *g, enum metric id, double value)
{
    put(g, id, llround(value));
}

/* The value in effect, pinned or not, as a share of its whole: 0..1. */
static inline double share_of(const struct gpu *g, enum metric id)
{
    double whole = metric_infos[id].unit == UNIT_PERCENT ? 100e3 : 1e6;

    return (double)g->sample.value[id] / whole;
}

static inline double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

#endif
