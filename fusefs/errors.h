/*
 * Errors: the sentence of the last refusal, for every `last_error` file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_ERRORS_H
#define FUSEFS_ERRORS_H

#include <stdint.h>

struct errors;
struct text;

enum errors_area { ERRORS_NODE, ERRORS_GPU, ERRORS_WORKLOAD };

struct errors *errors_new(void);
void errors_free(struct errors *errors);

/* Remembers the sentence for an area and entity; the oldest of too many is forgotten. */
void errors_set(struct errors *errors, enum errors_area area, uint64_t entity,
                const char *sentence);

/* Appends the sentence, or "none". */
int errors_show(const struct errors *errors, enum errors_area area, uint64_t entity,
                struct text *out);

#endif
