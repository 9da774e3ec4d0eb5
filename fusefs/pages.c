/*
 * Pages: the snapshot's pages, and how they reach the kernel's page cache. See snapshot.h.
 *
 * A push is a copy whose bytes become visible in any order. So it takes two: the first brings the new
 * slot, which nobody looks at yet; when all of it is there, the second brings the numbers that say so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "fusefs/daemon.h"

static void fill_gpu(const struct world *w, int i, struct snapshot_gpu *s)
{
    const struct gpu *g = &world_gpus(w)[i];
    const struct gpu_plan *p = &world_gpu_plans(w)[i];

    memset(s, 0, sizeof(*s));
    s->generation = w->node.generation;
    s->plan_version = w->plan_version;
    s->id = p->id;
    s->flags = gpu_has(g, CONDITION_LOST) ? SNAPSHOT_LOST : 0;
    memcpy(s->uuid, p->uuid, sizeof(s->uuid));
    s->sample = g->sample;
}

static void fill_node(const struct world *w, struct snapshot_node *s)
{
    *s = (struct snapshot_node){
        .magic = SNAPSHOT_MAGIC,
        .registry = snapshot_registry(),
        .generation = w->node.generation,
        .plan_version = w->plan_version,
        .now_ns = w->node.now_ns,
        .gpu_count = w->used[SECTION_GPUS],
    };
}

static bool fit_pages(struct daemon *d, size_t count)
{
    struct snapshot_page *pages;

    if (d->page_count >= count)
        return true; /* GPUs that went leave an empty page behind */
    pages = aligned_alloc(SNAPSHOT_PAGE, count * SNAPSHOT_PAGE);
    if (!pages)
        return false;
    memset(pages, 0, count * SNAPSHOT_PAGE);
    if (d->pages)
        memcpy(pages, d->pages, d->page_count * SNAPSHOT_PAGE);
    free(d->pages);
    d->pages = pages;
    d->page_count = count;
    return true;
}

/* Fills the idle slot of every page; the number of the turn that this prepares, or 0: nothing is new. */
static uint64_t pages_fill(struct daemon *d)
{
    const struct world *w = sim_world(d->sim);
    uint32_t gpus = w->used[SECTION_GPUS];
    uint64_t turn;

    if (d->pages_generation == w->node.generation || !fit_pages(d, 1 + (size_t)gpus))
        return 0;
    /* Turns go on from worker to worker: two pages with the same number are the same page. */
    turn = atomic_fetch_add(&d->shared->snapshot_turn, 1) + 1;
    for (size_t i = 0; i < d->page_count; i++) {
        union snapshot_slot *slot = &d->pages[i].slot[turn & 1];

        if (i == 0)
            fill_node(w, &slot->node);
        else if (i <= gpus)
            fill_gpu(w, (int)i - 1, &slot->gpu);
        else
            memset(slot, 0, sizeof(*slot));
    }
    d->pages_generation = w->node.generation;
    return turn;
}

static void pages_turn(struct snapshot_page *pages, size_t count, uint64_t turn)
{
    for (size_t i = 0; i < count; i++)
        pages[i].first = pages[i].last = turn;
}

void pages_render(struct daemon *d)
{
    uint64_t turn = pages_fill(d);

    if (turn)
        pages_turn(d->pages, d->page_count, turn);
}

struct pages_push pages_prepare(struct daemon *d)
{
    struct pages_push push = { 0 };

    if (atomic_load(&d->shared->snapshot_opens) <= 0)
        return push;
    push.turn = pages_fill(d);
    if (!push.turn)
        return push;
    push.count = d->page_count;
    push.pages = malloc(push.count * SNAPSHOT_PAGE);
    if (push.pages)
        memcpy(push.pages, d->pages, push.count * SNAPSHOT_PAGE);
    return push;
}

static void push_now(struct daemon *d, const struct pages_push *push)
{
    struct fuse_bufvec vec = FUSE_BUFVEC_INIT(push->count * SNAPSHOT_PAGE);

    vec.buf[0].mem = push->pages;
    fuse_lowlevel_notify_store(d->se, tree_ino("snapshot", 0), 0, &vec, 0);
}

void pages_publish(struct daemon *d, struct pages_push *push)
{
    if (!push->turn)
        return;
    if (push->pages)
        push_now(d, push);
    /* From here on whoever asks the server gets the new turn, and the page cache follows. */
    pthread_mutex_lock(&d->lock);
    pages_turn(d->pages, d->page_count, push->turn);
    pthread_mutex_unlock(&d->lock);
    if (push->pages) {
        pages_turn(push->pages, push->count, push->turn);
        push_now(d, push);
    }
    free(push->pages);
}
