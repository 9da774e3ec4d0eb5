/*
 * Commands that only look at data: models and metrics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "fusefs/cli/command.h"
#include "sim/config.h"
#include "sim/metric.h"

/* --- models ---------------------------------------------------------------------------------- */

static void print_model(const struct gpu_model *m)
{
    printf("%-18s %-26s %-13s %8" PRId64 " %6" PRId64 " %6" PRId64 " %7" PRId64 " %6" PRId64 "\n",
           m->name, m->product, m->architecture, m->memory.total_bytes >> 20,
           m->power.idle_mw / 1000, m->power.default_mw / 1000, m->clocks.sm.max_khz / 1000,
           m->nvlink.links);
}

static int run_models(const struct command_call *call)
{
    struct model_set set;
    struct why why = { 0 };

    if (model_set_load(&set, call->argc ? call->argv[0] : NULL, &why) < 0)
        return command_fail(&why);
    printf("%-18s %-26s %-13s %8s %6s %6s %7s %6s\n", "MODEL", "PRODUCT", "ARCHITECTURE", "MEM MiB",
           "IDLE W", "MAX W", "SM MHz", "LINKS");
    for (int i = 0; i < set.count; i++)
        print_model(&set.models[i]);
    model_set_release(&set);
    return 0;
}

static const struct command_operand directory[] = {
    { .name = "DIRECTORY", .count = OPERAND_OPTIONAL, .complete = COMPLETE_DIRECTORY },
    { 0 },
};

const struct command command_models = {
    .name = "models",
    .summary = "list the GPU models",
    .text =
        "Lists the built-in GPU models, and those that DIRECTORY/models/*.yaml adds or replaces.",
    .operands = directory,
    .examples = { "fakegpufs models", "fakegpufs models ./schemas" },
    .run = run_models,
};

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

struct metrics_options {
    bool markdown;
};

static int run_metrics(const struct command_call *call)
{
    const struct metrics_options *o = call->options;

    if (o->markdown)
        printf("| file | unit | kind | pin | DCGM | what it is |\n"
               "| --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < METRIC_COUNT; i++)
        (o->markdown ? print_metric_markdown : print_metric)(&metric_infos[i]);
    return 0;
}

static const struct command_option metrics_options[] = {
    OPTION("markdown", 0, NULL, OPTION_FLAG, struct metrics_options, markdown,
           "as a table for a page"),
    { 0 },
};

const struct command command_metrics = {
    .name = "metrics",
    .summary = "list the metrics",
    .text = "Lists every metric: its file, kind, unit, DCGM field and meaning.",
    .more = "The table of --markdown also says what a profile or the configuration may pin.",
    .options = metrics_options,
    .options_size = sizeof(struct metrics_options),
    .examples = { "fakegpufs metrics | grep ecc", "fakegpufs metrics --markdown" },
    .run = run_metrics,
};
