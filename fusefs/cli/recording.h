/*
 * Recording: values of GPUs over time, as a file.
 *
 * What `record` writes is CSV with a heading, or a JSON object in each line. Read are these and what
 * `nvidia-smi --query-gpu=… --format=csv` prints on a real machine. A file is read as a whole before anything
 * is done with it; what is wrong is said with its line and column. Knows nothing of a mount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_RECORDING_H
#define FUSEFS_CLI_RECORDING_H

#include <stdio.h>

#include "fusefs/reader.h"
#include "sim/text.h"
#include "sim/why.h"
#include "sim/workload.h"

/* --- writing --------------------------------------------------------------------------------- */

enum recording_format { RECORDING_CSV, RECORDING_JSON };

struct recording_columns {
    int metrics[METRIC_COUNT];
    int count;
};

/* Reads "a,b,c" or "all". -EINVAL with a sentence. */
int recording_columns_parse(struct recording_columns *columns, const char *list, struct why *why);

/* Appends the heading, where the format has one. */
void recording_heading(struct text *out, enum recording_format format,
                       const struct recording_columns *columns);

/*
 * Appends the line of one GPU. What it does not have is empty (CSV) or left out (JSON); a sensor that fails is
 * NaN, or null; a GPU that is lost has no values.
 */
void recording_line(struct text *out, enum recording_format format,
                    const struct recording_columns *columns, const struct reader_node *node,
                    int index, const struct reader_gpu *gpu);

/* --- reading --------------------------------------------------------------------------------- */

enum recorded_state {
    RECORDED_VALUE,
    RECORDED_NONE,   /* not there, or not known */
    RECORDED_FAILED, /* the sensor failed */
};

struct recorded {
    int64_t value; /* in the parts of the metric's unit */
    int32_t column;
    int16_t metric;
    int16_t state;
};

/* What one line says of one GPU; what did not change since the line before is left out. */
struct recorded_line {
    int64_t time_ns; /* since the first line */
    int32_t number;  /* in the file, from 1 */
    int32_t gpu;     /* in `gpus` */
    size_t first, count;
};

struct recording {
    char *source;             /* what sentences call it; owned */
    struct device_name *gpus; /* as the file calls them, in the order in which they come */
    int gpu_count;
    struct recorded_line *lines; /* by time */
    size_t line_count, line_room;
    struct recorded *values;
    size_t value_count, value_room;
    struct text passed_over; /* columns that say nothing that can be dictated */
};

struct recording_options {
    const char *fields; /* of a nvidia-smi log without heading: the names behind --query-gpu= */
    bool single;        /* all lines are of one GPU: no column has to say which */
};

/*
 * Reads all of `file`. On success the caller releases it; on failure it is empty and `why` says
 * "source:line:column: …". -EINVAL, -ERANGE, -ENOMEM, -errno of reading.
 */
int recording_read(struct recording *r, FILE *file, const char *source,
                   const struct recording_options *options, struct why *why);
void recording_release(struct recording *r);

/* --- for its parts --------------------------------------------------------------------------- */

/* What a column of a table is about. */
struct recording_column {
    enum { COLUMN_OTHER, COLUMN_TIME, COLUMN_TIMESTAMP, COLUMN_GPU, COLUMN_METRIC } kind;
    int metric;
    const char *unit; /* of a number without one; NULL: as the metric's file shows it */
};

/* The column of that name in a nvidia-smi log. */
struct recording_column smi_column(const char *name);

/* "2024/01/31 12:34:56.789" as ns of some clock. -EINVAL. */
int smi_timestamp(const char *text, int64_t *ns);

/* Whether nvidia-smi says by this that there is no value. */
bool smi_is_nothing(const char *text);

/* One member of a flat JSON object. */
struct json_member {
    const char *key, *text; /* NUL-terminated in the line */
    int column;             /* of the value, from 1 */
    bool null;
};

/*
 * Takes a line of JSON apart, in place: calls `take` for each member. -EINVAL with a sentence and its column
 * in *column, or what `take` returned.
 */
int json_line(char *line, int (*take)(void *whom, const struct json_member *member), void *whom,
              int *column, struct why *why);

#endif
