/*
 * Sandbox: a worker gives up what it does not need.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_SANDBOX_H
#define FUSEFS_SANDBOX_H

#include <stdbool.h>

struct why;

/*
 * No new privileges, nobody's user and group where it was root, and a filter that leaves only the system
 * calls of a process that answers on descriptors it has. 0 or -errno.
 */
int sandbox_enter(bool drop_privileges, struct why *why);

#endif
