/*
 * Physics: temperature, fans, and throttling by temperature. See physics.h and physics_chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics_chain.h"

static double lag(double from, double to, double dt_s, int64_t time_constant_ns)
{
    return from + (to - from) * -expm1(-dt_s * (double)NS_PER_S / (double)time_constant_ns);
}

static double thermal_resistance(const struct chain *c)
{
    double r = c->m->thermal.resistance * c->plan->cooling;

    if (gpu_has(c->g, CONDITION_THERMAL))
        r *= c->g->cooling_fault;
    if (c->m->fan.count)
        r *= 1 + c->p->fan_stopped_resistance * (1 - share_of(c->g, METRIC_FAN_SPEED));
    return r;
}

void step_temperature(struct chain *c)
{
    struct gpu *g = c->g;
    double settles = (double)c->p->ambient_mc / 1000 +
                     thermal_resistance(c) * (double)c->power_mw / 1000;

    if (c->dt_s > 0) {
        g->temperature_c = lag(g->temperature_c, settles, c->dt_s, c->m->thermal.time_constant_ns);
        g->memory_temperature_c = lag(g->memory_temperature_c,
                                      g->temperature_c + c->p->memory_heat_offset_c +
                                          c->p->memory_heat_load_c * c->memory,
                                      c->dt_s, c->p->memory_time_constant_ns);
    }
    put_real(g, METRIC_TEMPERATURE_GPU, g->temperature_c * 1000);
    put_real(g, METRIC_TEMPERATURE_MEMORY, g->memory_temperature_c * 1000);
    /* A dictated temperature is the temperature: throttling follows it, and so does what comes after it. */
    if (metric_mask_has(&g->pinned, METRIC_TEMPERATURE_GPU))
        g->temperature_c = (double)g->sample.value[METRIC_TEMPERATURE_GPU] / 1000;
    g->sample.value[METRIC_TEMPERATURE_MARGIN] = c->m->thermal.max_operating_mc -
                                                 g->sample.value[METRIC_TEMPERATURE_GPU];
}

void step_fan(struct chain *c)
{
    const struct model_fan *fan = &c->m->fan;
    struct gpu *g = c->g;
    double t = g->temperature_c * 1000, low = (double)fan->min_percent / 1000, wanted;
    bool turns = g->fan_percent > 0 ? t > (double)fan->stop_mc : t >= (double)fan->start_mc;

    if (!fan->count)
        return;
    wanted = turns ? clamp(low + (100 - low) * (t - (double)fan->start_mc) /
                                     (double)(fan->full_mc - fan->start_mc),
                           low, 100)
                   : 0;
    if (g->settings.fan_percent)
        wanted = (double)g->settings.fan_percent / 1000;
    g->fan_percent = clamp(wanted, g->fan_percent - c->p->fan_slew_percent_per_s * c->dt_s,
                           g->fan_percent + c->p->fan_slew_percent_per_s * c->dt_s);
    put_real(g, METRIC_FAN_SPEED, g->fan_percent * 1000);
}

/* Software slowdown steers the clock so that the temperature stays just below its limit. */
static void step_sw_thermal(struct chain *c)
{
    const struct model_thermal *t = &c->m->thermal;
    struct gpu *g = c->g;
    double limit = (double)t->max_operating_mc / 1000;
    double lowest = (double)c->m->clocks.sm.min_khz / (double)c->m->clocks.sm.max_khz;

    if (!g->sw_thermal && g->temperature_c >= limit) {
        g->sw_thermal = 1;
        g->thermal_cap = g->clock_khz / (double)c->m->clocks.sm.max_khz;
    }
    if (!g->sw_thermal)
        return;
    g->thermal_cap -= c->p->thermal_gain_per_c_s * c->dt_s *
                      (g->temperature_c - (limit - c->p->thermal_hysteresis_c / 2));
    g->thermal_cap = clamp(g->thermal_cap, lowest, 1);
    if (g->thermal_cap >= 1 && g->temperature_c < limit - c->p->thermal_hysteresis_c)
        g->sw_thermal = 0;
}

void step_throttling(struct chain *c)
{
    const struct model_thermal *t = &c->m->thermal;
    struct gpu *g = c->g;
    double slowdown = (double)t->slowdown_mc / 1000;

    step_sw_thermal(c);
    if (g->temperature_c >= slowdown)
        g->hw_thermal = 1;
    else if (g->temperature_c < slowdown - c->p->slowdown_hysteresis_c)
        g->hw_thermal = 0;
    if (g->temperature_c * 1000 >= (double)t->shutdown_mc &&
        !metric_mask_has(&g->pinned, METRIC_TEMPERATURE_GPU))
        gpu_lose(c->st, c->i, INT64_MAX);
}

void gpu_cool_down(struct stepping *st, int i)
{
    struct chain c = chain_of(st, i);

    c.g->temperature_c = (double)c.p->ambient_mc / 1000 +
                         thermal_resistance(&c) * (double)c.m->power.idle_mw / 1000;
    c.g->memory_temperature_c = c.g->temperature_c + c.p->memory_heat_offset_c;
}
