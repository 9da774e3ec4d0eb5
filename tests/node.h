/*
 * Node: a simulated node for a test, from the text of its configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NODE_H
#define TESTS_NODE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "tests/tap.h"

#define SEC NS_PER_S

/* A test that cannot even make its node has nothing to say. */
static inline struct sim *node_new(const char *yaml)
{
    struct why why = { 0 };
    struct config cfg;
    struct sim *sim;

    if (config_parse(&cfg, yaml, strlen(yaml), NULL, &why) < 0)
        bail("%s", why_text(&why));
    sim = sim_new(&cfg, &why);
    if (!sim)
        bail("%s", why_text(&why));
    config_release(&cfg);
    return sim;
}

/* Applies another configuration; the sentence of a refusal goes to `why`. */
static inline int node_apply(struct sim *sim, const char *yaml, struct why *why)
{
    struct config cfg;
    int r = config_parse(&cfg, yaml, strlen(yaml), NULL, why);

    if (r < 0)
        return r;
    r = sim_apply(sim, &cfg, why);
    config_release(&cfg);
    return r;
}

/* A metric in shown units; NAN when it cannot be read. */
static inline double node_value(const struct sim *sim, int gpu, enum metric id)
{
    int64_t v;

    if (sim_read(sim, gpu, id, &v) < 0)
        return NAN;
    return (double)v / (double)unit_parts(metric_infos[id].unit);
}

/* A metric in the parts of its unit; INT64_MIN when it cannot be read. */
static inline int64_t node_parts(const struct sim *sim, int gpu, enum metric id)
{
    int64_t v;

    return sim_read(sim, gpu, id, &v) < 0 ? INT64_MIN : v;
}

/* Adds a workload written as text under that name. */
static inline int node_workload(struct sim *sim, const char *name, const char *text,
                                struct why *why)
{
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    int r = workload_parse(&spec, name, text, &arena, why);

    if (r == 0) {
        snprintf(spec.name, sizeof(spec.name), "%s", name);
        r = sim_add_workload(sim, &spec, NULL, why);
    }
    arena_release(&arena);
    return r;
}

#endif
