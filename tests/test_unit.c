/*
 * Quantities are read exactly, refused with the allowed units, and printed so that they read back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"
#include "tests/tap.h"

#define HOUR (3600 * NS_PER_S)

struct reading {
    enum unit unit;
    const char *text;
    int64_t stored;
};

static const struct reading readings[] = {
    { UNIT_NANOSECOND, "1ns", 1 },
    { UNIT_NANOSECOND, "1us", NS_PER_US },
    { UNIT_NANOSECOND, "1ms", NS_PER_MS },
    { UNIT_NANOSECOND, "90s", 90 * NS_PER_S },
    { UNIT_NANOSECOND, "2m", 120 * NS_PER_S },
    { UNIT_NANOSECOND, "2min", 120 * NS_PER_S },
    { UNIT_NANOSECOND, "1h", HOUR },
    { UNIT_NANOSECOND, "1d", 24 * HOUR },
    { UNIT_NANOSECOND, "1h30m", 90 * 60 * NS_PER_S },
    { UNIT_NANOSECOND, "1d2h3m4s5ms", 93784005 * NS_PER_MS },
    { UNIT_NANOSECOND, "1.5h", 90 * 60 * NS_PER_S },
    { UNIT_NANOSECOND, ".5s", NS_PER_S / 2 },
    { UNIT_NANOSECOND, "0.000000001s", 1 },
    { UNIT_NANOSECOND, "0010s", 10 * NS_PER_S },
    { UNIT_NANOSECOND, "5 s", 5 * NS_PER_S },
    { UNIT_NANOSECOND, "+5s", 5 * NS_PER_S },
    { UNIT_NANOSECOND, "-1h30m", -90 * 60 * NS_PER_S },
    { UNIT_NANOSECOND, "0s", 0 },
    { UNIT_BYTES, "20GiB", 20 * GIB },
    { UNIT_BYTES, "1KiB", KIB },
    { UNIT_BYTES, "40960MiB", 40 * GIB },
    { UNIT_BYTES, "1TiB", GIB *KIB },
    { UNIT_BYTES, "1GB", 1000000000 },
    { UNIT_BYTES, "1.5kB", 1500 },
    { UNIT_BYTES, "7B", 7 },
    { UNIT_BYTES, "9223372036854775807B", INT64_MAX },
    { UNIT_BYTES, "0.5KiB", 512 },
    { UNIT_BYTES_PER_SECOND, "25781MB/s", INT64_C(25781000000) },
    { UNIT_BYTES_PER_SECOND, "1GiB/s", GIB },
    { UNIT_BYTES_PER_SECOND, "3B/s", 3 },
    { UNIT_MILLIWATT, "400W", 400000 },
    { UNIT_MILLIWATT, "0.4kW", 400000 },
    { UNIT_MILLIWATT, "62.5W", 62500 },
    { UNIT_MILLIJOULE, "1Wh", 3600000 },
    { UNIT_MILLIJOULE, "1kWh", INT64_C(3600000000) },
    { UNIT_MILLIJOULE, "2MJ", INT64_C(2000000000) },
    { UNIT_MILLIJOULE, "2mJ", 2 },
    { UNIT_CELSIUS, "85C", 85000 },
    { UNIT_CELSIUS, "-5C", -5000 },
    { UNIT_MEGAHERTZ, "1410MHz", 1410000 },
    { UNIT_MEGAHERTZ, "1.41GHz", 1410000 },
    { UNIT_MEGAHERTZ, "15kHz", 15 },
    { UNIT_PERCENT, "50%", 50000 },
    { UNIT_PERCENT, "33.333%", 33333 },
    /* Zeros behind the last digit that counts say nothing. */
    { UNIT_PERCENT, "33.33300000000000000000000000%", 33333 },
};

static void test_readings(void)
{
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        const struct reading *q = &readings[i];
        struct why why = { 0 };
        int64_t stored = -1;
        int r = unit_parse(q->unit, q->text, UNIT_BARE_REFUSED, &stored, &why);

        ok(r == 0 && stored == q->stored, "%s is %" PRId64 " parts of %s (%" PRId64 " %s)", q->text,
           q->stored, unit_name(q->unit), stored, why_text(&why));
        why_release(&why);
    }
}

static const struct reading bare[] = {
    { UNIT_PERCENT, "50", 50000 },  { UNIT_PERCENT, "12.5", 12500 },
    { UNIT_BYTES, "4096", 4096 },   { UNIT_MILLIWATT, "250000", 250000 },
    { UNIT_CELSIUS, "50", 50000 },  { UNIT_MEGAHERTZ, "1410", 1410000 },
    { UNIT_RATIO, "0.25", 250000 }, { UNIT_COUNT, "79", 79 },
    { UNIT_NANOSECOND, "5", 5 },    { UNIT_COUNT, "010", 10 },
};

static void test_bare(void)
{
    for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
        int64_t stored = -1;

        is_int(unit_parse(bare[i].unit, bare[i].text, UNIT_BARE_SHOWN, &stored, NULL), 0,
               "a bare %s is read where that is allowed", bare[i].text);
        is_int(stored, bare[i].stored, "… as so many %s", unit_name(bare[i].unit));
        is_int(unit_parse(bare[i].unit, bare[i].text, UNIT_BARE_REFUSED, &stored, NULL), -EINVAL,
               "… and nowhere else");
    }
}

static const struct {
    enum unit unit;
    const char *text;
    int error;
    const char *words;
} refusals[] = {
    { UNIT_NANOSECOND, "", EINVAL, "'' is not a number with a unit; allowed units: d, h, min" },
    { UNIT_NANOSECOND, "s", EINVAL, "'s' is not a number with a unit" },
    { UNIT_NANOSECOND, "5", EINVAL, "'5' needs a unit" },
    { UNIT_NANOSECOND, "1h30", EINVAL, "'1h30' needs a unit" },
    { UNIT_NANOSECOND, "1h 30m", EINVAL, "'1h 30m' is not a number with a unit" },
    { UNIT_NANOSECOND, "5S", EINVAL, "'5S' has a wrong unit" },
    { UNIT_NANOSECOND, "5.s", EINVAL, "'5.s' is not a number with a unit" },
    { UNIT_NANOSECOND, "1.2.3s", EINVAL, "needs a unit" },
    { UNIT_NANOSECOND, "--5s", EINVAL, "is not a number with a unit" },
    { UNIT_NANOSECOND, " 5s", EINVAL, "is not a number with a unit" },
    { UNIT_NANOSECOND, "5s ", EINVAL, "is not a number with a unit" },
    { UNIT_NANOSECOND, "1e3s", EINVAL, "has a wrong unit" },
    { UNIT_NANOSECOND, "0x10s", EINVAL, "has a wrong unit" },
    { UNIT_NANOSECOND, "0.5ns", EINVAL, "has more decimals than can be kept" },
    { UNIT_NANOSECOND, "1h-5m", EINVAL, "has a wrong unit" },
    { UNIT_BYTES, "1GiB1MiB", EINVAL, "is not one number with a unit" },
    { UNIT_BYTES, "1GHz", EINVAL, "allowed units: TiB, GiB, MiB, KiB, TB, GB, MB, kB, B" },
    { UNIT_BYTES, "1gib", EINVAL, "has a wrong unit" },
    { UNIT_BYTES, "1%", EINVAL, "has a wrong unit" },
    { UNIT_BYTES, "1.1B", EINVAL, "has more decimals than can be kept" },
    { UNIT_PERCENT, "33.3333%", EINVAL, "has more decimals than can be kept" },
    { UNIT_PERCENT, "33.33300000000000000000000001%", EINVAL, "more decimals" },
    { UNIT_COUNT, "5x", EINVAL, "'5x' has a wrong unit; allowed: a whole number" },
    { UNIT_RATIO, "half", EINVAL, "allowed: a number" },
    { UNIT_BYTES, "9223372036854775808B", ERANGE, "'9223372036854775808B' is too large" },
    { UNIT_BYTES, "8388608TiB", ERANGE, "is too large" },
    { UNIT_BYTES, "99999999999999999999999B", ERANGE, "is too large" },
    { UNIT_NANOSECOND, "9000000000s9000000000s", ERANGE, "is too large" },
    { UNIT_MILLIJOULE, "99999999999kWh", ERANGE, "is too large" },
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct why why = { 0 };
        int64_t stored = 42;

        is_int(unit_parse(refusals[i].unit, refusals[i].text, UNIT_BARE_REFUSED, &stored, &why),
               -refusals[i].error, "'%s' is no %s", refusals[i].text, unit_name(refusals[i].unit));
        contains(why_text(&why), refusals[i].words, "… and the sentence says why");
        is_int(stored, 42, "… and the value is left alone");
        why_release(&why);
    }
}

static const struct {
    enum unit unit;
    int64_t stored;
    const char *text;
} prints[] = {
    { UNIT_NANOSECOND, 0, "0ns" },
    { UNIT_NANOSECOND, 90 * NS_PER_S, "90s" },
    { UNIT_NANOSECOND, 90 * 60 * NS_PER_S, "90m" },
    { UNIT_NANOSECOND, 24 * HOUR, "24h" },
    { UNIT_NANOSECOND, NS_PER_S + 1, "1000000001ns" },
    { UNIT_NANOSECOND, -NS_PER_S, "-1s" },
    { UNIT_BYTES, 20 * GIB, "20GiB" },
    { UNIT_BYTES, 11441 * KIB *KIB, "11441MiB" },
    { UNIT_BYTES, 1000, "1000B" },
    { UNIT_BYTES, 0, "0B" },
    { UNIT_BYTES_PER_SECOND, INT64_C(25781000000), "25781MB/s" },
    { UNIT_MILLIWATT, 62500, "62500mW" },
    { UNIT_MILLIWATT, 400000, "400W" },
    { UNIT_MILLIJOULE, 3600000, "3600J" },
    { UNIT_CELSIUS, 85500, "85.5C" },
    { UNIT_CELSIUS, -5000, "-5C" },
    { UNIT_CELSIUS, -1, "-0.001C" },
    { UNIT_MEGAHERTZ, 1410000, "1410MHz" },
    { UNIT_MEGAHERTZ, 15, "0.015MHz" },
    { UNIT_PERCENT, 33333, "33.333%" },
    { UNIT_PERCENT, 100000, "100%" },
    { UNIT_RATIO, 873214, "0.873214" },
    { UNIT_RATIO, 500000, "0.5" },
    { UNIT_COUNT, INT64_MAX, "9223372036854775807" },
    { UNIT_COUNT, INT64_MIN, "-9223372036854775808" },
};

static void test_prints(void)
{
    for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++) {
        struct text out = TEXT_INIT;

        unit_print(&out, prints[i].unit, prints[i].stored);
        is_str(text_str(&out), prints[i].text, "%" PRId64 " parts of %s print as %s",
               prints[i].stored, unit_name(prints[i].unit), prints[i].text);
        text_release(&out);
    }
}

/* Numbers of all sizes, the same in every run. */
static int64_t next_number(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (int64_t)(z >> (1 + z % 62));
}

static void test_round_trip(enum unit unit)
{
    enum { NUMBERS = 5000 };
    bool no_suffix = unit == UNIT_RATIO || unit == UNIT_COUNT || unit == UNIT_BITMASK;
    enum unit_bare bare_ones = no_suffix ? UNIT_BARE_SHOWN : UNIT_BARE_REFUSED;
    uint64_t state = (uint64_t)unit;
    int wrong = 0;

    for (int i = 0; i < NUMBERS; i++) {
        int64_t stored = next_number(&state) * (i % 2 ? 1 : -1), back = 0;
        struct text out = TEXT_INIT;

        unit_print(&out, unit, stored);
        if (unit_parse(unit, text_str(&out), bare_ones, &back, NULL) < 0 || back != stored) {
            if (!wrong++)
                diag("%" PRId64 " printed as %s reads as %" PRId64, stored, text_str(&out), back);
        }
        text_release(&out);
    }
    is_int(wrong, 0, "%d quantities in %s read back from what was printed", NUMBERS,
           unit_name(unit));
}

static void shows(enum unit unit, int64_t stored, const char *want, const char *name)
{
    struct text out = TEXT_INIT;

    unit_show(&out, unit, stored);
    is_str(text_str(&out), want, "%s", name);
    text_release(&out);
}

static void test_show(void)
{
    shows(UNIT_PERCENT, 50000, "50", "a percentage shows whole percent");
    shows(UNIT_PERCENT, 49500, "50", "… rounded, halves away from zero");
    shows(UNIT_PERCENT, 49499, "49", "… or down");
    shows(UNIT_PERCENT, -499, "0", "… and never as -0");
    shows(UNIT_CELSIUS, -49500, "-50", "a negative one likewise");
    shows(UNIT_RATIO, 873214, "0.873214", "a ratio shows six decimals");
    shows(UNIT_RATIO, 1000000, "1.000000", "… always");
    shows(UNIT_RATIO, -5, "-0.000005", "… and its sign");
    shows(UNIT_MEGAHERTZ, 1410000, "1410", "a clock shows MHz");
    shows(UNIT_BYTES, 42949672960, "42949672960", "bytes show as they are");
    shows(UNIT_MILLIWATT, 51234, "51234", "so do milliwatts");
    shows(UNIT_COUNT, INT64_MIN, "-9223372036854775808", "the smallest number has its place");
}

static void reads_whole(const char *text, int want_r, int64_t want)
{
    int64_t value = 42;

    is_int(parse_i64(text, &value), want_r, "'%s' is %s a whole number", text,
           want_r ? "not" : "read as");
    is_int(value, want_r ? 42 : want, "… and the value is right");
}

static void test_whole(void)
{
    reads_whole("10", 0, 10);
    reads_whole("010", 0, 10); /* never octal */
    reads_whole("0777", 0, 777);
    reads_whole("0x10", 0, 16);
    reads_whole("0X1f", 0, 31);
    reads_whole("-0x10", 0, -16);
    reads_whole("+5", 0, 5);
    reads_whole("-9223372036854775808", 0, INT64_MIN);
    reads_whole("9223372036854775807", 0, INT64_MAX);
    reads_whole("9223372036854775808", -ERANGE, 0);
    reads_whole("0xffffffffffffffffff", -ERANGE, 0);
    reads_whole("", -EINVAL, 0);
    reads_whole("-", -EINVAL, 0);
    reads_whole("0x", -EINVAL, 0);
    reads_whole(" 5", -EINVAL, 0);
    reads_whole("5 ", -EINVAL, 0);
    reads_whole("5.0", -EINVAL, 0);
    reads_whole("1e3", -EINVAL, 0);
    reads_whole("--5", -EINVAL, 0);
    reads_whole("99999999999999999999x", -EINVAL, 0);
}

static void reads_real(const char *text, int want_r, double want)
{
    double value = 42;

    is_int(parse_real(text, &value), want_r, "'%s' is %s a number", text, want_r ? "not" : "");
    ok(value == (want_r ? 42 : want), "… and the value is right: %.17g", value);
}

static void test_real(void)
{
    reads_real("0.12", 0, 0.12);
    reads_real("-3", 0, -3);
    reads_real("1e-3", 0, 1e-3);
    reads_real("1E+3", 0, 1e3);
    reads_real(".5", 0, 0.5);
    reads_real("+2.5", 0, 2.5);
    reads_real("0.1234567890123456789", 0, 0.1234567890123456789);
    reads_real("123456789012345678901234567890", 0, 123456789012345678901234567890.0);
    reads_real("1e300", 0, 1e300);
    reads_real("1e999", -ERANGE, 0);
    reads_real("", -EINVAL, 0);
    reads_real(".", -EINVAL, 0);
    reads_real("5.", -EINVAL, 0);
    reads_real("e5", -EINVAL, 0);
    reads_real("1e", -EINVAL, 0);
    reads_real("1e+", -EINVAL, 0);
    reads_real("1e0x5", -EINVAL, 0);
    reads_real("0x10", -EINVAL, 0);
    reads_real("nan", -EINVAL, 0);
    reads_real("inf", -EINVAL, 0);
    reads_real("1,5", -EINVAL, 0);
    reads_real(" 1", -EINVAL, 0);
    reads_real("1 ", -EINVAL, 0);
    /* Where a locale with a decimal comma is installed, it changes nothing. */
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        reads_real("0.5", 0, 0.5);
    setlocale(LC_NUMERIC, "C");
}

static void test_print_real(void)
{
    static const double numbers[] = { 0,     0.1,    1.0 / 3, 1e-30, -2.4,
                                      1e300, 2.4e-7, 1e15,    M_PI,  5e-324 };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct text out = TEXT_INIT;
        double back = NAN;

        print_real(&out, numbers[i]);
        ok(parse_real(text_str(&out), &back) == 0 && back == numbers[i], "%.17g reads back from %s",
           numbers[i], text_str(&out));
        text_release(&out);
    }
}

static void test_trim(void)
{
    char buf[8], text[] = " \tin place \n";

    is_int(parse_trim("  a b \n", buf, sizeof(buf)), 0, "a text is trimmed");
    is_str(buf, "a b", "… at both ends only");
    is_int(parse_trim(" 1234567 ", buf, sizeof(buf)), 0, "one that just fits is taken");
    is_int(parse_trim("12345678", buf, sizeof(buf)), -E2BIG, "one that does not is refused");
    is_int(parse_trim(" \n", buf, sizeof(buf)), 0, "blanks alone");
    is_str(buf, "", "… are nothing");
    is_int(parse_trim(text, text, sizeof(text)), 0, "a text can be trimmed");
    is_str(text, "in place", "… where it stands");
}

int main(void)
{
    test_readings();
    test_bare();
    test_refusals();
    test_prints();
    for (int unit = 0; unit < UNIT_COUNT_OF_UNITS; unit++)
        test_round_trip((enum unit)unit);
    test_show();
    test_whole();
    test_real();
    test_print_real();
    test_trim();
    return tap_done();
}
