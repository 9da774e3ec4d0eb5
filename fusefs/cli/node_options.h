/*
 * Node options: which node a command is about, from a file or from a few options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_NODE_OPTIONS_H
#define FUSEFS_CLI_NODE_OPTIONS_H

#include "fusefs/cli/command.h"
#include "sim/config.h"

struct node_options {
    const char *config; /* a file; NULL: the options below, each of which may be NULL */
    const char *gpus, *model, *profile;
    const char *node;
    bool all_nodes;
};

/* clang-format off */
/* Their rows; `which` is the struct node_options of the command's own `type`. */
#define NODE_OPTIONS(type, which)                                                                   \
    OPTION("config", 'c', "FILE", OPTION_TEXT, type, which.config,                                  \
           "configuration; default: 8 A100-SXM4-40GB", .complete = COMPLETE_FILE),                  \
    OPTION("node", 0, "NAME", OPTION_TEXT, type, which.node,                                        \
           "which of its nodes; default: $NODE_NAME"),                                              \
    OPTION("all-nodes", 0, NULL, OPTION_FLAG, type, which.all_nodes,                                \
           "all of its nodes, in one mount"),                                                       \
    OPTION("gpus", 0, "N", OPTION_TEXT, type, which.gpus, "number of GPUs, without --config"),      \
    OPTION("model", 0, "MODEL", OPTION_TEXT, type, which.model, "their model, without --config",    \
           .complete = COMPLETE_MODEL),                                                             \
    OPTION("profile", 0, "PROFILE", OPTION_TEXT, type, which.profile,                               \
           "their profile, or cycle, without --config", .complete = COMPLETE_PROFILE)

/* And those of a mount of it, which are fields `schemas`, `speed` and `dev` of the type. */
#define NODE_MOUNT_OPTIONS(type, which)                                                             \
    NODE_OPTIONS(type, which),                                                                      \
    OPTION("schemas", 0, "DIR", OPTION_TEXT, type, schemas, "more models and profiles",             \
           .complete = COMPLETE_DIRECTORY),                                                         \
    OPTION("speed", 0, "X", OPTION_TEXT, type, speed, "simulated seconds per real second"),         \
    OPTION("dev", 0, "MODE", OPTION_TEXT, type, dev,                                                \
           "device nodes: char, file (can be opened) or null", .words = dev_mode_names + DEV_CHAR)
/* clang-format on */

/* 0, or EXIT_USAGE after a sentence where they contradict each other. */
int node_options_check(const struct command_call *call, const struct node_options *options);

/* Reads the configuration. `how` gets the name for sentences where there is no file. */
int node_options_load(const struct node_options *options, struct config_options *how,
                      struct config *cfg, struct why *why);

#endif
