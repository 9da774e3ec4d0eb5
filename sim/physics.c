/*
 * Physics: how load becomes clocks, power, energy, heat and throttling. See physics.h.
 *
 * A step goes once through the chain: pins, activity, clocks, power, energy, temperature, fans,
 * throttling, counters. A metric that is pinned keeps its dictated value at its place in the chain, and
 * everything behind it follows from that value. docs/simulation.md has the equations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/world.h"

/* All that one GPU's step needs at hand. */
struct chain {
    struct stepping *st;
    int i;
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

static struct chain chain_of(struct stepping *st, int i)
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

/* --- metrics --------------------------------------------------------------------------------- */

/* Sets a metric unless it is pinned. */
static void put(struct gpu *g, enum metric id, int64_t value)
{
    if (!metric_mask_has(&g->pinned, id))
        g->sample.value[id] = value;
}

static void put_real(struct gpu *g, enum metric id, double value)
{
    put(g, id, llround(value));
}

/* A counter that cannot be pinned. */
static void count(struct gpu *g, enum metric id, int64_t more)
{
    g->sample.value[id] += more;
}

/* The value in effect, pinned or not, as a share of its whole: 0..1. */
static double share_of(const struct gpu *g, enum metric id)
{
    double whole = metric_infos[id].unit == UNIT_PERCENT ? 100e3 : 1e6;

    return (double)g->sample.value[id] / whole;
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

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

static int links_up(const struct gpu *g, const struct gpu_plan *plan)
{
    int up = 0;

    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        up += plan->links[l].peer != LINK_NONE && !g->links[l].down_until_ns;
    return up;
}

/* --- activity -------------------------------------------------------------------------------- */

void load_derive(const struct physics *p, const struct gpu_model *m, bool several_gpus,
                 struct load *load)
{
    double *v = load->channel;
    double pcie = (double)pcie_bytes_per_second(m->pci.generation, m->pci.width);
    double nvlink = several_gpus ? (double)model_nvlink_bytes_per_second(m) : 0;
    double u, sm;

#define DERIVE(id, value)              \
    do {                               \
        if (isnan(v[CHANNEL_##id]))    \
            v[CHANNEL_##id] = (value); \
    } while (0)
    DERIVE(UTILIZATION, 0);
    u = v[CHANNEL_UTILIZATION];
    DERIVE(SM_ACTIVE, u * p->sm_active_per_utilization);
    sm = v[CHANNEL_SM_ACTIVE];
    DERIVE(OCCUPANCY, sm * p->occupancy_per_sm_active);
    DERIVE(TENSOR, m->tensor_cores ? sm * p->tensor_per_sm_active : 0);
    DERIVE(FP64, sm * p->fp64_per_sm_active);
    DERIVE(FP32, sm * p->fp32_per_sm_active);
    DERIVE(FP16, sm * p->fp16_per_sm_active);
    DERIVE(INTEGER, sm * p->integer_per_sm_active);
    DERIVE(MEMORY_UTILIZATION, u * p->memory_per_utilization);
    DERIVE(ENCODER, 0);
    DERIVE(DECODER, 0);
    DERIVE(JPEG, 0);
    DERIVE(OFA, 0);
    DERIVE(PCIE_TX, u / 100e3 * p->pcie_tx_per_utilization * pcie);
    DERIVE(PCIE_RX, u / 100e3 * p->pcie_rx_per_utilization * pcie);
    DERIVE(NVLINK_TX, u / 100e3 * p->nvlink_per_utilization * nvlink);
    DERIVE(NVLINK_RX, u / 100e3 * p->nvlink_per_utilization * nvlink);
    DERIVE(MEMORY, 0);
#undef DERIVE
}

/* A utilization dictated from outside: what runs is scaled to it; where nothing runs, it is worked out. */
static void follow_dictated_utilization(struct chain *c, struct load *load)
{
    double wanted = (double)c->g->sample.value[METRIC_UTILIZATION_GPU];
    double memory = load->channel[CHANNEL_MEMORY], has = load->channel[CHANNEL_UTILIZATION];

    if (has > 0) {
        for (int k = 0; k < CHANNEL_COUNT; k++)
            load->channel[k] *= wanted / has;
    } else {
        for (int k = 0; k < CHANNEL_COUNT; k++)
            load->channel[k] = NAN;
        load->channel[CHANNEL_UTILIZATION] = wanted;
        load_derive(c->p, c->m, false, load);
    }
    load->channel[CHANNEL_MEMORY] = memory;
}

/* Engines seem busy, but nothing moves. */
static void hang_load(struct load *load)
{
    double memory = load->channel[CHANNEL_MEMORY];

    memset(load, 0, sizeof(*load));
    load->channel[CHANNEL_UTILIZATION] = 100e3;
    load->channel[CHANNEL_MEMORY] = memory;
}

static void put_percent(struct chain *c, enum metric id, double parts)
{
    put_real(c->g, id, clamp(parts, 0, 100e3));
}

/* The same activity as DCGM's ratio: 1/1000 percent are 1/100000, a ratio has 1/1000000. */
static void put_ratio(struct chain *c, enum metric id, double percent_parts)
{
    put_real(c->g, id, clamp(percent_parts, 0, 100e3) * 10);
}

static void step_memory(struct chain *c, double wanted)
{
    struct gpu *g = c->g;
    int64_t capacity = gpu_memory_capacity(c->plan, c->m), used;

    put_real(g, METRIC_MEMORY_USED, clamp(wanted, 0, (double)capacity));
    /* What was dictated may have been more than another configuration leaves. */
    if (g->sample.value[METRIC_MEMORY_USED] > capacity)
        g->sample.value[METRIC_MEMORY_USED] = capacity;
    used = g->sample.value[METRIC_MEMORY_USED];
    g->sample.value[METRIC_MEMORY_FREE] = capacity - used;
    g->sample.value[METRIC_MEMORY_USED_RATIO] = llround((double)used / (double)capacity * 1e6);
    g->sample.value[METRIC_BAR1_USED] = INT64_C(1) << 20;
    g->sample.value[METRIC_BAR1_FREE] = c->m->memory.bar1_bytes - (INT64_C(1) << 20);
}

static void step_engines(struct chain *c, const double *v)
{
    put_percent(c, METRIC_UTILIZATION_GPU, v[CHANNEL_UTILIZATION]);
    put_percent(c, METRIC_UTILIZATION_MEMORY, v[CHANNEL_MEMORY_UTILIZATION]);
    put_percent(c, METRIC_UTILIZATION_ENCODER, v[CHANNEL_ENCODER]);
    put_percent(c, METRIC_UTILIZATION_DECODER, v[CHANNEL_DECODER]);
    put_percent(c, METRIC_UTILIZATION_JPEG, v[CHANNEL_JPEG]);
    put_percent(c, METRIC_UTILIZATION_OFA, v[CHANNEL_OFA]);
    put_ratio(c, METRIC_GR_ENGINE_ACTIVE, (double)c->g->sample.value[METRIC_UTILIZATION_GPU]);
    put_ratio(c, METRIC_SM_ACTIVE, v[CHANNEL_SM_ACTIVE]);
    put_ratio(c, METRIC_SM_OCCUPANCY, v[CHANNEL_OCCUPANCY]);
    put_ratio(c, METRIC_TENSOR_ACTIVE, v[CHANNEL_TENSOR]);
    put_ratio(c, METRIC_TENSOR_HMMA_ACTIVE, v[CHANNEL_TENSOR]);
    put_ratio(c, METRIC_TENSOR_IMMA_ACTIVE, 0);
    put_ratio(c, METRIC_TENSOR_DFMA_ACTIVE, 0);
    put_ratio(c, METRIC_DRAM_ACTIVE, (double)c->g->sample.value[METRIC_UTILIZATION_MEMORY]);
    put_ratio(c, METRIC_FP64_ACTIVE, v[CHANNEL_FP64]);
    put_ratio(c, METRIC_FP32_ACTIVE, v[CHANNEL_FP32]);
    put_ratio(c, METRIC_FP16_ACTIVE, v[CHANNEL_FP16]);
    put_ratio(c, METRIC_INTEGER_ACTIVE, v[CHANNEL_INTEGER]);
}

static void step_activity(struct chain *c)
{
    struct load load = c->g->load;

    if (gpu_has(c->g, CONDITION_HANG))
        hang_load(&load);
    if (metric_mask_has(&c->g->pinned, METRIC_UTILIZATION_GPU))
        follow_dictated_utilization(c, &load);
    step_memory(c, load.channel[CHANNEL_MEMORY]);
    step_engines(c, load.channel);
    put_real(c->g, METRIC_PCIE_TX,
             clamp((double)c->p->pcie_idle_bytes_per_second + load.channel[CHANNEL_PCIE_TX], 0,
                   gpu_metric_limit(c->st->world, c->i, METRIC_PCIE_TX)));
    put_real(c->g, METRIC_PCIE_RX,
             clamp((double)c->p->pcie_idle_bytes_per_second + load.channel[CHANNEL_PCIE_RX], 0,
                   gpu_metric_limit(c->st->world, c->i, METRIC_PCIE_RX)));
    put_real(c->g, METRIC_NVLINK_TX,
             clamp(load.channel[CHANNEL_NVLINK_TX], 0,
                   gpu_metric_limit(c->st->world, c->i, METRIC_NVLINK_TX)));
    put_real(c->g, METRIC_NVLINK_RX,
             clamp(load.channel[CHANNEL_NVLINK_RX], 0,
                   gpu_metric_limit(c->st->world, c->i, METRIC_NVLINK_RX)));
    c->sm = share_of(c->g, METRIC_SM_ACTIVE);
    c->tensor = share_of(c->g, METRIC_TENSOR_ACTIVE);
    c->memory = share_of(c->g, METRIC_DRAM_ACTIVE);
    c->video = (share_of(c->g, METRIC_UTILIZATION_ENCODER) +
                share_of(c->g, METRIC_UTILIZATION_DECODER)) /
               2;
}

/* --- clocks ---------------------------------------------------------------------------------- */

static void step_idle(struct chain *c)
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

static void step_pstate(struct chain *c)
{
    int64_t before = c->g->sample.value[METRIC_PSTATE], now = c->idle ? c->m->idle_pstate : 0;
    bool asleep = now >= 8;

    c->g->sample.value[METRIC_PSTATE] = now;
    c->g->sample.value[METRIC_PCIE_LINK_GENERATION] = asleep ? 1 : c->m->pci.generation;
    c->g->sample.value[METRIC_PCIE_LINK_WIDTH] = c->m->pci.width;
    if (before != now)
        gpu_event(c->st, c->i, EVENT_PSTATE, before, now, NULL);
}

static void step_clocks(struct chain *c)
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

static void step_power(struct chain *c)
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

static void step_energy(struct chain *c)
{
    struct gpu *g = c->g;

    /* 1 mW for 1 ns is 1 pJ; whole numbers, so that nothing is lost over years. */
    g->energy_rest_pj += c->power_mw * c->st->dt_ns;
    g->energy_uj += g->energy_rest_pj / 1000000;
    g->energy_rest_pj %= 1000000;
    g->sample.value[METRIC_ENERGY_TOTAL] = g->energy_uj / 1000;
}

/* --- heat ------------------------------------------------------------------------------------ */

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

static void step_temperature(struct chain *c)
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

static void step_fan(struct chain *c)
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

static void step_throttling(struct chain *c)
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

/* --- counters -------------------------------------------------------------------------------- */

static void step_violations(struct chain *c)
{
    static const struct {
        enum metric metric;
        int64_t reasons;
    } rows[] = {
        { METRIC_VIOLATION_POWER, THROTTLE_POWER_CAP | THROTTLE_POWER_BRAKE },
        { METRIC_VIOLATION_THERMAL, THROTTLE_SW_THERMAL | THROTTLE_HW_THERMAL },
        { METRIC_VIOLATION_SYNC_BOOST, THROTTLE_SYNC_BOOST },
        { METRIC_VIOLATION_LOW_UTILIZATION, THROTTLE_IDLE },
        { METRIC_VIOLATION_APPLICATION_CLOCKS, THROTTLE_APPLICATION_CLOCKS },
        { METRIC_THROTTLE_POWER_CAP, THROTTLE_POWER_CAP },
        { METRIC_THROTTLE_SYNC_BOOST, THROTTLE_SYNC_BOOST },
        { METRIC_THROTTLE_SW_THERMAL, THROTTLE_SW_THERMAL },
        { METRIC_THROTTLE_HW_THERMAL, THROTTLE_HW_THERMAL },
        { METRIC_THROTTLE_POWER_BRAKE, THROTTLE_POWER_BRAKE },
    };

    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        if (c->reasons & rows[k].reasons)
            count(c->g, rows[k].metric, c->st->dt_ns);
    if (!c->idle && c->g->sample.value[METRIC_CLOCK_SM] < c->m->clocks.sm.base_khz)
        count(c->g, METRIC_VIOLATION_BASE_CLOCKS, c->st->dt_ns);
}

static void step_links(struct chain *c)
{
    struct gpu *g = c->g;
    int up = links_up(g, c->plan);
    double most = (double)up * (double)c->m->nvlink.link_bytes_per_second;
    int64_t tx, rx, flit = 0, data = 0, replay = 0, recovery = 0;

    put_real(g, METRIC_NVLINK_TX, fmin((double)g->sample.value[METRIC_NVLINK_TX], most));
    put_real(g, METRIC_NVLINK_RX, fmin((double)g->sample.value[METRIC_NVLINK_RX], most));
    tx = up ? g->sample.value[METRIC_NVLINK_TX] : 0;
    rx = up ? g->sample.value[METRIC_NVLINK_RX] : 0;
    g->sample.value[METRIC_NVLINK_LINKS_ACTIVE_COUNT] = up;
    g->sample.value[METRIC_NVLINK_BANDWIDTH_TOTAL] = tx + rx;
    g->sample.value[METRIC_NVLINK_BANDWIDTH_L0] = up && c->plan->links[0].peer &&
                                                          !g->links[0].down_until_ns
                                                      ? (tx + rx) / up
                                                      : 0;
    for (int l = 0; l < c->m->nvlink.links; l++) {
        struct link *link = &g->links[l];

        if (up && c->plan->links[l].peer != LINK_NONE && !link->down_until_ns) {
            link->tx_bytes += (uint64_t)((double)tx / up * c->dt_s);
            link->rx_bytes += (uint64_t)((double)rx / up * c->dt_s);
        }
        flit += link->crc_flit;
        data += link->crc_data;
        replay += link->replay;
        recovery += link->recovery;
    }
    count(g, METRIC_NVLINK_TX_BYTES_TOTAL, llround((double)tx * c->dt_s));
    count(g, METRIC_NVLINK_RX_BYTES_TOTAL, llround((double)rx * c->dt_s));
    put(g, METRIC_NVLINK_CRC_FLIT_ERROR_TOTAL, flit);
    put(g, METRIC_NVLINK_CRC_DATA_ERROR_TOTAL, data);
    put(g, METRIC_NVLINK_REPLAY_ERROR_TOTAL, replay);
    put(g, METRIC_NVLINK_RECOVERY_ERROR_TOTAL, recovery);
}

static void step_reliability(struct chain *c)
{
    int64_t *v = c->g->sample.value;
    int64_t banks = c->m->ecc.row_remap_banks;
    int64_t rows = v[METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL] +
                   v[METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL];
    int64_t none = banks && v[METRIC_REMAPPED_ROWS_FAILURE] ? 1 : 0;

    if (rows > banks - none)
        rows = banks - none;
    v[METRIC_ECC_SBE_AGGREGATE_TOTAL] = c->g->ecc_sbe_before + v[METRIC_ECC_SBE_VOLATILE_TOTAL];
    v[METRIC_ECC_DBE_AGGREGATE_TOTAL] = c->g->ecc_dbe_before + v[METRIC_ECC_DBE_VOLATILE_TOTAL];
    /* Every remapped row takes one spare of a bank of its own, until a bank has none left. */
    v[METRIC_REMAP_BANKS_NONE_COUNT] = none;
    v[METRIC_REMAP_BANKS_HIGH_COUNT] = rows;
    v[METRIC_REMAP_BANKS_MAX_COUNT] = banks - rows - none;
    v[METRIC_RECOVERY_ACTION] = gpu_has(c->g, CONDITION_LOST) ? 2
                                : gpu_has(c->g, CONDITION_HANG) ||
                                        v[METRIC_REMAPPED_ROWS_PENDING] ||
                                        v[METRIC_RETIRED_PAGES_PENDING]
                                    ? 1
                                    : 0;
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

void gpu_cool_down(struct stepping *st, int i)
{
    struct chain c = chain_of(st, i);

    c.g->temperature_c = (double)c.p->ambient_mc / 1000 +
                         thermal_resistance(&c) * (double)c.m->power.idle_mw / 1000;
    c.g->memory_temperature_c = c.g->temperature_c + c.p->memory_heat_offset_c;
}
