/*
 * Follow: the lines of a stream (`events`, `kmsg`) from now on, none lost and none twice.
 *
 * A stream that starts anew is read from its beginning; the number in each line says which were seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_FOLLOW_H
#define FUSEFS_CLI_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/text.h"

struct client;

struct follow {
    int fd;            /* -1: not open */
    uint64_t last;     /* number of the last line that was seen */
    struct text part;  /* a line that has not come to its end */
    struct text lines; /* since it was opened, each with its newline */
};

/* Opens the stream at its end. 0 or -errno. */
int follow_open(struct follow *f, const struct client *client, const char *path);
void follow_close(struct follow *f);

/* Takes what is new. Never waits. 0 or -errno. */
int follow_read(struct follow *f);

/* How many of the lines behind `*from` hold `text`; moves `*from` to the end. */
int64_t follow_count(const struct follow *f, const char *text, size_t *from);

#endif
