/*
 * Supervisor: mounts, holds what must not be lost, and restarts the worker.
 *
 * It serves nothing itself, so there is little in it that could die.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_SUPERVISOR_H
#define FUSEFS_SUPERVISOR_H

#include "fusefs/node.h"

struct supervisor_options {
    const char *mountpoint;
    const struct config *config;
    const char *config_path; /* watched; NULL: none */
    const struct config_options *read_options;
    const char *speed; /* set by hand, which a reload leaves; NULL: as configured */
    int dev_mode;      /* enum dev_mode */
    const char *library_dir, *binary_dir;
    int ready_fd; /* a byte is written when the mount serves; -1: none */
};

/* Runs until the mount is gone or SIGTERM. Returns the exit code; errors are logged. */
int supervisor_run(const struct supervisor_options *options);

/* Unmounts. 0 or -errno with a sentence. Busy mounts are detached: they end with their last user. */
int supervisor_unmount(const char *mountpoint, struct why *why);

#endif
