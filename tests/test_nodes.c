/*
 * Nodes: what dev/, proc/, sys/ and k8s/ say, byte for byte, seen through the tree without a mount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "fusefs/majors.h"
#include "fusefs/nodes.h"
#include "fusefs/pci.h"
#include "fusefs/tree.h"
#include "tests/node.h"

#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

#define UUID "GPU-edfee158-11c1-52b8-0517-92f30e7fac88"
#define SYS_GPU "sys/devices/pci0000:06/0000:06:00.0/"
#define PROC_GPU "proc/driver/nvidia/gpus/0000:06:00.0/"

/* --- a tree to look at ----------------------------------------------------------------------- */

static struct tree *tree;
static struct sim *sim;
static struct host host = { .dev_mode = DEV_CHAR, .cpus = 40 };

static void mount_node(const char *yaml)
{
    if (sim)
        sim_free(sim);
    sim = node_new(yaml);
}

static uint64_t looked;

static struct tree_view view_now(void)
{
    return (struct tree_view){ tree, &host, sim_store(sim), sim_world(sim), &looked };
}

/* Finds a path without following links: 0 or -errno. */
static int find(const char *path, struct place *place)
{
    struct tree_view view = view_now();
    int r = tree_resolve(&view, TREE_ROOT, place);

    while (r == 0 && *path) {
        size_t n = strcspn(path, "/");
        struct place parent = *place;
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        r = tree_lookup(&view, &parent, name, place);
        path += n + (path[n] == '/');
    }
    return r;
}

static bool exists(const char *path)
{
    struct place place;

    return find(path, &place) == 0;
}

static struct text content;

static int render(const struct place *place)
{
    text_cut(&content, 0);
    return place->cx.def->show(&place->cx, &content);
}

/* The content of a file or the target of a link; NULL when there is none. Valid until the next. */
static const char *cat(const char *path)
{
    struct place place;

    if (find(path, &place) < 0 || place.directory || render(&place) < 0)
        return NULL;
    return text_str(&content);
}

/* Goes along a path from the directory `at`, through links; false where it leads nowhere. */
static bool enter(struct text *at, const char *path, int links)
{
    bool there = true;

    for (size_t n; there && *path; path += n + (path[n] == '/')) {
        size_t before = at->length;
        struct place place;

        n = strcspn(path, "/");
        if (n == 2 && !strncmp(path, "..", 2)) {
            const char *slash = strrchr(text_str(at), '/');

            text_cut(at, slash ? (size_t)(slash - at->data) : 0);
            continue;
        }
        text_addf(at, "%s%.*s", before ? "/" : "", (int)n, path);
        there = find(text_str(at), &place) == 0;
        if (there && S_ISLNK(tree_mode(&place))) {
            char *target = strdup(cat(text_str(at)));

            text_cut(at, before);
            there = links > 0 && enter(at, target, links - 1);
            free(target);
        }
    }
    return there;
}

/* The path without links and dots, or NULL where one leads nowhere. Valid until the next. */
static const char *follow(const char *path)
{
    static char canonical[256];
    struct text at = TEXT_INIT;
    bool there = enter(&at, path, 8);

    snprintf(canonical, sizeof(canonical), "%s", text_str(&at));
    text_release(&at);
    return there ? canonical : NULL;
}

/* --- proc ------------------------------------------------------------------------------------ */

static void test_version(void)
{
    mount_node("driver: {version: 595.45.04}\n");
    like(cat("proc/driver/nvidia/version"),
         "^NVRM version: NVIDIA UNIX Open Kernel Module for " MACHINE
         "  595[.]45[.]04  Release Build  [(][^)]+[)]  [A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] "
         "[0-9:]{8} UTC [0-9]{4}\nGCC version:  gcc version [^\n]*\n$",
         "version of the open modules");
    mount_node("driver: {version: 550.163.01, kernel_module: proprietary}\n");
    is_str(cat("proc/driver/nvidia/version"),
           "NVRM version: NVIDIA UNIX " MACHINE
           " Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\n"
           "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
           "version of the proprietary modules");
}

static void test_information(void)
{
    mount_node("gpus: {count: 1, uuid: " UUID "}\n");
    is_str(cat(PROC_GPU "information"),
           "Model: \t\t NVIDIA A100-SXM4-40GB\n"
           "IRQ:   \t\t 128\n"
           "GPU UUID: \t " UUID "\n"
           "Video BIOS: \t 92.00.45.00.03\n"
           "Bus Type: \t PCIe\n"
           "DMA Size: \t 47 bits\n"
           "DMA Mask: \t 0x7fffffffffff\n"
           "Bus Location: \t 0000:06:00.0\n"
           "Device Minor: \t 0\n"
           "GPU Firmware: \t 550.163.01\n"
           "GPU Excluded:\t No\n",
           "information of an A100");
    mount_node("gpus: [{model: V100-SXM2-16GB, bus_id: '0000:AF:00.0', minor: 5}]\n");
    contains(cat("proc/driver/nvidia/gpus/0000:af:00.0/information"),
             "Bus Location: \t 0000:af:00.0\nDevice Minor: \t 5\nGPU Firmware: \t N/A\n",
             "before Turing there is no firmware; addresses are in small letters");
    mount_node("gpus: {count: 1, model: H100-80GB-HBM3}\n");
    contains(cat(PROC_GPU "information"), "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n",
             "Hopper reaches further");
}

/* How often a text is in another. */
static int count(const char *text, const char *part)
{
    int n = 0;

    for (; text && (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void test_params(void)
{
    mount_node("");
    contains(cat("proc/driver/nvidia/params"),
             "RmLogonRC: 1\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\n"
             "DeviceFileMode: 438\n",
             "parameters as container tools look for them");
    is_int(count(cat("proc/driver/nvidia/params"), "\n"), 33 + 6, "all those of 550");
    like(cat("proc/driver/nvidia/params"), "\nImexChannelCount: 2048\nRegistryDwords: \"\"\n",
         "numbers, then texts");
    mount_node("driver: {version: 595.45.04}\n");
    is_int(count(cat("proc/driver/nvidia/params"), "\n"), 38 + 7, "all those of 595");
    is_int(count(cat("proc/driver/nvidia/params"), "PreserveVideoMemoryAllocations: 2\n"), 1,
           "with its defaults");
    is_str(cat("proc/driver/nvidia/registry"), "Binary: \"\"\n", "registry");
    is_str(cat("proc/driver/nvidia/suspend"), "suspend hibernate resume\n", "suspend");
    is_str(cat("proc/driver/nvidia/suspend_depth"), "default modeset uvm\n", "suspend_depth");
}

static void test_power(void)
{
    mount_node("gpus: {count: 1}\n");
    is_str(cat(PROC_GPU "power"),
           "Runtime D3 status:          Disabled by default\n"
           "Video Memory:               Active\n"
           "\n"
           "GPU Hardware Support:\n"
           " Video Memory Self Refresh: Not Supported\n"
           " Video Memory Off:          Not Supported\n",
           "power in 550");
    mount_node("{driver: {version: 595.45.04}, gpus: {count: 1, model: RTX-4090}}\n");
    is_str(cat(PROC_GPU "power"),
           "Runtime D3 status:          Disabled by default\n"
           "Tegra iGPU Rail-Gating:     Disabled\n"
           "Video Memory:               Active\n"
           "\n"
           "GPU Hardware Support:\n"
           " Video Memory Self Refresh: Not Supported\n"
           " Video Memory Off:          Supported\n"
           "\n"
           "S0ix Power Management:\n"
           " Platform Support:          Not Supported\n"
           " Status:                    Disabled\n"
           "\n"
           "Notebook Dynamic Boost:     Not Supported\n",
           "power in 595");
    ok(!exists(PROC_GPU "numa_status"), "memory behind PCIe is no NUMA node");
    mount_node("{gpus: {count: 2, model: GB200}, numa: {nodes: 2}}\n");
    like(cat("proc/driver/nvidia/gpus/0000:17:00.0/numa_status"),
         "^Node:      10\nStatus:    online\nAddress:   [0-9a-f]+\nSize:      2e41f00000\n$",
         "memory behind C2C is one");
}

static void test_capabilities(void)
{
    mount_node("");
    is_str(cat("proc/driver/nvidia/capabilities/mig/config"),
           "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n", "mig/config");
    is_str(cat("proc/driver/nvidia/capabilities/mig/monitor"),
           "DeviceFileMinor: 2\nDeviceFileMode: 292\nDeviceFileModify: 1\n", "mig/monitor");
    is_str(cat("proc/driver/nvidia/capabilities/fabric-imex-mgmt"),
           "DeviceFileMinor: 4323\nDeviceFileMode: 256\nDeviceFileModify: 1\n", "fabric-imex-mgmt");
    is_str(cat("proc/driver/nvidia-caps/nvlink-minors"), "fabric-mgmt 0\n", "nvlink-minors");
    is_str(cat("proc/driver/nvidia-caps/sys-minors"), "fabric-imex-mgmt 4323\n", "sys-minors");
    like(cat("proc/driver/nvidia-caps/mig-minors"),
         "^config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n", "mig-minors begins");
    contains(cat("proc/driver/nvidia-caps/mig-minors"),
             "\ngpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\n", "has GPU 0");
    contains(cat("proc/driver/nvidia-caps/mig-minors"),
             "\ngpu1/gi7/access 201\ngpu1/gi7/ci0/access 202\n", "has GPU 1");
    like(cat("proc/driver/nvidia-caps/mig-minors"), "\ngpu31/gi14/ci7/access 4322\n$", "and ends");
    is_int(count(cat("proc/driver/nvidia-caps/mig-minors"), "\n"), 2 + 32 * 15 * 9,
           "with all that can be");
}

static void test_kernel_lists(void)
{
    mount_node("");
    is_str(cat("proc/devices"),
           "Character devices:\n"
           "  1 mem\n  4 /dev/vc/0\n  4 tty\n  4 ttyS\n  5 /dev/tty\n  5 /dev/console\n"
           "  5 /dev/ptmx\n  7 vcs\n 10 misc\n 13 input\n 29 fb\n128 ptm\n136 pts\n"
           "195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n226 drm\n234 nvidia-nvlink\n"
           "235 nvidia-caps\n236 nvidia-caps-imex-channels\n510 nvidia-uvm\n"
           "511 nvidia-nvswitch\n"
           "\nBlock devices:\n  7 loop\n  8 sd\n253 device-mapper\n259 blkext\n",
           "devices");
    is_str(cat("proc/modules"),
           "nvidia_uvm 2076672 0 - Live 0x0000000000000000 (OE)\n"
           "nvidia_drm 122880 0 - Live 0x0000000000000000 (OE)\n"
           "nvidia_modeset 1601536 1 nvidia_drm, Live 0x0000000000000000 (OE)\n"
           "nvidia 9703424 10 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (OE)\n",
           "modules");
    mount_node("driver: {version: 535.54.03, kernel_module: proprietary}\n");
    contains(cat("proc/devices"), "\n195 nvidia-frontend\n226 drm\n", "an older driver's devices");
    like(cat("proc/modules"),
         "\nnvidia 54386688 10 nvidia_uvm,nvidia_modeset, Live 0x0{16} [(]POE[)]\n$",
         "proprietary modules");
}

/* --- sys ------------------------------------------------------------------------------------- */

static void test_device(void)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        { "vendor", "0x10de\n" },
        { "device", "0x20b0\n" },
        { "class", "0x030200\n" },
        { "revision", "0xa1\n" },
        { "subsystem_vendor", "0x10de\n" },
        { "subsystem_device", "0x134f\n" },
        { "modalias", "pci:v000010DEd000020B0sv000010DEsd0000134Fbc03sc02i00\n" },
        { "uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:20B0\nPCI_SUBSYS_ID=10DE:134F\n"
                    "PCI_SLOT_NAME=0000:06:00.0\n"
                    "MODALIAS=pci:v000010DEd000020B0sv000010DEsd0000134Fbc03sc02i00\n" },
        { "irq", "128\n" },
        { "dma_mask_bits", "47\n" },
        { "consistent_dma_mask_bits", "47\n" },
        { "enable", "1\n" },
        { "power_state", "D0\n" },
        { "reset_method", "flr bus\n" },
        { "current_link_speed", "16.0 GT/s PCIe\n" },
        { "max_link_speed", "16.0 GT/s PCIe\n" },
        { "current_link_width", "16\n" },
        { "max_link_width", "16\n" },
        { "power/control", "on\n" },
        { "power/runtime_status", "active\n" },
        { "power/runtime_enabled", "forbidden\n" },
    };
    char path[256];

    mount_node("");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), SYS_GPU "%s", files[i].name);
        is_str(cat(path), files[i].text, "%s", files[i].name);
    }
    ok(!exists(SYS_GPU "boot_vga"), "an A100 is no console");
    mount_node("gpus: {count: 1, model: RTX-4090}\n");
    is_str(cat(SYS_GPU "boot_vga"), "0\n", "a board with displays could be one");
    is_str(cat(SYS_GPU "class"), "0x030000\n", "and is a VGA controller");
    mount_node("gpus: {count: 1, model: GB200}\n");
    is_str(cat(SYS_GPU "current_link_speed"), "32.0 GT/s PCIe\n", "a slot may be slower");
    is_str(cat(SYS_GPU "max_link_speed"), "64.0 GT/s PCIe\n", "than its device");
}

static void test_resource(void)
{
#define NOTHING "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    static const char none[] = NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING;

    mount_node("");
    is_str(cat(SYS_GPU "resource"),
           "0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n"
           "0x0000200000000000 0x0000200fffffffff 0x000000000014220c\n" NOTHING
           "0x0000208000000000 0x0000208001ffffff 0x000000000014220c\n" NOTHING NOTHING NOTHING
               NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING,
           "regions of an A100");
    contains(cat("sys/devices/pci0000:17/0000:17:00.0/resource"),
             "0x0000000081000000 0x0000000081ffffff 0x0000000000040200\n"
             "0x0000210000000000 0x0000210fffffffff 0x000000000014220c\n",
             "the next one has others");
    mount_node("gpus: {count: 1, model: H100-80GB-HBM3}\n");
    contains(cat(SYS_GPU "resource"),
             "0x0000208002000000 0x0000208002ffffff 0x000000000014220c\n" NOTHING
             "0x0000200000000000 0x0000201fffffffff 0x000000000014220c\n" NOTHING
             "0x0000208000000000 0x0000208001ffffff 0x000000000014220c\n" NOTHING,
             "regions of an H100 are all wide");
    mount_node("gpus: {count: 1, model: RTX-3090}\n");
    contains(cat(SYS_GPU "resource"), "0x0000000000003000 0x000000000000307f 0x0000000000040101\n",
             "a VGA board has ports");
    contains(cat(SYS_GPU "resource"), none, "and no virtual functions");
}

static uint32_t config32(int at)
{
    const unsigned char *b = (const unsigned char *)text_str(&content) + at;

    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t config16(int at)
{
    return config32(at & ~3) >> (at & 2) * 8 & 0xffff;
}

/* Where the capability is in the configuration space that was read last; 0: not in the list. */
static int find_capability(unsigned id)
{
    int at = (int)(config32(0x34) & 0xff);

    for (int i = 0; at && i < 48; i++, at = (int)(config16(at) >> 8))
        if ((config16(at) & 0xff) == id)
            return at;
    return 0;
}

/* The address in BAR `bar` is where line `bar` of `resource` begins. */
static void bar_agrees(const char *model, int bar, uint64_t address)
{
    uint64_t start[PCI_RESOURCES] = { 0 };
    const char *line = cat(SYS_GPU "resource");

    for (int i = 0; line && i < PCI_RESOURCES; i++, line = strchr(line, '\n') + 1)
        start[i] = strtoull(line, NULL, 16);
    is_int((int64_t)address, (int64_t)start[bar], "BAR %d of %s is in resource", bar, model);
}

static void test_config(void)
{
    static const struct {
        const char *model;
        int device, subsystem, power, msi, express, wide, generation;
    } boards[] = {
        { "A100-SXM4-40GB", 0x20b0, 0x134f, 0x60, 0x68, 0x78, 1, 4 },
        { "H100-80GB-HBM3", 0x2330, 0x16c1, 0x40, 0x48, 0x60, 2, 5 },
    };

    for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
        const char *model = boards[i].model;
        uint64_t framebuffer, registers;
        char yaml[128];

        snprintf(yaml, sizeof(yaml), "gpus: {count: 1, model: %s}\n", model);
        mount_node(yaml);
        cat(SYS_GPU "config");
        is_int((int64_t)content.length, 256, "%s has a configuration space", model);
        is_int(config32(0x00), 0x10de | boards[i].device << 16, "with its device");
        is_int(config32(0x04), 0x00100547, "command and status");
        is_int(config32(0x08), 0x030200a1, "class and revision");
        is_int(config32(0x2c), 0x10de | boards[i].subsystem << 16, "subsystem");
        is_int(find_capability(0x01), boards[i].power, "power management");
        is_int(find_capability(0x05), boards[i].msi, "interrupts");
        is_int(find_capability(0x10), boards[i].express, "PCI Express");
        is_int(config32(boards[i].express + 0x0c) & 0x3ff, 16 << 4 | boards[i].generation,
               "what the link could do");
        is_int(config16(boards[i].express + 0x12) & 0x3ff, 16 << 4 | boards[i].generation,
               "and does");
        registers = config32(0x10) & ~0xfu;
        if (config32(0x10) & 4)
            registers |= (uint64_t)config32(0x14) << 32;
        framebuffer = (config32(0x10 + 4 * boards[i].wide) & ~0xfu) |
                      (uint64_t)config32(0x14 + 4 * boards[i].wide) << 32;
        bar_agrees(model, 0, registers);
        bar_agrees(model, boards[i].wide, framebuffer);
    }
}

static void test_link_follows_pstate(void)
{
    mount_node("gpus: {count: 1, model: T4}\n");
    sim_run(sim, 10 * SEC);
    is_int(node_parts(sim, 0, METRIC_PSTATE), 8, "an idle T4 sleeps");
    is_str(cat(SYS_GPU "current_link_speed"), "2.5 GT/s PCIe\n", "and so does its link");
    is_str(cat(SYS_GPU "max_link_speed"), "8.0 GT/s PCIe\n", "that could be faster");
    cat(SYS_GPU "config");
    is_int(config16(0x78 + 0x12) & 0xf, 1, "its registers say so too");
    sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "80", NULL);
    sim_run(sim, SEC);
    is_str(cat(SYS_GPU "current_link_speed"), "8.0 GT/s PCIe\n", "work wakes it");
    cat(SYS_GPU "config");
    is_int(config16(0x78 + 0x12) & 0xf, 3, "in its registers, too");
}

static void test_numa(void)
{
    const char *second = "sys/devices/pci0000:17/0000:17:00.0/local_cpus";

    mount_node("{gpus: {count: 2}, numa: {nodes: 2}}\n");
    is_str(cat(SYS_GPU "numa_node"), "0\n", "the first GPU is near node 0");
    is_str(cat(SYS_GPU "local_cpulist"), "0-19\n", "with half of the processors");
    is_str(cat(SYS_GPU "local_cpus"), "00,000fffff\n", "as a mask");
    is_str(cat("sys/devices/pci0000:17/0000:17:00.0/numa_node"), "1\n", "the second near node 1");
    is_str(cat("sys/devices/pci0000:17/0000:17:00.0/local_cpulist"), "20-39\n", "with the others");
    is_str(cat(second), "ff,fff00000\n", "as a mask");
    host.cpus = 1;
    is_str(cat("sys/devices/pci0000:17/0000:17:00.0/local_cpulist"), "0\n", "one processor");
    is_str(cat(SYS_GPU "local_cpulist"), "\n", "is not on both");
    is_str(cat(second), "1\n", "as a mask");
    host.cpus = 40;
}

static void test_links(void)
{
    static const char device[] = "sys/devices/pci0000:06/0000:06:00.0";

    mount_node("");
    is_str(cat("sys/bus/pci/devices/0000:06:00.0"), "../../../devices/pci0000:06/0000:06:00.0",
           "a device of the bus is a link");
    is_str(follow("sys/bus/pci/devices/0000:06:00.0"), device, "to the device");
    is_str(follow("sys/bus/pci/drivers/nvidia/0000:06:00.0"), device, "as is one of the driver");
    is_str(follow("sys/bus/pci/devices/0000:06:00.0/driver"), "sys/bus/pci/drivers/nvidia",
           "which is the device's");
    is_str(follow(SYS_GPU "driver/module"), "sys/module/nvidia", "and has a module");
    is_str(follow(SYS_GPU "driver/module/version"), "sys/module/nvidia/version", "with a version");
    is_str(follow(SYS_GPU "subsystem/devices/0000:17:00.0/vendor"),
           "sys/devices/pci0000:17/0000:17:00.0/vendor", "its subsystem is the bus");
    is_str(follow("sys/module/nvidia/drivers/pci:nvidia"), "sys/bus/pci/drivers/nvidia",
           "the module has the driver");
    is_str(follow("sys/module/nvidia/holders/nvidia_uvm/refcnt"), "sys/module/nvidia_uvm/refcnt",
           "and is held by others");
    is_str(follow("sys/module/nvidia/holders/nvidia_modeset/holders/nvidia_drm"),
           "sys/module/nvidia_drm", "which may be held again");
}

static void test_modules(void)
{
    mount_node("gpus: {count: 2, persistence_mode: false}\n");
    is_str(cat("sys/module/nvidia/version"), "550.163.01\n", "version");
    is_str(cat("sys/module/nvidia_uvm/version"), "550.163.01\n", "of all modules");
    like(cat("sys/module/nvidia/srcversion"), "^[0-9A-F]{24}\n$", "srcversion");
    is_str(cat("sys/module/nvidia/initstate"), "live\n", "initstate");
    is_str(cat("sys/module/nvidia/taint"), "OE\n", "taint");
    is_str(cat("sys/module/nvidia/coresize"), "9703424\n", "coresize");
    is_str(cat("sys/module/nvidia/refcnt"), "2\n", "refcnt");
    node_workload(sim, "a", "{devices: [0, 1], activity: '50:5:1h'}", NULL);
    sim_run(sim, SEC);
    is_str(cat("sys/module/nvidia/refcnt"), "4\n", "grows with what holds its devices");
    contains(cat("proc/modules"), "nvidia 9703424 4 ", "everywhere");
    is_str(cat("sys/module/nvidia_drm/parameters/modeset"), "N\n", "parameters");
}

/* --- dev ------------------------------------------------------------------------------------- */

static void test_devices(void)
{
    static const struct {
        const char *name;
        int major, minor;
        uint32_t mode;
    } nodes[] = {
        { "dev/nvidia0", MAJOR_NVIDIA, 0, 0660 },
        { "dev/nvidia1", MAJOR_NVIDIA, 0, 0660 }, /* the minor is the plan's */
        { "dev/nvidiactl", 195, 255, 0660 },
        { "dev/nvidia-modeset", 195, 254, 0660 },
        { "dev/nvidia-uvm", 510, 0, 0660 },
        { "dev/nvidia-uvm-tools", 510, 1, 0660 },
        { "dev/nvidia-caps/nvidia-cap1", 235, 1, 0400 },
        { "dev/nvidia-caps/nvidia-cap2", 235, 2, 0444 },
    };
    struct place place;

    mount_node("{gpus: {count: 2}, access: {dev_mode: 0660}}\n");
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        if (!ok(find(nodes[i].name, &place) == 0, "%s", nodes[i].name))
            continue;
        is_int(place.cx.def->arg, (int64_t)nodes[i].major << 20 | nodes[i].minor, "its number");
        is_int(tree_mode(&place), S_IFCHR | nodes[i].mode, "its mode");
    }
    ok(!exists("dev/nvidia2"), "there are as many as GPUs");
    mount_node("gpus: {count: 1, model: T4}\n");
    ok(!exists("dev/nvidia-caps"), "without MIG there are no capabilities");
    ok(exists("dev/nvidiactl"), "but the others");
    mount_node("gpus: [{count: 1, minor: 7}]\n");
    ok(exists("dev/nvidia7") && !exists("dev/nvidia0"), "minors need not begin at 0");
}

/* --- a GPU that is lost ---------------------------------------------------------------------- */

static void test_lost(void)
{
    static const char *const paths[] = {
        "dev/nvidia0",
        "proc/driver/nvidia/gpus/0000:06:00.0",
        "proc/driver/nvidia/gpus/0000:06:00.0/information",
        "sys/bus/pci/devices/0000:06:00.0",
        "sys/bus/pci/drivers/nvidia/0000:06:00.0",
        "sys/devices/pci0000:06",
        "sys/devices/pci0000:06/0000:06:00.0",
        "sys/devices/pci0000:06/0000:06:00.0/vendor",
        "sys/devices/pci0000:06/0000:06:00.0/power",
    };
    size_t n = sizeof(paths) / sizeof(paths[0]);

    mount_node("gpus: {count: 2}\n");
    sim_fault(sim, 0, "fallen_off_bus", NULL);
    for (size_t i = 0; i < n; i++)
        ok(!exists(paths[i]), "%s is gone", paths[i]);
    ok(exists("dev/nvidia1") && exists("sys/bus/pci/devices/0000:17:00.0"), "the other is there");
    contains(cat("k8s/labels"), "nvidia.com/gpu.count=1\n", "the label counts what is there");
    sim_fault(sim, 1, "fallen_off_bus", NULL);
    ok(exists("proc/driver/nvidia/gpus") && exists("sys/bus/pci/devices"), "directories stay");
    contains(cat("k8s/labels"), "nvidia.com/gpu.present=false\nnvidia.com/gpu.count=0\n",
             "nothing is left");
    sim_fault(sim, 0, "recover", NULL);
    for (size_t i = 0; i < n; i++)
        ok(exists(paths[i]), "%s is back", paths[i]);
}

/* --- k8s ------------------------------------------------------------------------------------- */

static void test_labels(void)
{
    mount_node("{driver: {version: 550.163.01, cuda: '12.4'}, gpus: {count: 4, model: L40S}}\n");
    is_str(cat("k8s/labels"),
           "nvidia.com/gpu.present=true\n"
           "nvidia.com/gpu.count=4\n"
           "nvidia.com/gpu.product=NVIDIA-L40S\n"
           "nvidia.com/gpu.memory=46068\n"
           "nvidia.com/gpu.replicas=1\n"
           "nvidia.com/gpu.sharing-strategy=none\n"
           "nvidia.com/gpu.family=ada-lovelace\n"
           "nvidia.com/gpu.compute.major=8\n"
           "nvidia.com/gpu.compute.minor=9\n"
           "nvidia.com/gpu.mode=compute\n"
           "nvidia.com/cuda.driver.major=550\n"
           "nvidia.com/cuda.driver.minor=163\n"
           "nvidia.com/cuda.driver.rev=01\n"
           "nvidia.com/cuda.driver-version.major=550\n"
           "nvidia.com/cuda.driver-version.minor=163\n"
           "nvidia.com/cuda.driver-version.revision=01\n"
           "nvidia.com/cuda.runtime.major=12\n"
           "nvidia.com/cuda.runtime.minor=4\n"
           "nvidia.com/cuda.runtime-version.major=12\n"
           "nvidia.com/cuda.runtime-version.minor=4\n"
           "nvidia.com/cuda.driver-version.full=550.163.01\n"
           "nvidia.com/cuda.runtime-version.full=12.4\n"
           "nvidia.com/mig.strategy=none\n"
           "nvidia.com/mig.capable=false\n"
           "nvidia.com/mps.capable=false\n"
           "nvidia.com/vgpu.present=false\n",
           "labels");
    mount_node("{driver: {version: '550.54'}, mig_strategy: mixed, gpus: [{model: A100-SXM4-40GB},"
               " {model: RTX-4090}]}\n");
    contains(cat("k8s/labels"), "nvidia.com/cuda.driver.rev=\n", "a version without a revision");
    contains(cat("k8s/labels"), "nvidia.com/mig.strategy=mixed\nnvidia.com/mig.capable=true\n",
             "MIG");
    contains(cat("k8s/labels"), "nvidia.com/gpu.mode=unknown\n", "boards of two kinds");
}

static void test_mig_labels(void)
{
    static const char cut_up[] = "nvidia.com/gpu.count=3\n"
                                 "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-2g.10gb\n"
                                 "nvidia.com/gpu.memory=9856\n"
                                 "nvidia.com/gpu.replicas=1\n"
                                 "nvidia.com/gpu.sharing-strategy=none\n"
                                 "nvidia.com/gpu.multiprocessors=28\n"
                                 "nvidia.com/gpu.slices.gi=2\n"
                                 "nvidia.com/gpu.slices.ci=2\n"
                                 "nvidia.com/gpu.engines.copy=2\n"
                                 "nvidia.com/gpu.engines.decoder=1\n";
    static const char invalid[] = "nvidia.com/gpu.count=0\n"
                                  "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-INVALID\n"
                                  "nvidia.com/gpu.memory=0\n"
                                  "nvidia.com/gpu.replicas=0\n"
                                  "nvidia.com/gpu.sharing-strategy=\n";

    mount_node("{mig_strategy: single, gpus: {count: 2, mig_mode: true}}\n");
    contains(cat("k8s/labels"), invalid, "single: no MIG device is not what it asks for");
    sim_mig(sim, 0, "create 2g.10gb", NULL);
    contains(cat("k8s/labels"), invalid, "nor is a GPU without one");
    sim_mig(sim, 1, "create 2g.10gb", NULL);
    sim_mig(sim, 1, "create 2g.10gb", NULL);
    contains(cat("k8s/labels"), cut_up, "MIG devices are the node's GPUs");
    sim_mig(sim, 1, "create 1g.5gb", NULL);
    contains(cat("k8s/labels"), invalid, "but not when there are two kinds");

    mount_node("{mig_strategy: mixed, gpus: {count: 2, mig_mode: true}}\n");
    contains(cat("k8s/labels"), "nvidia.com/gpu.replicas=0\n", "mixed: GPUs that are cut up");
    sim_mig(sim, 0, "create 1g.5gb+me", NULL);
    sim_mig(sim, 1, "create-gi 3g.20gb", NULL);
    sim_mig(sim, 1, "create-ci 1 1", NULL);
    sim_mig(sim, 1, "create-ci 1 1", NULL);
    contains(cat("k8s/labels"), "nvidia.com/mig-1g.5gb.me.count=1\n", "each kind by its name");
    contains(cat("k8s/labels"),
             "nvidia.com/mig-1c.3g.20gb.count=2\n"
             "nvidia.com/mig-1c.3g.20gb.product=NVIDIA-A100-SXM4-40GB-MIG-1c.3g.20gb\n",
             "with its count");
    contains(cat("k8s/labels"),
             "nvidia.com/mig-1c.3g.20gb.multiprocessors=14\n"
             "nvidia.com/mig-1c.3g.20gb.slices.gi=3\n"
             "nvidia.com/mig-1c.3g.20gb.slices.ci=1\n",
             "and what one has");
}

static void test_topology(void)
{
    static const char one[] = "GPU-11111111-11c1-52b8-0517-92f30e7fac88";

    mount_node("node: node-a\nmig_strategy: single\n"
               "gpus: [{uuid: " UUID ", memory: 30GiB, model: A100-SXM4-40GB},"
               " {uuid: GPU-11111111-11c1-52b8-0517-92f30e7fac88, memory: 30GiB}]\n"
               "workloads:\n"
               "  - {name: a, devices: [0], activity: {utilization: 80}, memory: 5000MiB,\n"
               "     namespace: team-a, pod: 'true', container: main}\n");
    sim_run(sim, 5 * SEC);
    is_str(cat("k8s/topology.yaml"),
           "mig-strategy: single\n"
           "nodes:\n"
           "  node-a:\n"
           "    gpu-memory: 30720\n"
           "    gpu-product: NVIDIA-A100-SXM4-40GB\n"
           "    gpus:\n"
           "      - id: " UUID "\n"
           "        metrics:\n"
           "          metadata:\n"
           "            namespace: team-a\n"
           "            pod: \"true\"\n"
           "            container: main\n"
           "          utilization: 80\n"
           "          fb-used: 5000\n"
           "      - id: GPU-11111111-11c1-52b8-0517-92f30e7fac88\n"
           "        metrics:\n"
           "          utilization: 0\n"
           "          fb-used: 0\n",
           "the node and who uses it");
    sim_fault(sim, 1, "fallen_off_bus", NULL);
    contains(cat("k8s/topology.yaml"), "88\n        # has fallen off the bus\n", "a lost GPU");
    {
        char *yaml = strdup(text_str(&content));

        mount_node(yaml);
        free(yaml);
    }
    is_str(sim_world(sim)->node_plan.name, "node-a", "read back it is the same node");
    is_int(sim_world(sim)->node_plan.mig_strategy, MIG_STRATEGY_SINGLE, "with its strategy");
    is_int(sim_find_gpu(sim, UUID), 0, "the same first GPU");
    is_int(sim_find_gpu(sim, one), 1, "and second");
    is_int(world_gpu_plans(sim_world(sim))[0].memory_bytes, 30 * GIB, "with as much memory");
    sim_run(sim, SEC);
    is_int(node_parts(sim, 0, METRIC_UTILIZATION_GPU), 80000, "as busy as it was");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 5000 * MIB, "and as full");
    contains(cat("k8s/topology.yaml"), "            pod: \"true\"\n", "by the same pod");
    mount_node("gpus: []\n");
    {
        char *yaml = strdup(cat("k8s/topology.yaml"));

        mount_node(yaml);
        free(yaml);
    }
    is_int(sim_world(sim)->used[SECTION_GPUS], 0, "a node without GPUs as well");
}

/* --- every row ------------------------------------------------------------------------------- */

static const struct node_def *const tables[] = { dev_nodes, proc_nodes, sys_nodes, k8s_nodes };
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* Walks everything and notes which rows were met. */
struct walk {
    bool met[TABLES][256];
    int broken; /* rows that do not render as they should */
    char where[512];
};

/* The mark of a row, or NULL for a row of another area. */
static bool *mark_of(struct walk *walk, const struct node_def *def)
{
    for (int t = 0; t < TABLES; t++)
        for (int row = 0; tables[t][row].path; row++)
            if (&tables[t][row] == def)
                return &walk->met[t][row];
    return NULL;
}

static bool renders(const struct place *place, const char *path)
{
    const struct node_def *def = place->cx.def;

    if (def->flags & NODE_DEVICE)
        return true;
    if (render(place) < 0 || content.failed || !content.length)
        return false;
    if (def->flags & NODE_BINARY)
        return (int64_t)content.length == def->arg;
    if (S_ISLNK(def->mode))
        return follow(path) != NULL;
    return content.data[content.length - 1] == '\n';
}

static int walk_into(void *into, const char *name, const struct place *place)
{
    struct tree_view view = view_now();
    struct walk *walk = into;
    size_t before = strlen(walk->where);
    bool *met = mark_of(walk, place->cx.def);

    snprintf(walk->where + before, sizeof(walk->where) - before, "%s%s", before ? "/" : "", name);
    if (place->directory)
        tree_list(&view, place, walk_into, walk);
    if (met)
        *met = true;
    if (met && !renders(place, walk->where)) {
        diag("%s is broken", walk->where);
        walk->broken++;
    }
    walk->where[before] = '\0';
    return 0;
}

/* Rows of MIG instances are there only with one. */
static void make_instance(const struct gpu_model *model)
{
    char text[32];

    if (!model->mig.count)
        return;
    snprintf(text, sizeof(text), "create %s", model->mig.items[0].name);
    sim_set_mig_mode(sim, 2, true, NULL);
    sim_mig(sim, 2, text, NULL);
}

static void test_every_row(void)
{
    static struct walk walk;
    struct model_set set;
    struct place root;
    struct why why = { 0 };
    int missed = 0;

    if (model_set_load(&set, NULL, &why) < 0)
        bail("%s", why_text(&why));
    for (int i = 0; i < set.count; i++) {
        struct tree_view view;
        char yaml[128];

        snprintf(yaml, sizeof(yaml), "gpus: {count: 3, model: %s}\n", set.models[i].name);
        mount_node(yaml);
        make_instance(&set.models[i]);
        sim_run(sim, 2 * SEC);
        view = view_now();
        tree_resolve(&view, TREE_ROOT, &root);
        walk.broken = 0;
        tree_list(&view, &root, walk_into, &walk);
        is_int(walk.broken, 0, "every file of %s has content, and every link an end",
               set.models[i].name);
    }
    for (int t = 0; t < TABLES; t++)
        for (int row = 0; tables[t][row].path; row++)
            if (!walk.met[t][row]) {
                diag("%s was not met", tables[t][row].path);
                missed++;
            }
    is_int(missed, 0, "every row was met");
    model_set_release(&set);
}

/* --- many GPUs ------------------------------------------------------------------------------- */

/* So many GPUs and workloads were looked at on the way to a path, which must be there. */
static int64_t looks_for(const char *path)
{
    looked = 0;
    return exists(path) ? (int64_t)looked : -1;
}

static void test_many(void)
{
    static const char *const paths[] = {
        "gpus/1000/metrics/power_usage_mw",
        "dev/nvidia1000",
        "gpus/by-node/rack-125/0",
        "sys/devices/pci%r/%b/vendor",
        "proc/driver/nvidia/gpus/%b/information",
        "gpus/by-bus-id/%b",
        "gpus/by-uuid/%u",
        "workloads/w500/state",
    };
    struct tree_view view;
    struct place place;
    char path[256], name[32];
    int64_t looks;

    mount_node("gpus: {count: 8, node: 'rack-[0-127]'}\n");
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        node_workload(sim, name, "{activity: 0}", NULL);
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct gpu_plan *p = &world_gpu_plans(sim_world(sim))[1000];
        struct text whole = TEXT_INIT;

        for (const char *at = paths[i]; *at; at++)
            if (*at != '%')
                text_addn(&whole, at, 1);
            else if (*++at == 'u')
                text_add(&whole, p->uuid);
            else
                text_addf(&whole, *at == 'r' ? "%04x:%02x" : "%04x:%02x:%02x.%x", p->domain, p->bus,
                          p->device, p->function);
        snprintf(path, sizeof(path), "%s", text_str(&whole));
        text_release(&whole);
        looks = looks_for(path);
        ok(looks > 0 && looks <= 8, "%s among 1,024 GPUs: %d looks", paths[i], (int)looks);
    }
    looked = 0;
    is_int(find("sys/devices", &place), 0, "sys/devices");
    view = view_now();
    tree_links(&view, &place);
    ok(looked > 1024 && looked <= 8 * 1024, "its directories are counted with %d looks",
       (int)looked);
}

int main(void)
{
    struct why why = { 0 };

    tree = tree_new(&why);
    if (!tree)
        bail("%s", why_text(&why));
    test_version();
    test_information();
    test_params();
    test_power();
    test_capabilities();
    test_kernel_lists();
    test_device();
    test_resource();
    test_config();
    test_link_follows_pstate();
    test_numa();
    test_links();
    test_modules();
    test_devices();
    test_lost();
    test_labels();
    test_mig_labels();
    test_topology();
    test_every_row();
    test_many();
    sim_free(sim);
    tree_free(tree);
    text_release(&content);
    return tap_done();
}
