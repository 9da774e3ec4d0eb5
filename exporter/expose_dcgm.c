/*
 * Families as a counters file asks for them: what DCGM and its exporter do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>

#include "exporter/entity.h"
#include "exporter/xids.h"

static bool is_real(enum metric id)
{
    return metric_infos[id].dcgm_type == DCGM_TYPE_REAL_GAUGE ||
           metric_infos[id].dcgm_type == DCGM_TYPE_REAL_COUNTER;
}

/* The last Xid says in labels what it means. */
static const struct label_set *xid_labels(const struct exposing *x, const struct entity *e,
                                          const struct sample *s)
{
    int64_t xid = s->kind == SAMPLE_INTEGER ? s->integer : 0;
    char number[32];
    struct label labels[] = { { "err_code", number }, { "err_msg", xid_message(xid) } };

    snprintf(number, sizeof(number), "%lld", (long long)xid);
    return entity_labels(x, e, &(struct more_labels){ .attributes = labels, .attribute_count = 2 });
}

static int expose_metric(struct exposing *x, const struct counter *c)
{
    enum metric id = (enum metric)c->which;
    struct family *f = family_begin(x, c->name, c->help, c->type, x->entities.count);

    if (!f)
        return -ENOMEM;
    f->format = is_real(id) ? NUMBER_FIXED : NUMBER_INTEGER;
    f->decimals = 6;
    for (size_t i = 0; i < x->entities.count; i++) {
        const struct entity *e = &x->entities.items[i];
        struct sample *s = &f->samples[f->count];

        if (!sample_set(s, x, e, id, metric_infos[id].dcgm_scale, !is_real(id)))
            continue;
        s->labels = id == METRIC_XID_LAST ? xid_labels(x, e, s) : e->labels;
        if (!s->labels)
            return -ENOMEM;
        f->count++;
    }
    family_end(x, f);
    return 0;
}

/* A text is no value: the real exporter shows fields of texts as labels only. */
static int expose_nothing(struct exposing *x, const struct counter *c)
{
    (void)x;
    (void)c;
    return 0;
}

int expose_counters(struct exposing *x)
{
    static int (*const sources[])(struct exposing * x, const struct counter *c) = {
        [COUNTER_ABSENT] = expose_nothing,
        [COUNTER_METRIC] = expose_metric,
        [COUNTER_IDENTITY] = expose_nothing,
        [COUNTER_XID_COUNT] = expose_xid_counts,
        [COUNTER_CLOCK_EVENT_COUNT] = expose_clock_events,
        [COUNTER_HEALTH] = expose_health,
        [COUNTER_P2P] = expose_p2p,
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->counters->count; i++) {
        x->order = i;
        if (!x->counters->items[i].is_label)
            r = sources[x->counters->items[i].source](x, &x->counters->items[i]);
    }
    return r;
}
