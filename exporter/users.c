/*
 * Users: who may ask. See users.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/users.h"

#include <crypt.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct user {
    char *name, *hash;
    char *known; /* a password that was right; NULL: none yet */
    struct user *next;
};

struct users {
    pthread_mutex_t lock; /* of `known` */
    struct user *first;
};

/* For a name that nobody has: it must take as long as a wrong password. */
static const char nobody[] = "$2y$10$nDQuLNnDrD1wZ9byo.viOeOJbPeXYEsr/4bdQUWLaXQYPG6wefAXS";

struct users *users_new(void)
{
    struct users *u = calloc(1, sizeof(*u));

    if (u)
        pthread_mutex_init(&u->lock, NULL);
    return u;
}

static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void users_free(struct users *u)
{
    if (!u)
        return;
    while (u->first) {
        struct user *user = u->first;

        u->first = user->next;
        forget(user->known);
        free(user->name);
        free(user->hash);
        free(user);
    }
    pthread_mutex_destroy(&u->lock);
    free(u);
}

bool users_is_hash(const char *hash)
{
    return strlen(hash) == 60 && !strncmp(hash, "$2", 2) && strchr("aby", hash[2]) &&
           hash[3] == '$' && hash[6] == '$';
}

int users_add(struct users *u, const char *name, const char *hash)
{
    struct user *user = calloc(1, sizeof(*user));

    if (!user)
        return -ENOMEM;
    user->next = u->first;
    u->first = user;
    user->name = strdup(name);
    user->hash = strdup(hash);
    return user->name && user->hash ? 0 : -ENOMEM;
}

/* Takes the same time wherever they differ. */
static bool is_same(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char differ = n != m;

    for (size_t i = 0; i < n && i < m; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return !differ;
}

static bool is_hash_of(const char *hash, const char *password)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    const char *made = data ? crypt_r(password, hash, data) : NULL;
    bool same = made && is_same(hash, made);

    free(data);
    return same;
}

static bool is_known(struct users *u, const struct user *user, const char *password)
{
    bool known;

    pthread_mutex_lock(&u->lock);
    known = user->known && is_same(user->known, password);
    pthread_mutex_unlock(&u->lock);
    return known;
}

static void remember(struct users *u, struct user *user, const char *password)
{
    char *copy = strdup(password);

    pthread_mutex_lock(&u->lock);
    forget(user->known);
    user->known = copy;
    pthread_mutex_unlock(&u->lock);
}

bool users_check(struct users *u, const char *name, const char *password)
{
    struct user *user = u->first;

    while (user && strcmp(user->name, name))
        user = user->next;
    if (!user) {
        is_hash_of(nobody, password);
        return false;
    }
    if (is_known(u, user, password))
        return true;
    if (!is_hash_of(user->hash, password))
        return false;
    remember(u, user, password);
    return true;
}
