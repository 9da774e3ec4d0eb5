/*
 * Render: families in the text formats. See render.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/render.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers --------------------------------------------------------------------------------- */

/* The shortest digits that read back as the same number: "d.ddde±xx" in `buf`. */
static void shortest(char *buf, size_t size, double value)
{
    for (int precision = 0; precision < 17; precision++) {
        snprintf(buf, size, "%.*e", precision, value);
        if (strtod(buf, NULL) == value)
            return;
    }
}

/* Digits and exponent of a shortest number: -1.234e+05 is sign, "1234", 5. */
struct digits {
    bool negative;
    char text[24];
    int count, exponent;
};

static struct digits digits_of(double value)
{
    struct digits d = { .negative = signbit(value) };
    char buf[40];

    shortest(buf, sizeof(buf), fabs(value));
    for (const char *p = buf; *p != 'e'; p++)
        if (*p != '.')
            d.text[d.count++] = *p;
    d.exponent = atoi(strchr(buf, 'e') + 1);
    return d;
}

/* Without an exponent; `tail` stands behind a whole number. */
static void add_plain(struct text *out, const struct digits *d, const char *tail)
{
    if (d->exponent < 0) {
        text_add(out, "0.");
        for (int i = -1; i > d->exponent; i--)
            text_add(out, "0");
        text_addn(out, d->text, (size_t)d->count);
        return;
    }
    for (int i = 0; i <= d->exponent; i++)
        text_addn(out, i < d->count ? &d->text[i] : "0", 1);
    if (d->count > d->exponent + 1)
        text_addf(out, ".%.*s", d->count - d->exponent - 1, &d->text[d->exponent + 1]);
    else
        text_add(out, tail);
}

static void add_mantissa(struct text *out, const struct digits *d)
{
    text_addn(out, d->text, 1);
    if (d->count > 1)
        text_addf(out, ".%.*s", d->count - 1, &d->text[1]);
}

/* As client_golang writes a float: Go's 'g' with as few digits as can be. */
static void add_go(struct text *out, double value)
{
    struct digits d = digits_of(value);

    text_add(out, d.negative ? "-" : "");
    if (d.exponent < -4 || d.exponent >= 6) {
        add_mantissa(out, &d);
        text_addf(out, "e%c%02d", d.exponent < 0 ? '-' : '+', abs(d.exponent));
    } else {
        add_plain(out, &d, "");
    }
}

/* As prometheus_client writes a float: Python's repr, and for a million and more its own idea of an exponent. */
static void add_python(struct text *out, double value)
{
    struct digits d = digits_of(value);

    text_add(out, d.negative ? "-" : "");
    if (d.exponent >= 6 && !d.negative) {
        add_mantissa(out, &d);
        text_addf(out, "e+0%d", d.exponent);
    } else if (d.exponent < -4) {
        add_mantissa(out, &d);
        text_addf(out, "e-%02d", -d.exponent);
    } else {
        add_plain(out, &d, ".0");
    }
}

void render_number(struct text *out, enum number_format format, int decimals, double value)
{
    if (isnan(value)) {
        text_add(out, "NaN");
    } else if (isinf(value)) {
        text_add(out, value > 0 ? "+Inf" : "-Inf");
    } else if (format == NUMBER_INTEGER) {
        text_addf(out, "%.0f", value);
    } else if (format == NUMBER_FIXED) {
        text_addf(out, "%.*f", decimals, value);
    } else if (format == NUMBER_GENERAL) {
        text_addf(out, "%.15g", value);
    } else if (format == NUMBER_PYTHON) {
        add_python(out, value);
    } else {
        add_go(out, value);
    }
}

/* A whole number of 1/10^decimals; printf would be most of the work of a page. */
static void add_whole(struct text *out, int64_t value, int decimals)
{
    char buf[32], *at = &buf[sizeof(buf)];
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    for (int i = 0; i < decimals; i++, rest /= 10)
        *--at = (char)('0' + rest % 10);
    if (decimals)
        *--at = '.';
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    text_addn(out, at, (size_t)(&buf[sizeof(buf)] - at));
}

static void add_value(struct text *out, const struct family *f, const struct sample *s)
{

    /* Values have at most six decimals, and in this range are exact in them. */
    if (f->format == NUMBER_FIXED && f->decimals == 6 && s->kind == SAMPLE_REAL &&
        fabs(s->real) < 1e9)
        add_whole(out, llround(s->real * 1e6), 6);
    else if (f->format == NUMBER_INTEGER && s->kind == SAMPLE_INTEGER)
        add_whole(out, s->integer, 0);
    else
        render_number(out, f->format, f->decimals, sample_value(s));
}

/* --- text ------------------------------------------------------------------------------------ */

/* A help is one line. OpenMetrics escapes quotes, too. */
static void add_help(struct text *out, const char *help, bool quotes)
{
    for (; *help; help++)
        if (*help == '\\')
            text_add(out, "\\\\");
        else if (*help == '\n')
            text_add(out, "\\n");
        else if (*help == '"' && quotes)
            text_add(out, "\\\"");
        else
            text_addn(out, help, 1);
}

static void add_sample(struct text *out, const struct family *f, size_t length,
                       const struct sample *s)
{
    text_addn(out, f->name, length);
    if (s->labels->count) {
        text_addn(out, "{", 1);
        text_addn(out, s->labels->text, s->labels->text_length);
        text_addn(out, "}", 1);
    }
    text_addn(out, " ", 1);
    add_value(out, f, s);
    text_addn(out, "\n", 1);
}

static void add_samples(struct text *out, const struct family *f)
{
    size_t length = strlen(f->name);

    for (size_t i = 0; i < f->count; i++)
        add_sample(out, f, length, &f->samples[i]);
}

/* The family of a set that has this place in the order of all, or NULL. */
static const struct family *family_at(const struct family_set *set, size_t order)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (set->families[middle].order < order)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->families[low].order == order ? &set->families[low] : NULL;
}

/* Writes one family after the other: what stands above it, then the samples that each of the sets has. */
static void add_families(struct text *out, const struct family_set *sets,
                         void (*head)(struct text *out, const struct family *f))
{
    size_t behind = 0;

    for (const struct family_set *s = sets; s; s = s->next)
        if (s->count && s->families[s->count - 1].order >= behind)
            behind = s->families[s->count - 1].order + 1;
    for (size_t order = 0; order < behind; order++) {
        bool begun = false;

        for (const struct family_set *s = sets; s; s = s->next) {
            const struct family *f = family_at(s, order);

            if (f && !begun)
                head(out, f);
            begun |= f != NULL;
            if (f)
                add_samples(out, f);
        }
    }
}

static void add_text_head(struct text *out, const struct family *f)
{
    text_addf(out, "# HELP %s ", f->name);
    add_help(out, f->help, false);
    text_addf(out, "\n# TYPE %s %s\n", f->name, family_type_name(f->type));
}

void render_text(struct text *out, const struct family_set *set)
{
    add_families(out, set, add_text_head);
}

/* --- OpenMetrics ----------------------------------------------------------------------------- */

/*
 * A sample is called the same in both formats: who asks for OpenMetrics, as Prometheus does, must find the
 * names that the identity has. But a counter of OpenMetrics ends in _total; one that does not is of unknown
 * type there, and so are histograms and summaries of single numbers.
 */
static void add_openmetrics_head(struct text *out, const struct family *f)
{
    static const char total[] = "_total";
    size_t length = strlen(f->name), tail = strlen(total);
    bool counter = f->type == FAMILY_COUNTER && length > tail &&
                   !strcmp(f->name + length - tail, total);
    int base = (int)(counter ? length - tail : length);

    text_addf(out, "# TYPE %.*s %s\n# HELP %.*s ", base, f->name,
              counter                   ? "counter"
              : f->type == FAMILY_GAUGE ? "gauge"
                                        : "unknown",
              base, f->name);
    add_help(out, f->help, true);
    text_add(out, "\n");
}

void render_openmetrics(struct text *out, const struct family_set *set)
{
    add_families(out, set, add_openmetrics_head);
    text_add(out, "# EOF\n");
}
