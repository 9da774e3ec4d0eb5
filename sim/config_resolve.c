/*
 * Config: working out every GPU of a node. See config.h.
 *
 * What needs more than one key (duplicates, references, what a model allows) is checked here, so that
 * applying a configuration to a world can no longer fail half way for a reason in the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "sim/rng.h"
#include "sim/suggest.h"

struct resolver {
    const struct config *cfg;
    struct gpu_entry *entries;
    int count, room;
    struct why *why;
};

/* --- sentences ------------------------------------------------------------------------------- */

static int refuse_v(struct resolver *r, int err, const struct bind_head *head, const char *key,
                    const char *path, const char *fmt, va_list ap)
{
    struct bind_head at = bind_position(r->cfg->doc.root, head, key);
    struct text sentence = TEXT_INIT;
    int result;

    text_vaddf(&sentence, fmt, ap);
    if (at.line)
        result = why_set(r->why, err, "%s:%d:%d: %s.%s: %s", r->cfg->source, at.line, at.column,
                         path, key, text_str(&sentence));
    else
        result = why_set(r->why, err, "%s: %s.%s: %s", r->cfg->source, path, key,
                         text_str(&sentence));
    text_release(&sentence);
    return result;
}

/* A refusal about a key of a GPU, wherever that key was given. */
static int __attribute__((format(printf, 5, 6)))
refuse_gpu(struct resolver *r, int err, const struct gpu_entry *e, const char *key, const char *fmt,
           ...)
{
    const struct gpu_spec *list = r->cfg->gpus.items;
    bool over = e->over && bind_is_set(&gpu_table, e->over, key);
    struct text path = TEXT_INIT;
    va_list ap;
    int result;

    if (over)
        text_addf(&path, "overrides.%s", e->over->key);
    else if (r->cfg->gpus.count > 1)
        text_addf(&path, "gpus[%td]", e->from - list);
    else
        text_add(&path, "gpus");
    va_start(ap, fmt);
    result = refuse_v(r, err, over ? &e->over->head : &e->from->head, key, text_str(&path), fmt,
                      ap);
    va_end(ap);
    text_release(&path);
    return result;
}

/* A refusal about a key of item `i` of a list. */
static int __attribute__((format(printf, 7, 8)))
refuse_item(struct resolver *r, int err, const char *list, size_t i, const struct bind_head *head,
            const char *key, const char *fmt, ...)
{
    char path[64];
    va_list ap;
    int result;

    snprintf(path, sizeof(path), "%s[%zu]", list, i);
    va_start(ap, fmt);
    result = refuse_v(r, err, head, key, path, fmt, ap);
    va_end(ap);
    return result;
}

/* --- identity -------------------------------------------------------------------------------- */

/* The same node and index give the same UUID, whatever else changes around it. */
static void make_identity(const struct config *cfg, int index, struct gpu_entry *e)
{
    char name[32];
    struct rng rng;
    uint64_t a, b;

    snprintf(name, sizeof(name), "/gpu/%d", index);
    rng = rng_seeded(rng_hash(0, cfg->node), name);
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

static void make_address(const struct config *cfg, int index, struct gpu_entry *e)
{
    int64_t per_domain = (256 - cfg->pci.first_bus + cfg->pci.bus_step - 1) / cfg->pci.bus_step;

    if (*e->spec.bus_id) {
        bus_id_parse(e->spec.bus_id, &e->domain, &e->bus, &e->device, &e->function);
        return;
    }
    e->domain = (uint32_t)(cfg->pci.domain + index / per_domain);
    e->bus = (uint32_t)(cfg->pci.first_bus + index % per_domain * cfg->pci.bus_step);
    e->device = e->function = 0;
}

/* --- one GPU --------------------------------------------------------------------------------- */

static int check_power_limit(struct resolver *r, struct gpu_entry *e)
{
    const struct model_power *p = &e->model->power;

    e->power_limit_mw = p->default_mw;
    if (!bind_is_set(&gpu_table, &e->spec, "power_limit"))
        return 0;
    e->power_limit_mw = e->spec.power_limit_mw;
    if (e->power_limit_mw < p->min_mw || e->power_limit_mw > p->max_mw)
        return refuse_gpu(r, ERANGE, e, "power_limit",
                          "%" PRId64 "W is out of range; allowed for %s: %" PRId64 "W to %" PRId64
                          "W",
                          e->power_limit_mw / 1000, e->model->name, p->min_mw / 1000,
                          p->max_mw / 1000);
    return 0;
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

static int choose_numa(struct resolver *r, struct gpu_entry *e, int index, int total)
{
    int64_t nodes = r->cfg->numa.nodes;

    e->numa_node = (int)(index * nodes / total);
    if (!bind_is_set(&gpu_table, &e->spec, "numa_node"))
        return 0;
    e->numa_node = (int)e->spec.numa_node;
    if (e->numa_node >= nodes)
        return refuse_gpu(r, ERANGE, e, "numa_node", "%d is out of range; allowed: -1 to %" PRId64,
                          e->numa_node, nodes - 1);
    return 0;
}

static void choose_profile(const struct config *cfg, struct gpu_entry *e, int index, int in_group)
{
    bool own = e->spec.profile.names.count;
    const struct bind_list *names = own ? &e->spec.profile.names : &cfg->profile.names;
    const struct profile_name *list = names->items;
    size_t i = (size_t)(own ? in_group : index) % names->count;

    e->profile = profile_find(&cfg->profiles, list[i].text);
}

static const struct gpu_spec *override_of(const struct config *cfg, int index, const char *uuid)
{
    const struct gpu_spec *o = cfg->overrides.items;
    char number[16];

    snprintf(number, sizeof(number), "%d", index);
    for (size_t i = 0; i < cfg->overrides.count; i++)
        if (!strcmp(o[i].key, number) || !strcasecmp(o[i].key, uuid))
            return &o[i];
    return NULL;
}

static int resolve_gpu(struct resolver *r, const struct gpu_spec *from, int in_group, int total)
{
    int index = r->count, result;
    struct gpu_entry *e = &r->entries[r->count++];

    *e = (struct gpu_entry){ .spec = *from, .from = from };
    make_identity(r->cfg, index, e);
    e->over = override_of(r->cfg, index, e->uuid);
    if (e->over) {
        bind_merge(&gpu_table, &e->spec, e->over);
        make_identity(r->cfg, index, e);
    }
    e->model = model_find(&r->cfg->models, *e->spec.model ? e->spec.model : "A100-SXM4-40GB");
    if (!e->model)
        return refuse_gpu(r, EINVAL, e, "model", "'%s' is not a model", e->spec.model);
    make_address(r->cfg, index, e);
    e->minor = bind_is_set(&gpu_table, &e->spec, "minor") ? (int)e->spec.minor + in_group : index;
    e->module_id = bind_is_set(&gpu_table, &e->spec, "module_id") ? (int)e->spec.module_id
                                                                  : index + 1;
    e->memory_bytes = e->spec.memory_bytes ? e->spec.memory_bytes : e->model->memory.total_bytes;
    choose_profile(r->cfg, e, index, in_group);
    result = check_power_limit(r, e);
    if (result == 0)
        result = check_modes(r, e);
    if (result == 0)
        result = choose_numa(r, e, index, total);
    return result;
}

/* --- duplicates ------------------------------------------------------------------------------ */

/* What must not be the same on two GPUs, as one text each. */
typedef void entry_text(const struct gpu_entry *e, char *text, size_t size);

static void text_uuid(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%s", e->uuid);
}

static void text_bus_id(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%04x:%02x:%02x.%x", e->domain, e->bus, e->device, e->function);
}

static void text_minor(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%d", e->minor);
}

static void text_serial(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%s", e->serial);
}

struct claim {
    char text[48];
    int index;
};

static int claim_order(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order ? order : x->index - y->index;
}

static int check_unique(struct resolver *r, const char *key, entry_text *text)
{
    struct claim *claims = calloc((size_t)r->count + 1, sizeof(*claims));
    int result = 0;

    if (!claims)
        return why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);
    for (int i = 0; i < r->count; i++) {
        claims[i].index = i;
        text(&r->entries[i], claims[i].text, sizeof(claims[i].text));
    }
    qsort(claims, (size_t)r->count, sizeof(*claims), claim_order);
    for (int i = 1; i < r->count && result == 0; i++) {
        int first = claims[i - 1].index, second = claims[i].index;

        if (strcmp(claims[i - 1].text, claims[i].text))
            continue;
        /* Blame the one that was written, not one that was dealt out. */
        if (!bind_is_set(&gpu_table, &r->entries[second].spec, key)) {
            first = claims[i].index;
            second = claims[i - 1].index;
        }
        result = refuse_gpu(r, EINVAL, &r->entries[second], key,
                            "'%s' is a duplicate: GPU %d has it already", claims[i].text, first);
    }
    free(claims);
    return result;
}

static int check_duplicates(struct resolver *r)
{
    static const struct {
        const char *key;
        entry_text *text;
    } unique[] = {
        { "uuid", text_uuid },
        { "bus_id", text_bus_id },
        { "minor", text_minor },
        { "serial", text_serial },
    };
    int result = 0;

    for (size_t i = 0; i < sizeof(unique) / sizeof(unique[0]) && result == 0; i++)
        result = check_unique(r, unique[i].key, unique[i].text);
    return result;
}

/* --- references ------------------------------------------------------------------------------ */

static bool device_exists(const struct resolver *r, const char *name)
{
    uint32_t domain, bus, device, function;
    int64_t index;

    if (!strcmp(name, "all"))
        return true;
    if (parse_i64(name, &index) == 0)
        return index >= 0 && index < r->count;
    for (int i = 0; i < r->count; i++) {
        const struct gpu_entry *e = &r->entries[i];

        if (!strcasecmp(e->uuid, name))
            return true;
        if (bus_id_parse(name, &domain, &bus, &device, &function) == 0 && domain == e->domain &&
            bus == e->bus && device == e->device && function == e->function)
            return true;
    }
    return false;
}

static const char no_device[] = "there is no GPU '%s'; allowed: 0 to %d, a UUID, a bus id, or all";

static int check_workload(struct resolver *r, size_t i)
{
    const struct workload_spec *all = r->cfg->workloads.items, *w = &all[i];
    const struct device_name *devices = w->devices.items;

    for (size_t j = 0; j < w->devices.count; j++)
        if (!device_exists(r, devices[j].text))
            return refuse_item(r, EINVAL, "workloads", i, &w->head, "devices", no_device,
                               devices[j].text, r->count - 1);
    if (w->gpus > r->count && !w->devices.count)
        return refuse_item(r, ERANGE, "workloads", i, &w->head, "gpus",
                           "asks for %" PRId64 " GPUs; there are %d", w->gpus, r->count);
    if (*w->model && !model_find(&r->cfg->models, w->model))
        return refuse_item(r, EINVAL, "workloads", i, &w->head, "model", "'%s' is not a model",
                           w->model);
    for (size_t j = 0; *w->name && j < i; j++)
        if (!strcmp(all[j].name, w->name))
            return refuse_item(r, EINVAL, "workloads", i, &w->head, "name",
                               "'%s' is a duplicate: workloads[%zu] has it already", w->name, j);
    return 0;
}

static int check_override(struct resolver *r, const struct gpu_spec *o)
{
    struct gpu_entry at = { .from = o, .over = o };

    if (!device_exists(r, o->key) || !strcmp(o->key, "all"))
        return why_set(r->why, EINVAL,
                       "%s:%d:%d: overrides.%s: there is no GPU '%s'; allowed: 0 to %d or a UUID",
                       r->cfg->source, o->head.line, o->head.column, o->key, o->key, r->count - 1);
    if (bind_is_set(&gpu_table, o, "count"))
        return refuse_gpu(r, EINVAL, &at, "count", "an override is for one GPU");
    return 0;
}

static int check_pair(struct resolver *r, size_t i, int64_t *taken)
{
    const struct nvlink_pair *p = &((const struct nvlink_pair *)r->cfg->nvlink.links.items)[i];
    const int64_t ends[] = { p->from, p->to };
    const char *const keys[] = { "from", "to" };

    for (int k = 0; k < 2; k++)
        if (ends[k] >= r->count)
            return refuse_item(r, ERANGE, "nvlink.links", i, &p->head, keys[k],
                               "there is no such GPU; allowed: 0 to %d", r->count - 1);
    if (p->from == p->to)
        return refuse_item(r, EINVAL, "nvlink.links", i, &p->head, "to",
                           "a GPU is not linked to itself");
    for (int k = 0; k < 2; k++) {
        const struct gpu_model *m = r->entries[ends[k]].model;

        taken[ends[k]] += p->count;
        if (taken[ends[k]] > m->nvlink.links)
            return refuse_item(r, ERANGE, "nvlink.links", i, &p->head, "count",
                               "GPU %" PRId64 " (%s) has %" PRId64 " links, not %" PRId64, ends[k],
                               m->name, m->nvlink.links, taken[ends[k]]);
    }
    return 0;
}

static int check_links(struct resolver *r)
{
    int64_t *taken = calloc((size_t)r->count + 1, sizeof(*taken));
    int result = taken ? 0 : why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);

    for (size_t i = 0; i < r->cfg->nvlink.links.count && result == 0; i++)
        result = check_pair(r, i, taken);
    free(taken);
    return result;
}

static int check_references(struct resolver *r)
{
    const struct fault_spec *faults = r->cfg->faults.items;
    const struct gpu_spec *overrides = r->cfg->overrides.items;
    int result = 0;

    for (size_t i = 0; i < r->cfg->workloads.count && result == 0; i++)
        result = check_workload(r, i);
    for (size_t i = 0; i < r->cfg->faults.count && result == 0; i++)
        if (!device_exists(r, faults[i].gpu.text))
            result = refuse_item(r, EINVAL, "faults", i, &faults[i].head, "gpu", no_device,
                                 faults[i].gpu.text, r->count - 1);
    for (size_t i = 0; i < r->cfg->overrides.count && result == 0; i++)
        result = check_override(r, &overrides[i]);
    return result < 0 ? result : check_links(r);
}

/* --- all ------------------------------------------------------------------------------------- */

static int resolve_all(struct resolver *r)
{
    const struct gpu_spec *gpus = r->cfg->gpus.items;
    int result = 0;

    for (size_t i = 0; i < r->cfg->gpus.count; i++)
        for (int j = 0; j < gpus[i].count && result == 0; j++)
            result = resolve_gpu(r, &gpus[i], j, r->room);
    if (result == 0)
        result = check_duplicates(r);
    if (result == 0)
        result = check_references(r);
    return result;
}

int config_resolve(const struct config *cfg, struct gpu_entry **entries, int *count,
                   struct why *why)
{
    const struct gpu_spec *gpus = cfg->gpus.items;
    struct resolver r = { .cfg = cfg, .why = why };
    int64_t total = 0;
    int result;

    for (size_t i = 0; i < cfg->gpus.count; i++)
        total += gpus[i].count;
    if (total > CONFIG_GPUS_MAX)
        return why_set(why, ERANGE, "%s:%d:%d: gpus: %" PRId64 " GPUs; allowed: at most %d",
                       cfg->source, gpus[0].head.line, gpus[0].head.column, total, CONFIG_GPUS_MAX);
    r.room = (int)total;
    r.entries = calloc((size_t)total + 1, sizeof(*r.entries));
    if (!r.entries)
        return why_set(why, ENOMEM, "%s: out of memory", cfg->source);
    result = resolve_all(&r);
    if (result < 0) {
        free(r.entries);
        return result;
    }
    *entries = r.entries;
    *count = r.count;
    return 0;
}
