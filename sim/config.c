/*
 * Config: a node as a whole: its table, its defaults, reading and printing. See config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config_env.h"
#include "sim/config_resolve.h"
#include "sim/config_shapes.h"
#include "sim/library.h"

const char *const mig_strategy_names[] = { "none", "single", "mixed", NULL };

/* --- the table ------------------------------------------------------------------------------- */

/* clang-format off */
static const struct bind_field gpu_item = { .type = BIND_STRUCT, .table = &gpu_table };
static const struct bind_field workload_item = { .type = BIND_STRUCT, .table = &workload_table };
static const struct bind_field fault_item = { .type = BIND_STRUCT, .table = &fault_spec_table };

static const struct bind_field config_fields[] = {
    BIND_ROW_INT("version", config, version, 1, 1, 0, "Version of this format."),
    BIND_ROW_SHAPED("node", config, node, 0, &node_name_shape, "Name of the node."),
    BIND_ROW_STRUCT("driver", config, driver, &driver_spec_table, "What the driver says of itself."),
    BIND_ROW_INT("seed", config, seed, 0, 9007199254740991.0, 0, "Seed of all randomness."),
    BIND_ROW_QUANTITY("step", config, step_ns, UNIT_NANOSECOND, 1e6, 6e10, 0, "Simulated time of one step."),
    BIND_ROW_REAL("speed", config, speed, 0, 1e6, "Simulated seconds per real second; 0 stands still."),
    BIND_ROW_QUANTITY("update_interval", config, update_interval_ns, UNIT_NANOSECOND, 1e6, 8.64e13, 0, "How often profiles give new readings."),
    BIND_ROW_CUSTOM("profile", config, profile, &profile_custom, "Behaviour of all GPUs: a profile, cycle, or a list."),
    { .key = "gpus", .type = BIND_LIST, BIND_AT(config, gpus), .item = &gpu_item, .size = sizeof(struct gpu_spec),
      .high = CONFIG_GPUS_MAX, .flags = BIND_SINGLE,
      .words = "a list of GPUs, or one mapping like {count: 8, model: T4}",
      .help = "The GPUs: a list, or count and model." },
    BIND_ROW_MAP("overrides", config, overrides, &gpu_table, gpu_spec, CONFIG_GPUS_MAX, "What differs on single GPUs, by index or UUID."),
    BIND_ROW_STRUCT("pci", config, pci, &pci_spec_table, "Bus addresses of GPUs that give none."),
    BIND_ROW_STRUCT("numa", config, numa, &numa_spec_table, "NUMA nodes."),
    BIND_ROW_STRUCT("nvlink", config, nvlink, &nvlink_spec_table, "NVLink topology."),
    BIND_ROW_CHOICE("mig_strategy", config, mig_strategy, mig_strategy_names, "MIG strategy of the node's labels."),
    BIND_ROW_STRUCT("access", config, access, &access_spec_table, "Device nodes and permissions."),
    BIND_ROW_STRUCT("physics", config, physics, &physics_table, "Coefficients of the simulation."),
    BIND_ROW_LIST("workloads", config, workloads, &workload_item, struct workload_spec, CONFIG_WORKLOADS_MAX, 0, "What runs."),
    BIND_ROW_LIST("faults", config, faults, &fault_item, struct fault_spec, CONFIG_FAULTS_MAX, 0, "What breaks, and when."),
    { .key = "mig-strategy", .type = BIND_CHOICE, BIND_AT(config, mig_strategy), .names = mig_strategy_names,
      .flags = BIND_HIDDEN, .help = "mig_strategy, in the form with nodes." },
    { .key = "nodes", .type = BIND_MAP, BIND_AT(config, nodes), .table = &node_spec_table,
      .size = sizeof(struct node_spec), .key_offset = offsetof(struct node_spec, key),
      .key_size = sizeof(((struct node_spec *)0)->key), .high = CONFIG_NODES_MAX, .shape = &node_name_shape,
      .flags = BIND_HIDDEN, .help = "Nodes by name; one of them is picked." },
    { 0 },
};
/* clang-format on */

static int check_config(struct binder *b, const struct ynode *node, void *object)
{
    struct config *cfg = object;

    if (bind_is_set(&config_table, cfg, "nodes") && bind_is_set(&config_table, cfg, "gpus"))
        return bind_refuse(b, EINVAL, ynode_key(node, "nodes"),
                           "gives both 'gpus' and 'nodes'; allowed: one of them");
    if (bind_is_set(&config_table, cfg, "mig-strategy")) {
        if (bind_is_set(&config_table, cfg, "mig_strategy"))
            return bind_refuse(b, EINVAL, ynode_key(node, "mig-strategy"),
                               "gives both 'mig_strategy' and 'mig-strategy'; allowed: one of "
                               "them");
        bind_mark(&config_table, cfg, "mig_strategy", true);
    }
    return 0;
}

const struct bind_table config_table = { .what = "the configuration",
                                         .fields = config_fields,
                                         .check = check_config };

/* --- defaults -------------------------------------------------------------------------------- */

static void config_init(struct config *cfg)
{
    *cfg = (struct config){
        .version = 1,
        .node = "localhost",
        .driver = { .version = "550.163.01", .cuda = "12.4", .kernel_module = MODULE_OPEN },
        .seed = 1,
        .step_ns = 100 * NS_PER_MS,
        .update_interval_ns = 30 * NS_PER_S,
        .speed = 1,
        .pci = { .domain = 0, .first_bus = 0x06, .bus_step = 0x11 },
        .numa = { .nodes = 1 },
        .access = { .dev = DEV_AUTO,
                    .dev_mode = 0666,
                    .control_mode = 0644,
                    .workloads_mode = 01777 },
    };
    physics_init(&cfg->physics);
}

static int default_gpus(struct config *cfg)
{
    struct gpu_spec *g = arena_alloc(&cfg->arena, sizeof(*g));

    if (!g)
        return -ENOMEM;
    gpu_spec_init(g);
    g->count = 8;
    strcpy(g->model, CONFIG_DEFAULT_MODEL);
    bind_mark(&gpu_table, g, "count", true);
    bind_mark(&gpu_table, g, "model", true);
    cfg->gpus = (struct bind_list){ g, 1 };
    return 0;
}

/* Every key that a reader of the printed configuration would want to see, given or not. */
static void mark_defaults(struct config *cfg)
{
    static const char *const keys[] = {
        "version",         "node",    "driver", "seed", "step", "speed",
        "update_interval", "profile", "gpus",   "pci",  "numa", "mig_strategy"
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        bind_mark(&config_table, cfg, keys[i], true);
    if (!*cfg->driver.nvml)
        snprintf(cfg->driver.nvml, sizeof(cfg->driver.nvml), "%.*s.%.24s",
                 (int)strcspn(cfg->driver.cuda, "."), cfg->driver.cuda, cfg->driver.version);
    bind_mark_all(&driver_spec_table, &cfg->driver);
    bind_mark_all(&pci_spec_table, &cfg->pci);
    bind_mark(&numa_spec_table, &cfg->numa, "nodes", true);
}
/* --- reading --------------------------------------------------------------------------------- */

/* The name that was asked for stands over the one that the file gives. */
static int name_node(struct binder *b, struct config *cfg, const char *asked)
{
    const char *wanted = asked;

    if (asked && !node_name_ok(asked))
        return why_set(b->why, EINVAL, "'%s' is not the name of a node; allowed: %s", asked,
                       node_name_shape.words);
    if (!wanted && bind_is_set(&config_table, cfg, "node"))
        wanted = cfg->node;
    if (bind_is_set(&config_table, cfg, "nodes"))
        return config_take_node(b, cfg, wanted);
    if (asked && strlen(asked) >= sizeof(cfg->node))
        return why_set(b->why, E2BIG, "the name of a node is at most %zu characters long",
                       sizeof(cfg->node) - 1);
    if (asked)
        strcpy(cfg->node, asked);
    return 0;
}

static int read_document(struct config *cfg, const char *text, size_t length,
                         const struct config_options *options, struct why *why)
{
    struct binder b = { .file = cfg->source, .arena = &cfg->arena, .why = why, .context = cfg };
    int r = ydoc_parse(&cfg->doc, cfg->source, text, length, why);

    if (r == 0)
        r = bind_read(&b, &config_table, cfg->doc.root, cfg);
    if (r == 0)
        r = options->all_nodes ? config_take_all_nodes(&b, cfg) : name_node(&b, cfg, options->node);
    if (r == 0 && !bind_is_set(&config_table, cfg, "gpus") &&
        !bind_is_set(&config_table, cfg, "nodes"))
        r = default_gpus(cfg);
    text_release(&b.path);
    return r;
}

static int config_build(struct config *cfg, const char *text, size_t length,
                        const struct config_options *options, struct why *why)
{
    static const char *const idle[] = { "idle" };
    struct gpu_entry *entries;
    int count, r;

    r = model_set_load(&cfg->models, options->schemas, why);
    if (r == 0)
        r = profile_set_load(&cfg->profiles, options->schemas, why);
    if (r == 0)
        r = profile_choice_set(&cfg->arena, &cfg->profile, idle, 1);
    if (r == 0)
        r = read_document(cfg, text, length, options, why);
    if (r == 0 && options->environment)
        r = config_environment(cfg, options->environment, why);
    if (r < 0)
        return r;
    mark_defaults(cfg);
    r = config_resolve(cfg, &entries, &count, why);
    if (r == 0)
        free(entries);
    return r;
}

int config_parse(struct config *cfg, const char *text, size_t length,
                 const struct config_options *options, struct why *why)
{
    static const struct config_options none = { 0 };
    int r;

    if (!options)
        options = &none;
    config_init(cfg);
    snprintf(cfg->source, sizeof(cfg->source), "%s", options->name ? options->name : "config");
    r = config_build(cfg, text, length, options, why);
    if (r == -ENOMEM && !why_text(why)[0])
        why_set(why, ENOMEM, "%s: out of memory", cfg->source);
    if (r < 0)
        config_release(cfg);
    return r;
}

int config_load(struct config *cfg, const char *path, const struct config_options *options,
                struct why *why)
{
    struct config_options named = options ? *options : (struct config_options){ 0 };
    unsigned long length;
    char *text;
    int r = library_read_file(path, &text, &length, why);

    *cfg = (struct config){ 0 };
    if (r < 0)
        return r;
    named.name = path;
    r = config_parse(cfg, text, length, &named, why);
    free(text);
    return r;
}

void config_release(struct config *cfg)
{
    model_set_release(&cfg->models);
    profile_set_release(&cfg->profiles);
    ydoc_release(&cfg->doc);
    arena_release(&cfg->arena);
}

void config_workload_name(const struct workload_spec *w, size_t i, char name[WORKLOAD_NAME])
{
    if (*w->name)
        snprintf(name, WORKLOAD_NAME, "%s", w->name);
    else
        snprintf(name, WORKLOAD_NAME, "workload-%zu", i);
}

void config_print(struct text *out, const struct config *cfg)
{
    bind_print(out, &config_table, cfg, 0);
}

/* --- JSON Schema ----------------------------------------------------------------------------- */

static void gpu_schema(struct text *out)
{
    bind_schema(out, &gpu_table, 4);
}

static void workload_schema(struct text *out)
{
    bind_schema(out, &workload_table, 4);
}

static void own_workload_schema(struct text *out)
{
    bind_schema(out, &base_workload_table, 4);
}

void config_schema(struct text *out)
{
    static const struct schema_def defs[] = {
        { "signal", signal_schema },
        { "metrics", pins_schema },
        { "phase", workload_phase_schema },
        { "activity", workload_activity_schema },
        { "limits", workload_limits_schema },
        { "fault", fault_schema },
        { "own_workload", own_workload_schema },
        { "workload", workload_schema },
        { "gpu", gpu_schema },
        { 0 },
    };

    bind_schema_document(
        out, "fakegpufs node configuration", defs,
        "\"not\": { \"type\": \"object\", \"required\": [\"gpus\", \"nodes\"] },\n  ",
        &config_table);
}
