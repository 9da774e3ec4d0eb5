/*
 * Handles: open files, by the number of the request that opened them.
 *
 * No two workers give out the same, and an open that is sent again to the next worker gets the same again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

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

static struct kept_text *kept(struct daemon *d, uint64_t number)
{
    return &d->shared->texts[number % SHARED_TEXTS];
}

void handle_keep(struct daemon *d, const struct handle *h)
{
    struct kept_text *k = kept(d, h->number);

    atomic_store(&k->handle, 0);
    if (h->text.length > SHARED_TEXT_BYTES)
        return; /* rendered anew, should it come to that */
    k->length = (uint32_t)h->text.length;
    memcpy(k->bytes, text_str(&h->text), h->text.length);
    atomic_store(&k->handle, h->number);
}

/* A handle that was opened before this worker was born. */
static struct handle *handle_inherit(struct daemon *d, uint64_t number, uint64_t ino)
{
    const struct kept_text *k = kept(d, number);
    struct handle *h = handle_add(d, number, ino);

    if (h && atomic_load(&k->handle) == number) {
        text_addn(&h->text, k->bytes, k->length);
        h->rendered = !h->text.failed;
    }
    return h;
}

struct handle *handle_get(struct daemon *d, uint64_t number, uint64_t ino)
{
    for (struct handle *h = *bucket(d, number); h; h = h->next)
        if (h->number == number)
            return h;
    return handle_inherit(d, number, ino);
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
