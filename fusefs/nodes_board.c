/*
 * Board nodes: tables of a GPU that are no single value: what its board carries, the clocks it can be
 * set to, its NVLinks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>

#include "fusefs/nodes.h"
#include "fusefs/pci.h"

/* --- facts ----------------------------------------------------------------------------------- */

static void add_fact(struct text *out, const char *name, int64_t value)
{
    text_addf(out, "%s %" PRId64 "\n", name, value);
}

/* `name value` lines; 0 where it has none. */
static int show_board(const struct node_ctx *cx, struct text *out)
{
    const struct gpu_model *m = cx->model;

    text_addf(out, "addressing_mode %s\n", *m->addressing_mode ? m->addressing_mode : "none");
    text_addf(out, "memory_type %s\n", *m->memory.type ? m->memory.type : "-");
    add_fact(out, "fans", m->fan.count);
    add_fact(out, "fan_min_percent", m->fan.min_percent / unit_parts(UNIT_PERCENT));
    add_fact(out, "fan_max_rpm", m->fan.count ? m->fan.max_rpm : 0);
    add_fact(out, "clock_offsets", m->clocks.offsets);
    add_fact(out, "sm_offset_min_mhz", m->clocks.offsets ? SM_OFFSET_MIN_KHZ / 1000 : 0);
    add_fact(out, "sm_offset_max_mhz", m->clocks.offsets ? SM_OFFSET_MAX_KHZ / 1000 : 0);
    add_fact(out, "memory_offset_min_mhz", m->clocks.offsets ? MEMORY_OFFSET_MIN_KHZ / 1000 : 0);
    add_fact(out, "memory_offset_max_mhz", m->clocks.offsets ? MEMORY_OFFSET_MAX_KHZ / 1000 : 0);
    add_fact(out, "encoders", m->engines.encoders);
    add_fact(out, "decoders", m->engines.decoders);
    add_fact(out, "jpeg_decoders", m->engines.jpeg);
    add_fact(out, "ofa_engines", m->engines.ofa);
    add_fact(out, "copy_engines", m->engines.copy);
    add_fact(out, "profiling", m->profiling);
    add_fact(out, "c2c", m->c2c);
    add_fact(out, "idle_pstate", m->idle_pstate);
    add_fact(out, "pcie_generation_device", m->pci.device_generation);
    add_fact(out, "pci_class", m->pci.class);
    add_fact(out, "temperature_margins", m->thermal.margin_based);
    add_fact(out, "ecc_default", m->ecc.on_by_default);
    add_fact(out, "page_retirement", m->ecc.page_retirement);
    add_fact(out, "row_remap_banks", m->ecc.row_remap_banks);
    add_fact(out, "nvlink_version", m->nvlink.version);
    add_fact(out, "nvlink_links", m->nvlink.links);
    add_fact(out, "module_power_min_mw", m->module_power.min_mw);
    add_fact(out, "module_power_max_mw", m->module_power.max_mw);
    add_fact(out, "numa_node", cx->plan->numa_node);
    add_fact(out, "module_id", cx->plan->module_id);
    add_fact(out, "irq", pci_irq(cx));
    return 0;
}

/* --- clocks ---------------------------------------------------------------------------------- */

/* SM clocks go from the highest down by steps; each memory clock goes with all of them. */
static int show_supported_clocks(const struct node_ctx *cx, struct text *out)
{
    const struct model_clocks *c = &cx->model->clocks;

    text_add(out, "# memory_mhz sm_min_khz sm_max_khz sm_step_khz sm_base_khz\n");
    for (int i = 0; i < c->memory.count; i++)
        text_addf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                  c->memory.items[i] / 1000, c->sm.min_khz, c->sm.max_khz, c->sm.step_khz,
                  c->sm.base_khz);
    return 0;
}

/* --- NVLink ---------------------------------------------------------------------------------- */

static bool has_nvlink(const struct node_ctx *cx)
{
    return cx->model->nvlink.links > 0;
}

static void add_peer(struct text *out, const struct node_ctx *cx, const struct link_plan *link)
{
    static const char *const kinds[] = {
        [LINK_NONE] = "-", [LINK_GPU] = "gpu", [LINK_SWITCH] = "switch"
    };
    const struct gpu_plan *peer = link->peer == LINK_GPU
                                      ? &world_gpu_plans(cx->world)[link->peer_gpu]
                                      : NULL;

    text_addf(out, " %s %d %d ", kinds[link->peer], link->peer == LINK_NONE ? -1 : link->peer_gpu,
              link->peer_link);
    if (peer)
        text_addf(out, "%08X:%02X:%02X.%X", peer->domain, peer->bus, peer->device, peer->function);
    else
        text_add(out, "-");
}

static int show_nvlinks(const struct node_ctx *cx, struct text *out)
{
    const struct model_nvlink *n = &cx->model->nvlink;

    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    text_add(out,
             "# link up bytes_per_second peer peer_number peer_link peer_bus_id tx_bytes rx_bytes "
             "crc_flit crc_data replay recovery\n");
    for (int l = 0; l < n->links && l < NVLINK_LINKS_MAX; l++) {
        const struct link *state = &cx->g->links[l];
        const struct link_plan *link = &cx->plan->links[l];

        text_addf(out, "%d %d %" PRId64, l, link->peer != LINK_NONE && !state->down_until_ns,
                  n->link_bytes_per_second);
        add_peer(out, cx, link);
        text_addf(out, " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
                  state->tx_bytes, state->rx_bytes, state->crc_flit, state->crc_data, state->replay,
                  state->recovery);
    }
    return 0;
}

/* clang-format off */
const struct node_def board_nodes[] = {
    { "gpus/%i/board", 0444, show_board, NULL, 0, 0, NULL },
    { "gpus/%i/supported_clocks", 0444, show_supported_clocks, NULL, 0, 0, NULL },
    { "gpus/%i/nvlinks", 0444, show_nvlinks, NULL, 0, 0, has_nvlink },
    { 0 },
};
/* clang-format on */
