/*
 * Nodes of proc/: what the driver, its GPUs and its capabilities say of themselves, byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/tree.h"

#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

#define UUID "GPU-edfee158-11c1-52b8-0517-92f30e7fac88"
#define PROC_GPU "proc/driver/nvidia/gpus/0000:06:00.0/"

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

int main(void)
{
    tree_up();
    test_version();
    test_information();
    test_params();
    test_power();
    test_capabilities();
    test_kernel_lists();
    tree_down();
    return tap_done();
}
