/*
 * Config: what a person can say about a GPU. See config_gpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/config.h"
#include "sim/config_shapes.h"
#include "sim/suggest.h"

/* clang-format off */
const char *const compute_mode_names[] = { "default", "exclusive_thread", "prohibited", "exclusive_process", NULL };
/* clang-format on */

/* --- profile: a name, `cycle`, or a list ----------------------------------------------------- */

static int check_profile_name(struct binder *b, const struct ynode *node, bool in_list)
{
    const struct config *cfg = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (node->kind != YNODE_SCALAR)
        return bind_expected(b, node, "the name of a profile");
    if (profile_find(&cfg->profiles, node->text) >= 0)
        return 0;
    suggest_add(&hint, node->text, profile_name_at, &cfg->profiles);
    r = bind_refuse(b, EINVAL, node, "%s is not a profile%s%s", ynode_describe(b->arena, node),
                    text_str(&hint), in_list ? "" : ", or cycle");
    text_release(&hint);
    return r;
}

int profile_choice_set(struct arena *arena, struct profile_choice *choice, const char *const *names,
                       size_t count)
{
    struct profile_name *list = arena_alloc(arena, count * sizeof(*list));

    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        snprintf(list[i].text, sizeof(list[i].text), "%s", names[i]);
    choice->names = (struct bind_list){ list, count };
    return 0;
}

static int read_profile(struct binder *b, const struct ynode *node, void *member)
{
    bool list = node->kind == YNODE_LIST;
    const char *names[CONFIG_GPUS_MAX];
    size_t count = list ? node->count : 1;

    if (!list && node->kind == YNODE_SCALAR && !strcmp(node->text, "cycle"))
        return profile_choice_set(b->arena, member, profile_cycle, PROFILE_CYCLE_LENGTH);
    if (count == 0 || count > CONFIG_GPUS_MAX)
        return bind_refuse(b, ERANGE, node, "has %zu profiles; allowed: 1 to %d", count,
                           CONFIG_GPUS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct ynode *item = list ? node->items[i] : node;
        int r = check_profile_name(b, item, list);

        if (r < 0)
            return r;
        names[i] = item->text;
    }
    return profile_choice_set(b->arena, member, names, count);
}

static void print_profile(struct text *out, const void *member, int indent)
{
    const struct profile_choice *choice = member;
    const struct profile_name *names = choice->names.items;
    bool list = choice->names.count > 1;

    (void)indent;
    text_add(out, list ? " [" : " ");
    for (size_t i = 0; i < choice->names.count; i++) {
        text_add(out, i ? ", " : "");
        bind_print_text(out, names[i].text);
    }
    text_add(out, list ? "]\n" : "\n");
}

const struct bind_custom profile_custom = {
    read_profile,
    print_profile,
    "\"anyOf\": [{ \"type\": \"string\" }, { \"type\": \"array\", \"minItems\": 1, \"items\": { "
    "\"type\": \"string\" } }]",
};

/* --- GPUs ------------------------------------------------------------------------------------ */

int config_check_model(struct binder *b, const struct ynode *node, const char *key,
                       const char *name)
{
    const struct config *cfg = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (!*name || model_find(&cfg->models, name))
        return 0;
    suggest_add(&hint, name, model_name_at, &cfg->models);
    bind_enter(b, key);
    r = bind_refuse(b, EINVAL, ynode_get(node, key), "'%s' is not a model%s", name,
                    text_str(&hint));
    text_release(&hint);
    return r;
}

int64_t gpu_spec_gpus(const struct gpu_spec *g)
{
    return g->count * node_names_of(g->node).count;
}

static int check_gpu(struct binder *b, const struct ynode *node, void *object)
{
    static const char *const of_one[] = { "uuid", "bus_id", "serial" };
    const struct gpu_spec *g = object;
    int r = config_check_model(b, node, "model", g->model);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(of_one) / sizeof(of_one[0]); i++)
        if (gpu_spec_gpus(g) > 1 && bind_is_set(&gpu_table, g, of_one[i]))
            return bind_refuse(b, EINVAL, ynode_key(node, of_one[i]),
                               "%lld GPUs cannot share one %s", (long long)gpu_spec_gpus(g),
                               of_one[i]);
    return 0;
}

/* clang-format off */
static const struct bind_field gpu_fields[] = {
    BIND_ROW_INT("count", gpu_spec, count, 0, CONFIG_GPUS_MAX, 0, "How many like this."),
    BIND_ROW_SHAPED("node", gpu_spec, node, 0, &node_names_shape, "Node that it is on, where the mount has several."),
    BIND_ROW_TEXT("model", gpu_spec, model, 0, "Model, by name or product."),
    BIND_ROW_SHAPED("uuid", gpu_spec, uuid, 0, &uuid_shape, "UUID."),
    BIND_ROW_SHAPED("serial", gpu_spec, serial, 0, &serial_shape, "Serial number."),
    BIND_ROW_SHAPED("bus_id", gpu_spec, bus_id, 0, &bus_id_shape, "PCI bus id."),
    BIND_ROW_INT("minor", gpu_spec, minor, 0, MINOR_MAX, 0, "Minor number: N of /dev/nvidiaN."),
    BIND_ROW_INT("numa_node", gpu_spec, numa_node, -1, 1023, 0, "NUMA node; -1 for none."),
    BIND_ROW_INT("module_id", gpu_spec, module_id, 1, 4096, 0, "Place on the baseboard."),
    BIND_ROW_CUSTOM("profile", gpu_spec, profile, &profile_custom, "Behaviour."),
    BIND_ROW_QUANTITY("memory", gpu_spec, memory_bytes, UNIT_BYTES, 1 << 20, 0x1p50, 0, "Framebuffer memory, instead of the model's."),
    BIND_ROW_QUANTITY("power_limit", gpu_spec, power_limit_mw, UNIT_MILLIWATT, 1000, 1e7, 0, "Power limit."),
    BIND_ROW_BOOL("persistence_mode", gpu_spec, persistence_mode, "Persistence mode."),
    BIND_ROW_CHOICE("compute_mode", gpu_spec, compute_mode, compute_mode_names, "Compute mode."),
    BIND_ROW_BOOL("ecc_mode", gpu_spec, ecc_mode, "Whether ECC is on."),
    BIND_ROW_BOOL("mig_mode", gpu_spec, mig_mode, "Whether MIG is on."),
    BIND_ROW_REAL("cooling", gpu_spec, cooling, 0.1, 10, "Factor on the thermal resistance: above 1 it runs hotter."),
    BIND_ROW_CUSTOM("metrics", gpu_spec, metrics, &pins_custom, "Metrics pinned to a value or function."),
    BIND_ROW_STRUCT("workload", gpu_spec, workload, &base_workload_table, "What it does by itself."),
    { 0 },
};
/* clang-format on */

void gpu_spec_init(void *spec)
{
    struct gpu_spec *g = spec;

    *g = (struct gpu_spec){ .count = 1, .cooling = 1, .persistence_mode = 1 };
    workload_spec_init(&g->workload);
    g->workload.repeat = 0; /* a GPU's own load goes on for ever unless it says otherwise */
}

const struct bind_table gpu_table = {
    .what = "a GPU",
    .def = "gpu",
    .fields = gpu_fields,
    .check = check_gpu,
    .init = gpu_spec_init,
};
