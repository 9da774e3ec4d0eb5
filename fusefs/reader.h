/*
 * Reader: a mount as other programs see it.
 *
 * The only way in which the mock NVML and the exporter look at a mount. Keeps one descriptor open and
 * uses pread, never mmap: a lost daemon is an error code here, not a signal in somebody else's process.
 * No threads, no output, no environment. Several threads may use one struct reader at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_READER_H
#define FUSEFS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/metric.h"

struct reader;

/*
 * Opens the mount at `root`. -ENOENT (no mount there), -ENOTCONN (its daemon is gone), -EPROTO (it was made
 * by another version), -ENOMEM …
 */
int reader_open(struct reader **reader, const char *root);
void reader_close(struct reader *reader);

/*
 * Whether `root` still leads to the mount that was opened. One that was detached serves on while somebody has a
 * file of it open: who keeps a reader must ask now and then, or he keeps the old one alive. Cheap.
 */
bool reader_is_current(struct reader *reader, const char *root);

struct reader_node {
    uint64_t generation;
    uint64_t plan_version; /* changes when GPUs, identities or the configuration do */
    int64_t now_ns;        /* simulated time */
    int gpu_count;
};

/* The node as it is now. 0 or -errno; after -ENOTCONN or -ENODEV the mount is to be opened again. */
int reader_node(struct reader *reader, struct reader_node *node);

struct reader_gpu {
    uint64_t generation, plan_version;
    uint64_t id; /* of the GPU; another one at this index has another */
    bool lost;   /* fallen off the bus: the sample is old */
    char uuid[48];
    struct metric_sample sample;
};

/* GPU `index`, all of one generation. -ENODEV when there is none. */
int reader_gpu(struct reader *reader, int index, struct reader_gpu *gpu);

struct reader_history {
    uint64_t generation;
    uint64_t id;      /* of the GPU */
    int64_t epoch_ns; /* real time (since the epoch) of simulated time 0 */
    int count;
    struct moment moments[HISTORY_MOMENTS]; /* oldest first */
};

/* What GPU `index` did in the last seconds, the same for everyone who asks in the same generation. */
int reader_history(struct reader *reader, int index, struct reader_history *history);

/* A small file below the root, without its last newline. Returns its length or -errno; -E2BIG. */
int reader_text(struct reader *reader, const char *path, char *buf, unsigned long size);

/* The next line of a table that was read, or NULL behind the last; comments are left out. Changes the text. */
char *reader_line(char **text);

/* Writes one command to a file below the root. 0 or -errno. */
int reader_write(struct reader *reader, const char *path, const char *text);

/* Opens a file below the root for reading, for whoever waits on it with poll. A descriptor or -errno. */
int reader_open_file(struct reader *reader, const char *path);

#endif
