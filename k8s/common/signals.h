/*
 * Signals: how a program of ours is told to look at once or to end, and how it waits until then.
 *
 * SIGTERM and SIGINT end it. SIGHUP only wakes it, so that its next look comes at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_COMMON_SIGNALS_H
#define K8S_COMMON_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

struct signals {
    int fd;      /* signalfd */
    bool woken;  /* it is to look at once */
    bool ending; /* it is to end */
};

/* Takes signals from now on. 0 or -errno. */
int signals_open(struct signals *s);
void signals_close(struct signals *s);

/* Whether one has come that wakes; it is taken then. */
bool signals_take(struct signals *s);

/* For who asks in the middle of something: whether `signals` say that it is to end. Takes none away. */
bool signals_interrupted(void *signals);

/*
 * Until then (monotonic), or until a signal comes or `fd` can be read; -1 for none. Returns false when the time is
 * up or the program is to end: there is nothing to wait for any more.
 */
bool signals_wait(struct signals *s, int64_t until_ns, int fd);

#endif
