/*
 * Private: a mount of a command's own, made from a configuration and gone with the command.
 *
 * Its daemon is a child that ends when the command does, however that ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_PRIVATE_H
#define FUSEFS_CLI_PRIVATE_H

#include <sys/types.h>

struct why;

struct private_mount {
    char *dir;  /* of its own; owned */
    char *root; /* the mount point in it; owned */
    pid_t daemon;
};

/* Mounts what the YAML describes; `schemas` may be NULL. -errno with a sentence. */
int private_mount_make(struct private_mount *m, const char *yaml, const char *schemas,
                       struct why *why);

/* Unmounts and removes it. */
void private_mount_end(struct private_mount *m);

#endif
