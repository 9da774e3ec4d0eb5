/*
 * Counters: the CSV of exported fields. See counters.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/dcgm_fields.h"
#include "sim/metric.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/why.h"

enum { COLUMNS = 3 };

struct parsing {
    const char *name;
    int line;
    struct counter_list *list;
    size_t room;
    struct why *why;
};

/* --- one line -------------------------------------------------------------------------------- */

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && strchr(" \t\r", end[-1]))
        *--end = '\0';
    return text + strspn(text, " \t");
}

/* Cuts a quoted column out of `*at` in place, its doubled quotes made single. False: it has no end. */
static bool cut_quoted(char **at, char **column)
{
    char *from = *at + 1, *to = from;

    *column = to;
    for (; *from && !(*from == '"' && from[1] != '"'); from++) {
        from += *from == '"';
        *to++ = *from;
    }
    if (!*from)
        return false;
    from++;
    *at = from + strspn(from, " \t\r");
    *to = '\0';
    return !**at || **at == ',';
}

/* Splits a line into columns, in place. Their number, or -1 when it is malformed. */
static int split(char *line, char *columns[COLUMNS])
{
    int count = 0;

    for (bool more = true; more; count++) {
        char *column;

        line += strspn(line, " \t");
        if (*line == '"') {
            if (!cut_quoted(&line, &column))
                return -1;
        } else {
            column = line;
            line += strcspn(line, ",");
        }
        more = *line == ',';
        *line = '\0';
        line += more;
        if (count < COLUMNS)
            columns[count] = trim(column);
    }
    return count;
}

/* --- fields ---------------------------------------------------------------------------------- */

static bool is_name_of(const char *name, const char *one, const char *other)
{
    return !strcmp(name, one) || (*name && !strcmp(name, other));
}

/* What dcgm-exporter counts itself. */
static const struct {
    const char *name;
    enum counter_source source;
} derived_sources[] = {
    { "DCGM_EXP_XID_ERRORS_COUNT", COUNTER_XID_COUNT },
    { "DCGM_EXP_CLOCK_EVENTS_COUNT", COUNTER_CLOCK_EVENT_COUNT },
    { "DCGM_EXP_GPU_HEALTH_STATUS", COUNTER_HEALTH },
    { "DCGM_EXP_P2P_STATUS", COUNTER_P2P },
};

static void find_by_id(struct counter *c)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (metric_infos[i].dcgm_id == c->id) {
            c->source = COUNTER_METRIC;
            c->which = i;
        }
    for (int i = 0; i < IDENTITY_COUNT; i++)
        if (identity_infos[i].dcgm_id == c->id) {
            c->source = COUNTER_IDENTITY;
            c->which = i;
        }
}

static bool find_derived(struct counter *c)
{
    for (int i = 0; derived_infos[i].name; i++) {
        if (strcmp(derived_infos[i].name, c->name))
            continue;
        c->id = derived_infos[i].id;
        for (size_t k = 0; k < sizeof(derived_sources) / sizeof(derived_sources[0]); k++)
            if (!strcmp(derived_sources[k].name, c->name))
                c->source = derived_sources[k].source;
        return true;
    }
    return false;
}

static bool find_field(struct counter *c)
{
    const struct dcgm_field *field = dcgm_field_find(c->name);

    c->source = COUNTER_ABSENT;
    if (field) {
        c->id = field->id;
        find_by_id(c);
        return true;
    }
    for (int i = 0; i < METRIC_COUNT; i++)
        if (is_name_of(c->name, metric_infos[i].dcgm_name, metric_infos[i].dcgm_name_46)) {
            c->id = metric_infos[i].dcgm_id;
            c->source = COUNTER_METRIC;
            c->which = i;
            return true;
        }
    return find_derived(c);
}

static int unknown_field(struct parsing *p, const char *name)
{
    struct text hint = TEXT_INIT;
    const char *nearest = suggest_nearest(name, dcgm_field_name_at, NULL);
    int r;

    if (nearest)
        text_addf(&hint, "; did you mean '%s'?", nearest);
    r = why_set(p->why, EINVAL, "%s:%d: DCGM has no field '%s'%s", p->name, p->line, name,
                text_str(&hint));
    text_release(&hint);
    return r;
}

static int set_type(struct parsing *p, struct counter *c, const char *type)
{
    static const char *const names[] = { "gauge", "counter", "histogram", "summary", NULL };

    c->is_label = !strcmp(type, "label");
    if (c->is_label)
        return 0;
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], type)) {
            c->type = (enum family_type)i;
            return 0;
        }
    return why_set(p->why, EINVAL,
                   "%s:%d: '%s' is not a type; allowed: gauge, counter, histogram, summary, label",
                   p->name, p->line, type);
}

static int add_counter(struct parsing *p, const struct counter *c)
{
    struct counter_list *list = p->list;

    if (list->count == p->room) {
        size_t room = p->room ? p->room * 2 : 64;
        struct counter *items = arena_alloc(&list->arena, room * sizeof(*items));

        if (!items)
            return why_set(p->why, ENOMEM, "%s: out of memory", p->name);
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        p->room = room;
    }
    list->items[list->count++] = *c;
    return 0;
}

static int read_line(struct parsing *p, char *line)
{
    char *columns[COLUMNS];
    struct counter c = { 0 };
    int count, r;

    if (*line == '#' || !*trim(line))
        return 0;
    count = split(line, columns);
    if (count < 0)
        return why_set(p->why, EINVAL, "%s:%d: a quote is not closed", p->name, p->line);
    if (count != COLUMNS)
        return why_set(p->why, EINVAL,
                       "%s:%d: has %d columns; allowed: field, type, help (quote what has commas)",
                       p->name, p->line, count);
    c.name = arena_strndup(&p->list->arena, columns[0], strlen(columns[0]));
    c.help = arena_strndup(&p->list->arena, columns[2], strlen(columns[2]));
    if (!c.name || !c.help)
        return why_set(p->why, ENOMEM, "%s: out of memory", p->name);
    r = set_type(p, &c, columns[1]);
    if (r == 0 && !find_field(&c))
        r = unknown_field(p, c.name);
    if (r == 0)
        r = add_counter(p, &c);
    return r;
}

/* --- the file -------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct counter *x = a, *y = b;

    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : strcmp(x->name, y->name);
}

int counter_list_parse(struct counter_list *list, const char *name, const char *text,
                       struct why *why)
{
    struct parsing p = { .name = name, .list = list, .why = why };
    char *copy = strdup(text), *line, *rest = copy;
    int r = 0;

    *list = (struct counter_list){ 0 };
    if (!copy)
        return why_set(why, ENOMEM, "%s: out of memory", name);
    while (r == 0 && (line = strsep(&rest, "\n"))) {
        p.line++;
        r = read_line(&p, line);
    }
    free(copy);
    if (r < 0)
        counter_list_release(list);
    else if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_id);
    return r;
}

void counter_list_release(struct counter_list *list)
{
    arena_release(&list->arena);
    *list = (struct counter_list){ 0 };
}

bool counter_list_has(const struct counter_list *list, enum counter_source source)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].source == source)
            return true;
    return false;
}
