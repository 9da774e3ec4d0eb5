/*
 * Streams: growing files that a reader can wait for.
 *
 * A stream is a log: its bytes have offsets, and a read behind the end waits until there is more. When
 * the log starts anew (it was full), an offset behind its end has lost its meaning: EPIPE, once for whoever
 * reads on from there; from offset 0 everything that is kept can be read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/daemon.h"

int64_t stream_available(const struct daemon *d, const struct place *place, off_t offset,
                         const char **text)
{
    uint32_t length;
    const char *bytes = world_stream(sim_store(d->sim), (enum stream)place->cx.def->arg, &length);

    if (offset > length)
        return -EPIPE;
    *text = bytes + offset;
    return (int64_t)length - offset;
}

/* The bytes are copied under the lock and sent without it. */
void stream_reply(struct daemon *d, struct waiting_read *read)
{
    struct tree_view view;
    struct place place;
    const char *text = NULL;
    char *copy = NULL;
    int64_t n;

    pthread_mutex_lock(&d->lock);
    view = daemon_view(d);
    n = tree_resolve(&view, read->ino, &place);
    if (n == 0)
        n = stream_available(d, &place, read->offset, &text);
    if (n > (int64_t)read->size)
        n = (int64_t)read->size;
    if (n > 0) {
        copy = malloc((size_t)n);
        if (copy) {
            struct handle *h = handle_get(d, read->handle, read->ino);

            memcpy(copy, text, (size_t)n);
            if (h)
                h->seen = (uint64_t)(read->offset + n);
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
