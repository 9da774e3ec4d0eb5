/*
 * Sections: taking pieces out of a world and filling its pools.
 *
 * Whoever holds the position of something in a section is told when the section shrinks before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SECTIONS_H
#define SIM_SECTIONS_H

#include <string.h>

#include "sim/world.h"

/* Closes the gap of n items at `first`. */
#define SECTION_CUT(w, ID, name, first, n)                                  \
    do {                                                                    \
        uint32_t *used = &(w)->used[SECTION_##ID];                          \
        world_touch((w), SECTION_##ID, (first), (n) ? *used - (first) : 0); \
        memmove(&world_##name(w)[first], &world_##name(w)[(first) + (n)],   \
                (*used - (first) - (n)) * sizeof(*world_##name(w)));        \
        *used -= (n);                                                       \
        memset(&world_##name(w)[*used], 0, (n) * sizeof(*world_##name(w))); \
    } while (0)

/* A position behind a gap of n at `first` that was closed. Whether it moved. */
static inline bool section_shift(uint32_t *position, uint32_t first, uint32_t n)
{
    bool behind = n && *position > first;

    if (behind)
        *position -= n;
    return behind;
}

/* Takes n signals or phases out of the pools; all that refers to others behind them follows. */
void section_cut_signals(struct world *w, uint32_t first, uint32_t n);
void section_cut_phases(struct world *w, uint32_t first, uint32_t n);

/* The pools as something to append to, and what was appended as part of the world. */
struct signal_fill section_fill(struct world *w);
void section_filled(struct world *w, const struct signal_fill *fill);

#endif
