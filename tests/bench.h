/*
 * Bench: one row of the table that `make bench` prints.
 *
 * A row is a number, what it must not exceed, and how many times it is that of something native
 * measured in the same run, since machines differ and are noisy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fusefs/realtime.h"

static inline int64_t bench_now_ns(void)
{
    return real_ns(CLOCK_MONOTONIC);
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of several rounds: noise only ever adds. They are sorted. */
static inline double bench_median(double *rounds, int count)
{
    qsort(rounds, (size_t)count, sizeof(*rounds), bench_by_value);
    return rounds[count / 2];
}

static inline void bench_heading(const char *subject)
{
    printf("%-52s %12s %12s  %s\n", subject, "measured", "at most", "against, in the same run");
}

/* `most` 0: no bound. `native` "": nothing to compare with. */
static inline void bench_row(const char *what, double value, const char *unit, double most,
                             double native, const char *native_what)
{
    char bound[32] = "", ratio[96] = "";

    if (most > 0)
        snprintf(bound, sizeof(bound), "%.4g %s", most, unit);
    if (*native_what)
        snprintf(ratio, sizeof(ratio), "%.1f x %s", value / native, native_what);
    printf("%-52s %7.4g %-4s %12s  %s%s\n", what, value, unit, bound, ratio,
           most > 0 && value > most ? "  OVER" : "");
}

/* The same for what must not be less than `least`. */
static inline void bench_row_least(const char *what, double value, const char *unit, double least,
                                   double native, const char *native_what)
{
    char bound[32];

    snprintf(bound, sizeof(bound), ">= %.4g %s", least, unit);
    printf("%-52s %7.4g %-4s %12s  %.1f x %s%s\n", what, value, unit, bound, value / native,
           native_what, value < least ? "  UNDER" : "");
}

#endif
