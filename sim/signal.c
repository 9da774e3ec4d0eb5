/*
 * Signal: a value as a function of time. See signal.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/signal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* --- timelines ------------------------------------------------------------------------------- */

int64_t timeline_length(const struct phase *phases, uint32_t first, uint32_t count)
{
    return count ? phases[first + count - 1].end_ns : 0;
}

/* The first phase that ends after `at`. The caller made sure there is one. */
static uint32_t phase_at(const struct phase *phases, uint32_t first, uint32_t count, int64_t at)
{
    uint32_t low = 0, high = count - 1;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (phases[first + middle].end_ns > at)
            high = middle;
        else
            low = middle + 1;
    }
    return first + low;
}

struct timeline_place timeline_locate(const struct phase *phases, uint32_t first, uint32_t count,
                                      int64_t repeat, int64_t elapsed_ns)
{
    int64_t length = timeline_length(phases, first, count);
    struct timeline_place place = { .phase = first };
    int64_t at = elapsed_ns, start;

    if (length != PHASE_FOREVER) {
        place.ended = length == 0 || (repeat && elapsed_ns / length >= repeat);
        /* The end belongs to the last phase, not to a play that never begins. */
        at = place.ended ? length - 1 : elapsed_ns % length;
    }
    if (length == 0)
        return place;
    place.phase = phase_at(phases, first, count, at);
    start = place.phase > first ? phases[place.phase - 1].end_ns : 0;
    place.offset_ns = (place.ended ? length : at) - start;
    return place;
}

/* --- evaluation ------------------------------------------------------------------------------ */

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static int eval_timeline(const struct signal *s, const struct signal_pool *pool, int64_t elapsed_ns,
                         double limit, double held, bool first_time, struct rng *rng, double *value)
{
    struct timeline_place at = timeline_locate(pool->phases, s->first, s->count, s->repeat,
                                               elapsed_ns);
    const struct signal *inner = &pool->signals[pool->phases[at.phase].first];

    return signal_eval(inner, pool, at.offset_ns, limit, held, first_time, rng, value);
}

int signal_eval(const struct signal *s, const struct signal_pool *pool, int64_t elapsed_ns,
                double limit, double held, bool first_time, struct rng *rng, double *value)
{
    const double *p = s->p;
    double scale = s->share ? limit : 1, t = seconds(elapsed_ns), v = 0;

    if (scale <= 0) {
        *value = 0; /* any share of nothing */
        return 0;
    }
    switch ((enum signal_kind)s->kind) {
    case SIGNAL_CONSTANT:
        v = p[0];
        break;
    case SIGNAL_JITTER:
        v = rng_between(rng, p[0] - p[1], p[0] + p[1]);
        break;
    case SIGNAL_SPIKE:
        v = rng_unit(rng) < p[2] ? p[1] : p[0];
        break;
    case SIGNAL_WAVE:
        v = p[0] + p[1] * sin(t / p[2]);
        break;
    case SIGNAL_DRIFT:
        v = p[0] + p[1] * t;
        /* Without `until` it drifts to the target's own limit. */
        if (isinf(p[2]))
            v = p[1] > 0 ? fmin(v, limit / scale) : fmax(v, 0);
        else
            v = p[1] > 0 ? fmin(v, p[2]) : fmax(v, p[2]);
        break;
    case SIGNAL_RANDOM:
        v = rng_between(rng, p[0], p[1]);
        break;
    case SIGNAL_RAMP:
        v = p[0] + (p[1] - p[0]) * fmin(t / p[2], 1);
        break;
    case SIGNAL_RANDOM_INCREASE:
        v = first_time ? p[0] : held / scale + rng_between(rng, 0, p[1]);
        v = fmin(v, isinf(p[2]) ? limit / scale : p[2]);
        break;
    case SIGNAL_FAULT:
        if (rng_unit(rng) < p[1])
            return -EIO;
        v = p[0];
        break;
    case SIGNAL_TIMELINE:
        return eval_timeline(s, pool, elapsed_ns, limit, held, first_time, rng, value);
    case SIGNAL_KINDS:
        break;
    }
    *value = v * scale;
    return 0;
}

/* --- pools ----------------------------------------------------------------------------------- */

void phases_count(const struct bind_list *phases, uint32_t *signal_total, uint32_t *phase_total)
{
    const struct phase_spec *specs = phases->items;

    *phase_total += (uint32_t)phases->count;
    for (size_t i = 0; i < phases->count; i++) {
        const struct signal_spec *signals = specs[i].signals.items;

        for (size_t j = 0; j < specs[i].signals.count; j++)
            signal_count(&signals[j], signal_total, phase_total);
    }
}

void signal_count(const struct signal_spec *spec, uint32_t *signals, uint32_t *phases)
{
    ++*signals;
    phases_count(&spec->phases, signals, phases);
}

uint32_t signal_fill_add(struct signal_fill *fill, const struct bind_list *list)
{
    const struct signal_spec *specs = list->items;
    uint32_t first = fill->signal_count;

    /* Places first: what hangs on the specs comes behind them. */
    fill->signal_count += (uint32_t)list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct signal s = specs[i].signal;

        s.count = (uint32_t)specs[i].phases.count;
        s.first = s.count ? phases_fill_add(fill, &specs[i].phases) : 0;
        fill->signals[first + i] = s;
    }
    return first;
}

uint32_t phases_fill_add(struct signal_fill *fill, const struct bind_list *list)
{
    const struct phase_spec *specs = list->items;
    uint32_t first = fill->phase_count;
    int64_t end = 0;

    fill->phase_count += (uint32_t)list->count;
    for (size_t i = 0; i < list->count; i++) {
        if (specs[i].time_ns == PHASE_FOREVER || end > PHASE_FOREVER - specs[i].time_ns)
            end = PHASE_FOREVER;
        else
            end += specs[i].time_ns;
        fill->phases[first + i] = (struct phase){
            .end_ns = end,
            .first = signal_fill_add(fill, &specs[i].signals),
            .count = (uint32_t)specs[i].signals.count,
        };
    }
    return first;
}

static bool phase_equal(const struct signal_pool *a, const struct phase *pa,
                        const struct signal_pool *b, const struct phase *pb)
{
    if (pa->end_ns != pb->end_ns || pa->count != pb->count)
        return false;
    for (uint32_t i = 0; i < pa->count; i++)
        if (!signal_equal(a, &a->signals[pa->first + i], b, &b->signals[pb->first + i]))
            return false;
    return true;
}

bool signal_equal(const struct signal_pool *a, const struct signal *sa, const struct signal_pool *b,
                  const struct signal *sb)
{
    if (sa->kind != sb->kind || sa->share != sb->share || sa->target != sb->target ||
        sa->count != sb->count || sa->repeat != sb->repeat || memcmp(sa->p, sb->p, sizeof(sa->p)))
        return false;
    for (uint32_t i = 0; i < sa->count; i++)
        if (!phase_equal(a, &a->phases[sa->first + i], b, &b->phases[sb->first + i]))
            return false;
    return true;
}
