/*
 * Progress: how a workload is doing, shown to a person or to a log.
 *
 * On a terminal one line that is drawn again and again; elsewhere a plain line now and then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_PROGRESS_H
#define FUSEFS_CLI_PROGRESS_H

#include "fusefs/cli/client.h"

struct progress {
    const struct client *client;
    const char *name; /* of the workload */
    bool terminal;
    bool drawn;          /* a line stands there without its end */
    int64_t next_ns;     /* of the monotonic clock: when to show it again */
    struct text devices; /* whose power is shown, as the mount lists them */
};

/* Finds out where standard output goes to, and which GPUs the workload has. */
void progress_begin(struct progress *progress, const struct client *client, const char *name);

/* Shows it if it is time to. Returns the milliseconds until it is time again. */
int progress_show(struct progress *progress);

/* Wipes what stands on a terminal, and releases. */
void progress_end(struct progress *progress);

#endif
