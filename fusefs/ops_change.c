/*
 * Ops that change something: each is made a command, which the publisher applies and answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A page before the longest write, where the kernel cuts those that begin inside a page: so this is
     * the longest that surely is one whole command. */
    COMMAND_MAX = WRITE_MAX - 4096,
    NAME_MAX_WORKLOAD = WORKLOAD_NAME - 1,
};

struct command *command_new(fuse_req_t req, enum command_kind kind, fuse_ino_t ino,
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

    if (!ops_look(req, d, ino, &p))
        return;
    daemon_remember(d, &p, sentence);
    ops_answer(req, d, err);
}

static void hand_over(fuse_req_t req, enum command_kind kind, fuse_ino_t ino, const char *text,
                      size_t length)
{
    struct command *c = command_new(req, kind, ino, text, length);

    if (c)
        daemon_command(daemon_of(req), c);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
              struct fuse_file_info *fi)
{
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
    hand_over(req, COMMAND_WRITE, ino, buf, size);
}

/* Whether the directory holds workloads; answers if not. */
static bool is_for_workloads(fuse_req_t req, fuse_ino_t parent)
{
    struct daemon *d = daemon_of(req);
    struct place p;
    bool holds;

    if (!ops_look(req, d, parent, &p))
        return false;
    holds = tree_holds_workloads(&p);
    if (holds)
        pthread_mutex_unlock(&d->lock);
    else
        ops_answer(req, d, EPERM);
    return holds;
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)mode;
    if (!is_for_workloads(req, parent))
        return;
    if (strlen(name) > NAME_MAX_WORKLOAD) {
        fuse_reply_err(req, ENAMETOOLONG);
        return;
    }
    hand_over(req, COMMAND_MKDIR, parent, name, strlen(name));
}

/*
 * The workload NAME, with its `attach` open: `.NAME` is made below workloads/, which no workload is called. So
 * there is no moment in which it is there and nobody holds it.
 */
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
               struct fuse_file_info *fi)
{
    struct daemon *d = daemon_of(req);
    struct command *c;
    struct place p;

    (void)mode;
    if (!ops_look(req, d, parent, &p))
        return;
    if (!tree_holds_workloads(&p) || *name != '.' || (fi->flags & O_ACCMODE) == O_RDONLY) {
        ops_answer(req, d, EPERM);
        return;
    }
    pthread_mutex_unlock(&d->lock);
    if (strlen(name + 1) > NAME_MAX_WORKLOAD) {
        fuse_reply_err(req, ENAMETOOLONG);
        return;
    }
    c = command_new(req, COMMAND_CREATE, parent, name + 1, strlen(name + 1));
    if (!c)
        return;
    c->fi = *fi;
    c->fi.fh = d->request;
    c->fi.direct_io = 1;
    daemon_command(d, c);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (is_for_workloads(req, parent))
        hand_over(req, COMMAND_RMDIR, parent, name, strlen(name));
}
