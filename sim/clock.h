/*
 * Clock: the grammar of the node's clock, and how real time becomes steps.
 *
 *     speed 60       60 simulated seconds in a real one
 *     pause, resume
 *     step 30s       so much simulated time at once, paused or not
 *
 * Nothing here reads the real clock: whoever does says how much of it has passed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

struct node;
struct why;

enum clock_command_kind { CLOCK_SPEED, CLOCK_PAUSE, CLOCK_RESUME, CLOCK_STEP };

struct clock_command {
    enum clock_command_kind kind;
    double speed;
    int64_t step_ns;
};

/* Reads one command. -EINVAL, -ERANGE with a sentence. */
int clock_parse(const char *text, struct clock_command *command, struct why *why);

/*
 * Notes that `real_ns` have passed; returns how many whole steps of `step_ns` are due, and takes them
 * off. At most `most`: what a stopped process has missed beyond that is not made up for.
 */
int64_t clock_due(struct node *node, int64_t real_ns, int64_t step_ns, int64_t most);

#endif
