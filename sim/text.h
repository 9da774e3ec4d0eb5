/*
 * Text: a string that grows.
 *
 * Running out of memory is remembered in `failed` and makes every later call do nothing, so that a
 * caller appends freely and checks once at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>

struct text {
    char *data; /* owned, NUL-terminated; NULL while empty */
    size_t length;
    size_t room;
    bool failed;
};

/* clang-format off */
#define TEXT_INIT { 0 }
/* clang-format on */

void text_add(struct text *t, const char *s);
void text_addn(struct text *t, const char *s, size_t n);
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vaddf(struct text *t, const char *fmt, va_list ap);

/* Cuts the text back to `length` bytes, as measured before something was added. */
void text_cut(struct text *t, size_t length);

/* The text so far, never NULL. Valid until the next change. */
const char *text_str(const struct text *t);

void text_release(struct text *t);

#endif
