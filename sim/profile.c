/*
 * Profile: a named behaviour, as data. See profile.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/library.h"
#include "sim/suggest.h"

const char *const profile_cycle[] = { "static",    "stable", "spike", "wave",
                                      "degrading", "faulty", "chaos", NULL };

static int unknown_metric(struct binder *b, const struct ynode *key, const char *problem)
{
    struct text hint = TEXT_INIT;
    int r;

    suggest_add(&hint, key->text, metric_name_at, "pinned");
    r = bind_refuse(b, EINVAL, key, "%s %s%s", ynode_describe(b->arena, key), problem,
                    text_str(&hint));
    text_release(&hint);
    return r;
}

static int read_pin(struct binder *b, const struct ynode *key, const struct ynode *value, void *pin)
{
    int id = metric_find(key->text), r;
    size_t path;

    if (id < 0)
        return unknown_metric(b, key, "is not a metric");
    if (!(metric_infos[id].flags & METRIC_FLAG_PIN))
        return unknown_metric(b, key, "follows from other metrics and cannot be set");
    path = bind_enter(b, key->text);
    r = signal_read(b, value, metric_infos[id].unit, id, pin);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_pins(struct binder *b, const struct ynode *node, void *member)
{
    return bind_read_entries(b, node, "a mapping of metrics to values", sizeof(struct signal_spec),
                             read_pin, member);
}

static void print_pins(struct text *out, const void *member, int indent)
{
    const struct bind_list *list = member;
    const struct signal_spec *pins = list->items;

    text_add(out, list->count ? "\n" : " {}\n");
    for (size_t i = 0; i < list->count; i++) {
        const struct metric_info *info = &metric_infos[pins[i].signal.target];

        text_addf(out, "%*s%s: ", indent, "", info->name);
        signal_print(out, info->unit, &pins[i]);
        text_add(out, "\n");
    }
}

const struct bind_custom pins_custom = { read_pins, print_pins, "\"$ref\": \"#/$defs/metrics\"" };

void pins_schema(struct text *out)
{
    const char *name;

    text_add(out, "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {");
    for (int i = 0; (name = metric_name_at("pinned", i)); i++)
        text_addf(out, "%s\n      \"%s\": { \"$ref\": \"#/$defs/signal\" }", i ? "," : "", name);
    text_add(out, "\n    }");
}

/* A name must survive GPU_PROFILES=0:name,other and not stand in the way of `cycle`. */
static bool name_ok(const char *name)
{
    if (!strcmp(name, "cycle"))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-_", *name))
            return false;
    return true;
}

static const struct bind_shape name_shape = { name_ok,
                                              "letters, digits, '-' and '_', and not cycle",
                                              "^[A-Za-z0-9_-]+$" };

static const struct bind_field profile_fields[] = {
    BIND_ROW_SHAPED("name", profile_spec, name, BIND_REQUIRED, &name_shape,
                    "Name in configurations."),
    BIND_ROW_TEXT("description", profile_spec, description, 0, "What it is like."),
    BIND_ROW_CUSTOM("metrics", profile_spec, pins, &pins_custom, "Which metrics it pins, and how."),
    { 0 },
};
static const struct bind_table profile_table = { .what = "a profile", .fields = profile_fields };

static struct profile_spec *set_slot(struct profile_set *set, const char *name)
{
    struct profile_spec *profiles;
    int i = profile_find(set, name);

    if (i >= 0)
        return &set->profiles[i];
    profiles = realloc(set->profiles, (size_t)(set->count + 1) * sizeof(*profiles));
    if (!profiles)
        return NULL;
    set->profiles = profiles;
    return &profiles[set->count++];
}

static int add_profile(void *into, struct binder *b, const struct ynode *root)
{
    struct profile_spec profile = { 0 }, *slot;
    int r = bind_read(b, &profile_table, root, &profile);

    if (r < 0)
        return r;
    slot = set_slot(into, profile.name);
    if (!slot)
        return why_set(b->why, ENOMEM, "out of memory");
    *slot = profile;
    return 0;
}

int profile_set_load(struct profile_set *set, const char *directory, struct why *why)
{
    int r;

    *set = (struct profile_set){ 0 };
    r = library_load("profiles", directory, &set->arena, add_profile, set, why);
    if (r < 0)
        profile_set_release(set);
    return r;
}

void profile_set_release(struct profile_set *set)
{
    free(set->profiles);
    arena_release(&set->arena);
    *set = (struct profile_set){ 0 };
}

int profile_find(const struct profile_set *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->profiles[i].name, name))
            return i;
    return -1;
}

const char *profile_name_at(const void *set, int i)
{
    const struct profile_set *s = set;

    return i < s->count ? s->profiles[i].name : NULL;
}
