/*
 * Profile: a named behaviour, as data: which metrics it pins, and by which signals.
 *
 * The files in schemas/profiles are built in; a directory overrides or adds. What a profile does not
 * pin follows from the physics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "sim/bind.h"
#include "sim/metric.h"
#include "sim/signal.h"

enum { PROFILE_PINS_MAX = METRIC_COUNT };

struct profile_spec {
    struct bind_head head;
    char name[32];
    char description[160];
    struct bind_list pins; /* of struct signal_spec; the target is a metric */
};

struct profile_set {
    struct profile_spec *profiles; /* owned */
    int count;
    struct arena arena; /* owns their pins */
};

/* How a `metrics:` mapping (metric name to signal) is read, printed and described. */
extern const struct bind_custom pins_custom;

/* Appends the members of the JSON Schema of such a mapping. */
void pins_schema(struct text *out);

int profile_set_load(struct profile_set *set, const char *directory, struct why *why);
void profile_set_release(struct profile_set *set);

/* By name; -1 when there is none. */
int profile_find(const struct profile_set *set, const char *name);

/* suggest_names over a struct profile_set. */
const char *profile_name_at(const void *set, int i);

/* The seven behaviours that `cycle` deals out, GPU i taking number i mod 7. Ends with NULL. */
extern const char *const profile_cycle[];
enum { PROFILE_CYCLE_LENGTH = 7 };

#endif
