/*
 * Errors: the sentence of the last refusal. See errors.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/errors.h"

#include <stddef.h>
#include <stdio.h>

#include "sim/text.h"

static const struct errors_entry *entry_find(const struct errors *e, enum errors_area area,
                                             uint64_t entity)
{
    const struct errors_entry *at = e->entries, *end = at + atomic_load(&e->used);

    for (; at < end; at++)
        if (atomic_load(&at->age) && at->area == area && at->entity == entity)
            return at;
    return NULL;
}

/* What a worker left half written when it died is older than all. */
static struct errors_entry *entry_oldest(struct errors *e)
{
    struct errors_entry *oldest = e->entries;

    for (int i = 1; i < ERRORS_KEPT; i++)
        if (atomic_load(&e->entries[i].age) < atomic_load(&oldest->age))
            oldest = &e->entries[i];
    return oldest;
}

static struct errors_entry *entry_new(struct errors *e)
{
    uint32_t used = atomic_load(&e->used);

    if (used == ERRORS_KEPT)
        return entry_oldest(e);
    atomic_store(&e->used, used + 1);
    return &e->entries[used];
}

void errors_set(struct errors *e, enum errors_area area, uint64_t entity, const char *sentence)
{
    struct errors_entry *entry = (struct errors_entry *)entry_find(e, area, entity);

    if (!entry)
        entry = entry_new(e);
    atomic_store(&entry->age, 0);
    entry->entity = entity;
    entry->area = area;
    snprintf(entry->sentence, sizeof(entry->sentence), "%s", sentence);
    atomic_store(&entry->age, atomic_fetch_add(&e->age, 1) + 1);
}

int errors_show(const struct errors *e, enum errors_area area, uint64_t entity, struct text *out)
{
    const struct errors_entry *entry = entry_find(e, area, entity);

    text_addf(out, "%s\n", entry ? entry->sentence : "none");
    return 0;
}
