/*
 * Fuzz: what the fuzz targets share.
 *
 * A target is a program of its own, made with libFuzzer; `make fuzz` runs each for a while from
 * tests/corpus/<target> on. A promise that is broken ends it with a sentence, and libFuzzer keeps the
 * input: its minimal form joins the corpus together with the repair.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "sim/text.h"
#include "sim/why.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer asks the first for another input, and offers the second for changing bytes blindly. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

#define MUST(condition, ...)              \
    do {                                  \
        if (!(condition)) {               \
            fputs("broken: ", stderr);    \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr);          \
            abort();                      \
        }                                 \
    } while (0)

/* Every refusal has a sentence. Releases it. */
static inline void check_refusal(int r, struct why *why)
{
    MUST(r >= 0 || *why_text(why), "refused (%d), and not a word why", r);
    why_release(why);
}

/* What is published, as one number: the same before and after a refusal. */
static inline uint64_t fuzz_published(const struct sim *sim)
{
    uint64_t hash = sim_world(sim)->node.generation;

    for (int stream = 0; stream < STREAMS; stream++) {
        uint32_t length;
        const char *text = world_stream(sim_store(sim), (enum stream)stream, &length);

        for (uint32_t i = 0; i < length; i++)
            hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Puts the changed text in the place of the input, as far as there is room. Releases it. */
static inline size_t fuzz_replace(uint8_t *data, size_t room, struct text *changed)
{
    size_t size = changed->length < room ? changed->length : room;

    memcpy(data, text_str(changed), size);
    text_release(changed);
    return size;
}

#endif
