/*
 * A small TAP producer: each test is one `ok` or `not ok` line on stdout, for prove to read.
 *
 * A test program is
 *
 *     int main(void)
 *     {
 *         plan(2);
 *         is_int(1 + 1, 2, "one and one is two");
 *         like("fakegpufs", "^fake", "the name tells");
 *         return tap_done();
 *     }
 *
 * Contract:
 * - every check evaluates its arguments once, prints exactly one test line and returns whether
 *   it passed; a failure also prints its name, file:line and what was got and expected on
 *   stderr, and the program goes on;
 * - the last arguments of every check are the test's name as a printf format;
 * - strings are borrowed for the call, and NULL is a value: it equals only NULL;
 * - one thread only. A forked child must leave the checks to its parent.
 *
 * With TAP_NO_SKIP=1 in the environment a skipped test is a failed one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Announce how many tests follow, before the first. Without it tap_done counts them. */
#define plan(count) tap_plan(count)

/* Leave the whole program out, before its first test: prints why and exits. */
#define skip_all(...) tap_skip_all(TAP_HERE, __VA_ARGS__)

/* Passes when the condition is true. */
#define ok(cond, ...) tap_ok(TAP_HERE, (cond) ? true : false, __VA_ARGS__)

/* Equal as 64-bit integers: byte counts, -errno, ids. */
#define is_int(got, want, ...) tap_is_int(TAP_HERE, (got), (want), __VA_ARGS__)

/* At most tolerance apart; the same infinity, and NaN for NaN, are equal too. */
#define is_real(got, want, tolerance, ...) \
    tap_is_real(TAP_HERE, (got), (want), (tolerance), __VA_ARGS__)

/* The same text. */
#define is_str(got, want, ...) tap_is_str(TAP_HERE, (got), (want), __VA_ARGS__)

/* The same size bytes; a failure names the first that differs. */
#define is_mem(got, want, size, ...) tap_is_mem(TAP_HERE, (got), (want), (size), __VA_ARGS__)

/* The text matches a POSIX extended regular expression, in which ^ and $ are its two ends. */
#define like(text, regex, ...) tap_like(TAP_HERE, (text), (regex), __VA_ARGS__)

/* The text has part somewhere in it. */
#define contains(text, part, ...) tap_contains(TAP_HERE, (text), (part), __VA_ARGS__)

/* Count the next count tests as skipped, and say why; the caller then jumps over them. */
#define skip(count, ...) tap_skip(TAP_HERE, (count), __VA_ARGS__)

/* Say something on stderr, each line as a TAP comment. */
#define diag(...) tap_diag(__VA_ARGS__)

/* Give up: prove stops the whole run. For when nothing after this could make sense. */
#define bail(...) tap_bail(__VA_ARGS__)

/* Close the run: what main returns. 0 only when tests ran, all passed and the plan was kept. */
int tap_done(void);

/* What the macros above stand on; tests do not call these. */
#define TAP_HERE __FILE__, __LINE__
#define TAP_PRINTF(text, first) __attribute__((format(printf, text, first)))

void tap_plan(int count);
_Noreturn void tap_skip_all(const char *file, int line, const char *why, ...) TAP_PRINTF(3, 4);
bool tap_ok(const char *file, int line, bool passed, const char *name, ...) TAP_PRINTF(4, 5);
bool tap_is_int(const char *file, int line, int64_t got, int64_t want, const char *name, ...)
    TAP_PRINTF(5, 6);
bool tap_is_real(const char *file, int line, double got, double want, double tolerance,
                 const char *name, ...) TAP_PRINTF(6, 7);
bool tap_is_str(const char *file, int line, const char *got, const char *want, const char *name,
                ...) TAP_PRINTF(5, 6);
bool tap_is_mem(const char *file, int line, const void *got, const void *want, size_t size,
                const char *name, ...) TAP_PRINTF(6, 7);
bool tap_like(const char *file, int line, const char *text, const char *regex, const char *name,
              ...) TAP_PRINTF(5, 6);
bool tap_contains(const char *file, int line, const char *text, const char *part, const char *name,
                  ...) TAP_PRINTF(5, 6);
void tap_skip(const char *file, int line, int count, const char *why, ...) TAP_PRINTF(4, 5);
void tap_diag(const char *format, ...) TAP_PRINTF(1, 2);
_Noreturn void tap_bail(const char *format, ...) TAP_PRINTF(1, 2);

#endif
