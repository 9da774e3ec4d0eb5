/*
 * fakegpufs record: the values of GPUs at each generation, as CSV or JSON lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fusefs/cli/drive.h"
#include "fusefs/cli/recording.h"
#include "fusefs/cli/stop.h"

enum { WAIT_LEAST_NS = 200000, WAIT_MOST_NS = 20000000, TRIES = 1000, CLOCK_EVERY = 64 };

struct options {
    struct client_options client;
    const char *metrics, *gpus, *format;
    int64_t interval_ns, duration_ns, count;
};

struct recorder {
    const struct options *o;
    struct client client;
    struct recording_columns columns;
    enum recording_format format;
    FILE *out;
    const char *name; /* of the file */
    int *gpus, gpu_count;
    struct reader_gpu *pages; /* one for each */
    struct reader_node node;
    uint64_t last; /* generation that was looked at last; 0: none */
    int64_t began_ns, next_ns;
    int64_t seen_ns, step_ns; /* when that was; a step of the simulation */
    int64_t pause_ns;         /* between two looks */
    unsigned waits;
    int64_t samples, missed;
};

/* --- what is asked for ----------------------------------------------------------------------- */

static const char *const format_words[] = { "csv", "jsonl", NULL };

static int choose_format(const struct options *o, const char *file, struct recorder *rec,
                         struct why *why)
{
    const char *dot = strrchr(file, '.');

    rec->format = RECORDING_CSV;
    if (o->format
            ? !strcmp(o->format, "jsonl")
            : dot && (!strcmp(dot, ".jsonl") || !strcmp(dot, ".ndjson") || !strcmp(dot, ".json")))
        rec->format = RECORDING_JSON;
    else if (!o->format && strcmp(file, "-") && (!dot || strcmp(dot, ".csv")))
        return why_set(why, EINVAL,
                       "'%s' ends neither in .csv nor in .jsonl: --format says what to write",
                       file);
    return 0;
}

/* "0,2" or "all", by index, UUID or bus id. */
static int choose_gpus(struct recorder *rec, const char *list, struct why *why)
{
    size_t count = 1;
    struct device_name *names;
    struct bind_list wanted;

    for (const char *p = list; *p; p++)
        count += *p == ',';
    names = calloc(count, sizeof(*names));
    if (!names)
        return why_set(why, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        size_t n = strcspn(list, ",");

        snprintf(names[i].text, sizeof(names[i].text), "%.*s", (int)n, list);
        list += n + 1;
    }
    wanted = (struct bind_list){ names, count };
    rec->gpu_count = drive_find_gpus(&rec->client, &wanted, &rec->gpus, why);
    free(names);
    if (rec->gpu_count < 0)
        return rec->gpu_count;
    rec->pages = calloc((size_t)rec->gpu_count + 1, sizeof(*rec->pages));
    return rec->pages ? 0 : why_set(why, ENOMEM, "out of memory");
}

/* --- looking --------------------------------------------------------------------------------- */

static int lost(const struct recorder *rec, int err, struct why *why)
{
    if (client_is_lost(err))
        return why_set(why, -err, "the daemon of %s is gone", rec->client.root);
    return why_set(why, -err, "cannot read %s: %s", rec->client.root, strerror(-err));
}

/* All GPUs of one generation: looked at again until they are. -EAGAIN: they changed too fast. */
static int look(struct recorder *rec)
{
    for (int try = 0; try < TRIES; try++) {
        int r = reader_node(rec->client.reader, &rec->node);
        bool same = true;

        for (int i = 0; r == 0 && same && i < rec->gpu_count; i++) {
            r = reader_gpu(rec->client.reader, rec->gpus[i], &rec->pages[i]);
            same = r == 0 && rec->pages[i].generation == rec->node.generation;
        }
        if (r < 0 || same)
            return r;
    }
    return -EAGAIN;
}

static void wait_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S }, NULL);
}

/* A fraction of what a step takes on the real clock: then none goes by unseen. */
static int64_t patience_ns(struct recorder *rec)
{
    struct drive clock;
    double step = WAIT_MOST_NS;

    if (drive_begin(&clock, &rec->client, NULL) == 0) {
        rec->step_ns = clock.step_ns;
        if (clock.running && clock.speed > 0)
            step = (double)clock.step_ns / clock.speed / 8;
    }
    drive_end(&clock, false, NULL);
    return step < WAIT_LEAST_NS  ? WAIT_LEAST_NS
           : step > WAIT_MOST_NS ? WAIT_MOST_NS
                                 : (int64_t)step;
}

/* Until there is another generation, or one is asked to stop (-EINTR). */
static int next_generation(struct recorder *rec, struct why *why)
{
    while (!stop_asked) {
        struct reader_node node;
        int r = reader_node(rec->client.reader, &node);

        if (r == 0 && node.generation != rec->last) {
            r = look(rec);
            if (r == 0)
                return 0;
        }
        if (r < 0 && r != -EAGAIN)
            return lost(rec, r, why);
        if (rec->waits++ % CLOCK_EVERY == 0) {
            r = drive_alive(&rec->client, why);
            if (r < 0)
                return r;
            rec->pause_ns = patience_ns(rec); /* somebody may have changed the speed */
        }
        wait_ns(rec->pause_ns);
    }
    return -EINTR;
}

/* --- writing --------------------------------------------------------------------------------- */

static int write_sample(struct recorder *rec, struct why *why)
{
    struct text lines = TEXT_INIT;
    int r = 0;

    if (!rec->samples)
        recording_heading(&lines, rec->format, &rec->columns);
    for (int i = 0; i < rec->gpu_count; i++)
        recording_line(&lines, rec->format, &rec->columns, &rec->node, rec->gpus[i],
                       &rec->pages[i]);
    if (lines.failed)
        r = why_set(why, ENOMEM, "out of memory");
    else if (fputs(text_str(&lines), rec->out) < 0 || fflush(rec->out) < 0)
        r = why_set(why, errno, "cannot write %s: %s", rec->name, strerror(errno));
    text_release(&lines);
    rec->samples++;
    return r;
}

/* Steps of the simulation between two looks, where each of them was asked for. */
static void note_generation(struct recorder *rec)
{
    int64_t steps = (rec->node.now_ns - rec->seen_ns) / rec->step_ns;

    if (rec->last && steps > 1 && !rec->o->interval_ns)
        rec->missed += steps - 1;
    rec->last = rec->node.generation;
    rec->seen_ns = rec->node.now_ns;
}

static bool is_due(struct recorder *rec)
{
    if (rec->samples == 0)
        rec->began_ns = rec->next_ns = rec->node.now_ns;
    if (!rec->o->interval_ns)
        return true;
    if (rec->node.now_ns < rec->next_ns)
        return false;
    while (rec->next_ns <= rec->node.now_ns)
        rec->next_ns += rec->o->interval_ns;
    return true;
}

static bool is_over(const struct recorder *rec)
{
    return (rec->o->count && rec->samples >= rec->o->count) ||
           (rec->o->duration_ns && rec->node.now_ns - rec->began_ns >= rec->o->duration_ns);
}

static int record(struct recorder *rec, struct why *why)
{
    for (;;) {
        int r = next_generation(rec, why);

        if (r < 0)
            return r == -EINTR ? 0 : r;
        note_generation(rec);
        r = is_due(rec) ? write_sample(rec, why) : 0;
        if (r < 0 || is_over(rec))
            return r;
    }
}

static void say_what_was_done(const struct recorder *rec)
{
    fprintf(stderr, "fakegpufs record: %" PRId64 " sample%s of %d GPU%s", rec->samples,
            rec->samples == 1 ? "" : "s", rec->gpu_count, rec->gpu_count == 1 ? "" : "s");
    if (rec->missed)
        fprintf(stderr, "; %" PRId64 " step%s of the simulation went by too fast and %s missed",
                rec->missed, rec->missed == 1 ? "" : "s", rec->missed == 1 ? "was" : "were");
    fprintf(stderr, "\n");
}

/* --- the command ----------------------------------------------------------------------------- */

static void explain(const struct recorder *rec)
{
    struct text root = TEXT_INIT;

    shell_quote(&root, rec->client.root);
    printf("cd %s\n", text_str(&root));
    if (rec->format == RECORDING_CSV) {
        struct text heading = TEXT_INIT;

        recording_heading(&heading, rec->format, &rec->columns);
        printf("echo %s", text_str(&heading));
        text_release(&heading);
    }
    printf("while sleep 0.02; do\n    for gpu in gpus/[0-9]*; do\n"
           "        awk -v gpu=${gpu#*/} -v OFS=, '{ v[$1] = $2 }\n"
           "            END { print v[\"generation\"], v[\"time_ns\"] / 1e9, gpu");
    for (int i = 0; i < rec->columns.count; i++)
        printf(", v[\"%s\"]", metric_infos[rec->columns.metrics[i]].name);
    printf(" }' $gpu/sample\n    done\ndone | uniq > ");
    text_cut(&root, 0);
    shell_quote(&root, rec->name);
    printf("%s\n", text_str(&root));
    text_release(&root);
}

static int open_output(struct recorder *rec, struct why *why)
{
    rec->out = strcmp(rec->name, "-") ? fopen(rec->name, "we") : stdout;
    return rec->out ? 0 : why_set(why, errno, "cannot write %s: %s", rec->name, strerror(errno));
}

static int run_recorder(struct recorder *rec, struct why *why)
{
    int r = client_open(&rec->client, &rec->o->client, why);

    if (r < 0 || rec->o->client.explain) {
        if (r == 0)
            explain(rec);
        return r;
    }
    r = choose_gpus(rec, rec->o->gpus ? rec->o->gpus : "all", why);
    if (r == 0)
        r = open_output(rec, why);
    if (r < 0)
        return r;
    stop_listen();
    r = record(rec, why);
    if (rec->out != stdout && fclose(rec->out) != 0 && r == 0)
        r = why_set(why, errno, "cannot write %s: %s", rec->name, strerror(errno));
    say_what_was_done(rec);
    return r;
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct recorder rec = { .o = o, .name = call->argv[0], .step_ns = NS_PER_S / 10 };
    struct why why = { 0 };
    int r = recording_columns_parse(&rec.columns, o->metrics ? o->metrics : "all", &why);

    if (r == 0)
        r = choose_format(o, rec.name, &rec, &why);
    if (r < 0) {
        r = command_usage(call, "%s", why_text(&why));
        why_release(&why);
        return r;
    }
    r = run_recorder(&rec, &why);
    client_close(&rec.client);
    free(rec.gpus);
    free(rec.pages);
    return r < 0 ? client_fail(r, &why) : 0;
}

/* clang-format off */
static const struct command_option options[] = {
    OPTION("metrics", 0, "A,B,…", OPTION_TEXT, struct options, metrics, "these metrics; default: all", .complete = COMPLETE_METRIC),
    OPTION("gpus", 0, "A,B,…", OPTION_TEXT, struct options, gpus, "these GPUs, by index, UUID or bus id; default: all", .complete = COMPLETE_GPU),
    OPTION("interval", 0, "TIME", OPTION_TIME, struct options, interval_ns, "one sample in this simulated time, not each generation"),
    OPTION("duration", 0, "TIME", OPTION_TIME, struct options, duration_ns, "end after this simulated time"),
    OPTION("count", 0, "N", OPTION_COUNT, struct options, count, "end after N samples"),
    OPTION("format", 0, "FORMAT", OPTION_TEXT, struct options, format, "csv or jsonl; default: as FILE ends", .words = format_words),
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_operand operands[] = {
    { "FILE", OPERAND_ONE, NULL, COMPLETE_FILE },
    { 0 },
};

static const struct command_exit exits[] = {
    { "2", "The daemon of the mount is gone. What was recorded is in the file." },
    { 0 },
};
/* clang-format on */

const struct command command_record = {
    .name = "record",
    .summary = "write the values of GPUs to a file, as they come",
    .text = "Writes a line for each GPU at each generation of the mount to FILE (- for standard "
            "output), until interrupted. All lines of a generation are of one instant. In the end "
            "it says how many samples it took, and how many steps of the simulation it missed.",
    .more =
        "CSV has a heading: generation, time_s (simulated), gpu, and a column for each metric; what a "
        "GPU does not have is empty, and a sensor that fails is NaN. JSON lines have the same "
        "names; what is not there is left out, and a failing sensor is null. 'fakegpufs "
        "replay' reads both.",
    .options = options,
    .operands = operands,
    .exits = exits,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs record --duration 10m run.csv",
                  "fakegpufs record --metrics power_usage_mw --interval 1s - | head" },
    .run = run,
};
