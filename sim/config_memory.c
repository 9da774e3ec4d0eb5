/*
 * Config: whether what runs fits into the memory of its GPUs. See config_memory.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_memory.h"

#include <errno.h>
#include <inttypes.h>

/* The most memory that a workload is sure to ask for: what functions come to is not known before. */
static double sure_memory(const struct workload_spec *w)
{
    const struct phase_spec *phases = w->activity.items;
    const struct signal_spec *memory = w->memory.items;
    double most = 0;

    if (w->memory.count && memory->signal.kind == SIGNAL_CONSTANT && !memory->signal.share)
        most = memory->signal.p[0];
    for (size_t i = 0; i < w->activity.count; i++) {
        const struct signal_spec *signals = phases[i].signals.items;

        for (size_t j = 0; j < phases[i].signals.count; j++)
            if (signals[j].signal.target == CHANNEL_MEMORY && !signals[j].signal.share &&
                signals[j].signal.kind == SIGNAL_CONSTANT && signals[j].signal.p[0] > most)
                most = signals[j].signal.p[0];
    }
    return most;
}

/* What a workload may use of a GPU. */
static int64_t usable_bytes(const struct gpu_entry *e)
{
    return e->memory_bytes - e->model->memory.reserved_bytes;
}

static bool fits(const struct gpu_entry *e, double wanted)
{
    return wanted <= (double)usable_bytes(e);
}

static void add_misfit(struct text *out, const struct resolver *r, const struct gpu_entry *e,
                       double wanted)
{
    text_addf(out, "%.0fMiB do not fit on GPU %td (%s), which has %" PRId64 "MiB for workloads",
              wanted / 0x1p20, e - r->entries, e->model->name, usable_bytes(e) >> 20);
}

int check_own_memory(struct resolver *r, const struct gpu_entry *e)
{
    double wanted = sure_memory(&e->spec.workload);
    struct text misfit = TEXT_INIT;
    int result;

    if (fits(e, wanted))
        return 0;
    add_misfit(&misfit, r, e, wanted);
    result = refuse_own_memory(r, ENOSPC, e, "%s", text_str(&misfit));
    text_release(&misfit);
    return result;
}

int check_workload_memory(struct resolver *r, size_t i, int first, int behind)
{
    const struct workload_spec *w = (const struct workload_spec *)r->cfg->workloads.items + i;
    double wanted = sure_memory(w);
    struct text misfit = TEXT_INIT;
    int result;

    while (first < behind && fits(&r->entries[first], wanted))
        first++;
    if (first == behind)
        return 0;
    add_misfit(&misfit, r, &r->entries[first], wanted);
    result = refuse_item(r, ENOSPC, "workloads", i, &w->head, "memory", NO_ITEM, "%s",
                         text_str(&misfit));
    text_release(&misfit);
    return result;
}
