/*
 * Config: the machine around the GPUs: its driver, PCI and NUMA, NVLink, and who may do what.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_HOST_H
#define SIM_CONFIG_HOST_H

#include "sim/bind.h"

enum dev_mode { DEV_AUTO, DEV_CHAR, DEV_FILE, DEV_NULL };
enum nvlink_topology {
    NVLINK_AUTO,
    NVLINK_NONE,
    NVLINK_SWITCH,
    NVLINK_MESH,
    NVLINK_RING,
    NVLINK_PAIRS
};
enum kernel_module { MODULE_OPEN, MODULE_PROPRIETARY };

extern const char *const dev_mode_names[], *const nvlink_topology_names[],
                                               *const kernel_module_names[];

struct driver_spec {
    struct bind_head head;
    char version[32], cuda[16], nvml[32];
    int64_t kernel_module;
};

struct pci_spec {
    struct bind_head head;
    int64_t domain, first_bus, bus_step;
};

struct numa_spec {
    struct bind_head head;
    int64_t nodes;
    struct bind_list cpus; /* of struct cpu_list, one per node */
};

struct cpu_list {
    char text[128];
};

struct nvlink_pair {
    struct bind_head head;
    int64_t from, to, count;
};

struct nvlink_spec {
    struct bind_head head;
    int64_t topology;
    struct bind_list links; /* of struct nvlink_pair */
};

struct access_spec {
    struct bind_head head;
    int64_t dev;
    int64_t dev_mode, control_mode, workloads_mode; /* permission bits */
    int64_t uid, gid;
};

extern const struct bind_table driver_spec_table, pci_spec_table, numa_spec_table,
    nvlink_spec_table, access_spec_table;

#endif
