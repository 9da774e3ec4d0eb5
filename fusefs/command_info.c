/*
 * Commands that only look at data: models, metrics, config.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/command.h"
#include "sim/config.h"
#include "sim/metric.h"

static int is_help(int argc, char **argv)
{
    return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int fail(struct why *why)
{
    fprintf(stderr, "fakegpufs: %s\n", why_text(why));
    why_release(why);
    return 1;
}

/* --- models ---------------------------------------------------------------------------------- */

static void print_model(const struct gpu_model *m)
{
    printf("%-18s %-26s %-13s %8" PRId64 " %6" PRId64 " %6" PRId64 " %7" PRId64 " %6" PRId64 "\n",
           m->name, m->product, m->architecture, m->memory.total_bytes >> 20,
           m->power.idle_mw / 1000, m->power.default_mw / 1000, m->clocks.sm.max_khz / 1000,
           m->nvlink.links);
}

int command_models(int argc, char **argv)
{
    struct model_set set;
    struct why why = { 0 };

    if (is_help(argc, argv)) {
        printf(
            "usage: fakegpufs models [DIRECTORY]\n\n"
            "Lists the built-in GPU models and those that DIRECTORY/models/*.yaml adds or replaces.\n\n"
            "examples:\n  fakegpufs models\n  fakegpufs models ./schemas\n");
        return 0;
    }
    if (argc > 2)
        return command_usage("models", "takes one directory");
    if (model_set_load(&set, argc > 1 ? argv[1] : NULL, &why) < 0)
        return fail(&why);
    printf("%-18s %-26s %-13s %8s %6s %6s %7s %6s\n", "MODEL", "PRODUCT", "ARCHITECTURE", "MEM MiB",
           "IDLE W", "MAX W", "SM MHz", "LINKS");
    for (int i = 0; i < set.count; i++)
        print_model(&set.models[i]);
    model_set_release(&set);
    return 0;
}

/* --- metrics --------------------------------------------------------------------------------- */

static const char *kind_name(const struct metric_info *m)
{
    return m->kind == METRIC_KIND_COUNTER ? "counter" : "gauge";
}

static void print_metric(const struct metric_info *m)
{
    printf("%-40s %-7s %-16s %5d %-42s %s\n", m->name, kind_name(m), unit_name(m->unit), m->dcgm_id,
           m->dcgm_id ? m->dcgm_name : "-", m->help);
}

static void print_metric_markdown(const struct metric_info *m)
{
    printf("| `%s` | %s | %s | %s | ", m->name, unit_name(m->unit), kind_name(m),
           m->flags & METRIC_FLAG_PIN ? "yes" : "");
    if (m->dcgm_id)
        printf("%d `%s` | ", m->dcgm_id, m->dcgm_name);
    else
        printf("| ");
    for (const char *p = m->help; *p; p++)
        printf(*p == '|' ? "\\%c" : "%c", *p);
    printf(" |\n");
}

int command_metrics(int argc, char **argv)
{
    bool markdown = argc > 1 && !strcmp(argv[1], "--markdown");

    if (is_help(argc, argv)) {
        printf(
            "usage: fakegpufs metrics [--markdown]\n\n"
            "Lists every metric: its file, kind, unit and DCGM field; with --markdown as a table\n"
            "for a page, which also says what a profile or the configuration may pin.\n\n"
            "examples:\n  fakegpufs metrics | grep ecc\n  fakegpufs metrics --markdown\n");
        return 0;
    }
    if (argc > 2 || (argc > 1 && !markdown))
        return command_usage("metrics", "'%s' is not expected", argv[argc - 1]);
    if (markdown)
        printf("| file | unit | kind | pin | DCGM | what it is |\n"
               "| --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < METRIC_COUNT; i++)
        (markdown ? print_metric_markdown : print_metric)(&metric_infos[i]);
    return 0;
}

/* --- config ---------------------------------------------------------------------------------- */

static int print_schema(void)
{
    struct text out = TEXT_INIT;

    config_schema(&out);
    fputs(text_str(&out), stdout);
    text_release(&out);
    return 0;
}

static int read_config(const char *path, const char *node, struct config *cfg, struct why *why)
{
    struct config_options options = { .node = node, .environment = environ };

    return config_load(cfg, path, &options, why);
}

static int check_config(const char *path, const char *node)
{
    struct config cfg;
    struct why why = { 0 };
    struct gpu_entry *entries;
    int count;

    if (read_config(path, node, &cfg, &why) < 0 || config_resolve(&cfg, &entries, &count, &why) < 0)
        return fail(&why);
    printf("%s: node '%s' with %d GPU%s\n", path, cfg.node, count, count == 1 ? "" : "s");
    for (int i = 0; i < count; i++)
        printf("  %3d %s %04x:%02x:%02x.%x %s\n", i, entries[i].uuid, entries[i].domain,
               entries[i].bus, entries[i].device, entries[i].function, entries[i].model->name);
    free(entries);
    config_release(&cfg);
    return 0;
}

static int show_config(const char *path, const char *node)
{
    struct config cfg;
    struct why why = { 0 };
    struct text out = TEXT_INIT;

    if (read_config(path, node, &cfg, &why) < 0)
        return fail(&why);
    config_print(&out, &cfg);
    fputs(text_str(&out), stdout);
    text_release(&out);
    config_release(&cfg);
    return 0;
}

int command_config(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "", *node = NULL;

    if (is_help(argc, argv)) {
        printf(
            "usage: fakegpufs config check FILE [NODE]   say what is wrong with it, or what it describes\n"
            "       fakegpufs config show FILE [NODE]    print it with all defaults\n"
            "       fakegpufs config schema              print the JSON Schema of the format\n\n"
            "NODE picks one of the nodes of a file in the form with 'nodes:'.\n\n"
            "examples:\n  fakegpufs config check node.yaml\n  fakegpufs config show topology.yaml node-a\n");
        return 0;
    }
    if (!strcmp(verb, "schema") && argc == 2)
        return print_schema();
    if (argc < 3 || argc > 4 || (strcmp(verb, "check") && strcmp(verb, "show")))
        return command_usage("config", "takes 'check FILE', 'show FILE' or 'schema'");
    node = argc == 4 ? argv[3] : NULL;
    return strcmp(verb, "show") ? check_config(argv[2], node) : show_config(argv[2], node);
}
