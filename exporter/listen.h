/*
 * Listen: sockets to serve on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_LISTEN_H
#define EXPORTER_LISTEN_H

#include <stdint.h>
#include <sys/types.h>

struct why;

/*
 * ":9400" (every address, IPv6 and IPv4), "127.0.0.1:9400", "[::1]:9400", "name:9400". Port 0: any that is
 * free. A listening descriptor, or -errno with a sentence.
 */
int listen_tcp(const char *address, struct why *why);

/* Whether it is such an address. -EINVAL with a sentence. */
int listen_check(const char *address, struct why *why);

/* What the descriptor is bound to, as HOST:PORT. */
void listen_name(int fd, char *buf, unsigned long size);

/*
 * A Unix socket. One that nobody listens on any more is replaced, one that somebody does is EADDRINUSE, and
 * anything else there stays. `owner` is USER, USER:GROUP, :GROUP or NULL.
 */
int listen_unix(const char *path, mode_t mode, const char *owner, struct why *why);

#endif
