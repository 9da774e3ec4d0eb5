/*
 * Signals: how a program is told to look at once or to end, and how it waits. See signals.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/common/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fusefs/realtime.h"
#include "sim/unit.h"

int signals_open(struct signals *s)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    *s = (struct signals){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
    return s->fd < 0 ? -errno : 0;
}

void signals_close(struct signals *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static void collect(struct signals *s)
{
    struct signalfd_siginfo info;

    while (read(s->fd, &info, sizeof(info)) == sizeof(info)) {
        s->woken = true;
        s->ending |= info.ssi_signo != SIGHUP;
    }
}

bool signals_take(struct signals *s)
{
    bool woken;

    collect(s);
    woken = s->woken;
    s->woken = false;
    return woken;
}

bool signals_interrupted(void *signals)
{
    struct signals *s = signals;

    collect(s);
    return s->ending;
}

bool signals_wait(struct signals *s, int64_t until_ns, int fd)
{
    struct pollfd fds[] = { { .fd = s->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    int64_t wait_ns = until_ns - real_ns(CLOCK_MONOTONIC);

    if (s->ending || wait_ns <= 0)
        return false;
    return s->woken || poll(fds, 2, (int)(wait_ns / NS_PER_MS) + 1) > 0;
}
