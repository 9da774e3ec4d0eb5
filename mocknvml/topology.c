/*
 * Topology: which GPUs reach each other how, which processors are near, and the fabric that they are part of.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mocknvml/nvlink.h"

/* --- who reaches whom ------------------------------------------------------------------------ */

/* Whether a link that is up leads from one GPU to the other, or links of both to switches. */
static bool are_linked(nvmlDevice_t one, nvmlDevice_t other)
{
    struct nvlink near[NVML_NVLINK_MAX_LINKS], far[NVML_NVLINK_MAX_LINKS];
    unsigned int count, far_count;

    if (nvlink_read_all(one, near, &count) != NVML_SUCCESS ||
        nvlink_read_all(other, far, &far_count) != NVML_SUCCESS)
        return false;
    for (unsigned int l = 0; l < count; l++) {
        if (!near[l].up)
            continue;
        if (!strcmp(near[l].peer, "gpu") && near[l].peer_number == atomic_load(&other->index))
            return true;
        if (!strcmp(near[l].peer, "switch") && l < far_count && far[l].up)
            return true;
    }
    return false;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t what, nvmlGpuP2PStatus_t *status)
{
    nvmlReturn_t result = answer_check(status);

    if (result == NVML_SUCCESS)
        result = device_check(one);
    if (result == NVML_SUCCESS)
        result = device_check(other);
    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)what >= NVML_P2P_CAPS_INDEX_UNKNOWN || one == other)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* Without a link, GPUs copy over PCIe, but neither speak NVLink nor change each other's memory atomically. */
    *status = are_linked(one, other) ? NVML_P2P_STATUS_OK
              : what == NVML_P2P_CAPS_INDEX_NVLINK || what == NVML_P2P_CAPS_INDEX_ATOMICS
                  ? NVML_P2P_STATUS_NOT_SUPPORTED
                  : NVML_P2P_STATUS_OK;
    return NVML_SUCCESS;
}

/* Each GPU has a PCI root of its own: they meet in the processor of their NUMA node, or between nodes. */
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t *level)
{
    int64_t here, there;
    nvmlReturn_t result = answer_check(level);

    if (result == NVML_SUCCESS)
        result = device_fact(one, "numa_node", &here);
    if (result == NVML_SUCCESS)
        result = device_fact(other, "numa_node", &there);
    if (result != NVML_SUCCESS)
        return result;
    *level = one == other    ? NVML_TOPOLOGY_INTERNAL
             : here == there ? NVML_TOPOLOGY_NODE
                             : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *devices)
{
    unsigned int all;
    nvmlReturn_t result = answer_check(count);
    struct list list = { devices, sizeof(*devices), count ? *count : 0, 0 };

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result == NVML_SUCCESS)
        result = library_count(&all);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned int i = 0; i < all; i++) {
        nvmlGpuTopologyLevel_t found;
        nvmlDevice_t other;

        if (library_device(i, &other) == NVML_SUCCESS && other != device &&
            nvmlDeviceGetTopologyCommonAncestor(device, other, &found) == NVML_SUCCESS &&
            found == level)
            list_add(&list, &other);
    }
    *count = list.used;
    return NVML_SUCCESS;
}

/* --- affinity -------------------------------------------------------------------------------- */

/* The file with `name` in the GPU's directory of sysfs. */
static nvmlReturn_t sysfs_text(nvmlDevice_t device, const char *name, char *buf, size_t size)
{
    unsigned int domain, bus, slot, function;
    char id[32], path[128];
    nvmlReturn_t result = device_identity(device, IDENTITY_BUS_ID, id, sizeof(id));

    if (result != NVML_SUCCESS)
        return result;
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
        return NVML_ERROR_UNKNOWN;
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%04x:%02x:%02x.%x/%s", domain, bus, slot,
             function, name);
    return root_text(path, buf, size);
}

/* Calls with each number of "0-3,8". */
static void each_number(const char *list, void (*call)(void *argument, unsigned int number),
                        void *argument)
{
    while (*list) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;

        if (end == list)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; first <= last && first < 65536; first++)
            call(argument, (unsigned int)first);
        list = *end == ',' ? end + 1 : end;
    }
}

struct bit_set {
    unsigned long *words;
    unsigned int count;
};

static void set_bit(void *argument, unsigned int number)
{
    struct bit_set *set = argument;
    unsigned int bits = 8 * sizeof(unsigned long);

    if (number / bits < set->count)
        set->words[number / bits] |= 1ul << number % bits;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set)
{
    struct bit_set bits = { set, size };
    char text[4096];
    nvmlReturn_t result = answer_check(set);

    if (result == NVML_SUCCESS)
        result = sysfs_text(device, "local_cpulist", text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (!size)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, size * sizeof(*set));
    each_number(text, set_bit, &bits);
    return NVML_SUCCESS;
}

/* A socket is a NUMA node here. */
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size,
                                                 unsigned long *set, unsigned int scope)
{
    if (scope > NVML_AFFINITY_SCOPE_SOCKET)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return nvmlDeviceGetCpuAffinity(device, size, set);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set,
                                         unsigned int scope)
{
    struct bit_set bits = { set, size };
    int64_t node;
    nvmlReturn_t result = answer_check(set);

    if (result == NVML_SUCCESS)
        result = device_fact(device, "numa_node", &node);
    if (result != NVML_SUCCESS)
        return result;
    if (!size || scope > NVML_AFFINITY_SCOPE_SOCKET)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, size * sizeof(*set));
    set_bit(&bits, node < 0 ? 0 : (unsigned int)node);
    return NVML_SUCCESS;
}

/* Only memory that the system can use itself has a node, which none of the simulated boards offers. */
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    return node ? device_unsupported(device) : library_refuse(NVML_ERROR_INVALID_ARGUMENT);
}

/* --- binding the caller to processors -------------------------------------------------------- */

static void add_cpu(void *argument, unsigned int number)
{
    if (number < CPU_SETSIZE)
        CPU_SET(number, (cpu_set_t *)argument);
}

/* The calling thread runs on the processors near the GPU, as far as this machine has them. */
nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device)
{
    cpu_set_t cpus;
    char text[4096];
    nvmlReturn_t result = sysfs_text(device, "local_cpulist", text, sizeof(text));

    if (result != NVML_SUCCESS)
        return result;
    CPU_ZERO(&cpus);
    each_number(text, add_cpu, &cpus);
    return sched_setaffinity(0, sizeof(cpus), &cpus) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device)
{
    cpu_set_t cpus;
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    memset(&cpus, 0xff, sizeof(cpus));
    return sched_setaffinity(0, sizeof(cpus), &cpus) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* --- processors to GPUs ---------------------------------------------------------------------- */

struct gpu_search {
    struct list list;
    unsigned int cpu;
    nvmlDevice_t device;
};

static void add_if_near(void *argument, unsigned int cpu)
{
    struct gpu_search *search = argument;

    if (cpu == search->cpu)
        list_add(&search->list, &search->device);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
                                         nvmlDevice_t *devices)
{
    struct gpu_search search = { { devices, sizeof(*devices), count ? *count : 0, 0 }, cpu, NULL };
    unsigned int all;
    nvmlReturn_t result = answer_check(count);
    char text[4096];

    if (result == NVML_SUCCESS)
        result = library_count(&all);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned int i = 0; i < all; i++)
        if (library_device(i, &search.device) == NVML_SUCCESS &&
            sysfs_text(search.device, "local_cpulist", text, sizeof(text)) == NVML_SUCCESS)
            each_number(text, add_if_near, &search);
    *count = search.list.used;
    return NVML_SUCCESS;
}

/* --- fabric ---------------------------------------------------------------------------------- */

/*
 * Since NVLink 4 a GPU on switches registers with the fabric, and is done with that here; before there is none. The
 * domain does not reach beyond this machine, so it has no name.
 */
static nvmlReturn_t fabric_state(nvmlDevice_t device, unsigned int *state)
{
    nvmlIntNvLinkDeviceType_t type;
    int64_t version;
    nvmlReturn_t result = device_fact(device, "nvlink_version", &version);

    if (result != NVML_SUCCESS)
        return result;
    *state = version >= 4 &&
                     nvmlDeviceGetNvLinkRemoteDeviceType(device, 0, &type) == NVML_SUCCESS &&
                     type == NVML_NVLINK_DEVICE_TYPE_SWITCH
                 ? NVML_GPU_FABRIC_STATE_COMPLETED
                 : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    unsigned int state;
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = fabric_state(device, &state);
    if (result == NVML_SUCCESS)
        *info = (nvmlGpuFabricInfo_t){ .state = state };
    return result;
}

/* The second structure is the beginning of the third. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    nvmlGpuFabricInfo_v3_t now = { 0 };
    nvmlReturn_t result = STRUCT_CHECK(info, 3);
    size_t size = sizeof(now);

    if (result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
        size = sizeof(nvmlGpuFabricInfo_v2_t);
        result = struct_check(info, NVML_STRUCT_VERSION(size, 2));
    }
    if (result == NVML_SUCCESS)
        result = fabric_state(device, &now.state);
    if (result != NVML_SUCCESS)
        return result;
    now.version = info->version;
    memcpy(info, &now, size);
    return NVML_SUCCESS;
}
