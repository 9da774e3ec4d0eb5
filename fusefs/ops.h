/*
 * Ops: what the files that answer the kernel's requests share. All of it is the server thread's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_OPS_H
#define FUSEFS_OPS_H

#include "fusefs/daemon.h"

enum {
    /* st_size of a text file, as in sysfs: a copier that trusts 0 would copy nothing. */
    TEXT_SIZE = 4096,
    /* The kernel cuts longer writes. */
    WRITE_MAX = 1 << 20,
};

struct daemon *daemon_of(fuse_req_t req);

/* Takes the lock and resolves; on failure gives it back and answers. */
bool ops_look(fuse_req_t req, struct daemon *d, fuse_ino_t ino, struct place *p);

/* Gives the lock back and answers. */
void ops_answer(fuse_req_t req, struct daemon *d, int err);

/* ops_change.c. A command not yet handed over; NULL: out of memory, and answered. */
struct command *command_new(fuse_req_t req, enum command_kind kind, fuse_ino_t ino,
                            const char *text, size_t length);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
              struct fuse_file_info *fi);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
               struct fuse_file_info *fi);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);

/* ops_file.c */
void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph);

#endif
