/*
 * Runs: workloads while they run. See runs.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/runs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/loads.h"
#include "sim/text.h"
#include "sim/why.h"
#include "sim/world.h"

/* One run with all it concerns. */
struct runner {
    struct stepping *st;
    struct world *w;
    uint32_t k;
    const struct workload *plan;
    struct run *run;
    struct share *shares;
};

static struct runner runner_of(struct stepping *st, uint32_t k)
{
    struct world *w = st->world;
    struct run *run = &world_runs(w)[k];

    return (
        struct runner){ st, w, k, &world_workloads(w)[k], run, &world_shares(w)[run->first_share] };
}

static int64_t energy_of(const struct runner *r)
{
    int64_t mj = 0;

    for (uint32_t s = 0; s < r->run->share_count; s++)
        mj += world_gpus(r->w)[r->shares[s].gpu].sample.value[METRIC_ENERGY_TOTAL];
    return mj;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void run_event(struct runner *r, int kind)
{
    struct event e = { .kind = (uint32_t)kind, .gpu = -1, .code = r->run->exit_code };

    if (r->run->share_count) {
        const struct gpu_plan *g = &world_gpu_plans(r->w)[r->shares[0].gpu];

        e.gpu = r->shares[0].gpu;
        e.domain = g->domain;
        e.bus = g->bus;
        e.device = g->device;
        e.function = g->function;
    }
    snprintf(e.text, sizeof(e.text), "%s", r->plan->name);
    world_event(r->st->store, r->w, &e);
}

void run_end(struct stepping *st, uint32_t k, enum run_reason reason, int detail)
{
    struct runner r = runner_of(st, k);

    r.run->state = RUN_ENDED;
    r.run->ended_ns = st->world->node.now_ns;
    r.run->reason = reason;
    r.run->reason_detail = detail;
    r.run->exit_code = reason == RUN_FINISHED || reason == RUN_STOPPED ? 0 : 1;
    for (uint32_t s = 0; s < r.run->share_count; s++) {
        struct load *load = &world_gpus(r.w)[r.shares[s].gpu].load;

        account_end(st, &r.shares[s]);
        world_gpus(r.w)[r.shares[s].gpu].crowd--;
        load->channel[CHANNEL_MEMORY] -= (double)r.shares[s].memory_bytes;
        r.shares[s].memory_bytes = 0;
        r.shares[s].utilization_percent = 0;
        memset(r.shares[s].engines, 0, sizeof(r.shares[s].engines));
    }
    run_event(&r, EVENT_WORKLOAD_ENDED);
}

void run_message(struct text *out, const struct run *run)
{
    if (run->state != RUN_ENDED)
        return;
    switch ((enum run_reason)run->reason) {
    case RUN_LIMIT:
        text_addf(out, "Limit %s reached, terminated", limit_name(run->reason_detail));
        break;
    case RUN_NO_MEMORY:
        text_addf(out, "Out of memory on GPU %d, terminated", run->reason_detail);
        break;
    case RUN_GPU_LOST:
        text_addf(out, "GPU %d is lost, terminated", run->reason_detail);
        break;
    case RUN_GPU_REMOVED:
        text_add(out, "GPU removed, terminated");
        break;
    case RUN_STOPPED:
        text_add(out, "Stopped");
        break;
    case RUN_FINISHED:
        break;
    }
}

/* --- what a phase asks for ------------------------------------------------------------------- */

/* The target's limit on the first of its GPUs: what shares of memory and links refer to. */
static double channel_limit(const struct runner *r, enum channel channel)
{
    static const int metric[CHANNEL_COUNT] = {
        [CHANNEL_PCIE_TX] = METRIC_PCIE_TX,     [CHANNEL_PCIE_RX] = METRIC_PCIE_RX,
        [CHANNEL_NVLINK_TX] = METRIC_NVLINK_TX, [CHANNEL_NVLINK_RX] = METRIC_NVLINK_RX,
        [CHANNEL_MEMORY] = METRIC_MEMORY_USED,
    };

    if (channel_infos[channel].unit == UNIT_PERCENT || !r->run->share_count)
        return 100e3;
    return gpu_metric_limit(r->w, r->shares[0].gpu, metric[channel]);
}

static void evaluate(struct runner *r, const struct signal *s, int64_t elapsed_ns, bool fresh)
{
    const struct signal_pool pool = world_pool(r->w);
    double limit = channel_limit(r, s->target), v;
    double *value = &r->run->value[s->target];

    if (signal_eval(s, &pool, elapsed_ns, limit, isnan(*value) ? 0 : *value, fresh || isnan(*value),
                    &r->run->rng, &v) == 0)
        *value = v < 0 ? 0 : v > limit && s->target != CHANNEL_MEMORY ? limit : v;
    /* Memory beyond what there is stays what is asked for: it is refused, not cut. */
}

static void clear_values(struct run *run)
{
    for (int c = 0; c < CHANNEL_COUNT; c++)
        run->value[c] = NAN;
}

/* Evaluates the phase's signals, and the memory that holds where the phase says nothing of it. */
static void sample(struct runner *r, const struct timeline_place *at)
{
    const struct signal *signals = world_signals(r->w);
    bool new_phase = r->run->phase != at->phase, first = r->run->next_sample_ns == INT64_MIN;
    double memory = r->run->value[CHANNEL_MEMORY];

    if (new_phase || first) {
        clear_values(r->run);
        r->run->value[CHANNEL_MEMORY] = memory; /* what grows goes on growing in the next phase */
    }
    if (r->plan->memory_signal >= 0)
        evaluate(r, &signals[r->plan->memory_signal], r->run->progress_ns, first);
    if (r->plan->phase_count) {
        const struct phase *phase = &world_phases(r->w)[at->phase];

        for (uint32_t i = 0; i < phase->count; i++)
            evaluate(r, &signals[phase->first + i], at->offset_ns, new_phase || first);
    }
    r->run->phase = at->phase;
    r->run->next_sample_ns = r->w->node.now_ns + r->plan->sample_ns;
}

static struct timeline_place place_of(const struct runner *r)
{
    struct timeline_place nowhere = { 0 };

    if (!r->plan->phase_count)
        return nowhere; /* memory without activity: it sits there until it is stopped */
    return timeline_locate(world_phases(r->w), r->plan->first_phase, r->plan->phase_count,
                           r->plan->repeat, r->run->progress_ns);
}

/* --- memory ---------------------------------------------------------------------------------- */

int64_t instance_memory_used(const struct world *w, int gpu, int gi)
{
    const struct share *shares = world_shares(w);
    int64_t used = 0;

    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (shares[s].gpu == gpu && shares[s].gi == gi)
            used += shares[s].memory_bytes;
    return used;
}

/* How many shares the run has on the GPU, or (gi not -1) on that instance of it: they take memory together. */
static int64_t shares_on(const struct runner *r, int gpu, int gi)
{
    int64_t n = 0;

    for (uint32_t s = 0; s < r->run->share_count; s++)
        n += r->shares[s].gpu == gpu && (gi < 0 || r->shares[s].gi == gi);
    return n;
}

/* What a share could have more, of the GPU and of its instance. */
static int64_t memory_free(const struct runner *r, const struct share *share)
{
    const struct gpu *g = &world_gpus(r->w)[share->gpu];
    int64_t left = (int64_t)gpu_metric_limit(r->w, share->gpu, METRIC_MEMORY_USED) -
                   (int64_t)g->load.channel[CHANNEL_MEMORY];
    int64_t instance;

    if (share->gi < 0)
        return left;
    instance = mig_memory_bytes(g, world_gpu_model(r->w, share->gpu), share->gi) -
               instance_memory_used(r->w, share->gpu, share->gi);
    left /= shares_on(r, share->gpu, -1);
    instance /= shares_on(r, share->gpu, share->gi);
    return instance < left ? instance : left;
}

/* Gives every share the memory that is asked for; returns the share that has not got it, or NULL. */
static const struct share *take_memory(struct runner *r)
{
    double wanted = r->run->value[CHANNEL_MEMORY];
    int64_t bytes = isnan(wanted) ? 0 : llround(wanted);

    for (uint32_t s = 0; s < r->run->share_count; s++)
        if (bytes - r->shares[s].memory_bytes > memory_free(r, &r->shares[s]))
            return &r->shares[s];
    for (uint32_t s = 0; s < r->run->share_count; s++) {
        struct gpu *g = &world_gpus(r->w)[r->shares[s].gpu];

        g->load.channel[CHANNEL_MEMORY] += (double)(bytes - r->shares[s].memory_bytes);
        r->shares[s].memory_bytes = bytes;
    }
    return NULL;
}

static int no_memory(const struct runner *r, const struct share *share, struct why *why)
{
    char instance[32] = "";

    if (share->gi >= 0)
        snprintf(instance, sizeof(instance), "GPU instance %d of ", share->gi);
    return why_set(why, ENOSPC,
                   "workload '%s' needs %" PRId64 " MiB on %sGPU %d, which has %" PRId64
                   " MiB free",
                   r->plan->name, (int64_t)(r->run->value[CHANNEL_MEMORY] / 0x1p20), instance,
                   share->gpu, memory_free(r, share) >> 20);
}

/* --- starting -------------------------------------------------------------------------------- */

int run_start(struct stepping *st, uint32_t k, struct why *why)
{
    struct runner r = runner_of(st, k);
    struct timeline_place at;
    const struct share *short_of;

    if (r.w->node.now_ns < r.plan->start_ns)
        return -EAGAIN;
    r.run->rng = rng_seeded(r.w->node_plan.seed, r.plan->name);
    r.run->started_ns = r.w->node.now_ns;
    r.run->progress_ns = 0;
    r.run->next_sample_ns = INT64_MIN;
    r.run->energy_start_mj = energy_of(&r);
    clear_values(r.run);
    at = place_of(&r);
    sample(&r, &at);
    short_of = take_memory(&r);
    r.run->reason_detail = short_of ? short_of->gpu : -1;
    if (short_of)
        return no_memory(&r, short_of, why);
    r.run->state = RUN_RUNNING;
    for (uint32_t s = 0; s < r.run->share_count; s++)
        account_begin(st, &r.shares[s]);
    run_event(&r, EVENT_WORKLOAD_STARTED);
    return 0;
}

/* --- moving ---------------------------------------------------------------------------------- */

/* How fast its own time goes: as fast as the slowest of its GPUs does what was measured elsewhere. */
static double pace(const struct runner *r)
{
    double slowest = 1;
    bool any = false;

    for (uint32_t s = 0; s < r->run->share_count; s++) {
        int gpu = r->shares[s].gpu;
        double rate = 1;

        if (gpu_has(&world_gpus(r->w)[gpu], CONDITION_HANG))
            return 0;
        if (r->plan->capability > 0)
            rate = model_capability(world_gpu_model(r->w, gpu)) / r->plan->capability;
        slowest = any ? fmin(slowest, rate) : rate;
        any = true;
    }
    return slowest;
}

static int64_t limit_value(const struct runner *r, int target)
{
    int64_t most = 0;

    switch (target) {
    case LIMIT_TIME:
        return r->w->node.now_ns - r->run->started_ns;
    case LIMIT_ENERGY:
        return energy_of(r) - r->run->energy_start_mj;
    default:
        for (uint32_t s = 0; s < r->run->share_count; s++) {
            const struct gpu *g = &world_gpus(r->w)[r->shares[s].gpu];
            int64_t v = target == LIMIT_MEMORY ? r->shares[s].memory_bytes : 0;

            if (target != LIMIT_MEMORY && metric_read(&g->sample, (enum metric)target, &v) < 0)
                continue;
            most = v > most ? v : most;
        }
        return most;
    }
}

/* The target of a limit that is reached, or -1. Memory may be used up to its limit. */
static int limit_reached(const struct runner *r)
{
    const struct limit *limits = &world_limits(r->w)[r->plan->first_limit];

    for (uint32_t i = 0; i < r->plan->limit_count; i++) {
        int64_t v = limit_value(r, limits[i].target);

        if (limits[i].target == LIMIT_MEMORY ? v > limits[i].value : v >= limits[i].value)
            return limits[i].target;
    }
    return -1;
}

static int lost_gpu(const struct runner *r)
{
    for (uint32_t s = 0; s < r->run->share_count; s++)
        if (gpu_has(&world_gpus(r->w)[r->shares[s].gpu], CONDITION_LOST))
            return r->shares[s].gpu;
    return -1;
}

static void move(struct runner *r)
{
    const struct share *short_of;
    struct timeline_place at;
    int which;

    r->run->progress_ns += llround((double)r->st->dt_ns * pace(r));
    at = place_of(r);
    if ((which = lost_gpu(r)) >= 0) {
        run_end(r->st, r->k, RUN_GPU_LOST, which);
    } else if (at.ended) {
        run_end(r->st, r->k, RUN_FINISHED, 0);
    } else {
        if (r->w->node.now_ns >= r->run->next_sample_ns || at.phase != r->run->phase)
            sample(r, &at);
        if ((short_of = take_memory(r)))
            run_end(r->st, r->k, RUN_NO_MEMORY, short_of->gpu);
        else if ((which = limit_reached(r)) >= 0)
            run_end(r->st, r->k, RUN_LIMIT, which);
    }
}

/* The time that has passed was spent with what each had until now. */
static void keep_accounts(struct stepping *st)
{
    struct share *shares = world_shares(st->world);

    for (uint32_t s = 0; s < st->world->used[SECTION_SHARES]; s++)
        account_step(st, &shares[s]);
}

/* All move before any load is added up: what one asks of an instance depends on the others on it. */
void runs_step(struct stepping *st)
{
    struct world *w = st->world;

    keep_accounts(st);
    loads_begin(w);
    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++) {
        struct runner r = runner_of(st, k);

        if (r.run->state == RUN_WAITING && w->node.now_ns >= r.plan->start_ns &&
            run_start(st, k, NULL) == -ENOSPC)
            run_end(st, k, RUN_NO_MEMORY, r.run->reason_detail);
        else if (r.run->state == RUN_RUNNING && st->dt_ns > 0)
            move(&r);
    }
    loads_add(w);
}
