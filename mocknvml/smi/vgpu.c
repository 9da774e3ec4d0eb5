/*
 * Vgpu: `vgpu`: virtual GPUs of this machine, for machines that have none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

int vgpu(int argc, char **argv)
{
    const char *ids = NULL;
    bool query = false;
    const struct argument arguments[] = {
        { "-q", "--query", &query, NULL, "Everything about them." },
        { "-i", "--id", NULL, &ids, "Indices, UUIDs or bus ids of GPUs, separated by commas." },
        { 0 },
    };
    int status = arguments_parse(arguments, "vgpu", argc, argv);
    struct gpus gpus = { 0 };

    if (status != 0)
        return status < 0 ? 0 : status;
    status = gpus_start(&gpus, ids);
    gpus_close(&gpus);
    if (status != 0)
        return status;
    puts("No supported devices in vGPU mode");
    return exit_status(NVML_ERROR_NOT_FOUND);
}
