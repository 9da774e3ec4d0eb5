/*
 * Errors: the sentence of the last refusal. See errors.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/errors.h"

#include <stdlib.h>
#include <string.h>

#include "sim/text.h"

enum { KEPT = 1024 };

struct entry {
    enum errors_area area;
    uint64_t entity, age;
    char *sentence; /* owned */
};

struct errors {
    struct entry entries[KEPT];
    int count;
    uint64_t age;
};

struct errors *errors_new(void)
{
    return calloc(1, sizeof(struct errors));
}

void errors_free(struct errors *e)
{
    for (int i = 0; e && i < e->count; i++)
        free(e->entries[i].sentence);
    free(e);
}

static struct entry *entry_find(const struct errors *e, enum errors_area area, uint64_t entity)
{
    for (int i = 0; i < e->count; i++)
        if (e->entries[i].area == area && e->entries[i].entity == entity)
            return (struct entry *)&e->entries[i];
    return NULL;
}

static struct entry *entry_oldest(struct errors *e)
{
    struct entry *oldest = &e->entries[0];

    for (int i = 1; i < e->count; i++)
        if (e->entries[i].age < oldest->age)
            oldest = &e->entries[i];
    return oldest;
}

void errors_set(struct errors *e, enum errors_area area, uint64_t entity, const char *sentence)
{
    struct entry *entry = entry_find(e, area, entity);
    char *copy = strdup(sentence);

    if (!copy)
        return;
    if (!entry)
        entry = e->count < KEPT ? &e->entries[e->count++] : entry_oldest(e);
    free(entry->sentence);
    *entry = (struct entry){ area, entity, ++e->age, copy };
}

int errors_show(const struct errors *e, enum errors_area area, uint64_t entity, struct text *out)
{
    const struct entry *entry = entry_find(e, area, entity);

    text_addf(out, "%s\n", entry ? entry->sentence : "none");
    return 0;
}
