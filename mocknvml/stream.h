/*
 * Stream: the mount's `events`, followed line by line by whoever waits for something in it.
 *
 * It is read from where it stood when it was opened. Reads name their offset: a child that inherits it does not
 * move its parent's. Several threads may wait on one stream; each line goes to one of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_STREAM_H
#define MOCKNVML_STREAM_H

#include <pthread.h>

#include "mocknvml/library.h"

struct stream {
    pthread_mutex_t lock;     /* of all below; not held while waiting */
    int fd;                   /* of `events`, -1 when it was lost */
    unsigned long long mount; /* the mount it is of: see library_mount */
    long long offset;
    unsigned long long seen; /* number of the last line that was looked at */
    char text[4096];         /* read and not yet looked at */
    size_t length;
};

/* Opens it and passes over what is in it. */
nvmlReturn_t stream_open(struct stream *s);
void stream_close(struct stream *s);

/* In a child after fork: nobody holds its lock, and what another thread was reading is read again. */
void stream_after_fork(struct stream *s);

/* Whether a line is what somebody waits for; with the stream's lock held. */
typedef bool stream_match(void *argument, const char *line);

/*
 * Until a line matches; the timeout is in ms. Who waits also waits for a daemon that is replaced, and goes on with
 * the next one: NVML_ERROR_TIMEOUT. NVML_ERROR_DRIVER_NOT_LOADED when none was there in all that time. So a program
 * that calls again after an error, as device plugins do, does not turn in circles.
 */
nvmlReturn_t stream_wait(struct stream *s, unsigned int timeout_ms, stream_match *match,
                         void *argument);

#endif
