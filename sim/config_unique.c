/*
 * Config: what must not come twice. See config_unique.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_unique.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- claims ---------------------------------------------------------------------------------- */

/* A text, and the position of the one that has it. */
struct claim {
    char text[NODE_NAME]; /* the longest of them */
    int index;
};

static int claim_order(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order ? order : x->index - y->index;
}

/* The first claim to what the one before it has already, or NULL. Sorts them. */
static const struct claim *claimed_twice(struct claim *claims, size_t count)
{
    qsort(claims, count, sizeof(*claims), claim_order);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(claims[i - 1].text, claims[i].text))
            return &claims[i];
    return NULL;
}

/* --- GPUs ------------------------------------------------------------------------------------ */

/* What must not be the same on two GPUs, as one text each. */
typedef void entry_text(const struct gpu_entry *e, char *text, size_t size);

static void text_uuid(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%s", e->uuid);
}

static void text_bus_id(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%04x:%02x:%02x.%x", e->domain, e->bus, e->device, e->function);
}

static void text_minor(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%d", e->minor);
}

static void text_serial(const struct gpu_entry *e, char *text, size_t size)
{
    snprintf(text, size, "%s", e->serial);
}

static int check_gpus(struct resolver *r, const char *key, entry_text *text)
{
    struct claim *claims = calloc((size_t)r->count + 1, sizeof(*claims));
    const struct claim *twice;
    int result = 0;

    if (!claims)
        return refuse_out_of_memory(r);
    for (int i = 0; i < r->count; i++) {
        claims[i].index = i;
        text(&r->entries[i], claims[i].text, sizeof(claims[i].text));
    }
    twice = claimed_twice(claims, (size_t)r->count);
    if (twice) {
        /* Blame the one that was written, not one that was dealt out. */
        bool written = bind_is_set(&gpu_table, &r->entries[twice->index].spec, key);
        int blamed = written ? twice->index : twice[-1].index;
        int other = written ? twice[-1].index : twice->index;

        result = refuse_gpu(r, EINVAL, &r->entries[blamed], key,
                            "'%s' is a duplicate: GPU %d has it already", twice->text, other);
    }
    free(claims);
    return result;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* By name, each by its first GPU: one that comes twice has GPUs of others in between. */
static int check_nodes(struct resolver *r)
{
    struct claim *claims = calloc((size_t)r->count + 1, sizeof(*claims));
    const struct claim *twice;
    size_t count = 0;
    int result = 0;

    if (!claims)
        return refuse_out_of_memory(r);
    for (int i = 0; i < r->count; i++)
        if (*r->entries[i].node && !r->entries[i].node_index) {
            claims[count].index = i;
            memcpy(claims[count++].text, r->entries[i].node, sizeof(r->entries[i].node));
        }
    twice = claimed_twice(claims, count);
    if (twice)
        result = refuse_gpu(r, EINVAL, &r->entries[twice->index], "node",
                            "'%s' is a duplicate: GPU %d is on it, and the GPUs of a node follow "
                            "each other",
                            twice->text, twice[-1].index);
    free(claims);
    return result;
}

/* --- workloads ------------------------------------------------------------------------------- */

static int check_workloads(struct resolver *r)
{
    const struct workload_spec *all = r->cfg->workloads.items;
    size_t count = r->cfg->workloads.count;
    struct claim *claims = calloc(count + 1, sizeof(*claims));
    const struct claim *twice;
    int result = 0;

    if (!claims)
        return refuse_out_of_memory(r);
    for (size_t i = 0; i < count; i++) {
        claims[i].index = (int)i;
        config_workload_name(&all[i], i, claims[i].text);
    }
    twice = claimed_twice(claims, count);
    if (twice)
        result = refuse_item(r, EINVAL, "workloads", (size_t)twice->index, &all[twice->index].head,
                             "name", NO_ITEM,
                             "'%s' is a duplicate: workloads[%d] is called so already", twice->text,
                             twice[-1].index);
    free(claims);
    return result;
}

/* --- all ------------------------------------------------------------------------------------- */

int check_unique(struct resolver *r)
{
    static const struct {
        const char *key;
        entry_text *text;
    } unique[] = {
        { "uuid", text_uuid },
        { "bus_id", text_bus_id },
        { "minor", text_minor },
        { "serial", text_serial },
    };
    int result = check_nodes(r);

    for (size_t i = 0; i < sizeof(unique) / sizeof(unique[0]) && result == 0; i++)
        result = check_gpus(r, unique[i].key, unique[i].text);
    return result < 0 ? result : check_workloads(r);
}
