/*
 * Attributes: what stat says of a place, and how long the kernel may believe it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <string.h>

#include "fusefs/nodes.h"
#include "fusefs/ops.h"

static void set_owner(const struct daemon *d, const struct place *p, struct stat *st)
{
    const struct node_plan *n = &p->cx.world->node_plan;
    unsigned flags = p->cx.def ? p->cx.def->flags : 0;

    st->st_uid = d->host.uid;
    st->st_gid = d->host.gid;
    if (flags & NODE_CONTROL) {
        st->st_uid = n->uid ? n->uid : d->host.uid;
        st->st_gid = n->gid ? n->gid : d->host.gid;
    }
    if (p->cx.workload >= 0)
        st->st_uid = p->cx.work->uid;
}

static void set_device(const struct place *p, struct stat *st)
{
    const struct node_def *def = p->cx.def;

    if (p->cx.host->dev_mode == DEV_FILE)
        return;
    st->st_rdev = p->cx.host->dev_mode == DEV_NULL
                      ? makedev(1, 3)
                      : makedev((unsigned)(def->arg >> 20), device_minor(&p->cx));
    st->st_size = 0;
}

static off_t size_of(const struct daemon *d, const struct place *p)
{
    const struct node_def *def = p->cx.def;
    struct text text = TEXT_INIT;
    struct stat host;
    off_t size = TEXT_SIZE;

    if (def->flags & NODE_SNAPSHOT)
        return (off_t)d->page_count * SNAPSHOT_PAGE;
    if (def->flags & NODE_STREAM)
        return stream_length(d, p);
    if (def->flags & NODE_BINARY)
        return def->arg;
    if (def->flags & NODE_BLOCKS)
        return def->arg * p->cx.world->used[SECTION_GPUS];
    if (def->flags & NODE_HOST_FILE)
        return fstat(p->cx.host->files[def->arg], &host) == 0 ? host.st_size : 0;
    if (!S_ISLNK(def->mode))
        return TEXT_SIZE;
    if (def->show(&p->cx, &text) == 0)
        size = (off_t)text.length;
    text_release(&text);
    return size;
}

void daemon_fill_attr(const struct daemon *d, const struct place *p, struct stat *st)
{
    struct tree_view view = daemon_view(d);

    memset(st, 0, sizeof(*st));
    st->st_ino = p->ino;
    st->st_mode = tree_mode(p);
    st->st_nlink = p->directory ? tree_links(&view, p) : 1;
    st->st_blksize = TEXT_SIZE;
    st->st_mtim.tv_sec = d->host.start_real_ns / NS_PER_S;
    set_owner(d, p, st);
    if (!p->directory)
        st->st_size = size_of(d, p);
    if (p->cx.def && p->cx.def->flags & NODE_DEVICE)
        set_device(p, st);
    if (p->cx.def && p->cx.def->flags & NODE_STREAM)
        st->st_mtim.tv_sec += p->cx.world->node.now_ns / NS_PER_S;
    st->st_atim = st->st_ctim = st->st_mtim;
}

/* What may vanish or change under its name is asked for each time; all else is remembered for long. */
double daemon_entry_timeout(const struct place *p)
{
    bool link = p->cx.def && S_ISLNK(p->cx.def->mode);

    if (p->cx.workload >= 0 || p->cx.gi >= 0 || (p->cx.gpu >= 0 && link) || !tree_lasts(p))
        return 0;
    return p->cx.gpu >= 0 ? 1 : 3600;
}

double daemon_attr_timeout(const struct place *p)
{
    if (p->cx.def && p->cx.def->flags & NODE_STREAM)
        return 0;
    if (p->cx.def && p->cx.def->flags & NODE_SNAPSHOT)
        return 3600; /* a pread must not ask; the publisher says when it grows */
    return 1;
}
