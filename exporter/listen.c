/*
 * Listen: sockets to serve on. See listen.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/listen.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/unit.h"
#include "sim/why.h"

/* Many connect at once when a test does; the kernel cuts it to what it allows. */
enum { BACKLOG = 4096 };

/* --- TCP ------------------------------------------------------------------------------------- */

/* "[::1]:9400" into host and port; the host is "" for every address. */
static int split(const char *address, char host[256], char port[16])
{
    const char *colon = strrchr(address, ':');
    size_t length;
    int64_t number;

    if (!colon || strlen(colon + 1) >= 16)
        return -EINVAL;
    strcpy(port, colon + 1);
    if (parse_i64(port, &number) < 0 || number < 0 || number > 65535)
        return -EINVAL;
    length = (size_t)(colon - address);
    if (length >= 2 && *address == '[' && colon[-1] == ']') {
        address++;
        length -= 2;
    } else if (memchr(address, ':', length)) {
        return -EINVAL; /* an IPv6 address needs brackets */
    }
    if (length >= 256)
        return -EINVAL;
    memcpy(host, address, length);
    host[length] = '\0';
    return 0;
}

static int listen_on(const struct addrinfo *a, bool every)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    int only = a->ai_family == AF_INET6 && !every, err;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    err = -errno;
    close(fd);
    return err;
}

/* The first of the families in turn that works. */
static int listen_first(const struct addrinfo *list, bool every)
{
    static const int families[] = { AF_INET6, AF_INET };
    int fd = -EADDRNOTAVAIL;

    for (int f = 0; f < 2; f++)
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
            if (a->ai_family != families[f])
                continue;
            fd = listen_on(a, every);
            if (fd >= 0 || fd == -EADDRINUSE || fd == -EACCES)
                return fd;
        }
    return fd;
}

int listen_check(const char *address, struct why *why)
{
    char host[256], port[16];

    if (split(address, host, port) == 0)
        return 0;
    return why_set(why, EINVAL, "'%s' is not an address; allowed: :PORT, HOST:PORT, [IPV6]:PORT",
                   address);
}

int listen_tcp(const char *address, struct why *why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *list;
    char host[256], port[16];
    int r;

    if (listen_check(address, why) < 0)
        return -EINVAL;
    split(address, host, port);
    r = getaddrinfo(*host ? host : NULL, port, &hints, &list);
    if (r != 0)
        return why_set(why, EADDRNOTAVAIL, "cannot listen on '%s': %s", address, gai_strerror(r));
    r = listen_first(list, !*host);
    freeaddrinfo(list);
    if (r < 0)
        return why_set(why, -r, "cannot listen on '%s': %s", address, strerror(-r));
    return r;
}

void listen_name(int fd, char *buf, unsigned long size)
{
    struct sockaddr_storage a = { 0 };
    socklen_t length = sizeof(a);
    char host[256] = "?", port[16] = "?";

    getsockname(fd, (struct sockaddr *)&a, &length);
    getnameinfo((struct sockaddr *)&a, length, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(buf, size, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* --- Unix ------------------------------------------------------------------------------------ */

/* Removes a socket that nobody listens on. */
static int remove_stale(const char *path, const struct sockaddr_un *a)
{
    struct stat st;
    int fd, r;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    r = connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ? -EADDRINUSE : 0;
    close(fd);
    return r < 0 ? r : unlink(path) < 0 ? -errno : 0;
}

static int find_owner(const char *owner, uid_t *uid, gid_t *gid)
{
    const char *colon = owner ? strchr(owner, ':') : NULL;
    char user[64];
    struct passwd *p;
    struct group *g;
    int64_t number;

    *uid = (uid_t)-1;
    *gid = (gid_t)-1;
    if (!owner)
        return 0;
    snprintf(user, sizeof(user), "%.*s", (int)(colon ? colon - owner : 63), owner);
    if (parse_i64(user, &number) == 0)
        *uid = (uid_t)number;
    else if (*user && !(p = getpwnam(user)))
        return -EINVAL;
    else if (*user)
        *uid = p->pw_uid;
    if (!colon)
        return 0;
    if (parse_i64(colon + 1, &number) == 0)
        *gid = (gid_t)number;
    else if (!(g = getgrnam(colon + 1)))
        return -EINVAL;
    else
        *gid = g->gr_gid;
    return 0;
}

/* Bound with no permissions for others, so that nobody comes in before the mode is right. */
static int bind_unix(int fd, const char *path, const struct sockaddr_un *a, mode_t mode, uid_t uid,
                     gid_t gid)
{
    mode_t mask = umask(0177);
    int r = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;

    umask(mask);
    if (r < 0)
        return r;
    if (chown(path, uid, gid) < 0 || chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
        r = -errno;
        unlink(path);
    }
    return r;
}

int listen_unix(const char *path, mode_t mode, const char *owner, struct why *why)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    uid_t uid;
    gid_t gid;
    int fd, r;

    if (strlen(path) >= sizeof(a.sun_path))
        return why_set(why, ENAMETOOLONG, "'%s' is longer than a socket's path may be (%zu)", path,
                       sizeof(a.sun_path) - 1);
    strcpy(a.sun_path, path);
    if (find_owner(owner, &uid, &gid) < 0)
        return why_set(why, EINVAL, "there is no owner '%s'; allowed: USER, USER:GROUP, :GROUP",
                       owner);
    r = remove_stale(path, &a);
    if (r < 0)
        return why_set(why, -r, "cannot listen on '%s': %s", path,
                       r == -EEXIST ? "something else is there" : strerror(-r));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : bind_unix(fd, path, &a, mode, uid, gid);
    if (r == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return why_set(why, -r, "cannot listen on '%s': %s", path, strerror(-r));
}
