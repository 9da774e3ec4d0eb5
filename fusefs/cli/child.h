/*
 * Child: a program that a command runs for its caller, as if the caller had.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_CHILD_H
#define FUSEFS_CLI_CHILD_H

#include <sys/types.h>

enum { EXIT_SIGNAL = 128, EXIT_CANNOT_RUN = 126, EXIT_NO_PROGRAM = 127 }; /* as a shell has them */

/* From now on SIGINT, SIGTERM, SIGHUP and SIGCHLD come through the descriptor. -errno. */
int child_catch_signals(void);

/* In the child: signals as they were, and ended when the parent is. */
void child_begin(void);

/* In the child: becomes the program, or says why not and exits. */
_Noreturn void child_become(char **argv);

/*
 * In the parent: waits for it, passing signals on; its exit code, or EXIT_SIGNAL + the signal that
 * ended it.
 */
int child_wait(pid_t child, int signals);

#endif
