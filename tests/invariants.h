/*
 * Invariants: what is true of every world, after every command and every step.
 *
 *     struct invariants iv = INVARIANTS_INIT;
 *
 *     sim_step(sim);
 *     if (!invariants_hold(&iv, sim))
 *         puts(text_str(&iv.broken));
 *     invariants_release(&iv);
 *
 * It remembers the world it saw last, for what may only grow: show it one world after the other, and
 * every one of them, as a GPU that goes and comes back begins anew. It looks at the published world
 * and changes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_INVARIANTS_H
#define TESTS_INVARIANTS_H

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"
#include "sim/runs.h"
#include "sim/sim.h"
#include "sim/text.h"

/* A fuzzer is to explore the simulator, not this. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif

/* A GPU as it was when it was last looked at. */
struct seen_gpu {
    char uuid[48], model[32];
    struct gpu gpu;
};

struct invariants {
    struct text broken;    /* the first that does not hold, as a sentence; owned */
    struct seen_gpu *seen; /* owned */
    uint32_t seen_count;
    struct node node; /* likewise */
};

/* clang-format off */
#define INVARIANTS_INIT { 0 }
/* clang-format on */

/* Only the first that is broken is told: the others mostly follow from it. */
#define HOLDS(iv, condition, ...)                  \
    do {                                           \
        if (!(condition) && !(iv)->broken.length)  \
            text_addf(&(iv)->broken, __VA_ARGS__); \
    } while (0)

static inline bool invariant_inside(const struct world *w, enum world_section section,
                                    uint64_t first, uint64_t count)
{
    return first + count <= w->used[section];
}

/* --- the parts fit together ------------------------------------------------------------------ */

static inline void invariant_sections(struct invariants *iv, const struct world *w)
{
    for (int k = 0; k < SECTION_COUNT; k++) {
        HOLDS(iv, w->used[k] <= w->room[k], "section %d uses %u of %u places", k, w->used[k],
              w->room[k]);
        HOLDS(iv, w->offset[k] < w->bytes || !w->room[k], "section %d lies behind the world", k);
    }
    HOLDS(iv, w->used[SECTION_GPUS] == w->used[SECTION_GPU_PLANS], "a GPU has no plan");
    HOLDS(iv, w->used[SECTION_RUNS] == w->used[SECTION_WORKLOADS], "a run has no workload");
    HOLDS(iv, w->used[SECTION_FAULTS] == w->used[SECTION_DUE], "a planned fault is never due");
    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++) {
        const struct gpu_plan *p = &world_gpu_plans(w)[i];

        HOLDS(iv,
              plan_find_uuid(w, p->uuid) == (int)i && plan_find_minor(w, p->minor) == (int)i &&
                  plan_find_bus(w, p->domain, p->bus, p->device, p->function) == (int)i &&
                  (p->node < 0 || plan_find_node(w, world_nodes(w)[p->node].name) == p->node),
              "GPU %u is not found by its names", i);
    }
    HOLDS(iv, w->used[SECTION_NAMES] == w->used[SECTION_WORKLOADS], "a workload has no name");
    for (uint32_t k = 0; k < w->used[SECTION_NAMES]; k++)
        HOLDS(iv, world_names(w)[k] == workload_name_hash(world_workloads(w)[k].name),
              "workload %u is looked for by another name than '%s'", k, world_workloads(w)[k].name);
}

/*
 * A change that is begun is begun in an equal world: all that the last one touched was copied, and all that
 * one touched which was refused. It is dropped at once.
 */
static inline void invariant_copies(struct invariants *iv, const struct sim *sim)
{
    const struct world *now = sim_world(sim);
    const struct world *next = world_begin_part((struct world_store *)(uintptr_t)sim_store(sim),
                                                NULL, NULL);

    HOLDS(iv, next, "there is no room for a change");
    for (int k = 0; next && k < SECTION_COUNT; k++)
        HOLDS(iv,
              next->used[k] == now->used[k] &&
                  !memcmp((const char *)next + next->offset[k], (const char *)now + now->offset[k],
                          world_section_bytes(now, (enum world_section)k)),
              "section %d of the other copy is not what was published", k);
}

/* A command works out what follows for the GPUs that it concerns: for all of them nothing else would come out. */
static inline void invariant_settled(struct invariants *iv, const struct sim *sim)
{
    struct world_store *store = (struct world_store *)(uintptr_t)sim_store(sim);
    const struct world *now = sim_world(sim);
    struct stepping st = { .store = store, .world = world_begin(store, NULL, NULL) };

    if (!st.world)
        return;
    runs_step(&st);
    for (uint32_t i = 0; i < now->used[SECTION_GPUS]; i++)
        HOLDS(iv,
              !memcmp(&world_gpus(st.world)[i].load, &world_gpus(now)[i].load, sizeof(struct load)),
              "the load of GPU %u is not what is asked of it", i);
    for (uint32_t k = 0; k < now->used[SECTION_SHARES]; k++) {
        const struct share *share = &world_shares(now)[k], *again = &world_shares(st.world)[k];

        HOLDS(iv,
              share->memory_bytes == again->memory_bytes &&
                  share->utilization_percent == again->utilization_percent &&
                  !memcmp(share->engines, again->engines, sizeof(share->engines)),
              "share %u is not what its GPU gives it", k);
    }
}

static inline void invariant_signals(struct invariants *iv, const struct world *w)
{
    for (uint32_t k = 0; k < w->used[SECTION_SIGNALS]; k++) {
        const struct signal *s = &world_signals(w)[k];

        HOLDS(iv, s->kind < SIGNAL_KINDS, "signal %u is of kind %d", k, s->kind);
        HOLDS(iv, invariant_inside(w, SECTION_PHASES, s->first, s->count),
              "the phases of signal %u are %u and %u more", k, s->first, s->count);
    }
    for (uint32_t k = 0; k < w->used[SECTION_PHASES]; k++) {
        const struct phase *p = &world_phases(w)[k];

        HOLDS(iv, invariant_inside(w, SECTION_SIGNALS, p->first, p->count),
              "the signals of phase %u are %u and %u more", k, p->first, p->count);
        HOLDS(iv, !k || p[-1].first <= p->first, "phase %u refers before phase %u", k, k - 1);
    }
}

static inline void invariant_faults(struct invariants *iv, const struct world *w)
{
    for (uint32_t k = 0; k < w->used[SECTION_FAULTS]; k++)
        HOLDS(iv, world_faults(w)[k].gpu < (int)w->used[SECTION_GPUS],
              "planned fault %u is for GPU %d", k, world_faults(w)[k].gpu);
}

static inline void invariant_link(struct invariants *iv, const struct world *w, int i, int l)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    const struct link_plan *link = &plans[i].links[l], *back;

    if (link->peer != LINK_GPU)
        return;
    if (link->peer_gpu < 0 || link->peer_gpu >= (int)w->used[SECTION_GPUS] ||
        link->peer_link >= NVLINK_LINKS_MAX) {
        HOLDS(iv, false, "link %d of GPU %d leads to link %d of GPU %d", l, i, link->peer_link,
              link->peer_gpu);
        return;
    }
    back = &plans[link->peer_gpu].links[link->peer_link];
    HOLDS(iv, back->peer == LINK_GPU && back->peer_gpu == i && back->peer_link == l,
          "link %d of GPU %d leads to link %d of GPU %d, which does not lead back", l, i,
          link->peer_link, link->peer_gpu);
}

static inline void invariant_gpu_plan(struct invariants *iv, const struct world *w, int i)
{
    const struct gpu_plan *p = &world_gpu_plans(w)[i];

    HOLDS(iv, p->model < w->used[SECTION_MODELS], "GPU %d has model %u", i, p->model);
    HOLDS(iv,
          p->profile < w->used[SECTION_PROFILES] &&
              p->configured_profile < w->used[SECTION_PROFILES],
          "GPU %d has profile %u", i, p->profile);
    HOLDS(iv, invariant_inside(w, SECTION_SIGNALS, p->first_pin, p->pin_count),
          "GPU %d has %u pins from %u on", i, p->pin_count, p->first_pin);
    HOLDS(iv, plan_find_gpu(w, p->uuid) == i, "GPU %d is not found by its UUID %s", i, p->uuid);
    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        invariant_link(iv, w, i, l);
}

/* --- workloads ------------------------------------------------------------------------------- */

static inline void invariant_workload(struct invariants *iv, const struct world *w, uint32_t k)
{
    const struct workload *plan = &world_workloads(w)[k];

    HOLDS(iv, workload_name_ok(plan->name), "workload %u is called '%s'", k, plan->name);
    HOLDS(iv, plan_find_workload(w, plan->name) == (int)k, "two workloads are called '%s'",
          plan->name);
    HOLDS(iv, invariant_inside(w, SECTION_SIGNALS, plan->first_signal, plan->signal_count),
          "workload '%s' has %u signals from %u on", plan->name, plan->signal_count,
          plan->first_signal);
    HOLDS(iv, invariant_inside(w, SECTION_PHASES, plan->first_phase, plan->phase_count),
          "workload '%s' has %u phases from %u on", plan->name, plan->phase_count,
          plan->first_phase);
    HOLDS(iv, invariant_inside(w, SECTION_LIMITS, plan->first_limit, plan->limit_count),
          "workload '%s' has %u limits from %u on", plan->name, plan->limit_count,
          plan->first_limit);
    HOLDS(iv, plan->memory_signal < (int)w->used[SECTION_SIGNALS],
          "the memory of workload '%s' is signal %d", plan->name, plan->memory_signal);
    if (k)
        HOLDS(iv,
              plan[-1].first_signal <= plan->first_signal &&
                  plan[-1].first_phase <= plan->first_phase &&
                  plan[-1].first_limit <= plan->first_limit &&
                  world_runs(w)[k - 1].first_share <= world_runs(w)[k].first_share,
              "workload '%s' refers before the one before it", plan->name);
}

static inline void invariant_run(struct invariants *iv, const struct world *w, uint32_t k)
{
    const struct workload *plan = &world_workloads(w)[k];
    const struct run *run = &world_runs(w)[k];
    struct text message = TEXT_INIT;

    HOLDS(iv, run->state <= RUN_ENDED, "run '%s' is in state %u", plan->name, run->state);
    HOLDS(iv, invariant_inside(w, SECTION_SHARES, run->first_share, run->share_count),
          "run '%s' has %u shares from %u on", plan->name, run->share_count, run->first_share);
    HOLDS(iv, run->progress_ns >= 0, "run '%s' is at %" PRId64 " ns", plan->name, run->progress_ns);
    if (run->state == RUN_RUNNING && plan->phase_count)
        HOLDS(iv, run->phase - plan->first_phase < plan->phase_count,
              "run '%s' is in phase %u, and has %u from %u on", plan->name, run->phase,
              plan->phase_count, plan->first_phase);
    if (run->state == RUN_ENDED)
        HOLDS(iv,
              run->exit_code == (run->reason == RUN_FINISHED || run->reason == RUN_STOPPED ? 0 : 1),
              "run '%s' ended with exit code %d for reason %d", plan->name, run->exit_code,
              run->reason);
    run_message(&message, run);
    HOLDS(iv, message.length || run->state != RUN_ENDED || run->reason == RUN_FINISHED,
          "run '%s' ended without a word", plan->name);
    text_release(&message);
}

/* GPUs count who is on them. */
static inline void invariant_crowds(struct invariants *iv, const struct world *w)
{
    int32_t *crowd = calloc(w->used[SECTION_GPUS] + 1, sizeof(*crowd));

    for (uint32_t s = 0; crowd && s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        crowd[share->gpu] += world_runs(w)[share->run].state != RUN_ENDED;
    }
    for (uint32_t i = 0; crowd && i < w->used[SECTION_GPUS]; i++)
        HOLDS(iv, world_gpus(w)[i].crowd == crowd[i], "GPU %u has %d workloads and counts %d", i,
              crowd[i], world_gpus(w)[i].crowd);
    free(crowd);
}

/* Every share belongs to one run, and that run says so. */
static inline void invariant_shares(struct invariants *iv, const struct world *w)
{
    uint32_t counted = 0;

    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++) {
        const struct run *run = &world_runs(w)[k];

        counted += run->share_count;
        for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++) {
            const struct share *share = &world_shares(w)[s];

            HOLDS(iv, share->run == k, "share %u of run %u says it is of run %u", s, k, share->run);
            HOLDS(iv, share->gpu >= 0 && share->gpu < (int)w->used[SECTION_GPUS],
                  "share %u is on GPU %d", s, share->gpu);
            HOLDS(iv,
                  share->memory_bytes >= 0 && (run->state == RUN_RUNNING || !share->memory_bytes),
                  "share %u of run %u (state %u) has %" PRId64 " bytes", s, k, run->state,
                  share->memory_bytes);
            HOLDS(iv,
                  run->state == RUN_ENDED || share->gi < 0 ||
                      mig_has(&world_gpus(w)[share->gpu], share->gi, share->ci),
                  "share %u is on instance %d:%d:%d", s, share->gpu, share->gi, share->ci);
            HOLDS(iv,
                  !share->account.workload ||
                      (run->state == RUN_RUNNING &&
                       share->account.workload == world_workloads(w)[k].id &&
                       share->account.start_ns <= w->node.now_ns &&
                       world_gpus(w)[share->gpu].settings.accounting_mode),
                  "share %u has an account of workload %" PRIu64, s, share->account.workload);
            HOLDS(iv,
                  share->utilization_percent >= 0 &&
                      share->utilization_percent <= 100e3 * (1 + 1e-9),
                  "share %u uses %f / 1000 %% of its GPU", s, share->utilization_percent);
        }
    }
    HOLDS(iv, counted == w->used[SECTION_SHARES], "%u shares belong to runs, of %u", counted,
          w->used[SECTION_SHARES]);
}

/* --- one GPU --------------------------------------------------------------------------------- */

/* A GPU with all it concerns. */
struct invariant_look {
    struct invariants *iv;
    const struct world *w;
    int i;
    const struct gpu *g;
    const struct gpu_plan *plan;
    const struct gpu_model *m;
    const int64_t *v; /* its metrics */
};

#define GPU_HOLDS(at, condition, fmt, ...) \
    HOLDS((at)->iv, condition, "GPU %d (%s): " fmt, (at)->i, (at)->m->name, __VA_ARGS__)

static inline bool invariant_pinned(const struct invariant_look *at, enum metric id)
{
    return metric_mask_has(&at->g->pinned, id);
}

static inline void invariant_numbers(const struct invariant_look *at)
{
    const struct gpu *g = at->g;
    const double all[] = { g->clock_khz,   g->temperature_c, g->memory_temperature_c,
                           g->fan_percent, g->thermal_cap,   g->power_noise };

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        GPU_HOLDS(at, isfinite(all[k]), "number %zu of its state is %f", k, all[k]);
    for (int c = 0; c < CHANNEL_COUNT; c++)
        GPU_HOLDS(at, isfinite(g->load.channel[c]) && g->load.channel[c] >= 0,
                  "the load of %s is %f", channel_infos[c].name, g->load.channel[c]);
}

/* The invariant_highest that a metric's unit allows, or that the board can do. */
static inline int64_t invariant_highest(const struct invariant_look *at, int id)
{
    switch (id) {
    case METRIC_PCIE_TX:
    case METRIC_PCIE_RX:
    case METRIC_NVLINK_TX:
    case METRIC_NVLINK_RX:
    case METRIC_MEMORY_USED:
        return (int64_t)gpu_metric_limit(at->w, at->i, id);
    default:
        break;
    }
    switch (metric_infos[id].unit) {
    case UNIT_PERCENT:
        return 100000;
    case UNIT_RATIO:
        return 1000000;
    default:
        return INT64_MAX;
    }
}

static inline void invariant_ranges(const struct invariant_look *at)
{
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!metric_mask_has(&at->g->sample.valid, (enum metric)id) ||
            metric_infos[id].unit == UNIT_CELSIUS)
            continue;
        GPU_HOLDS(at, at->v[id] >= 0 && at->v[id] <= invariant_highest(at, id), "%s is %" PRId64,
                  metric_infos[id].name, at->v[id]);
    }
}

/* What is in use is what the workloads have taken, unless it is dictated. */
static inline void invariant_memory(const struct invariant_look *at)
{
    int64_t capacity = at->plan->memory_bytes - at->m->memory.reserved_bytes, taken = 0;
    const int64_t *v = at->v;

    GPU_HOLDS(at,
              v[METRIC_MEMORY_USED] + v[METRIC_MEMORY_FREE] + v[METRIC_MEMORY_RESERVED] ==
                  v[METRIC_MEMORY_TOTAL],
              "%" PRId64 " bytes used + %" PRId64 " free + %" PRId64 " reserved are not %" PRId64,
              v[METRIC_MEMORY_USED], v[METRIC_MEMORY_FREE], v[METRIC_MEMORY_RESERVED],
              v[METRIC_MEMORY_TOTAL]);
    if (invariant_pinned(at, METRIC_MEMORY_USED))
        return;
    for (uint32_t s = 0; s < at->w->used[SECTION_SHARES]; s++)
        if (world_shares(at->w)[s].gpu == at->i)
            taken += world_shares(at->w)[s].memory_bytes;
    GPU_HOLDS(at, v[METRIC_MEMORY_USED] == (taken < capacity ? taken : capacity),
              "%" PRId64 " bytes are used, workloads have taken %" PRId64, v[METRIC_MEMORY_USED],
              taken);
}

static inline void invariant_clocks(const struct invariant_look *at)
{
    const struct model_clocks *c = &at->m->clocks;
    const int64_t *v = at->v;

    GPU_HOLDS(at,
              v[METRIC_CLOCK_SM] <= c->sm.max_khz &&
                  (v[METRIC_CLOCK_SM] >= c->sm.min_khz || invariant_pinned(at, METRIC_CLOCK_SM)),
              "the SM clock is %" PRId64 " kHz", v[METRIC_CLOCK_SM]);
    GPU_HOLDS(at,
              v[METRIC_CLOCK_MEMORY] <= c->memory.items[0] &&
                  (v[METRIC_CLOCK_MEMORY] >= c->memory.items[c->memory.count - 1] ||
                   invariant_pinned(at, METRIC_CLOCK_MEMORY)),
              "the memory clock is %" PRId64 " kHz", v[METRIC_CLOCK_MEMORY]);
    GPU_HOLDS(at, v[METRIC_CLOCK_VIDEO] <= c->video.max_khz, "the video clock is %" PRId64 " kHz",
              v[METRIC_CLOCK_VIDEO]);
    GPU_HOLDS(at, v[METRIC_CLOCK_GRAPHICS] == v[METRIC_CLOCK_SM],
              "the graphics clock is %" PRId64 " kHz, the SM clock %" PRId64,
              v[METRIC_CLOCK_GRAPHICS], v[METRIC_CLOCK_SM]);
}

static inline void invariant_power(const struct invariant_look *at)
{
    int64_t limit = at->g->settings.power_limit_mw;

    GPU_HOLDS(at, limit >= at->m->power.min_mw && limit <= at->m->power.max_mw,
              "the power limit is %" PRId64 " mW", limit);
    GPU_HOLDS(at, invariant_pinned(at, METRIC_POWER_USAGE) || at->v[METRIC_POWER_USAGE] <= limit,
              "it draws %" PRId64 " mW, and the limit is %" PRId64, at->v[METRIC_POWER_USAGE],
              limit);
    GPU_HOLDS(at, at->v[METRIC_ENERGY_TOTAL] == at->g->energy_uj / 1000,
              "its energy is %" PRId64 " mJ and %" PRId64 " uJ", at->v[METRIC_ENERGY_TOTAL],
              at->g->energy_uj);
}

static inline void invariant_health(const struct invariant_look *at)
{
    const int64_t *v = at->v;
    int64_t banks = 0;

    /* It would have switched itself off. */
    GPU_HOLDS(at,
              invariant_pinned(at, METRIC_TEMPERATURE_GPU) ||
                  v[METRIC_TEMPERATURE_GPU] <= at->m->thermal.shutdown_mc,
              "it is at %" PRId64 " / 1000 C", v[METRIC_TEMPERATURE_GPU]);
    GPU_HOLDS(at, v[METRIC_PSTATE] <= 15, "it is in P%" PRId64, v[METRIC_PSTATE]);
    for (int id = METRIC_REMAP_BANKS_MAX_COUNT; id <= METRIC_REMAP_BANKS_NONE_COUNT; id++)
        banks += v[id];
    GPU_HOLDS(at, banks == at->m->ecc.row_remap_banks, "it has %" PRId64 " of %" PRId64 " banks",
              banks, at->m->ecc.row_remap_banks);
}

/* Instances stand side by side on the GPU's slices, and only while MIG is on. */
static inline void invariant_mig(const struct invariant_look *at)
{
    const struct gpu *g = at->g;
    uint64_t taken = 0;

    GPU_HOLDS(at, g->settings.mig_mode || !mig_any(g), "it has MIG instances, and MIG is %s",
              "off");
    for (int i = 0; i < MIG_GIS_MAX; i++) {
        const struct mig_gi *gi = &g->gis[i];
        const struct mig_profile *p = &at->m->mig.items[gi->profile];
        uint64_t slices = ((UINT64_C(1) << p->size) - 1) << gi->start;
        int64_t compute = 0;

        if (!gi->used)
            continue;
        for (int k = 0; k < MIG_CIS_MAX; k++)
            compute += gi->cis[k].slices;
        GPU_HOLDS(at, gi->profile < at->m->mig.count, "instance %d is of profile %d", i,
                  gi->profile);
        GPU_HOLDS(at, !(taken & slices) && gi->start + p->size <= 8,
                  "instance %d (%s) overlaps at %d", i, p->name, gi->start);
        GPU_HOLDS(at, compute <= p->slices, "instance %d (%s) has given away %" PRId64 " slices", i,
                  p->name, compute);
        taken |= slices;
    }
}

/* --- what may only grow ---------------------------------------------------------------------- */

static inline const struct seen_gpu *invariant_seen(const struct invariant_look *at)
{
    const struct invariants *iv = at->iv;

    for (uint32_t k = 0; k < iv->seen_count; k++) {
        /* Mostly GPUs stay where they are. */
        const struct seen_gpu *seen = &iv->seen[(k + (uint32_t)at->i) % iv->seen_count];

        if (!strcmp(seen->uuid, at->plan->uuid) && !strcmp(seen->model, at->m->name))
            return seen;
    }
    return NULL;
}

/* A dictated counter is whatever it is told to be; volatile ones begin anew with a reset. */
static inline bool invariant_may_fall(const struct gpu *before, const struct gpu *now,
                                      enum metric id)
{
    if (metric_mask_has(&before->pinned, id) || metric_mask_has(&now->pinned, id))
        return true;
    switch (id) {
    case METRIC_ECC_SBE_VOLATILE_TOTAL:
        return now->ecc_sbe_before != before->ecc_sbe_before;
    case METRIC_ECC_DBE_VOLATILE_TOTAL:
        return now->ecc_dbe_before != before->ecc_dbe_before;
    /* These follow their volatile ones, which may be dictated while the GPU is lost. */
    case METRIC_ECC_SBE_AGGREGATE_TOTAL:
        return gpu_has(before, CONDITION_LOST) ||
               invariant_may_fall(before, now, METRIC_ECC_SBE_VOLATILE_TOTAL);
    case METRIC_ECC_DBE_AGGREGATE_TOTAL:
        return gpu_has(before, CONDITION_LOST) ||
               invariant_may_fall(before, now, METRIC_ECC_DBE_VOLATILE_TOTAL);
    default:
        return false;
    }
}

static inline void invariant_counters(const struct invariant_look *at, const struct gpu *before)
{
    const struct metric_sample *was = &before->sample, *is = &at->g->sample;

    for (int id = 0; id < METRIC_COUNT; id++)
        if (metric_infos[id].kind == METRIC_KIND_COUNTER &&
            metric_mask_has(&was->valid, (enum metric)id) &&
            metric_mask_has(&is->valid, (enum metric)id) &&
            !invariant_may_fall(before, at->g, (enum metric)id))
            GPU_HOLDS(at, is->value[id] >= was->value[id], "%s fell from %" PRId64 " to %" PRId64,
                      metric_infos[id].name, was->value[id], is->value[id]);
    GPU_HOLDS(at, at->g->energy_uj >= before->energy_uj,
              "its energy fell from %" PRId64 " to %" PRId64 " uJ", before->energy_uj,
              at->g->energy_uj);
    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        GPU_HOLDS(at,
                  at->g->links[l].tx_bytes >= before->links[l].tx_bytes &&
                      at->g->links[l].rx_bytes >= before->links[l].rx_bytes,
                  "a count of link %d fell", l);
}

static inline void invariant_node(struct invariants *iv, const struct world *w)
{
    const struct node *was = &iv->node, *is = &w->node;

    HOLDS(iv, is->generation >= was->generation, "generation %" PRIu64 " comes after %" PRIu64,
          is->generation, was->generation);
    HOLDS(iv, is->now_ns >= was->now_ns, "time went from %" PRId64 " to %" PRId64 " ns",
          was->now_ns, is->now_ns);
    HOLDS(iv, is->events >= was->events, "there are %" PRIu64 " events after %" PRIu64, is->events,
          was->events);
    HOLDS(iv, isfinite(is->speed) && isfinite(is->due_ns), "the clock runs at %f, %f ns are due",
          is->speed, is->due_ns);
}

/* The newest events, as far as the ring goes back. */
static inline void invariant_events(struct invariants *iv, const struct sim *sim)
{
    const struct world *w = sim_world(sim);
    uint64_t last = w->node.events, first = iv->node.events;

    /* What happened before anything was seen may be about GPUs that are gone. */
    if (!iv->node.generation)
        first = last;
    first = last - first > EVENT_RING ? last - EVENT_RING : first;
    for (uint64_t n = first + 1; n <= last; n++) {
        const struct event *e = world_event_get(sim_store(sim), n);

        if (!e) {
            HOLDS(iv, false, "event %" PRIu64 " of %" PRIu64 " is not there", n, last);
            return;
        }
        HOLDS(iv,
              e->kind < EVENT_KINDS && e->gpu >= -1 && e->gpu < (int)w->used[SECTION_GPUS] &&
                  e->time_ns <= w->node.now_ns && memchr(e->text, '\0', sizeof(e->text)),
              "event %" PRIu64 " is of kind %u and about GPU %d", n, e->kind, e->gpu);
    }
}

/* What is to be read of them are whole lines. */
static inline void invariant_streams(struct invariants *iv, const struct sim *sim)
{
    for (int stream = 0; stream < STREAMS; stream++) {
        uint32_t length;
        const char *text = world_stream(sim_store(sim), (enum stream)stream, &length);

        HOLDS(iv, length <= STREAM_BYTES && (!length || text[length - 1] == '\n'),
              "stream %d of %u bytes ends in mid-line", stream, length);
    }
}

static inline void invariants_remember(struct invariants *iv, const struct world *w)
{
    uint32_t count = w->used[SECTION_GPUS];
    struct seen_gpu *seen = realloc(iv->seen, (count + 1) * sizeof(*seen));

    if (!seen)
        abort();
    iv->seen = seen;
    iv->seen_count = count;
    iv->node = w->node;
    for (uint32_t i = 0; i < count; i++) {
        const struct gpu_plan *plan = &world_gpu_plans(w)[i];

        memcpy(seen[i].uuid, plan->uuid, sizeof(seen[i].uuid));
        memcpy(seen[i].model, world_models(w)[plan->model].name, sizeof(seen[i].model));
        seen[i].gpu = world_gpus(w)[i];
    }
}

/* --- all of it ------------------------------------------------------------------------------- */

static inline void invariant_gpu(struct invariants *iv, const struct world *w, int i)
{
    const struct gpu *g = &world_gpus(w)[i];
    const struct gpu_plan *plan = &world_gpu_plans(w)[i];
    const struct invariant_look at = {
        iv, w, i, g, plan, &world_models(w)[plan->model], g->sample.value
    };
    const struct seen_gpu *seen = invariant_seen(&at);

    invariant_numbers(&at);
    if (seen)
        invariant_counters(&at, &seen->gpu);
    if (gpu_has(g, CONDITION_LOST))
        return; /* nobody can read it, and its readings stand still */
    invariant_ranges(&at);
    invariant_memory(&at);
    invariant_clocks(&at);
    invariant_power(&at);
    invariant_health(&at);
    invariant_mig(&at);
}

/* Whether the published world is sound and follows from the one before. False: see `broken`. */
static inline bool invariants_hold(struct invariants *iv, const struct sim *sim)
{
    const struct world *w = sim_world(sim);

    invariant_node(iv, w);
    invariant_sections(iv, w);
    invariant_signals(iv, w);
    invariant_faults(iv, w);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS] && !iv->broken.length; k++) {
        invariant_workload(iv, w, k);
        invariant_run(iv, w, k);
    }
    if (!iv->broken.length)
        invariant_shares(iv, w);
    if (!iv->broken.length)
        invariant_crowds(iv, w);
    if (!iv->broken.length)
        invariant_copies(iv, sim);
    if (!iv->broken.length)
        invariant_settled(iv, sim);
    for (int i = 0; i < (int)w->used[SECTION_GPUS] && !iv->broken.length; i++) {
        invariant_gpu_plan(iv, w, i);
        if (!iv->broken.length)
            invariant_gpu(iv, w, i);
    }
    if (!iv->broken.length)
        invariant_events(iv, sim);
    invariant_streams(iv, sim);
    invariants_remember(iv, w);
    return !iv->broken.length;
}

static inline void invariants_release(struct invariants *iv)
{
    text_release(&iv->broken);
    free(iv->seen);
    *iv = (struct invariants)INVARIANTS_INIT;
}

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
