/*
 * Counters: the CSV that says which DCGM fields are exported, as which type and with which help.
 *
 * Each line is `FIELD, type, help`; # in the first column begins a comment. A field that DCGM does not have
 * is an error; one that it has and this driver does not give is never there, as with the real exporter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_COUNTERS_H
#define EXPORTER_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "exporter/families.h"
#include "sim/arena.h"

struct why;

/* Where a field's values come from. */
enum counter_source {
    COUNTER_ABSENT,   /* DCGM has the field, this driver does not */
    COUNTER_METRIC,   /* `which` is an enum metric */
    COUNTER_IDENTITY, /* `which` is an enum identity */
    COUNTER_XID_COUNT,
    COUNTER_CLOCK_EVENT_COUNT,
    COUNTER_HEALTH,
    COUNTER_P2P,
};

struct counter {
    int id;                  /* of the field; orders the output */
    const char *name, *help; /* as the file has them */
    bool is_label;
    enum family_type type;
    enum counter_source source;
    int which;
};

struct counter_list {
    struct counter *items; /* ascending by id */
    size_t count;
    struct arena arena;
};

/* Reads a file's text; `name` is what sentences call it. -errno with "name:line: …". */
int counter_list_parse(struct counter_list *list, const char *name, const char *text,
                       struct why *why);
void counter_list_release(struct counter_list *list);

/* Whether one of them comes from there. */
bool counter_list_has(const struct counter_list *list, enum counter_source source);

#endif
