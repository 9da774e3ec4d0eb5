/*
 * Log: plain lines on standard error. See log.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/log.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "sim/text.h"

enum log_level log_threshold = LOG_INFO;
const char *log_program = "fakegpufs";

static const char *const names[] = { "error", "warn", "info", "debug" };
static const char *const prefixes[] = { "error: ", "warning: ", "", "debug: " };

int log_level_find(const char *name)
{
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    struct text line = TEXT_INIT;
    va_list ap;

    if (level > log_threshold)
        return;
    text_addf(&line, "%s: %s", log_program, prefixes[level]);
    va_start(ap, fmt);
    text_vaddf(&line, fmt, ap);
    va_end(ap);
    text_add(&line, "\n");
    if (write(STDERR_FILENO, text_str(&line), line.length) < 0) {
        /* there is nobody left to tell */
    }
    text_release(&line);
}
