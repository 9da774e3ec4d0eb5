/*
 * Profiling: columns of `dmon` from the library's performance monitoring. See profiling.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/profiling.h"

#include <stdlib.h>

enum { LAST_ID = 999 };

/* Those that the library's documentation numbers; what is not here is shown by its number. */
static const struct {
    unsigned int id;
    const char *name, *unit;
} metrics[] = {
    { 1, "gract", "GPM:%" },   { 2, "smutil", "GPM:%" },  { 3, "smocc", "GPM:%" },
    { 4, "intact", "GPM:%" },  { 5, "mmaact", "GPM:%" },  { 6, "dfma", "GPM:%" },
    { 7, "hmma", "GPM:%" },    { 9, "imma", "GPM:%" },    { 10, "dram", "GPM:%" },
    { 11, "fp64", "GPM:%" },   { 12, "fp32", "GPM:%" },   { 13, "fp16", "GPM:%" },
    { 20, "pcitx", "GPM:MB" }, { 21, "pcirx", "GPM:MB" }, { 30, "nvdec0", "GPM:%" },
    { 40, "nvjpg0", "GPM:%" }, { 50, "nvofa0", "GPM:%" }, { 60, "nvlrx", "GPM:MB" },
    { 61, "nvltx", "GPM:MB" },
};

bool profiling_parse(const char *list, struct profiling *profiling)
{
    for (;;) {
        char *end;
        unsigned long id = strtoul(list, &end, 10);

        if (*list < '0' || *list > '9' || id < 1 || id > LAST_ID ||
            profiling->count == PROFILING_MAX || (*end && *end != ','))
            return false;
        profiling->ids[profiling->count++] = (unsigned int)id;
        if (!*end)
            return true;
        list = end + 1;
    }
}

const char *profiling_name(unsigned int id)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
        if (metrics[i].id == id)
            return metrics[i].name;
    return "gpm";
}

const char *profiling_unit(unsigned int id)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
        if (metrics[i].id == id)
            return metrics[i].unit;
    return "GPM";
}

/* Takes a sample behind the one of the line before; false when the GPU has none to give. */
static bool take_sample(struct gpu *gpu, struct profiling_state *state)
{
    for (int i = 0; i < 2; i++)
        if (!state->samples[i] && ASK(GpmSampleAlloc, &state->samples[i]) != NVML_SUCCESS)
            return false;
    return ASK(GpmSampleGet, gpu->device, state->samples[1]) == NVML_SUCCESS;
}

static void compare(const struct profiling *profiling, const struct profiling_state *state,
                    double *values, bool *has)
{
    nvmlGpmMetricsGet_t *get = calloc(1, sizeof(*get) + profiling->count * sizeof(get->metrics[0]));
    nvmlReturn_t result = NVML_ERROR_MEMORY;

    if (!get)
        return;
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->numMetrics = profiling->count;
    get->sample1 = state->samples[0];
    get->sample2 = state->samples[1];
    for (unsigned int i = 0; i < profiling->count; i++)
        get->metrics[i].metricId = profiling->ids[i];
    result = ASK(GpmMetricsGet, get);
    for (unsigned int i = 0; i < profiling->count; i++) {
        has[i] = result == NVML_SUCCESS && get->metrics[i].nvmlReturn == NVML_SUCCESS;
        values[i] = get->metrics[i].value;
    }
    free(get);
}

void profiling_read(const struct profiling *profiling, struct gpu *gpu,
                    struct profiling_state *state, double *values, bool *has)
{
    nvmlGpmSample_t newer;
    bool taken = profiling->count && take_sample(gpu, state);

    for (unsigned int i = 0; i < profiling->count; i++)
        has[i] = false;
    if (!taken)
        return;
    if (state->is_taken)
        compare(profiling, state, values, has);
    newer = state->samples[1];
    state->samples[1] = state->samples[0];
    state->samples[0] = newer;
    state->is_taken = true;
}

void profiling_release(struct profiling_state *state)
{
    for (int i = 0; i < 2; i++)
        if (state->samples[i])
            ASK(GpmSampleFree, state->samples[i]);
}
