/*
 * Signal: a value as a function of time.
 *
 * One small vocabulary serves profiles (a signal pins a metric) and workloads (a signal drives an
 * activity). A signal is flat; its parameters are in the parts of its target's unit, or shares of the
 * largest value that the target can have on the GPU at hand. Evaluation touches nothing but the
 * random stream, and never the real clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SIGNAL_H
#define SIM_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/bind.h"
#include "sim/rng.h"

enum signal_kind {
    SIGNAL_CONSTANT,
    SIGNAL_JITTER,
    SIGNAL_SPIKE,
    SIGNAL_WAVE,
    SIGNAL_DRIFT,
    SIGNAL_RANDOM,
    SIGNAL_RAMP,
    SIGNAL_RANDOM_INCREASE,
    SIGNAL_FAULT,
    SIGNAL_TIMELINE,
    SIGNAL_KINDS
};

enum { SIGNAL_PARAMS = 4, SIGNAL_PHASES_MAX = 10000 };

struct signal {
    uint8_t kind;          /* enum signal_kind */
    uint8_t share;         /* parameters are shares (0..1) of the target's limit */
    uint16_t target;       /* a metric or a workload channel, as the owner understands it */
    uint32_t first, count; /* timeline: its phases in the pool */
    int64_t repeat;        /* timeline: how often it is played; 0 for ever */
    double p[SIGNAL_PARAMS];
};

/* A stretch of a timeline. `end_ns` counts from the timeline's start, so a phase is found by bisection. */
struct phase {
    int64_t end_ns;
    uint32_t first, count; /* its signals in the pool */
};

#define PHASE_FOREVER INT64_MAX

/* Where the indices of signals and phases lead. */
struct signal_pool {
    const struct signal *signals;
    const struct phase *phases;
};

/* A place in a timeline. */
struct timeline_place {
    uint32_t phase;    /* index in the pool */
    int64_t offset_ns; /* since that phase began */
    bool ended;        /* all repeats are played; phase and offset are the end of the last */
};

struct timeline_place timeline_locate(const struct phase *phases, uint32_t first, uint32_t count,
                                      int64_t repeat, int64_t elapsed_ns);

/* Length of one play in ns, PHASE_FOREVER when its last phase never ends. */
int64_t timeline_length(const struct phase *phases, uint32_t first, uint32_t count);

/*
 * The value after `elapsed_ns`, in the parts of the unit. `limit` is the target's largest value, `held` the
 * value of the previous evaluation (what random-increase grows from; ignored when `first_time`).
 * Returns -EIO for a reading that fails.
 */
int signal_eval(const struct signal *s, const struct signal_pool *pool, int64_t elapsed_ns,
                double limit, double held, bool first_time, struct rng *rng, double *value);

/* Whether two signals, each in its own pool, are the same function. */
bool signal_equal(const struct signal_pool *a, const struct signal *sa, const struct signal_pool *b,
                  const struct signal *sb);

/* --- as configuration ------------------------------------------------------------------------ */

/* A signal as read: its timeline hangs on it, and has no place in a pool yet. */
struct signal_spec {
    struct signal signal;
    struct bind_list phases; /* timeline: of struct phase_spec */
};

struct phase_spec {
    int64_t time_ns;          /* PHASE_FOREVER: until the end */
    struct bind_list signals; /* of struct signal_spec */
};

/* Reads a number or {kind: {parameters}} for a target of that unit. */
int signal_read(struct binder *b, const struct ynode *node, enum unit unit, int target,
                struct signal_spec *spec);

/* Appends the signal in flow style, as signal_read reads it. */
void signal_print(struct text *out, enum unit unit, const struct signal_spec *spec);

/* Appends the members of the JSON Schema for a signal. */
void signal_schema(struct text *out);

/* How many signals and phases `spec` needs in a pool, itself included; added to the two counts. */
void signal_count(const struct signal_spec *spec, uint32_t *signals, uint32_t *phases);

/* A pool being filled. The owner made it large enough by signal_count and phases_count. */
struct signal_fill {
    struct signal *signals;
    struct phase *phases;
    uint32_t signal_count, phase_count;
};

/* Adds the specs next to each other and returns the index of the first. */
uint32_t signal_fill_add(struct signal_fill *fill, const struct bind_list *specs);

/* The same for the phases of a timeline. */
uint32_t phases_fill_add(struct signal_fill *fill, const struct bind_list *phases);
void phases_count(const struct bind_list *phases, uint32_t *signal_count, uint32_t *phase_count);

#endif
