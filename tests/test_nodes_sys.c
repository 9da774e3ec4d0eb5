/*
 * Nodes of sys/: PCI devices, where their links lead, and kernel modules, byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/pci.h"
#include "tests/tree.h"

#define SYS_GPU "sys/devices/pci0000:06/0000:06:00.0/"

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

int main(void)
{
    tree_up();
    test_device();
    test_resource();
    test_config();
    test_link_follows_pstate();
    test_numa();
    test_links();
    test_modules();
    tree_down();
    return tap_done();
}
