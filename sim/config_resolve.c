/*
 * Config: every GPU of a configuration, worked out. See config_resolve.h.
 *
 * First each GPU on its own, in the order of the file; then what must be true of all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config_memory.h"
#include "sim/config_references.h"
#include "sim/config_refuse.h"
#include "sim/config_shapes.h"
#include "sim/config_unique.h"
#include "sim/rng.h"

/* --- identity -------------------------------------------------------------------------------- */

/* The same node and index give the same UUID, whatever else changes around it. */
static void make_identity(const struct config *cfg, struct gpu_entry *e)
{
    char name[32];
    struct rng rng;
    uint64_t a, b;

    snprintf(name, sizeof(name), "/gpu/%d", e->node_index);
    rng = rng_seeded(rng_hash(0, *e->node ? e->node : cfg->node), name);
    a = rng_next(&rng);
    b = rng_next(&rng);
    snprintf(e->uuid, sizeof(e->uuid),
             "GPU-%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, a >> 32,
             a >> 16 & 0xffff, a & 0xffff, b >> 48, b & 0xffffffffffff);
    snprintf(e->serial, sizeof(e->serial), "13%011" PRIu64,
             rng_next(&rng) % UINT64_C(100000000000));
    if (*e->spec.uuid) {
        memcpy(e->uuid, e->spec.uuid, sizeof(e->uuid));
        for (char *p = e->uuid + 4; *p; p++)
            if (*p >= 'A' && *p <= 'F')
                *p += 'a' - 'A';
    }
    if (*e->spec.serial)
        memcpy(e->serial, e->spec.serial, sizeof(e->serial));
}

/*
 * On every node the buses begin anew. In a mount of several each node has domains of its own, the next that are
 * free, so that addresses stay apart.
 */
static int make_address(struct resolver *r, struct gpu_entry *e)
{
    const struct pci_spec *pci = &r->cfg->pci;
    int64_t per_domain = (256 - pci->first_bus + pci->bus_step - 1) / pci->bus_step;
    int64_t domain = pci->domain + e->node_index / per_domain, behind = 0;
    int result;

    if (*e->spec.bus_id) {
        result = bus_id_parse(e->spec.bus_id, &e->domain, &e->bus, &e->device, &e->function);
        e->node_domain = e->domain;
        return result;
    }
    if (e->node_number > 0)
        behind = r->next_domain - (e->node_index % per_domain != 0) - domain;
    if (domain + behind > 0xffff)
        return refuse_gpu(r, ERANGE, e, "bus_id", "no bus is left for GPU %td behind domain 0xffff",
                          e - r->entries);
    e->node_domain = (uint32_t)domain;
    e->domain = (uint32_t)(domain + behind);
    e->bus = (uint32_t)(pci->first_bus + e->node_index % per_domain * pci->bus_step);
    e->device = e->function = 0;
    r->next_domain = e->domain + 1;
    return 0;
}

/* --- one GPU --------------------------------------------------------------------------------- */

static int check_power_limit(struct resolver *r, struct gpu_entry *e)
{
    const struct model_power *p = &e->model->power;
    struct text given = TEXT_INIT;
    int result;

    e->power_limit_mw = p->default_mw;
    if (!bind_is_set(&gpu_table, &e->spec, "power_limit"))
        return 0;
    e->power_limit_mw = e->spec.power_limit_mw;
    if (e->power_limit_mw >= p->min_mw && e->power_limit_mw <= p->max_mw)
        return 0;
    unit_print(&given, UNIT_MILLIWATT, e->power_limit_mw);
    text_addf(&given, " is out of range; allowed for %s: ", e->model->name);
    unit_print(&given, UNIT_MILLIWATT, p->min_mw);
    text_add(&given, " to ");
    unit_print(&given, UNIT_MILLIWATT, p->max_mw);
    result = refuse_gpu(r, ERANGE, e, "power_limit", "%s", text_str(&given));
    text_release(&given);
    return result;
}

static int check_modes(struct resolver *r, const struct gpu_entry *e)
{
    if (e->spec.ecc_mode && !e->model->ecc.supported)
        return refuse_gpu(r, EINVAL, e, "ecc_mode", "%s has no ECC", e->model->name);
    if (e->spec.mig_mode && !e->model->mig.count)
        return refuse_gpu(r, EINVAL, e, "mig_mode", "%s has no MIG", e->model->name);
    if (e->memory_bytes <= e->model->memory.reserved_bytes)
        return refuse_gpu(r, ERANGE, e, "memory",
                          "must be above the %" PRId64 "MiB that %s reserves",
                          e->model->memory.reserved_bytes >> 20, e->model->name);
    return 0;
}

static int check_numa(struct resolver *r, struct gpu_entry *e)
{
    int64_t nodes = r->cfg->numa.nodes;

    if (!bind_is_set(&gpu_table, &e->spec, "numa_node"))
        return 0;
    e->numa_node = (int)e->spec.numa_node;
    if (e->numa_node >= nodes)
        return refuse_gpu(r, ERANGE, e, "numa_node",
                          "%d is out of range; allowed: -1 to %" PRId64 " (numa.nodes is %" PRId64
                          ")",
                          e->numa_node, nodes - 1, nodes);
    return 0;
}

/* GPUs [first, behind) are those of a node. */
static void deal_numa(struct resolver *r, int first, int behind)
{
    for (int i = first; i < behind; i++)
        if (!bind_is_set(&gpu_table, &r->entries[i].spec, "numa_node"))
            r->entries[i].numa_node = (int)((i - first) * r->cfg->numa.nodes / (behind - first));
}

static void choose_profile(const struct config *cfg, struct gpu_entry *e, int index, int in_group)
{
    bool own = e->spec.profile.names.count;
    const struct bind_list *names = own ? &e->spec.profile.names : &cfg->profile.names;
    const struct profile_name *list = names->items;
    size_t i = (size_t)(own ? in_group : index) % names->count;

    e->profile = profile_find(&cfg->profiles, list[i].text);
}

static void apply_overrides(struct resolver *r, int index, struct gpu_entry *e)
{
    const struct gpu_spec *overrides = r->cfg->overrides.items;
    char uuid[sizeof(e->uuid)], number[16];

    memcpy(uuid, e->uuid, sizeof(uuid)); /* an override may give another one */
    snprintf(number, sizeof(number), "%d", index);
    for (size_t i = 0; i < r->cfg->overrides.count; i++) {
        if (strcmp(overrides[i].key, number) && strcasecmp(overrides[i].key, uuid))
            continue;
        r->override_of[i] = index;
        bind_merge(&gpu_table, &e->spec, &overrides[i]);
        make_identity(r->cfg, e);
    }
}

static int check_minor(struct resolver *r, const struct gpu_entry *e)
{
    if (!bind_is_set(&gpu_table, &e->spec, "minor") || e->minor <= MINOR_MAX)
        return 0;
    return refuse_gpu(r, ERANGE, e, "minor", "%d for GPU %td is out of range; allowed: 0 to %d",
                      e->minor, e - r->entries, MINOR_MAX);
}

static int check_entry(struct resolver *r, struct gpu_entry *e)
{
    int result = make_address(r, e);

    if (result == 0)
        result = check_minor(r, e);
    if (result == 0)
        result = check_power_limit(r, e);
    if (result == 0)
        result = check_modes(r, e);
    if (result == 0)
        result = check_numa(r, e);
    if (result == 0)
        result = check_own_memory(r, e);
    return result;
}

/* What is said of a group is about its first GPU, and counts up from there. */
static int number_of(const struct resolver *r, const struct gpu_entry *e, const char *key,
                     int64_t given, int in_group, int otherwise)
{
    if (!bind_is_set(&gpu_table, &e->spec, key))
        return otherwise;
    return (int)given + (override_with(r, e, key) ? 0 : in_group);
}

/* Which node it is on, and where there. */
static int join_node(struct resolver *r, struct gpu_entry *e, const char *node)
{
    const struct gpu_entry *before = e > r->entries ? e - 1 : NULL;
    bool same = before && !strcmp(before->node, node);

    /* It goes into the world as it is, so there must be nothing behind its end. */
    snprintf(e->node, sizeof(e->node), "%s", node);
    e->node_index = same ? before->node_index + 1 : 0;
    e->node_number = !*node ? -1 : !before ? 0 : before->node_number + !same;
    if (before && !*before->node != !*node)
        return refuse_gpu(r, EINVAL, e, "node",
                          "GPU %td has %s; allowed: a node for all GPUs, or for none",
                          e - r->entries,
                          *node ? "one, those before it have none"
                                : "none, those before it have one");
    return 0;
}

/* GPU `in_item` of an item, and so many on this node. */
static int resolve_gpu(struct resolver *r, const struct gpu_spec *from, const char *node,
                       int in_item, int in_group)
{
    int index = r->count, result;
    struct gpu_entry *e = &r->entries[r->count++];

    *e = (struct gpu_entry){ .spec = *from, .from = from };
    result = join_node(r, e, node);
    if (result < 0)
        return result;
    make_identity(r->cfg, e);
    apply_overrides(r, index, e);
    e->model = model_find(&r->cfg->models, *e->spec.model ? e->spec.model : CONFIG_DEFAULT_MODEL);
    if (!e->model)
        return refuse_gpu(r, EINVAL, e, "model", "'%s' is not a model", e->spec.model);
    e->minor = number_of(r, e, "minor", e->spec.minor, in_item, index);
    e->module_id = number_of(r, e, "module_id", e->spec.module_id, in_group, e->node_index + 1);
    e->memory_bytes = e->spec.memory_bytes ? e->spec.memory_bytes : e->model->memory.total_bytes;
    choose_profile(r->cfg, e, index, in_item);
    return check_entry(r, e);
}

/* --- all ------------------------------------------------------------------------------------- */

static int resolve_item(struct resolver *r, const struct gpu_spec *item)
{
    struct node_names names = node_names_of(item->node);
    char node[NODE_NAME];
    int result = 0;

    for (int n = 0; n < names.count && result == 0; n++) {
        node_names_get(&names, n, node);
        for (int k = 0; k < item->count && result == 0; k++)
            result = resolve_gpu(r, item, node, n * (int)item->count + k, k);
    }
    return result;
}

static void deal_all_numa(struct resolver *r)
{
    int first = 0;

    for (int i = 1; i <= r->count; i++)
        if (i == r->count || !r->entries[i].node_index) {
            deal_numa(r, first, i);
            first = i;
        }
}

static int resolve_all(struct resolver *r)
{
    const struct gpu_spec *gpus = r->cfg->gpus.items;
    int result = 0;

    for (size_t i = 0; i < r->cfg->gpus.count && result == 0; i++)
        result = resolve_item(r, &gpus[i]);
    if (result == 0)
        deal_all_numa(r);
    if (result == 0)
        result = check_unique(r);
    if (result == 0)
        result = check_references(r);
    return result;
}

static int start_resolver(struct resolver *r, int total)
{
    size_t overrides = r->cfg->overrides.count;

    r->entries = calloc((size_t)total + 1, sizeof(*r->entries));
    r->override_of = calloc(overrides + 1, sizeof(*r->override_of));
    if (!r->entries || !r->override_of)
        return refuse_out_of_memory(r);
    for (size_t i = 0; i < overrides; i++)
        r->override_of[i] = -1;
    return 0;
}

int config_resolve(const struct config *cfg, struct gpu_entry **entries, int *count,
                   struct why *why)
{
    const struct gpu_spec *gpus = cfg->gpus.items;
    struct resolver r = { .cfg = cfg, .why = why };
    int64_t total = 0;
    int result;

    for (size_t i = 0; i < cfg->gpus.count; i++)
        total += gpu_spec_gpus(&gpus[i]);
    if (total > CONFIG_GPUS_MAX)
        return why_set(why, ERANGE, "%s:%d:%d: gpus: %" PRId64 " GPUs; allowed: at most %d",
                       cfg->source, gpus[0].head.line, gpus[0].head.column, total, CONFIG_GPUS_MAX);
    result = start_resolver(&r, (int)total);
    if (result == 0)
        result = resolve_all(&r);
    free(r.override_of);
    if (result < 0) {
        free(r.entries);
        return result;
    }
    *entries = r.entries;
    *count = r.count;
    return 0;
}
