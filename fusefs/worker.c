/*
 * Worker: the process that serves a mount. See worker.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fusefs/daemon.h"
#include "fusefs/log.h"
#include "fusefs/sandbox.h"

/* The one daemon of this process: signal handlers have no argument. */
static struct daemon *served;

static void on_terminate(int signal_number)
{
    (void)signal_number;
    connection_stop(&served->connection);
}

/* SIGTERM ends the session. The others are the supervisor's business. */
static void catch_signals(void)
{
    struct sigaction term = { .sa_handler = on_terminate }, ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

static int start_session(struct daemon *d, const struct worker_setup *setup)
{
    char *argv[] = { (char *)"fakegpufs", NULL };
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);

    d->se = fuse_session_new(&args, &daemon_ops, sizeof(daemon_ops), &d->connection);
    fuse_opt_free_args(&args);
    if (!d->se)
        return -ENOMEM;
    return connection_attach(&d->connection, d->se, setup->fuse_fd, setup->shared);
}

static int prepare(struct daemon *d, const struct worker_setup *setup, struct why *why)
{
    pthread_condattr_t monotonic;

    d->shared = setup->shared;
    d->host = setup->host;
    d->config_path = setup->config_path;
    d->commands_end = &d->commands;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->wake, &monotonic);
    d->host.errors = &d->shared->errors;
    d->host.config = calloc(1, sizeof(struct text));
    if (!d->host.config)
        return why_set(why, ENOMEM, "out of memory");
    text_addn(d->host.config, d->shared->config, d->shared->config_length);
    d->tree = tree_new(why);
    d->sim = sim_adopt(dup(setup->world_fd), setup->models, why);
    if (!d->tree || !d->sim)
        return -EINVAL;
    pages_render(d);
    return start_session(d, setup);
}

static void release(struct daemon *d)
{
    if (d->se)
        fuse_session_destroy(d->se); /* closes the connection's descriptor */
    connection_release(&d->connection);
    sim_free(d->sim);
    tree_free(d->tree);
    if (d->host.config)
        text_release(d->host.config);
    free(d->host.config);
    free(d->pages);
    for (int i = 0; i < HANDLE_BUCKETS; i++)
        while (d->handles[i])
            handle_drop(d, d->handles[i]->number);
}

static void stop_publisher(struct daemon *d, pthread_t publisher)
{
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    pthread_join(publisher, NULL);
}

int worker_main(const struct worker_setup *setup)
{
    struct daemon d = { 0 };
    struct why why = { 0 };
    pthread_t publisher;
    int r;

    served = &d;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* without a supervisor there is nobody to hold the mount */
    r = prepare(&d, setup, &why);
    if (r == 0)
        r = sandbox_enter(setup->drop_privileges, &why);
    if (r < 0) {
        log_line(LOG_ERROR, "worker: %s", why.text ? why_text(&why) : strerror(-r));
        why_release(&why);
        return 1;
    }
    catch_signals();
    r = pthread_create(&publisher, NULL, publisher_main, &d);
    if (r) {
        log_line(LOG_ERROR, "worker: cannot start a thread: %s", strerror(r));
        return 1;
    }
    atomic_store(&d.shared->ready, 1);
    r = daemon_serve(&d);
    stop_publisher(&d, publisher);
    release(&d);
    why_release(&why);
    if (r < 0)
        log_line(LOG_ERROR, "worker: the connection failed: %s", strerror(-r));
    return r < 0 ? 1 : 0;
}
