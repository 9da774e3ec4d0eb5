/*
 * Physics: clocks, power and energy. See physics.h and physics_chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics_chain.h"

/* --- clocks ---------------------------------------------------------------------------------- */

void step_idle(struct chain *c)
{
    struct gpu *g = c->g;
    bool busy = g->sample.value[METRIC_UTILIZATION_GPU] > 0 || c->sm > 0 || c->video > 0 ||
                g->sample.value[METRIC_UTILIZATION_JPEG] > 0 ||
                g->sample.value[METRIC_UTILIZATION_OFA] > 0;

    if (busy)
        g->idle_since_ns = INT64_MAX;
    else if (g->idle_since_ns == INT64_MAX)
        g->idle_since_ns = c->now_ns;
    c->idle = !busy && c->now_ns - g->idle_since_ns >= c->p->idle_delay_ns;
}

/* The highest SM clock, moved by the offset. */
static int64_t highest_clock(const struct chain *c)
{
    return c->m->clocks.sm.max_khz + c->g->settings.sm_offset_khz;
}

/* The nearest supported clock that is not above. */
static int64_t on_grid(const struct model_sm_clock *sm, int64_t highest_khz, double khz)
{
    double steps = floor((khz - (double)sm->min_khz) / (double)sm->step_khz + 1e-9);
    int64_t clock = sm->min_khz + (int64_t)fmax(steps, 0) * sm->step_khz;

    /* A board's highest clock need not lie on its grid. */
    if (khz >= (double)highest_khz || clock > highest_khz)
        return highest_khz;
    return clock / 1000 * 1000; /* as drivers show it: whole MHz */
}

/* Dynamic power as a share of full − idle, at a clock of x times the highest. */
static double dynamic_power(const struct chain *c, double x)
{
    return c->core * pow(x, c->p->power_clock_exponent) + c->p->power_weight_memory * c->memory;
}

static double power_range_mw(const struct chain *c)
{
    return (double)(c->m->power.default_mw - c->m->power.idle_mw);
}

/* The clock, as a share of the highest, at which the power limit is just met; 1 where it is not. */
static double power_cap_clock(const struct chain *c)
{
    double allowed = (double)(c->g->settings.power_limit_mw - c->m->power.idle_mw) /
                     power_range_mw(c);
    double headroom;

    /* Noise is part of what the limit must hold. */
    allowed -= c->p->power_noise * (double)c->g->settings.power_limit_mw / power_range_mw(c);
    headroom = allowed - c->p->power_weight_memory * c->memory;
    if (c->core <= headroom)
        return 1;
    if (headroom <= 0)
        return 0;
    return pow(headroom / c->core, 1 / c->p->power_clock_exponent);
}

static double wanted_clock(struct chain *c)
{
    const struct gpu_settings *s = &c->g->settings;
    const struct model_sm_clock *sm = &c->m->clocks.sm;
    double wanted = (double)(c->idle ? sm->idle_khz : highest_clock(c));

    if (!c->idle && s->sm_application_khz && (double)s->sm_application_khz < wanted) {
        wanted = (double)s->sm_application_khz;
        c->reasons |= THROTTLE_APPLICATION_CLOCKS;
    }
    if (s->sm_lock_max_khz) {
        if (!c->idle && (double)s->sm_lock_max_khz < wanted)
            c->reasons |= THROTTLE_APPLICATION_CLOCKS;
        wanted = clamp(wanted, (double)s->sm_lock_min_khz, (double)s->sm_lock_max_khz);
    }
    return wanted;
}

static double cap_clock(struct chain *c, double wanted)
{
    double highest = (double)highest_clock(c), cap;

    if (c->g->sw_thermal) {
        double above = c->g->temperature_c - (double)c->m->thermal.max_operating_mc / 1000 +
                       c->p->thermal_hysteresis_c / 2;

        cap = highest * (c->g->thermal_cap - c->p->thermal_gain_per_c * above);
        if (cap < wanted) {
            wanted = cap;
            c->reasons |= THROTTLE_SW_THERMAL;
        }
    }
    if (c->g->hw_thermal)
        c->reasons |= THROTTLE_HW_SLOWDOWN | THROTTLE_HW_THERMAL;
    if (gpu_has(c->g, CONDITION_POWER_BRAKE))
        c->reasons |= THROTTLE_HW_SLOWDOWN | THROTTLE_POWER_BRAKE;
    if (c->reasons & THROTTLE_HW_SLOWDOWN)
        wanted = fmin(wanted, highest * c->p->slowdown_clock_share);
    cap = highest * power_cap_clock(c);
    if (cap < wanted) {
        wanted = cap;
        c->reasons |= THROTTLE_POWER_CAP;
    }
    return fmax(wanted, (double)c->m->clocks.sm.min_khz);
}

static int64_t memory_clock(const struct chain *c)
{
    const struct gpu_settings *s = &c->g->settings;
    int64_t n = c->m->clocks.memory.count;
    const int64_t *clocks = c->m->clocks.memory.items;
    int64_t clock = c->idle && c->m->idle_pstate >= 8 ? clocks[n - 1]
                                                      : clocks[0] + s->memory_offset_khz;

    if (s->memory_application_khz && clock > s->memory_application_khz)
        clock = s->memory_application_khz;
    if (s->memory_lock_max_khz)
        clock = clock > s->memory_lock_max_khz   ? s->memory_lock_max_khz
                : clock < s->memory_lock_min_khz ? s->memory_lock_min_khz
                                                 : clock;
    return clock;
}

void step_pstate(struct chain *c)
{
    int64_t before = c->g->sample.value[METRIC_PSTATE], now = c->idle ? c->m->idle_pstate : 0;
    bool asleep = now >= 8;

    c->g->sample.value[METRIC_PSTATE] = now;
    c->g->sample.value[METRIC_PCIE_LINK_GENERATION] = asleep ? 1 : c->m->pci.generation;
    c->g->sample.value[METRIC_PCIE_LINK_WIDTH] = c->m->pci.width;
    if (before != now)
        gpu_event(c->st, c->i, EVENT_PSTATE, before, now, NULL);
}

void step_clocks(struct chain *c)
{
    struct gpu *g = c->g;
    double highest = (double)c->m->clocks.sm.max_khz, target;

    c->core = c->p->power_weight_sm * c->sm + c->p->power_weight_tensor * c->tensor +
              c->p->power_weight_video * c->video + (c->idle ? 0 : c->p->power_weight_active);
    c->reasons = c->idle ? THROTTLE_IDLE : 0;
    target = cap_clock(c, wanted_clock(c));
    if (target > g->clock_khz)
        target = fmin(target, g->clock_khz + highest * c->p->clock_slew_per_s * c->dt_s);
    g->clock_khz = target;
    put(g, METRIC_CLOCK_SM, on_grid(&c->m->clocks.sm, highest_clock(c), target));
    put(g, METRIC_CLOCK_MEMORY, memory_clock(c) / 1000 * 1000);
    g->sample.value[METRIC_CLOCK_GRAPHICS] = g->sample.value[METRIC_CLOCK_SM];
    g->sample.value[METRIC_CLOCK_VIDEO] =
        c->idle ? c->m->clocks.video.idle_khz
                : (int64_t)(fmax((double)g->sample.value[METRIC_CLOCK_SM] / highest *
                                     (double)c->m->clocks.video.max_khz,
                                 (double)c->m->clocks.video.idle_khz)) /
                      1000 * 1000;
    if (g->sample.value[METRIC_THROTTLE_REASONS] != c->reasons)
        gpu_event(c->st, c->i, EVENT_CLOCKS, g->sample.value[METRIC_THROTTLE_REASONS], c->reasons,
                  NULL);
    g->sample.value[METRIC_THROTTLE_REASONS] = c->reasons;
}

/* --- power and energy ------------------------------------------------------------------------ */

void step_power(struct chain *c)
{
    struct gpu *g = c->g;
    double x = (double)g->sample.value[METRIC_CLOCK_SM] / (double)c->m->clocks.sm.max_khz;
    double mw = (double)c->m->power.idle_mw + power_range_mw(c) * dynamic_power(c, x);

    /* The noise moves with time; a command alone leaves it, and the stream, as they are. */
    if (c->st->dt_ns > 0)
        g->power_noise = c->p->power_noise * rng_between(&g->rng, -1, 1);
    mw *= 1 + g->power_noise;
    mw = fmin(mw, (double)g->settings.power_limit_mw);
    put_real(g, METRIC_POWER_USAGE, mw);
    c->power_mw = g->sample.value[METRIC_POWER_USAGE];
    g->sample.value[METRIC_POWER_USAGE_INSTANT] = c->power_mw;
}

void step_energy(struct chain *c)
{
    struct gpu *g = c->g;

    /* 1 mW for 1 ns is 1 pJ; whole numbers, so that nothing is lost over years. */
    g->energy_rest_pj += c->power_mw * c->st->dt_ns;
    g->energy_uj += g->energy_rest_pj / 1000000;
    g->energy_rest_pj %= 1000000;
    g->sample.value[METRIC_ENERGY_TOTAL] = g->energy_uj / 1000;
}
