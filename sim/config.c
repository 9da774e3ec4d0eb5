/*
 * Config: the format of a node's configuration, as tables. See config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config_env.h"
#include "sim/library.h"
#include "sim/suggest.h"

/* clang-format off */
const char *const compute_mode_names[] = { "default", "exclusive_thread", "prohibited", "exclusive_process", NULL };
const char *const mig_strategy_names[] = { "none", "single", "mixed", NULL };
const char *const dev_mode_names[] = { "auto", "char", "file", "null", NULL };
const char *const nvlink_topology_names[] = { "auto", "none", "switch", "mesh", "ring", "pairs", NULL };
const char *const kernel_module_names[] = { "open", "proprietary", NULL };
/* clang-format on */

/* --- identities ------------------------------------------------------------------------------ */

static bool matches(const char *text, const char *shape)
{
    for (; *shape; shape++, text++) {
        if (*shape == 'x' ? !isxdigit((unsigned char)*text) : *shape != *text)
            return false;
    }
    return !*text;
}

bool uuid_ok(const char *text)
{
    return matches(text, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

int bus_id_parse(const char *text, uint32_t *domain, uint32_t *bus, uint32_t *device,
                 uint32_t *function)
{
    if (!matches(text, "xxxxxxxx:xx:xx.x") && !matches(text, "xxxx:xx:xx.x"))
        return -EINVAL;
    if (sscanf(text, "%x:%x:%x.%x", domain, bus, device, function) != 4)
        return -EINVAL;
    return *device > 31 || *function > 7 ? -EINVAL : 0;
}

bool bus_id_ok(const char *text)
{
    uint32_t parts[4];

    return bus_id_parse(text, &parts[0], &parts[1], &parts[2], &parts[3]) == 0;
}

static bool serial_ok(const char *text)
{
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

static bool dotted(const char *text, int least, int most)
{
    int parts = 0;

    do {
        if (!isdigit((unsigned char)*text))
            return false;
        while (isdigit((unsigned char)*text))
            text++;
        parts++;
    } while (*text++ == '.');
    return !text[-1] && parts >= least && parts <= most;
}

static bool driver_version_ok(const char *text)
{
    return dotted(text, 2, 3);
}

static bool cuda_version_ok(const char *text)
{
    return dotted(text, 2, 2);
}

static bool nvml_version_ok(const char *text)
{
    return dotted(text, 2, 4);
}

/* "0-31,64-95": numbers and ranges that go up. */
static bool cpu_list_ok(const char *text)
{
    unsigned long first, last;
    char *end;

    do {
        if (!isdigit((unsigned char)*text))
            return false;
        first = last = strtoul(text, &end, 10);
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return false;
            last = strtoul(end + 1, &end, 10);
        }
        if (first > last || last > 65535)
            return false;
        text = end + 1;
    } while (*end == ',');
    return !*end;
}

/* clang-format off */
static const struct bind_shape uuid_shape = {
    uuid_ok, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in hexadecimal",
    "^GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
};
static const struct bind_shape serial_shape = { serial_ok, "digits", "^[0-9]+$" };
static const struct bind_shape bus_id_shape = {
    bus_id_ok, "a bus id in hexadecimal like 0000:06:00.0, its device at most 1f and its function at most 7",
    "^([0-9a-fA-F]{4}){1,2}:[0-9a-fA-F]{2}:[01][0-9a-fA-F][.][0-7]$",
};
static const struct bind_shape driver_version_shape = {
    driver_version_ok, "X.Y or X.Y.Z", "^[0-9]+([.][0-9]+){1,2}$",
};
static const struct bind_shape cuda_version_shape = { cuda_version_ok, "X.Y", "^[0-9]+[.][0-9]+$" };
static const struct bind_shape nvml_version_shape = {
    nvml_version_ok, "two to four numbers with dots", "^[0-9]+([.][0-9]+){1,3}$",
};
static const struct bind_shape node_name_shape = {
    node_name_ok, "a host name: letters, digits, '-' and '.', beginning with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9.-]*$",
};
static const struct bind_shape node_names_shape = {
    node_names_ok, "a host name, or several as node-[0-511]: at most 4096, the smaller number first",
    "^[A-Za-z0-9.-]*([[][0-9]{1,9}-[0-9]{1,9}[]])?[A-Za-z0-9.-]*$",
};
static const struct bind_shape cpu_list_shape = {
    cpu_list_ok, "CPUs below 65536 like 0-31,64-95", "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
};
/* clang-format on */

/* --- profile: a name, `cycle`, or a list ----------------------------------------------------- */

static int check_profile_name(struct binder *b, const struct ynode *node, bool in_list)
{
    const struct config *cfg = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (node->kind != YNODE_SCALAR)
        return bind_refuse(b, EINVAL, node, "found %s; allowed: the name of a profile",
                           ynode_describe(b->arena, node));
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

static const struct bind_custom profile_custom = {
    read_profile,
    print_profile,
    "\"anyOf\": [{ \"type\": \"string\" }, { \"type\": \"array\", \"minItems\": 1, \"items\": { "
    "\"type\": \"string\" } }]",
};

/* --- permission bits ------------------------------------------------------------------------- */

static int read_mode(struct binder *b, const struct ynode *node, void *member)
{
    int64_t *mode = member;
    size_t n = node->kind == YNODE_SCALAR ? strlen(node->text) : 0;

    if (n < 3 || n > 5 || strspn(node->text, "01234567") != n ||
        strtol(node->text, NULL, 8) > 07777)
        return bind_refuse(b, EINVAL, node, "found %s; allowed: octal permissions like 0644",
                           ynode_describe(b->arena, node));
    *mode = strtol(node->text, NULL, 8);
    return 0;
}

static void print_mode(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_addf(out, " %04o\n", (unsigned)*(const int64_t *)member);
}

/* A plain 0644 is a number to most readers. */
static const struct bind_custom mode_custom = {
    read_mode,
    print_mode,
    "\"type\": [\"string\", \"integer\"], \"pattern\": \"^[0-7]{3,5}$\"",
};

/* --- faults ---------------------------------------------------------------------------------- */

static int read_fault(struct binder *b, const struct ynode *node, void *member)
{
    struct why inner = { 0 };
    int r;

    if (node->kind != YNODE_SCALAR)
        return bind_refuse(b, EINVAL, node, "found %s; allowed: a fault like 'xid 79'",
                           ynode_describe(b->arena, node));
    r = fault_parse(node->text, member, &inner);
    if (r < 0)
        bind_refuse(b, -r, node, "%s", why_text(&inner));
    why_release(&inner);
    return r;
}

static void print_fault(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    fault_print(out, member);
    text_add(out, "\n");
}

static const struct bind_custom fault_custom = { read_fault, print_fault,
                                                 "\"$ref\": \"#/$defs/fault\"" };

static const struct bind_table fault_table;

static int check_fault(struct binder *b, const struct ynode *node, void *object)
{
    struct fault_spec *f = object;

    if (f->fault.after_ns)
        return bind_refuse(b, EINVAL, ynode_get(node, "fault"),
                           "'after' is for commands; here the key 'at' says when");
    if (f->for_ns && f->fault.for_ns)
        return bind_refuse(b, EINVAL, ynode_key(node, "for"),
                           "gives the duration twice: here and in 'fault'");
    if (!f->for_ns)
        f->for_ns = f->fault.for_ns;
    if (f->for_ns && !fault_lasts(&f->fault))
        return bind_refuse(b, EINVAL, ynode_key(node, "for"),
                           "this fault happens at once and has no duration");
    if (f->every_ns && f->every_ns < f->for_ns)
        return bind_refuse(b, ERANGE, ynode_get(node, "every"),
                           "'every' is shorter than the fault lasts");
    /* It is printed by its own key. */
    f->fault.for_ns = 0;
    bind_mark(&fault_table, f, "for", f->for_ns != 0);
    return 0;
}

#define CONFIG_TIME(k, S, m, lo, hi, f, h) BIND_ROW_QUANTITY(k, S, m, UNIT_NANOSECOND, lo, hi, f, h)

/* clang-format off */
static const struct bind_field fault_fields[] = {
    CONFIG_TIME("at", fault_spec, at_ns, 0, TIME_MAX_NS, 0, "Simulated time."),
    BIND_ROW_TEXT("gpu", fault_spec, gpu, BIND_REQUIRED, "GPU by index, UUID or bus id, or all."),
    { .key = "fault", .type = BIND_CUSTOM, BIND_AT(fault_spec, fault), .custom = &fault_custom,
      .size = sizeof(struct fault), .flags = BIND_REQUIRED, .help = "What happens, for example 'xid 79'." },
    CONFIG_TIME("for", fault_spec, for_ns, NS_PER_MS, TIME_MAX_NS, 0, "How long; until recover where it is not given."),
    CONFIG_TIME("every", fault_spec, every_ns, NS_PER_MS, TIME_MAX_NS, 0, "Again after so long."),
    { 0 },
};
static const struct bind_table fault_table = { .what = "a fault", .fields = fault_fields, .check = check_fault };
static const struct bind_field fault_item = { .type = BIND_STRUCT, .table = &fault_table };
/* clang-format on */

/* --- GPUs ------------------------------------------------------------------------------------ */

static int check_model_name(struct binder *b, const struct ynode *node, const char *name)
{
    const struct config *cfg = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (!*name || model_find(&cfg->models, name))
        return 0;
    suggest_add(&hint, name, model_name_at, &cfg->models);
    r = bind_refuse(b, EINVAL, node, "'%s' is not a model%s", name, text_str(&hint));
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
    const struct ynode *at = ynode_get(node, "model");
    size_t path = at ? bind_enter(b, "model") : b->path.length;
    int r = check_model_name(b, at, g->model);

    if (r < 0)
        return r;
    bind_leave(b, path);
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

static void gpu_spec_init(void *spec)
{
    struct gpu_spec *g = spec;

    *g = (struct gpu_spec){ .count = 1, .cooling = 1, .persistence_mode = 1 };
    workload_spec_init(&g->workload);
    g->workload.repeat = 0; /* a GPU's own load goes on for ever unless it says otherwise */
}

const struct bind_table gpu_table = {
    .what = "a GPU", .def = "gpu", .fields = gpu_fields, .check = check_gpu, .init = gpu_spec_init,
};
static const struct bind_field gpu_item = { .type = BIND_STRUCT, .table = &gpu_table };
static const struct bind_field workload_item = { .type = BIND_STRUCT, .table = &workload_table };

static const struct bind_field driver_fields[] = {
    BIND_ROW_SHAPED("version", driver_spec, version, 0, &driver_version_shape, "Driver version."),
    BIND_ROW_SHAPED("cuda", driver_spec, cuda, 0, &cuda_version_shape, "CUDA version of the driver."),
    BIND_ROW_SHAPED("nvml", driver_spec, nvml, 0, &nvml_version_shape, "NVML version."),
    BIND_ROW_CHOICE("kernel_module", driver_spec, kernel_module, kernel_module_names, "Flavour of the kernel module."),
    { 0 },
};
static const struct bind_table driver_table = { .what = "driver", .fields = driver_fields };

static const struct bind_field pci_fields[] = {
    BIND_ROW_INT("domain", pci_spec, domain, 0, 0xffff, BIND_HEX, "Domain of the first GPU."),
    BIND_ROW_INT("first_bus", pci_spec, first_bus, 1, 0xff, BIND_HEX, "Bus of the first GPU."),
    BIND_ROW_INT("bus_step", pci_spec, bus_step, 1, 0xff, BIND_HEX, "Distance of their buses."),
    { 0 },
};
static const struct bind_table pci_table = { .what = "pci", .fields = pci_fields };

static const struct bind_table numa_table;

static int check_numa(struct binder *b, const struct ynode *node, void *object)
{
    struct numa_spec *n = object;

    if (n->cpus.count && !bind_is_set(&numa_table, n, "nodes"))
        n->nodes = (int64_t)n->cpus.count;
    if (n->cpus.count && n->cpus.count != (size_t)n->nodes)
        return bind_refuse(b, EINVAL, ynode_get(node, "cpus"), "lists the CPUs of %zu node%s; allowed: one list for each of %lld",
                           n->cpus.count, n->cpus.count == 1 ? "" : "s", (long long)n->nodes);
    return 0;
}

static const struct bind_field cpu_item = { .type = BIND_TEXT, .size = sizeof(struct cpu_list),
                                            .shape = &cpu_list_shape };
static const struct bind_field numa_fields[] = {
    BIND_ROW_INT("nodes", numa_spec, nodes, 1, 1024, 0, "NUMA nodes; GPUs are dealt out evenly."),
    BIND_ROW_LIST("cpus", numa_spec, cpus, &cpu_item, struct cpu_list, 1024, 0, "CPUs of each node."),
    { 0 },
};
static const struct bind_table numa_table = { .what = "numa", .fields = numa_fields, .check = check_numa };

static const struct bind_field nvlink_pair_fields[] = {
    BIND_ROW_INT("from", nvlink_pair, from, 0, CONFIG_GPUS_MAX - 1, BIND_REQUIRED, "Index of a GPU."),
    BIND_ROW_INT("to", nvlink_pair, to, 0, CONFIG_GPUS_MAX - 1, BIND_REQUIRED, "Index of its peer."),
    BIND_ROW_INT("count", nvlink_pair, count, 1, NVLINK_LINKS_MAX, BIND_REQUIRED, "Links between them."),
    { 0 },
};
static const struct bind_table nvlink_pair_table = { .what = "a link", .fields = nvlink_pair_fields };
static const struct bind_field nvlink_pair_item = { .type = BIND_STRUCT, .table = &nvlink_pair_table };
static const struct bind_field nvlink_fields[] = {
    BIND_ROW_CHOICE("topology", nvlink_spec, topology, nvlink_topology_names, "How GPUs are linked; auto: as the model is usually built."),
    BIND_ROW_LIST("links", nvlink_spec, links, &nvlink_pair_item, struct nvlink_pair, 65536, 0, "Links one by one, instead of a topology."),
    { 0 },
};
static const struct bind_table nvlink_table;

static int check_nvlink(struct binder *b, const struct ynode *node, void *object)
{
    if (bind_is_set(&nvlink_table, object, "topology") && bind_is_set(&nvlink_table, object, "links"))
        return bind_refuse(b, EINVAL, ynode_key(node, "links"), "gives both 'topology' and 'links'; allowed: one of them");
    return 0;
}

static const struct bind_table nvlink_table = { .what = "nvlink", .fields = nvlink_fields, .check = check_nvlink };

static const struct bind_field access_fields[] = {
    BIND_ROW_CHOICE("dev", access_spec, dev, dev_mode_names, "What device nodes are."),
    BIND_ROW_CUSTOM("dev_mode", access_spec, dev_mode, &mode_custom, "Permissions of device nodes."),
    BIND_ROW_CUSTOM("control_mode", access_spec, control_mode, &mode_custom, "Permissions of control files."),
    BIND_ROW_CUSTOM("workloads_mode", access_spec, workloads_mode, &mode_custom, "Permissions of the workloads directory."),
    BIND_ROW_INT("uid", access_spec, uid, 0, 4294967294, 0, "Owner of control files."),
    BIND_ROW_INT("gid", access_spec, gid, 0, 4294967294, 0, "Group of control files."),
    { 0 },
};
static const struct bind_table access_table = { .what = "access", .fields = access_fields };

/* The form with `nodes:`. */
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

static const struct bind_table node_table;

static int check_node(struct binder *b, const struct ynode *node, void *object)
{
    struct node_spec *n = object;
    const struct ynode *at = ynode_get(node, "gpu-product");
    size_t path = bind_enter(b, "gpu-product");
    int r = check_model_name(b, at, n->gpu_product);

    if (r < 0)
        return r;
    bind_leave(b, path);
    if (!bind_is_set(&node_table, n, "gpus") && !bind_is_set(&node_table, n, "gpu-count"))
        return bind_refuse(b, EINVAL, node, "a node needs the key 'gpus' or 'gpu-count'");
    if (n->gpu_count && n->gpus.count && (size_t)n->gpu_count != n->gpus.count)
        return bind_refuse(b, EINVAL, ynode_get(node, "gpu-count"), "gpu-count is %lld, but 'gpus' lists %zu",
                           (long long)n->gpu_count, n->gpus.count);
    return 0;
}

static const struct bind_field node_fields[] = {
    BIND_ROW_INT("gpu-memory", node_spec, gpu_memory_mib, 1, 1e9, 0, "Memory of each GPU, in MiB."),
    BIND_ROW_TEXT("gpu-product", node_spec, gpu_product, BIND_REQUIRED, "Model of each GPU."),
    BIND_ROW_INT("gpu-count", node_spec, gpu_count, 0, CONFIG_GPUS_MAX, 0, "How many, where they are not listed."),
    BIND_ROW_LIST("gpus", node_spec, gpus, &node_gpu_item, struct node_gpu, CONFIG_GPUS_MAX, 0, "The GPUs."),
    { 0 },
};
static const struct bind_table node_table = { .what = "a node", .fields = node_fields, .check = check_node };

static const struct bind_field config_fields[] = {
    BIND_ROW_INT("version", config, version, 1, 1, 0, "Version of this format."),
    BIND_ROW_SHAPED("node", config, node, 0, &node_name_shape, "Name of the node."),
    BIND_ROW_STRUCT("driver", config, driver, &driver_table, "What the driver says of itself."),
    BIND_ROW_INT("seed", config, seed, 0, 9007199254740991.0, 0, "Seed of all randomness."),
    CONFIG_TIME("step", config, step_ns, 1e6, 6e10, 0, "Simulated time of one step."),
    BIND_ROW_REAL("speed", config, speed, 0, 1e6, "Simulated seconds per real second; 0 stands still."),
    CONFIG_TIME("update_interval", config, update_interval_ns, 1e6, 8.64e13, 0, "How often profiles give new readings."),
    BIND_ROW_CUSTOM("profile", config, profile, &profile_custom, "Behaviour of all GPUs: a profile, cycle, or a list."),
    { .key = "gpus", .type = BIND_LIST, BIND_AT(config, gpus), .item = &gpu_item, .size = sizeof(struct gpu_spec), .high = CONFIG_GPUS_MAX, .flags = BIND_SINGLE, .words = "a list of GPUs, or one mapping like {count: 8, model: T4}", .help = "The GPUs: a list, or count and model." },
    BIND_ROW_MAP("overrides", config, overrides, &gpu_table, gpu_spec, CONFIG_GPUS_MAX, "What differs on single GPUs, by index or UUID."),
    BIND_ROW_STRUCT("pci", config, pci, &pci_table, "Bus addresses of GPUs that give none."),
    BIND_ROW_STRUCT("numa", config, numa, &numa_table, "NUMA nodes."),
    BIND_ROW_STRUCT("nvlink", config, nvlink, &nvlink_table, "NVLink topology."),
    BIND_ROW_CHOICE("mig_strategy", config, mig_strategy, mig_strategy_names, "MIG strategy of the node's labels."),
    BIND_ROW_STRUCT("access", config, access, &access_table, "Device nodes and permissions."),
    BIND_ROW_STRUCT("physics", config, physics, &physics_table, "Coefficients of the simulation."),
    BIND_ROW_LIST("workloads", config, workloads, &workload_item, struct workload_spec, CONFIG_WORKLOADS_MAX, 0, "What runs."),
    BIND_ROW_LIST("faults", config, faults, &fault_item, struct fault_spec, CONFIG_FAULTS_MAX, 0, "What breaks, and when."),
    { .key = "mig-strategy", .type = BIND_CHOICE, BIND_AT(config, mig_strategy), .names = mig_strategy_names, .flags = BIND_HIDDEN, .help = "mig_strategy, in the form with nodes." },
    { .key = "nodes", .type = BIND_MAP, BIND_AT(config, nodes), .table = &node_table, .size = sizeof(struct node_spec), .key_offset = offsetof(struct node_spec, key), .key_size = sizeof(((struct node_spec *)0)->key), .high = CONFIG_NODES_MAX, .shape = &node_name_shape, .flags = BIND_HIDDEN, .help = "Nodes by name; one of them is picked." },
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
    strcpy(g->model, "A100-SXM4-40GB");
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
    cfg->driver.head.set = 0xf;
    cfg->pci.head.set = 0x7;
    bind_mark(&numa_table, &cfg->numa, "nodes", true);
}

/* --- the form with nodes --------------------------------------------------------------------- */

static const char *node_name_at(const void *list, int i)
{
    const struct bind_list *nodes = list;

    return (size_t)i < nodes->count ? ((const struct node_spec *)nodes->items)[i].key : NULL;
}

static const struct node_spec *pick_node(struct binder *b, const struct config *cfg,
                                         const char *wanted)
{
    const struct node_spec *nodes = cfg->nodes.items;
    const struct ynode *at = ynode_key(cfg->doc.root, "nodes");
    struct text hint = TEXT_INIT;

    for (size_t i = 0; wanted && i < cfg->nodes.count; i++)
        if (!strcmp(nodes[i].key, wanted))
            return &nodes[i];
    if (!wanted && cfg->nodes.count == 1)
        return nodes;
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
    w->head.line = m->head.line;
    w->head.column = m->head.column;
    bind_mark(&gpu_table, g, "workload", true);
    return 0;
}

static int node_gpu(struct config *cfg, const struct node_spec *node, const struct node_gpu *from,
                    struct gpu_spec *g)
{
    gpu_spec_init(g);
    memcpy(g->model, node->gpu_product, sizeof(g->model));
    bind_mark(&gpu_table, g, "model", true);
    if (node->gpu_memory_mib) {
        g->memory_bytes = node->gpu_memory_mib << 20;
        bind_mark(&gpu_table, g, "memory", true);
    }
    if (!from)
        return 0;
    g->head.line = from->head.line;
    g->head.column = from->head.column;
    memcpy(g->uuid, from->id, sizeof(g->uuid));
    bind_mark(&gpu_table, g, "uuid", true);
    return bind_is_set(&node_gpu_table, from, "metrics") ? node_load(cfg, &from->metrics, g) : 0;
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
        r = node_gpu(cfg, node, listed ? &listed[i] : NULL, &gpus[i]);
        if (!named)
            continue;
        memcpy(gpus[i].node, node->key, sizeof(gpus[i].node));
        bind_mark(&gpu_table, &gpus[i], "node", true);
        if (listed)
            continue;
        gpus[i].head.line = node->head.line;
        gpus[i].head.column = node->head.column;
        gpus[i].count = node->gpu_count;
        bind_mark(&gpu_table, &gpus[i], "count", true);
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

static int take_node(struct binder *b, struct config *cfg, const char *wanted)
{
    const struct node_spec *node = pick_node(b, cfg, wanted);

    if (!node)
        return -EINVAL;
    memcpy(cfg->node, node->key, sizeof(cfg->node));
    return take_nodes(cfg, node, 1, false);
}

static int take_all_nodes(struct binder *b, struct config *cfg)
{
    if (!bind_is_set(&config_table, cfg, "nodes"))
        return why_set(b->why, EINVAL, "%s has no 'nodes' to take all of", b->file);
    return take_nodes(cfg, cfg->nodes.items, cfg->nodes.count, true);
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
        return take_node(b, cfg, wanted);
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
        r = options->all_nodes ? take_all_nodes(&b, cfg) : name_node(&b, cfg, options->node);
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
