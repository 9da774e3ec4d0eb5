/*
 * Plan: what is called so. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "sim/config_shapes.h"
#include "sim/plan.h"

int plan_find_workload(const struct world *w, const char *name)
{
    const uint64_t *names = world_names(w), hash = workload_name_hash(name);

    /* A look at each of 16,384 numbers takes microseconds; at each workload it would be a hundred times as much memory. */
    for (uint32_t k = 0; k < w->used[SECTION_NAMES]; k++)
        if (names[k] == hash && !strcmp(world_workloads(w)[k].name, name))
            return (int)k;
    return -1;
}

static int find_uuid(const struct world *w, const char *uuid)
{
    const struct gpu_plan *plans = world_gpu_plans(w);

    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++)
        if (!strcasecmp(plans[i].uuid, uuid))
            return (int)i;
    return -1;
}

/* NODE/INDEX */
static int find_on_node(const struct world *w, const char *name)
{
    const struct gpu_plan *plans = world_gpu_plans(w);

    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++)
        if (plans[i].node >= 0 &&
            node_device_is(name, world_nodes(w)[plans[i].node].name, plans[i].node_index))
            return (int)i;
    return -1;
}

int plan_find_gpu(const struct world *w, const char *name)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint32_t domain, bus, device, function;
    int64_t index;

    if (parse_i64(name, &index) == 0)
        return index >= 0 && index < w->used[SECTION_GPU_PLANS] ? (int)index : -1;
    if (strchr(name, '/'))
        return find_on_node(w, name);
    if (bus_id_parse(name, &domain, &bus, &device, &function) < 0)
        return find_uuid(w, name);
    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++)
        if (plans[i].domain == domain && plans[i].bus == bus && plans[i].device == device &&
            plans[i].function == function)
            return (int)i;
    return -1;
}

static bool find_mig_uuid(const struct world *w, const char *uuid, struct device_place *at)
{
    for (at->gpu = 0; at->gpu < (int)w->used[SECTION_GPU_PLANS]; at->gpu++) {
        const struct gpu *g = &world_gpus(w)[at->gpu];

        for (at->gi = 0; at->gi < MIG_GIS_MAX; at->gi++)
            for (at->ci = 0; at->ci < MIG_CIS_MAX; at->ci++) {
                char own[48];

                if (!mig_has(g, at->gi, at->ci))
                    continue;
                mig_uuid(world_gpu_plans(w)[at->gpu].uuid, at->gi, at->ci, own, sizeof(own));
                if (!strcasecmp(own, uuid))
                    return true;
            }
    }
    return false;
}

bool plan_find_device(const struct world *w, const char *name, struct device_place *at)
{
    char gpu[sizeof(((struct device_name *)0)->text)];

    if (!strncasecmp(name, "MIG-", 4))
        return find_mig_uuid(w, name, at);
    *at = (struct device_place){ plan_find_gpu(w, name), -1, -1 };
    if (at->gpu >= 0)
        return true;
    if (!mig_name_parse(name, gpu, sizeof(gpu), &at->gi, &at->ci) ||
        (at->gpu = plan_find_gpu(w, gpu)) < 0)
        return false;
    if (at->ci < 0)
        at->ci = at->gi < MIG_GIS_MAX ? mig_first_ci(&world_gpus(w)[at->gpu], at->gi) : -1;
    return at->ci >= 0 && mig_has(&world_gpus(w)[at->gpu], at->gi, at->ci);
}
