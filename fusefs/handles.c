/*
 * Handles: open files, by the number of the request that opened them.
 *
 * No two workers give out the same, and an open that is sent again to the next worker gets the same again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "fusefs/daemon.h"

static struct handle **bucket(struct daemon *d, uint64_t number)
{
    return &d->handles[number % HANDLE_BUCKETS];
}

static struct handle *handle_add(struct daemon *d, uint64_t number, uint64_t ino)
{
    struct handle *h = calloc(1, sizeof(*h)), **at = bucket(d, number);

    if (!h)
        return NULL;
    h->number = number;
    h->ino = ino;
    h->next = *at;
    *at = h;
    return h;
}

struct handle *handle_new(struct daemon *d, uint64_t ino)
{
    return handle_add(d, d->request, ino);
}

struct handle *handle_get(struct daemon *d, uint64_t number, uint64_t ino)
{
    for (struct handle *h = *bucket(d, number); h; h = h->next)
        if (h->number == number)
            return h;
    return handle_add(d, number, ino); /* opened before this worker was born */
}

void handle_drop(struct daemon *d, uint64_t number)
{
    for (struct handle **at = bucket(d, number); *at; at = &(*at)->next) {
        struct handle *h = *at;

        if (h->number != number)
            continue;
        *at = h->next;
        text_release(&h->text);
        free(h);
        return;
    }
}
