/*
 * Scenario run: a scenario on a mount.
 *
 * The clock is paused and stepped to the next moment that matters: where something is expected that is
 * every step of the simulation (or every `check`), otherwise the next step of the scenario. So a run is the
 * same every time and misses nothing, however fast it goes. In a run at a pace the steps wait until a clock
 * on the wall would have come to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_SCENARIO_RUN_H
#define FUSEFS_CLI_SCENARIO_RUN_H

#include "fusefs/cli/changes.h"
#include "fusefs/cli/drive.h"
#include "fusefs/cli/follow.h"
#include "sim/scenario.h"

enum outcome { OUTCOME_PENDING, OUTCOME_PASSED, OUTCOME_FAILED };

/* What is reported: what a step does, or one of its expectations. */
struct item {
    const struct scenario_step *step;
    const struct expectation *expect; /* NULL: the step's actions */
    enum outcome outcome;
    int64_t began_ns, decided_ns; /* of the scenario's time; -1: not yet */
    int64_t held_since_ns;        /* the expectation is true since; -1: it is not */
    size_t stream_from;           /* lines up to here are counted */
    int64_t stream_count;
    struct text seen; /* the last value, or why an action was refused */
};

/* A step on its way. */
struct progress {
    enum { STEP_AHEAD, STEP_EXPECTING, STEP_DONE } state;
    int64_t start_ns; /* -1: not known before the step above is done */
    int64_t done_ns;
    size_t first_item, item_count;
};

struct scenario_run {
    const struct scenario *scenario;
    struct client client;
    bool keep;    /* the mount goes anyway: nothing is restored */
    bool paced;   /* time passes as on a clock that runs */
    double speed; /* at this speed */
    int64_t origin_ns, now_ns, step_ns;
    struct drive drive;
    struct item *items;
    size_t item_count;
    struct progress *progress; /* one for each step */
    struct follow streams[2];  /* events, kmsg */
    bool follows;              /* some expectation looks at them */
    struct changes changes;
    struct reader_gpu *gpus; /* looked at in this moment */
    uint64_t *gpus_seen;     /* moment in which each was */
    int gpu_count;
    uint64_t moment;
    /* Called when an item is decided, and for a remark. */
    void (*tell)(void *whom, const struct item *item);
    void (*remark)(void *whom, const char *sentence);
    void *whom;
};

/* Prepares: looks whether the mount is what the scenario needs. -errno with a sentence. */
int scenario_run_begin(struct scenario_run *run, struct why *why);

/* Runs to the end, or until *stop. 0 when all items are decided, -EINTR, or -errno with a sentence. */
int scenario_run_all(struct scenario_run *run, const volatile int *stop, struct why *why);

/* Restores what was changed and lets go. */
void scenario_run_end(struct scenario_run *run);

/* --- its parts ------------------------------------------------------------------------------- */

/* Does what a step does. -errno with a sentence. */
int scenario_act(struct scenario_run *run, const struct scenario_step *step, struct why *why);

/* Gives every GPU the profile that the scenario begins with. */
int scenario_set_profile(struct scenario_run *run, const char *profile, struct why *why);

/* Whether the item's expectation is true now; `seen` says what was there. */
bool scenario_look(struct scenario_run *run, struct item *item);

/* Appends what a step does, in words. */
void scenario_step_print(struct text *out, const struct scenario_step *step);

/*
 * The files that start a workload, in their order: calls `write` with each path and text until it does not
 * return 0.
 */
typedef int scenario_writer(void *whom, const char *path, const char *text);
int scenario_workload_files(const struct workload_spec *w, scenario_writer *write, void *whom);

#endif
