/*
 * Server: the listening sockets and who serves them. See server.h.
 *
 * libmicrohttpd reads requests and writes answers; what it does not do is bound how long a client may take
 * for it. So every connection is known here with what it is at and since when, and one that takes too long
 * is shut down, whether it sends a byte now and then or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "exporter/web_config.h"
#include "fusefs/realtime.h"
#include "sim/unit.h"
#include "sim/why.h"

enum {
    ENDPOINTS_MAX = 32,
    CONNECTIONS_MAX = 8192,
    MEMORY_PER_CONNECTION = 8 << 10, /* bounds what a request may have in headers */
    FIRST_SECONDS = 10,              /* for the first request to come */
    ANSWER_SECONDS = 30,             /* for an answer to be taken */
};

/* A connection. It is at one of these, since then. */
enum peer_state { PEER_NEW, PEER_ANSWERED, PEER_IDLE };

struct peer {
    int fd;
    atomic_int state;
    atomic_llong since_ns;
    struct peer *next, **link; /* guarded by the server */
};

struct endpoint {
    struct server *server;
    struct MHD_Daemon *daemon;
    struct http http;
};

struct server {
    struct server_options options;
    struct endpoint endpoints[ENDPOINTS_MAX];
    int count;
    atomic_int answering;
    pthread_mutex_t lock; /* of the peers */
    struct peer *peers;
};

static int64_t now_ns(void)
{
    return real_ns(CLOCK_MONOTONIC_COARSE);
}

/* --- connections ----------------------------------------------------------------------------- */

static void peer_enter(struct peer *p, enum peer_state state)
{
    if (!p)
        return;
    atomic_store_explicit(&p->since_ns, now_ns(), memory_order_relaxed);
    atomic_store_explicit(&p->state, state, memory_order_relaxed);
}

static void peer_begin(struct server *s, struct MHD_Connection *c, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct peer *p = calloc(1, sizeof(*p));

    *context = p;
    if (!p)
        return;
    p->fd = info ? info->connect_fd : -1;
    peer_enter(p, PEER_NEW);
    pthread_mutex_lock(&s->lock);
    p->next = s->peers;
    p->link = &s->peers;
    if (p->next)
        p->next->link = &p->next;
    s->peers = p;
    pthread_mutex_unlock(&s->lock);
}

/* Called before the descriptor is closed, so what is in the list is open. */
static void peer_end(struct server *s, struct peer *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&s->lock);
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    pthread_mutex_unlock(&s->lock);
    free(p);
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct endpoint *e = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        peer_begin(e->server, c, context);
    else
        peer_end(e->server, *context);
}

static struct peer *peer_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void server_tidy(struct server *s)
{
    int idle = s->options.idle_seconds;
    const int64_t seconds[] = {
        [PEER_NEW] = FIRST_SECONDS < idle ? FIRST_SECONDS : idle,
        [PEER_ANSWERED] = ANSWER_SECONDS < idle ? ANSWER_SECONDS : idle,
        [PEER_IDLE] = idle,
    };
    int64_t now = now_ns();

    pthread_mutex_lock(&s->lock);
    for (struct peer *p = s->peers; p; p = p->next)
        if (now - atomic_load(&p->since_ns) > seconds[atomic_load(&p->state)] * NS_PER_S)
            shutdown(p->fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
}

/* --- requests -------------------------------------------------------------------------------- */

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    struct endpoint *e = cls;

    (void)version;
    (void)upload;
    if (*request) {
        if (!*upload_size)
            return http_answer(&e->http, c, path, method);
        *upload_size = 0; /* a body, which was refused already */
        return MHD_YES;
    }
    *request = e;
    atomic_fetch_add(&e->server->answering, 1);
    peer_enter(peer_of(c), PEER_ANSWERED);
    /* An answer given now closes the connection: right for what has a body, which nobody wants to read. */
    return http_has_body(c) ? http_answer(&e->http, c, path, method) : MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *c, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct endpoint *e = cls;

    (void)code;
    if (!*request)
        return;
    *request = NULL;
    atomic_fetch_sub(&e->server->answering, 1);
    peer_enter(peer_of(c), PEER_IDLE);
}

/* --- life ------------------------------------------------------------------------------------ */

struct server *server_new(const struct server_options *options)
{
    struct server *s = calloc(1, sizeof(*s));

    if (s) {
        s->options = *options;
        pthread_mutex_init(&s->lock, NULL);
    }
    return s;
}

int server_add(struct server *s, int fd, const struct web_config *web, struct why *why)
{
    struct endpoint *e = &s->endpoints[s->count];
    bool tls = web && web->certificate;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_TURBO;
    struct MHD_OptionItem secure[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, tls ? web->certificate : NULL },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, tls ? web->key : NULL },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, tls ? (void *)(uintptr_t)web->priorities : NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    int threads = s->options.threads;

    if (s->count == ENDPOINTS_MAX)
        return why_set(why, E2BIG, "more than %d sockets", ENDPOINTS_MAX);
    *e = (struct endpoint){
        .server = s,
        .http = { .stage = s->options.stage, .users = web ? web->users : NULL },
    };
    errno = 0;
    e->daemon = MHD_start_daemon(tls ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, on_request, e,
                                 MHD_OPTION_ARRAY, tls ? secure : &secure[3],
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
                                 (unsigned)(threads > 1 ? threads : 0), MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_NOTIFY_COMPLETED,
                                 on_completed, e, MHD_OPTION_NOTIFY_CONNECTION, on_connection, e,
                                 MHD_OPTION_END);
    if (!e->daemon)
        return why_set(why, errno ? errno : EINVAL, "cannot serve%s: %s", tls ? " TLS" : "",
                       errno ? strerror(errno)
                             : "the certificate and the key do not work together");
    s->count++;
    return 0;
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
    pthread_mutex_destroy(&s->lock);
    free(s);
}
