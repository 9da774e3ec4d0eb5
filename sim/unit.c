/*
 * Unit: how a quantity is stored, written and read. See unit.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/unit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
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
    { UNIT_BYTES, "GiB", GIB, false },
    { UNIT_BYTES, "MiB", MIB, false },
    { UNIT_BYTES, "KiB", KIB, false },
    { UNIT_BYTES, "TB", INT64_C(1000000000000), true },
    { UNIT_BYTES, "GB", INT64_C(1000000000), true },
    { UNIT_BYTES, "MB", INT64_C(1000000), true },
    { UNIT_BYTES, "kB", INT64_C(1000), true },
    { UNIT_BYTES, "B", 1, true },
    { UNIT_BYTES_PER_SECOND, "GiB/s", GIB, true },
    { UNIT_BYTES_PER_SECOND, "MiB/s", MIB, true },
    { UNIT_BYTES_PER_SECOND, "KiB/s", KIB, true },
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
    uint64_t rounded = (uint64_t)((scaled + parts / 2) / parts); /* INT64_MIN's too */

    if (value < 0 && rounded)
        text_add(out, "-");
    text_addf(out, "%" PRIu64, rounded / (uint64_t)ten);
    if (decimals)
        text_addf(out, ".%0*" PRIu64, decimals, rounded % (uint64_t)ten);
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
    text_add(out, units[unit].suffix);
}

/* An unsigned decimal: digits with an optional fraction, as mantissa and number of decimals. */
struct decimal {
    int64_t mantissa;
    int decimals;
    bool cut; /* it has decimals that did not fit, and they were not zero */
};

enum { DECIMALS_MAX = 12 };

static bool add_digit(int64_t *mantissa, int digit)
{
    int64_t more;

    if (__builtin_mul_overflow(*mantissa, 10, &more) || __builtin_add_overflow(more, digit, &more))
        return false;
    *mantissa = more;
    return true;
}

/* One more decimal, or a note that it is lost. */
static void add_decimal(struct decimal *d, int digit)
{
    if (d->decimals < DECIMALS_MAX && !d->cut && add_digit(&d->mantissa, digit))
        d->decimals++;
    else
        d->cut |= digit != 0;
}

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
        if (point)
            add_decimal(d, *p - '0');
        else if (!add_digit(&d->mantissa, *p - '0'))
            return -ERANGE;
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

    if (d.cut || scaled % ten)
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

static void add_allowed(struct text *out, enum unit unit)
{
    const char *before = " units: ";

    for (size_t i = 0; i < LENGTH(suffixes); i++) {
        if (suffixes[i].unit != unit)
            continue;
        text_addf(out, "%s%s", before, suffixes[i].text);
        before = ", ";
    }
    if (!out->length)
        text_add(out, units[unit].parts > 1 ? ": a number" : ": a whole number");
}

static int refuse(enum unit unit, const char *text, int err, const char *problem, struct why *why)
{
    struct text allowed = TEXT_INIT;
    int r;

    if (err == ERANGE)
        return why_set(why, ERANGE, "'%s' is too large", text);
    add_allowed(&allowed, unit);
    r = why_set(why, err, "'%s' %s; allowed%s", text, problem, text_str(&allowed));
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

static void add_choice(struct text *out, enum unit unit)
{
    const char *before = "(";

    for (size_t i = 0; i < LENGTH(suffixes); i++) {
        if (suffixes[i].unit != unit)
            continue;
        text_addf(out, "%s%s", before, suffixes[i].text);
        before = "|";
    }
    text_add(out, *before == '(' ? "" : ")");
}

void unit_schema(struct text *out, enum unit unit, enum unit_bare bare)
{
    static const char number[] = "([0-9]+|[0-9]*[.][0-9]+) *";
    bool with_bare = bare == UNIT_BARE_SHOWN, sum = unit == UNIT_NANOSECOND;
    struct text choice = TEXT_INIT;

    add_choice(&choice, unit);
    text_addf(out, "\"type\": %s, \"pattern\": \"^[-+]?",
              with_bare ? "[\"number\", \"string\"]" : "\"string\"");
    if (sum && with_bare)
        text_addf(out, "(%s|(%s%s)+)", number, number, text_str(&choice));
    else if (sum)
        text_addf(out, "(%s%s)+", number, text_str(&choice));
    else
        text_addf(out, "%s%s%s", number, text_str(&choice), choice.length && with_bare ? "?" : "");
    text_add(out, "$\"");
    text_release(&choice);
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

static const char *skip_digits(const char *p)
{
    while (isdigit((unsigned char)*p))
        p++;
    return p;
}

/* Digits, a fraction, an exponent: nothing else of what strtod takes. */
static bool is_real(const char *p)
{
    const char *from;

    p += *p == '-' || *p == '+';
    from = p;
    p = skip_digits(p);
    if (*p == '.' && isdigit((unsigned char)p[1]))
        p = skip_digits(p + 1);
    if (p == from)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        if (!isdigit((unsigned char)*p))
            return false;
        p = skip_digits(p);
    }
    return !*p;
}

int parse_real(const char *text, double *value)
{
    locale_t plain;
    double v;

    if (!is_real(text))
        return -EINVAL;
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* elsewhere 0.5 may be written 0,5 */
    if (!plain)
        return -ENOMEM;
    v = strtod_l(text, NULL, plain);
    freelocale(plain);
    if (isinf(v))
        return -ERANGE;
    *value = v;
    return 0;
}

void print_real(struct text *out, double value)
{
    size_t start = out->length;
    double back;

    for (int digits = 6; digits <= 17; digits++) {
        text_cut(out, start);
        text_addf(out, "%.*g", digits, value);
        if (parse_real(text_str(out) + start, &back) == 0 && back == value)
            return;
    }
}

/* Where the text begins and how long it is, without surrounding white space. */
static const char *trim(const char *text, size_t *length)
{
    while (isspace((unsigned char)*text))
        text++;
    *length = strlen(text);
    while (*length && isspace((unsigned char)text[*length - 1]))
        (*length)--;
    return text;
}

char *parse_trimmed(char *text)
{
    size_t n;
    char *begin = text + (trim(text, &n) - text);

    begin[n] = '\0';
    return begin;
}

int parse_trim(const char *text, char *buf, unsigned long size)
{
    size_t n;

    text = trim(text, &n);
    if (n >= size)
        return -E2BIG;
    memmove(buf, text, n);
    buf[n] = '\0';
    return 0;
}
