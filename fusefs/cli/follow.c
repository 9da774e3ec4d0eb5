/*
 * Follow: the lines of a stream from now on. See follow.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/cli/client.h"

/* "29 170.000 xid …" or "4,29,170000000,-;NVRM: …" */
static uint64_t line_number(const char *line)
{
    char *end;
    uint64_t first = strtoull(line, &end, 10);

    return *end == ',' ? strtoull(end + 1, NULL, 10) : first;
}

static void take_line(struct follow *f, const char *line, size_t n)
{
    uint64_t number = line_number(line);

    if (number <= f->last)
        return;
    f->last = number;
    text_addn(&f->lines, line, n);
}

static void take(struct follow *f, const char *bytes, size_t n)
{
    const char *newline;

    text_addn(&f->part, bytes, n);
    while (f->part.length && (newline = memchr(f->part.data, '\n', f->part.length))) {
        size_t length = (size_t)(newline - f->part.data) + 1, rest = f->part.length - length;

        take_line(f, f->part.data, length);
        memmove(f->part.data, f->part.data + length, rest);
        text_cut(&f->part, rest);
    }
}

int follow_read(struct follow *f)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = read(f->fd, chunk, sizeof(chunk));

        if (n > 0)
            take(f, chunk, (size_t)n);
        else if (n == 0 || errno == EAGAIN)
            return f->lines.failed || f->part.failed ? -ENOMEM : 0;
        else if (errno == EPIPE) { /* it started anew */
            text_cut(&f->part, 0);
            lseek(f->fd, 0, SEEK_SET);
        } else if (errno != EINTR)
            return -errno;
    }
}

int follow_open(struct follow *f, const struct client *client, const char *path)
{
    int r;

    *f = (struct follow){ .fd = reader_open_file(client->reader, path) };
    if (f->fd < 0)
        return f->fd;
    r = follow_read(f);
    text_cut(&f->lines, 0);
    return r;
}

void follow_close(struct follow *f)
{
    if (f->fd >= 0)
        close(f->fd);
    text_release(&f->part);
    text_release(&f->lines);
    f->fd = -1;
}

int64_t follow_count(const struct follow *f, const char *text, size_t *from)
{
    const char *line = text_str(&f->lines) + *from;
    int64_t count = 0;

    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        count += memmem(line, (size_t)(end - line), text, strlen(text)) != NULL;
    *from = f->lines.length;
    return count;
}
