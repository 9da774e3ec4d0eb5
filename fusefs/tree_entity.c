/*
 * Tree entity: what the tokens of a path stand for. See tree_entity.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/tree_entity.h"

#include "sim/world.h"

const struct entity entity_none = { -1, -1, -1, -1 };

static int gpu_of_id(const struct world *w, uint64_t id)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint32_t n = w->used[SECTION_GPU_PLANS];

    /* Ids are given out in order: most GPUs are where their id says. */
    if (id && id <= n && plans[id - 1].id == id)
        return (int)id - 1;
    for (uint32_t i = 0; i < n; i++)
        if (plans[i].id == id)
            return (int)i;
    return -1;
}

static int workload_of_id(const struct world *w, uint64_t id)
{
    const struct workload *workloads = world_workloads(w);
    uint32_t low = 0, high = w->used[SECTION_WORKLOADS];

    /* Most are in the order of their ids: new ones go to the end, and so do those that were changed. */
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (workloads[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < w->used[SECTION_WORKLOADS] && workloads[low].id == id)
        return (int)low;
    for (low = 0; low < w->used[SECTION_WORKLOADS]; low++)
        if (workloads[low].id == id)
            return (int)low;
    return -1;
}

uint64_t entity_number(const struct world *w, enum entity_kind kind, const struct entity *e)
{
    switch (kind) {
    case ENTITY_GPU:
        return world_gpu_plans(w)[e->gpu].id;
    case ENTITY_GI:
    case ENTITY_CI:
        return world_gpu_plans(w)[e->gpu].id << 8 | (uint64_t)e->gi << 4 | (uint64_t)(e->ci + 1);
    case ENTITY_WORKLOAD:
        return world_workloads(w)[e->workload].id;
    case ENTITY_NONE:
        break;
    }
    return 0;
}

static bool instance_is_there(const struct world *w, enum entity_kind kind, const struct entity *e)
{
    const struct mig_gi *gi = &world_gpus(w)[e->gpu].gis[e->gi];

    return gi->used && (kind == ENTITY_GI || gi->cis[e->ci].slices);
}

bool entity_of_number(const struct world *w, enum entity_kind kind, uint64_t number,
                      struct entity *e)
{
    *e = entity_none;
    switch (kind) {
    case ENTITY_NONE:
        return number == 0;
    case ENTITY_GPU:
        e->gpu = gpu_of_id(w, number);
        return e->gpu >= 0;
    case ENTITY_WORKLOAD:
        e->workload = workload_of_id(w, number);
        return e->workload >= 0;
    case ENTITY_GI:
    case ENTITY_CI:
        e->gpu = gpu_of_id(w, number >> 8);
        e->gi = (int)(number >> 4 & 0xf);
        e->ci = (int)(number & 0xf) - 1;
        return e->gpu >= 0 && e->gi < MIG_GIS_MAX && e->ci < MIG_CIS_MAX &&
               (kind == ENTITY_GI) == (e->ci < 0) && instance_is_there(w, kind, e);
    }
    return false;
}

static bool next_instance(const struct world *w, struct entities *all)
{
    struct entity *e = &all->e;

    if (all->kind == ENTITY_GI) {
        while (++e->gi < MIG_GIS_MAX)
            if (instance_is_there(w, all->kind, e))
                return true;
        return false;
    }
    for (; e->gi < MIG_GIS_MAX; e->gi++, e->ci = -1)
        while (++e->ci < MIG_CIS_MAX)
            if (instance_is_there(w, all->kind, e))
                return true;
    return false;
}

bool entities_next(const struct world *w, struct entities *all)
{
    struct entity *e = &all->e;
    bool instances = all->kind == ENTITY_GI || all->kind == ENTITY_CI;

    if (all->kind == ENTITY_WORKLOAD)
        return ++e->workload < (int)w->used[SECTION_WORKLOADS];
    if (instances && e->gpu >= 0 && next_instance(w, all))
        return true;
    while (all->at < all->end) {
        int place = all->at++;

        *e = entity_none;
        e->gpu = all->order ? (int)all->order[place] : place;
        if (!instances)
            return true;
        e->gi = all->kind == ENTITY_CI ? 0 : -1;
        if (mig_any(&world_gpus(w)[e->gpu]) && next_instance(w, all))
            return true;
    }
    return false;
}
