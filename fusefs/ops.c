/*
 * Ops: the server thread. Answers the kernel's requests that only look, and hands the others over.
 *
 * Generic: it names no file. What a file is, its row says (node.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

struct daemon *daemon_of(fuse_req_t req)
{
    return (
        (struct daemon *)((char *)fuse_req_userdata(req) - offsetof(struct daemon, connection)));
}

struct tree_view daemon_view(const struct daemon *d)
{
    return (struct tree_view){ d->tree, &d->host, sim_store(d->sim), sim_world(d->sim), NULL };
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

bool ops_look(fuse_req_t req, struct daemon *d, fuse_ino_t ino, struct place *p)
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

void ops_answer(fuse_req_t req, struct daemon *d, int err)
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

    if (!ops_look(req, d, parent, &dir))
        return;
    view = daemon_view(d);
    r = tree_lookup(&view, &dir, name, &p);
    if (r < 0)
        ops_answer(req, d, -r);
    else
        reply_entry(req, d, &p);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    struct stat st;

    (void)fi;
    if (!ops_look(req, d, ino, &p))
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

    if (!ops_look(req, d, ino, &p))
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

    if (!ops_look(req, d, ino, &p))
        return;
    h = p.directory ? handle_new(d, ino) : NULL;
    if (!h) {
        ops_answer(req, d, p.directory ? ENOMEM : ENOTDIR);
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

    if (!ops_look(req, d, ino, &p))
        return;
    h = handle_get(d, fi->fh, ino);
    if (!h) {
        ops_answer(req, d, ENOMEM);
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
    ops_answer(req, d, 0);
}

/* --- what cannot be done --------------------------------------------------------------------- */

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
