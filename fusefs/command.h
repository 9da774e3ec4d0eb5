/*
 * Command: the subcommands of the fakegpufs program.
 *
 * A command gets its own arguments (argv[0] is its name) and returns the exit code. Bad usage is one
 * sentence on standard error and EXIT_USAGE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_COMMAND_H
#define FUSEFS_COMMAND_H

enum { EXIT_USAGE = 64 }; /* as in sysexits.h */

typedef int command_fn(int argc, char **argv);

command_fn command_mount, command_umount, command_models, command_metrics, command_paths,
    command_config, command_simulate;

/* "fakegpufs NAME: sentence" on standard error; returns EXIT_USAGE. */
int command_usage(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
