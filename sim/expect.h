/*
 * Expect: what a scenario expects to see, as written by a person.
 *
 * The grammar only, read strictly by its table: what is looked at (a metric, a workload, a stream, a file),
 * how it is compared, and how much simulated time it has. Looking is the runner's business.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_EXPECT_H
#define SIM_EXPECT_H

#include <regex.h>

#include "sim/bind.h"
#include "sim/workload.h"

enum { EXPECT_PATH = 256, EXPECT_TEXT = 256 };

/* What an expectation looks at: the first five rows of its table. */
enum expect_kind {
    EXPECT_METRIC,
    EXPECT_WORKLOAD,
    EXPECT_EVENT, /* how many lines of `events` since the scenario began hold a text */
    EXPECT_KMSG,
    EXPECT_FILE,
    EXPECT_KINDS
};

/* COMPARE(ID, key, the operator of test(1), of awk, and in words) */
/* clang-format off */
#define COMPARE_TABLE(COMPARE)                              \
    COMPARE(ABOVE, "above", "-gt", ">", "above")            \
    COMPARE(BELOW, "below", "-lt", "<", "below")            \
    COMPARE(AT_LEAST, "at_least", "-ge", ">=", "at least")  \
    COMPARE(AT_MOST, "at_most", "-le", "<=", "at most")     \
    COMPARE(EQUALS, "equals", "-eq", "==", "equal to")      \
    COMPARE(DIFFERS, "differs", "-ne", "!=", "other than")
/* clang-format on */

enum compare_op {
#define COMPARE(id, key, test, awk, words) COMPARE_##id,
    COMPARE_TABLE(COMPARE)
#undef COMPARE
        COMPARE_OPS
};

struct compare_info {
    const char *key, *test, *awk, *words;
};

extern const struct compare_info compare_infos[COMPARE_OPS];

bool compare_holds(enum compare_op op, double left, double right);

struct comparison {
    char text[64]; /* as written; "": not given */
    double number; /* in the unit that the file shows; NAN: a text, or `metric` */
    int metric;    /* of the same GPU, instead of a number; -1: none */
};

/* In the words of a workload's `state`; `gone` when there is no such workload. */
enum expect_state { EXPECT_WAITING, EXPECT_RUNNING, EXPECT_ENDED, EXPECT_GONE };
extern const char *const expect_state_names[];

struct expectation {
    struct bind_head head;
    char metric_name[64], workload[WORKLOAD_NAME], event[EXPECT_TEXT], kmsg[EXPECT_TEXT],
        file[EXPECT_PATH];
    struct bind_list gpu;                   /* of struct device_name; may be "all" or "any" */
    struct comparison compare[COMPARE_OPS]; /* numbers; of a file also texts */
    char contains[EXPECT_TEXT], matches[EXPECT_TEXT];
    int64_t exists; /* 1, 0 */
    int64_t error;  /* position in expect_error_names: what reading gives */
    int64_t state, exit_code;
    char message[EXPECT_TEXT]; /* part of the sentence with which a workload ended */
    int64_t within_ns, for_ns;
    char note[EXPECT_TEXT];

    /* worked out when read */
    enum expect_kind kind;
    int metric; /* EXPECT_METRIC */
    bool any;   /* one of its GPUs is enough */
    bool compiled;
    regex_t regex; /* of `matches`, where compiled */
};

extern const struct bind_table expect_table;

/* Whether a key was given. */
bool expect_has(const struct expectation *e, const char *key);

/* Gives back what the arena does not own. */
void expect_release(struct expectation *e);

/* Error names that `error` takes, and the errno of each; NULL for an errno without a name here. */
extern const char *const expect_error_names[];
int expect_errno(int64_t position);
const char *expect_errno_name(int err);

/* Whether `path` stays below the mount: relative, without "..". */
bool expect_path_ok(const char *path);
extern const struct bind_shape expect_path_shape;

/* Appends "GPU 0: temperature_gpu_c above 80 within 5m". */
void expect_print(struct text *out, const struct expectation *e);

#endif
