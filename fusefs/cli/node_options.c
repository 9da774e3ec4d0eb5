/*
 * Node options: which node a command is about. See node_options.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/node_options.h"

#include <stdlib.h>

/* The options as a configuration of their own, so that they are read and refused like one. */
static void options_yaml(const struct node_options *o, struct text *out)
{
    text_add(out, "gpus: {count: ");
    bind_print_text(out, o->gpus ? o->gpus : "8");
    text_add(out, ", model: ");
    bind_print_text(out, o->model ? o->model : "A100-SXM4-40GB");
    text_add(out, "}\nprofile: ");
    bind_print_text(out, o->profile ? o->profile : "idle");
    text_add(out, "\n");
}

int node_options_check(const struct command_call *call, const struct node_options *o)
{
    if (o->config && (o->gpus || o->model || o->profile))
        return command_usage(call, "--gpus, --model and --profile are for use without --config");
    if (o->all_nodes && (o->node || !o->config))
        return command_usage(call, "--all-nodes is for use with --config and without --node");
    return 0;
}

int node_options_load(const struct node_options *o, struct config_options *how, struct config *cfg,
                      struct why *why)
{
    struct text yaml = TEXT_INIT;
    int r;

    how->node = o->node ? o->node : getenv("NODE_NAME");
    how->all_nodes = o->all_nodes;
    if (o->config)
        return config_load(cfg, o->config, how, why);
    how->name = "options";
    options_yaml(o, &yaml);
    r = config_parse(cfg, text_str(&yaml), yaml.length, how, why);
    text_release(&yaml);
    return r;
}
