/*
 * Worker: the process that serves a mount, and may die at any time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_WORKER_H
#define FUSEFS_WORKER_H

#include "fusefs/node.h"
#include "fusefs/shared.h"

/* All that a worker gets from its supervisor. */
struct worker_setup {
    int fuse_fd;
    int world_fd;
    struct shared *shared;
    const struct model_set *models;
    struct host host;        /* without errors and config, which are the worker's own */
    const char *config_path; /* what messages call the configuration; NULL: there is none */
    bool drop_privileges;    /* root: become nobody */
};

/* Serves until the mount is gone or SIGTERM: the exit code. */
int worker_main(const struct worker_setup *setup);

#endif
