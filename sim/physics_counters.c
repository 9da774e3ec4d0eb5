/*
 * Physics: what adds up: violations, traffic of links, errors. See physics.h and physics_chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics_chain.h"

/* A counter that cannot be pinned. */
static void count(struct gpu *g, enum metric id, int64_t more)
{
    g->sample.value[id] += more;
}

void step_violations(struct chain *c)
{
    static const struct {
        enum metric metric;
        int64_t reasons;
    } rows[] = {
        { METRIC_VIOLATION_POWER, THROTTLE_POWER_CAP | THROTTLE_POWER_BRAKE },
        { METRIC_VIOLATION_THERMAL, THROTTLE_SW_THERMAL | THROTTLE_HW_THERMAL },
        { METRIC_VIOLATION_SYNC_BOOST, THROTTLE_SYNC_BOOST },
        { METRIC_VIOLATION_LOW_UTILIZATION, THROTTLE_IDLE },
        { METRIC_VIOLATION_APPLICATION_CLOCKS, THROTTLE_APPLICATION_CLOCKS },
        { METRIC_THROTTLE_POWER_CAP, THROTTLE_POWER_CAP },
        { METRIC_THROTTLE_SYNC_BOOST, THROTTLE_SYNC_BOOST },
        { METRIC_THROTTLE_SW_THERMAL, THROTTLE_SW_THERMAL },
        { METRIC_THROTTLE_HW_THERMAL, THROTTLE_HW_THERMAL },
        { METRIC_THROTTLE_POWER_BRAKE, THROTTLE_POWER_BRAKE },
    };

    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        if (c->reasons & rows[k].reasons)
            count(c->g, rows[k].metric, c->st->dt_ns);
    if (!c->idle && c->g->sample.value[METRIC_CLOCK_SM] < c->m->clocks.sm.base_khz)
        count(c->g, METRIC_VIOLATION_BASE_CLOCKS, c->st->dt_ns);
}

static int links_up(const struct gpu *g, const struct gpu_plan *plan)
{
    int up = 0;

    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        up += plan->links[l].peer != LINK_NONE && !g->links[l].down_until_ns;
    return up;
}

void step_links(struct chain *c)
{
    struct gpu *g = c->g;
    int up = links_up(g, c->plan);
    double most = (double)up * (double)c->m->nvlink.link_bytes_per_second;
    int64_t tx, rx, flit = 0, data = 0, replay = 0, recovery = 0;

    put_real(g, METRIC_NVLINK_TX, fmin((double)g->sample.value[METRIC_NVLINK_TX], most));
    put_real(g, METRIC_NVLINK_RX, fmin((double)g->sample.value[METRIC_NVLINK_RX], most));
    tx = up ? g->sample.value[METRIC_NVLINK_TX] : 0;
    rx = up ? g->sample.value[METRIC_NVLINK_RX] : 0;
    g->sample.value[METRIC_NVLINK_LINKS_ACTIVE_COUNT] = up;
    g->sample.value[METRIC_NVLINK_BANDWIDTH_TOTAL] = tx + rx;
    g->sample.value[METRIC_NVLINK_BANDWIDTH_L0] = up && c->plan->links[0].peer &&
                                                          !g->links[0].down_until_ns
                                                      ? (tx + rx) / up
                                                      : 0;
    for (int l = 0; l < c->m->nvlink.links; l++) {
        struct link *link = &g->links[l];

        if (up && c->plan->links[l].peer != LINK_NONE && !link->down_until_ns) {
            link->tx_bytes += (uint64_t)((double)tx / up * c->dt_s);
            link->rx_bytes += (uint64_t)((double)rx / up * c->dt_s);
        }
        flit += link->crc_flit;
        data += link->crc_data;
        replay += link->replay;
        recovery += link->recovery;
    }
    count(g, METRIC_NVLINK_TX_BYTES_TOTAL, llround((double)tx * c->dt_s));
    count(g, METRIC_NVLINK_RX_BYTES_TOTAL, llround((double)rx * c->dt_s));
    put(g, METRIC_NVLINK_CRC_FLIT_ERROR_TOTAL, flit);
    put(g, METRIC_NVLINK_CRC_DATA_ERROR_TOTAL, data);
    put(g, METRIC_NVLINK_REPLAY_ERROR_TOTAL, replay);
    put(g, METRIC_NVLINK_RECOVERY_ERROR_TOTAL, recovery);
}

void step_reliability(struct chain *c)
{
    int64_t *v = c->g->sample.value;
    int64_t banks = c->m->ecc.row_remap_banks;
    int64_t rows = v[METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL] +
                   v[METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL];
    int64_t none = banks && v[METRIC_REMAPPED_ROWS_FAILURE] ? 1 : 0;

    if (rows > banks - none)
        rows = banks - none;
    v[METRIC_ECC_SBE_AGGREGATE_TOTAL] = c->g->ecc_sbe_before + v[METRIC_ECC_SBE_VOLATILE_TOTAL];
    v[METRIC_ECC_DBE_AGGREGATE_TOTAL] = c->g->ecc_dbe_before + v[METRIC_ECC_DBE_VOLATILE_TOTAL];
    /* Every remapped row takes one spare of a bank of its own, until a bank has none left. */
    v[METRIC_REMAP_BANKS_NONE_COUNT] = none;
    v[METRIC_REMAP_BANKS_HIGH_COUNT] = rows;
    v[METRIC_REMAP_BANKS_MAX_COUNT] = banks - rows - none;
    v[METRIC_RECOVERY_ACTION] = gpu_has(c->g, CONDITION_LOST) ? 2
                                : gpu_has(c->g, CONDITION_HANG) ||
                                        v[METRIC_REMAPPED_ROWS_PENDING] ||
                                        v[METRIC_RETIRED_PAGES_PENDING]
                                    ? 1
                                    : 0;
}
