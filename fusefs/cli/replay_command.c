/*
 * fakegpufs replay: drives GPUs from a recording.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fusefs/cli/replay.h"
#include "fusefs/cli/stop.h"

enum { POLL_NS = 2000000, ALIVE_EVERY = 500, EXIT_BROKEN = 65, EXIT_INTERRUPTED = 130 };

struct options {
    struct client_options client;
    const char *speed, *gpu, *fields;
    struct option_list map;
    bool loop, hold, step, clamp;
};

struct player {
    const struct options *o;
    struct replay replay;
    struct drive drive;
    int64_t origin_ns; /* when the recording begins here */
};

/* --- waiting --------------------------------------------------------------------------------- */

static int simulated_now(const struct player *p, int64_t *ns, struct why *why)
{
    struct reader_node node;
    int r = reader_node(p->replay.client->reader, &node);

    *ns = node.now_ns;
    if (r < 0)
        why_set(why, -r, client_is_lost(r) ? "the daemon of %s is gone" : "cannot read %s: %s",
                p->replay.client->root, strerror(-r));
    return r;
}

/* Somebody may pause the clock for a while; one that stands from the beginning is a mistake. */
static int check_running(const struct player *p, struct why *why)
{
    if (p->drive.running && p->drive.speed > 0)
        return 0;
    return why_set(why, EBUSY, "the clock of %s stands still: resume it, or let --step move it on",
                   p->replay.client->root);
}

/* -EINTR: asked to stop. */
static int wait_until(struct player *p, int64_t due_ns, struct why *why)
{
    int64_t now;
    int r = simulated_now(p, &now, why);

    if (r == 0 && p->o->step && now < due_ns)
        r = drive_step(&p->drive, due_ns - now, why);
    else
        for (int waits = 1; r == 0 && now < due_ns && !stop_asked; waits++) {
            nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
            r = waits % ALIVE_EVERY ? 0 : drive_alive(p->replay.client, why);
            if (r == 0)
                r = simulated_now(p, &now, why);
        }
    return r < 0 ? r : stop_asked ? -EINTR : 0;
}

/* --- playing --------------------------------------------------------------------------------- */

static int play_once(struct player *p, struct why *why)
{
    size_t count = p->replay.recording->line_count;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = wait_until(p, p->origin_ns + replay_time(&p->replay, i), why);
        if (r == 0)
            r = replay_line(&p->replay, i, why);
    }
    if (r == 0)
        r = wait_until(p, p->origin_ns + replay_time(&p->replay, count), why);
    p->origin_ns += replay_time(&p->replay, count);
    return r;
}

static void remark(void *whom, const char *sentence)
{
    (void)whom;
    fprintf(stderr, "fakegpufs replay: %s\n", sentence);
}

static int play(struct player *p, struct why *why)
{
    struct why late = { 0 };
    int r = drive_begin(&p->drive, p->replay.client, why);

    if (r == 0)
        r = p->o->step ? drive_pause(&p->drive, why) : check_running(p, why);
    if (r == 0)
        r = simulated_now(p, &p->origin_ns, why);
    if (r == 0)
        do
            r = play_once(p, why);
        while (r == 0 && p->o->loop);
    if (!p->o->hold)
        changes_restore(&p->replay.changes, remark, NULL);
    if (drive_end(&p->drive, p->o->step, &late) < 0 && r == 0)
        remark(NULL, why_text(&late));
    why_release(&late);
    return r;
}

/* --- explaining ------------------------------------------------------------------------------ */

static void explain_wait(const struct player *p, int64_t ns, struct text *out)
{
    if (ns <= 0)
        return;
    if (p->o->step) {
        text_add(out, "echo 'step ");
        unit_print(out, UNIT_NANOSECOND, ns);
        text_add(out, "' > control/clock\n");
    } else {
        text_addf(out, "sleep %.3f\n", (double)ns / NS_PER_S);
    }
}

/* Each control file that was written to, once. */
static void explain_end(const struct player *p, struct text *out)
{
    const struct recording *rec = p->replay.recording;

    for (int gpu = 0; gpu < rec->gpu_count; gpu++) {
        struct metric_mask driven = { 0 };

        for (size_t i = 0; i < rec->line_count; i++)
            for (size_t k = 0; rec->lines[i].gpu == gpu && k < rec->lines[i].count; k++)
                if (rec->values[rec->lines[i].first + k].state == RECORDED_VALUE)
                    metric_mask_add(&driven, rec->values[rec->lines[i].first + k].metric);
        for (int m = 0; m < METRIC_COUNT; m++)
            if (metric_mask_has(&driven, m) &&
                metric_mask_has(&p->replay.gpus[gpu].sample.valid, m))
                text_addf(out, "echo auto > gpus/%d/control/%s\n", p->replay.targets[gpu],
                          metric_infos[m].name);
    }
}

static void explain(const struct player *p)
{
    size_t count = p->replay.recording->line_count;
    struct text out = TEXT_INIT;
    int64_t now = 0;

    text_add(&out, "cd ");
    shell_quote(&out, p->replay.client->root);
    text_add(&out, p->o->step ? "\necho pause > control/clock\n" : "\n");
    for (size_t i = 0; i <= count; i++) {
        explain_wait(p, replay_time(&p->replay, i) - now, &out);
        now = replay_time(&p->replay, i);
        if (i < count)
            replay_line_explain(&p->replay, i, &out);
        fputs(text_str(&out), stdout);
        text_cut(&out, 0);
    }
    if (!p->o->hold)
        explain_end(p, &out);
    text_add(&out, p->o->step ? "echo resume > control/clock\n" : "");
    fputs(text_str(&out), stdout);
    text_release(&out);
}

/* --- the command ----------------------------------------------------------------------------- */

static int read_recording(const struct options *o, const char *name, struct recording *rec,
                          struct why *why)
{
    const struct recording_options how = { .fields = o->fields, .single = o->gpu != NULL };
    bool standard = !strcmp(name, "-");
    FILE *file = standard ? stdin : fopen(name, "re");
    int r;

    if (!file)
        return why_set(why, errno, "%s: %s", name, strerror(errno));
    r = recording_read(rec, file, standard ? "standard input" : name, &how, why);
    if (!standard)
        fclose(file);
    return r;
}

static int prepare(struct player *p, struct why *why)
{
    struct text single = TEXT_INIT;
    const char *pair;
    int r;

    text_addf(&single, "0=%s", p->o->gpu ? p->o->gpu : "");
    pair = text_str(&single);
    r = p->o->gpu ? replay_prepare(&p->replay, &pair, 1, why)
                  : replay_prepare(&p->replay, p->o->map.items, p->o->map.count, why);
    text_release(&single);
    if (r == 0 && p->replay.recording->passed_over.length && !p->o->client.explain)
        fprintf(stderr, "fakegpufs replay: not played: %s\n",
                text_str(&p->replay.recording->passed_over));
    return r;
}

static int run_on(const struct options *o, const struct recording *rec, double speed,
                  struct why *why)
{
    const struct client_options here = { .mount = o->client.mount };
    struct client client;
    struct player p = {
        .o = o,
        .replay = { .recording = rec, .client = &client, .clamp = o->clamp, .speed = speed },
    };
    int r = client_open(&client, &here, why);

    if (r == 0)
        r = prepare(&p, why);
    if (r == 0 && o->client.explain) {
        explain(&p);
    } else if (r == 0) {
        stop_listen();
        r = play(&p, why);
    }
    replay_release(&p.replay);
    client_close(&client);
    return r;
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct recording rec;
    struct why why = { 0 };
    double speed = 1;
    int r;

    if (o->speed && (parse_real(o->speed, &speed) < 0 || speed < 0.001 || speed > 1e6))
        return command_usage(call, "--speed: '%s' is not a speed; allowed: 0.001 to 1000000",
                             o->speed);
    if (o->gpu && o->map.count)
        return command_usage(call, "--gpu and --map do not go together");
    if (read_recording(o, call->argv[0], &rec, &why) < 0) {
        command_fail(&why);
        return EXIT_BROKEN;
    }
    r = run_on(o, &rec, speed, &why);
    recording_release(&rec);
    if (r == -EINTR) {
        why_release(&why);
        return EXIT_INTERRUPTED;
    }
    return r < 0 ? client_fail(r, &why) : 0;
}

/* clang-format off */
static const struct command_option options[] = {
    OPTION("speed", 0, "X", OPTION_TEXT, struct options, speed, "recorded seconds per simulated second; default: 1"),
    OPTION("loop", 0, NULL, OPTION_FLAG, struct options, loop, "again and again, until interrupted"),
    OPTION("step", 0, NULL, OPTION_FLAG, struct options, step, "move the clock on, as fast as it goes"),
    OPTION("map", 0, "FROM=TO", OPTION_EACH, struct options, map, "GPU FROM of the file drives GPU TO here; repeatable"),
    OPTION("gpu", 0, "GPU", OPTION_TEXT, struct options, gpu, "all lines are of one GPU, and drive GPU here", .complete = COMPLETE_GPU),
    OPTION("fields", 0, "A,B,…", OPTION_TEXT, struct options, fields, "columns of a nvidia-smi log without heading"),
    OPTION("clamp", 0, NULL, OPTION_FLAG, struct options, clamp, "bring values into the range of the GPUs here"),
    OPTION("hold", 0, NULL, OPTION_FLAG, struct options, hold, "keep the last values in the end"),
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_operand operands[] = {
    { "FILE", OPERAND_ONE, NULL, COMPLETE_FILE },
    { 0 },
};

static const struct command_exit exits[] = {
    { "2", "The daemon of the mount is gone." },
    { "65", "The file is wrong: the sentence names line and column, and nothing was done." },
    { "130", "Interrupted. The values are given back." },
    { 0 },
};
/* clang-format on */

const struct command command_replay = {
    .name = "replay",
    .summary = "drive GPUs from a recording",
    .text = "Gives GPUs the values of FILE (- for standard input) at the times of FILE, then gives "
            "them back to the simulation. FILE is what 'fakegpufs record' wrote, or a log of "
            "'nvidia-smi --query-gpu=timestamp,index,… --format=csv -l 1' of a real machine.",
    .more =
        "Times are of simulated time. Played are all metrics that a control file dictates; the others "
        "follow from them. What a line does not know ([N/A]) is given back meanwhile, a failed "
        "reading (NaN) is a failing sensor. A UUID or bus id of another machine "
        "goes to the GPUs here one after the other.",
    .options = options,
    .operands = operands,
    .exits = exits,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs replay run.csv", "fakegpufs replay --map 0=3 --loop --clamp dgx.log" },
    .run = run,
};
