/*
 * History nodes: what a GPU did in the last seconds, what each process keeps busy, and the accounts of
 * processes.
 *
 * Times here are microseconds since the epoch on the simulated clock, which began when the node was mounted:
 * so NVML's time stamps count.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fusefs/nodes.h"
#include "fusefs/process.h"
#include "fusefs/snapshot.h"

static int64_t time_us(const struct node_ctx *cx, int64_t now_ns)
{
    return (cx->host->start_real_ns + now_ns) / NS_PER_US;
}

/* --- samples --------------------------------------------------------------------------------- */

static void add_sample(struct text *out, uint32_t value)
{
    if (value == MOMENT_ABSENT)
        text_add(out, " -");
    else if (value == MOMENT_FAILED)
        text_add(out, " NaN");
    else
        text_addf(out, " %" PRIu32, value);
}

/* Oldest first. What this GPU does not have is a dash, a sensor that failed NaN. */
static int show_samples(const struct node_ctx *cx, struct text *out)
{
    uint32_t count = archive_moments(cx->g);

    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    text_add(out, "# time_us");
    for (int id = 0; id < SAMPLINGS; id++)
        text_addf(out, " %s", sampling_infos[id].column);
    text_add(out, "\n");
    for (uint32_t k = 0; k < count; k++) {
        const struct moment *m = archive_moment(cx->store, cx->g, k);

        text_addf(out, "%" PRId64, time_us(cx, m->time_ns));
        for (int id = 0; id < SAMPLINGS; id++)
            add_sample(out, m->value[id]);
        text_add(out, "\n");
    }
    return 0;
}

/* The same as a block of `history`, for the mock NVML. */
static int show_history(const struct node_ctx *cx, struct text *out)
{
    struct snapshot_history h = {
        .generation = cx->world->node.generation,
        .id = cx->plan->id,
        .epoch_ns = cx->host->start_real_ns,
        .count = archive_moments(cx->g),
    };

    for (uint32_t k = 0; k < h.count; k++)
        h.moments[k] = *archive_moment(cx->store, cx->g, k);
    text_addn(out, (const char *)&h, sizeof(h));
    return 0;
}

/* --- processes ------------------------------------------------------------------------------- */

static void add_percent(struct text *out, double stored)
{
    text_add(out, " ");
    unit_show(out, UNIT_PERCENT, llround(stored));
}

/* What each process keeps busy, in percent of the whole GPU. */
static int show_process_utilization(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;

    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    text_add(out, "# time_us pid gi ci sm_percent memory_percent encoder_percent decoder_percent "
                  "jpeg_percent ofa_percent\n");
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        if (share->gpu != cx->gpu || !world_share_runs(w, share))
            continue;
        text_addf(out, "%" PRId64 " %d", time_us(cx, w->node.now_ns),
                  process_id(&world_workloads(w)[share->run]));
        process_add_instance(out, share);
        add_percent(out, share->utilization_percent);
        for (int e = 0; e < SHARE_ENGINES; e++)
            add_percent(out, share->engines[e]);
        text_add(out, "\n");
    }
    return 0;
}

/* --- accounting ------------------------------------------------------------------------------ */

static void add_account(struct text *out, const struct node_ctx *cx, const struct account *a,
                        int pid)
{
    int64_t end_ns = a->end_ns ? a->end_ns : cx->world->node.now_ns;
    double lived_ns = (double)(end_ns - a->start_ns), parts = lived_ns > 0 ? 100 / lived_ns : 0;

    text_addf(out, "%d %d %.2f %.2f %" PRId64 " %" PRId64 " %" PRId64 "\n", pid, !a->end_ns,
              a->gpu_busy_ns * parts, a->memory_busy_ns * parts, a->max_memory_bytes,
              (end_ns - a->start_ns) / NS_PER_MS, time_us(cx, a->start_ns));
}

/* Those that ended, in that order, then those that run. */
static int show_accounting(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;

    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    if (!cx->g->settings.accounting_mode)
        return -ENODATA;
    text_add(out, "# pid running gpu_percent memory_percent max_memory_bytes time_ms start_us\n");
    for (uint32_t k = 0; k < archive_accounts(cx->g); k++) {
        const struct account *a = archive_account(cx->store, cx->g, k);

        add_account(out, cx, a, process_id_of(a->pid, a->workload));
    }
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        if (share->gpu == cx->gpu && share->account.workload)
            add_account(out, cx, &share->account, process_id(&world_workloads(w)[share->run]));
    }
    return 0;
}

static int store_accounting(const struct node_ctx *cx, const char *text, struct why *why)
{
    if (strcmp(text, "clear"))
        return why_set(why, EINVAL, "'%s' is no command for accounts; allowed: clear", text);
    return sim_clear_accounting(cx->sim, cx->gpu, why);
}

/* clang-format off */
const struct node_def history_nodes[] = {
    { "gpus/%i/samples", 0444, show_samples, NULL, 0, 0, NULL },
    { "gpus/%i/process_utilization", 0444, show_process_utilization, NULL, 0, 0, NULL },
    { "gpus/%i/accounting", 0644, show_accounting, store_accounting, 0, NODE_CONTROL, NULL },
    { "history", 0444, show_history, NULL, sizeof(struct snapshot_history), NODE_BLOCKS, NULL },
    { 0 },
};
/* clang-format on */
