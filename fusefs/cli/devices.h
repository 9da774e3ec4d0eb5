/*
 * Devices: which GPUs a workload takes, from what its caller said and what he can see.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_DEVICES_H
#define FUSEFS_CLI_DEVICES_H

#include "fusefs/cli/client.h"

struct devices_wish {
    const char *devices; /* a list, as workloads/NAME/devices takes it; NULL: none given */
    const char *glob;    /* device nodes; NULL: none given */
    const char *gpus;    /* how many of them, or all; NULL: all that were given */
};

/*
 * Appends the GPUs as workloads/NAME/devices takes them, or nothing where the choice is the mount's.
 *
 * Without a list or a glob they are those of NVIDIA_VISIBLE_DEVICES, or those whose device nodes are in
 * /dev, or any. Of more than are asked for, those with the fewest processes are taken.
 */
int devices_choose(const struct client *client, const struct devices_wish *wish, struct text *out,
                   struct why *why);

#endif
