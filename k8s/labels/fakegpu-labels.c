/*
 * fakegpu-labels: keeps the labels of a Kubernetes node those of a mount.
 *
 * Looks at the mount again and again, and at the node when something has changed or time has passed. Whatever is
 * missing, the mount or the API server, is waited for; the node keeps what it has meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "fusefs/realtime.h"
#include "k8s/common/mount.h"
#include "k8s/common/signals.h"
#include "k8s/labels/keeper.h"
#include "sim/unit.h"

enum {
    CALL_MS = 10000,      /* a request */
    BACKOFF_MIN_MS = 500, /* after the first that failed; then twice as long, and so on */
    BACKOFF_MAX_MS = 30000,
};

struct program {
    struct options o;
    struct keeper keeper;
    struct signals signals;
    bool leaving;    /* the last thing is being done: it is not to be interrupted */
    int64_t wait_ms; /* before the server is asked again; 0: it has answered */
};

static bool is_interrupted(void *context)
{
    struct program *p = context;

    return signals_interrupted(&p->signals) && !p->leaving;
}

/* How long to wait after a look that came to this. */
static int64_t pause_ns(struct program *p, int result)
{
    int64_t retry_ns = MOUNT_RETRY_MS * NS_PER_MS, interval_ns = p->o.common.interval_ns;

    if (result == -EREMOTEIO) {
        p->wait_ms = p->wait_ms ? p->wait_ms * 2 : BACKOFF_MIN_MS;
        if (p->wait_ms > BACKOFF_MAX_MS)
            p->wait_ms = BACKOFF_MAX_MS;
        return p->wait_ms * NS_PER_MS;
    }
    p->wait_ms = 0;
    return result < 0 && retry_ns < interval_ns ? retry_ns : interval_ns;
}

/* Returns whether a signal asks for a look at everything. */
static bool wait_for_next(struct program *p, int64_t pause)
{
    int64_t end = real_ns(CLOCK_MONOTONIC) + pause;

    while (signals_wait(&p->signals, end, -1))
        if (signals_take(&p->signals))
            return true;
    return false;
}

static int look_once(struct program *p)
{
    int r = p->o.remove ? keeper_remove(&p->keeper) : keeper_look(&p->keeper, true);

    return r < 0 ? 1 : 0;
}

static int run(struct program *p)
{
    bool anew = true;

    if (p->o.common.once)
        return look_once(p);
    while (!p->signals.ending) {
        int r = keeper_look(&p->keeper, anew);

        anew = wait_for_next(p, pause_ns(p, r));
    }
    p->leaving = true;
    return p->o.common.remove_at_exit && keeper_remove(&p->keeper) < 0 ? 1 : 0;
}

static int start(struct program *p)
{
    const struct server_options server = { .url = text_str(&p->o.server),
                                           .token_file = p->o.token_file,
                                           .ca_file = p->o.ca_file,
                                           .node = p->o.node,
                                           .timeout_ms = CALL_MS,
                                           .interrupted = is_interrupted,
                                           .context = p };
    int r = signals_open(&p->signals);

    p->keeper.o = &p->o;
    return r < 0 ? r : server_new(&p->keeper.server, &server);
}

int main(int argc, char **argv)
{
    struct program p = { .signals = { .fd = -1 } };
    int exit_code, r;

    log_program = "fakegpu-labels";
    exit_code = options_parse(&p.o, argc, argv);
    if (exit_code < 0) {
        r = start(&p);
        if (r < 0)
            log_line(LOG_ERROR, "cannot start: %s", strerror(-r));
        exit_code = r < 0 ? 1 : run(&p);
    }
    server_free(p.keeper.server);
    keeper_release(&p.keeper);
    signals_close(&p.signals);
    options_release(&p.o);
    return exit_code;
}
