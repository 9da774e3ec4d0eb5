/*
 * Nodes of proc/: what the NVIDIA driver shows of itself, and the kernel's lists it appears in.
 *
 * Every text has the bytes of the driver's own (nv-procfs.c, nv-caps.c and nv-reg.h of
 * open-gpu-kernel-modules), as they are in the branch that the configuration names: scripts cut these
 * files at tabs and columns. Files that the driver lets root write are read-only here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "fusefs/driver.h"
#include "fusefs/majors.h"
#include "fusefs/nodes.h"
#include "fusefs/pci.h"

#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

/* --- the driver ------------------------------------------------------------------------------ */

static int show_version(const struct node_ctx *cx, struct text *out)
{
    static const char date[] = "Tue Apr  8 12:41:17 UTC 2025";
    const struct node_plan *n = &cx->world->node_plan;

    if (n->kernel_module == MODULE_PROPRIETARY)
        text_addf(out, "NVRM version: NVIDIA UNIX " MACHINE " Kernel Module  %s  %s\n",
                  n->driver_version, date);
    else
        text_addf(out,
                  "NVRM version: NVIDIA UNIX Open Kernel Module for " MACHINE
                  "  %s  Release Build  (dvs-builder@U16-A24-9-2)  %s\n",
                  n->driver_version, date);
    text_add(out, "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
    return 0;
}

/* A row of a text that differs between branches of the driver: it is there in [since, until). */
struct branches {
    int since, until; /* 0: no bound */
};

static bool branch_has(const struct node_ctx *cx, struct branches b)
{
    int branch = driver_branch(cx->world);

    return branch >= b.since && (!b.until || branch < b.until);
}

/* clang-format off */
#define ALWAYS { 0, 0 }
#define SINCE(branch) { branch, 0 }
#define UNTIL(branch) { 0, branch }

static const struct parameter {
    const char *name;
    uint32_t value;
    struct branches in;
} parameters[] = {
    { "ResmanDebugLevel",                           UINT32_MAX, ALWAYS },
    { "RmLogonRC",                                  1, ALWAYS },
    { "ModifyDeviceFiles",                          1, ALWAYS },
    { "DeviceFileUID",                              0, ALWAYS },
    { "DeviceFileGID",                              0, ALWAYS },
    { "DeviceFileMode",                             0666, ALWAYS },
    { "InitializeSystemMemoryAllocations",          1, ALWAYS },
    { "UsePageAttributeTable",                      UINT32_MAX, ALWAYS },
    { "EnableMSI",                                  1, ALWAYS },
    { "EnablePCIeGen3",                             0, ALWAYS },
    { "MemoryPoolSize",                             0, ALWAYS },
    { "KMallocHeapMaxSize",                         0, ALWAYS },
    { "VMallocHeapMaxSize",                         0, ALWAYS },
    { "IgnoreMMIOCheck",                            0, ALWAYS },
    { "TCEBypassMode",                              0, UNTIL(570) },
    { "EnableStreamMemOPs",                         0, ALWAYS },
    { "EnableUserNUMAManagement",                   1, ALWAYS },
    { "NvLinkDisable",                              0, ALWAYS },
    { "RmProfilingAdminOnly",                       1, ALWAYS },
    { "PreserveVideoMemoryAllocations",             0, UNTIL(595) },
    { "PreserveVideoMemoryAllocations",             2, SINCE(595) },
    { "UseKernelSuspendNotifiers",                  0, SINCE(595) },
    { "EnableS0ixPowerManagement",                  0, ALWAYS },
    { "S0ixPowerManagementVideoMemoryThreshold",    256, ALWAYS },
    { "DynamicPowerManagement",                     3, ALWAYS },
    { "DynamicPowerManagementVideoMemoryThreshold", 200, ALWAYS },
    { "TegraGpuPgMask",                             UINT32_MAX, SINCE(590) },
    { "RegisterPCIDriver",                          1, ALWAYS },
    { "EnablePCIERelaxedOrderingMode",              0, ALWAYS },
    { "EnableResizableBar",                         0, SINCE(530) },
    { "EnableGpuFirmware",                          0x12, ALWAYS },
    { "EnableGpuFirmwareLogs",                      2, ALWAYS },
    { "RmNvlinkBandwidthLinkCount",                 0, SINCE(565) },
    { "EnableDbgBreakpoint",                        0, ALWAYS },
    { "OpenRmEnableUnsupportedGpus",                0, UNTIL(545) },
    { "OpenRmEnableUnsupportedGpus",                1, SINCE(545) },
    { "DmaRemapPeerMmio",                           1, ALWAYS },
    { "ImexChannelCount",                           2048, SINCE(550) },
    { "CreateImexChannel0",                         0, SINCE(555) },
    { "GrdmaPciTopoCheckOverride",                  0, SINCE(570) },
    { "EnableSystemMemoryPools",                    0x211, SINCE(590) },
};

static const struct {
    const char *name;
    struct branches in;
} texts[] = {
    { "CoherentGPUMemoryMode", SINCE(580) },
    { "RegistryDwords", ALWAYS },
    { "RegistryDwordsPerDevice", ALWAYS },
    { "RmMsg", ALWAYS },
    { "GpuBlacklist", ALWAYS },
    { "TemporaryFilePath", ALWAYS },
    { "ExcludedGpus", ALWAYS },
};
/* clang-format on */

static int show_params(const struct node_ctx *cx, struct text *out)
{
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
        if (branch_has(cx, parameters[i].in))
            text_addf(out, "%s: %" PRIu32 "\n", parameters[i].name, parameters[i].value);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (branch_has(cx, texts[i].in))
            text_addf(out, "%s: \"\"\n", texts[i].name);
    return 0;
}

static int show_registry(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "Binary: \"\"\n");
    return 0;
}

static int show_suspend(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "suspend hibernate resume\n");
    return 0;
}

static int show_suspend_depth(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_add(out, "default modeset uvm\n");
    return 0;
}

/* --- a GPU ----------------------------------------------------------------------------------- */

static int show_information(const struct node_ctx *cx, struct text *out)
{
    const struct gpu_plan *p = cx->plan;
    int bits = pci_dma_bits(cx->model);

    text_addf(out, "Model: \t\t %s\n", cx->model->product);
    text_addf(out, "IRQ:   \t\t %d\n", pci_irq(cx));
    text_addf(out, "GPU UUID: \t %s\n", p->uuid);
    text_addf(out, "Video BIOS: \t %s\n", cx->model->vbios);
    text_addf(out, "Bus Type: \t PCIe\n");
    text_addf(out, "DMA Size: \t %d bits\n", bits);
    text_addf(out, "DMA Mask: \t 0x%" PRIx64 "\n", (UINT64_C(1) << bits) - 1);
    text_addf(out, "Bus Location: \t %04x:%02x:%02x.%x\n", p->domain, p->bus, p->device,
              p->function);
    text_addf(out, "Device Minor: \t %d\n", p->minor);
    text_addf(out, "GPU Firmware: \t %s\n",
              model_has_gsp(cx->model) ? cx->world->node_plan.driver_version : "N/A");
    text_addf(out, "GPU Excluded:\t No\n");
    return 0;
}

/* Servers do not put their GPUs to sleep; only desktop boards could let go of their memory. */
static int show_power(const struct node_ctx *cx, struct text *out)
{
    bool desktop = cx->model->pci.class >> 8 == 0x0300;

    text_add(out, "Runtime D3 status:          Disabled by default\n");
    if (driver_branch(cx->world) >= 590)
        text_add(out, "Tegra iGPU Rail-Gating:     Disabled\n");
    text_add(out, "Video Memory:               Active\n\n"
                  "GPU Hardware Support:\n"
                  " Video Memory Self Refresh: Not Supported\n");
    text_addf(out, " Video Memory Off:          %s\n", desktop ? "Supported" : "Not Supported");
    if (driver_branch(cx->world) >= 555)
        text_add(out, "\nS0ix Power Management:\n"
                      " Platform Support:          Not Supported\n"
                      " Status:                    Disabled\n");
    if (driver_branch(cx->world) >= 570)
        text_add(out, "\nNotebook Dynamic Boost:     Not Supported\n");
    return 0;
}

/* Only memory that processors can address over C2C is a NUMA node. */
static bool is_coherent_present(const struct node_ctx *cx)
{
    return gpu_is_present(cx) && cx->model->c2c;
}

static int show_numa_status(const struct node_ctx *cx, struct text *out)
{
    /* A GPU has eight nodes, for as many MIG instances; the first is the whole GPU's. */
    int node = cx->world->node_plan.numa_nodes + 8 * cx->plan->minor;
    struct pci_region memory = pci_region(cx, 2);

    text_addf(out, "Node:      %d\n", node);
    text_add(out, "Status:    online\n");
    text_addf(out, "Address:   %" PRIx64 "\n", memory.start);
    text_addf(out, "Size:      %" PRIx64 "\n", (uint64_t)cx->plan->memory_bytes);
    return 0;
}

/* --- capabilities ---------------------------------------------------------------------------- */

/* `arg` is permissions << 20 | minor. The driver writes the permissions in decimal. */
static int show_capability(const struct node_ctx *cx, struct text *out)
{
    int mode = (int)(cx->def->arg >> 20);

    text_addf(out, "DeviceFileMinor: %u\nDeviceFileMode: %d\nDeviceFileModify: 1\n",
              device_minor(cx), mode);
    return 0;
}

static int show_mig_minors(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_addf(out, "config %d\nmonitor %d\n", MINOR_MIG_CONFIG, MINOR_MIG_MONITOR);
    for (int gpu = 0; gpu < CAPS_GPUS; gpu++)
        for (int gi = 0; gi < CAPS_GPU_INSTANCES; gi++) {
            int minor = caps_minor(gpu, gi);

            text_addf(out, "gpu%d/gi%d/access %d\n", gpu, gi, minor);
            for (int ci = 0; ci < CAPS_COMPUTE_INSTANCES; ci++)
                text_addf(out, "gpu%d/gi%d/ci%d/access %d\n", gpu, gi, ci, minor + 1 + ci);
        }
    return 0;
}

static int show_nvlink_minors(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_addf(out, "fabric-mgmt %d\n", MINOR_FABRIC);
    return 0;
}

static int show_sys_minors(const struct node_ctx *cx, struct text *out)
{
    (void)cx;
    text_addf(out, "fabric-imex-mgmt %d\n", MINOR_IMEX);
    return 0;
}

/* --- the kernel's lists ---------------------------------------------------------------------- */

/* clang-format off */
/* In the kernel's order: by major, then by first minor. */
static const struct device {
    int major;
    const char *name;
    struct branches in;
} character_devices[] = {
    { 1, "mem", ALWAYS },
    { 4, "/dev/vc/0", ALWAYS },
    { 4, "tty", ALWAYS },
    { 4, "ttyS", ALWAYS },
    { 5, "/dev/tty", ALWAYS },
    { 5, "/dev/console", ALWAYS },
    { 5, "/dev/ptmx", ALWAYS },
    { 7, "vcs", ALWAYS },
    { 10, "misc", ALWAYS },
    { 13, "input", ALWAYS },
    { 29, "fb", ALWAYS },
    { 128, "ptm", ALWAYS },
    { 136, "pts", ALWAYS },
    { MAJOR_NVIDIA, "nvidia-frontend", UNTIL(545) },
    { MAJOR_NVIDIA, "nvidia", SINCE(545) },
    { MAJOR_NVIDIA, "nvidia-modeset", SINCE(545) },
    { MAJOR_NVIDIA, "nvidiactl", SINCE(545) },
    { 226, "drm", ALWAYS },
    { MAJOR_NVLINK, "nvidia-nvlink", ALWAYS },
    { MAJOR_CAPS, "nvidia-caps", ALWAYS },
    { MAJOR_IMEX, "nvidia-caps-imex-channels", SINCE(550) },
    { MAJOR_UVM, "nvidia-uvm", ALWAYS },
    { MAJOR_NVSWITCH, "nvidia-nvswitch", ALWAYS },
}, block_devices[] = {
    { 7, "loop", ALWAYS },
    { 8, "sd", ALWAYS },
    { 253, "device-mapper", ALWAYS },
    { 259, "blkext", ALWAYS },
};
/* clang-format on */

static void add_devices(const struct node_ctx *cx, struct text *out, const struct device *devices,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (branch_has(cx, devices[i].in))
            text_addf(out, "%3d %s\n", devices[i].major, devices[i].name);
}

static int show_devices(const struct node_ctx *cx, struct text *out)
{
    text_add(out, "Character devices:\n");
    add_devices(cx, out, character_devices,
                sizeof(character_devices) / sizeof(character_devices[0]));
    text_add(out, "\nBlock devices:\n");
    add_devices(cx, out, block_devices, sizeof(block_devices) / sizeof(block_devices[0]));
    return 0;
}

/* Addresses are zero, as they are to everyone whom the kernel does not trust. */
static int show_modules(const struct node_ctx *cx, struct text *out)
{
    for (int i = 0; i < DRIVER_MODULES; i++) {
        enum driver_module module = (enum driver_module)i;
        const int *holder = driver_module_holders(module);

        text_addf(out, "%s %" PRId64 " %d ", driver_module_name(module),
                  driver_module_bytes(cx->world, module), driver_module_users(cx->world, module));
        if (*holder < 0)
            text_add(out, "-");
        for (; *holder >= 0; holder++)
            text_addf(out, "%s,", driver_module_name((enum driver_module) * holder));
        text_addf(out, " Live 0x%016x (%s)\n", 0, driver_taint(cx->world));
    }
    return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define PROC(name, what) { .path = "proc/" name, .mode = 0444, .show = what }
#define GPU(name, what, there) \
    { .path = "proc/driver/nvidia/gpus/%b/" name, .mode = 0444, .show = what, .exists = there }
#define CAPABILITY(name, permissions, minor) \
    { .path = "proc/driver/" name, .mode = 0444, .show = show_capability, .arg = (permissions) << 20 | (minor) }
#define INSTANCE(name) \
    { .path = "proc/driver/nvidia/capabilities/gpu%m/mig/" name, .mode = 0444, .show = show_capability, \
      .arg = (int64_t)0444 << 20, .exists = gpu_is_present }

const struct node_def proc_nodes[] = {
    PROC("devices", show_devices),
    PROC("modules", show_modules),
    PROC("driver/nvidia/version", show_version),
    PROC("driver/nvidia/params", show_params),
    PROC("driver/nvidia/registry", show_registry),
    PROC("driver/nvidia/suspend", show_suspend),
    PROC("driver/nvidia/suspend_depth", show_suspend_depth),
    GPU("information", show_information, gpu_is_present),
    GPU("registry", show_registry, gpu_is_present),
    GPU("power", show_power, gpu_is_present),
    GPU("numa_status", show_numa_status, is_coherent_present),
    CAPABILITY("nvidia/capabilities/mig/config", 0400, MINOR_MIG_CONFIG),
    CAPABILITY("nvidia/capabilities/mig/monitor", 0444, MINOR_MIG_MONITOR),
    INSTANCE("gi%g/access"),
    INSTANCE("gi%g/ci%c/access"),
    CAPABILITY("nvidia/capabilities/fabric-imex-mgmt", 0400, MINOR_IMEX),
    CAPABILITY("nvidia-nvlink/capabilities/fabric-mgmt", 0400, MINOR_FABRIC),
    PROC("driver/nvidia-caps/mig-minors", show_mig_minors),
    PROC("driver/nvidia-caps/nvlink-minors", show_nvlink_minors),
    PROC("driver/nvidia-caps/sys-minors", show_sys_minors),
    { 0 },
};
/* clang-format on */
