/*
 * Config: the machine around the GPUs. See config_host.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "sim/config_shapes.h"

const char *const dev_mode_names[] = { "auto", "char", "file", "null", NULL };
/* clang-format off */
const char *const nvlink_topology_names[] = { "auto", "none", "switch", "mesh", "ring", "pairs", NULL };
/* clang-format on */
const char *const kernel_module_names[] = { "open", "proprietary", NULL };

/* --- driver and PCI -------------------------------------------------------------------------- */

/* clang-format off */
static const struct bind_field driver_fields[] = {
    BIND_ROW_SHAPED("version", driver_spec, version, 0, &driver_version_shape, "Driver version."),
    BIND_ROW_SHAPED("cuda", driver_spec, cuda, 0, &cuda_version_shape, "CUDA version of the driver."),
    BIND_ROW_SHAPED("nvml", driver_spec, nvml, 0, &nvml_version_shape, "NVML version."),
    BIND_ROW_CHOICE("kernel_module", driver_spec, kernel_module, kernel_module_names, "Flavour of the kernel module."),
    { 0 },
};
const struct bind_table driver_spec_table = { .what = "driver", .fields = driver_fields };

static const struct bind_field pci_fields[] = {
    BIND_ROW_INT("domain", pci_spec, domain, 0, 0xffff, BIND_HEX, "Domain of the first GPU."),
    BIND_ROW_INT("first_bus", pci_spec, first_bus, 1, 0xff, BIND_HEX, "Bus of the first GPU."),
    BIND_ROW_INT("bus_step", pci_spec, bus_step, 1, 0xff, BIND_HEX, "Distance of their buses."),
    { 0 },
};
const struct bind_table pci_spec_table = { .what = "pci", .fields = pci_fields };
/* clang-format on */

/* --- NUMA ------------------------------------------------------------------------------------ */

static int check_numa(struct binder *b, const struct ynode *node, void *object)
{
    struct numa_spec *n = object;

    if (n->cpus.count && !bind_is_set(&numa_spec_table, n, "nodes"))
        n->nodes = (int64_t)n->cpus.count;
    if (n->cpus.count && n->cpus.count != (size_t)n->nodes)
        return bind_refuse(b, EINVAL, ynode_get(node, "cpus"),
                           "lists the CPUs of %zu node%s; allowed: one list for each of %lld",
                           n->cpus.count, n->cpus.count == 1 ? "" : "s", (long long)n->nodes);
    return 0;
}

/* clang-format off */
static const struct bind_field cpu_item = { .type = BIND_TEXT, .size = sizeof(struct cpu_list),
                                            .shape = &cpu_list_shape };
static const struct bind_field numa_fields[] = {
    BIND_ROW_INT("nodes", numa_spec, nodes, 1, 1024, 0, "NUMA nodes; GPUs are dealt out evenly."),
    BIND_ROW_LIST("cpus", numa_spec, cpus, &cpu_item, struct cpu_list, 1024, 0, "CPUs of each node."),
    { 0 },
};
const struct bind_table numa_spec_table = { .what = "numa", .fields = numa_fields, .check = check_numa };
/* clang-format on */

/* --- NVLink ---------------------------------------------------------------------------------- */

static int check_nvlink(struct binder *b, const struct ynode *node, void *object)
{
    if (bind_is_set(&nvlink_spec_table, object, "topology") &&
        bind_is_set(&nvlink_spec_table, object, "links"))
        return bind_refuse(b, EINVAL, ynode_key(node, "links"),
                           "gives both 'topology' and 'links'; allowed: one of them");
    return 0;
}

/* clang-format off */
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
const struct bind_table nvlink_spec_table = { .what = "nvlink", .fields = nvlink_fields, .check = check_nvlink };
/* clang-format on */

/* --- device nodes and permissions ------------------------------------------------------------ */

static int read_mode(struct binder *b, const struct ynode *node, void *member)
{
    int64_t *mode = member;
    size_t n = node->kind == YNODE_SCALAR ? strlen(node->text) : 0;

    if (n < 3 || n > 5 || strspn(node->text, "01234567") != n ||
        strtol(node->text, NULL, 8) > 07777)
        return bind_expected(b, node, "octal permissions like 0644");
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

/* clang-format off */
static const struct bind_field access_fields[] = {
    BIND_ROW_CHOICE("dev", access_spec, dev, dev_mode_names, "What device nodes are."),
    BIND_ROW_CUSTOM("dev_mode", access_spec, dev_mode, &mode_custom, "Permissions of device nodes."),
    BIND_ROW_CUSTOM("control_mode", access_spec, control_mode, &mode_custom, "Permissions of control files."),
    BIND_ROW_CUSTOM("workloads_mode", access_spec, workloads_mode, &mode_custom, "Permissions of the workloads directory."),
    BIND_ROW_INT("uid", access_spec, uid, 0, 4294967294, 0, "Owner of control files."),
    BIND_ROW_INT("gid", access_spec, gid, 0, 4294967294, 0, "Group of control files."),
    { 0 },
};
const struct bind_table access_spec_table = { .what = "access", .fields = access_fields };
/* clang-format on */
