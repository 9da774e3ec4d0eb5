/*
 * Counters file: a list of counters that follows its file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_COUNTERS_FILE_H
#define EXPORTER_COUNTERS_FILE_H

#include <stdint.h>

#include "exporter/counters.h"

struct counters_file;

/* Reads `path`, or, when that is NULL, the built-in counters/`builtin`. NULL with a sentence. */
struct counters_file *counters_file_open(const char *path, const char *builtin, struct why *why);
void counters_file_close(struct counters_file *file);

/*
 * Reads it again when it is another (looks at most once a second; `now_ns` is real time). 1 when the list is
 * new, 0 when not, -errno with a sentence when what is there cannot be used: then the list stays as it was.
 */
int counters_file_reload(struct counters_file *file, int64_t now_ns, struct why *why);

const struct counter_list *counters_file_list(const struct counters_file *file);

#endif
