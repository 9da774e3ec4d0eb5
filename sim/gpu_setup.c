/*
 * Physics: a new GPU, and what is a fact of its model or a setting. See physics.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "sim/physics.h"
#include "sim/world.h"

static void keep(struct metric_mask *valid, enum metric id, bool has)
{
    if (has)
        metric_mask_add(valid, id);
    else
        metric_mask_drop(valid, id);
}

static bool has_instances(const struct gpu *g)
{
    for (int i = 0; i < MIG_GIS_MAX; i++)
        if (g->gis[i].used)
            return true;
    return false;
}

static void work_out_valid(struct gpu *g, const struct gpu_model *m)
{
    const struct gpu_settings *s = &g->settings;
    struct metric_mask *v = &g->sample.valid;
    bool ecc = m->ecc.supported && s->ecc_mode, link = m->nvlink.links > 0;

    memset(v, 0, sizeof(*v));
    for (int id = 0; id < METRIC_COUNT; id++)
        metric_mask_add(v, (enum metric)id);
    /* With MIG the engines belong to instances; the GPU as a whole has no utilization. */
    for (int id = METRIC_UTILIZATION_GPU; id <= METRIC_UTILIZATION_OFA; id++)
        keep(v, (enum metric)id, !s->mig_mode);
    /* Of the last two drivers tell since Turing. */
    for (int id = METRIC_UTILIZATION_JPEG; id <= METRIC_UTILIZATION_OFA; id++)
        keep(v, (enum metric)id, !s->mig_mode && strtod(m->compute_capability, NULL) >= 7.5);
    keep(v, METRIC_FAN_SPEED, m->fan.count > 0);
    keep(v, METRIC_TEMPERATURE_MEMORY, m->memory.temperature_sensor);
    keep(v, METRIC_TEMPERATURE_MEMORY_MAX,
         m->memory.temperature_sensor && m->thermal.memory_max_mc);
    keep(v, METRIC_TEMPERATURE_MARGIN, m->thermal.margin_based);
    keep(v, METRIC_ECC_MODE, m->ecc.supported);
    keep(v, METRIC_ECC_MODE_PENDING, m->ecc.supported);
    for (int id = METRIC_ECC_SBE_VOLATILE_TOTAL; id <= METRIC_ECC_DBE_AGGREGATE_TOTAL; id++)
        keep(v, (enum metric)id, ecc);
    for (int id = METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL; id <= METRIC_REMAP_BANKS_NONE_COUNT; id++)
        keep(v, (enum metric)id, m->ecc.row_remap_banks > 0);
    /* While instances have the memory, nothing is told of it but how many spare rows there are. */
    for (int id = METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL; id <= METRIC_REMAPPED_ROWS_FAILURE; id++)
        keep(v, (enum metric)id, m->ecc.row_remap_banks > 0 && !has_instances(g));
    for (int id = METRIC_RETIRED_PAGES_SBE_TOTAL; id <= METRIC_RETIRED_PAGES_PENDING; id++)
        keep(v, (enum metric)id, m->ecc.page_retirement);
    for (int id = METRIC_NVLINK_LINKS_ACTIVE_COUNT; id <= METRIC_NVLINK_RECOVERY_ERROR_TOTAL; id++)
        keep(v, (enum metric)id, link);
    for (int id = METRIC_GR_ENGINE_ACTIVE; id <= METRIC_INTEGER_ACTIVE; id++)
        keep(v, (enum metric)id, m->profiling);
    for (int id = METRIC_TENSOR_ACTIVE; id <= METRIC_TENSOR_DFMA_ACTIVE; id++)
        keep(v, (enum metric)id, m->profiling && m->tensor_cores);
    keep(v, METRIC_MIG_MODE, m->mig.count > 0);
}

void gpu_refresh_static(struct stepping *st, int i)
{
    const struct gpu_plan *plan = &world_gpu_plans(st->world)[i];
    const struct gpu_model *m = &world_models(st->world)[plan->model];
    struct gpu *g = &world_gpus(st->world)[i];
    const struct gpu_settings *s = &g->settings;
    int64_t *v = g->sample.value;

    work_out_valid(g, m);
    v[METRIC_MEMORY_TOTAL] = plan->memory_bytes;
    v[METRIC_MEMORY_RESERVED] = m->memory.reserved_bytes;
    v[METRIC_BAR1_TOTAL] = m->memory.bar1_bytes;
    v[METRIC_POWER_LIMIT] = v[METRIC_POWER_LIMIT_ENFORCED] = s->power_limit_mw;
    v[METRIC_POWER_LIMIT_DEFAULT] = m->power.default_mw;
    v[METRIC_POWER_LIMIT_MIN] = m->power.min_mw;
    v[METRIC_POWER_LIMIT_MAX] = m->power.max_mw;
    v[METRIC_TEMPERATURE_MAX_OPERATING] = m->thermal.max_operating_mc;
    v[METRIC_TEMPERATURE_MEMORY_MAX] = m->thermal.memory_max_mc;
    v[METRIC_TEMPERATURE_SLOWDOWN] = m->thermal.slowdown_mc;
    v[METRIC_TEMPERATURE_SHUTDOWN] = m->thermal.shutdown_mc;
    v[METRIC_CLOCK_SM_MAX] = v[METRIC_CLOCK_GRAPHICS_MAX] = m->clocks.sm.max_khz;
    v[METRIC_CLOCK_MEMORY_MAX] = m->clocks.memory.items[0];
    v[METRIC_CLOCK_VIDEO_MAX] = m->clocks.video.max_khz;
    v[METRIC_CLOCK_SM_APPLICATION] = s->sm_application_khz ? s->sm_application_khz
                                                           : m->clocks.sm.base_khz;
    v[METRIC_CLOCK_MEMORY_APPLICATION] = s->memory_application_khz ? s->memory_application_khz
                                                                   : m->clocks.memory.items[0];
    v[METRIC_PCIE_LINK_GENERATION_MAX] = m->pci.generation;
    v[METRIC_PCIE_LINK_WIDTH_MAX] = m->pci.width;
    v[METRIC_PERSISTENCE_MODE] = s->persistence_mode;
    v[METRIC_COMPUTE_MODE] = s->compute_mode;
    v[METRIC_ECC_MODE] = s->ecc_mode;
    v[METRIC_ECC_MODE_PENDING] = s->ecc_mode_pending;
    v[METRIC_MIG_MODE] = s->mig_mode;
    v[METRIC_VGPU_LICENSE_STATUS] = 0;
}

void gpu_init(struct stepping *st, int i)
{
    const struct gpu_plan *plan = &world_gpu_plans(st->world)[i];
    const struct gpu_model *m = &world_models(st->world)[plan->model];
    struct gpu *g = &world_gpus(st->world)[i];
    int64_t now_ns = st->world->node.now_ns;

    memset(g, 0, sizeof(*g));
    g->settings = plan->configured;
    g->rng = rng_seeded(st->world->node_plan.seed, plan->uuid);
    g->profile_since_ns = g->next_reading_ns = now_ns;
    g->idle_since_ns = now_ns - st->world->node_plan.physics.idle_delay_ns;
    g->clock_khz = (double)m->clocks.sm.idle_khz;
    gpu_cool_down(st, i);
    g->thermal_cap = 1;
    /* It starts in the state it idles in: no event says otherwise. */
    g->sample.value[METRIC_PSTATE] = m->idle_pstate;
    g->sample.value[METRIC_THROTTLE_REASONS] = THROTTLE_IDLE;
    gpu_refresh_static(st, i);
}
