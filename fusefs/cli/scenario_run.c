/*
 * Scenario run: a scenario on a mount, from its first step to its last. See scenario_run.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/scenario_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"

/* --- what the mount must be ------------------------------------------------------------------ */

static int check_model(struct scenario_run *run, const struct model_set *models, int gpu,
                       const char *wanted, struct why *why)
{
    struct text path = TEXT_INIT, product = TEXT_INIT;
    int r;

    text_addf(&path, "gpus/%d/identity/name", gpu);
    r = drive_peek(&run->client, &product, text_str(&path));
    if (r < 0)
        r = why_set(why, -r, "%s: %s", text_str(&path), strerror(-r));
    else if (model_find(models, text_str(&product)) != model_find(models, wanted))
        r = why_set(why, ENODEV, "the scenario needs a %s as GPU %d; %s has a %s", wanted, gpu,
                    run->client.root, text_str(&product));
    text_release(&path);
    text_release(&product);
    return r;
}

static int check_mount(struct scenario_run *run, struct why *why)
{
    const struct scenario_mount *m = &run->scenario->mount;
    const struct scenario_model *wanted = m->model.items;
    struct model_set models;
    int r = 0;

    if (run->gpu_count < m->gpus)
        return why_set(why, ENODEV, "the scenario needs %" PRId64 " GPU%s; %s has %d", m->gpus,
                       m->gpus == 1 ? "" : "s", run->client.root, run->gpu_count);
    if (run->keep || !m->model.count)
        return 0;
    r = model_set_load(&models, NULL, why);
    for (int i = 0; r == 0 && i < m->gpus; i++)
        r = check_model(run, &models, i, wanted[(size_t)i % m->model.count].text, why);
    model_set_release(&models);
    return r;
}

/* --- beginning ------------------------------------------------------------------------------- */

static size_t count_items(const struct scenario *s)
{
    const struct scenario_step *steps = s->steps.items;
    size_t count = 0;

    for (size_t i = 0; i < s->steps.count; i++)
        count += steps[i].expect.count + scenario_step_acts(&steps[i]);
    return count;
}

static void add_item(struct scenario_run *run, const struct scenario_step *step,
                     const struct expectation *expect)
{
    run->items[run->item_count++] = (struct item){
        .step = step,
        .expect = expect,
        .began_ns = -1,
        .decided_ns = -1,
        .held_since_ns = -1,
    };
    run->follows |= expect && (expect->kind == EXPECT_EVENT || expect->kind == EXPECT_KMSG);
}

static int make_items(struct scenario_run *run)
{
    const struct scenario_step *steps = run->scenario->steps.items;
    size_t count = run->scenario->steps.count;

    run->items = calloc(count_items(run->scenario) + 1, sizeof(*run->items));
    run->progress = calloc(count + 1, sizeof(*run->progress));
    if (!run->items || !run->progress)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct expectation *expect = steps[i].expect.items;
        struct progress *p = &run->progress[i];

        p->first_item = run->item_count;
        if (scenario_step_acts(&steps[i]))
            add_item(run, &steps[i], NULL);
        for (size_t k = 0; k < steps[i].expect.count; k++)
            add_item(run, &steps[i], &expect[k]);
        p->item_count = run->item_count - p->first_item;
        p->start_ns = scenario_step_has(&steps[i], "at") ? steps[i].at_ns
                      : i == 0                           ? steps[i].after_ns
                                                         : -1;
    }
    return 0;
}

static int look_at_time(struct scenario_run *run, struct why *why)
{
    struct reader_node node;
    int r = reader_node(run->client.reader, &node);

    if (r < 0)
        return why_set(why, -r, client_is_lost(r) ? "the daemon of %s is gone" : "%s: %s",
                       run->client.root, strerror(-r));
    run->now_ns = node.now_ns - run->origin_ns;
    run->moment++;
    return 0;
}

static int make_room(struct scenario_run *run, struct why *why)
{
    struct reader_node node;
    int r = reader_node(run->client.reader, &node);

    if (r < 0)
        return why_set(why, -r, "%s: %s", run->client.root, strerror(-r));
    run->origin_ns = node.now_ns;
    run->gpu_count = node.gpu_count;
    run->gpus = calloc((size_t)node.gpu_count + 1, sizeof(*run->gpus));
    run->gpus_seen = calloc((size_t)node.gpu_count + 1, sizeof(*run->gpus_seen));
    if (!run->gpus || !run->gpus_seen || make_items(run) < 0)
        return why_set(why, ENOMEM, "out of memory");
    return 0;
}

static int open_streams(struct scenario_run *run, struct why *why)
{
    static const char *const names[] = { "events", "kmsg" };
    int r = 0;

    for (int i = 0; r == 0 && run->follows && i < 2; i++) {
        r = follow_open(&run->streams[i], &run->client, names[i]);
        if (r < 0)
            r = why_set(why, -r, "%s: %s", names[i], strerror(-r));
    }
    return r;
}

/* From now on time passes when this run says so; the mount shows at what speed. */
static int take_clock(struct scenario_run *run, struct why *why)
{
    int r = drive_pause(&run->drive, why);

    return r == 0 && run->paced ? drive_speed(&run->drive, run->speed, why) : r;
}

int scenario_run_begin(struct scenario_run *run, struct why *why)
{
    int r;

    run->streams[0].fd = run->streams[1].fd = -1;
    run->drive.clock = -1;
    run->changes = (struct changes){ .client = &run->client, .forget = run->keep };
    r = make_room(run, why);
    if (r == 0)
        r = check_mount(run, why);
    if (r == 0)
        r = drive_begin(&run->drive, &run->client, why);
    if (r == 0)
        r = open_streams(run, why);
    if (r == 0)
        r = take_clock(run, why);
    if (r == 0 && !run->keep && *run->scenario->mount.profile)
        r = scenario_set_profile(run, run->scenario->mount.profile, why);
    if (r == 0)
        r = look_at_time(run, why);
    run->origin_ns += run->now_ns;
    run->now_ns = 0;
    run->step_ns = run->scenario->check_ns ? run->scenario->check_ns : run->drive.step_ns;
    return r;
}

void scenario_run_end(struct scenario_run *run)
{
    struct why why = { 0 };

    if (!run->keep)
        changes_restore(&run->changes, run->remark, run->whom);
    if (drive_end(&run->drive, !run->keep, &why) < 0)
        run->remark(run->whom, why_text(&why));
    why_release(&why);
    changes_release(&run->changes);
    for (int i = 0; i < 2; i++)
        follow_close(&run->streams[i]);
    for (size_t i = 0; i < run->item_count; i++)
        text_release(&run->items[i].seen);
    free(run->items);
    free(run->progress);
    free(run->gpus);
    free(run->gpus_seen);
}

/* --- deciding -------------------------------------------------------------------------------- */

static void decide(struct scenario_run *run, struct item *item, bool passed)
{
    item->outcome = passed ? OUTCOME_PASSED : OUTCOME_FAILED;
    item->decided_ns = run->now_ns;
    run->tell(run->whom, item);
}

/*
 * True for as long as asked for: passed. Not true, and the time to come true is over: failed. One that came
 * true in time is waited for.
 */
static void consider(struct scenario_run *run, struct item *item)
{
    const struct expectation *e = item->expect;
    bool holds = scenario_look(run, item);

    if (!holds)
        item->held_since_ns = -1;
    else if (item->held_since_ns < 0)
        item->held_since_ns = run->now_ns;
    if (holds && run->now_ns - item->held_since_ns >= e->for_ns)
        decide(run, item, true);
    else if (!holds && run->now_ns - item->began_ns >= e->within_ns)
        decide(run, item, false);
}

static int begin_step(struct scenario_run *run, size_t i, struct why *why)
{
    const struct scenario_step *steps = run->scenario->steps.items;
    struct progress *p = &run->progress[i];
    int r = 0;

    p->state = STEP_EXPECTING;
    for (size_t k = p->first_item; k < p->first_item + p->item_count; k++) {
        struct item *item = &run->items[k];

        item->began_ns = run->now_ns;
        if (item->expect)
            continue;
        r = scenario_act(run, &steps[i], why);
        run->moment++; /* what was seen is no longer so */
        if (client_is_lost(r) || r == -ENOMEM)
            return r;
        if (r < 0)
            text_add(&item->seen, why_text(why));
        decide(run, item, r == 0);
    }
    return run->follows ? follow_read(&run->streams[0]) | follow_read(&run->streams[1]) : 0;
}

/* Looks at what the step expects; says whether all is decided. */
static bool consider_step(struct scenario_run *run, const struct progress *p)
{
    bool done = true;

    for (size_t k = p->first_item; k < p->first_item + p->item_count; k++) {
        if (run->items[k].outcome == OUTCOME_PENDING)
            consider(run, &run->items[k]);
        done &= run->items[k].outcome != OUTCOME_PENDING;
    }
    return done;
}

/* The step below in the same chain now knows its time. */
static void finish_step(struct scenario_run *run, size_t i)
{
    const struct scenario_step *steps = run->scenario->steps.items;

    run->progress[i].state = STEP_DONE;
    run->progress[i].done_ns = run->now_ns;
    if (i + 1 < run->scenario->steps.count && !scenario_step_has(&steps[i + 1], "at"))
        run->progress[i + 1].start_ns = run->now_ns + steps[i + 1].after_ns;
}

/* Looks at everything that is expected. */
static void consider_all(struct scenario_run *run)
{
    for (size_t i = 0; i < run->scenario->steps.count; i++)
        if (run->progress[i].state == STEP_EXPECTING && consider_step(run, &run->progress[i]))
            finish_step(run, i);
}

/* Begins what is due, in the order of the file; says how many steps that were. */
static int begin_due(struct scenario_run *run, struct why *why)
{
    int begun = 0;

    for (size_t i = 0; i < run->scenario->steps.count; i++) {
        struct progress *p = &run->progress[i];
        int r;

        if (p->state != STEP_AHEAD || p->start_ns < 0 || p->start_ns > run->now_ns)
            continue;
        r = begin_step(run, i, why);
        if (r < 0)
            return r;
        if (consider_step(run, p))
            finish_step(run, i);
        begun++;
    }
    return begun;
}

/*
 * Everything that happens at this moment: what is expected is looked at as time has left it, then what is due
 * begins, and what is expected is looked at again, as long as there is something new.
 */
static int live_moment(struct scenario_run *run, struct why *why)
{
    int begun;

    do {
        consider_all(run);
        begun = begin_due(run, why);
    } while (begun > 0);
    return begun;
}

/* --- time ------------------------------------------------------------------------------------ */

/* When something can happen next; -1: all is done. */
static int64_t next_moment(const struct scenario_run *run)
{
    int64_t next = -1;

    for (size_t i = 0; i < run->scenario->steps.count; i++) {
        const struct progress *p = &run->progress[i];
        int64_t at = p->state == STEP_EXPECTING ? run->now_ns + run->step_ns : p->start_ns;

        if (p->state == STEP_DONE || at < 0)
            continue;
        if (next < 0 || at < next)
            next = at;
    }
    return next;
}

static int advance(struct scenario_run *run, int64_t to_ns, struct why *why)
{
    int64_t ns = to_ns - run->now_ns;
    int r = run->paced ? drive_pace(&run->drive, run->speed, ns, why)
                       : drive_step(&run->drive, ns, why);

    if (r == 0)
        r = look_at_time(run, why);
    for (int i = 0; r == 0 && run->follows && i < 2; i++)
        r = follow_read(&run->streams[i]);
    return r;
}

int scenario_run_all(struct scenario_run *run, const volatile int *stop, struct why *why)
{
    for (;;) {
        int64_t next;
        int r = live_moment(run, why);

        if (r < 0)
            return r;
        next = next_moment(run);
        if (next < 0)
            return 0;
        if (*stop)
            return -EINTR;
        r = advance(run, next, why);
        if (r < 0)
            return r;
    }
}
