/*
 * Expose: from what was collected to what is said, as an identity wants it.
 *
 * Pure: a view, an identity and some wishes in, a set of families out. Knows no format and no mount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_EXPOSE_H
#define EXPORTER_EXPOSE_H

#include "exporter/counters.h"
#include "exporter/dialect.h"
#include "exporter/families.h"
#include "exporter/view.h"

enum { DEVICE_IDS_MAX = 256 };

/* Which GPUs and instances have series, as dcgm-exporter's -d says it. */
struct device_choice {
    enum {
        DEVICES_FLEX,      /* instances where there are some, otherwise the GPU */
        DEVICES_GPUS,      /* GPUs only */
        DEVICES_INSTANCES, /* instances only */
    } mode;
    bool all;
    int ids[DEVICE_IDS_MAX]; /* when not all: of GPUs, or of instances */
    int count;
};

/* What is wished for, besides the identity. Borrowed texts. */
struct wishes {
    const struct dialect *dialect;
    const char *hostname;       /* of GPUs that do not know the name of their node */
    const char *hostname_label; /* NULL: as the identity calls it */
    bool no_hostname;
    bool pods; /* whether pods are shown at all */
    bool old_namespace;
    bool replace_blanks; /* in the name of the model */
    enum faulty_values faulty;
    int64_t xid_window_ns, clock_window_ns;
    int64_t sample_ns; /* how often DCGM would look at the clocks */
    struct device_choice devices;
};

/* Fills `set` (which is empty). `counters` is for an identity that has families from there. 0 or -ENOMEM. */
int expose(struct family_set *set, const struct view *view, const struct wishes *wishes,
           const struct counter_list *counters);

/* Reads "f", "g", "g:0,1", "g:0-3", "i:0". -EINVAL with a sentence. */
int device_choice_parse(struct device_choice *choice, const char *text, struct why *why);

#endif
