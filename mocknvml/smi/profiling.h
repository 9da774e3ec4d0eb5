/*
 * Profiling: columns of `dmon` from the library's performance monitoring: how busy parts of a GPU were between two
 * lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_PROFILING_H
#define SMI_PROFILING_H

#include "mocknvml/smi/gpu.h"

enum { PROFILING_MAX = 64 };

/* The metrics of --gpm-metrics, by the library's numbers. */
struct profiling {
    unsigned int ids[PROFILING_MAX];
    unsigned int count;
};

/* The sample of the line before; all zeros at first. */
struct profiling_state {
    nvmlGpmSample_t samples[2];
    bool is_taken; /* samples[0] */
};

/* Reads "2,3,5"; false when it is none. */
bool profiling_parse(const char *list, struct profiling *profiling);

/* What stands above a column. */
const char *profiling_name(unsigned int id);
const char *profiling_unit(unsigned int id);

/* The values since the line before, one per metric; false where there is none, as on the first line. */
void profiling_read(const struct profiling *profiling, struct gpu *gpu,
                    struct profiling_state *state, double *values, bool *has);

void profiling_release(struct profiling_state *state);

#endif
