/*
 * fakegpufs status: a mount's GPUs and workloads at a glance, or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/cli/client.h"
#include "sim/unit.h"

struct options {
    struct client_options client;
    bool json, watch;
    int64_t every_ns;
};

/* Names of all workloads, sorted. */
struct names {
    char **items;
    int count;
};

static void names_release(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct names){ 0 };
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_workloads(const struct client *c, struct names *names)
{
    int fd = reader_open_file(c->reader, "workloads");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    *names = (struct names){ 0 };
    if (!dir)
        return fd < 0 ? fd : -errno;
    while (r == 0 && (entry = readdir(dir))) {
        char **more;

        if (*entry->d_name == '.')
            continue;
        more = realloc(names->items, (size_t)(names->count + 1) * sizeof(*more));
        r = more ? 0 : -ENOMEM;
        if (more) {
            names->items = more;
            more[names->count] = strdup(entry->d_name);
            r = more[names->count] ? 0 : -ENOMEM;
            names->count += r == 0;
        }
    }
    closedir(dir);
    if (names->count)
        qsort(names->items, (size_t)names->count, sizeof(*names->items), compare_names);
    return r;
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

/* Several lines on one. */
static void read_line(const struct client *c, struct text *out, int gpu, const char *file)
{
    if (client_read(c, out, "gpus/%d/%s", gpu, file) < 0)
        text_add(out, "-");
    for (char *p = out->data; p && (p = strchr(p, '\n'));)
        *p = ',';
}

static void print_gpu(const struct client *c, int i)
{
    struct text name = TEXT_INIT, fault = TEXT_INIT;
    char temperature[CELL], util[CELL], memory[CELL], power[CELL], pstate[CELL];
    struct reader_gpu gpu;
    int r = reader_gpu(c->reader, i, &gpu);

    read_line(c, &name, i, "identity/name");
    read_line(c, &fault, i, "control/fault");
    if (r < 0 || gpu.lost)
        printf("%3d  %-26.26s %6s %5s %4s %15s %12s  %s\n", i, text_str(&name), "-", "-", "-", "-",
               "-", r < 0 ? strerror(-r) : "lost");
    else
        printf("%3d  %-26.26s %6s %5s %4s %15s %12s  %s\n", i, text_str(&name),
               cell(util, &gpu, METRIC_UTILIZATION_GPU, 1, "%"),
               cell(temperature, &gpu, METRIC_TEMPERATURE_GPU, 1, "C"),
               cell(pstate, &gpu, METRIC_PSTATE, 1, ""),
               pair(memory, &gpu, METRIC_MEMORY_USED, METRIC_MEMORY_TOTAL, 1 << 20, " MiB"),
               pair(power, &gpu, METRIC_POWER_USAGE, METRIC_POWER_LIMIT, 1000, " W"),
               strcmp(text_str(&fault), "none") ? text_str(&fault) : "");
    text_release(&name);
    text_release(&fault);
}

struct workload_view {
    struct text state, devices, progress, pod;
};

static void view_release(struct workload_view *v)
{
    text_release(&v->state);
    text_release(&v->devices);
    text_release(&v->progress);
    text_release(&v->pod);
}

/* Whether it is still there. */
static bool view_workload(const struct client *c, const char *name, struct workload_view *v)
{
    *v = (struct workload_view){ 0 };
    if (client_read(c, &v->state, "workloads/%s/state", name) == 0 &&
        client_read(c, &v->devices, "workloads/%s/devices", name) == 0 &&
        client_read(c, &v->progress, "workloads/%s/progress", name) == 0 &&
        client_read(c, &v->pod, "workloads/%s/pod", name) == 0)
        return true;
    view_release(v);
    return false;
}

static void print_workload(const struct client *c, const char *name)
{
    struct workload_view v;
    char done[16] = "-";
    int64_t total;

    if (!view_workload(c, name, &v))
        return;
    total = client_line_number(text_str(&v.progress), "total_ns", 0);
    if (total)
        snprintf(done, sizeof(done), "%d%%",
                 (int)(100.0 * (double)client_line_number(text_str(&v.progress), "progress_ns", 0) /
                       (double)total));
    printf("%-26.26s %-10.10s %5s %5" PRId64 "%% %9" PRId64 " MiB  %-20.20s %s\n", name,
           text_str(&v.devices), done,
           client_line_number(text_str(&v.progress), "utilization_percent", 0),
           client_line_number(text_str(&v.progress), "memory_bytes", 0) >> 20, text_str(&v.pod),
           text_str(&v.state));
    view_release(&v);
}

static void print_table(const struct client *c, const struct reader_node *node,
                        const struct names *names)
{
    printf("%3s  %-26s %6s %5s %4s %15s %12s  %s\n", "GPU", "NAME", "UTIL", "TEMP", "PERF",
           "MEMORY", "POWER", "FAULT");
    for (int i = 0; i < node->gpu_count; i++)
        print_gpu(c, i);
    if (!names->count)
        return;
    printf("\n%-26s %-10s %5s %6s %13s  %-20s %s\n", "WORKLOAD", "GPUS", "DONE", "UTIL", "MEMORY",
           "POD", "STATE");
    for (int i = 0; i < names->count; i++)
        print_workload(c, names->items[i]);
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

/* "key": the file's text; null where it cannot be read. */
static void add_json_file(const struct client *c, struct text *out, const char *key,
                          const char *directory, const char *file)
{
    struct text value = TEXT_INIT;

    text_addf(out, "\"%s\":", key);
    if (client_read(c, &value, "%s/%s", directory, file) < 0 || !strcmp(text_str(&value), "-"))
        text_add(out, "null");
    else
        add_json(out, text_str(&value));
    text_release(&value);
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

/* What holds, one in a line, as an array. */
static void add_json_faults(const struct client *c, struct text *out, int i)
{
    struct text faults = TEXT_INIT;
    char *rest, *line;
    const char *before = "";

    text_add(out, "\"faults\":[");
    if (client_read(c, &faults, "gpus/%d/control/fault", i) == 0 &&
        strcmp(text_str(&faults), "none"))
        for (rest = faults.data; (line = strsep(&rest, "\n")); before = ",") {
            text_add(out, before);
            add_json(out, line);
        }
    text_add(out, "]");
    text_release(&faults);
}

static void add_json_gpu(const struct client *c, struct text *out, int i)
{
    static const char *const identity[] = { "uuid", "name", "bus_id", "minor_number" };
    struct reader_gpu gpu = { 0 };
    int r = reader_gpu(c->reader, i, &gpu);
    char directory[32];

    snprintf(directory, sizeof(directory), "gpus/%d/identity", i);
    text_addf(out, "{\"index\":%d,", i);
    for (size_t k = 0; k < sizeof(identity) / sizeof(identity[0]); k++) {
        add_json_file(c, out, identity[k], directory, identity[k]);
        text_add(out, ",");
    }
    snprintf(directory, sizeof(directory), "gpus/%d/control", i);
    add_json_file(c, out, "profile", directory, "profile");
    text_addf(out, ",\"lost\":%s,", r < 0 || gpu.lost ? "true" : "false");
    add_json_faults(c, out, i);
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

/* Whether it was there. */
static bool add_json_workload(const struct client *c, struct text *out, const char *name)
{
    static const char *const files[] = { "namespace", "pod", "container", "activity" };
    static const char *const numbers[] = { "progress_ns", "total_ns", "memory_bytes",
                                           "utilization_percent" };
    struct workload_view v;
    struct text directory = TEXT_INIT;

    if (!view_workload(c, name, &v))
        return false;
    text_addf(&directory, "workloads/%s", name);
    text_add(out, "{\"name\":");
    add_json(out, name);
    text_addf(out, ",\"devices\":[%s],",
              strcmp(text_str(&v.devices), "none") ? text_str(&v.devices) : "");
    add_json_state(out, text_str(&v.state));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t n = client_line_number(text_str(&v.progress), numbers[i], -1);

        if (n >= 0)
            text_addf(out, ",\"%s\":%" PRId64, numbers[i], n);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        text_add(out, ",");
        add_json_file(c, out, files[i], text_str(&directory), files[i]);
    }
    text_addf(out, ",\"pid\":%" PRId64 "}", client_number(c, 0, "workloads/%s/pid", name));
    text_release(&directory);
    view_release(&v);
    return true;
}

static void print_json(const struct client *c, const struct reader_node *node,
                       const struct names *names)
{
    struct text out = TEXT_INIT, one = TEXT_INIT;
    const char *before = "";

    text_addf(&out, "{\"generation\":%" PRIu64 ",\"time_ns\":%" PRId64 ",\"gpus\":[",
              node->generation, node->now_ns);
    for (int i = 0; i < node->gpu_count; i++) {
        text_add(&out, i ? "," : "");
        add_json_gpu(c, &out, i);
    }
    text_add(&out, "],\"workloads\":[");
    for (int i = 0; i < names->count; i++) {
        text_cut(&one, 0);
        if (add_json_workload(c, &one, names->items[i])) {
            text_addf(&out, "%s%s", before, text_str(&one));
            before = ",";
        }
    }
    text_add(&out, "]}");
    puts(text_str(&out));
    text_release(&one);
    text_release(&out);
}

/* --- once, or again and again ---------------------------------------------------------------- */

static int show(const struct client *c, bool json, struct why *why)
{
    struct reader_node node;
    struct names names = { 0 };
    int r = reader_node(c->reader, &node);

    if (r == 0)
        r = list_workloads(c, &names);
    if (r == 0)
        (json ? print_json : print_table)(c, &node, &names);
    names_release(&names);
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
