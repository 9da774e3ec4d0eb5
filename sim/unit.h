/*
 * Unit: how a quantity is stored, written and read.
 *
 * Every quantity of the simulator is a whole number of its unit's smallest part (a percentage in
 * thousandths, a clock in kHz), so sums and comparisons are exact and the same on every machine.
 * This table alone knows the factors and the suffixes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_UNIT_H
#define SIM_UNIT_H

#include <stdbool.h>
#include <stdint.h>

struct text;
struct why;

/* UNIT(ID, stored parts per shown unit, decimals shown, name, the suffix that stands for one) */
/* clang-format off */
#define UNIT_TABLE(UNIT)                                    \
    UNIT(PERCENT, 1000, 0, "percent", "%")                  \
    UNIT(BYTES, 1, 0, "bytes", "B")                         \
    UNIT(BYTES_PER_SECOND, 1, 0, "bytes per second", "B/s") \
    UNIT(MILLIWATT, 1, 0, "mW", "mW")                       \
    UNIT(MILLIJOULE, 1, 0, "mJ", "mJ")                      \
    UNIT(CELSIUS, 1000, 0, "degrees C", "C")                \
    UNIT(MEGAHERTZ, 1000, 0, "MHz", "MHz")                  \
    UNIT(RATIO, 1000000, 6, "ratio", "")                    \
    UNIT(NANOSECOND, 1, 0, "ns", "ns")                      \
    UNIT(COUNT, 1, 0, "number", "")                         \
    UNIT(BITMASK, 1, 0, "bit mask", "")
/* clang-format on */

enum unit {
#define UNIT(id, parts, decimals, name, suffix) UNIT_##id,
    UNIT_TABLE(UNIT)
#undef UNIT
        UNIT_COUNT_OF_UNITS
};

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* The longest time that can be asked for: a leap year. Sums of two stay far from overflow. */
#define TIME_MAX_NS (366 * 24 * 3600 * NS_PER_S)

/* Stored parts per shown unit: 1000 for a percentage. */
int64_t unit_parts(enum unit unit);

/* The unit's name for a sentence: "mW", "percent". */
const char *unit_name(enum unit unit);

/* Appends the value as a file shows it: shown units, fixed decimals, no suffix ("50", "0.873214"). */
void unit_show(struct text *out, enum unit unit, int64_t stored);

/* Appends the value as a configuration writes it: the largest suffix that divides it ("20GiB", "90s"). */
void unit_print(struct text *out, enum unit unit, int64_t stored);

enum unit_bare {
    UNIT_BARE_REFUSED, /* a number without suffix is an error */
    UNIT_BARE_SHOWN,   /* … counts shown units (percent, mW, bytes) */
};

/*
 * Reads "20GiB", "1.5h", "1h30m", "400W", "50%", "-5C". Exact: no floating point, no locale.
 * -EINVAL when malformed or of another unit, -ERANGE when it does not fit.
 */
int unit_parse(enum unit unit, const char *text, enum unit_bare bare, int64_t *stored,
               struct why *why);

/* Appends the members of the JSON Schema for what unit_parse reads. */
void unit_schema(struct text *out, enum unit unit, enum unit_bare bare);

/* Reads a whole number, decimal or 0x hexadecimal. -EINVAL, -ERANGE. */
int parse_i64(const char *text, int64_t *value);

/* Reads a decimal number ("0.12", "-3", "1e-3"), independent of the locale. -EINVAL, -ERANGE. */
int parse_real(const char *text, double *value);

/* Appends the shortest decimal that parse_real reads back as the same number. */
void print_real(struct text *out, double value);

/* `text` without surrounding white space, in place. */
char *parse_trimmed(char *text);

/* Copies `text` without surrounding white space into buf (which may be text); -E2BIG when it does not fit. */
int parse_trim(const char *text, char *buf, unsigned long size);

#endif
