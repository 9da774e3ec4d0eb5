/*
 * Node: the API server's JSON of a node, as far as labels go; the only place that knows JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_NODE_H
#define K8S_LABELS_NODE_H

#include <stdbool.h>

#include "k8s/labels/plan.h"

/* The annotation that has the note of our labels. */
#define NODE_NOTE "fakegpufs.io/labels"

struct node {
    struct label_list labels;
    struct label_list ours; /* by the note */
    const char *note;       /* as it is; NULL: there is none */
    const char *version;    /* of the object; NULL: it has none */
};

/* Of a node called `name`. 0, -EPROTO, -ENOMEM. Lists and texts go into the arena. */
int node_read(struct node *node, const char *name, const char *json, size_t length,
              struct arena *arena, struct why *why);

/*
 * Appends the merge patch that does what is planned and keeps the note. It is good only while the node is as it was read:
 * the server has a conflict when somebody changed it since. Returns 1; 0 when there is nothing to do; -ENOMEM.
 */
int node_patch(struct text *out, const struct node *node, const struct plan *plan);

/* Appends the message of a Status; nothing when the JSON is something else. */
void node_read_status(struct text *out, const char *json, size_t length);

#endif
