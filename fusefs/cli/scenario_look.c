/*
 * Scenario run: whether an expectation is true at this moment. See scenario_run.h.
 *
 * A value is compared as its file shows it: what a run says can be checked with cat.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/cli/scenario_run.h"

enum { SEEN_GPUS_MAX = 8, SEEN_TEXT_MAX = 200 };

/* --- metrics --------------------------------------------------------------------------------- */

/* Each GPU is read once in a moment. NULL with -errno in *err. */
static const struct reader_gpu *look_at_gpu(struct scenario_run *run, int gpu, int *err)
{
    *err = gpu < run->gpu_count ? 0 : -ENODEV;
    if (*err == 0 && run->gpus_seen[gpu] != run->moment) {
        *err = reader_gpu(run->client.reader, gpu, &run->gpus[gpu]);
        run->gpus_seen[gpu] = *err == 0 ? run->moment : 0;
    }
    if (*err == 0 && run->gpus[gpu].lost)
        *err = -ENODEV;
    return *err < 0 ? NULL : &run->gpus[gpu];
}

/* The number that the metric's file shows; 0 or -errno as reading it would give. */
static int shown_metric(struct scenario_run *run, int gpu, int metric, double *number,
                        struct text *shown)
{
    struct text own = TEXT_INIT, *out = shown ? shown : &own;
    size_t before = out->length;
    const struct reader_gpu *g;
    int64_t value;
    int err;

    g = look_at_gpu(run, gpu, &err);
    if (g)
        err = metric_read(&g->sample, (enum metric)metric, &value);
    if (err == 0) {
        unit_show(out, metric_infos[metric].unit, value);
        err = parse_real(text_str(out) + before, number);
    }
    text_release(&own);
    return err;
}

static bool metric_comparisons_hold(struct scenario_run *run, const struct expectation *e, int gpu,
                                    double value)
{
    for (int op = 0; op < COMPARE_OPS; op++) {
        const struct comparison *c = &e->compare[op];
        double right = c->number;

        if (!c->text[0])
            continue;
        if (c->metric >= 0 && shown_metric(run, gpu, c->metric, &right, NULL) < 0)
            return false;
        if (!compare_holds(op, value, right))
            return false;
    }
    return true;
}

static void add_error(struct text *out, int err)
{
    const char *name = expect_errno_name(-err);

    text_addf(out, "%s%s%s", name ? name : "", name ? ": " : "", strerror(-err));
}

static bool gpu_is_as_expected(struct scenario_run *run, const struct expectation *e, int gpu,
                               struct text *seen)
{
    double value;
    int r;

    text_addf(seen, "GPU %d: ", gpu);
    r = shown_metric(run, gpu, e->metric, &value, seen);
    if (r < 0)
        add_error(seen, r);
    if (expect_has(e, "error"))
        return r == -expect_errno(e->error);
    return r == 0 && metric_comparisons_hold(run, e, gpu, value);
}

/* One GPU decides alone: of several the first that is not as expected, of `any` the first that is. */
static bool look_at_metric(struct scenario_run *run, struct item *item)
{
    const struct expectation *e = item->expect;
    struct why why = { 0 };
    int *gpus, count = drive_find_gpus(&run->client, &e->gpu, &gpus, &why);
    bool decided = false;

    if (count <= 0)
        text_add(&item->seen, count < 0 ? why_text(&why) : "there is no GPU");
    for (int i = 0; i < count && !decided; i++) {
        struct text one = TEXT_INIT;

        decided = gpu_is_as_expected(run, e, gpus[i], &one) == e->any;
        if (decided)
            text_cut(&item->seen, 0);
        if (decided || i < SEEN_GPUS_MAX)
            text_addf(&item->seen, "%s%s", item->seen.length ? ", " : "", text_str(&one));
        text_release(&one);
    }
    if (count >= 0)
        free(gpus);
    why_release(&why);
    return count > 0 && decided == e->any;
}

/* --- workloads ------------------------------------------------------------------------------- */

static bool look_at_workload(struct scenario_run *run, struct item *item)
{
    const struct expectation *e = item->expect;
    struct text path = TEXT_INIT;
    const char *state;
    int code = -1, used = 0, r;

    text_addf(&path, "workloads/%s/state", e->workload);
    r = drive_peek(&run->client, &item->seen, text_str(&path));
    text_release(&path);
    if (r == -ENOENT)
        text_add(&item->seen, expect_state_names[EXPECT_GONE]);
    else if (r < 0)
        add_error(&item->seen, r);
    state = text_str(&item->seen);
    sscanf(state, "ended %d %n", &code, &used);
    if (expect_has(e, "state") &&
        strncmp(state, expect_state_names[e->state], strlen(expect_state_names[e->state])))
        return false;
    if (expect_has(e, "exit_code") && code != e->exit_code)
        return false;
    return !expect_has(e, "message") || (used && strstr(state + used, e->message));
}

/* --- streams --------------------------------------------------------------------------------- */

static bool look_at_stream(struct scenario_run *run, struct item *item)
{
    const struct expectation *e = item->expect;
    const char *text = e->kind == EXPECT_EVENT ? e->event : e->kmsg;

    item->stream_count += follow_count(&run->streams[e->kind - EXPECT_EVENT], text,
                                       &item->stream_from);
    text_addf(&item->seen, "%" PRId64, item->stream_count);
    for (int op = 0; op < COMPARE_OPS; op++)
        if (e->compare[op].text[0] &&
            !compare_holds(op, (double)item->stream_count, e->compare[op].number))
            return false;
    return true;
}

/* --- files ----------------------------------------------------------------------------------- */

static bool file_comparison_holds(const struct comparison *c, enum compare_op op, const char *held)
{
    double left;

    if (!isnan(c->number) && parse_real(held, &left) == 0)
        return compare_holds(op, left, c->number);
    if (op == COMPARE_EQUALS)
        return !strcmp(held, c->text);
    return op == COMPARE_DIFFERS && strcmp(held, c->text) != 0;
}

static bool text_is_as_expected(const struct expectation *e, const char *held)
{
    for (int op = 0; op < COMPARE_OPS; op++)
        if (e->compare[op].text[0] && !file_comparison_holds(&e->compare[op], op, held))
            return false;
    if (expect_has(e, "contains") && !strstr(held, e->contains))
        return false;
    return !expect_has(e, "matches") || regexec(&e->regex, held, 0, NULL, 0) == 0;
}

static bool look_at_file(struct scenario_run *run, struct item *item)
{
    const struct expectation *e = item->expect;
    bool is_there = drive_exists(&run->client, e->file), wanted = true;
    bool reads = expect_has(e, "contains") || expect_has(e, "matches") || expect_has(e, "error");
    int r = 0;

    for (int op = 0; op < COMPARE_OPS; op++)
        reads |= e->compare[op].text[0] != '\0';
    if (expect_has(e, "exists")) {
        wanted = is_there == (e->exists != 0);
        if (!reads)
            text_add(&item->seen, is_there ? "it exists" : "it does not exist");
    }
    if (!reads)
        return wanted;
    r = drive_peek(&run->client, &item->seen, e->file);
    if (r == 0 && !text_is_as_expected(e, text_str(&item->seen)))
        wanted = false;
    if (expect_has(e, "error") ? r != -expect_errno(e->error) : r < 0)
        wanted = false;
    if (r < 0)
        add_error(&item->seen, r);
    if (item->seen.length > SEEN_TEXT_MAX) {
        text_cut(&item->seen, SEEN_TEXT_MAX);
        text_add(&item->seen, "…");
    }
    return wanted;
}

bool scenario_look(struct scenario_run *run, struct item *item)
{
    text_cut(&item->seen, 0);
    switch (item->expect->kind) {
    case EXPECT_METRIC:
        return look_at_metric(run, item);
    case EXPECT_WORKLOAD:
        return look_at_workload(run, item);
    case EXPECT_EVENT:
    case EXPECT_KMSG:
        return look_at_stream(run, item);
    default:
        return look_at_file(run, item);
    }
}
