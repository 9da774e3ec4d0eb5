/*
 * Links: who is connected to whom over NVLink.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_LINKS_H
#define SIM_LINKS_H

#include "sim/config_resolve.h"
#include "sim/gpu.h"

/* Fills in plans[i].links of all GPUs, which have no links yet. */
void links_connect(const struct nvlink_spec *spec, const struct gpu_entry *entries, int count,
                   struct gpu_plan *plans);

#endif
