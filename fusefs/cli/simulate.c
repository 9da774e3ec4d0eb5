/*
 * fakegpufs simulate: a node without a mount, as fast as it goes, as CSV.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/cli/command.h"
#include "fusefs/cli/node_options.h"
#include "sim/library.h"
#include "sim/sim.h"
#include "sim/suggest.h"

struct options {
    struct node_options which;
    const char *metrics, *workload;
    int64_t for_ns, every_ns;
    struct option_list at;
};

/* A command for the running node: "30s 0 power_limit 250W". */
struct action {
    int64_t at_ns;
    const char *text;
};

enum { COLUMNS_MAX = METRIC_COUNT, ACTIONS_MAX = OPTION_LIST_MAX };

struct simulation {
    const struct command_call *call;
    const struct options *o;
    struct sim *sim;
    int columns[COLUMNS_MAX], column_count;
    struct action actions[ACTIONS_MAX];
    int action_count, next_action;
};

static const char default_metrics[] =
    "utilization_gpu_percent,memory_used_bytes,clock_sm_mhz,power_usage_mw,temperature_gpu_c,throttle_reasons";

/* --- options --------------------------------------------------------------------------------- */

static int parse_columns(struct simulation *s, const char *list)
{
    char *copy = strdup(strcmp(list, "all") ? list : ""), *rest = copy, *name;

    for (int i = 0; !strcmp(list, "all") && i < METRIC_COUNT; i++)
        s->columns[s->column_count++] = i;
    while (copy && *copy && (name = strsep(&rest, ","))) {
        int id = metric_find(name);
        const char *near = suggest_nearest(name, metric_name_at, NULL);
        int r = 0;

        if (id < 0)
            r = command_usage(s->call, "'%s' is not a metric%s%s%s", name,
                              near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        else if (s->column_count == COLUMNS_MAX)
            r = command_usage(s->call, "too many metrics");
        if (r) {
            free(copy);
            return r;
        }
        s->columns[s->column_count++] = id;
    }
    free(copy);
    return 0;
}

/* In order of time; the order given counts for those of the same time. */
static int add_action(struct simulation *s, const char *text)
{
    struct action a = { .text = strchr(text, ' ') };
    char when[64];
    struct why why = { 0 };
    int r, i;

    if (!a.text || a.text - text >= (ptrdiff_t)sizeof(when))
        return command_usage(s->call, "--at takes 'TIME GPU COMMAND'");
    snprintf(when, sizeof(when), "%.*s", (int)(a.text++ - text), text);
    if (unit_parse(UNIT_NANOSECOND, when, UNIT_BARE_REFUSED, &a.at_ns, &why) < 0) {
        r = command_usage(s->call, "--at: %s", why_text(&why));
        why_release(&why);
        return r;
    }
    for (i = s->action_count++; i > 0 && s->actions[i - 1].at_ns > a.at_ns; i--)
        s->actions[i] = s->actions[i - 1];
    s->actions[i] = a;
    return 0;
}

static int read_options(struct simulation *s)
{
    int r = node_options_check(s->call, &s->o->which);

    for (int i = 0; r == 0 && i < s->o->at.count; i++)
        r = add_action(s, s->o->at.items[i]);
    return r ? r : parse_columns(s, s->o->metrics);
}

/* --- the node -------------------------------------------------------------------------------- */

static int load_config(const struct options *o, struct config *cfg, struct why *why)
{
    struct config_options how = { .environment = environ };

    return node_options_load(&o->which, &how, cfg, why);
}

static int add_workload(struct simulation *s, struct why *why)
{
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    int r = workload_parse(&spec, "--workload", s->o->workload, &arena, why);

    if (r == 0 && !*spec.name)
        strcpy(spec.name, "workload");
    if (r == 0)
        r = sim_add_workload(s->sim, &spec, NULL, why);
    arena_release(&arena);
    return r;
}

static int start(struct simulation *s, struct why *why)
{
    struct config cfg;
    int r = load_config(s->o, &cfg, why);

    if (r < 0)
        return r;
    s->sim = sim_new(&cfg, why);
    config_release(&cfg);
    if (!s->sim)
        return -EINVAL;
    return s->o->workload ? add_workload(s, why) : 0;
}

/* --- commands along the way ------------------------------------------------------------------ */

static int act(struct simulation *s, const char *text, struct why *why)
{
    char gpu_name[64], verb[64];
    int used = 0, gpu, id;
    const char *argument;
    int64_t mw;

    if (sscanf(text, "%63s %63s %n", gpu_name, verb, &used) < 2)
        return why_set(why, EINVAL, "'%s' is not 'GPU COMMAND [VALUE]'", text);
    argument = text + used;
    gpu = sim_find_gpu(s->sim, gpu_name);
    if (gpu < 0)
        return why_set(why, ENODEV, "there is no GPU '%s'", gpu_name);
    if (!strcmp(verb, "fault"))
        return sim_fault(s->sim, gpu, argument, why);
    if (!strcmp(verb, "profile"))
        return sim_set_profile(s->sim, gpu, argument, why);
    if (!strcmp(verb, "power_limit_mw") || !strcmp(verb, "power_limit")) {
        int r = unit_parse(UNIT_MILLIWATT, argument, UNIT_BARE_SHOWN, &mw, why);

        return r < 0 ? r : sim_set_power_limit(s->sim, gpu, mw, why);
    }
    id = metric_find(verb);
    if (id < 0)
        return why_set(why, EINVAL,
                       "'%s' is not a command; allowed: fault, profile, power_limit, or a metric",
                       verb);
    return sim_pin(s->sim, gpu, (enum metric)id, argument, why);
}

/* --- output ---------------------------------------------------------------------------------- */

static void print_header(const struct simulation *s)
{
    printf("time_s,gpu");
    for (int i = 0; i < s->column_count; i++)
        printf(",%s", metric_infos[s->columns[i]].name);
    printf("\n");
}

/* As everywhere: what a GPU does not have is empty, what fails to read is NaN. */
static void print_value(const struct simulation *s, struct text *line, int gpu, int id)
{
    int64_t v;
    int r = sim_read(s->sim, gpu, (enum metric)id, &v);

    text_add(line, ",");
    if (r == 0)
        unit_show(line, metric_infos[id].unit, v);
    else if (r == -EIO)
        text_add(line, "NaN");
}

static void print_sample(const struct simulation *s)
{
    const struct world *w = sim_world(s->sim);
    struct text line = TEXT_INIT;

    for (int gpu = 0; gpu < (int)w->used[SECTION_GPUS]; gpu++) {
        text_cut(&line, 0);
        text_addf(&line, "%.3f,%d", (double)w->node.now_ns / (double)NS_PER_S, gpu);
        for (int i = 0; i < s->column_count; i++)
            print_value(s, &line, gpu, s->columns[i]);
        puts(text_str(&line));
    }
    text_release(&line);
}

static int play(struct simulation *s, struct why *why)
{
    int64_t next = 0;

    print_header(s);
    for (;;) {
        int64_t now = sim_world(s->sim)->node.now_ns;

        while (s->next_action < s->action_count && s->actions[s->next_action].at_ns <= now) {
            int r = act(s, s->actions[s->next_action++].text, why);

            if (r < 0)
                return r;
        }
        if (now >= next) {
            print_sample(s);
            next += s->o->every_ns;
        }
        if (now >= s->o->for_ns)
            return 0;
        sim_step(s->sim);
    }
}

static int run(const struct command_call *call)
{
    struct simulation s = { .call = call, .o = call->options };
    struct why why = { 0 };
    int r = read_options(&s);

    if (r)
        return r;
    r = start(&s, &why);
    if (r == 0)
        r = play(&s, &why);
    sim_free(s.sim);
    return r < 0 ? command_fail(&why) : 0;
}

static const struct options defaults = {
    .for_ns = 60 * NS_PER_S,
    .every_ns = NS_PER_S,
    .metrics = default_metrics,
};

static const struct command_option options[] = {
    NODE_OPTIONS(struct options, which),
    OPTION("workload", 0, "TEXT", OPTION_TEXT, struct options, workload,
           "'{activity: 80:5:30s, memory: 10GiB}'"),
    OPTION("at", 0, "TEXT", OPTION_EACH, struct options, at,
           "'TIME GPU COMMAND'; any number of them"),
    OPTION("for", 0, "TIME", OPTION_TIME, struct options, for_ns, "simulated time, default 1m"),
    OPTION("every", 0, "TIME", OPTION_TIME, struct options, every_ns,
           "time between samples, default 1s"),
    OPTION("metrics", 0, "A,B,…", OPTION_TEXT, struct options, metrics, "columns, or all",
           .complete = COMPLETE_METRIC),
    { 0 },
};

const struct command command_simulate = {
    .name = "simulate",
    .summary = "run a node without a mount and print its metrics as CSV",
    .text =
        "Runs a simulated node without a mount, as fast as it goes, and prints one CSV line per "
        "GPU and sample. A COMMAND of --at is fault, power_limit, profile or a metric, and its "
        "value.",
    .options = options,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .examples = { "fakegpufs simulate --gpus 2 --profile wave --for 5m --every 30s",
                  "fakegpufs simulate --gpus 1 --at '20s 0 power_limit_mw 200000'" },
    .run = run,
};
