/*
 * Process: which process id stands for a workload.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_PROCESS_H
#define FUSEFS_PROCESS_H

#include "sim/world.h"

/* A workload without a process of its own gets an id that no real process can have (PID_MAX_LIMIT is 2^22). */
enum { PROCESS_SIMULATED = 1 << 22 };

static inline int process_id(const struct workload *work)
{
    return work->pid ? work->pid : PROCESS_SIMULATED + (int)(work->id % PROCESS_SIMULATED);
}

#endif
