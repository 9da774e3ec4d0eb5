/*
 * Changes: what a command writes to a mount, so that it can be taken back.
 *
 * Control files show what holds in a form that can be written: before the first write to one, what it shows
 * is kept. Workloads that were made are removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_CHANGES_H
#define FUSEFS_CLI_CHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "fusefs/cli/drive.h"

struct change; /* a path, and what was there before */

struct changes {
    const struct client *client;
    bool forget; /* the mount goes anyway: nothing is kept */
    struct change *items;
    size_t count;
};

/* Writes, and remembers. -errno with a sentence. */
int changes_put(struct changes *c, const char *path, const char *text, struct why *why);

/* The same for a control file of a GPU. */
int changes_put_gpu(struct changes *c, int gpu, const char *file, const char *text,
                    struct why *why);

/* Notes that this directory was made. 0 or -ENOMEM. */
int changes_made(struct changes *c, const char *dir);

/* Whether the path was written to, or made, through here. */
bool changes_has(const struct changes *c, const char *path);

/* Takes everything back; says of each file that could not be restored why. */
void changes_restore(struct changes *c, void (*remark)(void *whom, const char *sentence),
                     void *whom);

/* Forgets everything. */
void changes_release(struct changes *c);

#endif
