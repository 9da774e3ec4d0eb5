/*
 * Monitor: `dmon` and `pmon`, a line for each GPU or process at each period.
 *
 * Columns are rows of a table; -s chooses groups of them by letter, in the order of the letters. What there is
 * not is a "-".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/processes.h"
#include "mocknvml/smi/profiling.h"
#include "mocknvml/smi/smi.h"
#include "mocknvml/smi/text.h"

enum { COLUMNS_MAX = 40 };

/* What both have in common. */
struct monitor {
    const char *ids, *delay, *count, *select, *file_name, *stamps, *format, *metrics, *scope;
    FILE *file;
    long period_ms, passes; /* passes 0: without end */
    bool date, time, csv, no_header, no_units;
    struct profiling profiling;
};

/* What has to be remembered from one line of a GPU to the next. */
struct previous {
    nvmlViolationTime_t power, thermal;
    unsigned long long seen_us;
    struct profiling_state profiling;
};

/* --- columns ------------------------------------------------------------------------------------ */

struct column {
    char group;
    const char *name, *unit;
    getter *get; /* NULL: a violation, which is a change since the line before */
    int argument;
    long divisor;
};

static const struct column device_columns[] = {
    { 'p', "pwr", "W", get_power_draw, 0, 1 },
    { 'p', "gtemp", "C", get_temperature, 0, 1 },
    { 'p', "mtemp", "C", get_field, FIELD_MEMORY_TEMPERATURE, 1 },
    { 'u', "sm", "%", get_engine, ENGINE_GPU, 1 },
    { 'u', "mem", "%", get_engine, ENGINE_MEMORY, 1 },
    { 'u', "enc", "%", get_percent, PERCENT_OF(DeviceGetEncoderUtilization), 1 },
    { 'u', "dec", "%", get_percent, PERCENT_OF(DeviceGetDecoderUtilization), 1 },
    { 'u', "jpg", "%", get_percent, PERCENT_OF(DeviceGetJpgUtilization), 1 },
    { 'u', "ofa", "%", get_percent, PERCENT_OF(DeviceGetOfaUtilization), 1 },
    { 'c', "mclk", "MHz", get_clock, CLOCK(CLOCK_CURRENT, NVML_CLOCK_MEM), 1 },
    { 'c', "pclk", "MHz", get_clock, CLOCK(CLOCK_CURRENT, NVML_CLOCK_GRAPHICS), 1 },
    { 'v', "pviol", "%", NULL, NVML_PERF_POLICY_POWER, 1 },
    { 'v', "tviol", "bool", NULL, NVML_PERF_POLICY_THERMAL, 1 },
    { 'm', "fb", "MB", get_memory, MEMORY_USED, 1 },
    { 'm', "bar1", "MB", get_bar1, MEMORY_USED, 1 },
    { 'm', "ccpm", "MB", get_protected, MEMORY_USED, 1 },
    { 'e', "sbecc", "errs", get_errors_total, ERRORS_CORRECTED | ERRORS_AGGREGATE, 1 },
    { 'e', "dbecc", "errs", get_errors_total, ERRORS_UNCORRECTED | ERRORS_AGGREGATE, 1 },
    { 'e', "pci", "errs", get_field, FIELD_PCIE_REPLAYS, 1 },
    { 't', "rxpci", "MB/s", get_throughput, NVML_PCIE_UTIL_RX_BYTES, 1000 },
    { 't', "txpci", "MB/s", get_throughput, NVML_PCIE_UTIL_TX_BYTES, 1000 },
};

enum { COLUMN_COUNT = sizeof(device_columns) / sizeof(device_columns[0]) };

/* --- lines -------------------------------------------------------------------------------------- */

static void put(const struct monitor *m, int width, const char *text)
{
    if (m->csv)
        fprintf(m->file, ", %s", text);
    else
        fprintf(m->file, " %*s", width, text);
}

/* The date, the time and the GPU that a line begins with. */
static void begin(const struct monitor *m, char mark, const char *date, const char *clock,
                  const char *gpu)
{
    if (m->csv) {
        fprintf(m->file, "%s%s%s%s%s%s", mark == '#' ? "#" : "", m->date ? date : "",
                m->date ? ", " : "", m->time ? clock : "", m->time ? ", " : "", gpu);
        return;
    }
    if (!m->date && !m->time) {
        fprintf(m->file, "%c %3s", mark, gpu);
        return;
    }
    fputc(mark, m->file);
    if (m->date)
        fprintf(m->file, "%-12s", date);
    if (m->time)
        fprintf(m->file, "%-13s", clock);
    fprintf(m->file, "%3s", gpu);
}

static void begin_now(const struct monitor *m, const struct gpu *gpu)
{
    char date[16], clock[16], index[16];
    time_t now = time(NULL);
    struct tm local;

    localtime_r(&now, &local);
    strftime(date, sizeof(date), "%Y%m%d", &local);
    strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    snprintf(index, sizeof(index), "%u", gpu->index);
    begin(m, ' ', date, clock, index);
}

static void end(const struct monitor *m)
{
    fputs(m->csv ? "\n" : " \n", m->file);
}

/* --- dmon --------------------------------------------------------------------------------------- */

static bool is_selected(const struct monitor *m, char group)
{
    return strchr(m->select, group) != NULL;
}

/* The columns that -s chose, in its order; a letter that comes again adds nothing. */
static unsigned int columns_chosen(const struct monitor *m, const struct column **chosen)
{
    unsigned int count = 0;

    for (const char *letter = m->select; *letter; letter++) {
        bool is_first = strchr(m->select, *letter) == letter;

        for (size_t i = 0; is_first && i < COLUMN_COUNT; i++)
            if (device_columns[i].group == *letter)
                chosen[count++] = &device_columns[i];
    }
    return count;
}

static void device_head(const struct monitor *m)
{
    const struct column *chosen[COLUMN_COUNT];
    unsigned int count = columns_chosen(m, chosen);

    for (int units = 0; units <= 1 && !m->no_header; units++) {
        if (units && m->no_units)
            break;
        begin(m, '#', units ? "YYYYMMDD" : "Date", units ? "HH:MM:SS" : "Time",
              units ? "Idx" : "gpu");
        for (unsigned int i = 0; i < count; i++)
            put(m, 6, units ? chosen[i]->unit : chosen[i]->name);
        for (unsigned int i = 0; i < m->profiling.count; i++)
            put(m, 6,
                units ? profiling_unit(m->profiling.ids[i]) : profiling_name(m->profiling.ids[i]));
        end(m);
    }
}

/* Percent of the time since the line before that power held clocks back; whether heat did. */
static nvmlReturn_t violation(struct gpu *gpu, nvmlPerfPolicyType_t policy,
                              nvmlViolationTime_t *before, char *text)
{
    nvmlViolationTime_t now = { 0 };
    nvmlReturn_t result = ASK(DeviceGetViolationStatus, gpu->device, policy, &now);
    unsigned long long violated = now.violationTime - before->violationTime;
    unsigned long long passed_ns = (now.referenceTime - before->referenceTime) * 1000;
    bool is_first = before->referenceTime == 0;

    *before = now;
    if (is_first || passed_ns == 0)
        return say(result, text, "0");
    if (policy == NVML_PERF_POLICY_THERMAL)
        return say(result, text, "%d", violated > 0);
    return say(result, text, "%llu", violated >= passed_ns ? 100 : violated * 100 / passed_ns);
}

static void put_profiling(const struct monitor *m, struct gpu *gpu, struct previous *previous)
{
    double values[PROFILING_MAX];
    bool has[PROFILING_MAX];

    profiling_read(&m->profiling, gpu, &previous->profiling, values, has);
    for (unsigned int i = 0; i < m->profiling.count; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%.0f", has[i] ? values[i] : 0);
        put(m, 6, has[i] ? text : "-");
    }
}

static void device_line(const struct monitor *m, struct gpu *gpu, struct previous *previous)
{
    const struct column *chosen[COLUMN_COUNT];
    unsigned int count = columns_chosen(m, chosen);

    begin_now(m, gpu);
    for (unsigned int i = 0; i < count; i++) {
        const struct column *c = chosen[i];
        char text[TEXT_BYTES] = "", shown[32];
        nvmlReturn_t result;

        if (c->get)
            result = c->get(gpu, c->argument, text);
        else
            result = violation(gpu, (nvmlPerfPolicyType_t)c->argument,
                               c->argument == NVML_PERF_POLICY_POWER ? &previous->power
                                                                     : &previous->thermal,
                               text);
        snprintf(shown, sizeof(shown), "%ld", strtol(text, NULL, 10) / c->divisor);
        put(m, 6, result == NVML_SUCCESS ? shown : "-");
    }
    put_profiling(m, gpu, previous);
    end(m);
}

/* --- pmon --------------------------------------------------------------------------------------- */

static void process_head(const struct monitor *m)
{
    static const char *const names[] = { "sm", "mem", "enc", "dec", "jpg", "ofa" };

    for (int units = 0; units <= 1 && !m->no_header; units++) {
        begin(m, '#', units ? "YYYYMMDD" : "Date", units ? "HH:MM:SS" : "Time",
              units ? "Idx" : "gpu");
        put(m, 11, units ? "#" : "pid");
        put(m, 6, units ? "C/G" : "type");
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && is_selected(m, 'u'); i++)
            put(m, 6, units ? "%" : names[i]);
        if (is_selected(m, 'm')) {
            put(m, 6, units ? "MB" : "fb");
            put(m, 6, units ? "MB" : "ccpm");
        }
        fprintf(m->file, m->csv ? ", %s" : "    %s", units ? "name" : "command");
        end(m);
    }
}

static void put_percent(const struct monitor *m, unsigned int percent, bool shows_zero)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", percent);
    put(m, 6, percent <= 100 && (percent || shows_zero) ? text : "-");
}

static void put_command(const struct monitor *m, const char *name)
{
    enum { WIDTH = 15 };
    size_t columns = text_columns(name);
    int bytes = (int)(text_after(name, WIDTH) - name);

    if (m->csv)
        fprintf(m->file, ", %s\n", name);
    else
        fprintf(m->file, "    %.*s%*s\n", bytes, name, (int)(columns < WIDTH ? WIDTH - columns : 0),
                "");
}

static void process_line(const struct monitor *m, const struct gpu *gpu, const char *pid,
                         const char *type, const struct usage *usage, const char *memory,
                         const char *name)
{
    static const struct usage none;
    const struct usage *u = usage ? usage : &none;
    const unsigned int percents[] = { u->sm, u->memory, u->encoder, u->decoder, u->jpeg, u->ofa };
    bool ran = u->sm || u->memory; /* then also a 0 of these two is shown */

    begin_now(m, gpu);
    put(m, 10, pid);
    put(m, 5, type);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]) && is_selected(m, 'u'); i++)
        put_percent(m, percents[i], ran && i < 2);
    if (is_selected(m, 'm')) {
        put(m, 6, memory);
        put(m, 6, *memory == '-' ? "-" : "0");
    }
    put_command(m, name);
}

/* The newest sample of that process. */
static const struct usage *find_usage(const struct usages *usages, unsigned int pid)
{
    const struct usage *found = NULL;

    for (unsigned int i = 0; i < usages->count; i++)
        if (usages->items[i].pid == pid && (!found || usages->items[i].time_us > found->time_us))
            found = &usages->items[i];
    return found;
}

static void process_lines(const struct monitor *m, struct gpu *gpu, struct previous *previous)
{
    struct processes list;
    struct usages usages;

    processes_get(gpu, PROCESS_ANY, &list);
    usages_get(gpu, previous->seen_us, &usages);
    for (unsigned int i = 0; i < list.count; i++) {
        const struct process *p = &list.items[i];
        char name[4096], pid[16], memory[32] = "-";

        process_name(p->pid, name, sizeof(name));
        snprintf(pid, sizeof(pid), "%u", p->pid);
        if (p->bytes != ~0ull)
            snprintf(memory, sizeof(memory), "%llu", p->bytes >> 20);
        process_line(m, gpu, pid, process_type(p), find_usage(&usages, p->pid), memory,
                     process_command(name));
    }
    if (!list.count)
        process_line(m, gpu, "-", "-", NULL, "-", "-");
    processes_release(&list);
    usages_release(&usages);
}

/* --- both --------------------------------------------------------------------------------------- */

/* Words that --format and -o may have; false for another. */
static bool parse_words(struct monitor *m)
{
    for (const char *c = m->stamps ? m->stamps : ""; *c; c++) {
        m->date |= *c == 'D';
        m->time |= *c == 'T';
        if (*c != 'D' && *c != 'T')
            return false;
    }
    for (const char *word = m->format; word && *word; word += strcspn(word, ",")) {
        word += *word == ',';
        if (!strncmp(word, "csv", 3))
            m->csv = true;
        else if (!strncmp(word, "noheader", 8))
            m->no_header = true;
        else if (!strncmp(word, "nounit", 6))
            m->no_units = true;
        else
            return false;
    }
    return true;
}

static int check(struct monitor *m, const char *command, const char *groups)
{
    long seconds = 1;

    if (m->delay && !arguments_number(m->delay, 1, 3600, &seconds))
        return complain("%s: '%s' is not a delay: it should be 1 to 3600 seconds.", command,
                        m->delay);
    if (m->count && !arguments_number(m->count, 1, 1000000000, &m->passes))
        return complain("%s: '%s' is not a count: it should be 1 or more.", command, m->count);
    if (!*m->select || strspn(m->select, groups) != strlen(m->select))
        return complain("%s: '%s' is not a selection: it should be some of the letters %s.",
                        command, m->select, groups);
    if (!parse_words(m))
        return complain("%s: -o takes D and T, --format takes csv, noheader and nounit.", command);
    if (m->metrics && !profiling_parse(m->metrics, &m->profiling))
        return complain("%s: '%s' is not a list of metrics: it should be numbers of NVML's, "
                        "separated by commas.",
                        command, m->metrics);
    if (m->scope && strcmp(m->scope, "d"))
        return complain("%s: --gpm-options takes d: metrics are of whole GPUs here.", command);
    m->period_ms = seconds * 1000;
    return 0;
}

static int monitor(struct monitor *m, const char *command, void (*head)(const struct monitor *),
                   void (*line)(const struct monitor *, struct gpu *, struct previous *))
{
    struct previous *previous = NULL;
    struct gpus gpus = { 0 };
    int status = gpus_start(&gpus, m->ids);

    if (status == 0)
        previous = calloc(gpus.count, sizeof(*previous));
    m->file = m->file_name ? fopen(m->file_name, "w") : stdout;
    if (status == 0 && !m->file)
        status = complain("%s: cannot write to '%s'.", command, m->file_name);
    if (status == 0 && previous)
        head(m);
    for (long pass = 0; status == 0 && previous && (m->passes == 0 || pass < m->passes); pass++) {
        if (pass && !wait_period(m->file, m->period_ms))
            break;
        api_hold();
        for (unsigned int i = 0; i < gpus.count; i++) {
            gpu_fresh(&gpus.items[i]);
            line(m, &gpus.items[i], &previous[i]);
        }
        api_release();
    }
    if (m->file && m->file != stdout)
        status = output_close(m->file, status);
    for (unsigned int i = 0; previous && i < gpus.count; i++)
        profiling_release(&previous[i].profiling);
    free(previous);
    gpus_close(&gpus);
    return status;
}

#define COMMON_ARGUMENTS(m)                                                                    \
    { "-i", "--id", NULL, &(m).ids, "Indices, UUIDs or bus ids, separated by commas." },       \
        { "-d", "--delay", NULL, &(m).delay, "Seconds between lines, 1 when not given." },     \
        { "-c", "--count", NULL, &(m).count, "How many times, without end when not given." },  \
        { "-o", "--options", NULL, &(m).stamps, "D and T: put the date and the time first." }, \
        { "-f", "--filename", NULL, &(m).file_name, "Write to this file." },                   \
    {                                                                                          \
        NULL, "--format", NULL, &(m).format, "csv, noheader, nounit, separated by commas."     \
    }

int monitor_devices(int argc, char **argv)
{
    struct monitor m = { .select = "puc" };
    const struct argument arguments[] = {
        COMMON_ARGUMENTS(m),
        { "-s", "--select", NULL, &m.select,
          "p power and heat, u utilization, c clocks, v violations, m memory, e errors, t PCIe." },
        { NULL, "--gpm-metrics", NULL, &m.metrics,
          "Numbers of metrics of performance monitoring, since the line before: 2 SMs, 3 their "
          "occupancy, 5 tensor cores, 10 memory, …" },
        { NULL, "--gpm-options", NULL, &m.scope, "d: of whole GPUs." },
        { 0 },
    };
    int status = arguments_parse(arguments, "dmon", argc, argv);

    if (status == 0)
        status = check(&m, "dmon", "pucvmet");
    return status < 0 ? 0 : status ? status : monitor(&m, "dmon", device_head, device_line);
}

int monitor_processes(int argc, char **argv)
{
    struct monitor m = { .select = "u" };
    const struct argument arguments[] = {
        COMMON_ARGUMENTS(m),
        { "-s", "--select", NULL, &m.select, "u utilization, m memory." },
        { 0 },
    };
    int status = arguments_parse(arguments, "pmon", argc, argv);

    if (status == 0)
        status = check(&m, "pmon", "um");
    return status < 0 ? 0 : status ? status : monitor(&m, "pmon", process_head, process_lines);
}
