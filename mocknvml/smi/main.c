/*
 * nvidia-smi: shows GPUs and changes their settings, through the management library alone.
 *
 *     nvidia-smi                                                 a table of all GPUs
 *     nvidia-smi --query-gpu=index,utilization.gpu --format=csv  some values of each
 *     nvidia-smi -i 0 -pl 250                                    a power limit
 *
 * It knows nothing about where the library gets its answers from: on a machine with a real driver it shows
 * real GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "mocknvml/smi/options.h"

/* --- running ------------------------------------------------------------------------------------ */

static int show(FILE *file, struct gpus *gpus, const struct options *o, bool first)
{
    switch (o->mode) {
    case MODE_LIST:
        return list_print(file, gpus);
    case MODE_EXCLUDED:
        return excluded_print(file);
    case MODE_QUERY:
        return query_print(file, gpus, o);
    case MODE_CSV:
        return csv_print(file, gpus, o, first);
    case MODE_VERSION:
        return version_print(file);
    case MODE_DTD:
        return dtd_print(file, o->units);
    default:
        return summary_print(file, gpus);
    }
}

static int one_pass(FILE *file, struct gpus *gpus, const struct options *o, bool first)
{
    int status;

    if (o->mode == MODE_CHANGE)
        return changes_apply(file, gpus, o);
    for (unsigned int i = 0; i < gpus->count && !first; i++)
        gpu_fresh(&gpus->items[i]);
    api_hold();
    status = show(file, gpus, o, first);
    api_release();
    return status;
}

static int run(const struct options *o)
{
    FILE *file = o->file ? fopen(o->file, "w") : stdout;
    bool needs_gpus = o->mode != MODE_VERSION && o->mode != MODE_EXCLUDED && o->mode != MODE_DTD;
    struct gpus gpus = { 0 };
    int status = 0;

    if (!file)
        return complain("Cannot write to '%s': %s.", o->file, strerror(errno));
    status = o->mode == MODE_DTD ? 0 : library_start();
    if (status == 0 && needs_gpus)
        status = gpus_open(&gpus, o->ids);
    for (bool first = true; status == 0; first = false) {
        status = one_pass(file, &gpus, o, first);
        if (!o->loop_ms || !wait_period(file, o->loop_ms))
            break;
    }
    gpus_close(&gpus);
    return output_close(file, status);
}

const struct command smi_commands[] = {
    { "dmon", monitor_devices, "A line per GPU and second." },
    { "pmon", monitor_processes, "A line per process and second." },
    { "topo", topology, "How GPUs reach each other and the processors." },
    { "nvlink", links, "The NVLinks of GPUs." },
    { "drain", drain, "GPUs that are to get no more work, or to leave the bus." },
    { "c2c", chip_links, "The links between GPUs and the processors on their modules." },
    { "pci", pci, "What was counted on the PCIe links of GPUs." },
    { "conf-compute", conf_compute, "Whether confidential computing is on." },
    { "vgpu", vgpu, "Virtual GPUs; there are none." },
    { "mig", mig, "GPU instances and compute instances of GPUs in MIG mode." },
    { 0 },
};

int main(int argc, char **argv)
{
    struct options options = { .mode = MODE_SUMMARY };
    int status;

    for (const struct command *c = smi_commands; argc > 1 && c->name; c++)
        if (!strcmp(argv[1], c->name)) {
            status = c->run(argc - 2, argv + 2);
            return output_close(stdout, status);
        }
    status = options_parse(&options, argc, argv);
    return status ? status : run(&options);
}
