/*
 * Tuning: what an operator sets on a board beyond its modes: fans, clock offsets, counters, draining.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>

#include "sim/change.h"
#include "sim/link_counters.h"
#include "sim/why.h"

int sim_set_fan(struct sim *sim, int gpu, int64_t percent, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.m->fan.count)
        return why_set(why, EOPNOTSUPP, "GPU %d (%s) has no fan", gpu, c.m->name);
    if (percent && (percent < c.m->fan.min_percent || percent > 100000))
        return why_set(why, ERANGE, "a fan speed is %" PRId64 " to 100 percent, or auto",
                       c.m->fan.min_percent / 1000);
    c.g->settings.fan_percent = percent;
    return change_commit(sim, gpu, &c);
}

static int check_offset(const char *what, int64_t khz, int64_t low_khz, int64_t high_khz,
                        struct why *why)
{
    return khz < low_khz || khz > high_khz
               ? why_set(why, ERANGE, "an offset of the %s clock is %" PRId64 " to %" PRId64 " MHz",
                         what, low_khz / 1000, high_khz / 1000)
               : 0;
}

int sim_set_clock_offsets(struct sim *sim, int gpu, int64_t sm_khz, int64_t memory_khz,
                          struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.m->clocks.offsets)
        return why_set(why, EOPNOTSUPP, "GPU %d (%s) takes no clock offsets", gpu, c.m->name);
    r = check_offset("SM", sm_khz, SM_OFFSET_MIN_KHZ, SM_OFFSET_MAX_KHZ, why);
    if (r == 0)
        r = check_offset("memory", memory_khz, MEMORY_OFFSET_MIN_KHZ, MEMORY_OFFSET_MAX_KHZ, why);
    if (r < 0)
        return r;
    c.g->settings.sm_offset_khz = sm_khz;
    c.g->settings.memory_offset_khz = memory_khz;
    return change_commit(sim, gpu, &c);
}

int sim_clear_ecc(struct sim *sim, int gpu, bool aggregate, struct why *why)
{
    struct change c;
    int64_t *v;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.m->ecc.supported || !c.g->settings.ecc_mode)
        return why_set(why, EOPNOTSUPP, "GPU %d (%s) has no ECC, or it is off", gpu, c.m->name);
    v = c.g->sample.value;
    /* The aggregate is what was before and what is volatile: either goes, the other stays what it is. */
    if (aggregate) {
        c.g->ecc_sbe_before = -v[METRIC_ECC_SBE_VOLATILE_TOTAL];
        c.g->ecc_dbe_before = -v[METRIC_ECC_DBE_VOLATILE_TOTAL];
    } else {
        c.g->ecc_sbe_before += v[METRIC_ECC_SBE_VOLATILE_TOTAL];
        c.g->ecc_dbe_before += v[METRIC_ECC_DBE_VOLATILE_TOTAL];
        v[METRIC_ECC_SBE_VOLATILE_TOTAL] = v[METRIC_ECC_DBE_VOLATILE_TOTAL] = 0;
    }
    return change_commit(sim, gpu, &c);
}

int sim_link_counters(struct sim *sim, int gpu, const char *text, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r == 0)
        r = link_counters_apply(c.g, c.m, text, why);
    return r < 0 ? r : change_commit(sim, gpu, &c);
}

int sim_set_draining(struct sim *sim, int gpu, bool on, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    c.g->settings.draining = on;
    return change_commit(sim, gpu, &c);
}
