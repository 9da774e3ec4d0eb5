/*
 * Plan: what has to be changed so that a node has the labels that it is to have.
 *
 * The core of fakegpu-labels: three lists in, changes out. Knows no server, no mount and nothing of earlier plans. What
 * is ours is in a note that the node itself has: the labels that we have set, with their values. So who starts anew
 * knows them, and a label of that key with another value was set by somebody else since.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_PLAN_H
#define K8S_LABELS_PLAN_H

#include "k8s/labels/labels.h"

struct change {
    const char *key;
    const char *value; /* NULL: it is to go */
    const char *was;   /* NULL: it is not there */
};

struct plan {
    struct change *items;
    size_t count;
    struct label_list ours; /* when they are done */
};

/*
 * `wanted`: what the node is to have; `present`: what it has; `ours`: what its note says. A label that is wanted is
 * set, whosever it was, and is ours then; one that has the value already stays whose it is. One of ours that is not
 * wanted any more goes. Nothing else is touched. 0 or -ENOMEM.
 */
int plan_make(struct plan *plan, const struct label_list *wanted, const struct label_list *present,
              const struct label_list *ours, struct arena *arena);

/* "set key=value (was other)", "remove key=value": no newline. */
void change_describe(struct text *out, const struct change *change);

#endif
