/*
 * Said: what was last said about something. See said.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/common/said.h"

#include <errno.h>
#include <string.h>

void log_lines(enum log_level level, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        log_line(level, "%.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void say(struct said *about, enum log_level level, const char *text)
{
    if (!strcmp(text_str(&about->text), text))
        return;
    text_cut(&about->text, 0);
    text_add(&about->text, text);
    log_lines(level, text);
}

int say_failure(struct said *about, int r, const struct why *why)
{
    if (r < 0 && r != -EINTR)
        say(about, LOG_WARN, why_text(why));
    return r;
}

void say_well(struct said *about, const char *sentence)
{
    if (about->text.length)
        log_line(LOG_INFO, "%s", sentence);
    text_cut(&about->text, 0);
}

void said_release(struct said *about)
{
    text_release(&about->text);
}
