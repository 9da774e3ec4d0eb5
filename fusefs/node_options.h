/*
 * Node options: which node a command is about, from a file or from a few options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_NODE_OPTIONS_H
#define FUSEFS_NODE_OPTIONS_H

#include "sim/config.h"

struct node_options {
    const char *config; /* a file; NULL: the options below, each of which may be NULL */
    const char *gpus, *model, *profile;
};

/* Reads the configuration. `how` gets the name for sentences where there is no file. */
int node_options_load(const struct node_options *options, struct config_options *how,
                      struct config *cfg, struct why *why);

#endif
