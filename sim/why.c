/*
 * Why: the sentence that goes with a refusal. See why.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int why_set(struct why *why, int err, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    if (!why)
        return -err;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL; /* out of memory: the errno alone must do */
    va_end(ap);
    free(why->text);
    why->text = text;
    return -err;
}

const char *why_text(const struct why *why)
{
    return why && why->text ? why->text : "";
}

void why_release(struct why *why)
{
    free(why->text);
    why->text = NULL;
}
