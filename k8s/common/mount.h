/*
 * Mount: one that is open for a look at it, with sentences for when it is not there.
 *
 * It is opened for each look and closed behind it: so the next one that is mounted in its place is seen, and the
 * old one can go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_COMMON_MOUNT_H
#define K8S_COMMON_MOUNT_H

#include "fusefs/reader.h"
#include "sim/why.h"

enum { MOUNT_RETRY_MS = 500 /* how soon to look again for one that is not there */ };

struct mount {
    const char *root; /* borrowed */
    struct reader *reader;
};

/* 0 or -errno: there is no mount, or nobody serves it. */
int mount_open(struct mount *m, const char *root, struct why *why);
void mount_close(struct mount *m);

#endif
