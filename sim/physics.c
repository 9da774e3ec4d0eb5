/*
 * Physics: how load becomes clocks, power, energy, heat and throttling. See physics.h.
 *
 * This is the order of a step, and what a GPU says of itself; the links are in physics_*.c: see
 * physics_chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "sim/physics_chain.h"

/* --- events ---------------------------------------------------------------------------------- */

void gpu_event(struct stepping *st, int i, int kind, int64_t code, int64_t value, const char *text)
{
    const struct gpu_plan *plan = &world_gpu_plans(st->world)[i];
    struct event e = {
        .kind = (uint32_t)kind,
        .gpu = i,
        .domain = plan->domain,
        .bus = plan->bus,
        .device = plan->device,
        .function = plan->function,
        .code = code,
        .value = value,
    };

    if (text)
        snprintf(e.text, sizeof(e.text), "%s", text);
    world_event(st->store, st->world, &e);
}

void gpu_xid(struct stepping *st, int i, int64_t xid)
{
    struct gpu *g = &world_gpus(st->world)[i];

    put(g, METRIC_XID_LAST, xid);
    g->xid_until_ns = INT64_MAX;
    gpu_event(st, i, EVENT_XID, xid, 0, xid_message(xid));
}

void gpu_lose(struct stepping *st, int i, int64_t until_ns)
{
    struct gpu *g = &world_gpus(st->world)[i];

    gpu_xid(st, i, 79);
    gpu_event(st, i, EVENT_LOST, 0, 0, NULL);
    g->condition_until_ns[CONDITION_LOST] = until_ns;
}

/* --- faults that end by themselves ----------------------------------------------------------- */

static bool over(int64_t until_ns, int64_t now_ns)
{
    return until_ns && until_ns != INT64_MAX && now_ns >= until_ns;
}

static void step_expiry(struct chain *c)
{
    struct gpu *g = c->g;

    for (int k = 0; k < CONDITIONS; k++)
        if (over(g->condition_until_ns[k], c->now_ns)) {
            g->condition_until_ns[k] = 0;
            if (k == CONDITION_LOST)
                gpu_event(c->st, c->i, EVENT_RECOVERED, 0, 0, NULL);
        }
    if (over(g->xid_until_ns, c->now_ns)) {
        g->xid_until_ns = 0;
        put(g, METRIC_XID_LAST, 0);
    }
    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        if (over(g->links[l].down_until_ns, c->now_ns)) {
            g->links[l].down_until_ns = 0;
            gpu_event(c->st, c->i, EVENT_NVLINK, l, 1, NULL);
        }
    for (int k = 0; k < BROKEN_SENSORS_MAX; k++)
        if (over(g->broken[k].until_ns, c->now_ns))
            g->broken[k].until_ns = 0;
}

static void step_failed(struct chain *c)
{
    struct gpu *g = c->g;

    g->sample.failed = g->unread;
    for (int k = 0; k < BROKEN_SENSORS_MAX; k++)
        if (g->broken[k].until_ns)
            metric_mask_add(&g->sample.failed, (enum metric)g->broken[k].metric);
}

/* --- the whole ------------------------------------------------------------------------------- */

struct chain chain_of(struct stepping *st, int i)
{
    struct world *w = st->world;
    const struct gpu_plan *plan = &world_gpu_plans(w)[i];

    return (struct chain){
        .st = st,
        .i = i,
        .g = &world_gpus(w)[i],
        .plan = plan,
        .m = &world_models(w)[plan->model],
        .p = &w->node_plan.physics,
        .dt_s = (double)st->dt_ns / (double)NS_PER_S,
        .now_ns = w->node.now_ns,
    };
}

void gpu_step(struct stepping *st, int i)
{
    struct chain c = chain_of(st, i);

    step_expiry(&c);
    if (gpu_has(c.g, CONDITION_LOST))
        return; /* nobody hears of it, and it does nothing */
    if (c.now_ns >= c.g->next_reading_ns)
        gpu_read_due_pins(st, i);
    step_activity(&c);
    step_idle(&c);
    step_pstate(&c);
    step_clocks(&c);
    step_power(&c);
    step_energy(&c);
    step_temperature(&c);
    step_fan(&c);
    step_throttling(&c);
    step_violations(&c);
    step_links(&c);
    step_reliability(&c);
    step_failed(&c);
}
