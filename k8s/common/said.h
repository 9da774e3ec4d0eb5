/*
 * Said: what was last said about something, so that a state that lasts is told once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_COMMON_SAID_H
#define K8S_COMMON_SAID_H

#include "fusefs/log.h"
#include "sim/text.h"
#include "sim/why.h"

/* The sentence that was last said, or "" while nothing is wrong. */
struct said {
    struct text text;
};

/* Says it, a line of the log for each line of it, when it is not what was said last. */
void say(struct said *about, enum log_level level, const char *text);

/* Returns `r`. Says why when that is a failure, unless it is but an interruption. */
int say_failure(struct said *about, int r, const struct why *why);

/* Nothing is wrong now: says the sentence when something was. */
void say_well(struct said *about, const char *sentence);

/* One line of the log for each line of the text. */
void log_lines(enum log_level level, const char *text);

void said_release(struct said *about);

#endif
