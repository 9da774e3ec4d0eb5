/*
 * Link counters: see link_counters.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/link_counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/gpu.h"
#include "sim/why.h"

enum { UNIT_LAST = 3, FILTER_LAST = 255 };

void link_counter_read(const struct link *link, int set, uint64_t *tx_bytes, uint64_t *rx_bytes)
{
    const struct link_counter *c = &link->counters[set];

    *tx_bytes = c->frozen ? c->tx_bytes : link->tx_bytes - c->tx_bytes;
    *rx_bytes = c->frozen ? c->rx_bytes : link->rx_bytes - c->rx_bytes;
}

/* A counter, its link, and the numbers behind them. */
struct target {
    struct link *link;
    struct link_counter *counter;
    int64_t unit, filter;
};

static void clear_errors(struct link *link)
{
    link->crc_flit = link->crc_data = link->replay = link->recovery = 0;
}

static void clear_traffic(struct target *t)
{
    t->counter->tx_bytes = t->counter->frozen ? 0 : t->link->tx_bytes;
    t->counter->rx_bytes = t->counter->frozen ? 0 : t->link->rx_bytes;
}

/* Turns the zero into where it stands, and back: both ways it is the difference to the link. */
static void set_frozen(struct target *t, bool frozen)
{
    if (t->counter->frozen == frozen)
        return;
    t->counter->tx_bytes = t->link->tx_bytes - t->counter->tx_bytes;
    t->counter->rx_bytes = t->link->rx_bytes - t->counter->rx_bytes;
    t->counter->frozen = frozen;
}

static void freeze(struct target *t)
{
    set_frozen(t, true);
}

static void unfreeze(struct target *t)
{
    set_frozen(t, false);
}

static void control(struct target *t)
{
    t->counter->unit = (uint8_t)t->unit;
    t->counter->filter = (uint32_t)t->filter;
}

static const struct {
    const char *words;
    int numbers; /* behind them */
    void (*apply)(struct target *t);
} verbs[] = {
    { "clear traffic", 2, clear_traffic },
    { "freeze", 2, freeze },
    { "unfreeze", 2, unfreeze },
    { "control", 4, control },
};

/* The numbers behind `words`; -1 when the text does not begin with them or is no list of numbers. */
static int numbers_behind(const char *text, const char *words, int64_t *numbers, int most)
{
    size_t length = strlen(words);
    int n = 0, used = 0;

    if (strncmp(text, words, length) || (text[length] && text[length] != ' '))
        return -1;
    for (text += length; n < most && sscanf(text, " %9" SCNd64 "%n", &numbers[n], &used) == 1; n++)
        text += used;
    return text[strspn(text, " ")] ? -1 : n;
}

static int check_range(const char *what, int64_t value, int64_t last, struct why *why)
{
    return value < 0 || value > last
               ? why_set(why, ERANGE, "%s %" PRId64 " is out of range; allowed: 0 to %" PRId64,
                         what, value, last)
               : 0;
}

static int apply_errors(struct gpu *g, const struct gpu_model *m, int count, int64_t link,
                        struct why *why)
{
    int r = count ? check_range("link", link, m->nvlink.links - 1, why) : 0;

    for (int64_t l = 0; r == 0 && l < m->nvlink.links; l++)
        if (!count || l == link)
            clear_errors(&g->links[l]);
    return r;
}

int link_counters_apply(struct gpu *g, const struct gpu_model *m, const char *text, struct why *why)
{
    int64_t numbers[4] = { 0 };
    int n;

    if (!m->nvlink.links)
        return why_set(why, EOPNOTSUPP, "%s has no NVLink", m->name);
    n = numbers_behind(text, "clear errors", numbers, 1);
    if (n >= 0)
        return apply_errors(g, m, n, numbers[0], why);
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        struct target t;
        int r;

        if (numbers_behind(text, verbs[v].words, numbers, 4) != verbs[v].numbers)
            continue;
        r = check_range("link", numbers[0], m->nvlink.links - 1, why);
        if (r == 0)
            r = check_range("counter", numbers[1], LINK_COUNTERS - 1, why);
        if (r == 0)
            r = check_range("unit", numbers[2], UNIT_LAST, why);
        if (r == 0)
            r = check_range("filter", numbers[3], FILTER_LAST, why);
        if (r < 0)
            return r;
        t = (struct target){ .link = &g->links[numbers[0]],
                             .unit = numbers[2],
                             .filter = numbers[3] };
        t.counter = &t.link->counters[numbers[1]];
        verbs[v].apply(&t);
        return 0;
    }
    return why_set(
        why, EINVAL,
        "'%s' is nothing to do with NVLink counters; allowed: clear errors [LINK], clear "
        "traffic LINK COUNTER, freeze LINK COUNTER, unfreeze LINK COUNTER, control LINK "
        "COUNTER UNIT FILTER",
        text);
}
