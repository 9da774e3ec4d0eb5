/*
 * Diff: two texts compared line by line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_DIFF_H
#define FUSEFS_CLI_DIFF_H

struct text;

/*
 * Appends what leads from `before` to `after` as a unified diff with three lines around, nothing when
 * they are the same. 0 or -ENOMEM.
 */
int diff_texts(struct text *out, const char *before_name, const char *before,
               const char *after_name, const char *after);

#endif
