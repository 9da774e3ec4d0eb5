/*
 * Config: what the environment says over the file. See config_env.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/suggest.h"

static const char *lookup(char **environment, const char *name)
{
    size_t n = strlen(name);

    for (; *environment; environment++)
        if (!strncmp(*environment, name, n) && (*environment)[n] == '=')
            return *environment + n + 1;
    return NULL;
}

static int check_profile(const struct config *cfg, const char *variable, const char *name,
                         const char *also, struct why *why)
{
    struct text hint = TEXT_INIT;
    int r;

    if (profile_find(&cfg->profiles, name) >= 0)
        return 0;
    suggest_add(&hint, name, profile_name_at, &cfg->profiles);
    r = why_set(why, EINVAL, "environment: %s: '%s' is not a profile%s%s", variable, name,
                text_str(&hint), also);
    text_release(&hint);
    return r;
}

/* Whether more GPUs can be like this one. */
static bool can_multiply(const struct gpu_spec *g)
{
    return !*g->uuid && !*g->bus_id && !*g->serial;
}

/* Makes `gpus` (with room for one more) describe `wanted` GPUs; returns how many items that takes. */
static size_t resize(struct gpu_spec *gpus, size_t count, int64_t wanted)
{
    int64_t have = 0;
    size_t keep = 0;

    for (; keep < count && have < wanted; keep++) {
        if (gpus[keep].count > wanted - have)
            gpus[keep].count = wanted - have;
        have += gpus[keep].count;
    }
    if (have == wanted)
        return keep;
    if (keep && can_multiply(&gpus[keep - 1])) {
        gpus[keep - 1].count += wanted - have;
        return keep;
    }
    gpu_spec_init(&gpus[keep]);
    gpus[keep].count = wanted - have;
    if (keep && *gpus[keep - 1].model) {
        memcpy(gpus[keep].model, gpus[keep - 1].model, sizeof(gpus[keep].model));
        bind_mark(&gpu_table, &gpus[keep], "model", true);
    }
    return keep + 1;
}

/* A list that describes each GPU is shortened or lengthened; a `count` is simply another. */
static int set_count(struct config *cfg, const char *text, struct why *why)
{
    struct gpu_spec *gpus;
    int64_t wanted;
    size_t keep;
    int r = parse_i64(text, &wanted);

    if (r < 0 || wanted < 0 || wanted > CONFIG_GPUS_MAX)
        return why_set(why, r == -EINVAL ? EINVAL : ERANGE,
                       "environment: NUM_FAKE_GPUS: '%s' is not a number of GPUs; allowed: 0 to %d",
                       text, CONFIG_GPUS_MAX);
    if (cfg->gpus.count && *((const struct gpu_spec *)cfg->gpus.items)->node)
        return why_set(why, EINVAL,
                       "environment: NUM_FAKE_GPUS: the configuration says which GPUs are on which "
                       "node; allowed: to leave it empty");
    gpus = arena_alloc(&cfg->arena, (cfg->gpus.count + 1) * sizeof(*gpus));
    if (!gpus)
        return -ENOMEM;
    if (cfg->gpus.count)
        memcpy(gpus, cfg->gpus.items, cfg->gpus.count * sizeof(*gpus));
    keep = resize(gpus, cfg->gpus.count, wanted);
    for (size_t i = 0; i < keep; i++)
        bind_mark(&gpu_table, &gpus[i], "count", gpus[i].count != 1);
    cfg->gpus = (struct bind_list){ gpus, keep };
    return 0;
}

static int set_interval(struct config *cfg, const char *text, struct why *why)
{
    enum { SECONDS_MAX = 86400 };
    int64_t ns, seconds;
    int r = parse_i64(text, &seconds);

    if (r == 0)
        ns = seconds > SECONDS_MAX || seconds < 0 ? 0 : seconds * NS_PER_S;
    else if (r == -EINVAL)
        r = unit_parse(UNIT_NANOSECOND, text, UNIT_BARE_REFUSED, &ns, NULL);
    if (r < 0 || ns < NS_PER_MS || ns > SECONDS_MAX * NS_PER_S)
        return why_set(
            why, r == -EINVAL ? EINVAL : ERANGE,
            "environment: METRIC_UPDATE_INTERVAL: '%s' is not a time; allowed: seconds, or "
            "a time with its unit, 1ms to 24h",
            text);
    cfg->update_interval_ns = ns;
    return 0;
}

static void forget_profiles(struct bind_list *list)
{
    struct gpu_spec *gpus = list->items;

    for (size_t i = 0; i < list->count; i++) {
        gpus[i].profile = (struct profile_choice){ 0 };
        bind_mark(&gpu_table, &gpus[i], "profile", false);
    }
}

/* For all GPUs: what the file says about single ones no longer counts. */
static int set_for_all(struct config *cfg, const char *const *names, size_t count)
{
    forget_profiles(&cfg->gpus);
    forget_profiles(&cfg->overrides);
    return profile_choice_set(&cfg->arena, &cfg->profile, names, count);
}

static int set_profile(struct config *cfg, const char *text, struct why *why)
{
    int r;

    if (!strcmp(text, "cycle"))
        return set_for_all(cfg, profile_cycle, PROFILE_CYCLE_LENGTH);
    r = check_profile(cfg, "METRIC_PROFILE", text, ", or cycle", why);
    return r < 0 ? r : set_for_all(cfg, &text, 1);
}

/* The override of that GPU by its index, made where there is none. */
static struct gpu_spec *override_for(struct config *cfg, int64_t index)
{
    struct gpu_spec *overrides = cfg->overrides.items, *more;
    size_t count = cfg->overrides.count;
    char key[sizeof(overrides->key)];

    snprintf(key, sizeof(key), "%" PRId64, index);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(overrides[i].key, key))
            return &overrides[i];
    more = arena_alloc(&cfg->arena, (count + 1) * sizeof(*more));
    if (!more)
        return NULL;
    if (count)
        memcpy(more, overrides, count * sizeof(*more));
    gpu_spec_init(&more[count]);
    memcpy(more[count].key, key, sizeof(key));
    cfg->overrides = (struct bind_list){ more, count + 1 };
    bind_mark(&config_table, cfg, "overrides", true);
    return &more[count];
}

/* "3:spike": an override for GPU 3. */
static int set_single_profile(struct config *cfg, char *entry, struct why *why)
{
    char *colon = strchr(entry, ':');
    const char *name = colon + 1;
    struct gpu_spec *one;
    int64_t index;
    int r;

    *colon = '\0';
    if (parse_i64(entry, &index) < 0 || index < 0 || index >= CONFIG_GPUS_MAX)
        return why_set(why, EINVAL, "environment: GPU_PROFILES: '%s' is not the index of a GPU",
                       entry);
    r = check_profile(cfg, "GPU_PROFILES", name, "", why);
    if (r < 0)
        return r;
    one = override_for(cfg, index);
    if (!one)
        return -ENOMEM;
    bind_mark(&gpu_table, one, "profile", true);
    return profile_choice_set(&cfg->arena, &one->profile, &name, 1);
}

static int set_profiles(struct config *cfg, const char *text, struct why *why)
{
    char *copy = arena_strndup(&cfg->arena, text, strlen(text)), *entry;
    char *single[CONFIG_GPUS_MAX];
    const char *names[CONFIG_GPUS_MAX];
    size_t count = 0, singles = 0;
    int r = 0;

    if (!copy)
        return -ENOMEM;
    while ((entry = strsep(&copy, ","))) {
        if (count == CONFIG_GPUS_MAX || singles == CONFIG_GPUS_MAX)
            return why_set(why, E2BIG, "environment: GPU_PROFILES: has more than %d profiles",
                           CONFIG_GPUS_MAX);
        entry = parse_trimmed(entry);
        if (strchr(entry, ':')) {
            single[singles++] = entry;
            continue;
        }
        r = check_profile(cfg, "GPU_PROFILES", entry, "", why);
        if (r < 0)
            return r;
        names[count++] = entry;
    }
    /* Those for single GPUs stand over the list, whatever their order. */
    if (count)
        r = set_for_all(cfg, names, count);
    for (size_t i = 0; i < singles && r == 0; i++)
        r = set_single_profile(cfg, single[i], why);
    return r;
}

int config_environment(struct config *cfg, char **environment, struct why *why)
{
    static const struct {
        const char *name;
        int (*set)(struct config *cfg, const char *text, struct why *why);
    } variables[] = {
        { "NUM_FAKE_GPUS", set_count },
        { "METRIC_UPDATE_INTERVAL", set_interval },
        { "METRIC_PROFILE", set_profile },
        { "GPU_PROFILES", set_profiles },
    };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *text = lookup(environment, variables[i].name);
        int r = text && *text ? variables[i].set(cfg, text, why) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}
