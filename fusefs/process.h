/*
 * Process: a workload on a GPU as tables of processes show it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_PROCESS_H
#define FUSEFS_PROCESS_H

#include "sim/text.h"
#include "sim/world.h"

/* A workload without a process of its own gets an id that no real process can have (PID_MAX_LIMIT is 2^22). */
enum { PROCESS_SIMULATED = 1 << 22 };

/* By the process id that a workload was given, if any, and by its own id. */
static inline int process_id_of(int64_t pid, uint64_t workload)
{
    return pid ? (int)pid : PROCESS_SIMULATED + (int)(workload % PROCESS_SIMULATED);
}

static inline int process_id(const struct workload *work)
{
    return process_id_of(work->pid, work->id);
}

/* The columns `gi ci` of a share, each with a blank before it. */
static inline void process_add_instance(struct text *out, const struct share *share)
{
    if (share->gi < 0)
        text_add(out, " - -");
    else
        text_addf(out, " %d %d", share->gi, share->ci);
}

#endif
