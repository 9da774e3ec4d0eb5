/*
 * Physics: metrics that a profile, the configuration or a control file dictates. See physics.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "sim/physics.h"
#include "sim/world.h"

/* One GPU whose pins are looked at. */
struct pinning {
    struct world *w;
    int i;
    struct gpu *g;
    const struct gpu_plan *plan;
    int64_t now_ns;
};

static struct pinning pinning_of(struct stepping *st, int i)
{
    struct world *w = st->world;

    return (struct pinning){ w, i, &world_gpus(w)[i], &world_gpu_plans(w)[i], w->node.now_ns };
}

double gpu_metric_limit(const struct world *w, int i, int metric)
{
    const struct gpu_plan *plan = &world_gpu_plans(w)[i];
    const struct gpu_model *m = &world_models(w)[plan->model];

    switch (metric) {
    case METRIC_TEMPERATURE_GPU:
        return (double)m->thermal.shutdown_mc;
    case METRIC_TEMPERATURE_MEMORY:
        return (double)(m->thermal.memory_max_mc ? m->thermal.memory_max_mc
                                                 : m->thermal.shutdown_mc);
    case METRIC_POWER_USAGE:
        return (double)world_gpus(w)[i].settings.power_limit_mw;
    case METRIC_MEMORY_USED:
        return (double)gpu_memory_capacity(plan, m);
    case METRIC_CLOCK_SM:
        return (double)m->clocks.sm.max_khz;
    case METRIC_CLOCK_MEMORY:
        return (double)m->clocks.memory.items[0];
    case METRIC_PCIE_TX:
    case METRIC_PCIE_RX:
        return (double)pcie_bytes_per_second(m->pci.generation, m->pci.width);
    case METRIC_NVLINK_TX:
    case METRIC_NVLINK_RX:
        return (double)model_nvlink_bytes_per_second(m);
    default:
        break;
    }
    switch (metric_infos[metric].unit) {
    case UNIT_PERCENT:
        return 100e3;
    case UNIT_RATIO:
        return 1e6;
    default:
        return 1e15; /* counters and codes: none that a double could not hold exactly */
    }
}

static const struct signal *pins_of(const struct world *w, uint32_t first)
{
    return &world_signals(w)[first];
}

static const struct signal *pin_find(const struct signal *pins, uint32_t n, int metric)
{
    for (uint32_t k = 0; k < n; k++)
        if (pins[k].target == metric)
            return &pins[k];
    return NULL;
}

static void pin_evaluate(struct pinning *c, const struct signal *s)
{
    const struct signal_pool pool = world_pool(c->w);
    struct gpu *g = c->g;
    enum metric id = s->target;
    double limit = gpu_metric_limit(c->w, c->i, id), v = 0;
    bool first_time = !metric_mask_has(&g->pinned, id);
    int r = signal_eval(s, &pool, c->now_ns - g->profile_since_ns, limit,
                        (double)g->sample.value[id], first_time, &g->rng, &v);

    metric_mask_add(&g->pinned, id);
    if (r < 0) {
        metric_mask_add(&g->unread, id);
        return; /* what the others follow from is the last good value */
    }
    metric_mask_drop(&g->unread, id);
    /* A temperature may be dictated beyond what the board survives; nothing else beyond what it has. */
    if (id != METRIC_TEMPERATURE_GPU && id != METRIC_TEMPERATURE_MEMORY)
        v = v < 0 ? 0 : v > limit ? limit : v;
    g->sample.value[id] = llround(v);
}

/* A GPU's own pins stand before those of its profile, a control file before both. */
static const struct signal *pin_in_effect(const struct pinning *c, int metric)
{
    const struct world *w = c->w;
    const struct profile *profile = &world_profiles(w)[c->plan->profile];
    const struct signal *own = pin_find(pins_of(w, c->plan->first_pin), c->plan->pin_count, metric);

    return own ? own : pin_find(pins_of(w, profile->first_pin), profile->pin_count, metric);
}

static void pin_evaluate_all(struct pinning *c, uint32_t first, uint32_t n)
{
    const struct signal *pins = pins_of(c->w, first);

    for (uint32_t k = 0; k < n; k++)
        if (!metric_mask_has(&c->g->controlled, pins[k].target) &&
            pin_in_effect(c, pins[k].target) == &pins[k])
            pin_evaluate(c, &pins[k]);
}

static void read_pins(struct pinning *c)
{
    const struct profile *profile = &world_profiles(c->w)[c->plan->profile];

    pin_evaluate_all(c, profile->first_pin, profile->pin_count);
    pin_evaluate_all(c, c->plan->first_pin, c->plan->pin_count);
    c->g->next_reading_ns = c->now_ns + c->w->node_plan.update_interval_ns;
}

void gpu_read_due_pins(struct stepping *st, int i)
{
    struct pinning c = pinning_of(st, i);

    read_pins(&c);
}

void gpu_read_pins(struct stepping *st, int i)
{
    struct pinning c = pinning_of(st, i);

    c.g->pinned = c.g->controlled;
    c.g->unread = (struct metric_mask){ 0 };
    read_pins(&c);
}

void gpu_read_pin(struct stepping *st, int i, int metric)
{
    struct pinning c = pinning_of(st, i);
    const struct signal *s = pin_in_effect(&c, metric);

    metric_mask_drop(&c.g->pinned, metric);
    metric_mask_drop(&c.g->unread, metric);
    if (s)
        pin_evaluate(&c, s);
}
