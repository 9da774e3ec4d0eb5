/*
 * Arena: memory that is given back all at once. See arena.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 16 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, room;
    alignas(max_align_t) unsigned char bytes[];
};

static struct arena_chunk *chunk_new(size_t room)
{
    struct arena_chunk *c = calloc(1, sizeof(*c) + room);

    if (c)
        c->room = room;
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    struct arena_chunk *c = a->chunks;
    void *p;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!c || c->room - c->used < size) {
        c = chunk_new(size > CHUNK_BYTES ? size : CHUNK_BYTES);
        if (!c)
            return NULL;
        c->next = a->chunks;
        a->chunks = c;
    }
    p = c->bytes + c->used;
    c->used += size;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);

    if (p)
        memcpy(p, s, n);
    return p;
}

void arena_release(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;

        free(a->chunks);
        a->chunks = next;
    }
}
