/*
 * Physics: what keeps a GPU busy: engines, memory, traffic. See physics.h and physics_chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics_chain.h"

#include <string.h>

void load_derive(const struct physics *p, const struct gpu_model *m, bool several_gpus,
                 struct load *load)
{
    double *v = load->channel;
    double pcie = (double)pcie_bytes_per_second(m->pci.generation, m->pci.width);
    double nvlink = several_gpus ? (double)model_nvlink_bytes_per_second(m) : 0;
    double u, sm;

#define DERIVE(id, value)              \
    do {                               \
        if (isnan(v[CHANNEL_##id]))    \
            v[CHANNEL_##id] = (value); \
    } while (0)
    DERIVE(UTILIZATION, 0);
    u = v[CHANNEL_UTILIZATION];
    DERIVE(SM_ACTIVE, u * p->sm_active_per_utilization);
    sm = v[CHANNEL_SM_ACTIVE];
    DERIVE(OCCUPANCY, sm * p->occupancy_per_sm_active);
    DERIVE(TENSOR, m->tensor_cores ? sm * p->tensor_per_sm_active : 0);
    DERIVE(FP64, sm * p->fp64_per_sm_active);
    DERIVE(FP32, sm * p->fp32_per_sm_active);
    DERIVE(FP16, sm * p->fp16_per_sm_active);
    DERIVE(INTEGER, sm * p->integer_per_sm_active);
    DERIVE(MEMORY_UTILIZATION, u * p->memory_per_utilization);
    DERIVE(ENCODER, 0);
    DERIVE(DECODER, 0);
    DERIVE(JPEG, 0);
    DERIVE(OFA, 0);
    DERIVE(PCIE_TX, u / 100e3 * p->pcie_tx_per_utilization * pcie);
    DERIVE(PCIE_RX, u / 100e3 * p->pcie_rx_per_utilization * pcie);
    DERIVE(NVLINK_TX, u / 100e3 * p->nvlink_per_utilization * nvlink);
    DERIVE(NVLINK_RX, u / 100e3 * p->nvlink_per_utilization * nvlink);
    DERIVE(MEMORY, 0);
#undef DERIVE
}

/* A utilization dictated from outside: what runs is scaled to it; where nothing runs, it is worked out. */
static void follow_dictated_utilization(struct chain *c, struct load *load)
{
    double wanted = (double)c->g->sample.value[METRIC_UTILIZATION_GPU];
    double memory = load->channel[CHANNEL_MEMORY], has = load->channel[CHANNEL_UTILIZATION];

    if (has > 0) {
        for (int k = 0; k < CHANNEL_COUNT; k++)
            load->channel[k] *= wanted / has;
    } else {
        for (int k = 0; k < CHANNEL_COUNT; k++)
            load->channel[k] = NAN;
        load->channel[CHANNEL_UTILIZATION] = wanted;
        load_derive(c->p, c->m, false, load);
    }
    load->channel[CHANNEL_MEMORY] = memory;
}

/* Engines seem busy, but nothing moves. */
static void hang_load(struct load *load)
{
    double memory = load->channel[CHANNEL_MEMORY];

    memset(load, 0, sizeof(*load));
    load->channel[CHANNEL_UTILIZATION] = 100e3;
    load->channel[CHANNEL_MEMORY] = memory;
}

static void put_percent(struct chain *c, enum metric id, double parts)
{
    put_real(c->g, id, clamp(parts, 0, 100e3));
}

/* The same activity as DCGM's ratio: 1/1000 percent are 1/100000, a ratio has 1/1000000. */
static void put_ratio(struct chain *c, enum metric id, double percent_parts)
{
    put_real(c->g, id, clamp(percent_parts, 0, 100e3) * 10);
}

/* Bytes per second, as far as the link carries them. */
static void put_traffic(struct chain *c, enum metric id, double wanted)
{
    put_real(c->g, id, clamp(wanted, 0, gpu_metric_limit(c->st->world, c->i, id)));
}

static void step_memory(struct chain *c, double wanted)
{
    struct gpu *g = c->g;
    int64_t capacity = gpu_memory_capacity(c->plan, c->m), used;

    put_real(g, METRIC_MEMORY_USED, clamp(wanted, 0, (double)capacity));
    /* What was dictated may have been more than another configuration leaves. */
    if (g->sample.value[METRIC_MEMORY_USED] > capacity)
        g->sample.value[METRIC_MEMORY_USED] = capacity;
    used = g->sample.value[METRIC_MEMORY_USED];
    g->sample.value[METRIC_MEMORY_FREE] = capacity - used;
    g->sample.value[METRIC_MEMORY_USED_RATIO] = llround((double)used / (double)capacity * 1e6);
    g->sample.value[METRIC_BAR1_USED] = MIB;
    g->sample.value[METRIC_BAR1_FREE] = c->m->memory.bar1_bytes - MIB;
}

static void step_engines(struct chain *c, const double *v)
{
    put_percent(c, METRIC_UTILIZATION_GPU, v[CHANNEL_UTILIZATION]);
    put_percent(c, METRIC_UTILIZATION_MEMORY, v[CHANNEL_MEMORY_UTILIZATION]);
    put_percent(c, METRIC_UTILIZATION_ENCODER, v[CHANNEL_ENCODER]);
    put_percent(c, METRIC_UTILIZATION_DECODER, v[CHANNEL_DECODER]);
    put_percent(c, METRIC_UTILIZATION_JPEG, v[CHANNEL_JPEG]);
    put_percent(c, METRIC_UTILIZATION_OFA, v[CHANNEL_OFA]);
    put_ratio(c, METRIC_GR_ENGINE_ACTIVE, (double)c->g->sample.value[METRIC_UTILIZATION_GPU]);
    put_ratio(c, METRIC_SM_ACTIVE, v[CHANNEL_SM_ACTIVE]);
    put_ratio(c, METRIC_SM_OCCUPANCY, v[CHANNEL_OCCUPANCY]);
    put_ratio(c, METRIC_TENSOR_ACTIVE, v[CHANNEL_TENSOR]);
    put_ratio(c, METRIC_TENSOR_HMMA_ACTIVE, v[CHANNEL_TENSOR]);
    put_ratio(c, METRIC_TENSOR_IMMA_ACTIVE, 0);
    put_ratio(c, METRIC_TENSOR_DFMA_ACTIVE, 0);
    put_ratio(c, METRIC_DRAM_ACTIVE, (double)c->g->sample.value[METRIC_UTILIZATION_MEMORY]);
    put_ratio(c, METRIC_FP64_ACTIVE, v[CHANNEL_FP64]);
    put_ratio(c, METRIC_FP32_ACTIVE, v[CHANNEL_FP32]);
    put_ratio(c, METRIC_FP16_ACTIVE, v[CHANNEL_FP16]);
    put_ratio(c, METRIC_INTEGER_ACTIVE, v[CHANNEL_INTEGER]);
}

void step_activity(struct chain *c)
{
    double idle = (double)c->p->pcie_idle_bytes_per_second;
    struct load load = c->g->load;

    if (gpu_has(c->g, CONDITION_HANG))
        hang_load(&load);
    if (metric_mask_has(&c->g->pinned, METRIC_UTILIZATION_GPU))
        follow_dictated_utilization(c, &load);
    step_memory(c, load.channel[CHANNEL_MEMORY]);
    step_engines(c, load.channel);
    put_traffic(c, METRIC_PCIE_TX, idle + load.channel[CHANNEL_PCIE_TX]);
    put_traffic(c, METRIC_PCIE_RX, idle + load.channel[CHANNEL_PCIE_RX]);
    put_traffic(c, METRIC_NVLINK_TX, load.channel[CHANNEL_NVLINK_TX]);
    put_traffic(c, METRIC_NVLINK_RX, load.channel[CHANNEL_NVLINK_RX]);
    c->sm = share_of(c->g, METRIC_SM_ACTIVE);
    c->tensor = share_of(c->g, METRIC_TENSOR_ACTIVE);
    c->memory = share_of(c->g, METRIC_DRAM_ACTIVE);
    c->video = (share_of(c->g, METRIC_UTILIZATION_ENCODER) +
                share_of(c->g, METRIC_UTILIZATION_DECODER)) /
               2;
}
