/*
 * Why: the sentence that goes with a refusal.
 *
 * Every function that can refuse returns -errno and, through a struct why, the sentence a person
 * should read: what was wrong, where, and what is allowed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_WHY_H
#define SIM_WHY_H

struct why {
    char *text; /* owned; NULL while nothing was refused */
};

/* Replaces the sentence. Returns -err, so that a refusal is one statement. `why` may be NULL. */
int why_set(struct why *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The sentence, or "" when there is none. */
const char *why_text(const struct why *why);

void why_release(struct why *why);

#endif
