/*
 * Mount: one that is open for a look at it. See mount.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/common/mount.h"

#include <errno.h>
#include <string.h>

int mount_open(struct mount *m, const char *root, struct why *why)
{
    int r;

    *m = (struct mount){ .root = root };
    r = reader_open(&m->reader, root);
    switch (r) {
    case 0:
        return 0;
    case -ENOENT:
    case -ENOTDIR:
        return why_set(why, -r, "no mount of fakegpufs on %s", root);
    case -ENOTCONN:
        return why_set(why, -r, "the daemon of %s is gone", root);
    case -EPROTO:
        return why_set(why, -r, "%s is served by another version of fakegpufs", root);
    default:
        return why_set(why, -r, "cannot read %s: %s", root, strerror(-r));
    }
}

void mount_close(struct mount *m)
{
    reader_close(m->reader);
    m->reader = NULL;
}
