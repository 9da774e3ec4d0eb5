/*
 * Stream: see stream.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 512, LOOK_AROUND_MS = 1000, AWAY_MS = 100 };

/* Takes the next whole line out of the text; false when there is none. */
static bool take_line(struct stream *s, char *line, size_t size)
{
    char *end = memchr(s->text, '\n', s->length);
    size_t used;

    if (!end)
        return false;
    used = (size_t)(end - s->text) + 1;
    snprintf(line, size, "%.*s", (int)(used - 1), s->text);
    memmove(s->text, s->text + used, s->length - used);
    s->length -= used;
    return true;
}

/* More text. 0, -EAGAIN when there is none yet, or -errno. */
static int fill(struct stream *s)
{
    ssize_t n;

    if (s->length == sizeof(s->text))
        s->length = 0; /* no line is that long */
    n = pread(s->fd, s->text + s->length, sizeof(s->text) - s->length, s->offset);
    if (n < 0 && errno == EPIPE) {
        /* The log began anew; what is known already is passed over by its number. */
        s->offset = 0;
        s->length = 0;
        return 0;
    }
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EAGAIN;
    s->length += (size_t)n;
    s->offset += n;
    return 0;
}

/* 0 when a line matched, -EAGAIN when all that came was looked at, or -errno. */
static int look(struct stream *s, stream_match *match, void *argument)
{
    char line[LINE_BYTES];
    int result;

    do {
        while (take_line(s, line, sizeof(line))) {
            unsigned long long number = strtoull(line, NULL, 10);

            if (number <= s->seen)
                continue;
            s->seen = number;
            if (match(argument, line))
                return 0;
        }
        result = fill(s);
    } while (result == 0);
    return result;
}

static bool pass_over(void *argument, const char *line)
{
    (void)argument, (void)line;
    return false;
}

static nvmlReturn_t start(struct stream *s)
{
    nvmlReturn_t result;
    int looked;

    s->mount = library_mount();
    result = root_open("events", &s->fd);
    if (result != NVML_SUCCESS) {
        s->fd = -1;
        return result;
    }
    s->offset = 0;
    s->length = 0;
    s->seen = 0;
    looked = look(s, pass_over, NULL);
    return looked == -EAGAIN ? NVML_SUCCESS : nvml_error(looked);
}

nvmlReturn_t stream_open(struct stream *s)
{
    nvmlReturn_t result;

    pthread_mutex_init(&s->lock, NULL);
    result = start(s);
    if (result != NVML_SUCCESS)
        stream_close(s);
    return result;
}

void stream_close(struct stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    pthread_mutex_destroy(&s->lock);
}

void stream_after_fork(struct stream *s)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    s->lock = fresh;
    s->offset = 0;
    s->length = 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

static int64_t monotonic_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static void lose(struct stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/*
 * One look, on the mount that is there now: 0, -EAGAIN when nothing matched, -ENOTCONN when there is none. *fd is what to
 * poll then, or -1.
 */
static int look_now(struct stream *s, stream_match *match, void *argument, int *fd)
{
    nvmlReturn_t opened = NVML_SUCCESS;
    int result;

    library_look();
    pthread_mutex_lock(&s->lock);
    if (s->fd >= 0 && s->mount != library_mount())
        lose(s);
    if (s->fd < 0)
        opened = start(s);
    result = opened == NVML_SUCCESS ? look(s, match, argument) : -ENOTCONN;
    if (result < 0 && result != -EAGAIN) {
        lose(s);
        result = -ENOTCONN;
    }
    *fd = s->fd;
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* Until there may be something to look at, or the time is over. Without a mount there is nothing to poll. */
static int wait_more(int fd, int64_t left_ms)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    int64_t most_ms = fd < 0 ? AWAY_MS : LOOK_AROUND_MS;

    return poll(&poll_fd, 1, (int)(left_ms < most_ms ? left_ms : most_ms)) < 0 && errno != EINTR
               ? -errno
               : 0;
}

nvmlReturn_t stream_wait(struct stream *s, unsigned int timeout_ms, stream_match *match,
                         void *argument)
{
    int64_t until = monotonic_ms() + timeout_ms;
    bool was_there = false;

    for (;;) {
        int fd, result = look_now(s, match, argument, &fd);
        int64_t left = until - monotonic_ms();

        was_there |= result == -EAGAIN;
        if (result == 0)
            return NVML_SUCCESS;
        if (left <= 0)
            return was_there ? NVML_ERROR_TIMEOUT : nvml_error(result);
        result = wait_more(fd, left);
        if (result < 0)
            return nvml_error(result);
    }
}
