/*
 * Entity: what a series is about, its labels and its values. See entity.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/entity.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/xids.h"
#include "sim/text.h"

enum { LABELS_MAX = 256 };

/* A view that was made by hand has no nodes. */
static const struct view_node *node_of(const struct exposing *x, const struct view_gpu *gpu)
{
    static const struct view_node unnamed;

    return x->view->nodes ? &x->view->nodes[gpu->node] : &unnamed;
}

/* --- which there are ------------------------------------------------------------------------- */

static bool rules_have(const struct label_rules *rules, enum variable variable)
{
    for (size_t i = 0; i < rules->count; i++)
        if (template_has(&rules->items[i].value, variable))
            return true;
    return false;
}

static bool dialect_has(const struct dialect *d, enum variable variable)
{
    return rules_have(&d->labels, variable) || rules_have(&d->attributes, variable);
}

static bool is_chosen(const struct device_choice *c, int id)
{
    if (c->all)
        return true;
    for (int i = 0; i < c->count; i++)
        if (c->ids[i] == id)
            return true;
    return false;
}

static bool is_same_pod(const struct view_process *a, const struct view_process *b)
{
    return !strcmp(a->namespace, b->namespace) && !strcmp(a->pod, b->pod) &&
           !strcmp(a->container, b->container);
}

static bool has_pod(const struct view_process *p)
{
    return *p->namespace || *p->pod || *p->container;
}

/* One for each container that uses the GPU, or this instance of it; processes are added up. At least one. */
static void add_pods(struct exposing *x, const struct view_gpu *gpu,
                     const struct view_instance *instance)
{
    size_t first = x->entities.count, k;
    struct entity *items = x->entities.items;

    for (int i = 0; x->pods && i < gpu->process_count; i++) {
        const struct view_process *p = &gpu->processes[i];

        if (!has_pod(p) || (instance && p->gi != instance->gi))
            continue;
        for (k = first; k < x->entities.count && !is_same_pod(items[k].pod, p); k++)
            continue;
        if (k == x->entities.count)
            items[x->entities.count++] = (struct entity){ .gpu = gpu,
                                                          .instance = instance,
                                                          .pod = p };
        items[k].memory_bytes += p->memory_bytes;
        items[k].utilization_percent += p->utilization_percent;
    }
    for (k = first; k < x->entities.count; k++)
        items[k].shared = x->entities.count - first > 1;
    if (x->entities.count == first)
        items[x->entities.count++] = (struct entity){ .gpu = gpu, .instance = instance };
}

static void add_instances(struct exposing *x, const struct view_gpu *gpu)
{
    const struct device_choice *c = &x->wishes->devices;

    for (int i = 0; i < gpu->instance_count; i++)
        if (c->mode == DEVICES_FLEX || is_chosen(c, gpu->instances[i].gi))
            add_pods(x, gpu, &gpu->instances[i]);
}

static void add_entities(struct exposing *x, const struct view_gpu *gpu, bool instances)
{
    const struct device_choice *c = &x->wishes->devices;

    if (instances && c->mode != DEVICES_GPUS && gpu->instance_count)
        add_instances(x, gpu);
    else if (c->mode == DEVICES_INSTANCES || (c->mode == DEVICES_GPUS && !is_chosen(c, gpu->index)))
        return;
    else
        add_pods(x, gpu, NULL);
}

int entities_make(struct exposing *x)
{
    const struct dialect *d = x->wishes->dialect;
    bool instances = dialect_has(d, VARIABLE_GI) || dialect_has(d, VARIABLE_GI_PROFILE);
    size_t room = 1;

    x->pods = x->wishes->pods &&
              (dialect_has(d, VARIABLE_POD) || dialect_has(d, VARIABLE_NAMESPACE) ||
               dialect_has(d, VARIABLE_CONTAINER));
    for (int i = 0; i < x->view->gpu_count; i++)
        room += 1 + (size_t)x->view->gpus[i].process_count +
                (size_t)x->view->gpus[i].instance_count;
    x->entities.items = arena_alloc(&x->set->arena, room * sizeof(struct entity));
    if (!x->entities.items)
        return -ENOMEM;
    for (int i = 0; i < x->view->gpu_count; i++)
        if (!node_of(x, &x->view->gpus[i])->hidden)
            add_entities(x, &x->view->gpus[i], instances);
    for (size_t i = 0; i < x->entities.count; i++) {
        x->entities.items[i].labels = entity_labels(x, &x->entities.items[i], NULL);
        if (!x->entities.items[i].labels)
            return -ENOMEM;
    }
    return 0;
}

/* --- variables ------------------------------------------------------------------------------- */

struct lookup {
    const struct exposing *x;
    const struct entity *e;
    char number[32];
    struct text text;  /* of the variable last asked for, when it is made up */
    struct text value; /* of the label being made */
};

static const char *in_text(struct lookup *l, const char *format, const char *value)
{
    text_cut(&l->text, 0);
    text_addf(&l->text, format, value);
    return text_str(&l->text);
}

static const char *in_number(struct lookup *l, int64_t value)
{
    snprintf(l->number, sizeof(l->number), "%lld", (long long)value);
    return l->number;
}

static const char *in_lower_case(struct lookup *l, const char *value, int length)
{
    text_cut(&l->text, 0);
    text_addf(&l->text, "%.*s", length, value);
    for (char *c = l->text.data; c && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return text_str(&l->text);
}

/* 00000000:06:00.0 as 0000:06:00.0. */
static const char *pci_address(struct lookup *l, const char *bus_id)
{
    enum { LENGTH = 12 };

    if (!bus_id || strlen(bus_id) < LENGTH)
        return bus_id;
    return in_lower_case(l, bus_id + strlen(bus_id) - LENGTH, LENGTH);
}

/* 0x20B010DE as 0x20b0. */
static const char *pci_device(struct lookup *l, const char *device_and_vendor)
{
    return device_and_vendor ? in_lower_case(l, device_and_vendor, 6) : NULL;
}

static const char *model_name(struct lookup *l, const char *name)
{
    if (!name || !l->x->wishes->replace_blanks)
        return name;
    in_text(l, "%s", name);
    for (char *c = l->text.data; c && *c; c++)
        if (*c == ' ')
            *c = '-';
    return text_str(&l->text);
}

static int64_t xid_of(const struct entity *e)
{
    int64_t xid = 0;

    return entity_read(e, METRIC_XID_LAST, &xid) == 0 ? xid : 0;
}

static const char *or_none(const char *text)
{
    return *text ? text : NULL;
}

static const char *look_up(const void *context, enum variable variable)
{
    struct lookup *l = (struct lookup *)context;
    const struct entity *e = l->e;
    const char *const *names = e->gpu->names;

    switch ((int)variable) {
    case IDENTITY_INDEX:
        return in_number(l, e->gpu->index + l->x->wishes->dialect->index_base);
    case IDENTITY_NAME:
        return model_name(l, names[IDENTITY_NAME]);
    case VARIABLE_HOSTNAME:
        return node_of(l->x, e->gpu)->name ? node_of(l->x, e->gpu)->name : l->x->wishes->hostname;
    case VARIABLE_UUID_BARE:
        return names[IDENTITY_UUID] && !strncmp(names[IDENTITY_UUID], "GPU-", 4)
                   ? names[IDENTITY_UUID] + 4
                   : names[IDENTITY_UUID];
    case VARIABLE_PCI_ADDRESS:
        return pci_address(l, names[IDENTITY_BUS_ID]);
    case VARIABLE_PCI_DEVICE:
        return pci_device(l, names[IDENTITY_PCI_DEVICE_ID]);
    case VARIABLE_NAMESPACE:
        return e->pod ? or_none(e->pod->namespace) : NULL;
    case VARIABLE_POD:
        return e->pod ? or_none(e->pod->pod) : NULL;
    case VARIABLE_CONTAINER:
        return e->pod ? or_none(e->pod->container) : NULL;
    case VARIABLE_GI:
        return e->instance ? in_number(l, e->instance->gi) : NULL;
    case VARIABLE_GI_PROFILE:
        return e->instance ? e->instance->profile : NULL;
    case VARIABLE_XID:
        return in_number(l, xid_of(e));
    case VARIABLE_XID_MESSAGE:
        return xid_message(xid_of(e));
    default:
        return names[variable];
    }
}

/* --- labels ---------------------------------------------------------------------------------- */

struct labels {
    struct label items[LABELS_MAX];
    size_t count;
    struct arena *arena; /* of the set, for values */
    bool failed;
};

static void add_label(struct labels *l, const char *name, const char *value)
{
    char *copy = arena_strndup(l->arena, value, strlen(value));

    if (!copy || l->count == LABELS_MAX)
        l->failed = true;
    else
        l->items[l->count++] = (struct label){ name, copy };
}

/* What dcgm-exporter called them before 2.0, by what they hold. */
static const char *old_name(const struct label_rule *rule)
{
    static const struct {
        enum variable variable;
        const char *name;
    } names[] = {
        { (enum variable)IDENTITY_UUID, "uuid" },
        { VARIABLE_POD, "pod_name" },
        { VARIABLE_NAMESPACE, "pod_namespace" },
        { VARIABLE_CONTAINER, "container_name" },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (template_is(&rule->value, names[i].variable))
            return names[i].name;
    return rule->name;
}

static void add_rule(struct labels *l, struct lookup *lookup, const struct label_rule *rule)
{
    const struct wishes *w = lookup->x->wishes;
    bool is_hostname = template_is(&rule->value, VARIABLE_HOSTNAME);
    const char *name = rule->name;

    if (is_hostname && w->no_hostname)
        return;
    if (is_hostname && w->hostname_label)
        name = w->hostname_label;
    else if (w->old_namespace)
        name = old_name(rule);
    text_cut(&lookup->value, 0);
    if (template_add(&lookup->value, &rule->value, look_up, lookup))
        add_label(l, name, text_str(&lookup->value));
    else if (w->dialect->empty == EMPTY_KEEP)
        add_label(l, name, "");
    l->failed |= lookup->value.failed;
}

static void add_rules(struct labels *l, struct lookup *lookup, const struct label_rules *rules)
{
    for (size_t i = 0; rules && i < rules->count; i++)
        add_rule(l, lookup, &rules->items[i]);
}

static int by_name(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static void sort_from(struct labels *l, size_t first)
{
    if (l->count > first)
        qsort(&l->items[first], l->count - first, sizeof(l->items[0]), by_name);
}

/* Fields that a counters file calls labels. */
static void add_counter_labels(struct labels *l, const struct exposing *x, const struct entity *e,
                               const struct more_labels *more)
{
    size_t first = l->count;

    for (size_t i = 0; x->counters && i < x->counters->count; i++) {
        const struct counter *c = &x->counters->items[i];

        if (c->is_label && c->source == COUNTER_IDENTITY && e->gpu->names[c->which])
            add_label(l, c->name, e->gpu->names[c->which]);
    }
    for (size_t i = 0; i < more->field_count; i++)
        add_label(l, more->fields[i].name, more->fields[i].value);
    sort_from(l, first);
}

const struct label_set *entity_labels(const struct exposing *x, const struct entity *e,
                                      const struct more_labels *more)
{
    static const struct more_labels none;
    const struct dialect *d = x->wishes->dialect;
    struct lookup lookup = { .x = x, .e = e };
    struct labels l;
    const struct label_set *set = NULL;
    size_t first;

    l.count = 0;
    l.failed = false;
    l.arena = &x->set->arena;
    more = more ? more : &none;
    add_rules(&l, &lookup, &d->labels);
    add_rules(&l, &lookup, more->rules);
    add_counter_labels(&l, x, e, more);
    first = l.count;
    add_rules(&l, &lookup, &d->attributes);
    for (size_t i = 0; i < more->attribute_count; i++)
        add_label(&l, more->attributes[i].name, more->attributes[i].value);
    sort_from(&l, first);
    if (!l.failed && !lookup.text.failed)
        set = label_set_make(&x->set->arena, l.items, l.count);
    text_release(&lookup.text);
    text_release(&lookup.value);
    return set;
}

/* --- values ---------------------------------------------------------------------------------- */

/* What a GPU with MIG on does not have: see the MIG part of docs/exporter.md. */
static bool is_absent_with_mig(enum metric id)
{
    switch (id) {
    case METRIC_UTILIZATION_GPU:
    case METRIC_UTILIZATION_MEMORY:
    case METRIC_UTILIZATION_ENCODER:
    case METRIC_UTILIZATION_DECODER:
    case METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL:
    case METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL:
    case METRIC_REMAPPED_ROWS_FAILURE:
    case METRIC_REMAPPED_ROWS_PENDING:
    case METRIC_PCIE_TX:
    case METRIC_PCIE_RX:
        return true;
    default:
        return false;
    }
}

static bool is_memory(enum metric id)
{
    return id == METRIC_MEMORY_TOTAL || id == METRIC_MEMORY_USED || id == METRIC_MEMORY_FREE ||
           id == METRIC_MEMORY_RESERVED || id == METRIC_MEMORY_USED_RATIO;
}

/* What all processes on an instance use. */
static int64_t instance_used(const struct entity *e)
{
    int64_t used = 0;

    for (int i = 0; i < e->gpu->process_count; i++)
        if (e->gpu->processes[i].gi == e->instance->gi)
            used += e->gpu->processes[i].memory_bytes;
    return used;
}

static int64_t instance_memory(const struct entity *e, enum metric id)
{
    int64_t total = e->instance->memory_bytes, used = instance_used(e);

    switch ((int)id) {
    case METRIC_MEMORY_TOTAL:
        return total;
    case METRIC_MEMORY_USED:
        return e->shared ? e->memory_bytes : used;
    case METRIC_MEMORY_FREE:
        return total - used;
    case METRIC_MEMORY_RESERVED:
        return 0;
    default:
        return total ? (int64_t)((double)used / (double)total * 1e6) : 0;
    }
}

int entity_read(const struct entity *e, enum metric id, int64_t *value)
{
    int64_t mig = 0;
    int r = metric_read(&e->gpu->sample, id, value);

    /* A lost GPU answers nothing, but the driver remembers the Xid that told of it. */
    if (e->gpu->lost)
        return id == METRIC_XID_LAST ? r : -ENODATA;
    if (e->shared && r == 0 && id == METRIC_UTILIZATION_GPU)
        *value = e->utilization_percent * unit_parts(UNIT_PERCENT);
    if (e->shared && r == 0 && id == METRIC_MEMORY_USED)
        *value = e->memory_bytes;
    if (metric_read(&e->gpu->sample, METRIC_MIG_MODE, &mig) < 0 || !mig)
        return r;
    if (is_absent_with_mig(id) || (!e->instance && is_memory(id)))
        return -ENODATA;
    if (r == 0 && e->instance && is_memory(id))
        *value = instance_memory(e, id);
    return r;
}
