/*
 * Snapshot: the binary pages that the mock NVML and the exporter read.
 *
 * Page 0 is the node, page 1 + i is GPU i. A page is
 *
 *     [ generation | slot 0 | slot 1 | generation ]
 *
 * and slot (generation & 1) is the current one. The daemon pushes pages into the kernel's page cache in
 * two steps: first the other slot, then, when all of it is there, both generations. A push is not atomic
 * to a pread: a reader that sees two different generations tries again, and otherwise has a whole slot.
 *
 * The file `history` has one struct snapshot_history for each GPU, one behind the other. It is rendered at
 * each read: a GPU's history that is read with one pread is of one generation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_SNAPSHOT_H
#define FUSEFS_SNAPSHOT_H

#include <stdint.h>

#include "sim/metric.h"

enum { SNAPSHOT_PAGE = 4096, SNAPSHOT_SLOT = (SNAPSHOT_PAGE - 16) / 2 };

#define SNAPSHOT_MAGIC UINT64_C(0x746f687370616e73)

struct snapshot_node {
    uint64_t magic;
    uint64_t registry; /* snapshot_registry() of the daemon: the meaning of metric numbers */
    uint64_t generation, plan_version;
    int64_t now_ns;
    int64_t gpu_count;
};

enum snapshot_flags { SNAPSHOT_LOST = 1 };

struct snapshot_gpu {
    uint64_t generation, plan_version;
    uint64_t id;
    uint32_t flags;
    char uuid[48];
    struct metric_sample sample;
};

union snapshot_slot {
    struct snapshot_node node;
    struct snapshot_gpu gpu;
    unsigned char bytes[SNAPSHOT_SLOT];
};

struct snapshot_page {
    uint64_t first;
    union snapshot_slot slot[2];
    uint64_t last;
};

_Static_assert(sizeof(struct snapshot_page) == SNAPSHOT_PAGE, "a page is a page");

struct snapshot_history {
    uint64_t generation;
    uint64_t id;      /* of the GPU */
    int64_t epoch_ns; /* real time (since the epoch) of simulated time 0 */
    uint64_t count;   /* of moments, oldest first */
    struct moment moments[HISTORY_MOMENTS];
};

/* A fingerprint of the metric registry this program was built with. */
uint64_t snapshot_registry(void);

#endif
