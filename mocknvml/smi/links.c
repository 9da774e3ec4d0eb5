/*
 * Links: `nvlink`: each NVLink of a GPU, how fast it is, what it can do, what went wrong on it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

enum { FIELD_LINK_SPEED = 164, FIELD_SPEED_COMMON = 90 };

/* --- one link ----------------------------------------------------------------------------------- */

/* Links before the fourth generation, which the library counts as 6, are told in whole GB/s. */
static void show_status(struct gpu *gpu, unsigned int link, bool active)
{
    unsigned long long mbps = 0;
    nvmlReturn_t result;

    if (!active) {
        printf("\t Link %u: <inactive>\n", link);
        return;
    }
    result = gpu_scoped_field(gpu, FIELD_LINK_SPEED, link, &mbps);
    if (result != NVML_SUCCESS)
        result = gpu_scoped_field(gpu, FIELD_SPEED_COMMON, 0, &mbps);
    if (result != NVML_SUCCESS)
        printf("\t Link %u: %s\n", link, api_error(result));
    else
        printf("\t Link %u: %g GB/s\n", link, (double)mbps / 1000);
}

static void show_capabilities(struct gpu *gpu, unsigned int link, bool active)
{
    static const struct {
        nvmlNvLinkCapability_t capability;
        const char *words;
    } rows[] = {
        { NVML_NVLINK_CAP_P2P_SUPPORTED, "P2P is supported" },
        { NVML_NVLINK_CAP_SYSMEM_ACCESS, "Access to system memory supported" },
        { NVML_NVLINK_CAP_P2P_ATOMICS, "P2P atomics supported" },
        { NVML_NVLINK_CAP_SYSMEM_ATOMICS, "System memory atomics supported" },
        { NVML_NVLINK_CAP_SLI_BRIDGE, "SLI is supported" },
        { NVML_NVLINK_CAP_VALID, "Link is supported" },
    };

    (void)active;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned int has = 0;

        if (ASK(DeviceGetNvLinkCapability, gpu->device, link, rows[i].capability, &has) ==
            NVML_SUCCESS)
            printf("\t Link %u, %s: %s\n", link, rows[i].words, has ? "true" : "false");
    }
}

static void show_errors(struct gpu *gpu, unsigned int link, bool active)
{
    static const struct {
        nvmlNvLinkErrorCounter_t counter;
        const char *words;
    } rows[] = {
        { NVML_NVLINK_ERROR_DL_REPLAY, "Replay Errors" },
        { NVML_NVLINK_ERROR_DL_RECOVERY, "Recovery Errors" },
        { NVML_NVLINK_ERROR_DL_CRC_FLIT, "CRC Errors" },
    };

    (void)active;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned long long count = 0;

        if (ASK(DeviceGetNvLinkErrorCounter, gpu->device, link, rows[i].counter, &count) ==
            NVML_SUCCESS)
            printf("\t Link %u: %s: %llu\n", link, rows[i].words, count);
        else
            printf("\t Link %u: %s: N/A\n", link, rows[i].words);
    }
    printf("\n");
}

static void show_remote(struct gpu *gpu, unsigned int link, bool active)
{
    enum { FIELD_REMOTE_LINK = 146 };
    unsigned long long remote = 0;
    nvmlPciInfo_t pci;

    if (!active || ASK(DeviceGetNvLinkRemotePciInfo_v2, gpu->device, link, &pci) != NVML_SUCCESS)
        printf("\t Link %u: <inactive>\n", link);
    else if (gpu_scoped_field(gpu, FIELD_REMOTE_LINK, link, &remote) == NVML_SUCCESS)
        printf("\t Link %u: Remote Device %s: Link %llu\n", link, pci.busId, remote);
    else
        printf("\t Link %u: Remote Device %s\n", link, pci.busId);
}

static void show_address(struct gpu *gpu, unsigned int link, bool active)
{
    nvmlPciInfo_t pci;

    if (!active || ASK(DeviceGetNvLinkRemotePciInfo_v2, gpu->device, link, &pci) != NVML_SUCCESS)
        printf("\t Link %u: <inactive>\n", link);
    else
        printf("\t Link %u: %s\n", link, pci.busId);
}

struct counter {
    unsigned int field;
    const char *words;
};

static void show_counters(struct gpu *gpu, unsigned int link, const struct counter *counters,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned long long kib = 0;

        if (gpu_scoped_field(gpu, counters[i].field, link, &kib) == NVML_SUCCESS)
            printf("\t Link %u: %s: %llu KiB\n", link, counters[i].words, kib);
        else
            printf("\t Link %u: %s: N/A\n", link, counters[i].words);
    }
}

/* What programs sent and got, and the same with what the links themselves add. */
static void show_data(struct gpu *gpu, unsigned int link, bool active)
{
    static const struct counter counters[] = { { 138, "Data Tx" }, { 139, "Data Rx" } };

    (void)active;
    show_counters(gpu, link, counters, sizeof(counters) / sizeof(counters[0]));
}

static void show_raw(struct gpu *gpu, unsigned int link, bool active)
{
    static const struct counter counters[] = { { 140, "Raw Tx" }, { 141, "Raw Rx" } };

    (void)active;
    show_counters(gpu, link, counters, sizeof(counters) / sizeof(counters[0]));
}

static void reset_errors(struct gpu *gpu, unsigned int link, bool active)
{
    nvmlReturn_t result = ASK(DeviceResetNvLinkErrorCounters, gpu->device, link);

    (void)active;
    if (result == NVML_SUCCESS)
        printf("\t Link %u: Reset NvLink error counters\n", link);
    else
        printf("\t Link %u: %s\n", link, api_error(result));
}

/* --- all of them -------------------------------------------------------------------------------- */

typedef void link_shower(struct gpu *gpu, unsigned int link, bool active);

/* Whether one of its links is up; says so when none is, or when there is none. */
static bool has_links(struct gpu *gpu)
{
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    bool any = false;

    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS && !active; link++)
        any |= ASK(DeviceGetNvLinkState, gpu->device, link, &active) == NVML_SUCCESS;
    if (!any)
        puts("Device does not have or support Nvlink");
    else if (!active)
        puts("NVML: Unable to retrieve Nvlink information as all links are inActive");
    return active;
}

static void show_gpu(struct gpu *gpu, long only, link_shower *show)
{
    gpu_title(gpu);
    if (gpu_is_mig(gpu)) {
        puts("Nvlink queries are not supported for Devices in MIG mode");
        return;
    }
    if (!has_links(gpu))
        return;
    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        nvmlEnableState_t active = NVML_FEATURE_DISABLED;

        if ((only < 0 || only == (long)link) &&
            ASK(DeviceGetNvLinkState, gpu->device, link, &active) == NVML_SUCCESS)
            show(gpu, link, active);
    }
}

static link_shower *throughput_shower(const char *kind)
{
    return !strcmp(kind, "d") ? show_data : !strcmp(kind, "r") ? show_raw : NULL;
}

int links(int argc, char **argv)
{
    static link_shower *const showers[] = { show_status,  show_capabilities, show_errors,
                                            show_address, show_remote,       reset_errors };
    enum { SHOWERS = sizeof(showers) / sizeof(showers[0]) };
    const char *ids = NULL, *link = NULL, *throughput = NULL;
    bool flags[SHOWERS] = { false };
    const struct argument arguments[] = {
        { "-s", "--status", &flags[0], NULL, "How fast each link is." },
        { "-c", "--capabilities", &flags[1], NULL, "What each link can do." },
        { "-e", "--errorcounters", &flags[2], NULL, "How many errors there were on each link." },
        { "-p", "--pcibusid", &flags[3], NULL, "The address that each link leads to." },
        { "-R", "--remotelinkinfo", &flags[4], NULL, "The same with the link at that end." },
        { "-re", "--reseterrorcounters", &flags[5], NULL, "Count errors from 0 again." },
        { "-gt", "--getthroughput", NULL, &throughput,
          "How much went over each link: d data, r data with what the links add." },
        { "-i", "--id", NULL, &ids, "Indices, UUIDs or bus ids, separated by commas." },
        { "-l", "--link", NULL, &link, "Only this link." },
        { 0 },
    };
    int status = arguments_parse(arguments, "nvlink", argc, argv);
    link_shower *show = throughput ? throughput_shower(throughput) : NULL;
    struct gpus gpus = { 0 };
    long only = -1;

    if (status != 0)
        return status < 0 ? 0 : status;
    for (size_t i = 0; i < SHOWERS; i++)
        if (flags[i])
            show = showers[i];
    if (!show)
        return complain("nvlink takes one of -s, -c, -e, -p, -R, -re, -gt d and -gt r. Please run "
                        "'nvidia-smi nvlink -h' for help.");
    if (link && !arguments_number(link, 0, NVML_NVLINK_MAX_LINKS - 1, &only))
        return complain("nvlink: '%s' is not a link: it should be 0 to %d.", link,
                        NVML_NVLINK_MAX_LINKS - 1);
    status = gpus_start(&gpus, ids);
    api_hold();
    for (unsigned int i = 0; status == 0 && i < gpus.count; i++)
        show_gpu(&gpus.items[i], only, show);
    api_release();
    gpus_close(&gpus);
    return status;
}
