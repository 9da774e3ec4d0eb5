/*
 * fakegpufs status: a mount's GPUs and workloads at a glance, or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/cli/table.h"
#include "sim/unit.h"

struct options {
    struct client_options client;
    bool json, watch;
    int64_t every_ns;
};

/* All that is shown of a mount, in as many reads for thousands of GPUs as for one, but for their pages. */
struct scene {
    const struct client *client;
    struct reader_node node;
    struct table inventory, conditions, workloads;
};

static int scene_read(const struct client *c, struct scene *s)
{
    int r;

    *s = (struct scene){ .client = c };
    r = reader_node(c->reader, &s->node);
    if (r == 0)
        r = table_read(c, &s->inventory, "gpus/inventory");
    if (r == 0)
        r = table_read(c, &s->conditions, "gpus/conditions");
    return r < 0 ? r : table_read(c, &s->workloads, "gpus/workloads");
}

static void scene_release(struct scene *s)
{
    table_release(&s->inventory);
    table_release(&s->conditions);
    table_release(&s->workloads);
}

/* The lines of one GPU, or of one workload. */
struct facts {
    const struct table_line *lines;
    int count;
};

static struct facts facts_of_gpu(const struct table *t, int gpu)
{
    struct facts f;
    char whose[16];

    snprintf(whose, sizeof(whose), "%d", gpu);
    f.count = table_find(t, whose, &f.lines);
    return f;
}

/* The facts of the workload whose lines begin at `line`. */
static struct facts facts_at(const struct table *t, int line)
{
    struct facts f = { t->lines + line, 0 };

    while (line + f.count < t->count && !strcmp(f.lines[f.count].whose, f.lines->whose))
        f.count++;
    return f;
}

static const char *fact(const struct facts *f, const char *name)
{
    return table_value(f->lines, f->count, name);
}

static const char *fact_or_dash(const struct facts *f, const char *name)
{
    const char *value = fact(f, name);

    return value ? value : "-";
}

/* The next line of that name behind `at`, which is 0 for the first; its number, or -1. */
static int next_fact(const struct facts *f, int at, const char *name)
{
    while (at < f->count && strcmp(f->lines[at].name, name))
        at++;
    return at < f->count ? at : -1;
}

/* The number of a line `progress NAME NUMBER`. */
static int64_t progress_of(const struct facts *f, const char *name, int64_t otherwise)
{
    for (int i = 0; (i = next_fact(f, i, "progress")) >= 0; i++) {
        int64_t n = client_line_number(f->lines[i].value, name, INT64_MIN);

        if (n != INT64_MIN)
            return n;
    }
    return otherwise;
}

/* --- a table --------------------------------------------------------------------------------- */

/* A metric in shown units, or a dash. */
static void add_metric(struct text *out, const struct reader_gpu *gpu, enum metric id,
                       int64_t divisor, const char *unit)
{
    int64_t value;
    int r = metric_read(&gpu->sample, id, &value);

    if (r < 0)
        text_add(out, r == -EIO ? "error" : "-");
    else
        text_addf(out, "%" PRId64 "%s", value / unit_parts(metric_infos[id].unit) / divisor, unit);
}

enum { CELL = 64 };

static const char *cell(char buf[CELL], const struct reader_gpu *gpu, enum metric id,
                        int64_t divisor, const char *unit)
{
    struct text t = TEXT_INIT;

    add_metric(&t, gpu, id, divisor, unit);
    snprintf(buf, CELL, "%s", text_str(&t));
    text_release(&t);
    return buf;
}

/* "12/40 GiB", "55/400 W". */
static const char *pair(char buf[CELL], const struct reader_gpu *gpu, enum metric used,
                        enum metric most, int64_t divisor, const char *unit)
{
    struct text t = TEXT_INIT;

    add_metric(&t, gpu, used, divisor, "/");
    if (t.length && text_str(&t)[t.length - 1] != '/')
        text_add(&t, "/");
    add_metric(&t, gpu, most, divisor, unit);
    snprintf(buf, CELL, "%s", text_str(&t));
    text_release(&t);
    return buf;
}

/* What holds, on one line. */
static void add_faults(struct text *out, const struct facts *conditions)
{
    for (int i = 0; (i = next_fact(conditions, i, "fault")) >= 0; i++)
        if (strcmp(conditions->lines[i].value, "none"))
            text_addf(out, "%s%s", out->length ? "," : "", conditions->lines[i].value);
}

static void print_gpu(const struct scene *s, int i)
{
    const struct facts identity = facts_of_gpu(&s->inventory, i),
                       conditions = facts_of_gpu(&s->conditions, i);
    char temperature[CELL], util[CELL], memory[CELL], power[CELL], pstate[CELL];
    const char *name = fact_or_dash(&identity, "name");
    struct text fault = TEXT_INIT;
    struct reader_gpu gpu;
    int r = reader_gpu(s->client->reader, i, &gpu);

    add_faults(&fault, &conditions);
    if (r < 0 || gpu.lost)
        printf("%3d  %-26.26s %6s %5s %4s %15s %12s  %s\n", i, name, "-", "-", "-", "-", "-",
               r < 0 ? strerror(-r) : "lost");
    else
        printf("%3d  %-26.26s %6s %5s %4s %15s %12s  %s\n", i, name,
               cell(util, &gpu, METRIC_UTILIZATION_GPU, 1, "%"),
               cell(temperature, &gpu, METRIC_TEMPERATURE_GPU, 1, "C"),
               cell(pstate, &gpu, METRIC_PSTATE, 1, ""),
               pair(memory, &gpu, METRIC_MEMORY_USED, METRIC_MEMORY_TOTAL, 1 << 20, " MiB"),
               pair(power, &gpu, METRIC_POWER_USAGE, METRIC_POWER_LIMIT, 1000, " W"),
               text_str(&fault));
    text_release(&fault);
}

static void print_workload(const struct facts *f)
{
    int64_t total = progress_of(f, "total_ns", 0);
    char done[16] = "-";

    if (total)
        snprintf(done, sizeof(done), "%d%%",
                 (int)(100.0 * (double)progress_of(f, "progress_ns", 0) / (double)total));
    printf("%-26.26s %-10.10s %5s %5" PRId64 "%% %9" PRId64 " MiB  %-20.20s %s\n", f->lines->whose,
           fact_or_dash(f, "devices"), done, progress_of(f, "utilization_percent", 0),
           progress_of(f, "memory_bytes", 0) >> 20, fact_or_dash(f, "pod"),
           fact_or_dash(f, "state"));
}

static void print_table(const struct scene *s)
{
    struct facts f;

    printf("%3s  %-26s %6s %5s %4s %15s %12s  %s\n", "GPU", "NAME", "UTIL", "TEMP", "PERF",
           "MEMORY", "POWER", "FAULT");
    for (int i = 0; i < s->node.gpu_count; i++)
        print_gpu(s, i);
    if (!s->workloads.count)
        return;
    printf("\n%-26s %-10s %5s %6s %13s  %-20s %s\n", "WORKLOAD", "GPUS", "DONE", "UTIL", "MEMORY",
           "POD", "STATE");
    for (int at = 0; at < s->workloads.count; at += f.count) {
        f = facts_at(&s->workloads, at);
        print_workload(&f);
    }
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void add_json(struct text *out, const char *s)
{
    text_add(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_addf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            text_addf(out, "\\u%04x", (unsigned char)*s);
        else
            text_addn(out, s, 1);
    }
    text_add(out, "\"");
}

/* "key": what is known of it; null where that is nothing. */
static void add_json_fact(struct text *out, const struct facts *f, const char *key)
{
    const char *value = fact(f, key);

    text_addf(out, "\"%s\":", key);
    if (!value || !strcmp(value, "-"))
        text_add(out, "null");
    else
        add_json(out, value);
}

static void add_json_metrics(struct text *out, const struct reader_gpu *gpu)
{
    const char *before = "";
    int64_t value;

    for (int id = 0; id < METRIC_COUNT; id++) {
        int r = metric_read(&gpu->sample, (enum metric)id, &value);

        if (r == -ENODATA)
            continue;
        text_addf(out, "%s\"%s\":", before, metric_infos[id].name);
        if (r < 0)
            text_add(out, "null");
        else
            unit_show(out, metric_infos[id].unit, value);
        before = ",";
    }
}

static void add_json_faults(struct text *out, const struct facts *conditions)
{
    const char *before = "";

    text_add(out, "\"faults\":[");
    for (int i = 0; (i = next_fact(conditions, i, "fault")) >= 0; i++)
        if (strcmp(conditions->lines[i].value, "none")) {
            text_add(out, before);
            add_json(out, conditions->lines[i].value);
            before = ",";
        }
    text_add(out, "]");
}

static void add_json_gpu(const struct scene *s, struct text *out, int i)
{
    static const char *const texts[] = { "uuid", "name", "bus_id", "minor_number" };
    const struct facts identity = facts_of_gpu(&s->inventory, i),
                       conditions = facts_of_gpu(&s->conditions, i);
    struct reader_gpu gpu = { 0 };
    int r = reader_gpu(s->client->reader, i, &gpu);

    text_addf(out, "{\"index\":%d,", i);
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        add_json_fact(out, &identity, texts[k]);
        text_add(out, ",");
    }
    add_json_fact(out, &conditions, "profile");
    text_addf(out, ",\"lost\":%s,", r < 0 || gpu.lost ? "true" : "false");
    add_json_faults(out, &conditions);
    text_add(out, ",\"metrics\":{");
    if (r == 0 && !gpu.lost)
        add_json_metrics(out, &gpu);
    text_add(out, "}}");
}

/* "running", or "ended 1 Limit time reached, terminated". */
static void add_json_state(struct text *out, const char *state)
{
    char *message;
    long code;

    if (strncmp(state, "ended ", 6)) {
        text_add(out, "\"state\":");
        add_json(out, state);
        return;
    }
    code = strtol(state + 6, &message, 10);
    text_addf(out, "\"state\":\"ended\",\"exit_code\":%ld,\"message\":", code);
    add_json(out, *message ? message + 1 : message);
}

static void add_json_workload(struct text *out, const struct facts *f)
{
    static const char *const texts[] = { "namespace", "pod", "container", "activity" };
    static const char *const numbers[] = { "progress_ns", "total_ns", "memory_bytes",
                                           "utilization_percent" };
    const char *devices = fact_or_dash(f, "devices"), *pid = fact(f, "pid");

    text_add(out, "{\"name\":");
    add_json(out, f->lines->whose);
    text_addf(out, ",\"devices\":[%s],", strcmp(devices, "none") ? devices : "");
    add_json_state(out, fact_or_dash(f, "state"));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t n = progress_of(f, numbers[i], -1);

        if (n >= 0)
            text_addf(out, ",\"%s\":%" PRId64, numbers[i], n);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        text_add(out, ",");
        add_json_fact(out, f, texts[i]);
    }
    text_addf(out, ",\"pid\":%s}", pid ? pid : "0");
}

static void print_json(const struct scene *s)
{
    struct text out = TEXT_INIT;
    struct facts f;

    text_addf(&out, "{\"generation\":%" PRIu64 ",\"time_ns\":%" PRId64 ",\"gpus\":[",
              s->node.generation, s->node.now_ns);
    for (int i = 0; i < s->node.gpu_count; i++) {
        text_add(&out, i ? "," : "");
        add_json_gpu(s, &out, i);
    }
    text_add(&out, "],\"workloads\":[");
    for (int at = 0; at < s->workloads.count; at += f.count) {
        f = facts_at(&s->workloads, at);
        text_add(&out, at ? "," : "");
        add_json_workload(&out, &f);
    }
    text_add(&out, "]}");
    puts(text_str(&out));
    text_release(&out);
}

/* --- once, or again and again ---------------------------------------------------------------- */

static int show(const struct client *c, bool json, struct why *why)
{
    struct scene scene;
    int r = scene_read(c, &scene);

    if (r == 0)
        (json ? print_json : print_table)(&scene);
    scene_release(&scene);
    fflush(stdout);
    return r < 0
               ? why_set(why, -r, client_is_lost(r) ? "the daemon of %s is gone" : "cannot read %s",
                         c->root)
               : 0;
}

static int watch(const struct client *c, const struct options *o, struct why *why)
{
    struct timespec pause = { o->every_ns / NS_PER_S, o->every_ns % NS_PER_S };
    bool terminal = isatty(STDOUT_FILENO) && !o->json;
    int r;

    for (;;) {
        if (terminal)
            printf("\033[H\033[2J");
        r = show(c, o->json, why);
        if (r < 0)
            return r;
        if (!terminal && !o->json)
            printf("\n");
        nanosleep(&pause, NULL);
    }
}

static void explain(const struct client *c)
{
    client_say(c,
               "for gpu in %s/gpus/[0-9]*; do\n"
               "    cat \"$gpu\"/identity/name \"$gpu\"/sample \"$gpu\"/control/fault\n"
               "done\n"
               "for workload in %s/workloads/*/; do\n"
               "    cat \"$workload\"devices \"$workload\"progress \"$workload\"state\n"
               "done",
               c->root, c->root);
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct client c;
    struct why why = { 0 };
    int r = client_open(&c, &o->client, &why);

    if (r == 0 && c.explain)
        explain(&c);
    else if (r == 0)
        r = o->watch ? watch(&c, o, &why) : show(&c, o->json, &why);
    client_close(&c);
    return r < 0 ? client_fail(r, &why) : 0;
}

static const struct options defaults = { .every_ns = NS_PER_S };

static const struct command_option options[] = {
    OPTION("json", 'j', NULL, OPTION_FLAG, struct options, json, "everything, as JSON in one line"),
    OPTION("watch", 'w', NULL, OPTION_FLAG, struct options, watch, "again and again"),
    OPTION("every", 0, "TIME", OPTION_TIME, struct options, every_ns,
           "how often with --watch; default: 1s"),
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_exit exits[] = {
    { "0", "it was shown" },
    { "1", "there is no mount, and a sentence on standard error says so" },
    { "2", "the daemon is gone" },
    { 0 },
};

const struct command command_status = {
    .name = "status",
    .summary = "show GPUs and workloads",
    .text = "Shows the GPUs of a mount, what is wrong with them, and its workloads.",
    .more =
        "A reading that a GPU does not have is a dash, and left out of JSON; a sensor that fails is "
        "`error`, and null in JSON.",
    .options = options,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .exits = exits,
    .examples = { "fakegpufs status --watch",
                  "fakegpufs status --json | jq '.gpus[].metrics.power_usage_mw'" },
    .run = run,
};
