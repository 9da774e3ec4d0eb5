/*
 * Scenario report: what a run found, for a person, as TAP, and as JUnit's XML.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_SCENARIO_REPORT_H
#define FUSEFS_CLI_SCENARIO_REPORT_H

#include "fusefs/cli/scenario_run.h"

struct scenario_report {
    const struct scenario *scenario;
    bool tap;
    int64_t began_ns; /* on the real clock */
    int told, failed;
};

/* The first lines, before anything is decided. */
void report_begin(struct scenario_report *report, const struct scenario_run *run);

/* For the run's `tell` and `remark`. */
void report_item(void *report, const struct item *item);
void report_remark(void *report, const char *sentence);

/* The last lines. What is not decided by then was interrupted. */
void report_end(struct scenario_report *report, const struct scenario_run *run);

/* Writes the whole run as JUnit's XML. -errno with a sentence. */
int report_junit(const struct scenario_report *report, const struct scenario_run *run,
                 const char *path, struct why *why);

#endif
