/*
 * fakegpu-pods: shows the GPUs that the kubelet gave to pods as workloads of a mount.
 *
 * Looks at both again and again, and at once when the kubelet's socket comes. Whatever is missing, the
 * kubelet or the mount, is waited for; what is there stays as it is meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <curl/curl.h>
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "k8s/pods/mirror.h"
#include "sim/unit.h"

enum {
    CALL_MS = 10000, /* the kubelet lists what it has in memory: longer is never */
    RETRY_MS = 500,  /* while something is missing */
};

struct program {
    struct options o;
    struct mirror mirror;
    int signals; /* signalfd */
    int watch;   /* inotify, on the directory of the socket */
    int watched; /* its descriptor there; -1: not yet */
    bool ending;
};

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* --- signals --------------------------------------------------------------------------------- */

static int catch_signals(void)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* SIGHUP does nothing but wake: the next look comes at once. */
static bool take_signals(struct program *p)
{
    struct signalfd_siginfo info;
    bool taken = false;

    while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
        taken = true;
        p->ending |= info.ssi_signo != SIGHUP;
    }
    return taken;
}

static bool is_interrupted(void *context)
{
    struct program *p = context;

    take_signals(p);
    return p->ending;
}

/* --- the socket ------------------------------------------------------------------------------ */

/* The directory may come later than we do, and go. */
static void watch_socket(struct program *p)
{
    char *path = p->watched < 0 ? strdup(p->o.socket) : NULL;

    if (path)
        p->watched = inotify_add_watch(p->watch, dirname(path),
                                       IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    free(path);
}

/* Whether the socket has come. */
static bool take_events(struct program *p)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    const char *slash = strrchr(p->o.socket, '/'), *name = slash ? slash + 1 : p->o.socket;
    bool came = false;
    ssize_t n;

    while ((n = read(p->watch, buf, sizeof(buf))) > 0)
        for (const char *at = buf; at < buf + n;) {
            const struct inotify_event *e = (const void *)at;

            if (e->mask & IN_IGNORED)
                p->watched = -1;
            came |= e->len && !strcmp(e->name, name);
            at += sizeof(*e) + e->len;
        }
    return came;
}

/* --- the loop -------------------------------------------------------------------------------- */

/* Until it is time to look again: after a while, when the socket comes, or at a signal. */
static void wait_for_next(struct program *p, bool missing)
{
    int64_t retry_ns = RETRY_MS * NS_PER_MS, wait_ns = p->o.interval_ns, end;

    if (missing && wait_ns > retry_ns)
        wait_ns = retry_ns;
    end = now_ns() + wait_ns;
    watch_socket(p);
    while (!p->ending && (wait_ns = end - now_ns()) > 0) {
        struct pollfd fds[] = { { .fd = p->signals, .events = POLLIN },
                                { .fd = p->watch, .events = POLLIN } };

        poll(fds, 2, (int)(wait_ns / NS_PER_MS) + 1);
        if (take_signals(p) || take_events(p))
            return;
    }
}

static int run(struct program *p)
{
    int r;

    watch_socket(p);
    do {
        r = mirror_look(&p->mirror);
        if (!p->o.once && !p->ending)
            wait_for_next(p, r == -EREMOTEIO);
    } while (!p->o.once && !p->ending);
    if (p->ending && p->o.remove_at_exit && !p->o.dry_run)
        mirror_remove_all(&p->mirror);
    return p->o.once && r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct program p = { .watched = -1 };
    struct grpc_options call = { .timeout_ms = CALL_MS,
                                 .interrupted = is_interrupted,
                                 .context = &p };
    int exit_code;

    log_program = "fakegpu-pods";
    exit_code = options_parse(&p.o, argc, argv);
    if (exit_code >= 0)
        return exit_code;
    call.socket = p.o.socket;
    p.mirror.o = &p.o;
    p.signals = catch_signals();
    p.watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (p.signals < 0 || p.watch < 0 || grpc_new(&p.mirror.kubelet, &call) < 0) {
        log_line(LOG_ERROR, "cannot start: %s", strerror(errno));
        exit_code = 1;
    } else {
        exit_code = run(&p);
    }
    grpc_free(p.mirror.kubelet);
    mirror_release(&p.mirror);
    curl_global_cleanup();
    return exit_code;
}
