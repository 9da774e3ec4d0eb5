/*
 * fakegpufs config: configurations checked, shown, described.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fusefs/cli/command.h"

/* FILE [NODE], the operands of all but one. */
static int read_config(const struct command_call *call, struct config *cfg, struct why *why)
{
    struct config_options how = { .node = call->argc > 1 ? call->argv[1] : NULL,
                                  .environment = environ };

    return config_load(cfg, call->argv[0], &how, why);
}

static const struct command_operand file_and_node[] = {
    { .name = "FILE", .count = OPERAND_ONE, .complete = COMPLETE_FILE },
    { .name = "NODE", .count = OPERAND_OPTIONAL },
    { 0 },
};

#define ABOUT_NODE " NODE picks one of the nodes of a file in the form with 'nodes:'."

/* --- check ----------------------------------------------------------------------------------- */

static int run_check(const struct command_call *call)
{
    struct config cfg;
    struct why why = { 0 };
    struct gpu_entry *entries;
    int count, r;

    if (read_config(call, &cfg, &why) < 0)
        return command_fail(&why);
    r = config_resolve(&cfg, &entries, &count, &why);
    if (r < 0) {
        config_release(&cfg);
        return command_fail(&why);
    }
    printf("%s: node '%s' with %d GPU%s\n", call->argv[0], cfg.node, count, count == 1 ? "" : "s");
    for (int i = 0; i < count; i++)
        printf("  %3d %s %04x:%02x:%02x.%x %s\n", i, entries[i].uuid, entries[i].domain,
               entries[i].bus, entries[i].device, entries[i].function, entries[i].model->name);
    free(entries);
    config_release(&cfg);
    return 0;
}

const struct command command_config_check = {
    .name = "config check",
    .summary = "check a configuration",
    .text = "Says what is wrong with FILE, or which GPUs it describes." ABOUT_NODE,
    .operands = file_and_node,
    .examples = { "fakegpufs config check node.yaml",
                  "fakegpufs config check topology.yaml node-a" },
    .run = run_check,
};

/* --- show ------------------------------------------------------------------------------------ */

static int run_show(const struct command_call *call)
{
    struct config cfg;
    struct why why = { 0 };
    struct text out = TEXT_INIT;

    if (read_config(call, &cfg, &why) < 0)
        return command_fail(&why);
    config_print(&out, &cfg);
    fputs(text_str(&out), stdout);
    text_release(&out);
    config_release(&cfg);
    return 0;
}

const struct command command_config_show = {
    .name = "config show",
    .summary = "show it with all defaults",
    .text = "Prints FILE with everything that it leaves to defaults." ABOUT_NODE,
    .operands = file_and_node,
    .examples = { "fakegpufs config show node.yaml", "fakegpufs config show topology.yaml node-a" },
    .run = run_show,
};

/* --- schema ---------------------------------------------------------------------------------- */

static int run_schema(const struct command_call *call)
{
    struct text out = TEXT_INIT;

    (void)call;
    config_schema(&out);
    fputs(text_str(&out), stdout);
    text_release(&out);
    return 0;
}

const struct command command_config_schema = {
    .name = "config schema",
    .summary = "print the JSON Schema of the format",
    .text = "Prints the JSON Schema of configurations, for editors and checkers.",
    .examples = { "fakegpufs config schema", "fakegpufs config schema > config.schema.json" },
    .run = run_schema,
};
