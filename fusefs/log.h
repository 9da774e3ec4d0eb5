/*
 * Log: plain lines on standard error, for people and for container logs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_LOG_H
#define FUSEFS_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines below this level are left out. Set once at start. */
extern enum log_level log_threshold;

/* What a line begins with: fakegpufs unless set at start. */
extern const char *log_program;

/* The level of that name (error, warn, info, debug), or -1. */
int log_level_find(const char *name);

/* One line: "fakegpufs: warning: …". Written with one write(2), so lines of two processes do not mix. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
