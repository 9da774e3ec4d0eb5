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

    if (!n)
        return;
    SECTION_CUT(w, SIGNALS, signals, first, n);
    for (uint32_t k = w->used[SECTION_PHASES]; k-- > 0 && phases[k].first > first;) {
        phases[k].first -= n;
        world_touch(w, SECTION_PHASES, k, 1);
    }
    for (uint32_t k = w->used[SECTION_WORKLOADS]; k-- > 0 && workloads[k].first_signal > first;) {
        workloads[k].first_signal -= n;
        if (workloads[k].memory_signal >= 0)
            workloads[k].memory_signal -= (int32_t)n;
        world_touch(w, SECTION_WORKLOADS, k, 1);
    }
    if (!section_shift(&w->node_plan.first_signal, first, n))
        return; /* pins are one piece: they all lie before it */
    for (uint32_t k = 0; k < w->used[SECTION_PROFILES]; k++)
        section_shift(&world_profiles(w)[k].first_pin, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_GPU_PLANS]; k++)
        section_shift(&world_gpu_plans(w)[k].first_pin, first, n);
    world_touch(w, SECTION_PROFILES, 0, w->used[SECTION_PROFILES]);
    world_touch(w, SECTION_GPU_PLANS, 0, w->used[SECTION_GPU_PLANS]);
}

void section_cut_phases(struct world *w, uint32_t first, uint32_t n)
{
    struct workload *workloads = world_workloads(w);
    struct signal *pins = &world_signals(w)[w->node_plan.first_signal];

    if (!n)
        return;
    SECTION_CUT(w, PHASES, phases, first, n);
    for (uint32_t k = 0; k < w->node_plan.signal_count; k++)
        if (section_shift(&pins[k].first, first, n)) /* only pins are timelines */
            world_touch(w, SECTION_SIGNALS, w->node_plan.first_signal + k, 1);
    for (uint32_t k = w->used[SECTION_WORKLOADS]; k-- > 0 && workloads[k].first_phase > first;) {
        workloads[k].first_phase -= n;
        section_shift(&world_runs(w)[k].phase, first, n);
        world_touch(w, SECTION_WORKLOADS, k, 1);
        world_touch(w, SECTION_RUNS, k, 1);
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
