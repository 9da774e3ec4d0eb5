/*
 * Workload: what terminates it. See workload.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "sim/workload.h"

static const struct {
    const char *name;
    enum unit unit;
} own_limits[] = {
    [LIMIT_TIME - METRIC_COUNT] = { "time", UNIT_NANOSECOND },
    [LIMIT_ENERGY - METRIC_COUNT] = { "energy", UNIT_MILLIJOULE },
    [LIMIT_MEMORY - METRIC_COUNT] = { "memory", UNIT_BYTES },
};

const char *limit_name(int target)
{
    return target < METRIC_COUNT ? metric_infos[target].name
                                 : own_limits[target - METRIC_COUNT].name;
}

enum unit limit_unit(int target)
{
    return target < METRIC_COUNT ? metric_infos[target].unit
                                 : own_limits[target - METRIC_COUNT].unit;
}

/* The own ones first: they are what a person means. */
static int limit_order(int i)
{
    int own = LIMIT_TARGETS - METRIC_COUNT;

    return i < own ? METRIC_COUNT + i : i - own;
}

static const char *limit_name_at(const void *unused, int i)
{
    (void)unused;
    return i < LIMIT_TARGETS ? limit_name(limit_order(i)) : NULL;
}

static int limit_find(const char *name)
{
    for (int i = 0; i < LIMIT_TARGETS; i++)
        if (!strcmp(limit_name(i), name))
            return i;
    return -1;
}

/* A metric is written as its file shows it; a time or an energy says its unit. */
static enum unit_bare limit_is_bare(int target)
{
    return target < METRIC_COUNT || target == LIMIT_MEMORY ? UNIT_BARE_SHOWN : UNIT_BARE_REFUSED;
}

static int read_limit(struct binder *b, const struct ynode *key, const struct ynode *value,
                      void *item)
{
    struct limit_spec *limit = item;
    struct bind_field f = { .type = BIND_QUANTITY, .low = 0, .high = 0x1p62 };
    int target = limit_find(key->text), r;
    size_t path;

    if (target < 0)
        return bind_unknown_key(b, key, "limits", limit_name_at, NULL);
    path = bind_enter(b, key->text);
    if (ynode_is_null(value))
        return bind_refuse(b, EINVAL, key, "has no value");
    f.unit = limit_unit(target);
    if (f.unit == UNIT_PERCENT || f.unit == UNIT_RATIO)
        f.high = (double)unit_parts(f.unit) * (f.unit == UNIT_PERCENT ? 100 : 1);
    f.flags = limit_is_bare(target) == UNIT_BARE_SHOWN ? BIND_BARE : 0;
    limit->target = target;
    r = bind_read_value(b, &f, value, &limit->value);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_limits(struct binder *b, const struct ynode *node, void *member)
{
    if (node->kind == YNODE_MAP && node->count > WORKLOAD_LIMITS_MAX)
        return bind_refuse(b, ERANGE, node, "has %zu limits; allowed: at most %d", node->count,
                           WORKLOAD_LIMITS_MAX);
    return bind_read_entries(b, node, "a mapping like {memory: 30GiB, time: 1h}",
                             sizeof(struct limit_spec), read_limit, member);
}

void workload_limits_print(struct text *out, const struct bind_list *list)
{
    const struct limit_spec *limits = list->items;

    text_add(out, "{");
    for (size_t i = 0; i < list->count; i++) {
        text_addf(out, "%s%s: ", i ? ", " : "", limit_name(limits[i].target));
        unit_print(out, limit_unit(limits[i].target), limits[i].value);
    }
    text_add(out, "}");
}

static void print_limits(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    workload_limits_print(out, member);
    text_add(out, "\n");
}

const struct bind_custom workload_limits_custom = {
    read_limits,
    print_limits,
    "\"$ref\": \"#/$defs/limits\"",
};

void workload_limits_schema(struct text *out)
{
    text_add(out, "\"type\": \"object\", \"additionalProperties\": { \"type\": [\"number\", "
                  "\"string\"] }, \"properties\": {");
    for (int i = 0; limit_order(i) >= METRIC_COUNT; i++) {
        text_addf(out, "%s\n      \"%s\": { ", i ? "," : "", limit_name(limit_order(i)));
        unit_schema(out, limit_unit(limit_order(i)), limit_is_bare(limit_order(i)));
        text_add(out, " }");
    }
    text_add(out, "\n    }, \"propertyNames\": { \"enum\": [");
    for (int i = 0; i < LIMIT_TARGETS; i++)
        text_addf(out, "%s\n      \"%s\"", i ? "," : "", limit_name(limit_order(i)));
    text_add(out, "\n    ] }");
}
