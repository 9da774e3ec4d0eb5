/*
 * Server: the listening sockets and who serves them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_SERVER_H
#define EXPORTER_SERVER_H

#include "exporter/http.h"

struct server;
struct web_config;
struct why;

struct server_options {
    struct stage *stage;
    int threads;      /* for each socket */
    int idle_seconds; /* a connection that asks nothing for so long is closed */
};

/* NULL when out of memory. */
struct server *server_new(const struct server_options *options);

/*
 * Serves a listening descriptor, which it takes over, as `web` says (NULL: plain, for everybody).
 * 0 or -errno with a sentence.
 */
int server_add(struct server *server, int fd, const struct web_config *web, struct why *why);

/* Closes connections that have been idle or slow for too long; to be called every second or so. */
void server_tidy(struct server *server);

/* Takes no more connections, lets answers under way finish, for `grace_ns` at most, and ends. */
void server_stop(struct server *server, int64_t grace_ns);

#endif
