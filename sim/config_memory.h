/*
 * Config: whether what runs fits into the memory of its GPUs, as far as that can be known before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_MEMORY_H
#define SIM_CONFIG_MEMORY_H

#include "sim/config_refuse.h"

/* The load of a GPU itself. -ENOSPC. */
int check_own_memory(struct resolver *r, const struct gpu_entry *e);

/* Item `i` of `workloads` on GPUs [first, behind). -ENOSPC. */
int check_workload_memory(struct resolver *r, size_t i, int first, int behind);

#endif
