/*
 * Topology: what the matrices of `topo` and its single answers both say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_TOPOLOGY_H
#define SMI_TOPOLOGY_H

#include "mocknvml/smi/smi.h"

/* How one GPU reaches another over PCIe: the number that -n takes is its place in the list. */
struct path {
    nvmlGpuTopologyLevel_t level;
    const char *cell;  /* in a matrix */
    const char *words; /* in a sentence */
};

enum { PATH_COUNT = 6 };

extern const struct path paths[PATH_COUNT];

/* NULL when the library does not say. */
const struct path *path_between(struct gpu *one, struct gpu *other);

/* The nearest processors, or memory nodes, as "0-3,8"; "N/A". */
void affinity(struct gpu *gpu, bool of_memory, char *text, size_t size);

/* -c: the GPUs near a processor. -n: those that a GPU reaches in that way. -p: how two of them reach each other. */
int near_processor(const char *processor);
int nearest_gpus(const struct gpus *gpus, const char *number);
int path_of_two(const struct gpus *gpus);

/* -C, -M, -gnid: NUMA nodes of each GPU. */
int closest_nodes(const struct gpus *gpus, bool of_processor, bool of_memory, bool own);

#endif
