/*
 * Stage: builds a mount namespace where a mount's files stand in the places of the system's own.
 *
 * A directory of the system cannot get new entries without everybody seeing them. So it is built anew on a
 * stage, a tmpfs: the mount's entries first, then those of the system that are not there yet, each a
 * bind mount of the original. Then the stage's directory is bound over the system's.
 *
 * Every step can be said as a line of shell, and is, where lines are explained.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_STAGE_H
#define FUSEFS_CLI_STAGE_H

#include <stdbool.h>

#include "sim/text.h"
#include "sim/why.h"

/* Where the mount is, inside. */
#define STAGE_ROOT "/run/fakegpufs"

struct stage {
    const char *place;   /* a directory that is covered while the stage stands; borrowed */
    struct text *script; /* the lines, where they are explained; NULL: it is done */
    bool in_user_namespace;
};

/*
 * Leaves the caller's mount namespace, by a user namespace where there is no privilege. -EPERM with a
 * sentence that says what is missing.
 */
int stage_enter(struct stage *stage, struct why *why);

/* In a child that will be a program of ours: it may mount, as this process may. */
void stage_lend_privilege(const struct stage *stage);

/* Picks a place that has nothing to do with `root`, and covers it. */
int stage_open(struct stage *stage, const char *root, struct why *why);

/* Makes STAGE_ROOT, an empty directory, or binds the mount `root` there. */
int stage_make_root(struct stage *stage, struct why *why);
int stage_bind_root(struct stage *stage, const char *root, struct why *why);

/* Puts everything into its place: device nodes, /proc, /sys, the loader's cache. STAGE_ROOT serves by now. */
int stage_dress(struct stage *stage, struct why *why);

/* Uncovers the place. */
void stage_close(struct stage *stage);

#endif
