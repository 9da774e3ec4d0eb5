/*
 * Plan: what is called so. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
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

/* --- orders ---------------------------------------------------------------------------------- */

static uint32_t *order_of(const struct world *w, enum gpu_order which)
{
    return &world_orders(w)[(uint32_t)which * w->used[SECTION_GPU_PLANS]];
}

static uint64_t address(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function)
{
    return (uint64_t)domain << 32 | bus << 16 | device << 8 | function;
}

static uint64_t address_of(const struct world *w, uint32_t i)
{
    const struct gpu_plan *p = &world_gpu_plans(w)[i];

    return address(p->domain, p->bus, p->device, p->function);
}

/* Less than 0, 0 or more: as the item at a position stands to a key. */
typedef int order_compare(const struct world *w, uint32_t position, const void *key);

static int to_address(const struct world *w, uint32_t i, const void *key)
{
    uint64_t own = address_of(w, i), other = *(const uint64_t *)key;

    return (own > other) - (own < other);
}

static int to_minor(const struct world *w, uint32_t i, const void *key)
{
    int64_t own = world_gpu_plans(w)[i].minor, other = *(const int64_t *)key;

    return (own > other) - (own < other);
}

static int to_uuid(const struct world *w, uint32_t i, const void *key)
{
    return strcasecmp(world_gpu_plans(w)[i].uuid, key);
}

static int to_node(const struct world *w, uint32_t i, const void *key)
{
    return strcmp(world_nodes(w)[i].name, key);
}

/* The place of the first that does not stand before the key. */
static uint32_t order_place(const struct world *w, const uint32_t *order, uint32_t count,
                            order_compare *compare, const void *key)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (compare(w, order[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int order_find(const struct world *w, const uint32_t *order, uint32_t count,
                      order_compare *compare, const void *key)
{
    uint32_t at = order_place(w, order, count, compare, key);

    return at < count && compare(w, order[at], key) == 0 ? (int)order[at] : -1;
}

int plan_find_uuid(const struct world *w, const char *uuid)
{
    return order_find(w, order_of(w, ORDER_UUID), w->used[SECTION_GPU_PLANS], to_uuid, uuid);
}

int plan_find_minor(const struct world *w, int64_t minor)
{
    return order_find(w, order_of(w, ORDER_MINOR), w->used[SECTION_GPU_PLANS], to_minor, &minor);
}

int plan_find_bus(const struct world *w, uint32_t domain, uint32_t bus, uint32_t device,
                  uint32_t function)
{
    uint64_t key = address(domain, bus, device, function);

    return order_find(w, order_of(w, ORDER_BUS), w->used[SECTION_GPU_PLANS], to_address, &key);
}

const uint32_t *plan_gpus_by_bus(const struct world *w)
{
    return order_of(w, ORDER_BUS);
}

uint32_t plan_bus_place(const struct world *w, uint32_t domain, uint32_t bus)
{
    uint64_t key = address(domain, bus, 0, 0);

    return order_place(w, order_of(w, ORDER_BUS), w->used[SECTION_GPU_PLANS], to_address, &key);
}

int plan_find_node(const struct world *w, const char *name)
{
    return order_find(w, order_of(w, GPU_ORDERS), w->used[SECTION_NODES], to_node, name);
}

static int by_address(const void *a, const void *b, void *w)
{
    uint64_t key = address_of(w, *(const uint32_t *)b);

    return to_address(w, *(const uint32_t *)a, &key);
}

static int by_minor(const void *a, const void *b, void *w)
{
    int64_t key = world_gpu_plans(w)[*(const uint32_t *)b].minor;

    return to_minor(w, *(const uint32_t *)a, &key);
}

static int by_uuid(const void *a, const void *b, void *w)
{
    return to_uuid(w, *(const uint32_t *)a, world_gpu_plans(w)[*(const uint32_t *)b].uuid);
}

static int by_node(const void *a, const void *b, void *w)
{
    return to_node(w, *(const uint32_t *)a, world_nodes(w)[*(const uint32_t *)b].name);
}

static void sort_order(struct world *w, uint32_t *order, uint32_t count,
                       int (*compare)(const void *, const void *, void *))
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof(*order), compare, w);
}

void plan_sort(struct world *w)
{
    uint32_t gpus = w->used[SECTION_GPU_PLANS], nodes = w->used[SECTION_NODES];

    memset(world_orders(w), 0, w->room[SECTION_ORDERS] * sizeof(uint32_t));
    w->used[SECTION_ORDERS] = GPU_ORDERS * gpus + nodes;
    sort_order(w, order_of(w, ORDER_BUS), gpus, by_address);
    sort_order(w, order_of(w, ORDER_MINOR), gpus, by_minor);
    sort_order(w, order_of(w, ORDER_UUID), gpus, by_uuid);
    sort_order(w, order_of(w, GPU_ORDERS), nodes, by_node);
}

/* --- GPUs by name ---------------------------------------------------------------------------- */

/* NODE/INDEX */
static int find_on_node(const struct world *w, const char *name)
{
    const char *slash = strrchr(name, '/');
    char node[NODE_NAME];
    int64_t index;
    int k;

    if ((size_t)(slash - name) >= sizeof(node) || parse_i64(slash + 1, &index) < 0)
        return -1;
    memcpy(node, name, (size_t)(slash - name));
    node[slash - name] = '\0';
    k = plan_find_node(w, node);
    return k >= 0 && index >= 0 && index < world_nodes(w)[k].count &&
                   node_device_is(name, node, (int)index)
               ? (int)(world_nodes(w)[k].first + index)
               : -1;
}

int plan_find_gpu(const struct world *w, const char *name)
{
    uint32_t domain, bus, device, function;
    int64_t index;

    if (parse_i64(name, &index) == 0)
        return index >= 0 && index < w->used[SECTION_GPU_PLANS] ? (int)index : -1;
    if (strchr(name, '/'))
        return find_on_node(w, name);
    if (bus_id_parse(name, &domain, &bus, &device, &function) < 0)
        return plan_find_uuid(w, name);
    return plan_find_bus(w, domain, bus, device, function);
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
