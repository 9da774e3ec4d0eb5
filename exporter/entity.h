/*
 * Entity: what a series is about: a GPU, one of its MIG instances, or a container's part of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_ENTITY_H
#define EXPORTER_ENTITY_H

#include "exporter/expose.h"

struct entity {
    const struct view_gpu *gpu;
    const struct view_instance *instance; /* NULL: the GPU as a whole */
    const struct view_process *pod;       /* NULL: nobody's */
    bool shared; /* others have it, too: utilization and memory are the pod's own */
    int64_t memory_bytes, utilization_percent; /* when shared */
    const struct label_set *labels;            /* of samples that have none of their own */
};

struct entity_list {
    struct entity *items;
    size_t count;
};

/* Everything one pass of exposing works with. */
struct exposing {
    const struct view *view;
    const struct wishes *wishes;
    const struct counter_list *counters; /* may be NULL */
    struct family_set *set;
    struct entity_list entities;
    bool pods;    /* whether the identity and the wishes ask for them */
    size_t order; /* of the family that comes next */
};

/* Finds the entities and makes their labels. 0 or -ENOMEM. */
int entities_make(struct exposing *x);

/* Labels that a sample has besides those of its entity. */
struct more_labels {
    const struct label_rules *rules; /* behind the identity's own */
    const struct label *fields;      /* among those of the counters file, sorted with them */
    size_t field_count;
    const struct label *attributes; /* among those at the end, sorted with them */
    size_t attribute_count;
};

/* The labels of an entity, and more (NULL: none). NULL when out of memory. */
const struct label_set *entity_labels(const struct exposing *x, const struct entity *e,
                                      const struct more_labels *more);

/* 0 with the value in stored parts, -ENODATA, -EIO: as metric_read, of this entity. */
int entity_read(const struct entity *e, enum metric id, int64_t *value);

/* All families of the counters file, or of the identity. 0 or -ENOMEM. */
int expose_counters(struct exposing *x);
int expose_rules(struct exposing *x);

/* What dcgm-exporter works out itself: each fills the one family. 0 or -ENOMEM. */
struct counter;
int expose_xid_counts(struct exposing *x, const struct counter *c);
int expose_clock_events(struct exposing *x, const struct counter *c);
int expose_health(struct exposing *x, const struct counter *c);
int expose_p2p(struct exposing *x, const struct counter *c);

/* --- building families ----------------------------------------------------------------------- */

/* A family with room for `room` samples, behind the others; it stays only if it gets one. NULL: no memory. */
struct family *family_begin(struct exposing *x, const char *name, const char *help,
                            enum family_type type, size_t room);
void family_end(struct exposing *x, struct family *f);

/* Appends a whole number with fields as labels; the family has room for it. 0 or -ENOMEM. */
int family_add(struct exposing *x, struct family *f, const struct entity *e, int64_t value,
               const struct label *fields, size_t field_count);

/* A metric as dcgm_type and scale say; false: there is no sample. */
bool sample_set(struct sample *s, const struct exposing *x, const struct entity *e, enum metric id,
                double scale, bool integer);

#endif
