/*
 * World: the store with its two copies. See world.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/world.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/text.h"
#include "sim/why.h"

#define MAGIC UINT64_C(0x646c726f77677066) /* "fpgworld" */

/* Address space, not memory: the file grows below it without moving. */
#define MAPPED_BYTES (UINT64_C(4) << 30)

/* Of one copy. Two always fit, wherever the first one stands: a step never lacks room. */
#define COPY_BYTES_MAX (UINT64_C(256) << 20)

#define ALIGN UINT64_C(64)

static const struct {
    size_t size;
    bool live;
} sections[SECTION_COUNT] = {
#define LIVE true
#define PLAN false
#define SECTION(id, name, type, kind) [SECTION_##id] = { sizeof(type), kind },
    WORLD_SECTIONS(SECTION)
#undef SECTION
#undef LIVE
#undef PLAN
};

static uint64_t aligned(uint64_t n)
{
    return (n + ALIGN - 1) & ~(ALIGN - 1);
}

static uint64_t mix(uint64_t h, uint64_t n)
{
    return (h ^ n) * UINT64_C(0x100000001b3);
}

/* Sizes stand for types: a member added anywhere changes some size or the count of metrics. */
static uint64_t layout_fingerprint(void)
{
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), 1 /* version of what sizes do not show */);

    for (int i = 0; i < SECTION_COUNT; i++)
        h = mix(h, sections[i].size);
    h = mix(h, METRIC_COUNT);
    h = mix(h, CHANNEL_COUNT);
    return mix(mix(h, sizeof(struct world)), sizeof(struct world_head));
}

/* --- store ----------------------------------------------------------------------------------- */

static int store_map(struct world_store *s, struct why *why)
{
    s->head = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
                   0);
    if (s->head == MAP_FAILED)
        return why_set(why, errno, "cannot map the world: %s", strerror(errno));
    return 0;
}

int world_store_create(struct world_store *s, struct why *why)
{
    int r;

    *s = (struct world_store){ 0 };
    s->fd = memfd_create("fakegpufs-world", MFD_CLOEXEC);
    if (s->fd < 0)
        return why_set(why, errno, "cannot make a memfd for the world: %s", strerror(errno));
    r = ftruncate(s->fd, (off_t)aligned(sizeof(struct world_head))) < 0
            ? why_set(why, errno, "cannot size the world: %s", strerror(errno))
            : store_map(s, why);
    if (r < 0) {
        close(s->fd);
        return r;
    }
    s->head->magic = MAGIC;
    s->head->layout = layout_fingerprint();
    return 0;
}

void world_store_release(struct world_store *s)
{
    munmap(s->head, MAPPED_BYTES);
    close(s->fd);
    s->head = NULL;
    s->fd = -1;
}

static struct world *copy_at(const struct world_store *s, uint32_t i)
{
    uint64_t place = s->head->place[i];

    return place ? (struct world *)(void *)((char *)s->head + place) : NULL;
}

const struct world *world_current(const struct world_store *s)
{
    return copy_at(s, atomic_load_explicit(&s->head->current, memory_order_acquire));
}

static void touch_all(struct world *w)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        w->touched[i] = (struct touched){ 0, UINT32_MAX };
}

/* The idle copy may be half of a change that its maker died in: all of it is to be copied again. */
static void distrust_idle_copy(struct world_store *s)
{
    struct world *idle = copy_at(s, !atomic_load_explicit(&s->head->current, memory_order_acquire));

    if (idle)
        touch_all(idle);
}

int world_store_adopt(struct world_store *s, int fd, struct why *why)
{
    struct stat st;
    int r;

    if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct world_head))
        return why_set(why, EPROTO, "this is not a world");
    *s = (struct world_store){ .fd = fd };
    r = store_map(s, why);
    if (r < 0)
        return r;
    if (s->head->magic == MAGIC && s->head->layout == layout_fingerprint()) {
        distrust_idle_copy(s);
        return 0;
    }
    munmap(s->head, MAPPED_BYTES);
    return why_set(why, EPROTO, "this world was made by another version");
}

size_t world_section_bytes(const struct world *w, enum world_section section)
{
    return w->used[section] * sections[section].size;
}

size_t world_store_bytes(const struct world_store *s)
{
    const struct world *w = world_current(s);
    size_t bytes = offsetof(struct world_head, archives);

    for (uint32_t i = 0; i < 2; i++)
        if (copy_at(s, i))
            bytes += copy_at(s, i)->bytes;
    for (uint32_t i = 0; w && i < w->used[SECTION_GPUS]; i++)
        bytes += archive_bytes(&world_gpus(w)[i]);
    return bytes;
}

/* --- layout ---------------------------------------------------------------------------------- */

static bool has_room(const struct world *w, const uint32_t need[SECTION_COUNT])
{
    for (int i = 0; i < SECTION_COUNT; i++)
        if (w->room[i] < need[i])
            return false;
    return true;
}

/* Some slack, so that a workload more does not mean a new layout each time. */
static uint32_t with_slack(uint32_t n, uint32_t had)
{
    return n <= had ? had : n + n / 4;
}

static uint64_t lay_out(struct world *w, const uint32_t room[SECTION_COUNT])
{
    uint64_t at = aligned(sizeof(*w));

    for (int i = 0; i < SECTION_COUNT; i++) {
        w->room[i] = room[i];
        w->offset[i] = at;
        at += aligned(room[i] * sections[i].size);
    }
    return at;
}

/* A place of `bytes` that does not touch the current copy: below it if it fits, else behind it. */
static uint64_t find_place(const struct world_store *s, const struct world *current, uint64_t bytes)
{
    uint64_t first = aligned(sizeof(struct world_head));
    uint64_t begin = (uint64_t)((const char *)current - (const char *)s->head);

    if (!current || first + bytes <= begin)
        return first;
    return begin + current->bytes;
}

static struct world *make_copy(struct world_store *s, const struct world *current, uint32_t i,
                               const uint32_t need[SECTION_COUNT], struct why *why)
{
    struct world layout = { 0 }, *w;
    uint32_t room[SECTION_COUNT];
    uint64_t place;
    struct stat st;

    for (int k = 0; k < SECTION_COUNT; k++)
        room[k] = with_slack(need[k], current ? current->room[k] : 0);
    layout.bytes = lay_out(&layout, room);
    place = find_place(s, current, layout.bytes);
    if (layout.bytes > COPY_BYTES_MAX || fstat(s->fd, &st) < 0) {
        why_set(why, ENOMEM, "the world would be larger than %d MiB", (int)(COPY_BYTES_MAX >> 20));
        return NULL;
    }
    s->head->place[i] = 0; /* while it is being made there is no such copy */
    if (st.st_size < (off_t)(place + layout.bytes) &&
        ftruncate(s->fd, (off_t)(place + layout.bytes)) < 0) {
        why_set(why, errno, "cannot grow the world: %s", strerror(errno));
        return NULL;
    }
    w = (struct world *)(void *)((char *)s->head + place);
    memset(w, 0, layout.bytes);
    *w = layout;
    touch_all(w);
    s->head->place[i] = place;
    return w;
}

/* --- what is copied -------------------------------------------------------------------------- */

static bool is_none(const struct touched *t)
{
    return t->first >= t->end;
}

static void touch(struct touched *t, uint32_t first, uint32_t end)
{
    if (is_none(t)) {
        *t = (struct touched){ first, end };
    } else if (first < end) {
        t->first = first < t->first ? first : t->first;
        t->end = end > t->end ? end : t->end;
    }
}

void world_touch(struct world *next, enum world_section section, uint32_t first, uint32_t count)
{
    touch(&next->touched[section], first, first + count);
    if (!sections[section].live)
        next->plan_version++;
}

void world_plan_changed(struct world *next)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        if (!sections[i].live)
            touch(&next->touched[i], 0, UINT32_MAX);
    next->plan_version++;
}

/* They differ where the last change was made, and where one was begun since and dropped. */
static void copy_section(struct world_store *s, struct world *to, const struct world *from, int i)
{
    struct touched t = from->touched[i];
    size_t size = sections[i].size;

    touch(&t, to->touched[i].first, to->touched[i].end);
    if (t.end > from->used[i])
        t.end = from->used[i];
    if (!is_none(&t)) {
        size_t bytes = (t.end - t.first) * size;

        memcpy((char *)to + to->offset[i] + t.first * size,
               (const char *)from + from->offset[i] + t.first * size, bytes);
        s->copied += bytes;
    }
    /* What a shorter section leaves behind is cleared: equal worlds are equal bytes. */
    if (to->used[i] > from->used[i])
        memset((char *)to + to->offset[i] + from->used[i] * size, 0,
               (to->used[i] - from->used[i]) * size);
    to->used[i] = from->used[i];
    to->touched[i] = (struct touched){ 0 };
}

struct world *world_begin_part(struct world_store *s, const uint32_t need[SECTION_COUNT],
                               struct why *why)
{
    const struct world *current = world_current(s);
    uint32_t other = !atomic_load_explicit(&s->head->current, memory_order_relaxed);
    struct world *next = copy_at(s, other);

    if (!need)
        need = current->used;
    if (!next || !has_room(next, need) || (current && !has_room(next, current->used))) {
        uint32_t both[SECTION_COUNT];

        for (int i = 0; i < SECTION_COUNT; i++)
            both[i] = current && current->used[i] > need[i] ? current->used[i] : need[i];
        next = make_copy(s, current, other, both, why);
    }
    if (!next || !current)
        return next;
    for (int i = 0; i < SECTION_COUNT; i++)
        copy_section(s, next, current, i);
    next->node_plan = current->node_plan;
    next->plan_version = current->plan_version;
    next->node = current->node;
    return next;
}

struct world *world_begin(struct world_store *s, const uint32_t need[SECTION_COUNT],
                          struct why *why)
{
    struct world *next = world_begin_part(s, need, why);

    for (int i = 0; next && i < SECTION_COUNT; i++)
        if (sections[i].live)
            touch(&next->touched[i], 0, UINT32_MAX);
    return next;
}

void world_commit(struct world_store *s, struct world *next)
{
    uint32_t i = next == copy_at(s, 1);
    struct world *before = copy_at(s, !i);

    if (s->request) {
        next->node.applied[next->node.next_applied++ % APPLIED_KEPT] = s->request;
        s->request = 0;
    }
    next->node.generation++;
    atomic_store_explicit(&s->head->current, i, memory_order_release);
    /* Up to here both were the same but for what `next` touched: what was touched in making the other is in it. */
    if (before)
        memset(before->touched, 0, sizeof(before->touched));
}

bool world_applied(const struct world_store *s, uint64_t request)
{
    const struct world *w = world_current(s);

    for (int i = 0; i < APPLIED_KEPT; i++)
        if (w->node.applied[i] == request)
            return true;
    return false;
}

/* --- events ---------------------------------------------------------------------------------- */

/*
 * Starts the other buffer with the newest half of this one, from the beginning of a line. A change that
 * fills both stays in the one that is not published: it may yet be dropped.
 */
static void turn_stream(struct world_store *s, struct stream_state *st, enum stream stream)
{
    const struct world *current = world_current(s);
    const char *from = s->head->streams[stream][st->buffer];
    uint32_t keep = st->length / 2;
    const char *line = memchr(from + keep, '\n', st->length - keep);

    keep = line ? (uint32_t)(line + 1 - from) : st->length;
    if (!current || current->node.streams[stream].buffer == st->buffer)
        st->buffer = !st->buffer;
    memmove(s->head->streams[stream][st->buffer], from + keep, st->length - keep);
    st->length -= keep;
    st->turns++;
}

static void write_stream(struct world_store *s, struct world *next, enum stream stream,
                         const struct event *event)
{
    struct stream_state *st = &next->node.streams[stream];
    struct text line = TEXT_INIT;

    event_line(&line, stream, event);
    if (line.length && !line.failed) {
        if (st->length + line.length > STREAM_BYTES)
            turn_stream(s, st, stream);
        memcpy(s->head->streams[stream][st->buffer] + st->length, line.data, line.length);
        st->length += (uint32_t)line.length;
        st->lines++;
    }
    text_release(&line);
}

void world_event(struct world_store *s, struct world *next, const struct event *event)
{
    struct event *slot = &s->head->ring[next->node.events % EVENT_RING];

    *slot = *event;
    slot->number = ++next->node.events;
    slot->time_ns = next->node.now_ns;
    for (int stream = 0; stream < STREAMS; stream++)
        write_stream(s, next, (enum stream)stream, slot);
}

const struct event *world_event_get(const struct world_store *s, uint64_t number)
{
    const struct world *w = world_current(s);
    const struct event *e = &s->head->ring[(number - 1) % EVENT_RING];

    if (!w || number == 0 || number > w->node.events || e->number != number)
        return NULL;
    return e;
}

const char *world_stream(const struct world_store *s, enum stream stream, uint32_t *length)
{
    const struct stream_state *st = &world_current(s)->node.streams[stream];

    *length = st->length;
    return s->head->streams[stream][st->buffer];
}
