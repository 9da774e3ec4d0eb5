/*
 * Tuning nodes: control files for what an operator sets on a board beyond its modes: fans, clock
 * offsets, counters to be cleared or frozen, draining.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fusefs/nodes.h"

/* --- fans ------------------------------------------------------------------------------------ */

static int show_fan(const struct node_ctx *cx, struct text *out)
{
    int64_t percent = cx->g->settings.fan_percent;

    if (!cx->model->fan.count)
        return -ENODATA;
    if (!percent) {
        text_add(out, "auto\n");
        return 0;
    }
    unit_show(out, UNIT_PERCENT, percent);
    text_add(out, "\n");
    return 0;
}

static int store_fan(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t percent = 0;
    int r = strcmp(text, "auto") ? unit_parse(UNIT_PERCENT, text, UNIT_BARE_SHOWN, &percent, why)
                                 : 0;

    if (r == 0 && !percent && strcmp(text, "auto"))
        percent = -1; /* a fan that is told to stand still: refused with its range */
    return r < 0 ? r : sim_set_fan(cx->sim, cx->gpu, percent, why);
}

/* --- clocks ---------------------------------------------------------------------------------- */

static int show_clock_offsets(const struct node_ctx *cx, struct text *out)
{
    const struct gpu_settings *s = &cx->g->settings;

    if (!cx->model->clocks.offsets)
        return -ENODATA;
    text_addf(out, "%" PRId64 " %" PRId64 "\n", s->sm_offset_khz / 1000,
              s->memory_offset_khz / 1000);
    return 0;
}

/* "100 -500": SM, then memory, in MHz. */
static int store_clock_offsets(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t sm = 0, memory = 0;
    char more;

    if (strcmp(text, "off") &&
        sscanf(text, "%9" SCNd64 " %9" SCNd64 " %c", &sm, &memory, &more) != 2)
        return why_set(why, EINVAL, "'%s' are no clock offsets; allowed: SM MEMORY in MHz, or off",
                       text);
    return sim_set_clock_offsets(cx->sim, cx->gpu, sm * 1000, memory * 1000, why);
}

/* --- counters -------------------------------------------------------------------------------- */

static int show_ecc_errors(const struct node_ctx *cx, struct text *out)
{
    const int64_t *v = cx->g->sample.value;

    if (!cx->model->ecc.supported || !cx->g->settings.ecc_mode)
        return -ENODATA;
    text_addf(out,
              "volatile sbe %" PRId64 " dbe %" PRId64 "\naggregate sbe %" PRId64 " dbe %" PRId64
              "\n",
              v[METRIC_ECC_SBE_VOLATILE_TOTAL], v[METRIC_ECC_DBE_VOLATILE_TOTAL],
              v[METRIC_ECC_SBE_AGGREGATE_TOTAL], v[METRIC_ECC_DBE_AGGREGATE_TOTAL]);
    return 0;
}

static int store_ecc_errors(const struct node_ctx *cx, const char *text, struct why *why)
{
    bool aggregate = !strcmp(text, "clear aggregate");

    if (!aggregate && strcmp(text, "clear volatile"))
        return why_set(why, EINVAL,
                       "'%s' is nothing to do with ECC errors; allowed: clear volatile, clear "
                       "aggregate",
                       text);
    return sim_clear_ecc(cx->sim, cx->gpu, aggregate, why);
}

static bool has_nvlink(const struct node_ctx *cx)
{
    return cx->model->nvlink.links > 0;
}

static int show_nvlink_counters(const struct node_ctx *cx, struct text *out)
{
    text_add(out, "# link counter tx_bytes rx_bytes frozen unit filter\n");
    for (int l = 0; l < cx->model->nvlink.links; l++)
        for (int s = 0; s < LINK_COUNTERS; s++) {
            const struct link *link = &cx->g->links[l];
            const struct link_counter *c = &link->counters[s];
            uint64_t tx, rx;

            link_counter_read(link, s, &tx, &rx);
            text_addf(out, "%d %d %" PRIu64 " %" PRIu64 " %d %d %" PRIu32 "\n", l, s, tx, rx,
                      c->frozen, c->unit, c->filter);
        }
    return 0;
}

static int store_nvlink_counters(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_link_counters(cx->sim, cx->gpu, text, why);
}

/* --- draining -------------------------------------------------------------------------------- */

static int show_drain(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->g->settings.draining);
    return 0;
}

static int store_drain(const struct node_ctx *cx, const char *text, struct why *why)
{
    bool on = !strcmp(text, "1") || !strcasecmp(text, "on");

    if (!on && strcmp(text, "0") && strcasecmp(text, "off"))
        return why_set(why, EINVAL, "'%s' is neither on nor off; allowed: 0, 1, off, on", text);
    return sim_set_draining(cx->sim, cx->gpu, on, why);
}

/* clang-format off */
#define TUNING_ROW(name, fn, exists) { "gpus/%i/control/" name, 0644, show_##fn, store_##fn, 0, NODE_CONTROL, exists }

const struct node_def tuning_nodes[] = {
    TUNING_ROW("fan_speed_percent", fan, NULL),
    TUNING_ROW("clock_offsets", clock_offsets, NULL),
    TUNING_ROW("ecc_errors", ecc_errors, NULL),
    TUNING_ROW("nvlink_counters", nvlink_counters, has_nvlink),
    TUNING_ROW("drain", drain, NULL),
    { 0 },
};
/* clang-format on */
