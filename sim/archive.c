/*
 * Archive: what a GPU leaves behind. See archive.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/archive.h"

#include <errno.h>
#include <string.h>

#include "sim/world.h"

/* --- history --------------------------------------------------------------------------------- */

/* The first archive from `from` on that neither list has, or (all are taken) that the first has not. */
static uint32_t find_free(const bool *own, const bool *old, uint32_t from)
{
    for (uint32_t i = from; i < ARCHIVES; i++)
        if (!own[i] && !old[i])
            return i;
    for (uint32_t i = 0; i < ARCHIVES; i++)
        if (!own[i])
            return i;
    return 0; /* there are never more GPUs than archives */
}

void archive_assign(struct world *w, const struct world *before, const int *came_from)
{
    /* What the published world shows stays untouched as long as there are others. */
    bool own[ARCHIVES] = { false }, old[ARCHIVES] = { false };
    struct gpu *gpus = world_gpus(w);
    uint32_t next = 0;

    for (uint32_t i = 0; before && i < before->used[SECTION_GPUS]; i++)
        old[world_gpus(before)[i].archive] = true;
    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++)
        if (came_from[i] >= 0)
            own[gpus[i].archive] = true;
    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++) {
        if (came_from[i] >= 0)
            continue;
        next = find_free(own, old, next);
        gpus[i].archive = next;
        own[next] = true;
    }
}

/* Module power is that of the GPU where the board is a module of its own. */
static uint32_t sampled(const struct gpu *g, const struct gpu_model *m, enum sampling id)
{
    int64_t value = 0;
    int r = id == SAMPLING_MODULE_POWER && !m->module_power.max_mw
                ? -ENODATA
                : metric_read_shown(&g->sample, sampling_infos[id].metric, &value);

    if (r == 0)
        return value < 0 ? 0 : value < MOMENT_FAILED ? (uint32_t)value : MOMENT_FAILED - 1;
    return r == -ENODATA ? MOMENT_ABSENT : MOMENT_FAILED;
}

void archive_keep(struct stepping *st, int i)
{
    struct world *w = st->world;
    struct gpu *g = &world_gpus(w)[i];
    const struct gpu_model *m = world_gpu_model(w, i);
    struct moment *moment;

    if (w->node.now_ns < g->next_moment_ns || gpu_has(g, CONDITION_LOST))
        return;
    moment = &st->store->head->archives[g->archive].moments[g->moments++ % MOMENTS_ROOM];
    moment->time_ns = w->node.now_ns;
    for (int id = 0; id < SAMPLINGS; id++)
        moment->value[id] = sampled(g, m, (enum sampling)id);
    g->next_moment_ns = w->node.now_ns + MOMENT_NS;
}

uint32_t archive_moments(const struct gpu *g)
{
    return g->moments < HISTORY_MOMENTS ? (uint32_t)g->moments : HISTORY_MOMENTS;
}

const struct moment *archive_moment(const struct world_store *s, const struct gpu *g, uint32_t k)
{
    uint64_t number = g->moments - archive_moments(g) + k;

    return &s->head->archives[g->archive].moments[number % MOMENTS_ROOM];
}

uint64_t archive_bytes(const struct gpu *g)
{
    uint64_t accounts = g->accounts < ACCOUNTS_ROOM ? g->accounts : ACCOUNTS_ROOM;

    return MOMENTS_ROOM * sizeof(struct moment) + accounts * sizeof(struct account);
}

/* --- accounting ------------------------------------------------------------------------------ */

void account_begin(struct stepping *st, struct share *share)
{
    struct world *w = st->world;

    memset(&share->account, 0, sizeof(share->account));
    if (!world_gpus(w)[share->gpu].settings.accounting_mode)
        return;
    share->account.workload = world_workloads(w)[share->run].id;
    share->account.start_ns = w->node.now_ns;
    share->account.max_memory_bytes = share->memory_bytes;
}

void account_step(struct stepping *st, struct share *share)
{
    struct account *a = &share->account;

    if (!a->workload)
        return;
    if (share->memory_bytes > a->max_memory_bytes)
        a->max_memory_bytes = share->memory_bytes;
    a->gpu_busy_ns += share->utilization_percent / 100e3 * (double)st->dt_ns;
    a->memory_busy_ns += (double)share->engines[SHARE_MEMORY] / 100e3 * (double)st->dt_ns;
}

void account_end(struct stepping *st, struct share *share)
{
    struct world *w = st->world;
    struct gpu *g = &world_gpus(w)[share->gpu];
    struct account *kept;

    if (!share->account.workload)
        return;
    kept = &st->store->head->archives[g->archive].accounts[g->accounts++ % ACCOUNTS_ROOM];
    *kept = share->account;
    kept->pid = world_workloads(w)[share->run].pid;
    kept->end_ns = w->node.now_ns;
    memset(&share->account, 0, sizeof(share->account));
}

uint32_t archive_accounts(const struct gpu *g)
{
    uint64_t n = g->accounts - g->accounts_before;

    return n < ACCOUNTS_KEPT ? (uint32_t)n : ACCOUNTS_KEPT;
}

const struct account *archive_account(const struct world_store *s, const struct gpu *g, uint32_t k)
{
    uint64_t number = g->accounts - archive_accounts(g) + k;

    return &s->head->archives[g->archive].accounts[number % ACCOUNTS_ROOM];
}

void accounts_forget(struct world *w, int gpu)
{
    struct share *shares = world_shares(w);
    struct gpu *g = &world_gpus(w)[gpu];

    g->accounts_before = g->accounts;
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (shares[s].gpu == gpu) {
            memset(&shares[s].account, 0, sizeof(shares[s].account));
            world_touch(w, SECTION_SHARES, s, 1);
        }
}
