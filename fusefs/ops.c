/*
 * Ops: the server thread. Answers the kernel's requests that only look, and hands the others over.
 *
 * Generic: it names no file. What a file is, its row says (node.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/daemon.h"
#include "fusefs/log.h"
#include "fusefs/nodes.h"

enum {
    /* st_size of a text file, as in sysfs: a copier that trusts 0 would copy nothing. */
    TEXT_SIZE = 4096,
    /* The kernel cuts longer writes, and a page earlier those that begin inside a page; */
    WRITE_MAX = 1 << 20,
    /* so this is the longest write that surely is one whole command. */
    COMMAND_MAX = WRITE_MAX - 4096,
    NAME_MAX_WORKLOAD = WORKLOAD_NAME - 1,
};

static struct daemon *daemon_of(fuse_req_t req)
{
    return (
        (struct daemon *)((char *)fuse_req_userdata(req) - offsetof(struct daemon, connection)));
}

struct tree_view daemon_view(const struct daemon *d)
{
    return (struct tree_view){ d->tree, &d->host, sim_store(d->sim), sim_world(d->sim) };
}

/* --- attributes ------------------------------------------------------------------------------ */

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
    if (!S_ISLNK(def->mode) && !(def->flags & NODE_HOST_FILE))
        return TEXT_SIZE;
    if (def->show(&p->cx, &text) == 0)
        size = S_ISLNK(def->mode)                  ? (off_t)text.length
               : stat(text_str(&text), &host) == 0 ? host.st_size
                                                   : 0;
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

static void reply_entry(fuse_req_t req, struct daemon *d, const struct place *p)
{
    struct fuse_entry_param e = { .ino = p->ino, .generation = 1 };

    daemon_fill_attr(d, p, &e.attr);
    e.attr_timeout = daemon_attr_timeout(p);
    e.entry_timeout = daemon_entry_timeout(p);
    pthread_mutex_unlock(&d->lock);
    fuse_reply_entry(req, &e);
}

/* --- looking --------------------------------------------------------------------------------- */

/* Takes the lock and resolves; on failure gives it back and answers. */
static bool look(fuse_req_t req, struct daemon *d, fuse_ino_t ino, struct place *p)
{
    struct tree_view view;
    int r;

    pthread_mutex_lock(&d->lock);
    view = daemon_view(d);
    r = tree_resolve(&view, ino, p);
    if (r == 0)
        return true;
    pthread_mutex_unlock(&d->lock);
    fuse_reply_err(req, -r);
    return false;
}

static void answer(fuse_req_t req, struct daemon *d, int err)
{
    pthread_mutex_unlock(&d->lock);
    fuse_reply_err(req, err);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS |
                              FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_ASYNC_READ);
    if (conn->capable & FUSE_CAP_EXPLICIT_INVAL_DATA)
        conn->want |= FUSE_CAP_EXPLICIT_INVAL_DATA;
    conn->max_write = WRITE_MAX;
    conn->max_readahead = 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct daemon *d = daemon_of(req);
    struct tree_view view;
    struct place dir, p;
    int r;

    if (!look(req, d, parent, &dir))
        return;
    view = daemon_view(d);
    r = tree_lookup(&view, &dir, name, &p);
    if (r < 0)
        answer(req, d, -r);
    else
        reply_entry(req, d, &p);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    struct stat st;

    (void)fi;
    if (!look(req, d, ino, &p))
        return;
    daemon_fill_attr(d, &p, &st);
    pthread_mutex_unlock(&d->lock);
    fuse_reply_attr(req, &st, daemon_attr_timeout(&p));
}

/* `>` arrives as a size of 0 and means nothing here; nobody changes modes, owners or times. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    (void)attr;
    if (to_set & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME |
                   FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_ATIME_NOW))
        fuse_reply_err(req, EPERM);
    else if (!(to_set & FUSE_SET_ATTR_SIZE))
        fuse_reply_err(req, EPERM);
    else
        op_getattr(req, ino, fi);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct daemon *d = daemon_of(req);
    struct text text = TEXT_INIT;
    struct place p;
    int r;

    if (!look(req, d, ino, &p))
        return;
    r = p.cx.def && S_ISLNK(p.cx.def->mode) ? p.cx.def->show(&p.cx, &text) : -EINVAL;
    pthread_mutex_unlock(&d->lock);
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        fuse_reply_readlink(req, text_str(&text));
    text_release(&text);
}

/* --- directories ----------------------------------------------------------------------------- */

/* A listing is made when the directory is opened, so that offsets stay valid while it changes. */
struct listing {
    fuse_req_t req;
    struct text *out;
    off_t next;
};

static int list_add(void *into, const char *name, const struct place *p)
{
    struct listing *l = into;
    struct stat st = { .st_ino = p->ino, .st_mode = tree_mode(p) };
    size_t size = fuse_add_direntry(l->req, NULL, 0, name, NULL, 0);
    char buf[1024];

    fuse_add_direntry(l->req, buf, size, name, &st, ++l->next);
    text_addn(l->out, buf, size);
    return 0;
}

static void list_directory(struct daemon *d, fuse_req_t req, const struct place *dir,
                           struct text *out)
{
    struct tree_view view = daemon_view(d);
    struct listing l = { .req = req, .out = out };
    struct place up;

    list_add(&l, ".", dir);
    if (tree_resolve(&view, tree_parent(&view, dir), &up) == 0)
        list_add(&l, "..", &up);
    tree_list(&view, dir, list_add, &l);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct handle *h;
    struct place p;

    if (!look(req, d, ino, &p))
        return;
    h = p.directory ? handle_new(d, ino) : NULL;
    if (!h) {
        answer(req, d, p.directory ? ENOMEM : ENOTDIR);
        return;
    }
    list_directory(d, req, &p, &h->text);
    h->rendered = true;
    fi->fh = h->number;
    pthread_mutex_unlock(&d->lock);
    fuse_reply_open(req, fi);
}

/* Entries are kept as the kernel wants them; the offset of one is its number. */
static size_t entry_size(const char *at)
{
    uint32_t length;

    memcpy(&length, at + 16, sizeof(length));
    return (24 + length + 7) & ~(size_t)7;
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct handle *h;
    struct place p;
    size_t from = 0, to;

    if (!look(req, d, ino, &p))
        return;
    h = handle_get(d, fi->fh, ino);
    if (!h) {
        answer(req, d, ENOMEM);
        return;
    }
    if (!h->rendered || off == 0) {
        text_cut(&h->text, 0);
        list_directory(d, req, &p, &h->text);
        h->rendered = true;
    }
    for (off_t n = 0; n < off && from < h->text.length; n++)
        from += entry_size(h->text.data + from);
    for (to = from; to < h->text.length && to - from + entry_size(h->text.data + to) <= size;)
        to += entry_size(h->text.data + to);
    pthread_mutex_unlock(&d->lock);
    /* Only this thread touches listings: the text stays while it is sent. */
    fuse_reply_buf(req, h->text.data ? h->text.data + from : NULL, to - from);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);

    (void)ino;
    pthread_mutex_lock(&d->lock);
    handle_drop(d, fi->fh);
    answer(req, d, 0);
}

/* --- commands -------------------------------------------------------------------------------- */

static struct command *command_new(fuse_req_t req, enum command_kind kind, fuse_ino_t ino,
                                   const char *text, size_t length)
{
    struct daemon *d = daemon_of(req);
    struct command *c = calloc(1, sizeof(*c));

    if (c && text)
        c->text = strndup(text, length);
    if (!c || (text && !c->text)) {
        free(c);
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    c->kind = kind;
    c->req = req;
    c->request = d->request;
    c->resent = d->resent;
    c->ino = ino;
    c->size = length;
    c->uid = fuse_req_ctx(req)->uid;
    c->pid = (uint32_t)fuse_req_ctx(req)->pid;
    return c;
}

void daemon_command(struct daemon *d, struct command *c)
{
    pthread_mutex_lock(&d->lock);
    *d->commands_end = c;
    d->commands_end = &c->next;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

static void refuse_write(fuse_req_t req, fuse_ino_t ino, int err, const char *sentence)
{
    struct daemon *d = daemon_of(req);
    struct place p;

    if (!look(req, d, ino, &p))
        return;
    daemon_remember(d, &p, sentence);
    answer(req, d, err);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    struct command *c;

    (void)off; /* as in sysfs: every write is a command, wherever it is meant to go */
    (void)fi;
    if (size > COMMAND_MAX) {
        refuse_write(req, ino, E2BIG, "a command is at most 1 MiB less 4 KiB long");
        return;
    }
    if (memchr(buf, '\0', size)) {
        refuse_write(req, ino, EINVAL, "a command is text and holds no zero bytes");
        return;
    }
    c = command_new(req, COMMAND_WRITE, ino, buf, size);
    if (c)
        daemon_command(daemon_of(req), c);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct daemon *d = daemon_of(req);
    struct command *c;
    struct place p;

    (void)mode;
    if (!look(req, d, parent, &p))
        return;
    if (!tree_holds_workloads(&p)) {
        answer(req, d, EPERM);
        return;
    }
    pthread_mutex_unlock(&d->lock);
    if (strlen(name) > NAME_MAX_WORKLOAD) {
        fuse_reply_err(req, ENAMETOOLONG);
        return;
    }
    c = command_new(req, COMMAND_MKDIR, parent, name, strlen(name));
    if (c)
        daemon_command(d, c);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct daemon *d = daemon_of(req);
    struct command *c;
    struct place p;

    if (!look(req, d, parent, &p))
        return;
    if (!tree_holds_workloads(&p)) {
        answer(req, d, EPERM);
        return;
    }
    pthread_mutex_unlock(&d->lock);
    c = command_new(req, COMMAND_RMDIR, parent, name, strlen(name));
    if (c)
        daemon_command(d, c);
}

/* --- files ----------------------------------------------------------------------------------- */

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

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    enum command_kind kind;
    struct command *c;
    struct handle *h;
    struct place p;

    if (!look(req, d, ino, &p))
        return;
    if (p.directory) {
        answer(req, d, EISDIR);
        return;
    }
    if (!may_open(&p, fi)) {
        answer(req, d, EPERM);
        return;
    }
    h = handle_new(d, ino);
    if (!h) {
        answer(req, d, ENOMEM);
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

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
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
        answer(req, d, 0);
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
    struct text path = TEXT_INIT;
    char *buf = malloc(size + 1);
    int r = p->cx.def->show(&p->cx, &path), fd;
    ssize_t n;

    pthread_mutex_unlock(&d->lock);
    fd = r < 0 ? -1 : open(text_str(&path), O_RDONLY | O_CLOEXEC);
    n = fd < 0 || !buf ? -1 : pread(fd, buf, size, off);
    if (n < 0)
        fuse_reply_err(req, EIO);
    else
        fuse_reply_buf(req, buf, (size_t)n);
    if (fd >= 0)
        close(fd);
    free(buf);
    text_release(&path);
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
        answer(req, d, ENOMEM);
        return;
    }
    at = stream_place(d, p, h, off);
    n = stream_available(d, p, &at, &text);
    if (n == 0 && fi->flags & O_NONBLOCK) {
        free(w);
        h->seen = (uint64_t)at.position;
        answer(req, d, EAGAIN);
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

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    unsigned flags;

    if (!look(req, d, ino, &p))
        return;
    flags = p.directory ? 0 : p.cx.def->flags;
    if (p.directory)
        answer(req, d, EISDIR);
    else if (flags & NODE_SNAPSHOT)
        read_snapshot(req, d, size, off);
    else if (flags & NODE_STREAM)
        read_stream(req, d, &p, size, off, fi);
    else if (flags & NODE_HOST_FILE)
        read_host_file(req, d, &p, size, off);
    else if (!p.cx.def->show)
        answer(req, d, flags & NODE_DEVICE ? 0 : EPERM);
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

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                    struct fuse_pollhandle *ph)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    unsigned events;

    if (!look(req, d, ino, &p)) {
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

/* --- what cannot be done --------------------------------------------------------------------- */

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)fi;
    fuse_reply_err(req, EPERM);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)rdev;
    fuse_reply_err(req, EPERM);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
    (void)link;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned flags)
{
    (void)parent;
    (void)name;
    (void)newparent;
    (void)newname;
    (void)flags;
    fuse_reply_err(req, EPERM);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
    (void)ino;
    (void)newparent;
    (void)newname;
    fuse_reply_err(req, EPERM);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    (void)datasync;
    (void)fi;
    fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st = { .f_bsize = TEXT_SIZE, .f_frsize = TEXT_SIZE, .f_namemax = 255 };

    (void)ino;
    fuse_reply_statfs(req, &st);
}

/* No flush: nothing is left to do when a descriptor is closed, and without it the kernel does not ask. */
const struct fuse_lowlevel_ops daemon_ops = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .opendir = op_opendir,
    .readdir = op_readdir,
    .releasedir = op_releasedir,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .release = op_release,
    .fsync = op_fsync,
    .mkdir = op_mkdir,
    .rmdir = op_rmdir,
    .poll = op_poll,
    .statfs = op_statfs,
    .create = op_create,
    .mknod = op_mknod,
    .unlink = op_unlink,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
};

/* --- the loop -------------------------------------------------------------------------------- */

static void say_connected(struct daemon *d)
{
    pthread_mutex_lock(&d->lock);
    d->connected = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

int daemon_serve(struct daemon *d)
{
    struct fuse_buf buf = { .mem = NULL };
    int r = 0;

    while (!fuse_session_exited(d->se)) {
        r = fuse_session_receive_buf(d->se, &buf);
        if (r == -EINTR)
            continue;
        if (r <= 0)
            break; /* -ENODEV: the mount is gone */
        d->request = connection_request(buf.mem, &d->resent);
        fuse_session_process_buf(d->se, &buf);
        if (!d->connected)
            say_connected(d);
        connection_resume(&d->connection);
    }
    free(buf.mem);
    return r == -ENODEV || r == 0 || fuse_session_exited(d->se) ? 0 : r;
}
