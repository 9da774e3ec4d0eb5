/*
 * Scenario explain: a scenario as a shell script of cat, echo, mkdir and rmdir.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_SCENARIO_EXPLAIN_H
#define FUSEFS_CLI_SCENARIO_EXPLAIN_H

struct scenario;

/* Prints it, for the mount at `root` or (NULL) one that the script makes. Returns the exit code. */
int scenario_explain(const struct scenario *scenario, const char *root);

#endif
