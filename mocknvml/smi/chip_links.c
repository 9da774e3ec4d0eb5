/*
 * Chip links: `c2c`: the links between a GPU and the processor on its module.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

enum { FIELD_COUNT_OF_LINKS = 170, FIELD_STATUS = 171, FIELD_BANDWIDTH_MBPS = 172 };

static unsigned int link_count(struct gpu *gpu)
{
    unsigned long long count = 0;

    return gpu_scoped_field(gpu, FIELD_COUNT_OF_LINKS, 0, &count) == NVML_SUCCESS
               ? (unsigned int)count
               : 0;
}

static void show_status(struct gpu *gpu, unsigned int link)
{
    unsigned long long active = 0, mbps = 0;
    nvmlReturn_t result = gpu_scoped_field(gpu, FIELD_STATUS, link, &active);

    if (result == NVML_SUCCESS && !active) {
        printf("\t C2C Link %u: <inactive>\n", link);
        return;
    }
    if (result == NVML_SUCCESS)
        result = gpu_scoped_field(gpu, FIELD_BANDWIDTH_MBPS, link, &mbps);
    if (result == NVML_SUCCESS)
        printf("\t C2C Link %u: %llu.%03llu GB/s\n", link, mbps / 1000, mbps % 1000);
    else
        printf("\t C2C Link %u: %s\n", link, api_error(result));
}

static void show_errors(struct gpu *gpu, unsigned int link)
{
    static const struct {
        unsigned int field;
        const char *words;
    } rows[] = {
        { 231, "Error Interrupt Count" },
        { 232, "Error Replay Count" },
        { 233, "Error Back-to-Back Replay Count" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned long long count = 0;

        if (gpu_scoped_field(gpu, rows[i].field, link, &count) == NVML_SUCCESS)
            printf("\t C2C Link %u: %s: %llu\n", link, rows[i].words, count);
        else
            printf("\t C2C Link %u: %s: N/A\n", link, rows[i].words);
    }
}

typedef void link_shower(struct gpu *gpu, unsigned int link);

/* How many GPUs have such links. */
static unsigned int show_all(struct gpus *gpus, link_shower *show)
{
    unsigned int shown = 0;

    for (unsigned int i = 0; i < gpus->count; i++) {
        unsigned int count = link_count(&gpus->items[i]);

        if (count == 0)
            continue;
        gpu_title(&gpus->items[i]);
        for (unsigned int link = 0; link < count; link++)
            show(&gpus->items[i], link);
        shown++;
    }
    return shown;
}

int chip_links(int argc, char **argv)
{
    bool with_status = false, with_errors = false;
    const char *ids = NULL;
    const struct argument arguments[] = {
        { "-s", "--status", &with_status, NULL, "How fast each link is." },
        { "-e", "--errorcounters", &with_errors, NULL, "How many errors there were on each link." },
        { "-i", "--id", NULL, &ids, "Indices, UUIDs or bus ids, separated by commas." },
        { 0 },
    };
    int status = arguments_parse(arguments, "c2c", argc, argv);
    struct gpus gpus = { 0 };

    if (status != 0)
        return status < 0 ? 0 : status;
    if (with_status == with_errors)
        return complain("c2c takes one of -s and -e. Please run 'nvidia-smi c2c -h' for help.");
    status = gpus_start(&gpus, ids);
    api_hold();
    if (status == 0 && !show_all(&gpus, with_status ? show_status : show_errors)) {
        puts("No Devices support C2C.");
        status = exit_status(NVML_ERROR_NOT_SUPPORTED);
    }
    api_release();
    gpus_close(&gpus);
    return status;
}
