/*
 * Counts over a window: Xid errors and clock events, as dcgm-exporter counts what DCGM has recorded.
 *
 * Time is the simulated one, like the events themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/entity.h"

/* The bits of the clocks' reasons, by the names that the exporter gives them. */
static const char *const clock_events[] = {
    "gpu_idle",   "clocks_setting", "power_cap",      "hw_slowdown",    "sync_boost",
    "sw_thermal", "hw_thermal",     "hw_power_brake", "display_clocks",
};

enum { CLOCK_EVENTS = sizeof(clock_events) / sizeof(clock_events[0]), XIDS_MAX = 64 };

/* How often one value came up. */
struct tally {
    int64_t value, count;
};

/* A sample with the window and, unless it stands for none at all, what was counted. */
static int add_count(struct exposing *x, struct family *f, const struct entity *e,
                     int64_t window_ns, const char *name, const char *value, int64_t count)
{
    char window[32];
    struct label labels[] = { { "window_size_in_ms", window }, { name, value } };

    snprintf(window, sizeof(window), "%lld", (long long)(window_ns / NS_PER_MS));
    return family_add(x, f, e, count, labels, value ? 2 : 1);
}

/* --- Xid errors ------------------------------------------------------------------------------ */

static int tally_xids(const struct exposing *x, int position, struct tally tallies[XIDS_MAX])
{
    int64_t since = x->view->now_ns - x->wishes->xid_window_ns;
    int count = 0, k;

    for (size_t i = 0; i < x->view->incident_count; i++) {
        const struct incident *in = &x->view->incidents[i];

        if (in->kind != INCIDENT_XID || in->gpu != position || in->at_ns < since)
            continue;
        for (k = 0; k < count && tallies[k].value != in->value; k++)
            continue;
        if (k == XIDS_MAX)
            continue;
        if (k == count)
            tallies[count++] = (struct tally){ .value = in->value };
        tallies[k].count++;
    }
    return count;
}

static int add_xid_counts(struct exposing *x, struct family *f, const struct entity *e)
{
    struct tally tallies[XIDS_MAX];
    int count = tally_xids(x, e->gpu->position, tallies), r = 0;

    if (!count)
        return add_count(x, f, e, x->wishes->xid_window_ns, "xid", NULL, 0);
    for (int i = 0; i < count && r == 0; i++) {
        char xid[32];

        snprintf(xid, sizeof(xid), "%lld", (long long)tallies[i].value);
        r = add_count(x, f, e, x->wishes->xid_window_ns, "xid", xid, tallies[i].count);
    }
    return r;
}

int expose_xid_counts(struct exposing *x, const struct counter *c)
{
    /* Each entity has at most one series for each incident, and one when there was none. */
    size_t room = x->entities.count *
                  (1 + (x->view->incident_count < XIDS_MAX ? x->view->incident_count
                                                           : (size_t)XIDS_MAX));
    struct family *f = family_begin(x, c->name, c->help, c->type, room);
    int r = f ? 0 : -ENOMEM;

    for (size_t i = 0; i < x->entities.count && r == 0; i++)
        r = add_xid_counts(x, f, &x->entities.items[i]);
    if (r == 0)
        family_end(x, f);
    return r;
}

/* --- clock events ---------------------------------------------------------------------------- */

/* The reasons that held at `at_ns`: what the last change said, or what the next one says was before it. */
static int64_t reasons_at(const struct exposing *x, const struct entity *e, int64_t at_ns)
{
    const struct incident *next = NULL;
    int64_t reasons = 0;

    for (size_t i = x->view->incident_count; i-- > 0;) {
        const struct incident *in = &x->view->incidents[i];

        if (in->kind != INCIDENT_CLOCKS || in->gpu != e->gpu->position)
            continue;
        if (in->at_ns <= at_ns)
            return in->value;
        next = in;
    }
    if (next)
        return next->before;
    return entity_read(e, METRIC_THROTTLE_REASONS, &reasons) == 0 ? reasons : 0;
}

static int add_clock_events(struct exposing *x, struct family *f, const struct entity *e)
{
    int64_t counts[CLOCK_EVENTS] = { 0 }, now = x->view->now_ns, step = x->wishes->sample_ns;
    bool any = false;
    int r = 0;

    for (int64_t at = now - now % step; at >= 0 && at > now - x->wishes->clock_window_ns;
         at -= step) {
        int64_t reasons = reasons_at(x, e, at);

        for (int bit = 0; bit < CLOCK_EVENTS; bit++)
            counts[bit] += reasons >> bit & 1;
    }
    for (int bit = 0; bit < CLOCK_EVENTS && r == 0; bit++)
        if (counts[bit]) {
            any = true;
            r = add_count(x, f, e, x->wishes->clock_window_ns, "clock_event", clock_events[bit],
                          counts[bit]);
        }
    return any ? r : add_count(x, f, e, x->wishes->clock_window_ns, "clock_event", NULL, 0);
}

int expose_clock_events(struct exposing *x, const struct counter *c)
{
    struct family *f = family_begin(x, c->name, c->help, c->type,
                                    x->entities.count * (CLOCK_EVENTS + 1));
    int r = f ? 0 : -ENOMEM;

    for (size_t i = 0; i < x->entities.count && r == 0; i++)
        r = add_clock_events(x, f, &x->entities.items[i]);
    if (r == 0)
        family_end(x, f);
    return r;
}
