/*
 * NVLink: the links of a GPU, their counters, and who is at their other end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/nvlink.h"

#include <stdarg.h>
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

nvmlReturn_t nvlink_read_all(nvmlDevice_t device, struct nvlink *links, unsigned int *count)
{
    struct table t;
    nvmlReturn_t result = device_text(device, "nvlinks", t.text, sizeof(t.text));
    char *line;

    *count = 0;
    if (result != NVML_SUCCESS)
        return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_NOT_SUPPORTED : result;
    t.rest = t.text;
    while (*count < NVML_NVLINK_MAX_LINKS && (line = reader_line(&t.rest)))
        *count += parse_link(line, &links[*count]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvlink_read(nvmlDevice_t device, unsigned int number, struct nvlink *link)
{
    struct nvlink links[NVML_NVLINK_MAX_LINKS];
    unsigned int count;
    nvmlReturn_t result = nvlink_read_all(device, links, &count);

    if (number >= NVML_NVLINK_MAX_LINKS)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    if (result != NVML_SUCCESS)
        return result;
    if (number >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *link = links[number];
    return NVML_SUCCESS;
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
    nvmlReturn_t result = answer_check(answer);

    return result == NVML_SUCCESS ? nvlink_read(device, number, link) : result;
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
    const unsigned int values[NVML_NVLINK_ERROR_COUNT] = {
        [NVML_NVLINK_ERROR_DL_REPLAY] = link.replay,
        [NVML_NVLINK_ERROR_DL_RECOVERY] = link.recovery,
        [NVML_NVLINK_ERROR_DL_CRC_FLIT] = link.crc_flit,
        [NVML_NVLINK_ERROR_DL_CRC_DATA] = link.crc_data,
    };

    if ((unsigned int)counter >= NVML_NVLINK_ERROR_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = values[counter];
    return NVML_SUCCESS;
}

/* --- counters that can be cleared and frozen -------------------------------------------------- */

static const char counters_file[] = "control/nvlink_counters";

/* One line of gpus/<i>/control/nvlink_counters. */
struct counter {
    unsigned int link, set;
    unsigned long long tx_bytes, rx_bytes;
    unsigned int frozen, unit, filter;
};

static nvmlReturn_t read_counter(nvmlDevice_t device, unsigned int link, unsigned int set,
                                 struct counter *c)
{
    struct table t;
    nvmlReturn_t result = device_text(device, counters_file, t.text, sizeof(t.text));
    char *line;

    if (result != NVML_SUCCESS)
        return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_NOT_SUPPORTED : result;
    t.rest = t.text;
    while ((line = reader_line(&t.rest)))
        if (sscanf(line, "%u %u %llu %llu %u %u %u", &c->link, &c->set, &c->tx_bytes, &c->rx_bytes,
                   &c->frozen, &c->unit, &c->filter) == 7 &&
            c->link == link && c->set == set)
            return NVML_SUCCESS;
    return NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t write_counters(nvmlDevice_t device, const char *format, ...)
{
    char command[64];
    nvmlReturn_t result;
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    result = device_write(device, counters_file, command);
    return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* They count bytes, whatever they were asked to count. */
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int number,
                                                   unsigned int counter, unsigned long long *rx,
                                                   unsigned long long *tx)
{
    struct counter c;
    nvmlReturn_t result = arguments_check(rx && tx);

    if (result == NVML_SUCCESS)
        result = read_counter(device, number, counter, &c);
    if (result != NVML_SUCCESS)
        return result;
    *rx = c.rx_bytes;
    *tx = c.tx_bytes;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkUtilizationControl(nvmlDevice_t device, unsigned int number,
                                                   unsigned int counter,
                                                   nvmlNvLinkUtilizationControl_t *control)
{
    struct counter c;
    nvmlReturn_t result = answer_check(control);

    if (result == NVML_SUCCESS)
        result = read_counter(device, number, counter, &c);
    if (result == NVML_SUCCESS)
        *control = (nvmlNvLinkUtilizationControl_t){ c.unit, c.filter };
    return result;
}

nvmlReturn_t nvmlDeviceResetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int number,
                                                     unsigned int counter)
{
    return write_counters(device, "clear traffic %u %u", number, counter);
}

nvmlReturn_t nvmlDeviceSetNvLinkUtilizationControl(nvmlDevice_t device, unsigned int number,
                                                   unsigned int counter,
                                                   nvmlNvLinkUtilizationControl_t *control,
                                                   unsigned int reset)
{
    nvmlReturn_t result = answer_check(control);

    if (result == NVML_SUCCESS)
        result = write_counters(device, "control %u %u %u %u", number, counter, control->units,
                                control->pktfilter);
    return result == NVML_SUCCESS && reset
               ? nvmlDeviceResetNvLinkUtilizationCounter(device, number, counter)
               : result;
}

nvmlReturn_t nvmlDeviceFreezeNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int number,
                                                      unsigned int counter,
                                                      nvmlEnableState_t freeze)
{
    return write_counters(device, "%s %u %u",
                          freeze == NVML_FEATURE_ENABLED ? "freeze" : "unfreeze", number, counter);
}

nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int number)
{
    return write_counters(device, "clear errors %u", number);
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
    nvmlReturn_t result = answer_check(pci);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, number, &info);
    if (result != NVML_SUCCESS)
        return result;
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
    nvmlReturn_t result = STRUCT_CHECK(info, 1);

    if (result == NVML_SUCCESS)
        result = nvlink_read(device, 0, &link);
    if (result == NVML_SUCCESS)
        info->isNvleEnabled = 0;
    return result;
}
