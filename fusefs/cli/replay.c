/*
 * Replay: a recording as it happens again on a mount. See replay.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- pairing --------------------------------------------------------------------------------- */

static int find_target(const struct replay *p, const char *name, struct why *why)
{
    struct device_name one = { "" };
    struct bind_list list = { &one, 1 };
    int *gpus, r;

    if (strlen(name) >= sizeof(one.text))
        return why_set(why, ENODEV, "there is no GPU '%s'", name);
    strcpy(one.text, name);
    r = drive_find_gpus(p->client, &list, &gpus, why);
    if (r < 0)
        return r;
    r = r == 1 ? gpus[0] : why_set(why, EINVAL, "'%s' is not one GPU", name);
    free(gpus);
    return r;
}

static int find_source(const struct recording *rec, const char *name, size_t n)
{
    for (int i = 0; i < rec->gpu_count; i++)
        if (strlen(rec->gpus[i].text) == n && !strncmp(rec->gpus[i].text, name, n))
            return i;
    return -1;
}

static int apply_map(struct replay *p, const char *pair, struct why *why)
{
    const char *equals = strchr(pair, '=');
    int from = equals ? find_source(p->recording, pair, (size_t)(equals - pair)) : -1, to;

    if (!equals)
        return why_set(why, EINVAL, "--map: '%s' is not FROM=TO", pair);
    if (from < 0)
        return why_set(why, EINVAL, "--map: %s has no GPU '%.*s'", p->recording->source,
                       (int)(equals - pair), pair);
    to = find_target(p, equals + 1, why);
    if (to >= 0)
        p->targets[from] = to;
    return to < 0 ? to : 0;
}

/* By its name here; a UUID or bus id of another machine goes by its turn. */
static int pair_by_name(struct replay *p, int i, struct why *why)
{
    const char *name = p->recording->gpus[i].text;
    char turn[16];
    int64_t index;
    int r;

    snprintf(turn, sizeof(turn), "%d", i);
    r = find_target(p, name, NULL);
    if (r < 0 && parse_i64(name, &index) < 0)
        r = find_target(p, turn, NULL);
    if (r < 0)
        return why_set(why, ENODEV,
                       "%s has a GPU '%s', and %s none for it; --map %s=TO gives it one",
                       p->recording->source, name, p->client->root, name);
    p->targets[i] = r;
    return 0;
}

static int pair_gpus(struct replay *p, const char *const *map, int map_count, struct why *why)
{
    int count = p->recording->gpu_count, r = 0;

    p->targets = malloc(((size_t)count + 1) * sizeof(*p->targets));
    if (!p->targets)
        return why_set(why, ENOMEM, "out of memory");
    for (int i = 0; i < count; i++)
        p->targets[i] = -1;
    for (int i = 0; r == 0 && i < map_count; i++)
        r = apply_map(p, map[i], why);
    for (int i = 0; r == 0 && i < count; i++)
        if (p->targets[i] < 0)
            r = pair_by_name(p, i, why);
    for (int i = 0; r == 0 && i < count; i++)
        for (int k = 0; r == 0 && k < i; k++)
            if (p->targets[i] == p->targets[k])
                r = why_set(
                    why, EINVAL,
                    "GPU '%s' and GPU '%s' of %s would both be GPU %d; --map tells them apart",
                    p->recording->gpus[k].text, p->recording->gpus[i].text, p->recording->source,
                    p->targets[i]);
    return r;
}

/* --- what fits ------------------------------------------------------------------------------- */

/* The largest value: that of another metric, less a third. */
static const struct {
    int metric, limit, less; /* -1: nothing less */
} limits[] = {
    { METRIC_MEMORY_USED, METRIC_MEMORY_TOTAL, METRIC_MEMORY_RESERVED },
    { METRIC_POWER_USAGE, METRIC_POWER_LIMIT, -1 },
    { METRIC_TEMPERATURE_GPU, METRIC_TEMPERATURE_SHUTDOWN, -1 },
    { METRIC_TEMPERATURE_MEMORY, METRIC_TEMPERATURE_MEMORY_MAX, -1 },
    { METRIC_CLOCK_SM, METRIC_CLOCK_SM_MAX, -1 },
    { METRIC_CLOCK_MEMORY, METRIC_CLOCK_MEMORY_MAX, -1 },
};

static int64_t largest(const struct metric_sample *s, int metric)
{
    int64_t limit, less = 0;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].metric == metric && metric_read(s, limits[i].limit, &limit) == 0) {
            if (limits[i].less >= 0)
                metric_read(s, limits[i].less, &less);
            return limit - less;
        }
    switch (metric_infos[metric].unit) {
    case UNIT_PERCENT:
        return 100 * unit_parts(UNIT_PERCENT);
    case UNIT_RATIO:
        return unit_parts(UNIT_RATIO);
    default:
        return INT64_MAX;
    }
}

static int refuse(const struct replay *p, const struct recorded_line *line,
                  const struct recorded *v, int64_t most, struct why *why)
{
    const struct metric_info *info = &metric_infos[v->metric];
    struct text value = TEXT_INIT, limit = TEXT_INIT;
    int r;

    unit_print(&value, info->unit, v->value);
    unit_print(&limit, info->unit, most);
    r = why_set(why, ERANGE,
                "%s:%d:%d: %s: %s is more than GPU %d can have; allowed: 0 to %s, or --clamp",
                p->recording->source, line->number, v->column, info->name, text_str(&value),
                p->targets[line->gpu], text_str(&limit));
    text_release(&value);
    text_release(&limit);
    return r;
}

static int check_line(const struct replay *p, const struct recorded_line *line,
                      const struct reader_gpu *gpus, struct why *why)
{
    const struct metric_sample *s = &gpus[line->gpu].sample;

    for (size_t k = line->first; k < line->first + line->count; k++) {
        const struct recorded *v = &p->recording->values[k];

        if (v->state == RECORDED_VALUE && !p->clamp && metric_mask_has(&s->valid, v->metric) &&
            v->value > largest(s, v->metric))
            return refuse(p, line, v, largest(s, v->metric), why);
    }
    return 0;
}

static int check_values(struct replay *p, struct why *why)
{
    const struct recording *rec = p->recording;
    int r = 0;

    p->gpus = calloc((size_t)rec->gpu_count + 1, sizeof(*p->gpus));
    if (!p->gpus)
        return why_set(why, ENOMEM, "out of memory");
    for (int i = 0; r == 0 && i < rec->gpu_count; i++) {
        r = reader_gpu(p->client->reader, p->targets[i], &p->gpus[i]);
        if (r < 0)
            return why_set(why, -r, "cannot read %s: %s", p->client->root, strerror(-r));
        if (p->gpus[i].lost)
            return why_set(why, ENODEV, "GPU %d has fallen off the bus", p->targets[i]);
    }
    for (size_t i = 0; r == 0 && i < rec->line_count; i++)
        r = check_line(p, &rec->lines[i], p->gpus, why);
    return r;
}

int replay_prepare(struct replay *p, const char *const *map, int map_count, struct why *why)
{
    int r = pair_gpus(p, map, map_count, why);

    p->changes = (struct changes){ .client = p->client };
    return r < 0 ? r : check_values(p, why);
}

void replay_release(struct replay *p)
{
    changes_release(&p->changes);
    free(p->targets);
    free(p->gpus);
    p->targets = NULL;
    p->gpus = NULL;
}

/* --- when ------------------------------------------------------------------------------------ */

/* How long the last line holds: as long as the one before it did. */
static int64_t last_gap_ns(const struct recording *rec)
{
    const struct recorded_line *last = &rec->lines[rec->line_count - 1];

    for (const struct recorded_line *l = last; l >= rec->lines; l--)
        if (l->gpu == last->gpu && l->time_ns < last->time_ns)
            return last->time_ns - l->time_ns;
    return NS_PER_S;
}

int64_t replay_time(const struct replay *p, size_t i)
{
    const struct recording *rec = p->recording;
    int64_t ns = i < rec->line_count ? rec->lines[i].time_ns
                                     : rec->lines[rec->line_count - 1].time_ns + last_gap_ns(rec);

    return (int64_t)((double)ns / p->speed);
}

/* Until the next line of the same GPU. */
static int64_t gap_behind(const struct replay *p, size_t i)
{
    const struct recording *rec = p->recording;
    size_t next = i + 1;
    int64_t ns;

    while (next < rec->line_count && rec->lines[next].gpu != rec->lines[i].gpu)
        next++;
    ns = replay_time(p, next) - replay_time(p, i);
    return ns < NS_PER_MS ? NS_PER_MS : ns;
}

/* --- what ------------------------------------------------------------------------------------ */

/* What is written for a value, and to which control file; false: nothing. */
static bool command_of(const struct replay *p, size_t i, const struct recorded *v,
                       const char **file, struct text *command)
{
    const struct metric_sample *s = &p->gpus[p->recording->lines[i].gpu].sample;
    const struct metric_info *info = &metric_infos[v->metric];
    int64_t most = largest(s, v->metric);

    text_cut(command, 0);
    *file = info->name;
    if (!metric_mask_has(&s->valid, v->metric))
        return false;
    if (v->state == RECORDED_VALUE) {
        unit_print(command, info->unit, v->value > most ? most : v->value);
    } else if (v->state == RECORDED_NONE) {
        text_add(command, "auto");
    } else {
        *file = "fault";
        text_addf(command, "sensor %s for ", info->name);
        unit_print(command, UNIT_NANOSECOND, gap_behind(p, i));
    }
    return true;
}

int replay_line(struct replay *p, size_t i, struct why *why)
{
    const struct recorded_line *line = &p->recording->lines[i];
    int gpu = p->targets[line->gpu], r = 0;
    struct text command = TEXT_INIT, path = TEXT_INIT;

    for (size_t k = line->first; r == 0 && k < line->first + line->count; k++) {
        const struct recorded *v = &p->recording->values[k];
        const char *file;

        if (!command_of(p, i, v, &file, &command))
            continue;
        text_cut(&path, 0);
        text_addf(&path, "gpus/%d/control/%s", gpu, file);
        /* A failing sensor mends itself; what was never dictated need not be given back. */
        if (v->state == RECORDED_FAILED)
            r = client_put(p->client, text_str(&path), text_str(&command), why);
        else if (v->state == RECORDED_VALUE || changes_has(&p->changes, text_str(&path)))
            r = changes_put(&p->changes, text_str(&path), text_str(&command), why);
        if (r < 0 && !client_is_lost(r)) {
            struct text said = TEXT_INIT;

            text_addf(&said, "%s:%d:%d: %s", p->recording->source, line->number, v->column,
                      why_text(why));
            why_set(why, -r, "%s", text_str(&said));
            text_release(&said);
        }
    }
    text_release(&command);
    text_release(&path);
    return r;
}

void replay_line_explain(const struct replay *p, size_t i, struct text *out)
{
    const struct recorded_line *line = &p->recording->lines[i];
    struct text command = TEXT_INIT, path = TEXT_INIT;

    for (size_t k = line->first; k < line->first + line->count; k++) {
        const char *file;

        if (!command_of(p, i, &p->recording->values[k], &file, &command))
            continue;
        text_cut(&path, 0);
        text_addf(&path, "gpus/%d/control/%s", p->targets[line->gpu], file);
        shell_put(out, text_str(&path), text_str(&command));
    }
    text_release(&command);
    text_release(&path);
}
