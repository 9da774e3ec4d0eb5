/*
 * Suggest: "did you mean …" for a name that is not one of the allowed ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SUGGEST_H
#define SIM_SUGGEST_H

struct text;

/* Gives the i-th allowed name, or NULL behind the last. */
typedef const char *suggest_names(const void *names, int i);

/* The allowed name nearest to `found`, or NULL when none is near enough to be a slip of the keys. */
const char *suggest_nearest(const char *found, suggest_names *name_at, const void *names);

/* Appends "; did you mean 'x'? allowed: a, b, c" (either part only where it helps, a long list cut). */
void suggest_add(struct text *out, const char *found, suggest_names *name_at, const void *names);

/* name_at for a NULL-terminated array of strings. */
const char *suggest_from_strings(const void *names, int i);

#endif
