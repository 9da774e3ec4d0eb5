/*
 * Nodes of sys/: the PCI devices and the modules, as sysfs shows them.
 *
 * Texts are the kernel's, byte for byte. Files that a kernel lets root write are read-only here: they
 * would change the machine, which is not simulated. PCI facts come from pci.c, those of modules from
 * driver.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/driver.h"
#include "fusefs/nodes.h"
#include "fusefs/pci.h"

/* --- a device -------------------------------------------------------------------------------- */

enum id { ID_VENDOR, ID_DEVICE, ID_CLASS, ID_REVISION, ID_SUBSYSTEM_VENDOR, ID_SUBSYSTEM_DEVICE };

static int show_id(const struct node_ctx *cx, struct text *out)
{
    const struct model_pci *pci = &cx->model->pci;
    const struct {
        int digits;
        int64_t value;
    } ids[] = {
        [ID_VENDOR] = { 4, PCI_VENDOR_NVIDIA },
        [ID_DEVICE] = { 4, pci->device_id },
        [ID_CLASS] = { 6, pci->class },
        [ID_REVISION] = { 2, PCI_REVISION },
        [ID_SUBSYSTEM_VENDOR] = { 4, PCI_VENDOR_NVIDIA },
        [ID_SUBSYSTEM_DEVICE] = { 4, pci->subsystem_id },
    };

    text_addf(out, "0x%0*" PRIx64 "\n", ids[cx->def->arg].digits, ids[cx->def->arg].value);
    return 0;
}

/* A text that never changes; `arg` says which. */
enum constant {
    CONSTANT_0,
    CONSTANT_1,
    CONSTANT_D0,
    CONSTANT_ON,
    CONSTANT_ACTIVE,
    CONSTANT_FORBIDDEN,
    CONSTANT_NULL,
    CONSTANT_LIVE,
    CONSTANT_N,
};

static int show_constant(const struct node_ctx *cx, struct text *out)
{
    static const char *const constants[] = {
        [CONSTANT_0] = "0",           [CONSTANT_1] = "1",
        [CONSTANT_D0] = "D0",         [CONSTANT_ON] = "on",
        [CONSTANT_ACTIVE] = "active", [CONSTANT_FORBIDDEN] = "forbidden",
        [CONSTANT_NULL] = "(null)",   [CONSTANT_LIVE] = "live",
        [CONSTANT_N] = "N",
    };

    text_addf(out, "%s\n", constants[cx->def->arg]);
    return 0;
}

static void add_bus_id(struct text *out, const struct gpu_plan *p)
{
    text_addf(out, "%04x:%02x:%02x.%x", p->domain, p->bus, p->device, p->function);
}

static void add_modalias(struct text *out, const struct gpu_model *model)
{
    const struct model_pci *pci = &model->pci;
    unsigned class = (unsigned)pci->class;

    text_addf(out, "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X\n", PCI_VENDOR_NVIDIA,
              (unsigned)pci->device_id, PCI_VENDOR_NVIDIA, (unsigned)pci->subsystem_id,
              class >> 16 & 0xff, class >> 8 & 0xff, class & 0xff);
}

static int show_modalias(const struct node_ctx *cx, struct text *out)
{
    add_modalias(out, cx->model);
    return 0;
}

static int show_uevent(const struct node_ctx *cx, struct text *out)
{
    const struct model_pci *pci = &cx->model->pci;

    text_addf(out,
              "DRIVER=nvidia\nPCI_CLASS=%04X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\n"
              "PCI_SLOT_NAME=",
              (unsigned)pci->class, PCI_VENDOR_NVIDIA, (unsigned)pci->device_id, PCI_VENDOR_NVIDIA,
              (unsigned)pci->subsystem_id);
    add_bus_id(out, cx->plan);
    text_add(out, "\nMODALIAS=");
    add_modalias(out, cx->model);
    return 0;
}

static int show_irq(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", pci_irq(cx));
    return 0;
}

static int show_dma_mask_bits(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", pci_dma_bits(cx->model));
    return 0;
}

/* A board that keeps its state through D3hot cannot be reset by power management. */
static int show_reset_method(const struct node_ctx *cx, struct text *out)
{
    text_add(out, model_has_flr(cx->model) ? "flr bus\n" : "bus\n");
    return 0;
}

static int show_config(const struct node_ctx *cx, struct text *out)
{
    unsigned char config[PCI_CONFIG_BYTES];

    pci_config(cx, config);
    text_addn(out, (const char *)config, sizeof(config));
    return 0;
}

static int show_resource(const struct node_ctx *cx, struct text *out)
{
    for (int i = 0; i < PCI_RESOURCES; i++) {
        struct pci_region r = pci_region(cx, i);

        text_addf(out, "0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016" PRIx64 "\n", r.start, r.end,
                  r.flags);
    }
    return 0;
}

/* Only the kernel's VGA devices can have been the console. */
static bool is_vga_present(const struct node_ctx *cx)
{
    return gpu_is_present(cx) && cx->model->pci.class >> 8 == 0x0300;
}

/* --- the link -------------------------------------------------------------------------------- */

static int show_current_link_speed(const struct node_ctx *cx, struct text *out)
{
    int64_t generation;
    int r = pci_link_generation(cx, &generation);

    if (r == 0)
        text_addf(out, "%s\n", pci_speed_name(generation));
    return r;
}

static int show_max_link_speed(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", pci_speed_name(cx->model->pci.device_generation));
    return 0;
}

static int show_current_link_width(const struct node_ctx *cx, struct text *out)
{
    int64_t width;
    int r = pci_link_width(cx, &width);

    if (r == 0)
        text_addf(out, "%" PRId64 "\n", width);
    return r;
}

static int show_max_link_width(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", cx->model->pci.width);
    return 0;
}

/* --- processors ------------------------------------------------------------------------------ */

static int show_numa_node(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->plan->numa_node);
    return 0;
}

/* The processors near a GPU: as configured, or the host's shared out over the NUMA nodes. */
enum { CPUS_MAX = 8192 };

struct cpu_set {
    uint32_t words[CPUS_MAX / 32];
    int count; /* of processors that the machine seems to have */
};

static void cpus_add(struct cpu_set *set, int first, int last)
{
    for (int cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
        set->words[cpu / 32] |= UINT32_C(1) << cpu % 32;
    if (last >= set->count)
        set->count = last < CPUS_MAX ? last + 1 : CPUS_MAX;
}

/* "0-31,64-95"; the configuration made sure that it is one. */
static void cpus_parse(struct cpu_set *set, const char *list)
{
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL) {
        int first = 0, last, n = sscanf(list, "%d-%d", &first, &last);

        cpus_add(set, first, n == 2 ? last : first);
    }
}

static void cpus_near(const struct node_ctx *cx, struct cpu_set *set)
{
    int64_t nodes = cx->world->node_plan.numa_nodes, node = cx->plan->numa_node;
    int cpus = cx->host->cpus > 0 ? cx->host->cpus : 1;
    bool near_one = node >= 0 && node < nodes;

    memset(set, 0, sizeof(*set));
    set->count = cpus;
    if (*cx->plan->cpus)
        cpus_parse(set, cx->plan->cpus);
    else
        cpus_add(set, near_one ? (int)(node * cpus / nodes) : 0,
                 (near_one ? (int)((node + 1) * cpus / nodes) : cpus) - 1);
}

static bool cpus_has(const struct cpu_set *set, int cpu)
{
    return cpu < CPUS_MAX && set->words[cpu / 32] >> cpu % 32 & 1;
}

static int show_local_cpulist(const struct node_ctx *cx, struct text *out)
{
    struct cpu_set set;
    const char *before = "";

    cpus_near(cx, &set);
    for (int cpu = 0; cpu < set.count; cpu++) {
        int last = cpu;

        if (!cpus_has(&set, cpu))
            continue;
        while (cpus_has(&set, last + 1))
            last++;
        text_addf(out, last > cpu ? "%s%d-%d" : "%s%d", before, cpu, last);
        before = ",";
        cpu = last;
    }
    text_add(out, "\n"); /* a node without processors is an empty line, as in the kernel */
    return 0;
}

/* Words of 32 bits, the highest first, and of the highest only the digits that processors have. */
static int show_local_cpus(const struct node_ctx *cx, struct text *out)
{
    struct cpu_set set;

    cpus_near(cx, &set);
    for (int word = (set.count - 1) / 32; word >= 0; word--) {
        int bits = set.count - word * 32 < 32 ? set.count - word * 32 : 32;

        text_addf(out, "%0*" PRIx32 "%s", (bits + 3) / 4, set.words[word], word ? "," : "\n");
    }
    return 0;
}

/* --- links ----------------------------------------------------------------------------------- */

static void add_device(struct text *out, const char *up, const struct gpu_plan *p)
{
    text_addf(out, "%s/devices/pci%04x:%02x/", up, p->domain, p->bus);
    add_bus_id(out, p);
}

static int link_bus_device(const struct node_ctx *cx, struct text *out)
{
    add_device(out, "../../..", cx->plan);
    return 0;
}

static int link_driver_device(const struct node_ctx *cx, struct text *out)
{
    add_device(out, "../../../..", cx->plan);
    return 0;
}

static int link_driver(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "../../../bus/pci/drivers/nvidia");
    return 0;
}

static int link_subsystem(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "../../../bus/pci");
    return 0;
}

static int link_driver_module(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "../../../../module/nvidia");
    return 0;
}

/* --- modules; `arg` is the module ------------------------------------------------------------ */

static int link_holder(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "../../%s", driver_module_name((enum driver_module)cx->def->arg));
    return 0;
}

static int show_module_version(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", cx->world->node_plan.driver_version);
    return 0;
}

static int show_module_srcversion(const struct node_ctx *cx, struct text *out)
{
    driver_module_srcversion(out, cx->world, (enum driver_module)cx->def->arg);
    text_add(out, "\n");
    return 0;
}

static int show_module_refcnt(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", driver_module_users(cx->world, (enum driver_module)cx->def->arg));
    return 0;
}

static int show_module_taint(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", driver_taint(cx->world));
    return 0;
}

static int show_module_coresize(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n",
              driver_module_bytes(cx->world, (enum driver_module)cx->def->arg));
    return 0;
}

/* A switch that is on by default since branch `arg` of the driver. */
static int show_on_since(const struct node_ctx *cx, struct text *out)
{
    text_add(out, driver_branch(cx->world) >= cx->def->arg ? "Y\n" : "N\n");
    return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define GPU_LINK(where, what) { .path = where, .mode = S_IFLNK | 0777, .show = what, .exists = gpu_is_present }
#define LINK(where, what, number) { .path = where, .mode = S_IFLNK | 0777, .show = what, .arg = number }
#define PCI(name, what, number) \
    { .path = "sys/devices/pci%r/%b/" name, .mode = 0444, .show = what, .arg = number, .exists = gpu_is_present }
#define MODULE(name, what, number) { .path = "sys/module/" name, .mode = 0444, .show = what, .arg = number }
#define MODULE_ROWS(name, number) \
    MODULE(name "/version", show_module_version, number), \
    MODULE(name "/srcversion", show_module_srcversion, number), \
    MODULE(name "/refcnt", show_module_refcnt, number), \
    MODULE(name "/initstate", show_constant, CONSTANT_LIVE), \
    MODULE(name "/taint", show_module_taint, number), \
    MODULE(name "/coresize", show_module_coresize, number), \
    MODULE(name "/initsize", show_constant, CONSTANT_0)

const struct node_def sys_nodes[] = {
    GPU_LINK("sys/bus/pci/devices/%b", link_bus_device),
    GPU_LINK("sys/bus/pci/drivers/nvidia/%b", link_driver_device),
    LINK("sys/bus/pci/drivers/nvidia/module", link_driver_module, 0),

    PCI("vendor",                   show_id, ID_VENDOR),
    PCI("device",                   show_id, ID_DEVICE),
    PCI("class",                    show_id, ID_CLASS),
    PCI("revision",                 show_id, ID_REVISION),
    PCI("subsystem_vendor",         show_id, ID_SUBSYSTEM_VENDOR),
    PCI("subsystem_device",         show_id, ID_SUBSYSTEM_DEVICE),
    PCI("modalias",                 show_modalias, 0),
    PCI("uevent",                   show_uevent, 0),
    PCI("numa_node",                show_numa_node, 0),
    PCI("local_cpulist",            show_local_cpulist, 0),
    PCI("local_cpus",               show_local_cpus, 0),
    PCI("irq",                      show_irq, 0),
    PCI("resource",                 show_resource, 0),
    { .path = "sys/devices/pci%r/%b/config", .mode = 0444, .show = show_config, .arg = PCI_CONFIG_BYTES,
      .flags = NODE_BINARY, .exists = gpu_is_present },
    PCI("current_link_speed",       show_current_link_speed, 0),
    PCI("current_link_width",       show_current_link_width, 0),
    PCI("max_link_speed",           show_max_link_speed, 0),
    PCI("max_link_width",           show_max_link_width, 0),
    PCI("enable",                   show_constant, CONSTANT_1),
    PCI("power_state",              show_constant, CONSTANT_D0),
    PCI("dma_mask_bits",            show_dma_mask_bits, 0),
    PCI("consistent_dma_mask_bits", show_dma_mask_bits, 0),
    { .path = "sys/devices/pci%r/%b/boot_vga", .mode = 0444, .show = show_constant, .arg = CONSTANT_0,
      .exists = is_vga_present }, /* the console is the board's own management controller */
    PCI("reset_method",             show_reset_method, 0),
    PCI("msi_bus",                  show_constant, CONSTANT_1),
    PCI("d3cold_allowed",           show_constant, CONSTANT_1),
    PCI("broken_parity_status",     show_constant, CONSTANT_0),
    PCI("ari_enabled",              show_constant, CONSTANT_0),
    PCI("driver_override",          show_constant, CONSTANT_NULL),
    PCI("power/control",            show_constant, CONSTANT_ON),
    PCI("power/runtime_status",     show_constant, CONSTANT_ACTIVE),
    PCI("power/runtime_enabled",    show_constant, CONSTANT_FORBIDDEN), /* follows from control: on */
    GPU_LINK("sys/devices/pci%r/%b/driver", link_driver),
    GPU_LINK("sys/devices/pci%r/%b/subsystem", link_subsystem),

    MODULE_ROWS("nvidia", DRIVER_NVIDIA),
    LINK("sys/module/nvidia/drivers/pci:nvidia", link_driver, 0),
    LINK("sys/module/nvidia/holders/nvidia_uvm", link_holder, DRIVER_UVM),
    LINK("sys/module/nvidia/holders/nvidia_modeset", link_holder, DRIVER_MODESET),
    MODULE_ROWS("nvidia_uvm", DRIVER_UVM),
    MODULE("nvidia_uvm/parameters/uvm_disable_hmm", show_constant, CONSTANT_N),
    MODULE_ROWS("nvidia_modeset", DRIVER_MODESET),
    LINK("sys/module/nvidia_modeset/holders/nvidia_drm", link_holder, DRIVER_DRM),
    MODULE_ROWS("nvidia_drm", DRIVER_DRM),
    MODULE("nvidia_drm/parameters/modeset", show_on_since, 595),
    MODULE("nvidia_drm/parameters/fbdev", show_on_since, 570),
    { 0 },
};
/* clang-format on */
