/*
 * Server: the listening sockets and who serves them. See server.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/unit.h"
#include "sim/why.h"

enum {
    DAEMONS_MAX = 32,
    CONNECTIONS_MAX = 8192,
    MEMORY_PER_CONNECTION = 16 << 10, /* bounds what a request may have in headers */
    IDLE_SECONDS = 120,
};

struct endpoint {
    struct server *server;
    struct MHD_Daemon *daemon;
    struct http http;
};

struct server {
    struct server_options options;
    struct endpoint endpoints[DAEMONS_MAX];
    int count;
    atomic_int answering;
};

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload_data,
                              size_t *upload_size, void **request)
{
    struct endpoint *e = cls;

    (void)version;
    (void)upload_data;
    if (!*request) {
        *request = e;
        atomic_fetch_add(&e->server->answering, 1);
        return MHD_YES;
    }
    if (*upload_size) { /* nobody reads what is sent along */
        *upload_size = 0;
        return MHD_YES;
    }
    return http_answer(&e->http, connection, url, method);
}

static void answered(void *cls, struct MHD_Connection *connection, void **request,
                     enum MHD_RequestTerminationCode code)
{
    struct endpoint *e = cls;

    (void)connection;
    (void)code;
    if (*request)
        atomic_fetch_sub(&e->server->answering, 1);
}

struct server *server_new(const struct server_options *options)
{
    struct server *s = calloc(1, sizeof(*s));

    if (s)
        s->options = *options;
    return s;
}

int server_add(struct server *s, int fd, struct users *users, struct why *why)
{
    struct endpoint *e = &s->endpoints[s->count];
    int threads = s->options.threads;

    if (s->count == DAEMONS_MAX)
        return why_set(why, E2BIG, "more than %d sockets", DAEMONS_MAX);
    *e = (struct endpoint){ .server = s, .http = { .stage = s->options.stage, .users = users } };
    e->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, e,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
                                 (unsigned)(threads > 1 ? threads : 0), MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, answered, e,
                                 MHD_OPTION_END);
    if (!e->daemon)
        return why_set(why, EIO, "cannot serve: %s", strerror(errno));
    s->count++;
    return 0;
}

void server_tidy(struct server *s)
{
    (void)s;
}

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void server_stop(struct server *s, int64_t grace_ns)
{
    int64_t end = now_ns() + grace_ns;

    for (int i = 0; i < s->count; i++) {
        int fd = MHD_quiesce_daemon(s->endpoints[i].daemon);

        if (fd >= 0)
            close(fd);
    }
    while (atomic_load(&s->answering) > 0 && now_ns() < end)
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
    for (int i = 0; i < s->count; i++)
        MHD_stop_daemon(s->endpoints[i].daemon);
    free(s);
}
