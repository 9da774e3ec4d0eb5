/*
 * Real time, as the clocks of the machine count it. Simulated time is the world's (sim/clock.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_REALTIME_H
#define FUSEFS_REALTIME_H

#include <stdint.h>
#include <time.h>

static inline int64_t real_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
