/*
 * Node: one row is the whole truth about a file of the mount.
 *
 * An area of the tree (proc, sys, gpus …) is a table of rows. The generic code (tree.c, ops.c) names no
 * file; a row names no FUSE. A show renders one generation and changes nothing; a store validates, then
 * asks the simulator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_NODE_H
#define FUSEFS_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "sim/sim.h"
#include "sim/text.h"
#include "sim/why.h"

struct config_options;
struct errors;
struct node_def;

/* Installed files that usr/ shows. */
enum host_file { LIBRARY_ML, LIBRARY_CUDA, PROGRAM_SMI, HOST_FILES };

/* Things of this machine that rows need; fixed when the daemon starts. */
struct host {
    int files[HOST_FILES];                /* open, see host_files_open; 0: not there */
    int dev_mode;                         /* enum dev_mode, never DEV_AUTO */
    uint32_t uid, gid;                    /* of the one who mounted */
    int cpus;                             /* online processors, at least 1 */
    int64_t start_real_ns;                /* real time (since the epoch) of simulated time 0 */
    struct errors *errors;                /* last refusals; of the shared block */
    struct text *config;                  /* the effective configuration; owned by the daemon */
    const struct config_options *options; /* how configurations are read */
};

/* Where a row is looked at: a root (node), and the GPU or workload that its path names. */
struct node_ctx {
    const struct node_def *def;
    const struct host *host;
    const struct world *world;
    const struct world_store *store;
    struct sim *sim;     /* stores only; NULL in a show */
    int gpu;             /* position, or -1 */
    const struct gpu *g; /* of that GPU, or NULL */
    const struct gpu_plan *plan;
    const struct gpu_model *model;
    int gi, ci; /* numbers of MIG instances, or -1 */
    const struct mig_gi *instance;
    const struct mig_profile *mig;
    int workload; /* position, or -1 */
    const struct workload *work;
    const struct run *run;
};

/* Appends the content (or the target of a symbolic link). 0 or -errno: -ENODATA, -EIO, -ENODEV … */
typedef int node_show(const struct node_ctx *cx, struct text *out);

/* One write is one command: `text` without its last newline. 0 or -errno with a sentence. */
typedef int node_store(const struct node_ctx *cx, const char *text, struct why *why);

/* Whether the file is there at all. */
typedef bool node_exists(const struct node_ctx *cx);

enum node_flags {
    NODE_CONTROL = 1 << 0, /* owner and permissions as the configuration says of control files */
    NODE_DEVICE =
        1
        << 1, /* a device node: what it is depends on the dev mode; `arg` is major << 20 | minor */
    NODE_STREAM = 1 << 2,    /* a growing file; `arg` is enum stream */
    NODE_SNAPSHOT = 1 << 3,  /* binary pages, pushed into the page cache */
    NODE_HOST_FILE = 1 << 4, /* served from an installed file; `arg` is enum host_file */
    NODE_BINARY = 1 << 5,    /* exactly as rendered; st_size is `arg` */
    NODE_ATTACH = 1 << 6,    /* open ties the workload's life to the opener */
    NODE_POLL = 1 << 7,      /* wakes pollers when its workload changes state */
    NODE_BLOCKS = 1 << 8,    /* `arg` binary bytes for each GPU, rendered at each read of them */
};

/*
 * path: components separated by '/'. A component may hold one token, which stands for
 *     %i index of a GPU        %m its minor number     %b its bus address, 0000:06:00.0
 *     %u its UUID              %r its PCI root, 0000:06
 *     %n the node it is on     %j its position there
 *     %g, %c numbers of a MIG GPU instance and compute instance; %k, %K their capabilities' minors
 *     %w name of a workload    %v driver version
 * Directories are not listed: they are there because something is in them.
 */
struct node_def {
    const char *path;
    uint32_t mode; /* permissions; with S_IFLNK a symbolic link */
    node_show *show;
    node_store *store;
    int64_t arg; /* for the row's own functions */
    unsigned flags;
    node_exists *exists; /* NULL: always */
};

/* All tables; each ends with a NULL path. */
extern const struct node_def *const node_tables[];

/* For rows of GPUs that must vanish when the GPU has fallen off the bus. */
node_exists gpu_is_present;

#endif
