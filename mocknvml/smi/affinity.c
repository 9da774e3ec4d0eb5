/*
 * Affinity: the single answers of `topo`: what is near to what, and how. See topology.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/topology.h"

enum { GPUS_MAX = 1024 };

/* The indices of GPUs: "0, 1". */
static void print_indices(const nvmlDevice_t *devices, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        unsigned int index = 0;

        ASK(DeviceGetIndex, devices[i], &index);
        printf("%s%u", i ? ", " : "", index);
    }
    putchar('\n');
}

static int refused(const char *what, nvmlReturn_t result)
{
    printf("Failed to %s: %s\n", what, api_error(result));
    return exit_status(result);
}

int near_processor(const char *processor)
{
    nvmlDevice_t devices[GPUS_MAX];
    unsigned int count = GPUS_MAX;
    nvmlReturn_t result;
    long number;

    if (!arguments_number(processor, 0, 65535, &number))
        return complain("topo: '%s' is not the number of a processor.", processor);
    result = ASK(SystemGetTopologyGpuSet, (unsigned int)number, &count, devices);
    if (result != NVML_SUCCESS)
        return refused("find the GPUs of a processor", result);
    printf("The GPUs that have an affinity with CPU %ld are:\n", number);
    print_indices(devices, count);
    return 0;
}

int nearest_gpus(const struct gpus *gpus, const char *number)
{
    nvmlDevice_t devices[GPUS_MAX];
    unsigned int count = GPUS_MAX;
    nvmlReturn_t result;
    long path;

    if (!arguments_number(number, 0, PATH_COUNT - 1, &path))
        return complain("topo: '%s' is not a path: it should be 0 to %d. Please run 'nvidia-smi "
                        "topo -h' for help.",
                        number, PATH_COUNT - 1);
    if (gpus->count != 1)
        return complain("topo: -n takes one GPU, which -i names.");
    result = ASK(DeviceGetTopologyNearestGpus, gpus->items[0].device, paths[path].level, &count,
                 devices);
    if (result != NVML_SUCCESS)
        return refused("find the nearest GPUs", result);
    printf("Device %u is connected by way of %s to device(s):\n", gpus->items[0].index,
           paths[path].words);
    print_indices(devices, count);
    return 0;
}

int path_of_two(const struct gpus *gpus)
{
    const struct path *path;

    if (gpus->count != 2)
        return complain("topo: -p takes two GPUs, which -i names.");
    path = path_between(&gpus->items[0], &gpus->items[1]);
    if (!path)
        return refused("find the path", NVML_ERROR_NOT_SUPPORTED);
    printf("Device %u is connected to device %u by way of %s.\n", gpus->items[0].index,
           gpus->items[1].index, path->words);
    return 0;
}

int closest_nodes(const struct gpus *gpus, bool of_processor, bool of_memory, bool own)
{
    for (unsigned int i = 0; i < gpus->count; i++) {
        char nodes[256];
        unsigned int node = 0;

        affinity(&gpus->items[i], true, nodes, sizeof(nodes));
        if (of_processor)
            printf("NUMA IDs of closest CPU: %s\n", nodes);
        if (of_memory)
            printf("NUMA IDs of closest memory: %s\n", nodes);
        if (!own)
            continue;
        if (ASK(DeviceGetNumaNodeId, gpus->items[i].device, &node) == NVML_SUCCESS)
            printf("GPU NUMA ID: %u\n", node);
        else
            puts("GPU NUMA ID: N/A");
    }
    return 0;
}
