/*
 * Plan, GPUs over a change of configuration: which stay, come and go, and what becomes of their state and of who runs on
 * them. See plan_apply.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "sim/plan.h"
#include "sim/plan_apply.h"
#include "sim/runs.h"
#include "sim/sections.h"

static bool same_model(const struct world *before, int i, const struct gpu_model *m)
{
    return !strcmp(world_gpu_model(before, i)->name, m->name);
}

void applying_trace_gpus(struct applying *a)
{
    for (int i = 0; i < a->count; i++) {
        int from = a->before ? plan_find_gpu(a->before, a->entries[i].uuid) : -1;

        a->came_from[i] = from >= 0 && same_model(a->before, from, a->entries[i].model) ? from : -1;
    }
}

/* What the configuration says differently than before is set; what was set by hand otherwise stays. */
static void merge_settings(struct gpu_settings *now, const struct gpu_settings *before,
                           const struct gpu_settings *asked)
{
#define MERGE(member)                        \
    do {                                     \
        if (asked->member != before->member) \
            now->member = asked->member;     \
    } while (0)
    MERGE(power_limit_mw);
    MERGE(persistence_mode);
    MERGE(compute_mode);
    MERGE(ecc_mode);
    MERGE(ecc_mode_pending);
    MERGE(mig_mode);
    MERGE(mig_mode_pending);
#undef MERGE
}

static bool pins_equal(const struct world *a, uint32_t first_a, uint32_t n, const struct world *b,
                       uint32_t first_b)
{
    const struct signal_pool pa = world_pool(a), pb = world_pool(b);

    for (uint32_t k = 0; k < n; k++)
        if (!signal_equal(&pa, &pa.signals[first_a + k], &pb, &pb.signals[first_b + k]))
            return false;
    return true;
}

static bool same_pins(const struct applying *a, int i, int from)
{
    const struct world *w = a->st.world, *b = a->before;
    const struct gpu_plan *now = &world_gpu_plans(w)[i], *old = &world_gpu_plans(b)[from];
    const struct profile *pn = &world_profiles(w)[now->profile];
    const struct profile *po = &world_profiles(b)[old->profile];

    return !strcmp(pn->name, po->name) && now->pin_count == old->pin_count &&
           pn->pin_count == po->pin_count &&
           pins_equal(w, now->first_pin, now->pin_count, b, old->first_pin) &&
           pins_equal(w, pn->first_pin, pn->pin_count, b, po->first_pin);
}

/* A profile chosen by hand stays, too, unless the configuration now asks for another or it is gone. */
static void keep_profile(struct applying *a, int i, const struct gpu_plan *old)
{
    const struct profile *before = world_profiles(a->before), *now = world_profiles(a->st.world);
    struct gpu_plan *plan = &world_gpu_plans(a->st.world)[i];
    int chosen = profile_find(&a->cfg->profiles, before[old->profile].name);

    if (chosen >= 0 && !strcmp(before[old->configured_profile].name, now[plan->profile].name))
        plan->profile = (uint32_t)chosen;
}

static void keep_gpu(struct applying *a, int i, int from)
{
    struct world *w = a->st.world;
    struct gpu *g = &world_gpus(w)[i];
    const struct gpu_plan *old = &world_gpu_plans(a->before)[from];

    *g = world_gpus(a->before)[from];
    keep_profile(a, i, old);
    merge_settings(&g->settings, &old->configured, &world_gpu_plans(w)[i].configured);
    if (!g->settings.mig_mode)
        memset(g->gis, 0, sizeof(g->gis));
    else
        g->settings.accounting_mode = 0;
    gpu_refresh_static(&a->st, i);
    if (!same_pins(a, i, from)) {
        g->profile_since_ns = w->node.now_ns;
        gpu_read_pins(&a->st, i);
    }
}

static void move_states(struct applying *a)
{
    struct world *w = a->st.world;
    struct gpu *gpus = world_gpus(w);

    memset(gpus, 0, w->room[SECTION_GPUS] * sizeof(*gpus));
    w->used[SECTION_GPUS] = (uint32_t)a->count;
    for (int i = 0; i < a->count; i++) {
        if (a->came_from[i] >= 0) {
            keep_gpu(a, i, a->came_from[i]);
            continue;
        }
        gpu_init(&a->st, i);
        if (a->before)
            gpu_event(&a->st, i, EVENT_GPU_ADDED, 0, 0, world_gpu_plans(w)[i].uuid);
    }
    archive_assign(w, a->before, a->came_from);
}

static int went_to(const struct applying *a, int from)
{
    for (int i = 0; i < a->count; i++)
        if (a->came_from[i] == from)
            return i;
    return -1;
}

static void say_removed(struct applying *a)
{
    for (uint32_t from = 0; a->before && from < a->before->used[SECTION_GPU_PLANS]; from++) {
        const struct gpu_plan *p = &world_gpu_plans(a->before)[from];
        struct event e = { .kind = EVENT_GPU_REMOVED,
                           .gpu = -1,
                           .domain = p->domain,
                           .bus = p->bus,
                           .device = p->device,
                           .function = p->function };

        if (went_to(a, (int)from) >= 0)
            continue;
        snprintf(e.text, sizeof(e.text), "%s", p->uuid);
        world_event(a->st.store, a->st.world, &e);
    }
}

/* Shares follow their GPUs; a run that loses one of its GPUs ends. */
static void move_shares(struct applying *a)
{
    struct world *w = a->st.world;

    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++)
        world_gpus(w)[i].crowd = 0; /* counted again below */
    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++) {
        struct run *run = &world_runs(w)[k];
        bool lost = false;

        for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++) {
            struct share *share = &world_shares(w)[s];

            share->gpu = went_to(a, share->gpu);
            lost |= share->gpu < 0 ||
                    (share->gi >= 0 && !mig_has(&world_gpus(w)[share->gpu], share->gi, share->ci));
        }
        if (lost) {
            for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++)
                if (world_shares(w)[s].gpu >= 0)
                    account_end(&a->st, &world_shares(w)[s]);
            SECTION_CUT(w, SHARES, shares, run->first_share, run->share_count);
            for (uint32_t j = 0; j < w->used[SECTION_RUNS]; j++)
                section_shift(&world_runs(w)[j].first_share, run->first_share, run->share_count);
            run->share_count = 0;
            if (run->state != RUN_ENDED)
                run_end(&a->st, k, RUN_GPU_REMOVED, 0);
        }
        for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++)
            world_gpus(w)[world_shares(w)[s].gpu].crowd += run->state != RUN_ENDED;
    }
}

void applying_move_gpus(struct applying *a)
{
    move_states(a);
    move_shares(a);
    say_removed(a);
}
