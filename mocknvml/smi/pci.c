/*
 * Pci: `pci`: what was counted on the PCIe link of a GPU, as the library's numbered fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

struct counter {
    unsigned int field;
    const char *name;
};

static const struct counter traffic[] = { { 197, "TX_BYTES" }, { 198, "RX_BYTES" } };

static const struct counter errors[] = {
    { 94, "REPLAY_COUNTER" },
    { 95, "REPLAY_ROLLOVER_COUNTER" },
    { 169, "L0_TO_RECOVERY_COUNTER" },
    { 173, "CORRECTABLE_ERRORS" },
    { 174, "NAKS_RECEIVED" },
    { 175, "RECEIVER_ERROR" },
    { 176, "BAD_TLP" },
    { 177, "NAKS_SENT" },
    { 178, "BAD_DLLP" },
    { 179, "NON_FATAL_ERROR" },
    { 180, "FATAL_ERROR" },
    { 181, "UNSUPPORTED_REQ" },
    { 182, "LCRC_ERROR" },
    { 183, "LANE_ERROR" },
};

static void show(struct gpu *gpu, const struct counter *counters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned long long number = 0;

        printf("    %s:%*s", counters[i].name, 28 - (int)strlen(counters[i].name), "");
        if (gpu_scoped_field(gpu, counters[i].field, 0, &number) == NVML_SUCCESS)
            printf("%llu\n", number);
        else
            puts("N/A");
    }
}

int pci(int argc, char **argv)
{
    bool with_traffic = false, with_errors = false;
    const char *ids = NULL;
    const struct argument arguments[] = {
        { "-gErrCnt", "--getErrorCounters", &with_errors, NULL, "What went wrong." },
        { "-gCnt", "--getCounters", &with_traffic, NULL, "What went over it." },
        { "-i", "--id", NULL, &ids, "Indices, UUIDs or bus ids, separated by commas." },
        { 0 },
    };
    int status = arguments_parse(arguments, "pci", argc, argv);
    struct gpus gpus = { 0 };

    if (status != 0)
        return status < 0 ? 0 : status;
    status = gpus_start(&gpus, ids);
    api_hold();
    for (unsigned int i = 0; i < gpus.count; i++) {
        gpu_title(&gpus.items[i]);
        if (with_traffic)
            show(&gpus.items[i], traffic, sizeof(traffic) / sizeof(traffic[0]));
        if (with_errors)
            show(&gpus.items[i], errors, sizeof(errors) / sizeof(errors[0]));
    }
    api_release();
    gpus_close(&gpus);
    return status;
}
