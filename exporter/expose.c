/*
 * Expose: from a view to families. See expose.h.
 *
 * Here are the parts that every identity shares, and those whose families are listed in their file;
 * expose_dcgm.c has what is DCGM's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/expose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/entity.h"
#include "sim/why.h"

/* More families than any identity or counters file can ask for. */
enum { FAMILIES_MAX = 1024 };

/* --- families -------------------------------------------------------------------------------- */

struct family *family_begin(struct exposing *x, const char *name, const char *help,
                            enum family_type type, size_t room)
{
    struct family *f = &x->set->families[x->set->count];

    if (x->set->count == FAMILIES_MAX)
        return NULL;
    *f = (struct family){ .type = type,
                          .order = x->order,
                          .name = arena_strndup(&x->set->arena, name, strlen(name)),
                          .help = arena_strndup(&x->set->arena, help, strlen(help)),
                          .samples = samples_make(&x->set->arena, room) };
    return f->name && f->help && f->samples ? f : NULL;
}

void family_end(struct exposing *x, struct family *f)
{
    x->set->count += f->count > 0;
}

int family_add(struct exposing *x, struct family *f, const struct entity *e, int64_t value,
               const struct label *fields, size_t field_count)
{
    const struct more_labels more = { .fields = fields, .field_count = field_count };
    struct sample *s = &f->samples[f->count];

    *s = (struct sample){ .kind = SAMPLE_INTEGER, .integer = value };
    s->labels = entity_labels(x, e, &more);
    f->count += s->labels != NULL;
    return s->labels ? 0 : -ENOMEM;
}

/* --- values ---------------------------------------------------------------------------------- */

/* Dividing by a whole number gives the nearest real; multiplying with its inverse does not always. */
static double scaled(double value, double scale)
{
    double inverse = scale ? 1 / scale : 0;

    if (fabs(inverse) > 1 && fabs(inverse - round(inverse)) < 1e-9 * fabs(inverse))
        return value / round(inverse);
    return value * scale;
}

/* As the metric's file shows it: rounded to a whole number. */
static int64_t shown(enum unit unit, int64_t stored)
{
    int64_t parts = unit_parts(unit), half = parts / 2;

    return stored >= 0 ? (stored + half) / parts : (stored - half) / parts;
}

/* Cut to a whole number; a scale may make it larger than one can be. */
static int64_t whole(double value)
{
    if (fabs(value) < 0x1p62)
        return (int64_t)floor(value);
    return value < 0 ? INT64_MIN : INT64_MAX;
}

static bool sample_fail(struct sample *s, const struct exposing *x, int err)
{
    if (err != -EIO || x->wishes->faulty != FAULTY_NAN)
        return false;
    s->kind = SAMPLE_REAL;
    s->real = NAN;
    return true;
}

bool sample_set(struct sample *s, const struct exposing *x, const struct entity *e, enum metric id,
                double scale, bool integer)
{
    enum unit unit = metric_infos[id].unit;
    int64_t value;
    int r = entity_read(e, id, &value);

    if (r < 0)
        return sample_fail(s, x, r);
    if (integer) {
        s->kind = SAMPLE_INTEGER;
        s->integer = scale == 1 ? shown(unit, value)
                                : whole(scaled((double)shown(unit, value), scale));
    } else {
        s->kind = SAMPLE_REAL;
        s->real = scaled((double)value / (double)unit_parts(unit), scale);
    }
    return true;
}

/* --- listed families ------------------------------------------------------------------------- */

static bool set_from_text(struct sample *s, const char *text, double scale)
{
    char *end;
    double value = text ? strtod(text, &end) : 0;

    if (!text || end == text)
        return false;
    s->kind = SAMPLE_REAL;
    s->real = scaled(value, scale);
    return true;
}

static bool set_from_rule(struct sample *s, const struct exposing *x, const struct entity *e,
                          const struct family_rule *f, const struct sample_rule *rule)
{
    if (e->gpu->lost && rule->metric < 0)
        return false;
    if (rule->identity >= 0)
        return set_from_text(s, e->gpu->names[rule->identity], rule->scale);
    if (rule->metric < 0) {
        s->kind = SAMPLE_REAL;
        s->real = rule->constant;
        return true;
    }
    if (!sample_set(s, x, e, (enum metric)rule->metric, rule->scale,
                    f->format == NUMBER_INTEGER || rule->bit >= 0))
        return false;
    if (rule->step > 0 && s->kind == SAMPLE_REAL && rule->scale)
        s->real = scaled(round(s->real / rule->scale / rule->step) * rule->step, rule->scale);
    if (rule->bit >= 0 && s->kind == SAMPLE_INTEGER)
        s->integer = s->integer >> rule->bit & 1;
    return true;
}

static int add_rule_samples(struct exposing *x, struct family *family,
                            const struct family_rule *rule)
{
    const struct sample_rule *rules = rule->samples.items;

    for (size_t i = 0; i < x->entities.count; i++)
        for (size_t k = 0; k < rule->samples.count; k++) {
            const struct entity *e = &x->entities.items[i];
            struct sample *s = &family->samples[family->count];

            if (!set_from_rule(s, x, e, rule, &rules[k]))
                continue;
            s->labels = rules[k].labels.count
                            ? entity_labels(x, e,
                                            &(struct more_labels){ .rules = &rules[k].labels })
                            : e->labels;
            if (!s->labels)
                return -ENOMEM;
            family->count++;
        }
    return 0;
}

int expose_rules(struct exposing *x)
{
    const struct dialect *d = x->wishes->dialect;
    const struct family_rule *rules = d->families.items;

    for (size_t i = 0; i < d->families.count; i++) {
        struct family *f;
        int r;

        x->order = i;
        f = family_begin(x, rules[i].name, rules[i].help, (enum family_type)rules[i].type,
                         x->entities.count * rules[i].samples.count);
        if (!f)
            return -ENOMEM;
        f->format = (enum number_format)rules[i].format;
        f->decimals = (int)rules[i].decimals;
        r = add_rule_samples(x, f, &rules[i]);
        if (r < 0)
            return r;
        family_end(x, f);
    }
    return 0;
}

int expose(struct family_set *set, const struct view *view, const struct wishes *wishes,
           const struct counter_list *counters)
{
    struct exposing x = {
        .view = view,
        .wishes = wishes,
        .counters = *wishes->dialect->counters ? counters : NULL,
        .set = set,
    };
    int r;

    *set = (struct family_set){ .generation = view->generation, .now_ns = view->now_ns };
    set->families = arena_alloc(&set->arena, FAMILIES_MAX * sizeof(*set->families));
    r = set->families ? entities_make(&x) : -ENOMEM;
    if (r == 0)
        r = x.counters ? expose_counters(&x) : expose_rules(&x);
    if (r < 0)
        family_set_release(set);
    return r;
}

/* --- choosing devices ------------------------------------------------------------------------ */

static int add_range(struct device_choice *c, const char **at)
{
    char *end;
    long first = strtol(*at, &end, 10), last = first;

    if (end == *at || first < 0)
        return -EINVAL;
    if (*end == '-') {
        *at = end + 1;
        last = strtol(*at, &end, 10);
        if (end == *at || last < first)
            return -EINVAL;
    }
    if (last - first >= DEVICE_IDS_MAX - c->count)
        return -EINVAL;
    for (long id = first; id <= last; id++)
        c->ids[c->count++] = (int)id;
    *at = end;
    return *end == ',' ? (*at)++, 1 : *end ? -EINVAL : 0;
}

int device_choice_parse(struct device_choice *c, const char *text, struct why *why)
{
    const char *modes = "fgi", *mode = *text ? strchr(modes, *text) : NULL, *at = text + 2;
    int r = 0;

    *c = (struct device_choice){ .all = true };
    if (mode)
        c->mode = mode == modes       ? DEVICES_FLEX
                  : mode == modes + 1 ? DEVICES_GPUS
                                      : DEVICES_INSTANCES;
    if (mode && text[1] == ':' && *mode != 'f') {
        c->all = false;
        while ((r = add_range(c, &at)) > 0)
            continue;
    } else if (!mode || text[1]) {
        r = -EINVAL;
    }
    if (r < 0)
        return why_set(why, EINVAL, "'%s' is no choice of devices; allowed: f, g, i, g:0,1, i:0-3",
                       text);
    return 0;
}
