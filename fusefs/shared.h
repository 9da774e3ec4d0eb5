/*
 * Shared: the little that a worker leaves to the next one, beside the world.
 *
 * One block of memory that the supervisor maps before it forks. Whatever is here may have been written by
 * a process that died in the middle of it, so every member is a plain word or is used only when a length
 * written after it says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_SHARED_H
#define FUSEFS_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

#include "fusefs/errors.h"

enum {
    SHARED_INIT_BYTES = 512,
    SHARED_POLLERS = 256,
    SHARED_TEXTS = 256,
    SHARED_TEXT_BYTES = 4064,
    SHARED_CONFIG_BYTES = 1 << 20,
};

/*
 * What an open file rendered at offset 0, so that its later chunks stay of that generation whoever reads
 * them out. A handle has its place by its number; a younger one may take it.
 */
struct kept_text {
    _Atomic uint64_t handle; /* written last; 0 while the text is not whole */
    uint32_t length;
    char bytes[SHARED_TEXT_BYTES];
};

/* Somebody polls a file: the kernel's number for him, and the file. */
struct poller {
    _Atomic uint64_t handle; /* 0: free */
    uint64_t ino;
};

struct shared {
    _Atomic uint32_t init_length; /* of the kernel's first request, which every worker must see */
    unsigned char init[SHARED_INIT_BYTES];
    _Atomic uint32_t ready;         /* a worker has begun to serve */
    int64_t start_real_ns;          /* real time (since the epoch) of simulated time 0 */
    _Atomic uint64_t snapshot_turn; /* number of the last snapshot that was rendered */
    _Atomic int32_t snapshot_opens; /* how many have the snapshot open: it is pushed to them */
    struct poller pollers[SHARED_POLLERS];
    struct kept_text texts[SHARED_TEXTS];
    struct errors errors;
    /* The configuration file when it is to be read again: the supervisor may look where no worker may. */
    _Atomic uint32_t file_passed; /* how often it was passed on to the worker */
    _Atomic uint32_t file_taken; /* the last one that is dealt with; then it may be written again */
    uint32_t file_length;
    char file[SHARED_CONFIG_BYTES];
    _Atomic uint32_t config_length; /* of the effective configuration */
    char config[SHARED_CONFIG_BYTES];
};

#endif
