/*
 * Workload plan: described workloads in a world. See workload_plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/workload_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "sim/plan.h"
#include "sim/runs.h"
#include "sim/sections.h"

void workload_cut(struct world *w, uint32_t k)
{
    const struct workload plan = world_workloads(w)[k];
    const struct run run = world_runs(w)[k];

    for (uint32_t s = 0; s < run.share_count; s++) {
        int gpu = world_shares(w)[run.first_share + s].gpu;

        world_gpus(w)[gpu].crowd -= run.state != RUN_ENDED;
        world_touch(w, SECTION_GPUS, (uint32_t)gpu, 1);
    }
    world_touch(w, SECTION_SHARES, run.first_share, w->used[SECTION_SHARES] - run.first_share);
    SECTION_CUT(w, SHARES, shares, run.first_share, run.share_count);
    SECTION_CUT(w, LIMITS, limits, plan.first_limit, plan.limit_count);
    SECTION_CUT(w, WORKLOADS, workloads, k, 1);
    SECTION_CUT(w, NAMES, names, k, 1);
    SECTION_CUT(w, RUNS, runs, k, 1);
    for (uint32_t j = k; j < w->used[SECTION_RUNS]; j++) {
        world_runs(w)[j].first_share -= run.share_count;
        world_workloads(w)[j].first_limit -= plan.limit_count;
    }
    for (uint32_t s = run.first_share; s < w->used[SECTION_SHARES]; s++)
        world_shares(w)[s].run--;
    section_cut_signals(w, plan.first_signal, plan.signal_count);
    section_cut_phases(w, plan.first_phase, plan.phase_count);
}

/* --- a workload ------------------------------------------------------------------------------ */

/* Room that a workload takes. */
uint32_t workload_shares(const struct workload_spec *spec, uint32_t gpus)
{
    const struct device_name *devices = spec->devices.items;
    uint32_t named = 0;
    bool all = false;

    if (!spec->devices.count)
        return spec->gpus < gpus ? (uint32_t)spec->gpus : gpus;
    for (size_t i = 0; i < spec->devices.count; i++)
        if (strcmp(devices[i].text, "all"))
            named++;
        else
            all = true;
    return named + (all ? gpus : 0);
}

void workload_count(const struct workload_spec *spec, uint32_t gpus, uint32_t need[SECTION_COUNT])
{
    uint32_t signals = 0, phases = 0;

    phases_count(&spec->activity, &signals, &phases);
    if (spec->memory.count)
        signal_count(spec->memory.items, &signals, &phases);
    need[SECTION_SIGNALS] += signals;
    need[SECTION_PHASES] += phases;
    need[SECTION_WORKLOADS]++;
    need[SECTION_NAMES]++;
    need[SECTION_RUNS]++;
    need[SECTION_LIMITS] += (uint32_t)spec->limits.count;
    need[SECTION_SHARES] += workload_shares(spec, gpus);
}

static void fill_signals(struct world *w, const struct workload_spec *spec, struct workload *plan)
{
    struct signal_fill fill = section_fill(w);

    plan->first_signal = fill.signal_count;
    plan->first_phase = phases_fill_add(&fill, &spec->activity);
    plan->phase_count = (uint32_t)spec->activity.count;
    plan->memory_signal = spec->memory.count ? (int32_t)signal_fill_add(&fill, &spec->memory) : -1;
    plan->signal_count = fill.signal_count - plan->first_signal;
    section_filled(w, &fill);
}

static void fill_limits(struct world *w, const struct workload_spec *spec, struct workload *plan)
{
    const struct limit_spec *limits = spec->limits.items;

    plan->first_limit = w->used[SECTION_LIMITS];
    plan->limit_count = (uint32_t)spec->limits.count;
    for (size_t i = 0; i < spec->limits.count; i++) {
        struct limit *limit = &world_limits(w)[w->used[SECTION_LIMITS]++];

        memset(limit, 0, sizeof(*limit)); /* what lies between its members, too */
        limit->target = limits[i].target;
        limit->value = limits[i].value;
    }
}

static bool same_place(const struct share *share, const struct device_place *at)
{
    return share->gpu == at->gpu && share->gi == at->gi && share->ci == at->ci;
}

static void add_share(struct stepping *st, uint32_t k, struct device_place at)
{
    struct world *w = st->world;
    struct run *run = &world_runs(w)[k];
    struct share *shares = world_shares(w), *share;

    for (uint32_t s = 0; s < run->share_count; s++)
        if (same_place(&shares[run->first_share + s], &at))
            return; /* named twice is still one */
    share = &shares[w->used[SECTION_SHARES]++];
    memset(share, 0, sizeof(*share)); /* what lies between its members, too */
    share->gpu = at.gpu;
    share->gi = (int16_t)at.gi;
    share->ci = (int16_t)at.ci;
    share->run = k;
    run->share_count++;
    world_gpus(w)[at.gpu].crowd++;
    world_touch(w, SECTION_GPUS, (uint32_t)at.gpu, 1);
}

static struct device_place whole_gpu(int gpu)
{
    return (struct device_place){ gpu, -1, -1 };
}

/* How many are on each GPU before this one, which takes none twice; -1 for one that cannot be had. */
static int *crowds_of(const struct world *w)
{
    int gpus = (int)w->used[SECTION_GPUS];
    int *crowd = malloc(((size_t)gpus + 1) * sizeof(*crowd));

    for (int i = 0; crowd && i < gpus; i++) {
        const struct gpu *g = &world_gpus(w)[i];

        crowd[i] = gpu_has(g, CONDITION_LOST) || g->settings.draining ? -1 : g->crowd;
    }
    return crowd;
}

/* GPUs with few workloads before those with more; of those with as many the first. Says how many. */
static int64_t add_least_crowded(struct stepping *st, uint32_t k, int64_t wanted, const int *crowd)
{
    int gpus = (int)st->world->used[SECTION_GPUS], next;
    int64_t n = 0;

    for (int level = 0; n < wanted && level < INT_MAX; level = next) {
        next = INT_MAX;
        for (int i = 0; i < gpus && n < wanted; i++) {
            if (crowd[i] == level) {
                add_share(st, k, whole_gpu(i));
                n++;
            } else if (crowd[i] > level && crowd[i] < next) {
                next = crowd[i];
            }
        }
    }
    return n;
}

static int add_least_busy(struct stepping *st, uint32_t k, int64_t wanted, struct why *why)
{
    int *crowd = crowds_of(st->world);
    int64_t n;

    if (!crowd)
        return why_set(why, ENOMEM, "out of memory");
    n = add_least_crowded(st, k, wanted, crowd);
    free(crowd);
    if (n < wanted)
        return why_set(why, ENODEV,
                       "workload '%s' asks for %" PRId64 " GPUs; %" PRId64 " can be had",
                       world_workloads(st->world)[k].name, wanted, n);
    return 0;
}

static int add_devices(struct stepping *st, uint32_t k, const struct workload_spec *spec,
                       struct why *why)
{
    const struct world *w = st->world;
    const struct device_name *devices = spec->devices.items;

    if (!spec->devices.count)
        return add_least_busy(st, k, spec->gpus, why);
    for (size_t i = 0; i < spec->devices.count; i++) {
        struct device_place at;

        if (!strcmp(devices[i].text, "all")) {
            for (int j = 0; j < (int)w->used[SECTION_GPUS]; j++)
                add_share(st, k, whole_gpu(j));
        } else if (!plan_find_device(w, devices[i].text, &at)) {
            return why_set(why, ENODEV, "workload '%s': there is no GPU '%s'",
                           world_workloads(w)[k].name, devices[i].text);
        } else {
            add_share(st, k, at);
        }
    }
    return 0;
}

uint64_t workload_hash(const struct workload_spec *spec)
{
    struct text text = TEXT_INIT;
    uint64_t hash;

    bind_print(&text, &workload_table, spec, 0);
    hash = rng_hash(spec->devices.count, text_str(&text));
    text_release(&text);
    return hash;
}

/* Writes the workload behind the others. The copy must have room. */
int workload_append(struct stepping *st, const struct workload_spec *spec, double capability,
                    int from_config, struct why *why)
{
    struct world *w = st->world;
    uint32_t k = w->used[SECTION_WORKLOADS]++;
    struct workload *plan = &world_workloads(w)[k];
    struct run *run = &world_runs(w)[w->used[SECTION_RUNS]++];
    uint32_t signals = w->used[SECTION_SIGNALS], phases = w->used[SECTION_PHASES];
    int r;

    *plan = (struct workload){
        .id = ++w->node.next_workload,
        .spec_hash = workload_hash(spec),
        .pid = (int32_t)spec->pid,
        .uid = (uint32_t)spec->uid,
        .from_config = from_config,
        .attached = spec->attached,
        .repeat = spec->repeat,
        .start_ns = spec->start_ns,
        .sample_ns = spec->sample_ns,
        .capability = capability,
    };
    memcpy(plan->name, spec->name, sizeof(plan->name));
    memcpy(plan->namespace, spec->namespace, sizeof(plan->namespace));
    memcpy(plan->pod, spec->pod, sizeof(plan->pod));
    memcpy(plan->container, spec->container, sizeof(plan->container));
    world_names(w)[w->used[SECTION_NAMES]++] = workload_name_hash(plan->name);
    *run = (struct run){ .first_share = w->used[SECTION_SHARES] };
    fill_signals(w, spec, plan);
    fill_limits(w, spec, plan);
    world_touch(w, SECTION_WORKLOADS, k, 1);
    world_touch(w, SECTION_NAMES, k, 1);
    world_touch(w, SECTION_SIGNALS, signals, w->used[SECTION_SIGNALS] - signals);
    world_touch(w, SECTION_PHASES, phases, w->used[SECTION_PHASES] - phases);
    world_touch(w, SECTION_LIMITS, plan->first_limit, plan->limit_count);
    r = add_devices(st, k, spec, why);
    if (r == 0 && w->node.now_ns >= plan->start_ns)
        r = run_start(st, k, why);
    world_touch(w, SECTION_RUNS, k, 1);
    world_touch(w, SECTION_SHARES, run->first_share, run->share_count);
    return r;
}

double workload_capability(const struct model_set *models, const struct workload_spec *spec)
{
    const struct gpu_model *m = *spec->model ? model_find(models, spec->model) : NULL;

    return m ? model_capability(m) : 0;
}

/* Of those on the same GPUs most often none has to be looked at. */
static void settle_last(struct stepping *st)
{
    uint32_t k = st->world->used[SECTION_WORKLOADS] - 1;
    const struct run *run = &world_runs(st->world)[k];
    struct gpu_set gpus = { 0 };

    gpu_set_add_run(&gpus, st->world, run);
    if (!loads_settle_last(st, k)) {
        plan_settle(st, &gpus);
        return;
    }
    for (uint32_t s = 0; s < run->share_count; s++)
        gpu_step(st, world_shares(st->world)[run->first_share + s].gpu);
}

int plan_add_workload(struct world_store *store, const struct workload_spec *spec,
                      const struct model_set *models, uint64_t *id, struct why *why)
{
    const struct world *current = world_current(store);
    uint32_t need[SECTION_COUNT];
    struct stepping st = { .store = store };
    int r;

    if (!workload_name_ok(spec->name))
        return why_set(why, EINVAL, "'%s' is not a name for a workload", spec->name);
    if (plan_find_workload(current, spec->name) >= 0)
        return why_set(why, EEXIST, "there is a workload '%s' already", spec->name);
    if (*spec->model && !model_find(models, spec->model))
        return why_set(why, EINVAL, "'%s' is not a model", spec->model);
    if (current->used[SECTION_WORKLOADS] >= CONFIG_WORKLOADS_MAX)
        return why_set(why, ENOSPC, "there are %d workloads already", CONFIG_WORKLOADS_MAX);
    memcpy(need, current->used, sizeof(need));
    workload_count(spec, current->used[SECTION_GPUS], need);
    st.world = world_begin_part(store, need, why);
    if (!st.world)
        return -ENOMEM;
    r = workload_append(&st, spec, workload_capability(models, spec), false, why);
    if (r < 0)
        return r;
    if (id)
        *id = st.world->node.next_workload;
    settle_last(&st);
    world_commit(store, st.world);
    return 0;
}

/* --- a workload described again -------------------------------------------------------------- */

static bool describe_signals(const struct world *w, uint32_t first, uint32_t n, struct arena *arena,
                             struct bind_list *list)
{
    struct signal_spec *specs = arena_alloc(arena, (n + 1) * sizeof(*specs));

    for (uint32_t i = 0; specs && i < n; i++)
        specs[i].signal = world_signals(w)[first + i];
    *list = (struct bind_list){ specs, n };
    return specs;
}

static bool describe_activity(const struct world *w, const struct workload *plan,
                              struct arena *arena, struct bind_list *list)
{
    struct phase_spec *specs = arena_alloc(arena, (plan->phase_count + 1) * sizeof(*specs));
    int64_t start = 0;

    for (uint32_t i = 0; specs && i < plan->phase_count; i++) {
        const struct phase *phase = &world_phases(w)[plan->first_phase + i];

        specs[i].time_ns = phase->end_ns == PHASE_FOREVER ? PHASE_FOREVER : phase->end_ns - start;
        start = phase->end_ns;
        if (!describe_signals(w, phase->first, phase->count, arena, &specs[i].signals))
            return false;
    }
    *list = (struct bind_list){ specs, plan->phase_count };
    return specs;
}

static bool describe_devices(const struct world *w, const struct run *run, struct arena *arena,
                             struct bind_list *list)
{
    struct device_name *names = arena_alloc(arena, (run->share_count + 1) * sizeof(*names));

    for (uint32_t s = 0; names && s < run->share_count; s++) {
        const struct share *share = &world_shares(w)[run->first_share + s];
        const char *uuid = world_gpu_plans(w)[share->gpu].uuid;

        if (share->gi < 0)
            snprintf(names[s].text, sizeof(names[s].text), "%s", uuid);
        else
            mig_uuid(uuid, share->gi, share->ci, names[s].text, sizeof(names[s].text));
    }
    *list = (struct bind_list){ names, run->share_count };
    return names;
}

static bool describe_limits(const struct world *w, const struct workload *plan, struct arena *arena,
                            struct bind_list *list)
{
    struct limit_spec *specs = arena_alloc(arena, (plan->limit_count + 1) * sizeof(*specs));

    for (uint32_t i = 0; specs && i < plan->limit_count; i++) {
        const struct limit *l = &world_limits(w)[plan->first_limit + i];

        specs[i] = (struct limit_spec){ l->target, l->value };
    }
    *list = (struct bind_list){ specs, plan->limit_count };
    return specs;
}

int plan_describe_workload(const struct world *w, int k, struct workload_spec *spec,
                           struct arena *arena)
{
    const struct workload *plan = &world_workloads(w)[k];
    const struct run *run = &world_runs(w)[k];

    workload_spec_init(spec);
    memcpy(spec->name, plan->name, sizeof(spec->name));
    memcpy(spec->namespace, plan->namespace, sizeof(spec->namespace));
    memcpy(spec->pod, plan->pod, sizeof(spec->pod));
    memcpy(spec->container, plan->container, sizeof(spec->container));
    spec->pid = plan->pid;
    spec->uid = plan->uid;
    spec->repeat = plan->repeat;
    spec->start_ns = plan->start_ns;
    spec->sample_ns = plan->sample_ns;
    if (plan->memory_signal >= 0 &&
        !describe_signals(w, (uint32_t)plan->memory_signal, 1, arena, &spec->memory))
        return -ENOMEM;
    return describe_activity(w, plan, arena, &spec->activity) &&
                   describe_devices(w, run, arena, &spec->devices) &&
                   describe_limits(w, plan, arena, &spec->limits)
               ? 0
               : -ENOMEM;
}

/* What a run has behind it, for one that goes on under another description. */
static void run_continue(struct run *run, const struct run *before)
{
    run->state = before->state;
    run->started_ns = before->started_ns;
    run->progress_ns = before->progress_ns;
    run->energy_start_mj = before->energy_start_mj;
    run->rng = before->rng;
}

/* The share of a run at that place, or NULL. */
static struct share *share_at(struct world *w, const struct run *run, const struct share *place)
{
    struct device_place at = { place->gpu, place->gi, place->ci };

    for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++)
        if (same_place(&world_shares(w)[s], &at))
            return &world_shares(w)[s];
    return NULL;
}

/*
 * A workload that ran and is described again stays the process that it was: on GPUs that it keeps, its
 * account goes on; from the others it is gone. `old` are its shares from before, if it ran.
 */
static void keep_accounts(struct stepping *st, uint32_t k, struct share *old, uint32_t n)
{
    struct world *w = st->world;
    const struct run *run = &world_runs(w)[k];

    for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++)
        if (world_shares(w)[s].account.workload)
            world_shares(w)[s].account.workload = world_workloads(w)[k].id;
    for (uint32_t i = 0; i < n; i++) {
        struct share *now = run->state == RUN_RUNNING ? share_at(w, run, &old[i]) : NULL;

        old[i].run = k;
        if (now)
            now->account = old[i].account;
        else if (old[i].account.start_ns < w->node.now_ns)
            account_end(st, &old[i]);
    }
}

int plan_replace_workload(struct world_store *store, const char *name,
                          const struct workload_spec *spec, const struct model_set *models,
                          bool restart, struct why *why)
{
    const struct world *current = world_current(store);
    int k = plan_find_workload(current, name), r;
    uint32_t need[SECTION_COUNT];
    struct stepping st = { .store = store };
    struct workload old;
    struct run before, *run;
    struct share *shares;
    struct gpu_set gpus = { 0 };
    double capability;

    if (k < 0)
        return why_set(why, ENOENT, "there is no workload '%s'", name);
    memcpy(need, current->used, sizeof(need));
    workload_count(spec, current->used[SECTION_GPUS], need);
    st.world = world_begin_part(store, need, why);
    if (!st.world)
        return -ENOMEM;
    old = world_workloads(st.world)[k];
    before = world_runs(st.world)[k];
    capability = *spec->model ? workload_capability(models, spec) : old.capability;
    shares = malloc((before.share_count + 1) * sizeof(*shares));
    if (!shares)
        return why_set(why, ENOMEM, "out of memory");
    memcpy(shares, &world_shares(st.world)[before.first_share],
           before.share_count * sizeof(*shares));
    gpu_set_add_run(&gpus, st.world, &before);
    workload_cut(st.world, (uint32_t)k);
    for (uint32_t s = 0; s < before.share_count; s++) /* what it had is free for it again */
        world_gpus(st.world)[shares[s].gpu].load.channel[CHANNEL_MEMORY] -=
            (double)shares[s].memory_bytes;
    r = workload_append(&st, spec, capability, old.from_config, why);
    if (r < 0) {
        free(shares);
        return r;
    }
    k = (int)st.world->used[SECTION_WORKLOADS] - 1;
    world_workloads(st.world)[k].id = old.id;
    world_workloads(st.world)[k].attached = old.attached;
    run = &world_runs(st.world)[k];
    if (!restart && before.state == RUN_RUNNING && run->state == RUN_RUNNING)
        run_continue(run, &before);
    keep_accounts(&st, (uint32_t)k, shares, before.state == RUN_RUNNING ? before.share_count : 0);
    free(shares);
    gpu_set_add_run(&gpus, st.world, run);
    plan_settle(&st, &gpus);
    world_commit(store, st.world);
    return 0;
}

int plan_remove_workload(struct world_store *store, const char *name, struct why *why)
{
    int k = plan_find_workload(world_current(store), name);
    struct stepping st = { .store = store };
    struct gpu_set gpus = { 0 };

    if (k < 0)
        return why_set(why, ENOENT, "there is no workload '%s'", name);
    st.world = world_begin_part(store, NULL, why);
    if (!st.world)
        return -ENOMEM;
    gpu_set_add_run(&gpus, st.world, &world_runs(st.world)[k]);
    if (world_runs(st.world)[k].state == RUN_RUNNING)
        run_end(&st, (uint32_t)k, RUN_STOPPED, 0);
    workload_cut(st.world, (uint32_t)k);
    plan_settle(&st, &gpus);
    world_commit(store, st.world);
    return 0;
}
