/*
 * Links: `nvlink`: each NVLink of a GPU, how fast it is, what it can do, what went wrong on it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

/* A numbered field of a link; its scope is the link. */
static nvmlReturn_t link_field(struct gpu *gpu, unsigned int number, unsigned int link,
                               unsigned long long *value)
{
    nvmlFieldValue_t field = { .fieldId = number, .scopeId = link };
    nvmlReturn_t result = ASK(DeviceGetFieldValues, gpu->device, 1, &field);

    *value = field.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? field.value.uiVal
                                                             : field.value.ullVal;
    return result == NVML_SUCCESS ? (nvmlReturn_t)field.nvmlReturn : result;
}

enum { FIELD_LINK_SPEED = 164, FIELD_LINK_VERSION = 166, FIELD_SPEED_COMMON = 90 };

/* --- one link ----------------------------------------------------------------------------------- */

/* Links before the fourth generation, which the library counts as 6, are told in whole GB/s. */
static void show_status(struct gpu *gpu, unsigned int link, bool active)
{
    unsigned long long mbps = 0, version = 0;
    nvmlReturn_t result;

    if (!active) {
        printf("\t Link %u: <inactive>\n", link);
        return;
    }
    result = link_field(gpu, FIELD_LINK_SPEED, link, &mbps);
    if (result != NVML_SUCCESS)
        result = link_field(gpu, FIELD_SPEED_COMMON, 0, &mbps);
    link_field(gpu, FIELD_LINK_VERSION, link, &version);
    if (result != NVML_SUCCESS)
        printf("\t Link %u: %s\n", link, api_error(result));
    else if (version < 6)
        printf("\t Link %u: %llu GB/s\n", link, mbps / 1000);
    else
        printf("\t Link %u: %llu.%03llu GB/s\n", link, mbps / 1000, mbps % 1000);
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
    else if (link_field(gpu, FIELD_REMOTE_LINK, link, &remote) == NVML_SUCCESS)
        printf("\t Link %u: Remote Device %s: Link %llu\n", link, pci.busId, remote);
    else
        printf("\t Link %u: Remote Device %s\n", link, pci.busId);
}

static void show_throughput(struct gpu *gpu, unsigned int link, bool active)
{
    enum { FIELD_DATA_TX = 138, FIELD_DATA_RX = 139 };
    static const struct {
        unsigned int field;
        const char *words;
    } rows[] = { { FIELD_DATA_TX, "Data Tx" }, { FIELD_DATA_RX, "Data Rx" } };

    (void)active;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned long long kib = 0;

        if (link_field(gpu, rows[i].field, link, &kib) == NVML_SUCCESS)
            printf("\t Link %u: %s: %llu KiB\n", link, rows[i].words, kib);
        else
            printf("\t Link %u: %s: N/A\n", link, rows[i].words);
    }
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

static void show_gpu(struct gpu *gpu, long only, link_shower *show)
{
    char name[TEXT_BYTES] = "", uuid[TEXT_BYTES] = "";

    get_text(gpu, TEXT_OF(DeviceGetName), name);
    get_text(gpu, TEXT_OF(DeviceGetUUID), uuid);
    printf("GPU %u: %s (UUID: %s)\n", gpu->index, name, uuid);
    if (gpu_is_mig(gpu)) {
        puts("Nvlink queries are not supported for Devices in MIG mode");
        return;
    }
    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        nvmlEnableState_t active = NVML_FEATURE_DISABLED;

        if ((only < 0 || only == (long)link) &&
            ASK(DeviceGetNvLinkState, gpu->device, link, &active) == NVML_SUCCESS)
            show(gpu, link, active);
    }
}

int links(int argc, char **argv)
{
    const char *ids = NULL, *link = NULL, *throughput = NULL;
    bool flags[5] = { false };
    const struct argument arguments[] = {
        { "-s", "--status", &flags[0], NULL, "How fast each link is." },
        { "-c", "--capabilities", &flags[1], NULL, "What each link can do." },
        { "-e", "--errorcounters", &flags[2], NULL, "How many errors there were on each link." },
        { "-R", "--remotelinkinfo", &flags[3], NULL, "What each link leads to." },
        { "-re", "--reseterrorcounters", &flags[4], NULL, "Count errors from 0 again." },
        { "-gt", "--getthroughput", NULL, &throughput, "d: how much went over each link." },
        { "-i", "--id", NULL, &ids, "Indices, UUIDs or bus ids, separated by commas." },
        { "-l", "--link", NULL, &link, "Only this link." },
        { 0 },
    };
    static link_shower *const showers[] = { show_status, show_capabilities, show_errors,
                                            show_remote, reset_errors };
    int status = arguments_parse(arguments, "nvlink", argc, argv);
    link_shower *show = throughput ? show_throughput : NULL;
    struct gpus gpus = { 0 };
    long only = -1;

    if (status != 0)
        return status < 0 ? 0 : status;
    for (size_t i = 0; i < sizeof(showers) / sizeof(showers[0]); i++)
        if (flags[i])
            show = showers[i];
    if (!show || (throughput && strcmp(throughput, "d")))
        return complain(
            "nvlink takes one of -s, -c, -e, -R, -re and -gt d. Please run 'nvidia-smi nvlink -h' "
            "for help.");
    if (link && !arguments_number(link, 0, NVML_NVLINK_MAX_LINKS - 1, &only))
        return complain("nvlink: '%s' is not a link: it should be 0 to %d.", link,
                        NVML_NVLINK_MAX_LINKS - 1);
    status = library_start();
    if (status == 0)
        status = gpus_open(&gpus, ids);
    api_hold();
    for (unsigned int i = 0; status == 0 && i < gpus.count; i++)
        show_gpu(&gpus.items[i], only, show);
    api_release();
    gpus_close(&gpus);
    return status;
}
