/*
 * Connection: to the kernel. See connection.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define FUSE_USE_VERSION 314
#include "fusefs/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "fusefs/realtime.h"
#include "fusefs/shared.h"

/* Newer than the oldest header we build with. */
#define NOTIFY_RESEND 7
#define UNIQUE_RESEND (UINT64_C(1) << 63)

/* How long to look out for the next request before sleeping. */
enum { LOOKOUT_NS = 100 * 1000 };

static int sleep_for_request(const struct connection *c)
{
    struct pollfd fds[] = { { c->fd, POLLIN, 0 }, { c->stop_fd, POLLIN, 0 } };

    return poll(fds, 2, -1);
}

/* As a read that blocks. Others that want the processor are let through while it looks out. */
static ssize_t next_request(const struct connection *c, void *buf, size_t size)
{
    int64_t until = real_ns(CLOCK_MONOTONIC) + LOOKOUT_NS;
    ssize_t n;

    while (!fuse_session_exited(c->se)) {
        n = read(c->fd, buf, size);
        if (n >= 0 || errno != EAGAIN)
            return n;
        if (real_ns(CLOCK_MONOTONIC) < until)
            sched_yield();
        else if (sleep_for_request(c) < 0)
            return -1;
    }
    errno = EINTR;
    return -1;
}

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
    (void)fd;
    n = next_request(c, buf, size);
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
                              .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                              .se = se,
                              .shared = shared,
                              .replay = atomic_load(&shared->init_length) != 0 };
    c->resent = !c->replay; /* a first worker has nobody before it */
    if (c->stop_fd < 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
        return -errno;
    return fuse_session_custom_io(se, &io, fd) == 0 ? 0 : -EINVAL;
}

void connection_stop(struct connection *c)
{
    int saved = errno;

    fuse_session_exit(c->se);
    (void)!write(c->stop_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    errno = saved;
}

void connection_release(struct connection *c)
{
    if (c->se)
        close(c->stop_fd);
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
