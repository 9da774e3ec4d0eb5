/*
 * Sections: taking pieces out of a world and filling its pools. See sections.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sections.h"

/*
 * All is appended in order and stays so: what lies further back in a section refers further back. So
 * those that must follow are the last ones, and a cut near the end costs little.
 */
void section_cut_signals(struct world *w, uint32_t first, uint32_t n)
{
    struct phase *phases = world_phases(w);
    struct workload *workloads = world_workloads(w);

    SECTION_CUT(w, SIGNALS, signals, first, n);
    for (uint32_t k = w->used[SECTION_PHASES]; k-- > 0 && phases[k].first > first;)
        phases[k].first -= n;
    for (uint32_t k = w->used[SECTION_WORKLOADS]; k-- > 0 && workloads[k].first_signal > first;) {
        workloads[k].first_signal -= n;
        if (workloads[k].memory_signal >= 0)
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
    struct workload *workloads = world_workloads(w);
    struct signal *pins = &world_signals(w)[w->node_plan.first_signal];

    SECTION_CUT(w, PHASES, phases, first, n);
    for (uint32_t k = 0; k < w->node_plan.signal_count; k++)
        section_shift(&pins[k].first, first, n); /* only pins are timelines */
    for (uint32_t k = w->used[SECTION_WORKLOADS]; k-- > 0 && workloads[k].first_phase > first;) {
        workloads[k].first_phase -= n;
        section_shift(&world_runs(w)[k].phase, first, n);
    }
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
