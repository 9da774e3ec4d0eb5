/*
 * NVLink: the links of a GPU, who is at their other end, and which GPUs reach each other how.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/nvlink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- links ----------------------------------------------------------------------------------- */

static bool parse_link(const char *line, struct nvlink *l)
{
    return sscanf(line, "%u %u %llu %7s %d %u %31s %llu %llu %u %u %u %u", &l->number, &l->up,
                  &l->bytes_per_second, l->peer, &l->peer_number, &l->peer_link, l->peer_bus_id,
                  &l->tx_bytes, &l->rx_bytes, &l->crc_flit, &l->crc_data, &l->replay,
                  &l->recovery) == 13;
}

nvmlReturn_t nvlink_read(nvmlDevice_t device, unsigned int number, struct nvlink *link)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "nvlinks", text, sizeof(text));

    if (result == NVML_ERROR_NOT_FOUND)
        return number < NVML_NVLINK_MAX_LINKS ? NVML_ERROR_NOT_SUPPORTED
                                              : NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return result;
    while ((line = table_line(&rest)))
        if (parse_link(line, link) && link->number == number)
            return NVML_SUCCESS;
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* Models speak of NVLink 3; NVML counts the versions 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0. */
nvmlReturn_t nvlink_version(nvmlDevice_t device, unsigned int *version)
{
    static const unsigned int numbers[] = { 0, 1, 2, 4, 6, 7, 8 };
    int64_t generation;
    nvmlReturn_t result = device_fact(device, "nvlink_version", &generation);

    if (result != NVML_SUCCESS)
        return result;
    if (generation <= 0 || generation >= (int64_t)(sizeof(numbers) / sizeof(numbers[0])))
        return NVML_ERROR_NOT_SUPPORTED;
    *version = numbers[generation];
    return NVML_SUCCESS;
}

/* Reads the link and checks the pointer that the answer goes to. */
static nvmlReturn_t read_for(nvmlDevice_t device, unsigned int number, const void *answer,
                             struct nvlink *link)
{
    nvmlReturn_t result = nvlink_read(device, number, link);

    return result == NVML_SUCCESS && !answer ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int number,
                                      nvmlEnableState_t *active)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, active, &link);

    if (result == NVML_SUCCESS)
        *active = link.up ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int number,
                                        unsigned int *version)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, version, &link);

    return result == NVML_SUCCESS ? nvlink_version(device, version) : result;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int number,
                                           nvmlNvLinkCapability_t capability, unsigned int *has)
{
    static const unsigned int answers[] = {
        [NVML_NVLINK_CAP_P2P_SUPPORTED] = 1, [NVML_NVLINK_CAP_SYSMEM_ACCESS] = 1,
        [NVML_NVLINK_CAP_P2P_ATOMICS] = 1,   [NVML_NVLINK_CAP_SYSMEM_ATOMICS] = 1,
        [NVML_NVLINK_CAP_SLI_BRIDGE] = 0,    [NVML_NVLINK_CAP_VALID] = 1,
    };
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, has, &link);

    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)capability >= NVML_NVLINK_CAP_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *has = answers[capability];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int number,
                                             nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long *value)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, value, &link);

    if (result != NVML_SUCCESS)
        return result;
    switch (counter) {
    case NVML_NVLINK_ERROR_DL_REPLAY:
        *value = link.replay;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_RECOVERY:
        *value = link.recovery;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_CRC_FLIT:
        *value = link.crc_flit;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_CRC_DATA:
        *value = link.crc_data;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_ECC_DATA:
        *value = 0;
        return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_COUNT:
        break;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* The old counters: bytes, whatever the control says; a real driver has given them up since Ampere. */
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int number,
                                                   unsigned int counter, unsigned long long *rx,
                                                   unsigned long long *tx)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, rx, &link);

    if (result != NVML_SUCCESS)
        return result;
    if (!tx || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *rx = link.rx_bytes;
    *tx = link.tx_bytes;
    return NVML_SUCCESS;
}

/* --- the other end --------------------------------------------------------------------------- */

/* A switch sits on its own bus; the mount has none, so its number makes the address. */
static void switch_address(const struct nvlink *link, char *bus_id, size_t size)
{
    snprintf(bus_id, size, "00000000:%02X:00.0", 0xC0 + (unsigned int)link->peer_number % 16);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int number,
                                                 nvmlPciInfo_t *pci)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, pci, &link);
    unsigned int function;

    if (result != NVML_SUCCESS)
        return result;
    if (!strcmp(link.peer, "-"))
        return NVML_ERROR_NOT_SUPPORTED;
    if (!strcmp(link.peer, "switch"))
        switch_address(&link, link.peer_bus_id, sizeof(link.peer_bus_id));
    memset(pci, 0, sizeof(*pci));
    sscanf(link.peer_bus_id, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
    memcpy(pci->busId, link.peer_bus_id, sizeof(link.peer_bus_id));
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0x1f);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int number,
                                              nvmlPciInfo_v2_t *pci)
{
    nvmlPciInfo_t info;
    nvmlReturn_t result = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, number, &info);

    if (result != NVML_SUCCESS)
        return result;
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(pci, 0, sizeof(*pci));
    memcpy(pci->busId, info.busIdLegacy, sizeof(pci->busId));
    pci->domain = info.domain;
    pci->bus = info.bus;
    pci->device = info.device;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int number,
                                                 nvmlIntNvLinkDeviceType_t *type)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, number, type, &link);

    if (result == NVML_SUCCESS)
        *type = !strcmp(link.peer, "gpu")      ? NVML_NVLINK_DEVICE_TYPE_GPU
                : !strcmp(link.peer, "switch") ? NVML_NVLINK_DEVICE_TYPE_SWITCH
                                               : NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    return result;
}

nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t device, nvmlNvLinkInfo_v1_t *info)
{
    struct nvlink link;
    nvmlReturn_t result = read_for(device, 0, info, &link);

    if (result != NVML_SUCCESS)
        return result;
    if (info->version != NVML_STRUCT_VERSION(sizeof(*info), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    info->isNvleEnabled = 0;
    return NVML_SUCCESS;
}

/* --- who reaches whom ------------------------------------------------------------------------ */

/* Whether a link that is up leads from one GPU to the other, or both to switches. */
static bool are_linked(nvmlDevice_t one, nvmlDevice_t other)
{
    char text[TABLE_BYTES], *rest = text, *line;
    struct nvlink link, far;

    if (device_text(one, "nvlinks", text, sizeof(text)) != NVML_SUCCESS)
        return false;
    while ((line = table_line(&rest))) {
        if (!parse_link(line, &link) || !link.up)
            continue;
        if (!strcmp(link.peer, "gpu") && link.peer_number == other->index)
            return true;
        if (!strcmp(link.peer, "switch") && nvlink_read(other, link.number, &far) == NVML_SUCCESS &&
            far.up)
            return true;
    }
    return false;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t what, nvmlGpuP2PStatus_t *status)
{
    nvmlReturn_t result = device_check(one);

    if (result == NVML_SUCCESS)
        result = device_check(other);
    if (result != NVML_SUCCESS)
        return result;
    if (!status || (unsigned int)what >= NVML_P2P_CAPS_INDEX_UNKNOWN || one == other)
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
    nvmlReturn_t result = device_fact(one, "numa_node", &here);

    if (result == NVML_SUCCESS)
        result = device_fact(other, "numa_node", &there);
    if (result != NVML_SUCCESS)
        return result;
    if (!level)
        return NVML_ERROR_INVALID_ARGUMENT;
    *level = one == other    ? NVML_TOPOLOGY_INTERNAL
             : here == there ? NVML_TOPOLOGY_NODE
                             : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *devices)
{
    unsigned int all;
    nvmlReturn_t result = device_check(device);
    struct list list = { devices, sizeof(*devices), count ? *count : 0, 0 };

    if (result == NVML_SUCCESS)
        result = library_count(&all);
    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
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
    nvmlReturn_t result = sysfs_text(device, "local_cpulist", text, sizeof(text));

    if (result != NVML_SUCCESS)
        return result;
    if (!set || !size)
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
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    return nvmlDeviceGetCpuAffinity(device, size, set);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set,
                                         unsigned int scope)
{
    struct bit_set bits = { set, size };
    int64_t node;
    nvmlReturn_t result = device_fact(device, "numa_node", &node);

    if (result != NVML_SUCCESS)
        return result;
    if (!set || !size || scope > NVML_AFFINITY_SCOPE_SOCKET)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, size * sizeof(*set));
    set_bit(&bits, node < 0 ? 0 : (unsigned int)node);
    return NVML_SUCCESS;
}

/* Only memory that the system can use itself has a node, which none of the simulated boards offers. */
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    nvmlReturn_t result = device_check(device);

    (void)node;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

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
    nvmlReturn_t result = library_count(&all);
    char text[4096];

    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < all; i++)
        if (library_device(i, &search.device) == NVML_SUCCESS &&
            sysfs_text(search.device, "local_cpulist", text, sizeof(text)) == NVML_SUCCESS)
            each_number(text, add_if_near, &search);
    *count = search.list.used;
    return NVML_SUCCESS;
}

/* --- fabric: no NVLink domain across machines ------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(info, 0, sizeof(*info));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    nvmlReturn_t result = device_check(device);
    unsigned int version;

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    version = info->version;
    if (version != NVML_STRUCT_VERSION(sizeof(nvmlGpuFabricInfo_v2_t), 2) &&
        version != NVML_STRUCT_VERSION(sizeof(nvmlGpuFabricInfo_v3_t), 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memset(info, 0, version & 0xffffff);
    info->version = version;
    return NVML_SUCCESS;
}
