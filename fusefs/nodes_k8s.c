/*
 * Nodes of k8s/: the node as Kubernetes would know it.
 *
 * labels are those that NVIDIA's GPU feature discovery gives a node with these GPUs, in the form that
 * NFD reads from features.d. topology.yaml is the node with its GPUs and who uses them now, in the
 * `nodes:` form of a configuration: it can be mounted again. Where a mount has several nodes, `nodes` has the
 * labels of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/nodes.h"
#include "fusefs/pci.h"
#include "sim/bind.h"

/* --- labels ---------------------------------------------------------------------------------- */

enum { LABEL_MAX = 63 /* characters of a value, which begins and ends with a letter or a digit */ };

#define MIG_MARK "-MIG-"

/* MIG devices that the discovery takes for the same thing: those of one name. */
struct kind {
    char name[24]; /* "3g.20gb", "1c.3g.20gb" for a third of it, "1g.5gb.me" */
    int count;
    const struct gpu_model *model; /* these three of the first of them */
    const struct mig_profile *profile;
    int slices;
};

/* What the labels tell of all GPUs. */
struct census {
    int count;                    /* GPUs on the bus */
    int in_mig_mode, empty;       /* of these; and of those, without a MIG device */
    const struct gpu_plan *first; /* the one that speaks for all of them; NULL: none */
    const struct gpu_model *model;
    bool mig_capable, mixed_classes;
    struct kind *kinds; /* owned */
    int kind_count;
};

static int count_mig_device(struct census *c, const struct gpu_model *model,
                            const struct mig_profile *p, int slices)
{
    struct kind kind = { .count = 1, .model = model, .profile = p, .slices = slices }, *kinds;
    char part[8] = "";

    if (slices < p->slices)
        snprintf(part, sizeof(part), "%dc.", slices);
    snprintf(kind.name, sizeof(kind.name), "%s%s", part, p->name);
    for (char *plus = kind.name; (plus = strchr(plus, '+'));)
        *plus = '.';
    for (int i = 0; i < c->kind_count; i++)
        if (strcmp(c->kinds[i].name, kind.name) == 0) {
            c->kinds[i].count++;
            return 0;
        }
    kinds = realloc(c->kinds, ((size_t)c->kind_count + 1) * sizeof(*kinds));
    if (!kinds)
        return -ENOMEM;
    c->kinds = kinds;
    c->kinds[c->kind_count++] = kind;
    return 0;
}

static int count_mig_devices(struct census *c, const struct gpu *g, const struct gpu_model *model)
{
    int found = 0;

    for (int gi = 0; gi < MIG_GIS_MAX; gi++)
        for (int ci = 0; g->gis[gi].used && ci < MIG_CIS_MAX; ci++) {
            int slices = g->gis[gi].cis[ci].slices;

            if (slices &&
                count_mig_device(c, model, &model->mig.items[g->gis[gi].profile], slices) < 0)
                return -ENOMEM;
            found += slices > 0;
        }
    c->in_mig_mode++;
    c->empty += !found;
    return 0;
}

/* To be released also after a failure. */
/* Of the GPUs of a node, or of all of them. */
static int take_census(const struct world *w, const struct fleet_node *n, struct census *c)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint32_t first = n ? n->first : 0;
    uint32_t behind = n ? n->first + n->count : w->used[SECTION_GPU_PLANS];

    *c = (struct census){ 0 };
    for (uint32_t i = first; i < behind; i++) {
        const struct gpu *g = &world_gpus(w)[i];
        const struct gpu_model *model = &world_models(w)[plans[i].model];

        if (gpu_has(g, CONDITION_LOST))
            continue;
        if (!c->count++) {
            c->first = &plans[i];
            c->model = model;
        }
        c->mig_capable |= model->mig.count > 0;
        c->mixed_classes |= model->pci.class != c->model->pci.class;
        if (g->settings.mig_mode && count_mig_devices(c, g, model) < 0)
            return -ENOMEM;
    }
    return 0;
}

static void census_release(struct census *c)
{
    free(c->kinds);
}

static void add_label(struct text *out, const char *key, const char *value)
{
    text_addf(out, "nvidia.com/%s=%s\n", key, value);
}

/* A label of a resource, which is "gpu" or a kind of MIG devices. */
static void add_number(struct text *out, const char *resource, const char *key, int64_t value)
{
    text_addf(out, "nvidia.com/%s.%s=%" PRId64 "\n", resource, key, value);
}

/* As the discovery does it: only what a label may hold, with dashes for blanks. */
static void add_name(struct text *out, const char *s, bool lower)
{
    bool gap = false, begun = false;

    for (; *s; s++) {
        char c = lower ? (char)tolower((unsigned char)*s) : *s;

        if (c == ' ') {
            gap = begun;
        } else if (isalnum((unsigned char)c) || strchr("-_.", c)) {
            text_addf(out, gap ? "-%c" : "%c", c);
            gap = false;
            begun = true;
        }
    }
}

/* Whatever a product is called, it is a label, and with how its MIG devices are called behind it; NULL: none. */
static void add_product(struct text *out, const char *product, const char *mig)
{
    size_t room = LABEL_MAX - (mig ? strlen(MIG_MARK) + strlen(mig) : 0), begin = 0, end;
    struct text name = TEXT_INIT;
    const char *text;

    add_name(&name, product, false);
    text = text_str(&name);
    end = name.length;
    while (begin < end && !isalnum((unsigned char)text[begin]))
        begin++;
    if (end > begin + room)
        end = begin + room;
    while (end > begin && !isalnum((unsigned char)text[end - 1]))
        end--;
    text_addn(out, text + begin, end - begin);
    text_addf(out, "%s%s\n", mig ? MIG_MARK : "", mig ? mig : "");
    out->failed |= name.failed;
    text_release(&name);
}

/* One part of a version with dots: "" when it has fewer. */
static void add_part(struct text *out, const char *key, const char *version, int part)
{
    for (; part > 0 && *version; part--) {
        version += strcspn(version, ".");
        version += *version == '.';
    }
    text_addf(out, "nvidia.com/%s=%.*s\n", key, (int)strcspn(version, "."), version);
}

/* The older names are deprecated, and still what many selectors use. */
static void add_versions(struct text *out, const struct node_plan *n)
{
    static const struct {
        const char *key;
        bool cuda;
        int part;
    } parts[] = {
        { "cuda.driver.major", false, 0 },         { "cuda.driver.minor", false, 1 },
        { "cuda.driver.rev", false, 2 },           { "cuda.driver-version.major", false, 0 },
        { "cuda.driver-version.minor", false, 1 }, { "cuda.driver-version.revision", false, 2 },
        { "cuda.runtime.major", true, 0 },         { "cuda.runtime.minor", true, 1 },
        { "cuda.runtime-version.major", true, 0 }, { "cuda.runtime-version.minor", true, 1 },
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        add_part(out, parts[i].key, parts[i].cuda ? n->cuda_version : n->driver_version,
                 parts[i].part);
    add_label(out, "cuda.driver-version.full", n->driver_version);
    add_label(out, "cuda.runtime-version.full", n->cuda_version);
}

static const char *gpu_mode(const struct census *c)
{
    if (c->mixed_classes)
        return "unknown";
    return c->model->pci.class >> 8 == 0x0300 ? "graphics" : "compute";
}

/* What a node offers under the name of one resource. */
struct offer {
    const char *resource;
    const struct gpu_model *model;
    const char *mig; /* how its MIG devices are called; NULL: whole GPUs */
    int64_t count, memory_mib, replicas;
    const char *sharing;
};

static void add_offer(struct text *out, const struct offer *o)
{
    add_number(out, o->resource, "count", o->count);
    text_addf(out, "nvidia.com/%s.product=", o->resource);
    add_product(out, o->model->product, o->mig);
    add_number(out, o->resource, "memory", o->memory_mib);
    add_number(out, o->resource, "replicas", o->replicas);
    text_addf(out, "nvidia.com/%s.sharing-strategy=%s\n", o->resource, o->sharing);
}

static void add_kind(struct text *out, const char *resource, const struct kind *k)
{
    const struct mig_profile *p = k->profile;
    const struct {
        const char *key;
        int64_t value;
    } rows[] = {
        { "multiprocessors", p->multiprocessors * k->slices / p->slices },
        { "slices.gi", p->slices },
        { "slices.ci", k->slices },
        { "engines.copy", p->copy },
        { "engines.decoder", p->decoders },
        { "engines.encoder", p->encoders },
        { "engines.jpeg", p->jpeg },
        { "engines.ofa", p->ofa },
    };

    add_offer(out, &(struct offer){ resource, k->model, k->name, k->count, p->memory_bytes >> 20, 1,
                                    "none" });
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        add_number(out, resource, rows[i].key, rows[i].value);
}

/* With the strategy `single` all GPUs must be cut up, and all MIG devices be of one kind: these are the node's GPUs then. */
static void add_single(struct text *out, const struct census *c)
{
    if (!c->empty && c->in_mig_mode == c->count && c->kind_count == 1)
        add_kind(out, "gpu", c->kinds);
    else
        add_offer(out, &(struct offer){ "gpu", c->model, "INVALID", 0, 0, 0, "" });
}

/* The discovery gives no replicas to GPUs that are cut up. */
static void add_gpus(struct text *out, const struct census *c, int strategy)
{
    if (strategy == MIG_STRATEGY_SINGLE && c->in_mig_mode)
        add_single(out, c);
    else
        add_offer(out,
                  &(struct offer){ "gpu", c->model, NULL, c->count, c->first->memory_bytes >> 20,
                                   c->in_mig_mode < c->count, "none" });
    text_add(out, "nvidia.com/gpu.family=");
    add_name(out, c->model->architecture, true);
    text_add(out, "\n");
    add_number(out, "gpu", "compute.major", model_generation(c->model) / 10);
    add_number(out, "gpu", "compute.minor", model_generation(c->model) % 10);
    add_label(out, "gpu.mode", gpu_mode(c));
    for (int i = 0; strategy == MIG_STRATEGY_MIXED && i < c->kind_count; i++) {
        char resource[32];

        snprintf(resource, sizeof(resource), "mig-%s", c->kinds[i].name);
        add_kind(out, resource, &c->kinds[i]);
    }
}

static int add_labels(struct text *out, const struct world *w, const struct fleet_node *node)
{
    const struct node_plan *n = &w->node_plan;
    struct census c;
    int err = take_census(w, node, &c);

    if (err == 0) {
        add_label(out, "gpu.present", c.count ? "true" : "false");
        if (c.count)
            add_gpus(out, &c, n->mig_strategy);
        else
            add_number(out, "gpu", "count", 0);
        add_versions(out, n);
        add_label(out, "mig.strategy", mig_strategy_names[n->mig_strategy]);
        add_label(out, "mig.capable", c.mig_capable ? "true" : "false");
        add_label(out, "mps.capable", "false");
        add_label(out, "vgpu.present", "false");
    }
    census_release(&c);
    return err;
}

static int show_labels(const struct node_ctx *cx, struct text *out)
{
    return add_labels(out, cx->world, NULL);
}

/* Each line of the labels behind the name of the node. */
static int add_node_labels(struct text *out, const struct world *w, const struct fleet_node *node)
{
    const char *name = node ? node->name : w->node_plan.name;
    struct text labels = TEXT_INIT;
    int err = add_labels(&labels, w, node);

    for (char *line = labels.data, *end; err == 0 && line && *line; line = end + 1) {
        end = strchr(line, '\n');
        text_add(out, name);
        text_add(out, " ");
        text_addn(out, line, (size_t)(end + 1 - line));
    }
    if (err == 0 && labels.failed)
        err = -ENOMEM;
    text_release(&labels);
    return err;
}

static int show_nodes(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;
    uint32_t count = w->used[SECTION_NODES];
    int err = 0;

    text_add(out, "# node label\n");
    if (!count)
        return add_node_labels(out, w, NULL);
    for (uint32_t i = 0; i < count && err == 0; i++)
        err = add_node_labels(out, w, &world_nodes(w)[i]);
    return err;
}

/* --- topology -------------------------------------------------------------------------------- */

/* The workload that has been on the GPU longest, or NULL. The form knows only one. */
static const struct workload *user_of(const struct world *w, int gpu)
{
    const struct share *shares = world_shares(w);
    const struct workload *first = NULL;

    for (uint32_t i = 0; i < w->used[SECTION_SHARES]; i++) {
        const struct workload *work = &world_workloads(w)[shares[i].run];

        if (shares[i].gpu == gpu && world_share_runs(w, &shares[i]) &&
            (!first || work->id < first->id))
            first = work;
    }
    return first;
}

static void add_metadata(struct text *out, const struct workload *work)
{
    const struct {
        const char *key, *value;
    } items[] = {
        { "namespace", work->namespace },
        { "pod", work->pod },
        { "container", work->container },
    };

    if (!*work->namespace && !*work->pod && !*work->container)
        return;
    text_add(out, "          metadata:\n");
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        if (!*items[i].value)
            continue;
        text_addf(out, "            %s: ", items[i].key);
        bind_print_text(out, items[i].value);
        text_add(out, "\n");
    }
}

static void add_topology_gpu(struct text *out, const struct world *w, int gpu)
{
    const struct metric_sample *sample = &world_gpus(w)[gpu].sample;
    const struct workload *user = user_of(w, gpu);
    int64_t value;

    text_addf(out, "      - id: %s\n", world_gpu_plans(w)[gpu].uuid);
    if (gpu_has(&world_gpus(w)[gpu], CONDITION_LOST)) {
        text_add(out, "        # has fallen off the bus\n");
        return;
    }
    text_add(out, "        metrics:\n");
    if (user)
        add_metadata(out, user);
    if (metric_read(sample, METRIC_UTILIZATION_GPU, &value) == 0) {
        text_add(out, "          utilization: ");
        unit_show(out, UNIT_PERCENT, value);
        text_add(out, "\n");
    }
    if (metric_read(sample, METRIC_MEMORY_USED, &value) == 0)
        text_addf(out, "          fb-used: %" PRId64 "\n", value >> 20);
}

/* The form has one product for all GPUs of a node: that of the first. */
static void add_topology_node(struct text *out, const struct world *w, const char *name, int first,
                              int count)
{
    const struct gpu_plan *plan = &world_gpu_plans(w)[first];

    text_add(out, "  ");
    bind_print_text(out, name);
    text_add(out, ":\n");
    if (!count) {
        /* The form asks for a product even where there is no GPU. */
        text_add(out, "    gpu-product: A100-SXM4-40GB\n    gpu-count: 0\n");
        return;
    }
    text_addf(out, "    gpu-memory: %" PRId64 "\n    gpu-product: ", plan->memory_bytes >> 20);
    add_name(out, world_models(w)[plan->model].product, false);
    text_add(out, "\n    gpus:\n");
    for (int i = first; i < first + count; i++)
        add_topology_gpu(out, w, i);
}

static int show_topology(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;
    const struct fleet_node *nodes = world_nodes(w);

    text_addf(out, "mig-strategy: %s\nnodes:\n", mig_strategy_names[w->node_plan.mig_strategy]);
    if (!w->used[SECTION_NODES])
        add_topology_node(out, w, w->node_plan.name, 0, (int)w->used[SECTION_GPU_PLANS]);
    for (uint32_t i = 0; i < w->used[SECTION_NODES]; i++)
        add_topology_node(out, w, nodes[i].name, (int)nodes[i].first, (int)nodes[i].count);
    return 0;
}

/* clang-format off */
const struct node_def k8s_nodes[] = {
    { .path = "k8s/labels",        .mode = 0444, .show = show_labels },
    { .path = "k8s/nodes",         .mode = 0444, .show = show_nodes },
    { .path = "k8s/topology.yaml", .mode = 0444, .show = show_topology },
    { 0 },
};
/* clang-format on */
