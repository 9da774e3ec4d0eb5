/*
 * Config: the form with `nodes:`. See config_nodes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_nodes.h"

#include <errno.h>
#include <string.h>

#include "sim/config.h"
#include "sim/config_shapes.h"
#include "sim/suggest.h"

/* --- the tables ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct bind_field metadata_fields[] = {
    BIND_ROW_TEXT("namespace", node_metadata, namespace, 0, "Kubernetes namespace."),
    BIND_ROW_TEXT("pod", node_metadata, pod, 0, "Pod."),
    BIND_ROW_TEXT("container", node_metadata, container, 0, "Container."),
    { 0 },
};
static const struct bind_table metadata_table = { .what = "metadata", .fields = metadata_fields };

static const struct bind_field node_metrics_fields[] = {
    BIND_ROW_STRUCT("metadata", node_metrics, metadata, &metadata_table, "Who uses the GPU."),
    BIND_ROW_QUANTITY("utilization", node_metrics, utilization_percent, UNIT_PERCENT, 0, 1e5, BIND_BARE, "Utilization."),
    BIND_ROW_INT("fb-used", node_metrics, fb_used_mib, 0, 1e9, 0, "Memory in use, in MiB."),
    { 0 },
};
static const struct bind_table node_metrics_table = { .what = "metrics", .fields = node_metrics_fields };

static const struct bind_field node_gpu_fields[] = {
    BIND_ROW_SHAPED("id", node_gpu, id, BIND_REQUIRED, &uuid_shape, "UUID."),
    BIND_ROW_STRUCT("metrics", node_gpu, metrics, &node_metrics_table, "What it shows."),
    { 0 },
};
static const struct bind_table node_gpu_table = { .what = "a GPU of a node", .fields = node_gpu_fields };
static const struct bind_field node_gpu_item = { .type = BIND_STRUCT, .table = &node_gpu_table };
/* clang-format on */

static int check_node(struct binder *b, const struct ynode *node, void *object)
{
    const struct node_spec *n = object;
    int r = config_check_model(b, node, "gpu-product", n->gpu_product);

    if (r < 0)
        return r;
    if (!bind_is_set(&node_spec_table, n, "gpus") && !bind_is_set(&node_spec_table, n, "gpu-count"))
        return bind_refuse(b, EINVAL, node, "a node needs the key 'gpus' or 'gpu-count'");
    if (n->gpu_count && n->gpus.count && (size_t)n->gpu_count != n->gpus.count)
        return bind_refuse(b, EINVAL, ynode_get(node, "gpu-count"),
                           "gpu-count is %lld, but 'gpus' lists %zu", (long long)n->gpu_count,
                           n->gpus.count);
    return 0;
}

/* clang-format off */
static const struct bind_field node_fields[] = {
    BIND_ROW_INT("gpu-memory", node_spec, gpu_memory_mib, 1, 1e9, 0, "Memory of each GPU, in MiB."),
    BIND_ROW_TEXT("gpu-product", node_spec, gpu_product, BIND_REQUIRED, "Model of each GPU."),
    BIND_ROW_INT("gpu-count", node_spec, gpu_count, 0, CONFIG_GPUS_MAX, 0, "How many, where they are not listed."),
    BIND_ROW_LIST("gpus", node_spec, gpus, &node_gpu_item, struct node_gpu, CONFIG_GPUS_MAX, 0, "The GPUs."),
    { 0 },
};
const struct bind_table node_spec_table = { .what = "a node", .fields = node_fields, .check = check_node };
/* clang-format on */

/* --- one of them ----------------------------------------------------------------------------- */

static const struct node_spec *find_node(const struct config *cfg, const char *name)
{
    const struct node_spec *nodes = cfg->nodes.items;

    for (size_t i = 0; i < cfg->nodes.count; i++)
        if (!strcmp(nodes[i].key, name))
            return &nodes[i];
    return NULL;
}

static const char *node_name_at(const void *list, int i)
{
    const struct bind_list *nodes = list;

    return (size_t)i < nodes->count ? ((const struct node_spec *)nodes->items)[i].key : NULL;
}

static const struct node_spec *pick_node(struct binder *b, const struct config *cfg,
                                         const char *wanted)
{
    const struct node_spec *only = cfg->nodes.count == 1 ? cfg->nodes.items : NULL;
    const struct node_spec *node = wanted ? find_node(cfg, wanted) : only;
    const struct ynode *at = ynode_key(cfg->doc.root, "nodes");
    struct text hint = TEXT_INIT;

    if (node)
        return node;
    suggest_add(&hint, wanted ? wanted : "", node_name_at, &cfg->nodes);
    if (!cfg->nodes.count)
        bind_refuse(b, EINVAL, at, "nodes: there is no node");
    else if (wanted)
        bind_refuse(b, EINVAL, at, "nodes: there is no node '%s'%s", wanted, text_str(&hint));
    else
        bind_refuse(b, EINVAL, at, "nodes: there are %zu nodes, and none is picked by name%s",
                    cfg->nodes.count, text_str(&hint));
    text_release(&hint);
    return NULL;
}

/* --- nodes as GPUs --------------------------------------------------------------------------- */

/* What was made of something is found where that stands. */
static void stands_at(struct bind_head *head, const struct bind_head *where)
{
    head->line = where->line;
    head->column = where->column;
}

/* What the metrics of the form mean here: a load that belongs to that pod and goes on for ever. */
static int node_load(struct config *cfg, const struct node_metrics *m, struct gpu_spec *g)
{
    struct phase_spec *phase = arena_alloc(&cfg->arena, sizeof(*phase));
    struct signal_spec *signals = arena_alloc(&cfg->arena, 2 * sizeof(*signals));
    struct workload_spec *w = &g->workload;

    if (!phase || !signals)
        return -ENOMEM;
    signals[0].signal = (struct signal){ .target = CHANNEL_UTILIZATION,
                                         .p = { (double)m->utilization_percent } };
    signals[1].signal = (struct signal){ .target = CHANNEL_MEMORY,
                                         .p = { (double)m->fb_used_mib * 0x1p20 } };
    *phase = (struct phase_spec){ PHASE_FOREVER, { signals, 1 } };
    w->activity = (struct bind_list){ phase, 1 };
    w->memory = (struct bind_list){ &signals[1], 1 };
    memcpy(w->namespace, m->metadata.namespace, sizeof(w->namespace));
    memcpy(w->pod, m->metadata.pod, sizeof(w->pod));
    memcpy(w->container, m->metadata.container, sizeof(w->container));
    bind_mark(&base_workload_table, w, "activity", true);
    bind_mark(&base_workload_table, w, "memory", true);
    bind_mark(&base_workload_table, w, "namespace", *w->namespace);
    bind_mark(&base_workload_table, w, "pod", *w->pod);
    bind_mark(&base_workload_table, w, "container", *w->container);
    stands_at(&w->head, &m->head);
    bind_mark(&gpu_table, g, "workload", true);
    return 0;
}

/* What all GPUs of a node are. */
static void node_gpu_init(const struct node_spec *node, struct gpu_spec *g)
{
    gpu_spec_init(g);
    memcpy(g->model, node->gpu_product, sizeof(g->model));
    bind_mark(&gpu_table, g, "model", true);
    if (node->gpu_memory_mib) {
        g->memory_bytes = node->gpu_memory_mib << 20;
        bind_mark(&gpu_table, g, "memory", true);
    }
}

/* What a GPU is that its node lists. */
static int take_listed(struct config *cfg, const struct node_gpu *from, struct gpu_spec *g)
{
    stands_at(&g->head, &from->head);
    memcpy(g->uuid, from->id, sizeof(g->uuid));
    bind_mark(&gpu_table, g, "uuid", true);
    return bind_is_set(&node_gpu_table, from, "metrics") ? node_load(cfg, &from->metrics, g) : 0;
}

static void set_node(const struct node_spec *node, struct gpu_spec *g)
{
    memcpy(g->node, node->key, sizeof(g->node));
    bind_mark(&gpu_table, g, "node", true);
}

/* One item for all GPUs of a node. */
static void set_count(const struct node_spec *node, struct gpu_spec *g)
{
    stands_at(&g->head, &node->head);
    g->count = node->gpu_count;
    bind_mark(&gpu_table, g, "count", true);
}

/* How many items of `gpus` a node becomes: one for all that are not listed, where they name their node. */
static size_t node_items(const struct node_spec *node, bool named)
{
    return node->gpus.count ? node->gpus.count : named ? 1 : (size_t)node->gpu_count;
}

static int node_gpus(struct config *cfg, const struct node_spec *node, bool named,
                     struct gpu_spec *gpus)
{
    const struct node_gpu *listed = node->gpus.count ? node->gpus.items : NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < node_items(node, named); i++) {
        node_gpu_init(node, &gpus[i]);
        if (named)
            set_node(node, &gpus[i]);
        if (listed)
            r = take_listed(cfg, &listed[i], &gpus[i]);
        else if (named)
            set_count(node, &gpus[i]);
    }
    return r;
}

/* Makes `gpus` of some of the nodes; those of several say which they are on. */
static int take_nodes(struct config *cfg, const struct node_spec *nodes, size_t n, bool named)
{
    struct gpu_spec *gpus;
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; i < n; i++)
        count += node_items(&nodes[i], named);
    gpus = arena_alloc(&cfg->arena, (count + 1) * sizeof(*gpus));
    if (!gpus)
        return -ENOMEM;
    cfg->gpus = (struct bind_list){ gpus, count };
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = node_gpus(cfg, &nodes[i], named, gpus);
        gpus += node_items(&nodes[i], named);
    }
    return r;
}

int config_take_node(struct binder *b, struct config *cfg, const char *wanted)
{
    const struct node_spec *node = pick_node(b, cfg, wanted);

    if (!node)
        return -EINVAL;
    memcpy(cfg->node, node->key, sizeof(cfg->node));
    return take_nodes(cfg, node, 1, false);
}

int config_take_all_nodes(struct binder *b, struct config *cfg)
{
    if (!bind_is_set(&config_table, cfg, "nodes"))
        return why_set(b->why, EINVAL, "%s has no 'nodes' to take all of", b->file);
    return take_nodes(cfg, cfg->nodes.items, cfg->nodes.count, true);
}

/* --- sentences ------------------------------------------------------------------------------- */

const struct node_spec *config_node_of(const struct config *cfg, const struct gpu_spec *gpu)
{
    return find_node(cfg, *gpu->node ? gpu->node : cfg->node);
}

const char *node_spec_key(const char *key)
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
