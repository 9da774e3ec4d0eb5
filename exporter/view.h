/*
 * View: the mount at one instant, as the exporter collected it, or the part of it that is one node.
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

/* A node: GPUs [first, first + count) of the mount. */
struct view_node {
    const char *name; /* NULL: the mount does not say, as it has only one */
    int first, count;
    bool hidden; /* another mount has a node of that name, which counts */
};

struct view_gpu {
    int index;                         /* on its node */
    int position;                      /* in the mount, by which files and other GPUs know it */
    int node;                          /* in the view's nodes */
    bool lost;                         /* fallen off the bus: the sample is old */
    const char *names[IDENTITY_COUNT]; /* as its node has them; NULL: it has no such thing */
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
    int gpu;        /* position in the mount */
    int64_t at_ns;  /* simulated */
    int64_t before; /* of clocks: the reasons before */
    int64_t value;  /* the Xid; the reasons from then on */
};

struct view {
    uint64_t generation, plan_version;
    int64_t now_ns;                /* simulated */
    const struct view_node *nodes; /* all of the mount */
    int node_count;
    uint64_t nodes_version; /* of node_list: while the list has it, names are good */
    const struct view_gpu *gpus;
    int gpu_count;
    const struct incident *incidents; /* oldest first; only when asked for */
    size_t incident_count;
    const struct view *next; /* of another mount, where several are shown as one */
};

/* --- collecting ------------------------------------------------------------------------------ */

struct collector;

/*
 * Looks at the mount at `root`, which need not be there yet. `name` is what its node is called unless it says so
 * itself; may be NULL. NULL when out of memory.
 */
struct collector *collector_new(const char *root, const char *name);
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

/* Only asks what there is: 0, or -errno with a sentence. Cheap. `gpus` may be NULL. */
int collector_peek(struct collector *c, struct view_stamp *stamp, int *gpus, struct why *why);

/* The nodes of the mount, or those it had when it was last there. */
struct node_list {
    struct view_node *items; /* the collector's; only `hidden` is for others to change */
    int count;               /* 0: it was never there */
    uint64_t version;        /* another one: other nodes */
};

/* 0, or -errno with a sentence while the mount is not there. Cheap while they are the same. */
int collector_nodes(struct collector *c, struct node_list *nodes, struct why *why);

/*
 * Collects anew. 0, or -errno with a sentence while the mount is not there; it is found again by itself. The
 * view that was before is gone either way.
 */
int collector_refresh(struct collector *c, const struct view **view, struct why *why);

/*
 * Collects the GPUs of one node and no others: item `node` of its list. The view is good until the next call; that
 * of collector_refresh stays.
 */
int collector_refresh_node(struct collector *c, int node, const struct view **view,
                           struct why *why);

#endif
