/*
 * Scenario: a timeline of loads, faults and expectations, as written by a person.
 *
 * The format alone, read strictly by its tables; running one is the business of who has a mount. A step
 * begins `at` a time of the scenario, or `after` the step before it is done; a step is done when its
 * expectations are met or have failed. So every `at` begins a chain of its own, and chains run beside each
 * other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "sim/bind.h"
#include "sim/expect.h"
#include "sim/workload.h"

enum {
    SCENARIO_STEPS_MAX = 10000,
    SCENARIO_EXPECTATIONS_MAX = 64, /* of one step */
    SCENARIO_WRITES_MAX = 256,      /* likewise */
    SCENARIO_TEXT = 4096,
};

/* A control file of a GPU, and what is written to it. */
struct scenario_setting {
    char file[64], value[64];
};

/* Any file below the mount. */
struct scenario_write {
    struct bind_head head;
    char file[EXPECT_PATH];
    char text[SCENARIO_TEXT];
};

struct scenario_step {
    struct bind_head head;
    int64_t at_ns, after_ns;
    char note[EXPECT_TEXT];
    struct bind_list gpu;          /* of struct device_name: of fault, profile, set and expect */
    struct workload_spec workload; /* name "": none */
    char end[WORKLOAD_NAME];
    char fault[128], profile[32];
    struct bind_list set;   /* of struct scenario_setting */
    struct bind_list write; /* of struct scenario_write */
    double speed;
    struct bind_list expect; /* of struct expectation */
};

struct scenario_model {
    char text[64];
};

/* The mount it needs; where none is given, one is made like this. */
struct scenario_mount {
    struct bind_head head;
    int64_t gpus;
    struct bind_list
        model; /* of struct scenario_model; GPU i has number i modulo count; none: any */
    char profile[32];
    int64_t seed, step_ns;
};

struct scenario {
    struct bind_head head;
    char name[64];
    char description[SCENARIO_TEXT];
    struct scenario_mount mount;
    double speed;     /* of a run at a pace */
    int64_t check_ns; /* 0: at every step of the simulation */
    struct bind_list steps;

    /* not keys of the file */
    char source[256];   /* what sentences call it */
    struct arena arena; /* owns all lists */
};

extern const struct bind_table scenario_table, scenario_mount_table, scenario_step_table;

/* Whether a key of the step was given. */
bool scenario_step_has(const struct scenario_step *step, const char *key);

/* Whether the step does something, besides expecting. */
bool scenario_step_acts(const struct scenario_step *step);

struct scenario_options {
    const char *name;    /* of the text, for sentences */
    const char *schemas; /* directory with more models and profiles; NULL: none */
};

/*
 * Reads a scenario. On success the caller releases it; on failure it is empty and `why` names file, line,
 * column, key, what was found and what is allowed.
 */
int scenario_parse(struct scenario *scenario, const char *text, size_t length,
                   const struct scenario_options *options, struct why *why);

void scenario_release(struct scenario *scenario);

/* Appends the configuration of a node that is as the scenario needs it; its clock stands still. */
void scenario_node(struct text *out, const struct scenario_mount *mount);

/* Appends the JSON Schema (draft 2020-12) of the format. */
void scenario_schema(struct text *out);

/* Appends the keys of the format as tables in Markdown. */
void scenario_reference(struct text *out);

#endif
