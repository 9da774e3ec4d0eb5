/*
 * Connection: to the kernel. See connection.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUSE_USE_VERSION 314
#include "fusefs/connection.h"

#include <errno.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "fusefs/shared.h"

/* Newer than the oldest header we build with. */
#define NOTIFY_RESEND 7
#define UNIQUE_RESEND (UINT64_C(1) << 63)

static ssize_t connection_read(int fd, void *buf, size_t size, void *userdata)
{
    struct connection *c = userdata;
    const struct fuse_in_header *header = buf;
    ssize_t n;

    if (c->replay) {
        c->replay = false;
        n = (ssize_t)c->shared->init_length;
        memcpy(buf, c->shared->init, (size_t)n);
        c->swallow = header->unique;
        return n;
    }
    n = read(fd, buf, size);
    if (n >= (ssize_t)sizeof(*header) && header->opcode == FUSE_INIT && n <= SHARED_INIT_BYTES) {
        memcpy(c->shared->init, buf, (size_t)n);
        atomic_store(&c->shared->init_length, (uint32_t)n);
    }
    return n;
}

static size_t iov_bytes(const struct iovec *iov, int count)
{
    size_t n = 0;

    for (int i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n;
}

static ssize_t connection_writev(int fd, struct iovec *iov, int count, void *userdata)
{
    struct connection *c = userdata;
    const struct fuse_out_header *header = iov[0].iov_base;

    if (c->swallow && header->unique == c->swallow) {
        c->swallow = 0;
        return (ssize_t)iov_bytes(iov, count);
    }
    return writev(fd, iov, count);
}

int connection_attach(struct connection *c, struct fuse_session *se, int fd, struct shared *shared)
{
    static const struct fuse_custom_io io = { .writev = connection_writev,
                                              .read = connection_read };

    *c = (struct connection){ .fd = fd,
                              .shared = shared,
                              .replay = atomic_load(&shared->init_length) != 0 };
    c->resent = !c->replay; /* a first worker has nobody before it */
    return fuse_session_custom_io(se, &io, fd) == 0 ? 0 : -EINVAL;
}

void connection_resume(struct connection *c)
{
    struct fuse_out_header header = { .len = sizeof(header), .error = NOTIFY_RESEND };

    if (c->resent || c->replay || c->swallow)
        return;
    c->resent = true;
    if (write(c->fd, &header, sizeof(header)) < 0)
        log_line(LOG_WARN, "the kernel cannot send unanswered requests again (%s): some may fail",
                 strerror(errno));
}

uint64_t connection_request(const void *buffer, bool *resent)
{
    const struct fuse_in_header *header = buffer;

    *resent = header->unique & UNIQUE_RESEND;
    return header->unique & ~UNIQUE_RESEND;
}

void connection_wake(const struct connection *c, uint64_t poll_handle)
{
    struct fuse_notify_poll_wakeup_out wakeup = { .kh = poll_handle };
    struct fuse_out_header header = { .len = sizeof(header) + sizeof(wakeup),
                                      .error = FUSE_NOTIFY_POLL };
    struct iovec iov[] = { { &header, sizeof(header) }, { &wakeup, sizeof(wakeup) } };

    if (writev(c->fd, iov, 2) < 0)
        log_line(LOG_DEBUG, "poll wakeup: %s", strerror(errno));
}
