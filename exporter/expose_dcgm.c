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
    return entity_labels(x, e, NULL, labels, 2);
}

static int add_metric(struct exposing *x, struct family *f, const struct counter *c)
{
    enum metric id = (enum metric)c->which;

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
    return 0;
}

int expose_counters(struct exposing *x)
{
    for (size_t i = 0; i < x->counters->count; i++) {
        const struct counter *c = &x->counters->items[i];
        struct family *f;
        int r = 0;

        if (c->is_label || c->source == COUNTER_ABSENT || c->source == COUNTER_IDENTITY)
            continue;
        f = family_begin(x, c->name, c->help, c->type, x->entities.count);
        if (!f)
            return -ENOMEM;
        if (c->source == COUNTER_METRIC)
            r = add_metric(x, f, c);
        if (r < 0)
            return r;
        family_end(x, f);
    }
    return 0;
}
