/*
 * Reader: a mount as other programs see it. See reader.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/snapshot.h"

/*
 * A push takes a microsecond or two, so most often the next try is good. But whoever pushes can be put to
 * sleep, or killed, in the middle of it: then he, or who comes after him, needs some time.
 */
enum { TRIES = 100, PATIENT_TRIES = 10000, PATIENCE_NS = 100000 };

/* Threads that read through one descriptor count themselves in and out of the same word of the kernel's. */
enum { SNAPSHOTS = 4 };

struct reader {
    int root; /* the mount's directory */
    _Atomic int
        snapshots[SNAPSHOTS]; /* each for some of the threads; -1: none of those was here yet */
    _Atomic int history;      /* -1: nobody has asked for it yet */
};

/* --- pages ----------------------------------------------------------------------------------- */

/* Who needs a file first keeps it open for all. A descriptor or -errno. */
static int open_once(struct reader *r, _Atomic int *kept, const char *name)
{
    int fd = atomic_load_explicit(kept, memory_order_acquire), none = -1;

    if (fd >= 0)
        return fd;
    fd = openat(r->root, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (atomic_compare_exchange_strong(kept, &none, fd))
        return fd;
    close(fd);
    return none;
}

/* Threads' own blocks lie far apart; their addresses are spread over the descriptors. */
static int open_snapshot(struct reader *r)
{
    uint64_t self = (uint64_t)(uintptr_t)pthread_self() >> 6;
    int fd = open_once(r, &r->snapshots[self * UINT64_C(0x9e3779b97f4a7c15) >> 62], "snapshot");

    /* A process without descriptors, or that may not open any more, goes on with what it has. */
    for (int i = 0; fd < 0 && i < SNAPSHOTS; i++)
        if (atomic_load(&r->snapshots[i]) >= 0)
            return atomic_load(&r->snapshots[i]);
    return fd;
}

static int read_page(struct reader *r, int64_t page, union snapshot_slot *slot)
{
    struct snapshot_page p;
    int fd = open_snapshot(r);

    if (fd < 0)
        return fd;
    for (int i = 0; i < PATIENT_TRIES; i++) {
        ssize_t n = pread(fd, &p, sizeof(p), page * SNAPSHOT_PAGE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n != sizeof(p))
            return -ENODEV;
        if (p.first == p.last && p.first) {
            memcpy(slot, &p.slot[p.first & 1], sizeof(*slot));
            return 0;
        }
        if (i >= TRIES)
            nanosleep(&(struct timespec){ .tv_nsec = PATIENCE_NS }, NULL);
    }
    return -EIO;
}

int reader_node(struct reader *r, struct reader_node *node)
{
    union snapshot_slot slot;
    int result = read_page(r, 0, &slot);

    if (result < 0)
        return result;
    if (slot.node.magic != SNAPSHOT_MAGIC || slot.node.registry != snapshot_registry())
        return -EPROTO;
    *node = (struct reader_node){
        .generation = slot.node.generation,
        .plan_version = slot.node.plan_version,
        .now_ns = slot.node.now_ns,
        .gpu_count = (int)slot.node.gpu_count,
    };
    return 0;
}

int reader_gpu(struct reader *r, int index, struct reader_gpu *gpu)
{
    union snapshot_slot slot;
    int result = index < 0 ? -ENODEV : read_page(r, 1 + (int64_t)index, &slot);

    if (result < 0)
        return result;
    if (!slot.gpu.id)
        return -ENODEV;
    gpu->generation = slot.gpu.generation;
    gpu->plan_version = slot.gpu.plan_version;
    gpu->id = slot.gpu.id;
    gpu->lost = slot.gpu.flags & SNAPSHOT_LOST;
    memcpy(gpu->uuid, slot.gpu.uuid, sizeof(gpu->uuid));
    gpu->sample = slot.gpu.sample;
    return 0;
}

int reader_history(struct reader *r, int index, struct reader_history *history)
{
    struct snapshot_history h;
    int fd = index < 0 ? -ENODEV : open_once(r, &r->history, "history");
    ssize_t n;

    if (fd < 0)
        return fd;
    do
        n = pread(fd, &h, sizeof(h), (off_t)index * (off_t)sizeof(h));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (n != sizeof(h) || h.count > HISTORY_MOMENTS)
        return -ENODEV;
    history->generation = h.generation;
    history->id = h.id;
    history->epoch_ns = h.epoch_ns;
    history->count = (int)h.count;
    memcpy(history->moments, h.moments, sizeof(h.moments));
    return 0;
}

/* --- files ----------------------------------------------------------------------------------- */

int reader_text(struct reader *r, const char *path, char *buf, unsigned long size)
{
    int fd = openat(r->root, path, O_RDONLY | O_CLOEXEC);
    unsigned long used = 0;
    ssize_t n = 0;
    int err;

    if (fd < 0)
        return -errno;
    /* A file is rendered as a whole: what is shorter than it might be is its end. */
    while (used < size && (n = read(fd, buf + used, size - used)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        used += (unsigned long)n;
        if (used < size)
            break;
    }
    err = errno;
    close(fd);
    if (n < 0)
        return -err;
    if (used == size)
        return -E2BIG;
    if (used && buf[used - 1] == '\n')
        used--;
    buf[used] = '\0';
    return (int)used;
}

char *reader_line(char **text)
{
    while (*text && **text) {
        char *line = *text, *end = strchr(line, '\n');

        *text = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

int reader_write(struct reader *r, const char *path, const char *text)
{
    int fd = openat(r->root, path, O_WRONLY | O_CLOEXEC), err = 0;
    size_t length = strlen(text);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do
        n = write(fd, text, length);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        err = -errno;
    else if ((size_t)n != length)
        err = -EIO;
    close(fd);
    return err;
}

int reader_open_file(struct reader *r, const char *path)
{
    int fd = openat(r->root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

/* --- which mount it is ----------------------------------------------------------------------- */

/* Its device number, without a word to its daemon. */
static int mount_device(int dir, const char *path, unsigned *major, unsigned *minor)
{
    struct statx st;

    if (statx(dir, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0)
        return -errno;
    *major = st.stx_dev_major;
    *minor = st.stx_dev_minor;
    return 0;
}

bool reader_is_current(struct reader *r, const char *root)
{
    unsigned here[2], there[2];

    return mount_device(r->root, "", &here[0], &here[1]) == 0 &&
           mount_device(AT_FDCWD, root, &there[0], &there[1]) == 0 && here[0] == there[0] &&
           here[1] == there[1];
}

/* --- opening --------------------------------------------------------------------------------- */

int reader_open(struct reader **out, const char *root)
{
    struct reader *r = calloc(1, sizeof(*r));
    struct reader_node node;
    int err;

    if (!r)
        return -ENOMEM;
    atomic_init(&r->history, -1);
    for (int i = 0; i < SNAPSHOTS; i++)
        atomic_init(&r->snapshots[i], -1);
    r->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    err = r->root < 0 ? -errno : reader_node(r, &node);
    if (err < 0) {
        reader_close(r);
        return err;
    }
    *out = r;
    return 0;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    for (int i = 0; i < SNAPSHOTS; i++)
        if (atomic_load(&r->snapshots[i]) >= 0)
            close(atomic_load(&r->snapshots[i]));
    if (atomic_load(&r->history) >= 0)
        close(atomic_load(&r->history));
    if (r->root >= 0)
        close(r->root);
    free(r);
}
