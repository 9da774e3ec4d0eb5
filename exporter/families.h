/*
 * Families: what the exporter has to say, before it is said in any format.
 *
 * The one representation between collecting and rendering: named families of samples with labels, values as
 * numbers. Prometheus text, OpenMetrics, OTLP and whatever comes are renderings of it; none of them looks at
 * the mount. A set is made by expose.c, is of one generation, and does not change once it is made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_FAMILIES_H
#define EXPORTER_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/arena.h"

struct text;

enum family_type {
    FAMILY_GAUGE,
    FAMILY_COUNTER,
    FAMILY_HISTOGRAM, /* a counters file may call a field so; it is a number all the same */
    FAMILY_SUMMARY,
    FAMILY_UNTYPED,
};

/* How the text formats write a real number. */
enum number_format {
    NUMBER_INTEGER, /* 50 */
    NUMBER_FIXED,   /* 50.250000, with so many decimals */
    NUMBER_GO,      /* shortest, as Go's client library: 6e+06 */
    NUMBER_PYTHON,  /* shortest, as Python's client library: 50.0 */
    NUMBER_GENERAL, /* printf's %.15g */
};

struct label {
    const char *name, *value; /* the value as it is, not escaped */
};

/* Shared by the samples that have the same labels. */
struct label_set {
    const struct label *items;
    size_t count;
    const char *text; /* the same as Prometheus writes them: a="b",c="d" */
    size_t text_length;
};

enum sample_kind { SAMPLE_INTEGER, SAMPLE_REAL };

struct sample {
    const struct label_set *labels;
    enum sample_kind kind;
    union {
        int64_t integer;
        double real; /* NaN: the sensor does not answer */
    };
};

struct family {
    const char *name, *help;
    enum family_type type;
    enum number_format format;
    int decimals; /* of NUMBER_FIXED */
    size_t order; /* among all that the identity or the counters file has */
    struct sample *samples;
    size_t count;
};

struct family_set {
    uint64_t generation;
    int64_t now_ns;          /* simulated time */
    struct family *families; /* each with at least one sample */
    size_t count;
    struct arena arena;            /* owns all of it */
    const struct family_set *next; /* of another mount, to be shown as one with this */
};

const char *family_type_name(enum family_type type);

/* The sample's value, whatever its kind. */
double sample_value(const struct sample *sample);

/*
 * Makes a set of `count` labels; names and values must live as long as the arena. NULL when out of memory.
 */
const struct label_set *label_set_make(struct arena *arena, const struct label *labels,
                                       size_t count);

/* Room for `count` samples. NULL when out of memory. */
struct sample *samples_make(struct arena *arena, size_t count);

void family_set_release(struct family_set *set);

#endif
