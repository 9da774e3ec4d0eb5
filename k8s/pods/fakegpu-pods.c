/*
 * fakegpu-pods: shows the GPUs that the kubelet gave to pods as workloads of a mount.
 *
 * Looks at both again and again, and at once when the kubelet's socket comes. Whatever is missing, the
 * kubelet or the mount, is waited for; what is there stays as it is meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fusefs/realtime.h"
#include "k8s/common/signals.h"
#include "k8s/pods/mirror.h"
#include "sim/unit.h"

enum { CALL_MS = 10000 /* the kubelet lists what it has in memory: longer is never */ };

struct program {
    struct options o;
    struct mirror mirror;
    struct signals signals;
    int watch;   /* inotify, on the directory of the socket */
    int watched; /* its descriptor there; -1: not yet */
};

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
    int64_t retry_ns = MOUNT_RETRY_MS * NS_PER_MS, wait_ns = p->o.common.interval_ns, end;

    if (missing && wait_ns > retry_ns)
        wait_ns = retry_ns;
    end = real_ns(CLOCK_MONOTONIC) + wait_ns;
    watch_socket(p);
    while (signals_wait(&p->signals, end, p->watch))
        if (signals_take(&p->signals) || take_events(p))
            return;
}

static int run(struct program *p)
{
    const struct common_options *o = &p->o.common;
    int r;

    watch_socket(p);
    do {
        r = mirror_look(&p->mirror);
        if (!o->once && !p->signals.ending)
            wait_for_next(p, r == -EREMOTEIO);
    } while (!o->once && !p->signals.ending);
    if (p->signals.ending && o->remove_at_exit && !o->dry_run)
        mirror_remove_all(&p->mirror);
    return o->once && r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct program p = { .watched = -1 };
    struct grpc_options call = { .timeout_ms = CALL_MS,
                                 .interrupted = signals_interrupted,
                                 .context = &p.signals };
    int exit_code, r;

    log_program = "fakegpu-pods";
    exit_code = options_parse(&p.o, argc, argv);
    if (exit_code >= 0)
        return exit_code;
    call.socket = p.o.socket;
    p.mirror.o = &p.o;
    r = signals_open(&p.signals);
    p.watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (r == 0 && p.watch < 0)
        r = -errno;
    if (r == 0)
        r = grpc_new(&p.mirror.kubelet, &call);
    if (r < 0)
        log_line(LOG_ERROR, "cannot start: %s", strerror(-r));
    exit_code = r < 0 ? 1 : run(&p);
    grpc_free(p.mirror.kubelet);
    mirror_release(&p.mirror);
    signals_close(&p.signals);
    return exit_code;
}
