/*
 * Drive: the clock of a mount in a command's hands, and what else commands do to a mount as a whole.
 *
 * While it is driven the clock is paused and stepped, at once or at a pace; in the end it is what it was before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_DRIVE_H
#define FUSEFS_CLI_DRIVE_H

#include "fusefs/cli/client.h"
#include "sim/bind.h"

struct drive {
    const struct client *client;
    int clock; /* control/clock, kept open for many steps; -1: not yet */
    /* At a pace: simulated time that is due up to a real one, 0 when there was none yet. */
    double due_ns;
    int64_t paced_ns;
    /* As it was found. */
    bool running;
    double speed;
    int64_t step_ns;
};

/* Takes hold of the clock and changes nothing. -errno with a sentence. */
int drive_begin(struct drive *drive, const struct client *client, struct why *why);

/* Stands still from now on; has another speed, and stands or runs as before. */
int drive_pause(struct drive *drive, struct why *why);
int drive_speed(struct drive *drive, double speed, struct why *why);

/* Lets so much simulated time pass at once: whole steps until it has. */
int drive_step(struct drive *drive, int64_t ns, struct why *why);

/*
 * The same at the pace of a clock with that speed: what is due of it by now, or nothing after a moment's wait. Unlike
 * a clock that runs it waits for who drives: a machine that is busy makes time late, and nobody misses any of it.
 */
int drive_pace(struct drive *drive, double speed, int64_t ns, struct why *why);

/* Lets go; with `restore` the clock is what it was. */
int drive_end(struct drive *drive, bool restore, struct why *why);

/*
 * Whether the daemon still answers. Pages of the snapshot stay readable in the kernel's cache when it is gone:
 * who waits for a new one asks now and then. 0 or -errno with a sentence.
 */
int drive_alive(const struct client *client, struct why *why);

/* --- files ----------------------------------------------------------------------------------- */

/* Appends a file as it is now, without its last newline. Never waits, not even for a stream. 0 or -errno. */
int drive_peek(const struct client *client, struct text *out, const char *path);

/* Whether there is something of that name. */
bool drive_exists(const struct client *client, const char *path);

/* Whether a list of names (struct device_name) is "all" or "any", which stand for every GPU. */
bool drive_every_gpu(const struct bind_list *names);

/*
 * The indices of the GPUs in such a list. Their number, or -errno with a sentence; the caller frees *gpus.
 */
int drive_find_gpus(const struct client *client, const struct bind_list *names, int **gpus,
                    struct why *why);

/* Appends the shell line that writes `text` to a file below the current directory, in one piece. */
void shell_put(struct text *out, const char *path, const char *text);

#endif
