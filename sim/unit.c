/*
 * Unit: how a quantity is stored, written and read. See unit.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/unit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/text.h"
#include "sim/why.h"

struct unit_row {
    const char *name, *suffix;
    int64_t parts;
    int decimals;
};

static const struct unit_row units[] = {
#define UNIT(id, parts, decimals, name, suffix) [UNIT_##id] = { name, suffix, parts, decimals },
    UNIT_TABLE(UNIT)
#undef UNIT
};

struct suffix {
    enum unit unit;
    const char *text;
    int64_t parts;  /* stored parts in one of it */
    bool read_only; /* accepted, but never chosen to print */
};

/* Within a unit the largest first: unit_print takes the first that divides. */
static const struct suffix suffixes[] = {
    { UNIT_NANOSECOND, "d", 86400 * NS_PER_S, true },
    { UNIT_NANOSECOND, "h", 3600 * NS_PER_S, false },
    { UNIT_NANOSECOND, "min", 60 * NS_PER_S, true },
    { UNIT_NANOSECOND, "m", 60 * NS_PER_S, false },
    { UNIT_NANOSECOND, "s", NS_PER_S, false },
    { UNIT_NANOSECOND, "ms", NS_PER_MS, false },
    { UNIT_NANOSECOND, "us", NS_PER_US, false },
    { UNIT_NANOSECOND, "ns", 1, false },
    { UNIT_BYTES, "TiB", INT64_C(1) << 40, false },
    { UNIT_BYTES, "GiB", INT64_C(1) << 30, false },
    { UNIT_BYTES, "MiB", INT64_C(1) << 20, false },
    { UNIT_BYTES, "KiB", INT64_C(1) << 10, false },
    { UNIT_BYTES, "TB", INT64_C(1000000000000), true },
    { UNIT_BYTES, "GB", INT64_C(1000000000), true },
    { UNIT_BYTES, "MB", INT64_C(1000000), true },
    { UNIT_BYTES, "kB", INT64_C(1000), true },
    { UNIT_BYTES, "B", 1, true },
    { UNIT_BYTES_PER_SECOND, "GiB/s", INT64_C(1) << 30, true },
    { UNIT_BYTES_PER_SECOND, "MiB/s", INT64_C(1) << 20, true },
    { UNIT_BYTES_PER_SECOND, "KiB/s", INT64_C(1) << 10, true },
    { UNIT_BYTES_PER_SECOND, "GB/s", INT64_C(1000000000), false },
    { UNIT_BYTES_PER_SECOND, "MB/s", INT64_C(1000000), false },
    { UNIT_BYTES_PER_SECOND, "kB/s", INT64_C(1000), false },
    { UNIT_BYTES_PER_SECOND, "B/s", 1, false },
    { UNIT_MILLIWATT, "kW", 1000000, true },
    { UNIT_MILLIWATT, "W", 1000, false },
    { UNIT_MILLIWATT, "mW", 1, false },
    { UNIT_MILLIJOULE, "kWh", INT64_C(3600000000), true },
    { UNIT_MILLIJOULE, "Wh", 3600000, true },
    { UNIT_MILLIJOULE, "MJ", 1000000000, false },
    { UNIT_MILLIJOULE, "kJ", 1000000, false },
    { UNIT_MILLIJOULE, "J", 1000, false },
    { UNIT_MILLIJOULE, "mJ", 1, false },
    { UNIT_MEGAHERTZ, "GHz", 1000000, true },
    { UNIT_MEGAHERTZ, "MHz", 1000, false },
    { UNIT_MEGAHERTZ, "kHz", 1, true },
    { UNIT_CELSIUS, "C", 1000, false },
    { UNIT_PERCENT, "%", 1000, false },
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

int64_t unit_parts(enum unit unit)
{
    return units[unit].parts;
}

const char *unit_name(enum unit unit)
{
    return units[unit].name;
}

static int64_t power_of_ten(int n)
{
    int64_t p = 1;

    while (n-- > 0)
        p *= 10;
    return p;
}

/* A value in 1/parts as a decimal with `decimals` digits, rounded half away from zero. */
static void show_decimal(struct text *out, int64_t value, int64_t parts, int decimals)
{
    int64_t ten = power_of_ten(decimals);
    __int128 scaled = (__int128)(value < 0 ? -(__int128)value : value) * ten;
    int64_t rounded = (int64_t)((scaled + parts / 2) / parts);

    if (value < 0 && rounded)
        text_add(out, "-");
    text_addf(out, "%" PRId64, rounded / ten);
    if (decimals)
        text_addf(out, ".%0*" PRId64, decimals, rounded % ten);
}

void unit_show(struct text *out, enum unit unit, int64_t stored)
{
    show_decimal(out, stored, units[unit].parts, units[unit].decimals);
}

/* The fewest decimals that lose nothing. */
static void print_exact(struct text *out, int64_t stored, int64_t parts)
{
    int decimals = 0;

    while (decimals < 9 && stored % parts * power_of_ten(decimals) % parts)
        decimals++;
    show_decimal(out, stored, parts, decimals);
}

void unit_print(struct text *out, enum unit unit, int64_t stored)
{
    for (size_t i = 0; i < LENGTH(suffixes); i++) {
        const struct suffix *s = &suffixes[i];

        if (s->unit == unit && !s->read_only && stored && stored % s->parts == 0) {
            text_addf(out, "%" PRId64 "%s", stored / s->parts, s->text);
            return;
        }
    }
    print_exact(out, stored, units[unit].parts);
    text_add(out, unit == UNIT_BYTES ? "" : units[unit].suffix);
}

/* An unsigned decimal: digits with an optional fraction, as mantissa and number of decimals. */
struct decimal {
    int64_t mantissa;
    int decimals;
};

static int read_decimal(const char **at, struct decimal *d)
{
    const char *p = *at;
    bool any = false, point = false;

    *d = (struct decimal){ 0 };
    for (;; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)*p))
            break;
        any = true;
        if (d->mantissa > (INT64_MAX - 9) / 10 || d->decimals == 12)
            return -ERANGE;
        d->mantissa = d->mantissa * 10 + (*p - '0');
        d->decimals += point;
    }
    if (!any || p[-1] == '.')
        return -EINVAL;
    *at = p;
    return 0;
}

/* mantissa / 10^decimals × parts, refusing what is not a whole number of parts or too large. */
static int scale_decimal(struct decimal d, int64_t parts, int64_t *stored)
{
    __int128 scaled = (__int128)d.mantissa * parts;
    int64_t ten = power_of_ten(d.decimals);

    if (scaled % ten)
        return -EINVAL;
    if (scaled / ten > INT64_MAX)
        return -ERANGE;
    *stored = (int64_t)(scaled / ten);
    return 0;
}

static size_t suffix_length(const char *p)
{
    size_t n = 0;

    while (p[n] && !isdigit((unsigned char)p[n]) && p[n] != '.' && !isspace((unsigned char)p[n]))
        n++;
    return n;
}

static const struct suffix *suffix_find(enum unit unit, const char *p, size_t n)
{
    for (size_t i = 0; i < LENGTH(suffixes); i++) {
        const struct suffix *s = &suffixes[i];

        if (s->unit == unit && strlen(s->text) == n && !memcmp(s->text, p, n))
            return s;
    }
    return NULL;
}

static void add_suffixes(struct text *out, enum unit unit)
{
    const char *before = " ";

    for (size_t i = 0; i < LENGTH(suffixes); i++) {
        if (suffixes[i].unit != unit)
            continue;
        text_addf(out, "%s%s", before, suffixes[i].text);
        before = ", ";
    }
}

static int refuse(enum unit unit, const char *text, int err, const char *problem, struct why *why)
{
    struct text allowed = TEXT_INIT;
    int r;

    if (err == ERANGE)
        return why_set(why, ERANGE, "'%s' is too large", text);
    add_suffixes(&allowed, unit);
    r = why_set(why, err, "'%s' %s%s%s", text, problem,
                allowed.length ? "; allowed units:" : "; allowed: a number", text_str(&allowed));
    text_release(&allowed);
    return r;
}

/* One "number suffix" term at *at, which it moves behind the term. */
static int parse_term(enum unit unit, const char **at, enum unit_bare bare, int64_t *stored,
                      const char **problem)
{
    struct decimal d;
    const struct suffix *s;
    size_t n;
    int r = read_decimal(at, &d);

    *problem = "is not a number with a unit";
    if (r < 0)
        return r;
    while (isspace((unsigned char)**at))
        (*at)++;
    n = suffix_length(*at);
    if (n == 0) {
        *problem = "needs a unit";
        if (bare == UNIT_BARE_REFUSED)
            return -EINVAL;
        *problem = "has more decimals than can be kept";
        return scale_decimal(d, units[unit].parts, stored);
    }
    s = suffix_find(unit, *at, n);
    *problem = "has a wrong unit";
    if (!s)
        return -EINVAL;
    *at += n;
    *problem = "has more decimals than can be kept";
    return scale_decimal(d, s->parts, stored);
}

int unit_parse(enum unit unit, const char *text, enum unit_bare bare, int64_t *stored,
               struct why *why)
{
    const char *p = text, *problem;
    bool negative = *p == '-';
    int64_t sum = 0, term;
    int r;

    p += negative || *p == '+';
    do {
        r = parse_term(unit, &p, bare, &term, &problem);
        if (r < 0)
            return refuse(unit, text, -r, problem, why);
        if (__builtin_add_overflow(sum, term, &sum))
            return refuse(unit, text, ERANGE, problem, why);
        bare = UNIT_BARE_REFUSED;            /* in "1h30" the 30 is nothing */
    } while (*p && unit == UNIT_NANOSECOND); /* only times are written as sums: 1h30m */
    if (*p)
        return refuse(unit, text, EINVAL, "is not one number with a unit", why);
    *stored = negative ? -sum : sum;
    return 0;
}

int parse_i64(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    char *end;
    long long v;

    /* Never octal: 010 is ten for a person who writes a configuration. */
    if (hex ? !isxdigit((unsigned char)digits[2]) : !isdigit((unsigned char)digits[0]))
        return -EINVAL;
    errno = 0;
    v = strtoll(text, &end, hex ? 16 : 10);
    if (*end)
        return -EINVAL;
    if (errno == ERANGE)
        return -ERANGE;
    *value = v;
    return 0;
}

int parse_real(const char *text, double *value)
{
    const char *p = text + (*text == '-' || *text == '+');
    struct decimal d;
    int64_t exponent = 0;
    int r = read_decimal(&p, &d);

    if (r < 0)
        return r;
    if (*p == 'e' || *p == 'E') {
        r = parse_i64(p + 1, &exponent);
        if (r < 0)
            return r;
    } else if (*p) {
        return -EINVAL;
    }
    if (exponent < -30 || exponent > 30)
        return -ERANGE;
    /* Dividing by an exact power of ten rounds once; multiplying by an inexact one rounds twice. */
    exponent -= d.decimals;
    *value = exponent < 0 ? (double)d.mantissa / pow(10, (double)-exponent)
                          : (double)d.mantissa * pow(10, (double)exponent);
    if (*text == '-')
        *value = -*value;
    return 0;
}

int parse_trim(const char *text, char *buf, unsigned long size)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    if (n >= size)
        return -E2BIG;
    memcpy(buf, text, n);
    buf[n] = '\0';
    return 0;
}
