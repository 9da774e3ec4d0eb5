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
    int *override_of; /* for each of cfg->overrides: the GPU it is about, or -1 */
    int *named_by;    /* for each GPU: the last workload that named it, from 1 */
    int64_t shares;   /* GPUs of all workloads so far; of all faults */
    int64_t targets;
    int64_t next_domain; /* behind those of the nodes so far */
    struct why *why;
};

/* --- sentences ------------------------------------------------------------------------------- */

enum { NO_ITEM = -1 };

/* "file:line:column: path.key: sentence" about the value of `key`, or about an item of that list. */
static int refuse_v(struct resolver *r, int err, const struct bind_head *head, const char *path,
                    const char *key, ptrdiff_t item, const char *fmt, va_list ap)
{
    struct bind_head at = bind_position(r->cfg->doc.root, head, key, (size_t)item);
    struct text sentence = TEXT_INIT;
    int result;

    text_addf(&sentence, "%s.%s", path, key);
    if (item >= 0)
        text_addf(&sentence, "[%td]", item);
    text_add(&sentence, ": ");
    text_vaddf(&sentence, fmt, ap);
    if (at.line)
        result = why_set(r->why, err, "%s:%d:%d: %s", r->cfg->source, at.line, at.column,
                         text_str(&sentence));
    else
        result = why_set(r->why, err, "%s: %s", r->cfg->source, text_str(&sentence));
    text_release(&sentence);
    return result;
}

/* What the form with nodes calls a key of a GPU. */
static const char *node_key(const char *key)
{
    static const char *const names[][2] = {
        { "uuid", "id" },
        { "memory", "gpu-memory" },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(key, names[i][0]))
            return names[i][1];
    return key;
}

/* The node that a GPU was taken from, or NULL in the other form. */
static const struct node_spec *node_taken(const struct config *cfg, const struct gpu_spec *from)
{
    const struct node_spec *nodes = cfg->nodes.items;
    const char *name = *from->node ? from->node : cfg->node;

    for (size_t i = 0; i < cfg->nodes.count; i++)
        if (!strcmp(nodes[i].key, name))
            return &nodes[i];
    return NULL;
}

static void add_gpu_path(struct text *path, const struct config *cfg, const struct gpu_spec *from)
{
    const struct ynode *gpus = ynode_get(cfg->doc.root, "gpus");
    const struct gpu_spec *first = cfg->gpus.items;
    ptrdiff_t i = from - first;

    while (cfg->nodes.count && first < from && strcmp(first->node, from->node))
        first++, i--; /* those of other nodes */
    if (cfg->nodes.count)
        text_addf(path, "nodes.%s.gpus[%td]", *from->node ? from->node : cfg->node, i);
    else if (gpus && gpus->kind == YNODE_LIST)
        text_addf(path, "gpus[%td]", i);
    else
        text_add(path, "gpus");
}

/* The override that gave a key to a GPU, or NULL. The last one that did counts. */
static const struct gpu_spec *override_with(const struct resolver *r, const struct gpu_entry *e,
                                            const char *key)
{
    const struct gpu_spec *overrides = r->cfg->overrides.items;

    for (size_t i = r->cfg->overrides.count; i-- > 0;)
        if (r->override_of[i] == e - r->entries && bind_is_set(&gpu_table, &overrides[i], key))
            return &overrides[i];
    return NULL;
}

/* A refusal about a key of a GPU, wherever and under whatever name that key was given. */
static int __attribute__((format(printf, 5, 6)))
refuse_gpu(struct resolver *r, int err, const struct gpu_entry *e, const char *key, const char *fmt,
           ...)
{
    const struct gpu_spec *over = override_with(r, e, key);
    const struct node_spec *node = over ? NULL : node_taken(r->cfg, e->from);
    const struct bind_head *head = over ? &over->head : &e->from->head;
    struct text path = TEXT_INIT;
    va_list ap;
    int result;

    if (over) {
        text_addf(&path, "overrides.%s", over->key);
    } else if (node && !strcmp(key, "memory")) {
        text_addf(&path, "nodes.%s", node->key); /* it is said once for all of a node's GPUs */
        head = &node->head;
    } else {
        add_gpu_path(&path, r->cfg, e->from);
    }
    va_start(ap, fmt);
    result = refuse_v(r, err, head, text_str(&path), node ? node_key(key) : key, NO_ITEM, fmt, ap);
    va_end(ap);
    text_release(&path);
    return result;
}

/* A refusal about a key of item `i` of a list; where that is a list itself, about its `item`. */
static int __attribute__((format(printf, 8, 9)))
refuse_item(struct resolver *r, int err, const char *list, size_t i, const struct bind_head *head,
            const char *key, ptrdiff_t item, const char *fmt, ...)
{
    char path[64];
    va_list ap;
    int result;

    snprintf(path, sizeof(path), "%s[%zu]", list, i);
    va_start(ap, fmt);
    result = refuse_v(r, err, head, path, key, item, fmt, ap);
    va_end(ap);
    return result;
}

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

/* The most memory that a workload is sure to ask for: what functions come to is not known before. */
static double sure_memory(const struct workload_spec *w)
{
    const struct phase_spec *phases = w->activity.items;
    const struct signal_spec *memory = w->memory.items;
    double most = 0;

    if (w->memory.count && memory->signal.kind == SIGNAL_CONSTANT && !memory->signal.share)
        most = memory->signal.p[0];
    for (size_t i = 0; i < w->activity.count; i++) {
        const struct signal_spec *signals = phases[i].signals.items;

        for (size_t j = 0; j < phases[i].signals.count; j++)
            if (signals[j].signal.target == CHANNEL_MEMORY && !signals[j].signal.share &&
                signals[j].signal.kind == SIGNAL_CONSTANT && signals[j].signal.p[0] > most)
                most = signals[j].signal.p[0];
    }
    return most;
}

/* What a workload may use of a GPU. */
static int64_t usable_bytes(const struct gpu_entry *e)
{
    return e->memory_bytes - e->model->memory.reserved_bytes;
}

static int refuse_base_memory(struct resolver *r, const struct gpu_entry *e, double wanted)
{
    const struct gpu_spec *over = override_with(r, e, "workload");
    bool in_node = !over && node_taken(r->cfg, e->from);
    const char *key = in_node ? "metrics.fb-used" : "workload.memory";
    struct bind_head at = bind_position(r->cfg->doc.root, &e->spec.workload.head,
                                        in_node ? "fb-used" : "memory", 0);
    struct text path = TEXT_INIT;
    int result;

    if (over)
        text_addf(&path, "overrides.%s", over->key);
    else
        add_gpu_path(&path, r->cfg, e->from);
    result = why_set(r->why, ENOSPC,
                     "%s:%d:%d: %s.%s: %.0fMiB do not fit on GPU %td (%s), which has %" PRId64
                     "MiB for workloads",
                     r->cfg->source, at.line, at.column, text_str(&path), key, wanted / 0x1p20,
                     e - r->entries, e->model->name, usable_bytes(e) >> 20);
    text_release(&path);
    return result;
}

static int check_base_memory(struct resolver *r, const struct gpu_entry *e)
{
    double wanted = sure_memory(&e->spec.workload);

    return wanted > (double)usable_bytes(e) ? refuse_base_memory(r, e, wanted) : 0;
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
        result = check_base_memory(r, e);
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

    memcpy(e->node, node, sizeof(e->node));
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
    e->model = model_find(&r->cfg->models, *e->spec.model ? e->spec.model : "A100-SXM4-40GB");
    if (!e->model)
        return refuse_gpu(r, EINVAL, e, "model", "'%s' is not a model", e->spec.model);
    e->minor = number_of(r, e, "minor", e->spec.minor, in_item, index);
    e->module_id = number_of(r, e, "module_id", e->spec.module_id, in_group, e->node_index + 1);
    e->memory_bytes = e->spec.memory_bytes ? e->spec.memory_bytes : e->model->memory.total_bytes;
    choose_profile(r->cfg, e, index, in_item);
    return check_entry(r, e);
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
    char text[NODE_NAME]; /* the longest of them */
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

/* Nodes by name, each by its first GPU: one that comes twice has GPUs of others in between. */
static int check_nodes(struct resolver *r)
{
    struct claim *claims = calloc((size_t)r->count + 1, sizeof(*claims));
    int count = 0, result = 0;

    if (!claims)
        return why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);
    for (int i = 0; i < r->count; i++)
        if (*r->entries[i].node && !r->entries[i].node_index) {
            claims[count].index = i;
            memcpy(claims[count++].text, r->entries[i].node, sizeof(r->entries[i].node));
        }
    qsort(claims, (size_t)count, sizeof(*claims), claim_order);
    for (int i = 1; i < count && result == 0; i++)
        if (!strcmp(claims[i - 1].text, claims[i].text))
            result =
                refuse_gpu(r, EINVAL, &r->entries[claims[i].index], "node",
                           "'%s' is a duplicate: GPU %d is on it, and the GPUs of a node follow "
                           "each other",
                           claims[i].text, claims[i - 1].index);
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
    int result = check_nodes(r);

    for (size_t i = 0; i < sizeof(unique) / sizeof(unique[0]) && result == 0; i++)
        result = check_unique(r, unique[i].key, unique[i].text);
    return result;
}

/* --- references ------------------------------------------------------------------------------ */

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

static int check_device(struct resolver *r, size_t i, size_t item)
{
    const struct workload_spec *w = (const struct workload_spec *)r->cfg->workloads.items + i;
    const struct device_name *devices = w->devices.items;
    const char *name = devices[item].text;
    int gpu = device_find(r, name);
    double wanted = sure_memory(w);

    if (is_all(name) && w->devices.count > 1)
        return refuse_item(r, EINVAL, "workloads", i, &w->head, "devices", (ptrdiff_t)item,
                           "'all' stands alone");
    if (gpu < 0 && !is_all(name))
        return no_device(r, "workloads", i, &w->head, "devices", (ptrdiff_t)item, name);
    if (gpu >= 0 && r->named_by[gpu] == (int)i + 1)
        return refuse_item(r, EINVAL, "workloads", i, &w->head, "devices", (ptrdiff_t)item,
                           "GPU %d is named twice", gpu);
    if (gpu >= 0)
        r->named_by[gpu] = (int)i + 1;
    r->shares += gpu >= 0 ? 1 : r->count;
    for (int k = gpu < 0 ? 0 : gpu; k < (gpu < 0 ? r->count : gpu + 1); k++)
        if (wanted > (double)usable_bytes(&r->entries[k]))
            return refuse_item(r, ENOSPC, "workloads", i, &w->head, "memory", NO_ITEM,
                               "%.0fMiB do not fit on GPU %d (%s), which has %" PRId64
                               "MiB for workloads",
                               wanted / 0x1p20, k, r->entries[k].model->name,
                               usable_bytes(&r->entries[k]) >> 20);
    return 0;
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

static int check_workload(struct resolver *r, size_t i)
{
    const struct workload_spec *w = (const struct workload_spec *)r->cfg->workloads.items + i;
    int result = check_workload_model(r, i, w);

    if (result == 0 && !w->devices.count && w->gpus > r->count)
        result = refuse_item(r, ERANGE, "workloads", i, &w->head, "gpus", NO_ITEM,
                             "asks for %" PRId64 " GPU%s; there %s %d", w->gpus,
                             w->gpus == 1 ? "" : "s", r->count == 1 ? "is" : "are", r->count);
    for (size_t j = 0; j < w->devices.count && result == 0; j++)
        result = check_device(r, i, j);
    r->shares += w->devices.count ? 0 : w->gpus;
    if (result == 0 && r->shares > CONFIG_SHARES_MAX)
        result = refuse_item(r, ERANGE, "workloads", i, &w->head,
                             w->devices.count ? "devices" : "gpus", NO_ITEM,
                             "the workloads up to here take more than %d GPUs together",
                             CONFIG_SHARES_MAX);
    return result;
}

static void workload_text(const struct workload_spec *w, size_t i, char *text, size_t size)
{
    if (*w->name)
        snprintf(text, size, "%s", w->name);
    else
        snprintf(text, size, "workload-%zu", i); /* as one without a name is called */
}

static int check_workload_names(struct resolver *r)
{
    const struct workload_spec *all = r->cfg->workloads.items;
    size_t count = r->cfg->workloads.count;
    struct claim *claims = calloc(count + 1, sizeof(*claims));
    int result = 0;

    if (!claims)
        return why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);
    for (size_t i = 0; i < count; i++) {
        claims[i].index = (int)i;
        workload_text(&all[i], i, claims[i].text, sizeof(claims[i].text));
    }
    qsort(claims, count, sizeof(*claims), claim_order);
    for (size_t i = 1; i < count && result == 0; i++) {
        const struct claim *first = &claims[i - 1], *second = &claims[i];

        if (!strcmp(first->text, second->text))
            result = refuse_item(r, EINVAL, "workloads", (size_t)second->index,
                                 &all[second->index].head, "name", NO_ITEM,
                                 "'%s' is a duplicate: workloads[%d] is called so already",
                                 second->text, first->index);
    }
    free(claims);
    return result;
}

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

/* A fault for all must fit one of them at least. */
static int check_fault(struct resolver *r, size_t i)
{
    const struct fault_spec *f = (const struct fault_spec *)r->cfg->faults.items + i;
    bool all = is_all(f->gpu.text);
    int gpu = all ? 0 : device_find(r, f->gpu.text);
    const char *misfit = NULL;

    if (gpu < 0 || r->count == 0)
        return no_device(r, "faults", i, &f->head, "gpu", NO_ITEM, f->gpu.text);
    r->targets += all ? r->count : 1;
    if (r->targets > CONFIG_SHARES_MAX)
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

/* --- NVLink ---------------------------------------------------------------------------------- */

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
    int result = taken ? 0 : why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);

    for (size_t i = 0; i < r->cfg->nvlink.links.count && result == 0; i++)
        result = check_pair(r, i, taken);
    free(taken);
    return result;
}

static int check_references(struct resolver *r)
{
    int result = check_workload_names(r);

    for (size_t i = 0; i < r->cfg->workloads.count && result == 0; i++)
        result = check_workload(r, i);
    for (size_t i = 0; i < r->cfg->faults.count && result == 0; i++)
        result = check_fault(r, i);
    for (size_t i = 0; i < r->cfg->overrides.count && result == 0; i++)
        result = check_override(r, i);
    return result < 0 ? result : check_links(r);
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
        result = check_duplicates(r);
    if (result == 0)
        result = check_references(r);
    return result;
}

static int start_resolver(struct resolver *r, int total)
{
    size_t overrides = r->cfg->overrides.count;

    r->room = total;
    r->entries = calloc((size_t)total + 1, sizeof(*r->entries));
    r->override_of = calloc(overrides + 1, sizeof(*r->override_of));
    r->named_by = calloc((size_t)total + 1, sizeof(*r->named_by));
    if (!r->entries || !r->override_of || !r->named_by)
        return why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);
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
    free(r.named_by);
    if (result < 0) {
        free(r.entries);
        return result;
    }
    *entries = r.entries;
    *count = r.count;
    return 0;
}
