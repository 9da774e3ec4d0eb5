/*
 * Scenario, `set`: which control files of a GPU a step may write, and what to them. See scenario_settings.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/scenario_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/metric.h"
#include "sim/scenario.h"
#include "sim/suggest.h"

/* Those that are no metric; `fault` and `profile` are keys of their own. */
static const char *const settings[] = {
    "power_limit_mw",
    "clock_lock",
    "memory_clock_lock",
    "application_clocks",
    "persistence_mode",
    "compute_mode",
    "ecc_mode",
    "mig_mode",
    "accounting_mode",
    "clock_offsets",
    "ecc_errors",
    "nvlink_counters",
    "drain",
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static const char *setting_name_at(const void *unused, int i)
{
    (void)unused;
    return i < SETTINGS ? settings[i] : metric_name_at("", i - SETTINGS);
}

static bool is_setting(const char *name)
{
    for (int i = 0; setting_name_at(NULL, i); i++)
        if (!strcmp(setting_name_at(NULL, i), name))
            return true;
    return false;
}

/* What a metric is pinned to can be judged here; what a setting takes depends on the GPU. */
static int check_setting(struct binder *b, const struct ynode *key, const struct ynode *value)
{
    int metric = metric_find(key->text);
    struct why inner = { 0 };
    int64_t stored;
    int r = 0;

    if (metric < 0 || !(metric_infos[metric].flags & METRIC_FLAG_PIN) ||
        !strcmp(value->text, "auto"))
        return 0;
    r = unit_parse(metric_infos[metric].unit, value->text, UNIT_BARE_SHOWN, &stored, &inner);
    if (r < 0)
        bind_refuse(b, -r, value, "%s", why_text(&inner));
    why_release(&inner);
    return r;
}

static int read_setting(struct binder *b, const struct ynode *key, const struct ynode *value,
                        void *item)
{
    struct scenario_setting *setting = item;
    const struct bind_field text = { .type = BIND_TEXT, .size = sizeof(setting->value) };
    struct text hint = TEXT_INIT;
    size_t path;
    int r;

    if (!is_setting(key->text)) {
        suggest_add(&hint, key->text, setting_name_at, NULL);
        r = bind_refuse(b, EINVAL, key, "unknown control file %s%s", ynode_describe(b->arena, key),
                        text_str(&hint));
        text_release(&hint);
        return r;
    }
    path = bind_enter(b, key->text);
    snprintf(setting->file, sizeof(setting->file), "%s", key->text);
    r = bind_read_value(b, &text, value, setting->value);
    if (r == 0)
        r = check_setting(b, key, value);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_settings(struct binder *b, const struct ynode *node, void *member)
{
    return bind_read_entries(b, node, "a mapping like {utilization_gpu_percent: 80}",
                             sizeof(struct scenario_setting), read_setting, member);
}

static void print_settings(struct text *out, const void *member, int indent)
{
    const struct bind_list *list = member;
    const struct scenario_setting *items = list->items;

    text_add(out, "\n");
    for (size_t i = 0; i < list->count; i++) {
        text_addf(out, "%*s%s: ", indent, "", items[i].file);
        bind_print_text(out, items[i].value);
        text_add(out, "\n");
    }
}

const struct bind_custom scenario_settings_custom = {
    read_settings,
    print_settings,
    "\"$ref\": \"#/$defs/settings\"",
};

void scenario_settings_schema(struct text *out)
{
    text_add(out, "\"type\": \"object\", \"additionalProperties\": { \"type\": [\"number\", "
                  "\"string\", \"boolean\"] }, \"propertyNames\": { \"enum\": [");
    for (int i = 0; setting_name_at(NULL, i); i++)
        text_addf(out, "%s\n      \"%s\"", i ? "," : "", setting_name_at(NULL, i));
    text_add(out, "\n    ] }");
}
