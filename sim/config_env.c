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
                         struct why *why)
{
    struct text hint = TEXT_INIT;
    int r;

    if (profile_find(&cfg->profiles, name) >= 0)
        return 0;
    suggest_add(&hint, name, profile_name_at, &cfg->profiles);
    r = why_set(why, EINVAL, "environment: %s: '%s' is not a profile%s", variable, name,
                text_str(&hint));
    text_release(&hint);
    return r;
}

/* A list that describes each GPU is shortened or lengthened; a `count` is simply another. */
static int set_count(struct config *cfg, const char *text, struct why *why)
{
    struct gpu_spec *gpus;
    int64_t wanted, have = 0;
    size_t keep = 0;

    if (parse_i64(text, &wanted) < 0 || wanted < 0 || wanted > CONFIG_GPUS_MAX)
        return why_set(why, EINVAL,
                       "environment: NUM_FAKE_GPUS: '%s' is not a number of GPUs; allowed: 0 to %d",
                       text, CONFIG_GPUS_MAX);
    gpus = arena_alloc(&cfg->arena, (cfg->gpus.count + 1) * sizeof(*gpus));
    if (!gpus)
        return -ENOMEM;
    memcpy(gpus, cfg->gpus.items, cfg->gpus.count * sizeof(*gpus));
    for (; keep < cfg->gpus.count && have < wanted; keep++) {
        if (gpus[keep].count > wanted - have)
            gpus[keep].count = wanted - have;
        have += gpus[keep].count;
    }
    if (have < wanted && keep && !*gpus[keep - 1].uuid && !*gpus[keep - 1].bus_id &&
        !*gpus[keep - 1].serial) {
        gpus[keep - 1].count += wanted - have;
    } else if (have < wanted) {
        const struct gpu_spec *like = keep ? &gpus[keep - 1] : cfg->gpus.items;

        gpu_table.init(&gpus[keep]);
        memcpy(gpus[keep].model, cfg->gpus.count ? like->model : "", sizeof(like->model));
        bind_mark(&gpu_table, &gpus[keep], "model", true);
        gpus[keep++].count = wanted - have;
    }
    for (size_t i = 0; i < keep; i++)
        bind_mark(&gpu_table, &gpus[i], "count", gpus[i].count != 1);
    cfg->gpus = (struct bind_list){ gpus, keep };
    return 0;
}

static int set_interval(struct config *cfg, const char *text, struct why *why)
{
    int64_t ns, seconds;

    if (parse_i64(text, &seconds) == 0 && seconds > 0 && seconds <= 86400)
        ns = seconds * NS_PER_S;
    else if (unit_parse(UNIT_NANOSECOND, text, UNIT_BARE_REFUSED, &ns, NULL) < 0 ||
             ns < NS_PER_MS || ns > 86400 * NS_PER_S)
        return why_set(
            why, EINVAL,
            "environment: METRIC_UPDATE_INTERVAL: '%s' is not a time; allowed: seconds, or "
            "a time with its unit, 1ms to 24h",
            text);
    cfg->update_interval_ns = ns;
    return 0;
}

static int set_profile(struct config *cfg, const char *text, struct why *why)
{
    int r;

    if (!strcmp(text, "cycle"))
        return profile_choice_set(&cfg->arena, &cfg->profile, profile_cycle, PROFILE_CYCLE_LENGTH);
    r = check_profile(cfg, "METRIC_PROFILE", text, why);
    return r < 0 ? r : profile_choice_set(&cfg->arena, &cfg->profile, &text, 1);
}

/* "3:spike": an override for GPU 3. */
static int set_single_profile(struct config *cfg, char *entry, struct why *why)
{
    char *name = strchr(entry, ':');
    struct gpu_spec *overrides, *one;
    const char *given;
    int64_t index;
    int r;

    *name++ = '\0';
    if (parse_i64(entry, &index) < 0 || index < 0 || index >= CONFIG_GPUS_MAX)
        return why_set(why, EINVAL, "environment: GPU_PROFILES: '%s' is not the index of a GPU",
                       entry);
    r = check_profile(cfg, "GPU_PROFILES", name, why);
    if (r < 0)
        return r;
    overrides = arena_alloc(&cfg->arena, (cfg->overrides.count + 1) * sizeof(*overrides));
    if (!overrides)
        return -ENOMEM;
    if (cfg->overrides.count)
        memcpy(overrides, cfg->overrides.items, cfg->overrides.count * sizeof(*overrides));
    one = &overrides[cfg->overrides.count];
    gpu_table.init(one);
    snprintf(one->key, sizeof(one->key), "%" PRId64, index);
    given = name;
    r = profile_choice_set(&cfg->arena, &one->profile, &given, 1);
    bind_mark(&gpu_table, one, "profile", true);
    cfg->overrides = (struct bind_list){ overrides, cfg->overrides.count + 1 };
    bind_mark(&config_table, cfg, "overrides", true);
    return r;
}

static int set_profiles(struct config *cfg, const char *text, struct why *why)
{
    char *copy = arena_strndup(&cfg->arena, text, strlen(text)), *entry;
    const char *names[CONFIG_GPUS_MAX];
    size_t count = 0;
    int r;

    if (!copy)
        return -ENOMEM;
    while ((entry = strsep(&copy, ","))) {
        char trimmed[64];

        if (parse_trim(entry, trimmed, sizeof(trimmed)) < 0 || count == CONFIG_GPUS_MAX)
            return why_set(why, E2BIG, "environment: GPU_PROFILES: too long");
        strcpy(entry, trimmed);
        if (strchr(entry, ':')) {
            r = set_single_profile(cfg, entry, why);
        } else {
            r = check_profile(cfg, "GPU_PROFILES", entry, why);
            names[count++] = entry;
        }
        if (r < 0)
            return r;
    }
    return count ? profile_choice_set(&cfg->arena, &cfg->profile, names, count) : 0;
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
