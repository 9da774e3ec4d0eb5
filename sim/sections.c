/*
 * Sections: taking pieces out of a world and filling its pools. See sections.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sections.h"

void section_cut_signals(struct world *w, uint32_t first, uint32_t n)
{
    struct workload *workloads = world_workloads(w);

    SECTION_CUT(w, SIGNALS, signals, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_PHASES]; k++)
        section_shift(&world_phases(w)[k].first, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++) {
        section_shift(&workloads[k].first_signal, first, n);
        if (workloads[k].memory_signal > (int32_t)first)
            workloads[k].memory_signal -= (int32_t)n;
    }
    section_shift(&w->node_plan.first_signal, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_PROFILES]; k++)
        section_shift(&world_profiles(w)[k].first_pin, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_GPU_PLANS]; k++)
        section_shift(&world_gpu_plans(w)[k].first_pin, first, n);
}

void section_cut_phases(struct world *w, uint32_t first, uint32_t n)
{
    SECTION_CUT(w, PHASES, phases, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_SIGNALS]; k++)
        section_shift(&world_signals(w)[k].first, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++)
        section_shift(&world_workloads(w)[k].first_phase, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++)
        section_shift(&world_runs(w)[k].phase, first, n);
    section_shift(&w->node_plan.first_phase, first, n);
}

struct signal_fill section_fill(struct world *w)
{
    return (struct signal_fill){ world_signals(w), world_phases(w), w->used[SECTION_SIGNALS],
                                 w->used[SECTION_PHASES] };
}

void section_filled(struct world *w, const struct signal_fill *fill)
{
    w->used[SECTION_SIGNALS] = fill->signal_count;
    w->used[SECTION_PHASES] = fill->phase_count;
}
