/*
 * View: the mount at one instant, as the exporter collected it.
 *
 * Everything of one generation: samples, names, processes, MIG instances, and what happened lately. Identities
 * are projections of it; the live page shows it as it is. A view belongs to its collector and is good until
 * the next refresh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_VIEW_H
#define EXPORTER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/metric.h"

struct why;

/* A workload on one GPU. Texts are "" where it has none. */
struct view_process {
    int gpu;
    int gi; /* the MIG GPU instance it runs on; -1: the GPU as a whole */
    int64_t pid, memory_bytes, utilization_percent;
    const char *workload, *namespace, *pod, *container;
};

/* A MIG GPU instance. */
struct view_instance {
    int gi;
    const char *profile; /* 1g.5gb */
    int64_t memory_bytes, multiprocessors;
};

/* An NVLink. What is at its other end: -1 for none. */
struct view_link {
    bool up;
    int peer_gpu, peer_switch;
};

struct view_gpu {
    int index;
    bool lost;                         /* fallen off the bus: the sample is old */
    const char *names[IDENTITY_COUNT]; /* NULL: it has no such thing */
    struct metric_sample sample;
    const struct view_process *processes;
    int process_count;
    const struct view_instance *instances; /* MIG is on when the metric mig_mode says so */
    int instance_count;
    const struct view_link *links; /* NVLinks; only when asked for */
    int link_count;
};

/* Something that happened to a GPU. */
enum incident_kind { INCIDENT_XID, INCIDENT_CLOCKS };

struct incident {
    enum incident_kind kind;
    int gpu;
    int64_t at_ns;  /* simulated */
    int64_t before; /* of clocks: the reasons before */
    int64_t value;  /* the Xid; the reasons from then on */
};

struct view {
    uint64_t generation, plan_version;
    int64_t now_ns; /* simulated */
    const struct view_gpu *gpus;
    int gpu_count;
    const struct incident *incidents; /* oldest first; only when asked for */
    size_t incident_count;
};

/* --- collecting ------------------------------------------------------------------------------ */

struct collector;

/* Looks at the mount at `root`, which need not be there yet. NULL when out of memory. */
struct collector *collector_new(const char *root);
void collector_free(struct collector *c);

/* What is collected only when somebody asks for it, since it costs a file more to read. */
struct view_wants {
    int64_t incidents_ns; /* incidents of this last (simulated) time; 0: none */
    bool links;
};

void collector_want(struct collector *c, const struct view_wants *wants);

/* What a view is of: another mount may count its generations from the start again. */
struct view_stamp {
    uint64_t mount, generation;
};

/* Only asks what there is: 0, or -errno with a sentence. Cheap. */
int collector_peek(struct collector *c, struct view_stamp *stamp, struct why *why);

/*
 * Collects anew. 0, or -errno with a sentence while the mount is not there; it is found again by itself. The
 * view that was before is gone either way.
 */
int collector_refresh(struct collector *c, const struct view **view, struct why *why);

#endif
