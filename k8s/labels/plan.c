/*
 * Plan: what has to be changed so that a node has the labels that it is to have. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static void plan_wanted(struct plan *plan, const struct label *wanted,
                        const struct label_list *present, const struct label_list *ours)
{
    const char *was = labels_find(present, wanted->key);
    bool there = is_same(was, wanted->value);

    if (!there)
        plan->items[plan->count++] = (struct change){ wanted->key, wanted->value, was };
    if (!there || is_same(was, labels_find(ours, wanted->key)))
        labels_add(&plan->ours, wanted->key, wanted->value);
}

static void plan_ours(struct plan *plan, const struct label *own, const struct label_list *wanted,
                      const struct label_list *present)
{
    const char *was = labels_find(present, own->key);

    if (!labels_find(wanted, own->key) && is_same(was, own->value))
        plan->items[plan->count++] = (struct change){ own->key, NULL, was };
}

int plan_make(struct plan *plan, const struct label_list *wanted, const struct label_list *present,
              const struct label_list *ours, struct arena *arena)
{
    size_t most = wanted->count + ours->count;

    *plan = (struct plan){ .items = arena_alloc(arena, (most + 1) * sizeof(struct change)) };
    if (!plan->items || labels_new(&plan->ours, wanted->count, arena) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < wanted->count; i++)
        plan_wanted(plan, &wanted->items[i], present, ours);
    for (size_t i = 0; i < ours->count; i++)
        plan_ours(plan, &ours->items[i], wanted, present);
    return 0;
}

void change_describe(struct text *out, const struct change *c)
{
    if (!c->value)
        text_addf(out, "remove %s=%s", c->key, c->was);
    else if (c->was)
        text_addf(out, "set %s=%s (was %s)", c->key, c->value, c->was);
    else
        text_addf(out, "set %s=%s", c->key, c->value);
}
