/*
 * Ops of open files: opening, reading, waiting for more, polling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "fusefs/nodes.h"

/* Opening something that has a consequence is a command. Who may only read must not end a workload. */
static bool opens_by_command(const struct place *p, const struct fuse_file_info *fi,
                             enum command_kind *kind)
{
    if (p->cx.def->flags & NODE_ATTACH && (fi->flags & O_ACCMODE) != O_RDONLY)
        *kind = COMMAND_ATTACH;
    else if (p->cx.def->flags & NODE_DEVICE && p->cx.host->dev_mode == DEV_FILE && p->cx.gpu >= 0 &&
             p->cx.gi < 0)
        *kind = COMMAND_OPEN_DEVICE;
    else
        return false;
    return true;
}

static void set_caching(struct daemon *d, const struct place *p, struct fuse_file_info *fi)
{
    fi->direct_io = !(p->cx.def->flags & (NODE_SNAPSHOT | NODE_HOST_FILE));
    fi->keep_cache = (p->cx.def->flags & NODE_HOST_FILE) != 0;
    if (!(p->cx.def->flags & NODE_SNAPSHOT))
        return;
    /* For the first everything is rendered and asked for anew; then pushes keep the pages fresh. */
    fi->keep_cache = atomic_fetch_add(&d->shared->snapshot_opens, 1) > 0;
    if (!fi->keep_cache)
        pages_render(d);
}

/* Root may open anything to write. What takes no command is refused here: the page of a cached file that
 * waits to be written would stop the publisher. */
static bool may_open(const struct place *p, const struct fuse_file_info *fi)
{
    return (fi->flags & O_ACCMODE) == O_RDONLY || p->cx.def->store ||
           p->cx.def->flags & (NODE_ATTACH | NODE_DEVICE);
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    enum command_kind kind;
    struct command *c;
    struct handle *h;
    struct place p;

    if (!ops_look(req, d, ino, &p))
        return;
    if (p.directory) {
        ops_answer(req, d, EISDIR);
        return;
    }
    if (!may_open(&p, fi)) {
        ops_answer(req, d, EPERM);
        return;
    }
    h = handle_new(d, ino);
    if (!h) {
        ops_answer(req, d, ENOMEM);
        return;
    }
    fi->fh = h->number;
    set_caching(d, &p, fi);
    pthread_mutex_unlock(&d->lock);
    if (!opens_by_command(&p, fi, &kind)) {
        fuse_reply_open(req, fi);
        return;
    }
    c = command_new(req, kind, ino, NULL, 0);
    if (!c)
        return;
    c->fi = *fi;
    daemon_command(d, c);
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct tree_view view;
    struct place p;
    enum command_kind kind;
    struct command *c;
    bool command;

    pthread_mutex_lock(&d->lock);
    view = daemon_view(d);
    handle_drop(d, fi->fh);
    if (tree_resolve(&view, ino, &p) < 0 || p.directory) {
        ops_answer(req, d, 0);
        return;
    }
    command = opens_by_command(&p, fi, &kind);
    /* One too many costs a little time; one too few would leave a reader with old pages. */
    if (p.cx.def->flags & NODE_SNAPSHOT && !d->resent)
        atomic_fetch_sub(&d->shared->snapshot_opens, 1);
    pthread_mutex_unlock(&d->lock);
    if (!command) {
        fuse_reply_err(req, 0);
        return;
    }
    c = command_new(req, kind == COMMAND_ATTACH ? COMMAND_DETACH : COMMAND_CLOSE_DEVICE, ino, NULL,
                    0);
    if (!c)
        return;
    c->fi = *fi;
    daemon_command(d, c);
}

/* Renders at offset 0, or when another worker did. */
static int render(struct daemon *d, const struct place *p, struct handle *h, off_t off)
{
    int r;

    if (h->rendered && off != 0)
        return 0;
    text_cut(&h->text, 0);
    r = p->cx.def->show(&p->cx, &h->text);
    if (r == 0 && h->text.failed)
        r = -ENOMEM;
    h->rendered = r == 0;
    if (r == 0)
        handle_keep(d, h);
    if (p->cx.def->flags & NODE_POLL)
        h->seen = p->cx.run->state + 1;
    return r;
}

static void read_text(fuse_req_t req, struct daemon *d, const struct place *p, size_t size,
                      off_t off, uint64_t fh)
{
    struct handle *h = handle_get(d, fh, p->ino);
    size_t n = 0;
    int r = h ? render(d, p, h, off) : -ENOMEM;

    pthread_mutex_unlock(&d->lock);
    if (r < 0) {
        fuse_reply_err(req, -r);
        return;
    }
    if ((size_t)off < h->text.length)
        n = h->text.length - (size_t)off < size ? h->text.length - (size_t)off : size;
    /* Handles are this thread's alone: the text stays while it is sent. */
    fuse_reply_buf(req, n ? h->text.data + off : NULL, n);
}

/*
 * As it was last rendered: only the publisher renders while somebody reads. Each push then is one turn
 * ahead of what the page cache holds, and never writes into the slot that is being read.
 */
static void read_snapshot(fuse_req_t req, struct daemon *d, size_t size, off_t off)
{
    size_t total = d->page_count * SNAPSHOT_PAGE, n = 0;
    char *copy;

    if ((size_t)off < total)
        n = total - (size_t)off < size ? total - (size_t)off : size;
    copy = malloc(n + 1);
    if (copy)
        memcpy(copy, (const char *)d->pages + off, n);
    pthread_mutex_unlock(&d->lock);
    if (copy)
        fuse_reply_buf(req, copy, n);
    else
        fuse_reply_err(req, ENOMEM);
    free(copy);
}

static void read_host_file(fuse_req_t req, struct daemon *d, const struct place *p, size_t size,
                           off_t off)
{
    int fd = p->cx.host->files[p->cx.def->arg];
    char *buf = malloc(size + 1);
    ssize_t n;

    pthread_mutex_unlock(&d->lock);
    n = buf ? pread(fd, buf, size, off) : -1;
    if (n < 0)
        fuse_reply_err(req, EIO);
    else
        fuse_reply_buf(req, buf, (size_t)n);
    free(buf);
}

/* A block of each GPU, as it is now: who reads a block with one call has all of it of one generation. */
static void read_blocks(fuse_req_t req, struct daemon *d, const struct place *p, size_t size,
                        off_t off)
{
    const struct node_def *def = p->cx.def;
    int first = (int)(off / def->arg), gpus = (int)p->cx.world->used[SECTION_GPUS];
    size_t skip = (size_t)(off % def->arg), n = 0;
    struct text text = TEXT_INIT;
    struct place block = *p;
    int r = 0;

    for (int i = first; r == 0 && i < gpus && text.length < skip + size; i++) {
        tree_set_gpu(&block, i);
        r = def->show(&block.cx, &text);
    }
    pthread_mutex_unlock(&d->lock);
    if (text.length > skip)
        n = text.length - skip < size ? text.length - skip : size;
    if (r < 0 || text.failed)
        fuse_reply_err(req, r < 0 ? -r : ENOMEM);
    else
        fuse_reply_buf(req, n ? text.data + skip : NULL, n);
    text_release(&text);
}

/* --- streams --------------------------------------------------------------------------------- */

/* Called by the library when the reader was interrupted; the publisher answers it then. */
static void read_interrupted(fuse_req_t req, void *data)
{
    struct daemon *d = data;

    pthread_mutex_lock(&d->lock);
    for (struct waiting_read *w = d->waiting; w; w = w->next)
        if (w->req == req)
            w->interrupted = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

static void wait_for_more(struct daemon *d, const struct place *p, struct waiting_read *w)
{
    const char *text;
    bool more;

    /* Before it is in the list: there it is the publisher's, who answers and frees it. */
    fuse_req_interrupt_func(w->req, read_interrupted, d);
    pthread_mutex_lock(&d->lock);
    more = stream_available(d, p, &w->at, &text) != 0;
    if (!more) {
        w->interrupted = fuse_req_interrupted(w->req);
        w->next = d->waiting;
        d->waiting = w;
        pthread_cond_signal(&d->wake);
    }
    pthread_mutex_unlock(&d->lock);
    if (more)
        stream_reply(d, w);
}

static void read_stream(fuse_req_t req, struct daemon *d, const struct place *p, size_t size,
                        off_t off, const struct fuse_file_info *fi)
{
    struct handle *h = handle_get(d, fi->fh, p->ino);
    struct waiting_read *w = calloc(1, sizeof(*w));
    struct stream_at at;
    const char *text;
    int64_t n;

    if (!h || !w) {
        free(w);
        ops_answer(req, d, ENOMEM);
        return;
    }
    at = stream_place(d, p, h, off);
    n = stream_available(d, p, &at, &text);
    if (n == 0 && fi->flags & O_NONBLOCK) {
        free(w);
        h->seen = (uint64_t)at.position;
        ops_answer(req, d, EAGAIN);
        return;
    }
    *w = (struct waiting_read){
        .req = req, .handle = fi->fh, .ino = p->ino, .offset = off, .at = at, .size = size
    };
    pthread_mutex_unlock(&d->lock);
    if (n == 0)
        wait_for_more(d, p, w);
    else
        stream_reply(d, w);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    unsigned flags;

    if (!ops_look(req, d, ino, &p))
        return;
    flags = p.directory ? 0 : p.cx.def->flags;
    if (p.directory)
        ops_answer(req, d, EISDIR);
    else if (flags & NODE_SNAPSHOT)
        read_snapshot(req, d, size, off);
    else if (flags & NODE_STREAM)
        read_stream(req, d, &p, size, off, fi);
    else if (flags & NODE_HOST_FILE)
        read_host_file(req, d, &p, size, off);
    else if (flags & NODE_BLOCKS)
        read_blocks(req, d, &p, size, off);
    else if (!p.cx.def->show)
        ops_answer(req, d, flags & NODE_DEVICE ? 0 : EPERM);
    else
        read_text(req, d, &p, size, off, fi->fh);
}

/* --- polling --------------------------------------------------------------------------------- */

static void keep_poller(struct daemon *d, uint64_t handle, uint64_t ino)
{
    struct poller *slot = NULL;

    for (int i = 0; i < SHARED_POLLERS; i++) {
        struct poller *p = &d->shared->pollers[i];

        if (atomic_load(&p->handle) == handle)
            return;
        if (!slot && !atomic_load(&p->handle))
            slot = p;
    }
    if (!slot)
        return; /* more than we can wake: they find out when they poll again */
    slot->ino = ino;
    atomic_store(&slot->handle, handle);
}

static unsigned poll_events(struct daemon *d, const struct place *p, uint64_t fh)
{
    const struct handle *h = handle_get(d, fh, p->ino);
    const char *text;

    if (p->directory || !h)
        return POLLIN | POLLOUT;
    if (p->cx.def->flags & NODE_STREAM) {
        struct stream_at at = { h->placed ? h->turns
                                          : p->cx.world->node.streams[p->cx.def->arg].turns,
                                (int64_t)h->seen };

        return stream_available(d, p, &at, &text) ? POLLIN | POLLRDNORM : 0;
    }
    if (p->cx.def->flags & NODE_POLL)
        return h->seen == p->cx.run->state + 1 ? 0 : POLLIN | POLLRDNORM | POLLPRI;
    return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
}

/* The handle's first word is the kernel's number for this poller; kept where the next worker finds it. */
static uint64_t poll_number(const struct fuse_pollhandle *ph)
{
    uint64_t number;

    memcpy(&number, ph, sizeof(number));
    return number;
}

void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    unsigned events;

    if (!ops_look(req, d, ino, &p)) {
        if (ph)
            fuse_pollhandle_destroy(ph);
        return;
    }
    if (ph) {
        keep_poller(d, poll_number(ph), ino);
        fuse_pollhandle_destroy(ph);
    }
    events = poll_events(d, &p, fi->fh);
    pthread_mutex_unlock(&d->lock);
    fuse_reply_poll(req, events);
}
