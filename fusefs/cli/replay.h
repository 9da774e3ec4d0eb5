/*
 * Replay: a recording as it happens again on a mount.
 *
 * Everything is checked before anything is written: that the GPUs are there, that each has the metrics and
 * that the values fit. Then each value is dictated at its time, through the control file of its metric.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_REPLAY_H
#define FUSEFS_CLI_REPLAY_H

#include "fusefs/cli/changes.h"
#include "fusefs/cli/drive.h"
#include "fusefs/cli/recording.h"

struct replay {
    const struct recording *recording;
    const struct client *client;
    struct changes changes;
    int *targets;            /* for each GPU of the recording one here; owned */
    struct reader_gpu *gpus; /* what these are like; owned */
    bool clamp;              /* what does not fit is brought into range */
    double speed;            /* recorded seconds per simulated second */
};

/*
 * Pairs the GPUs: `map` holds "FROM=TO" texts, and the others go to the GPU of the same name. Then checks
 * every value. -errno with a sentence that names line and column.
 */
int replay_prepare(struct replay *replay, const char *const *map, int map_count, struct why *why);
void replay_release(struct replay *replay);

/* Dictates what line `i` says. */
int replay_line(struct replay *replay, size_t i, struct why *why);

/* Appends the shell lines that do the same. */
void replay_line_explain(const struct replay *replay, size_t i, struct text *out);

/* When line `i` is due, in simulated time since the beginning; for i = the number of lines: the end. */
int64_t replay_time(const struct replay *replay, size_t i);

#endif
