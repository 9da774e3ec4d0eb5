/*
 * Users: who may ask, by name and bcrypt hash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_USERS_H
#define EXPORTER_USERS_H

#include <stdbool.h>

struct users;

/* NULL when out of memory. */
struct users *users_new(void);
void users_free(struct users *users);

/* Whether it is a hash that users_check can work with: $2y$, $2b$ or $2a$. */
bool users_is_hash(const char *hash);

/* Adds one. 0 or -ENOMEM. */
int users_add(struct users *users, const char *name, const char *hash);

/*
 * Whether name and password are right. A hash takes its time, on purpose; a password that was right is
 * remembered, so that a scraper pays once. From any thread.
 */
bool users_check(struct users *users, const char *name, const char *password);

#endif
