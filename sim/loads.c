/*
 * Loads: what all who run ask of each GPU together, and what each of them gets. See loads.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/loads.h"

#include <math.h>
#include <string.h>

#include "sim/world.h"

/* --- in a step ------------------------------------------------------------------------------- */

/* Memory taken so far is known before anyone asks for more, so that it is the one that grows who fails. */
void loads_begin(struct world *w)
{
    struct gpu *gpus = world_gpus(w);
    const struct share *shares = world_shares(w);

    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++)
        memset(&gpus[i].load, 0, sizeof(gpus[i].load));
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (shares[s].gpu >= 0)
            gpus[shares[s].gpu].load.channel[CHANNEL_MEMORY] += (double)shares[s].memory_bytes;
}

static const enum channel engine_channels[SHARE_ENGINES] = {
    [SHARE_MEMORY] = CHANNEL_MEMORY_UTILIZATION,
    [SHARE_ENCODER] = CHANNEL_ENCODER,
    [SHARE_DECODER] = CHANNEL_DECODER,
    [SHARE_JPEG] = CHANNEL_JPEG,
    [SHARE_OFA] = CHANNEL_OFA,
};

/* Utilization that all who run on a compute instance ask of it, in percent of it. */
static double asked_of_instance(const struct world *w, const struct share *of)
{
    const struct share *shares = world_shares(w);
    double together = 0;

    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct run *run = &world_runs(w)[shares[s].run];

        if (shares[s].gpu == of->gpu && shares[s].gi == of->gi && shares[s].ci == of->ci &&
            run->state == RUN_RUNNING && !isnan(run->value[CHANNEL_UTILIZATION]))
            together += run->value[CHANNEL_UTILIZATION];
    }
    return together;
}

/* What is asked of an instance is asked of a part of the GPU; others on the GPU cannot be slowed down. */
static void scale_to_instance(const struct world *w, const struct share *share, struct load *load)
{
    const struct run *run = &world_runs(w)[share->run];
    const struct gpu *g = &world_gpus(w)[share->gpu];
    const struct gpu_model *m = world_gpu_model(w, share->gpu);
    double together = asked_of_instance(w, share);
    double part = together > 100e3 ? 100e3 / together : 1;
    double compute = part * mig_compute_part(g, m, share->gi, share->ci);
    double memory = part * mig_memory_part(g, m, share->gi);

    for (int c = 0; c < CHANNEL_COUNT; c++)
        if (channel_infos[c].unit == UNIT_PERCENT)
            load->channel[c] *= c == CHANNEL_MEMORY_UTILIZATION ? memory : compute;
        else if (isnan(run->value[c]))
            load->channel[c] *=
                compute; /* followed from the utilization; else it is given as it is */
}

/* What a share asks of its GPU, but for memory, which is added up apart. */
static struct load load_of(const struct world *w, const struct share *share)
{
    const struct run *run = &world_runs(w)[share->run];
    struct load load;

    memcpy(load.channel, run->value, sizeof(load.channel));
    load_derive(&w->node_plan.physics, world_gpu_model(w, share->gpu), run->share_count > 1, &load);
    if (share->gi >= 0)
        scale_to_instance(w, share, &load);
    load.channel[CHANNEL_MEMORY] = 0;
    return load;
}

static void add_up(struct gpu *g, const struct load *load)
{
    for (int c = 0; c < CHANNEL_COUNT; c++)
        g->load.channel[c] += load->channel[c];
}

/* Until it is granted, a share has what it asks for. */
static void give_asked(struct share *share, const struct load *asked)
{
    share->utilization_percent = asked->channel[CHANNEL_UTILIZATION];
    for (int e = 0; e < SHARE_ENGINES; e++)
        share->engines[e] = (float)asked->channel[engine_channels[e]];
}

static void add_load(struct world *w, const struct run *run)
{
    for (uint32_t s = 0; s < run->share_count; s++) {
        struct share *share = &world_shares(w)[run->first_share + s];
        struct load load = load_of(w, share);

        give_asked(share, &load);
        add_up(&world_gpus(w)[share->gpu], &load);
    }
}

/* What a share gets of what it asked for: all of it, or its part. */
static double granted(const struct load *together, enum channel channel)
{
    return together->channel[channel] > 100e3 ? 100e3 / together->channel[channel] : 1;
}

static void grant(struct share *share, const struct load *together)
{
    share->utilization_percent *= granted(together, CHANNEL_UTILIZATION);
    for (int e = 0; e < SHARE_ENGINES; e++)
        share->engines[e] *= (float)granted(together, engine_channels[e]);
}

static bool is_on_gpu(const struct world *w, const struct share *share)
{
    return share->gpu >= 0 && world_share_runs(w, share);
}

/* Where together they ask for more than there is, each gets its part. */
static void share_out(struct world *w)
{
    struct share *shares = world_shares(w);

    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (is_on_gpu(w, &shares[s]))
            grant(&shares[s], &world_gpus(w)[shares[s].gpu].load);
}

void loads_add(struct world *w)
{
    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++)
        if (world_runs(w)[k].state == RUN_RUNNING)
            add_load(w, &world_runs(w)[k]);
    share_out(w);
}

/* --- without time ---------------------------------------------------------------------------- */

void gpu_set_add_run(struct gpu_set *set, const struct world *w, const struct run *run)
{
    for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++) {
        int gpu = world_shares(w)[s].gpu;

        if (gpu >= 0)
            set->bits[gpu / 64] |= UINT64_C(1) << gpu % 64;
    }
}

/* Gives a share what it gets of its GPU. Most get what they had: they are not touched. */
static void give(struct world *w, uint32_t s, const struct load *asked)
{
    struct share *share = &world_shares(w)[s], now = *share;

    give_asked(&now, asked);
    grant(&now, &world_gpus(w)[share->gpu].load);
    if (now.utilization_percent == share->utilization_percent &&
        !memcmp(now.engines, share->engines, sizeof(now.engines)))
        return;
    share->utilization_percent = now.utilization_percent;
    memcpy(share->engines, now.engines, sizeof(now.engines));
    world_touch(w, SECTION_SHARES, s, 1);
}

static void clear_loads(struct world *w, const struct gpu_set *gpus)
{
    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++)
        if (gpu_set_has(gpus, (int)i)) {
            memset(&world_gpus(w)[i].load, 0, sizeof(world_gpus(w)[i].load));
            world_touch(w, SECTION_GPUS, i, 1);
        }
}

/* The most memory that a process has had is known at once. */
static void settle_account(struct stepping *st, uint32_t s)
{
    struct share *share = &world_shares(st->world)[s];

    if (share->account.workload && share->memory_bytes > share->account.max_memory_bytes) {
        account_step(st, share);
        world_touch(st->world, SECTION_SHARES, s, 1);
    }
}

/* In the order of a step, so that the sums are those of a step to the last bit. */
void loads_settle(struct stepping *st, const struct gpu_set *gpus)
{
    struct world *w = st->world;
    const struct share *shares = world_shares(w);

    clear_loads(w, gpus);
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (gpu_set_has(gpus, shares[s].gpu)) {
            struct gpu *g = &world_gpus(w)[shares[s].gpu];

            g->load.channel[CHANNEL_MEMORY] += (double)shares[s].memory_bytes;
            settle_account(st, s);
        }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
            struct load load;

            if (!gpu_set_has(gpus, shares[s].gpu) || !is_on_gpu(w, &shares[s]))
                continue;
            load = load_of(w, &shares[s]);
            if (pass == 0)
                add_up(&world_gpus(w)[shares[s].gpu], &load);
            else
                give(w, s, &load);
        }
}

static bool is_over(const struct load *load)
{
    bool over = granted(load, CHANNEL_UTILIZATION) < 1;

    for (int e = 0; e < SHARE_ENGINES; e++)
        over |= granted(load, engine_channels[e]) < 1;
    return over;
}

bool loads_settle_last(struct stepping *st, uint32_t k)
{
    struct world *w = st->world;
    const struct run *run = &world_runs(w)[k];
    bool enough = true;

    if (run->state != RUN_RUNNING)
        return true;
    for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++) {
        const struct share *share = &world_shares(w)[s];
        struct load load = load_of(w, share);
        struct gpu *g = &world_gpus(w)[share->gpu];

        add_up(g, &load);
        give(w, s, &load);
        enough &= share->gi < 0 && !is_over(&g->load);
    }
    return enough;
}
