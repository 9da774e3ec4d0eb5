/*
 * Streams: growing files that a reader can wait for.
 *
 * A stream is a log: its bytes have offsets, and a read behind the end waits until there is more. When
 * the log starts anew (it was full), what a reader has not read yet may be gone: he gets EPIPE once and
 * goes on with the oldest line that is kept, whatever his offset. From offset 0 all that is kept is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/daemon.h"

static const struct stream_state *state_of(const struct daemon *d, const struct place *place)
{
    return &sim_world(d->sim)->node.streams[place->cx.def->arg];
}

int64_t stream_length(const struct daemon *d, const struct place *place)
{
    return state_of(d, place)->length;
}

int64_t stream_available(const struct daemon *d, const struct place *place,
                         const struct stream_at *at, const char **text)
{
    uint32_t length;
    const char *bytes = world_stream(sim_store(d->sim), (enum stream)place->cx.def->arg, &length);

    if (at->turns != state_of(d, place)->turns || at->position > length)
        return -EPIPE;
    *text = bytes + at->position;
    return (int64_t)length - at->position;
}

struct stream_at stream_place(const struct daemon *d, const struct place *place, struct handle *h,
                              off_t offset)
{
    if (!h->placed || offset < h->base || offset == 0) {
        h->placed = true;
        h->turns = state_of(d, place)->turns;
        h->base = 0;
    }
    return (struct stream_at){ h->turns, offset - h->base };
}

void stream_begin_anew(const struct daemon *d, const struct place *place, struct handle *h,
                       off_t offset)
{
    h->turns = state_of(d, place)->turns;
    h->base = offset;
    h->seen = 0;
}

/* The bytes are copied under the lock and sent without it. */
void stream_reply(struct daemon *d, struct waiting_read *read)
{
    struct tree_view view;
    struct place place;
    struct handle *h;
    const char *text = NULL;
    char *copy = NULL;
    int64_t n;

    pthread_mutex_lock(&d->lock);
    view = daemon_view(d);
    h = handle_get(d, read->handle, read->ino);
    n = h ? tree_resolve(&view, read->ino, &place) : -ENOMEM;
    if (n == 0)
        n = stream_available(d, &place, &read->at, &text);
    if (n == -EPIPE)
        stream_begin_anew(d, &place, h, read->offset);
    if (n > (int64_t)read->size)
        n = (int64_t)read->size;
    if (n > 0) {
        copy = malloc((size_t)n);
        if (copy) {
            memcpy(copy, text, (size_t)n);
            h->seen = (uint64_t)(read->at.position + n);
        } else {
            n = -ENOMEM;
        }
    }
    pthread_mutex_unlock(&d->lock);
    if (n < 0)
        fuse_reply_err(read->req, (int)-n);
    else
        fuse_reply_buf(read->req, copy, (size_t)n);
    free(copy);
    free(read);
}
