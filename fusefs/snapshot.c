/*
 * Snapshot: what both sides of the pages share. See snapshot.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/snapshot.h"

#include "sim/rng.h"

uint64_t snapshot_registry(void)
{
    uint64_t h = sizeof(struct snapshot_page);

    for (int i = 0; i < METRIC_COUNT; i++)
        h = rng_hash(h, metric_infos[i].name);
    for (int i = 0; i < SAMPLINGS; i++)
        h = rng_hash(h, sampling_infos[i].column);
    return h;
}
