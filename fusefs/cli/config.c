/*
 * fakegpufs config: configurations checked, shown, described.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/cli/client.h"
#include "fusefs/cli/diff.h"
#include "sim/config_resolve.h"

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

static void print_node(const char *file, const struct config *cfg, const struct gpu_entry *entries,
                       int count)
{
    int nodes = count ? entries[count - 1].node_number + 1 : 0;

    if (nodes)
        printf("%s: %d node%s", file, nodes, nodes == 1 ? "" : "s");
    else
        printf("%s: node '%s'", file, cfg->node);
    printf(" with %d GPU%s\n", count, count == 1 ? "" : "s");
}

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
    print_node(call->argv[0], &cfg, entries, count);
    for (int i = 0; i < count; i++)
        printf("  %3d %s %04x:%02x:%02x.%x %s%s%s\n", i, entries[i].uuid, entries[i].domain,
               entries[i].bus, entries[i].device, entries[i].function, entries[i].model->name,
               *entries[i].node ? " " : "", entries[i].node);
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

/* --- diff ------------------------------------------------------------------------------------ */

struct diff_options {
    struct client_options client;
};

enum { EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };

/* What would change if FILE were applied: both with all defaults. */
static int compare(const struct client *c, const struct config *cfg, const char *file,
                   struct text *out, struct why *why)
{
    struct text now = TEXT_INIT, then = TEXT_INIT, name = TEXT_INIT;
    int r = client_read(c, &now, "control/config");

    text_addf(&name, "%s/control/config", c->root);
    text_add(&now, "\n"); /* which the reader took off */
    config_print(&then, cfg);
    if (r < 0)
        why_set(why, -r, "%s: %s", text_str(&name), strerror(-r));
    else if ((r = diff_texts(out, text_str(&name), text_str(&now), file, text_str(&then))) < 0)
        why_set(why, -r, "out of memory");
    text_release(&now);
    text_release(&then);
    text_release(&name);
    return r;
}

static int run_diff(const struct command_call *call)
{
    const struct diff_options *o = call->options;
    struct config cfg;
    struct client c = { 0 };
    struct why why = { 0 };
    struct text out = TEXT_INIT;
    int r = read_config(call, &cfg, &why), code;

    if (r < 0) {
        command_fail(&why);
        return EXIT_TROUBLE;
    }
    r = client_open(&c, &o->client, &why);
    if (r == 0 && c.explain)
        client_say(&c, "fakegpufs config show %s%s%s | diff -u %s/control/config -", call->argv[0],
                   call->argc > 1 ? " " : "", call->argc > 1 ? call->argv[1] : "", c.root);
    else if (r == 0)
        r = compare(&c, &cfg, call->argv[0], &out, &why);
    fputs(text_str(&out), stdout);
    code = r < 0 ? EXIT_TROUBLE : out.length ? EXIT_DIFFERENT : 0;
    if (r < 0)
        command_fail(&why);
    text_release(&out);
    client_close(&c);
    config_release(&cfg);
    return code;
}

static const struct command_option diff_options[] = {
    CLIENT_OPTIONS(struct diff_options, client),
    { 0 },
};

static const struct command_exit diff_exits[] = {
    { "0", "FILE would change nothing" },
    { "1", "it would: the difference is on standard output" },
    { "2", "FILE is wrong, or there is no mount: a sentence on standard error says which" },
    { 0 },
};

const struct command command_config_diff = {
    .name = "config diff",
    .summary = "compare it with a mount's",
    .text =
        "Shows what would change if FILE became the configuration of a mount, as a unified diff "
        "with all defaults written out." ABOUT_NODE,
    .options = diff_options,
    .operands = file_and_node,
    .options_size = sizeof(struct diff_options),
    .exits = diff_exits,
    .examples = { "fakegpufs config diff node.yaml",
                  "fakegpufs config diff --mount /tmp/gpus node.yaml" },
    .run = run_diff,
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
