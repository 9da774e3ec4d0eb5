/*
 * Errors: the sentence of the last refusal, for every `last_error` file.
 *
 * They lie in the block that a worker leaves to the next one (shared.h): whoever was refused by a worker
 * that died since can still ask why. So there are no pointers here, and an entry counts only once its age,
 * written last, is set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_ERRORS_H
#define FUSEFS_ERRORS_H

#include <stdatomic.h>
#include <stdint.h>

struct text;

enum errors_area { ERRORS_NODE, ERRORS_GPU, ERRORS_WORKLOAD };

enum {
    ERRORS_KEPT = 1024,
    ERRORS_SENTENCE = 1000, /* bytes with the final zero; longer ones are cut */
};

struct errors_entry {
    _Atomic uint64_t age; /* 0: free, or being written */
    uint64_t entity;
    uint32_t area;
    char sentence[ERRORS_SENTENCE];
};

/* All zero: none yet. */
struct errors {
    _Atomic uint32_t used; /* so many entries, from the first; the others were never touched */
    _Atomic uint64_t age;  /* of the youngest */
    struct errors_entry entries[ERRORS_KEPT];
};

/* Remembers the sentence for an area and entity; the oldest of too many is forgotten. */
void errors_set(struct errors *errors, enum errors_area area, uint64_t entity,
                const char *sentence);

/* Appends the sentence, or "none". */
int errors_show(const struct errors *errors, enum errors_area area, uint64_t entity,
                struct text *out);

#endif
