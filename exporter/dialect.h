/*
 * Dialect: an identity that the exporter can take on, read from a file of schemas/identities/.
 *
 * It maps metrics and labels to the names, types, scales and formats of another exporter. One with
 * `counters` has families as a counters file asks for them (DCGM's own); others list theirs.
 * (C knows `identity` as the texts of a GPU; what users call an identity is a dialect here.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_DIALECT_H
#define EXPORTER_DIALECT_H

#include "exporter/families.h"
#include "exporter/template.h"
#include "sim/bind.h"

struct label_rule {
    const char *name;
    struct template value;
};

struct label_rules {
    struct label_rule *items;
    size_t count;
};

/* One series of each GPU. */
struct sample_rule {
    struct bind_head head;
    int64_t metric;   /* enum metric; -1: none */
    int64_t identity; /* enum identity of which the text is a number; -1: none */
    double constant;
    double scale;              /* from shown units */
    double step;               /* rounded to a multiple of this first; 0: not at all */
    int64_t bit;               /* -1: the value; otherwise whether this bit of it is set */
    struct label_rules labels; /* behind those of the identity */
};

struct family_rule {
    struct bind_head head;
    char name[128];
    char help[512];
    int64_t type;   /* enum family_type */
    int64_t format; /* enum number_format */
    int64_t decimals;
    struct sample_rule one;   /* the only sample, where there is no list */
    struct bind_list samples; /* of struct sample_rule; never empty once read */
};

enum faulty_values { FAULTY_ABSENT, FAULTY_NAN };
enum empty_labels { EMPTY_OMIT, EMPTY_KEEP };

struct dialect {
    struct bind_head head;
    char name[64];
    char description[256];
    char address[64];
    char counters[64]; /* file of schemas/identities/; "": the families are listed */
    int64_t index_base;
    int64_t faulty; /* enum faulty_values */
    int64_t empty;  /* enum empty_labels */
    struct label_rules labels;
    struct label_rules attributes; /* behind all others, sorted by name with those of a sample */
    struct bind_list families;     /* of struct family_rule */
};

extern const struct bind_table dialect_table;

struct dialect_set {
    struct dialect *items;
    int count;
    struct arena arena;
};

/*
 * Reads the built-in identities, and those of `directory`/identities where it is not NULL.
 * -errno with a sentence.
 */
int dialect_set_load(struct dialect_set *set, const char *directory, struct why *why);
void dialect_set_release(struct dialect_set *set);

/* Whether `name` is one of them or the path of a file; otherwise a sentence. */
bool dialect_is_known(const struct dialect_set *set, const char *name, struct why *why);

/* Reads one from a text; it takes the place of all that are in the set. NULL with a sentence. */
const struct dialect *dialect_parse(struct dialect_set *set, const char *name, const char *text,
                                    size_t length, struct why *why);

/* Appends the JSON Schema of an identity. */
void dialect_schema(struct text *out);

/* By its name, or, when that has a '/' or ends in .yaml, from that file. NULL with a sentence. */
const struct dialect *dialect_find(struct dialect_set *set, const char *name, struct why *why);

#endif
