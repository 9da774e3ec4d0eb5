/*
 * Daemon: the worker's state, and who may touch it.
 *
 * Two threads. The server (ops.c) reads requests and answers those that only look. The publisher
 * (publisher.c) owns the simulator: it moves the time, applies commands one after the other, pushes the
 * new generation to its readers and only then answers the command. The lock guards the world and all
 * below it; no reply or notification that could wait for the other thread is sent while it is held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_DAEMON_H
#define FUSEFS_DAEMON_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>

#include "fusefs/connection.h"
#include "fusefs/shared.h"
#include "fusefs/snapshot.h"
#include "fusefs/tree.h"

enum command_kind {
    COMMAND_WRITE,
    COMMAND_MKDIR,
    COMMAND_CREATE,
    COMMAND_RMDIR,
    COMMAND_ATTACH,
    COMMAND_DETACH,
    COMMAND_OPEN_DEVICE,
    COMMAND_CLOSE_DEVICE,
};

/* A change that somebody asked for. Owned by the queue, then by the publisher. */
struct command {
    enum command_kind kind;
    fuse_req_t req;
    uint64_t request; /* its number, and */
    bool resent;      /* whether a worker before may have applied it already */
    uint64_t ino;     /* what it is about */
    char *text;       /* write: the text; mkdir, create, rmdir: the workload's name; owned */
    size_t size;      /* of what was written */
    uint32_t uid, pid;
    struct fuse_file_info fi;
    int result;    /* 0 or -errno, once applied */
    uint64_t made; /* mkdir: inode of the new directory; create: of its `attach` */
    struct command *next;
};

/* A place in a stream: behind so many bytes, of the log that was started so often. */
struct stream_at {
    uint64_t turns;
    int64_t position;
};

/* A read of a stream that waits for more. */
struct waiting_read {
    fuse_req_t req;
    uint64_t handle;
    uint64_t ino;
    off_t offset; /* of the file */
    struct stream_at at;
    size_t size;
    bool interrupted;
    struct waiting_read *next;
};

/* An open file. Another worker's handle is made up anew when it is met. */
struct handle {
    uint64_t number;
    uint64_t ino;
    struct text text; /* what was rendered at offset 0; directories: the listing */
    bool rendered;
    uint64_t seen; /* streams: offset behind what was read; state files: the state that was read */
    /* streams: which log its offsets count in, and the offset of that log's beginning */
    uint64_t turns;
    off_t base;
    bool placed;
    struct handle *next;
};

enum { HANDLE_BUCKETS = 256 };

struct daemon {
    struct fuse_session *se;
    struct connection connection;
    struct shared *shared;
    struct tree *tree;
    struct host host;
    const char *config_path; /* what messages call the configuration; NULL: there is none */

    pthread_mutex_t lock;
    pthread_cond_t wake; /* the publisher: there is something to do */

    /* guarded by lock */
    struct sim *sim;
    struct handle *handles[HANDLE_BUCKETS];
    struct command *commands, **commands_end;
    struct waiting_read *waiting;
    struct snapshot_page *pages;
    size_t page_count;
    uint64_t pages_generation;
    bool
        connected; /* the library has seen the kernel's INIT: before that it sends no notification */
    bool stop;

    /* the server's own */
    uint64_t request; /* number of the request being served */
    bool resent;
};

/* The world as it is now, for the tree. With the lock held. */
struct tree_view daemon_view(const struct daemon *d);

/* Hands a command over to the publisher, which answers it. Takes the command. */
void daemon_command(struct daemon *d, struct command *command);

/* ops.c */
extern const struct fuse_lowlevel_ops daemon_ops;
int daemon_serve(struct daemon *d); /* until the mount is gone or it is told to stop: 0 or -errno */

/* attributes.c: with the lock held */
void daemon_fill_attr(const struct daemon *d, const struct place *place, struct stat *st);
double daemon_entry_timeout(const struct place *place);
double daemon_attr_timeout(const struct place *place);

/* handles.c: with the lock held */
struct handle *handle_new(struct daemon *d, uint64_t ino);
struct handle *handle_get(struct daemon *d, uint64_t number, uint64_t ino);
void handle_keep(struct daemon *d, const struct handle *h); /* its text, for the next worker */
void handle_drop(struct daemon *d, uint64_t number);

/* streams.c: with the lock held. Where a handle's file offset leads; what can be read from there, or -EPIPE
 * when the log was started anew; and after that answer, where it goes on. */
int64_t stream_length(const struct daemon *d, const struct place *place);
struct stream_at stream_place(const struct daemon *d, const struct place *place, struct handle *h,
                              off_t offset);
int64_t stream_available(const struct daemon *d, const struct place *place,
                         const struct stream_at *at, const char **text);
void stream_begin_anew(const struct daemon *d, const struct place *place, struct handle *h,
                       off_t offset);
void stream_reply(struct daemon *d, struct waiting_read *read); /* takes it; without the lock */

/* pages.c: a new turn of the snapshot on its way to its readers. */
struct pages_push {
    uint64_t turn; /* 0: nothing to push */
    struct snapshot_page *pages;
    size_t count;
};

/* Renders at once, for when nobody reads yet. With the lock held. */
void pages_render(struct daemon *d);

/* What is to be pushed, with the lock held; then without it, the push. */
struct pages_push pages_prepare(struct daemon *d);
void pages_publish(struct daemon *d, struct pages_push *push);

/* publisher.c */
void daemon_remember(struct daemon *d, const struct place *place,
                     const char *sentence); /* with the lock held */
void *publisher_main(void *daemon);

#endif
