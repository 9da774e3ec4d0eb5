/*
 * Client: a mount as the commands use it: files that are read and written, nothing else.
 *
 * What a command does to a mount goes through here, so that with `--explain` the shell lines that do the
 * same are printed instead, and so that a refusal always comes with the mount's own sentence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_CLIENT_H
#define FUSEFS_CLI_CLIENT_H

#include "fusefs/cli/command.h"
#include "fusefs/reader.h"
#include "sim/text.h"
#include "sim/why.h"

enum { EXIT_LOST = 2 }; /* the daemon is gone */

struct client_options {
    const char *mount;
    bool explain;
};

/* clang-format off */
/* Their rows; `which` is the struct client_options of the command's own `type`. */
#define CLIENT_MOUNT(type, which)                                                       \
    OPTION("mount", 'm', "DIR", OPTION_TEXT, type, which.mount,                         \
           "the mount; default: $FAKEGPUFS_ROOT, or " DEFAULT_MOUNT,                    \
           .complete = COMPLETE_DIRECTORY)
#define CLIENT_OPTIONS(type, which)                                                     \
    CLIENT_MOUNT(type, which),                                                          \
    OPTION("explain", 0, NULL, OPTION_FLAG, type, which.explain,                        \
           "print the shell lines that do the same")
/* clang-format on */

struct client {
    const char *root;      /* borrowed */
    bool explain;          /* nothing is written; what would be is printed */
    struct reader *reader; /* NULL where lines are explained and there is no mount */
};

/* The mount that is meant: the option, the environment, the default. */
const char *client_root(const struct client_options *options);

/* Opens it. 0 or -errno with a sentence. */
int client_open(struct client *client, const struct client_options *options, struct why *why);
void client_close(struct client *client);

/* The sentence on standard error, and the exit code for it: EXIT_LOST when the daemon is gone, else 1. */
int client_fail(int err, struct why *why);

/* Whether -errno says that the daemon is gone. */
bool client_is_lost(int err);

/* --- reading --------------------------------------------------------------------------------- */

/* Appends a file's text, without the last newline. 0 or -errno; no sentence. */
int client_read(const struct client *client, struct text *out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The number in a file that has one; `otherwise` where it cannot be read. */
int64_t client_number(const struct client *client, int64_t otherwise, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The number behind `name ` at the beginning of a line of a text; `otherwise` where there is none. */
int64_t client_line_number(const char *text, const char *name, int64_t otherwise);

/* --- writing --------------------------------------------------------------------------------- */

/* Writes one command to a file. The refusal's sentence is the mount's own. */
int client_put(const struct client *client, const char *path, const char *text, struct why *why);

/*
 * Makes a workload and holds it, in one step: it goes when the descriptor is closed, however this process
 * ends. 0 (and -1 for a descriptor where lines are explained) or -errno with a sentence.
 */
int client_make_held(const struct client *client, const char *name, int *fd, struct why *why);

/* Makes, or removes, the directory of a workload. */
int client_make(const struct client *client, const char *path, struct why *why);
int client_remove(const struct client *client, const char *path, struct why *why);

/* --- GPUs ------------------------------------------------------------------------------------ */

/* Appends the path of a GPU's directory, by its index, UUID, bus id or NODE/INDEX. Nothing is looked at. */
void gpu_path(struct text *out, const char *gpu);

/* The index of the GPU that is called so. -ENODEV with a sentence. */
int client_gpu_index(const struct client *client, const char *gpu, struct why *why);

/* gpu_path of a GPU that is there, as far as there is a mount. -ENODEV with a sentence. */
int client_gpu_path(const struct client *client, struct text *out, const char *gpu,
                    struct why *why);

/* --- explaining ------------------------------------------------------------------------------ */

/* Appends a word as a shell takes it, quoted only where it must be. */
void shell_quote(struct text *out, const char *word);

/* Prints one line, where lines are explained. */
void client_say(const struct client *client, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
