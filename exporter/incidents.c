/*
 * Incidents: what `events` says of Xid errors and clocks. See incidents.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/incidents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/reader.h"
#include "sim/text.h"

struct incidents {
    int fd;           /* -1: not open yet */
    uint64_t seen;    /* number of the last event taken */
    struct text rest; /* a line of which the end is still to come */
    struct incident *list;
    size_t count, room;
};

struct incidents *incidents_new(void)
{
    struct incidents *in = calloc(1, sizeof(*in));

    if (in)
        in->fd = -1;
    return in;
}

void incidents_free(struct incidents *in)
{
    if (!in)
        return;
    if (in->fd >= 0)
        close(in->fd);
    text_release(&in->rest);
    free(in->list);
    free(in);
}

static int add(struct incidents *in, struct incident incident)
{
    if (in->count == in->room) {
        size_t room = in->room ? in->room * 2 : 64;
        struct incident *list = realloc(in->list, room * sizeof(*list));

        if (!list)
            return -ENOMEM;
        in->list = list;
        in->room = room;
    }
    in->list[in->count++] = incident;
    return 0;
}

/* The number behind " key=", or `otherwise`. */
static int64_t number_of(const char *line, const char *key, int64_t otherwise)
{
    const char *at = strstr(line, key);

    return at ? strtoll(at + strlen(key), NULL, 0) : otherwise;
}

/* "170.250" as nanoseconds. */
static int64_t seconds_to_ns(const char *text, char **end)
{
    int64_t ns = strtoll(text, end, 10) * NS_PER_S, part = NS_PER_S / 10;

    if (**end == '.')
        for ((*end)++; **end >= '0' && **end <= '9'; (*end)++, part /= 10)
            ns += (**end - '0') * part;
    return ns;
}

/* NUMBER SECONDS KIND [gpu=INDEX pci=ADDRESS] [KEY=VALUE …] */
static int take_line(struct incidents *in, const char *line)
{
    char *at;
    uint64_t number = strtoull(line, &at, 10);
    int64_t at_ns = seconds_to_ns(at, &at);
    int gpu = (int)number_of(at, " gpu=", -1);

    if (number <= in->seen)
        return 0;
    in->seen = number;
    if (gpu < 0)
        return 0;
    if (!strncmp(at, " xid ", 5))
        return add(in, (struct incident){ INCIDENT_XID, gpu, at_ns, 0, number_of(at, " xid=", 0) });
    if (!strncmp(at, " clocks ", 8))
        return add(in, (struct incident){ INCIDENT_CLOCKS, gpu, at_ns, number_of(at, " from=", 0),
                                          number_of(at, " to=", 0) });
    return 0;
}

static int take_lines(struct incidents *in)
{
    char *line = in->rest.data, *end;
    int r = 0;

    while (r == 0 && line && (end = strchr(line, '\n'))) {
        *end = '\0';
        r = take_line(in, line);
        line = end + 1;
    }
    if (line && line != in->rest.data) {
        size_t left = strlen(line);

        memmove(in->rest.data, line, left + 1);
        text_cut(&in->rest, left);
    }
    return r;
}

static int read_new(struct incidents *in, struct reader *reader)
{
    char chunk[16384];
    ssize_t n;
    int r = 0;

    if (in->fd < 0)
        in->fd = reader_open_file(reader, "events");
    if (in->fd < 0)
        return in->fd;
    while (r == 0) {
        n = read(in->fd, chunk, sizeof(chunk));
        if (n > 0) {
            text_addn(&in->rest, chunk, (size_t)n);
            r = in->rest.failed ? -ENOMEM : take_lines(in);
        } else if (n < 0 && errno == EPIPE) {
            /* The stream started anew; numbers say what was seen. */
            text_cut(&in->rest, 0);
            r = lseek(in->fd, 0, SEEK_SET) < 0 ? -errno : 0;
        } else if (n == 0 || errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            r = -errno;
        }
    }
    return r;
}

/* Whether a later change of the same GPU's clocks is before `since_ns`, too. */
static bool is_outdated(const struct incidents *in, size_t i, int64_t since_ns)
{
    if (in->list[i].at_ns >= since_ns)
        return false;
    if (in->list[i].kind != INCIDENT_CLOCKS)
        return true;
    for (size_t k = i + 1; k < in->count && in->list[k].at_ns < since_ns; k++)
        if (in->list[k].kind == INCIDENT_CLOCKS && in->list[k].gpu == in->list[i].gpu)
            return true;
    return false;
}

static void forget_old(struct incidents *in, int64_t since_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < in->count; i++)
        if (!is_outdated(in, i, since_ns))
            in->list[kept++] = in->list[i];
    in->count = kept;
}

int incidents_follow(struct incidents *in, struct reader *reader, int64_t since_ns,
                     const struct incident **list, size_t *count)
{
    int r = read_new(in, reader);

    forget_old(in, since_ns);
    *list = in->list;
    *count = in->count;
    return r;
}
