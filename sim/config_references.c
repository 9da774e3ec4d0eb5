/*
 * Config: what names GPUs. See config_references.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_references.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config_memory.h"
#include "sim/config_shapes.h"
#include "sim/suggest.h"

/* --- names of GPUs --------------------------------------------------------------------------- */

static bool is_all(const char *name)
{
    return !strcmp(name, "all");
}

/* The GPU that is NODE/INDEX, or -1. */
static int device_on_node(const struct resolver *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (node_device_is(name, r->entries[i].node, r->entries[i].node_index))
            return i;
    return -1;
}

/* The GPU of that index, UUID, bus id or place on a node, or -1. */
static int device_find(const struct resolver *r, const char *name)
{
    uint32_t domain, bus, device, function;
    bool is_bus_id = bus_id_parse(name, &domain, &bus, &device, &function) == 0;
    int64_t index;

    if (parse_i64(name, &index) == 0)
        return index >= 0 && index < r->count ? (int)index : -1;
    if (strchr(name, '/'))
        return device_on_node(r, name);
    for (int i = 0; i < r->count; i++) {
        const struct gpu_entry *e = &r->entries[i];

        if (!strcasecmp(e->uuid, name))
            return i;
        if (is_bus_id && domain == e->domain && bus == e->bus && device == e->device &&
            function == e->function)
            return i;
    }
    return -1;
}

/* "0 to 7, a UUID or a bus id": what a GPU can be called. The caller releases the text. */
static void add_devices(struct text *out, const struct resolver *r)
{
    if (r->count == 0)
        text_add(out, "there are no GPUs");
    else if (r->count == 1)
        text_add(out, "allowed: 0, its UUID, its bus id, or all");
    else
        text_addf(out, "allowed: 0 to %d, a UUID, a bus id, or all", r->count - 1);
}

static int no_device(struct resolver *r, const char *list, size_t i, const struct bind_head *head,
                     const char *key, ptrdiff_t item, const char *name)
{
    struct text allowed = TEXT_INIT;
    int result;

    add_devices(&allowed, r);
    result = refuse_item(r, EINVAL, list, i, head, key, item, "there is no GPU '%s'; %s", name,
                         text_str(&allowed));
    text_release(&allowed);
    return result;
}

/* --- workloads ------------------------------------------------------------------------------- */

/* The GPUs of the workloads so far. */
struct sharing {
    int *named_by;  /* for each GPU: the last workload that named it, from 1 */
    int64_t shares; /* of all of them together */
};

static int check_device(struct resolver *r, struct sharing *s, size_t i, size_t item)
{
    const struct workload_spec *w = (const struct workload_spec *)r->cfg->workloads.items + i;
    const struct device_name *devices = w->devices.items;
    const char *name = devices[item].text;
    int gpu = device_find(r, name);
    int first = gpu < 0 ? 0 : gpu, behind = gpu < 0 ? r->count : gpu + 1;

    if (is_all(name) && w->devices.count > 1)
        return refuse_item(r, EINVAL, "workloads", i, &w->head, "devices", (ptrdiff_t)item,
                           "'all' stands alone");
    if (gpu < 0 && !is_all(name))
        return no_device(r, "workloads", i, &w->head, "devices", (ptrdiff_t)item, name);
    if (gpu >= 0 && s->named_by[gpu] == (int)i + 1)
        return refuse_item(r, EINVAL, "workloads", i, &w->head, "devices", (ptrdiff_t)item,
                           "GPU %d is named twice", gpu);
    if (gpu >= 0)
        s->named_by[gpu] = (int)i + 1;
    s->shares += behind - first;
    return check_workload_memory(r, i, first, behind);
}

static int check_workload_model(struct resolver *r, size_t i, const struct workload_spec *w)
{
    struct text hint = TEXT_INIT;
    int result;

    if (!*w->model || model_find(&r->cfg->models, w->model))
        return 0;
    suggest_add(&hint, w->model, model_name_at, &r->cfg->models);
    result = refuse_item(r, EINVAL, "workloads", i, &w->head, "model", NO_ITEM,
                         "'%s' is not a model%s", w->model, text_str(&hint));
    text_release(&hint);
    return result;
}

static int check_workload(struct resolver *r, struct sharing *s, size_t i)
{
    const struct workload_spec *w = (const struct workload_spec *)r->cfg->workloads.items + i;
    int result = check_workload_model(r, i, w);

    if (result == 0 && !w->devices.count && w->gpus > r->count)
        result = refuse_item(r, ERANGE, "workloads", i, &w->head, "gpus", NO_ITEM,
                             "asks for %" PRId64 " GPU%s; there %s %d", w->gpus,
                             w->gpus == 1 ? "" : "s", r->count == 1 ? "is" : "are", r->count);
    for (size_t j = 0; j < w->devices.count && result == 0; j++)
        result = check_device(r, s, i, j);
    s->shares += w->devices.count ? 0 : w->gpus;
    if (result == 0 && s->shares > CONFIG_SHARES_MAX)
        result = refuse_item(r, ERANGE, "workloads", i, &w->head,
                             w->devices.count ? "devices" : "gpus", NO_ITEM,
                             "the workloads up to here take more than %d GPUs together",
                             CONFIG_SHARES_MAX);
    return result;
}

static int check_workloads(struct resolver *r)
{
    struct sharing s = { .named_by = calloc((size_t)r->count + 1, sizeof(*s.named_by)) };
    int result = s.named_by ? 0 : refuse_out_of_memory(r);

    for (size_t i = 0; i < r->cfg->workloads.count && result == 0; i++)
        result = check_workload(r, &s, i);
    free(s.named_by);
    return result;
}

/* --- faults ---------------------------------------------------------------------------------- */

/* Why a GPU cannot have the fault, or NULL. */
static const char *fault_misfit(const struct gpu_entry *e, const struct fault *f)
{
    switch ((enum fault_kind)f->kind) {
    case FAULT_ECC:
        return e->model->ecc.supported ? NULL : "has no ECC";
    case FAULT_ROWS:
        return e->model->ecc.row_remap_banks ? NULL : "does not remap rows";
    case FAULT_PAGES:
        return e->model->ecc.page_retirement ? NULL : "does not retire pages";
    case FAULT_NVLINK:
        if (f->number < 0)
            return e->model->nvlink.links ? NULL : "has no NVLink";
        return f->number < e->model->nvlink.links ? NULL : "has no such NVLink";
    default:
        return NULL;
    }
}

/* A fault for all must fit one of them at least. `hit` counts the GPUs of the faults so far. */
static int check_fault(struct resolver *r, size_t i, int64_t *hit)
{
    const struct fault_spec *f = (const struct fault_spec *)r->cfg->faults.items + i;
    bool all = is_all(f->gpu.text);
    int gpu = all ? 0 : device_find(r, f->gpu.text);
    const char *misfit = NULL;

    if (gpu < 0 || r->count == 0)
        return no_device(r, "faults", i, &f->head, "gpu", NO_ITEM, f->gpu.text);
    *hit += all ? r->count : 1;
    if (*hit > CONFIG_SHARES_MAX)
        return refuse_item(r, ERANGE, "faults", i, &f->head, "gpu", NO_ITEM,
                           "the faults up to here hit more than %d GPUs together",
                           CONFIG_SHARES_MAX);
    for (int k = gpu; k < (all ? r->count : gpu + 1); k++) {
        misfit = fault_misfit(&r->entries[k], &f->fault);
        if (!misfit)
            return 0;
    }
    return refuse_item(r, EINVAL, "faults", i, &f->head, "fault", NO_ITEM, "GPU %d (%s) %s", gpu,
                       r->entries[gpu].model->name, misfit);
}

static int check_faults(struct resolver *r)
{
    int64_t hit = 0;
    int result = 0;

    for (size_t i = 0; i < r->cfg->faults.count && result == 0; i++)
        result = check_fault(r, i, &hit);
    return result;
}

/* --- overrides ------------------------------------------------------------------------------- */

static int check_override(struct resolver *r, size_t i)
{
    const struct gpu_spec *o = (const struct gpu_spec *)r->cfg->overrides.items + i;
    const struct ynode *key = ynode_key(ynode_get(r->cfg->doc.root, "overrides"), o->key);

    if (r->override_of[i] < 0 && !o->head.line)
        return why_set(r->why, EINVAL,
                       "environment: GPU_PROFILES: there is no GPU '%s'; there are %d", o->key,
                       r->count);
    if (r->override_of[i] < 0)
        return why_set(r->why, EINVAL,
                       "%s:%d:%d: overrides.%s: there is no GPU '%s'; allowed: an index below %d, "
                       "or a UUID",
                       r->cfg->source, key->line, key->column, o->key, o->key, r->count);
    if (bind_is_set(&gpu_table, o, "count"))
        return refuse_gpu(r, EINVAL, &r->entries[r->override_of[i]], "count",
                          "an override is about one GPU");
    if (bind_is_set(&gpu_table, o, "node"))
        return refuse_gpu(r, EINVAL, &r->entries[r->override_of[i]], "node",
                          "an override cannot move a GPU to another node");
    return 0;
}

static int check_overrides(struct resolver *r)
{
    int result = 0;

    for (size_t i = 0; i < r->cfg->overrides.count && result == 0; i++)
        result = check_override(r, i);
    return result;
}

/* --- NVLink ---------------------------------------------------------------------------------- */

/* `taken` counts the links of each GPU so far. */
static int check_pair(struct resolver *r, size_t i, int64_t *taken)
{
    const struct nvlink_pair *p = &((const struct nvlink_pair *)r->cfg->nvlink.links.items)[i];
    const int64_t ends[] = { p->from, p->to };
    const char *const keys[] = { "from", "to" };

    for (int k = 0; k < 2; k++)
        if (ends[k] >= r->count)
            return refuse_item(r, ERANGE, "nvlink.links", i, &p->head, keys[k], NO_ITEM,
                               "there is no GPU %" PRId64 "; allowed: 0 to %d", ends[k],
                               r->count - 1);
    if (p->from == p->to)
        return refuse_item(r, EINVAL, "nvlink.links", i, &p->head, "to", NO_ITEM,
                           "a GPU is not linked to itself");
    for (int k = 0; k < 2; k++) {
        const struct gpu_model *m = r->entries[ends[k]].model;

        taken[ends[k]] += p->count;
        if (taken[ends[k]] > m->nvlink.links)
            return refuse_item(r, ERANGE, "nvlink.links", i, &p->head, "count", NO_ITEM,
                               "GPU %" PRId64 " (%s) has %" PRId64 " links, not %" PRId64, ends[k],
                               m->name, m->nvlink.links, taken[ends[k]]);
    }
    return 0;
}

static int check_links(struct resolver *r)
{
    int64_t *taken = calloc((size_t)r->count + 1, sizeof(*taken));
    int result = taken ? 0 : refuse_out_of_memory(r);

    for (size_t i = 0; i < r->cfg->nvlink.links.count && result == 0; i++)
        result = check_pair(r, i, taken);
    free(taken);
    return result;
}

/* --- all ------------------------------------------------------------------------------------- */

int check_references(struct resolver *r)
{
    int result = check_workloads(r);

    if (result == 0)
        result = check_faults(r);
    if (result == 0)
        result = check_overrides(r);
    if (result == 0)
        result = check_links(r);
    return result;
}
