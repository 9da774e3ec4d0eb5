/*
 * Sources: the mounts that are served, the nodes that they have, and what was collected of each.
 *
 * Either one mount, or every directory below another: those come and go. Nothing here locks; the stage does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_SOURCES_H
#define EXPORTER_SOURCES_H

#include "exporter/families.h"
#include "exporter/view.h"

enum { SOURCES_MAX = 4096 };

struct source {
    char *root; /* owned */
    char *name; /* of its directory, owned; NULL: the only one */
    struct collector *collector;
    struct node_list nodes; /* when it was last looked at */
    bool is_there;          /* for a scan */

    /* What was collected of all of it; `stamp.mount` 0: nothing. */
    struct view_stamp stamp;
    int64_t collected_ns; /* real time */
    struct view view;
    struct family_set set;
};

struct sources {
    const char *directory; /* borrowed; NULL: there is one, and it stays */
    struct source **items; /* by name */
    size_t count;
    bool changed; /* mounts came or went since they were last looked at */
};

/* One mount at `root`, or with `directory` the mounts below that. 0 or -ENOMEM. */
int sources_init(struct sources *s, const char *root, const char *directory);
void sources_release(struct sources *s);

/* Looks for mounts that came and went: 1 when some did, 0, or -errno with a sentence. */
int sources_scan(struct sources *s, const struct view_wants *wants, struct why *why);

/*
 * Asks one, or all, for their nodes. Of nodes with the same name the first counts, the others are hidden. What was
 * collected is dropped where the names in it are no longer good: true when something was.
 */
bool sources_look(struct sources *s);

/* The source and its node of that name; `unnamed` is that of a node without one. False: there is none. */
bool sources_find(const struct sources *s, const char *name, const char *unnamed,
                  struct source **source, int *node);

/* Drops what was collected. */
void source_drop(struct source *source);

#endif
