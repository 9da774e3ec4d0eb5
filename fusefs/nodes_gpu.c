/*
 * Per-GPU nodes: live metrics, control files, MIG.
 *
 * A show renders one generation and never touches the world; a store validates, then asks the simulator.
 * Neither knows about FUSE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/errors.h"
#include "fusefs/nodes.h"
#include "sim/runs.h"

/* --- metrics --------------------------------------------------------------------------------- */

static int read_metric(const struct node_ctx *cx, enum metric id, int64_t *value)
{
    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    return metric_read(&cx->g->sample, id, value);
}

static int show_metric(const struct node_ctx *cx, struct text *out)
{
    enum metric id = (enum metric)cx->def->arg;
    int64_t value;
    int r = read_metric(cx, id, &value);

    if (r < 0)
        return r;
    unit_show(out, metric_infos[id].unit, value);
    text_add(out, "\n");
    return 0;
}

/* Everything that can be read, of one generation; a sensor that fails is NaN. */
static int show_sample(const struct node_ctx *cx, struct text *out)
{
    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    text_addf(out, "generation %" PRIu64 "\ntime_ns %" PRId64 "\n", cx->world->node.generation,
              cx->world->node.now_ns);
    for (int id = 0; id < METRIC_COUNT; id++) {
        int64_t value;
        int r = read_metric(cx, (enum metric)id, &value);

        if (r == -ENODATA)
            continue;
        text_addf(out, "%s ", metric_infos[id].name);
        if (r == 0)
            unit_show(out, metric_infos[id].unit, value);
        else
            text_add(out, "NaN");
        text_add(out, "\n");
    }
    return 0;
}

/* --- control: metrics ------------------------------------------------------------------------ */

static int show_pin(const struct node_ctx *cx, struct text *out)
{
    enum metric id = (enum metric)cx->def->arg;

    if (!metric_mask_has(&cx->g->controlled, id)) {
        text_add(out, "auto\n");
        return 0;
    }
    unit_show(out, metric_infos[id].unit, cx->g->sample.value[id]);
    text_add(out, "\n");
    return 0;
}

static int store_pin(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_pin(cx->sim, cx->gpu, (enum metric)cx->def->arg, text, why);
}

/* --- control: faults ------------------------------------------------------------------------- */

static void add_fault(struct text *out, struct fault f)
{
    fault_print(out, &f);
    text_add(out, "\n");
}

/* What holds now, each as it could be written. */
static int show_fault(const struct node_ctx *cx, struct text *out)
{
    const struct gpu *g = cx->g;
    static const struct {
        enum gpu_condition condition;
        enum fault_kind kind;
    } rows[] = {
        { CONDITION_LOST, FAULT_FALLEN_OFF_BUS },
        { CONDITION_HANG, FAULT_HANG },
        { CONDITION_POWER_BRAKE, FAULT_POWER_BRAKE },
        { CONDITION_THERMAL, FAULT_THERMAL },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (gpu_has(g, rows[i].condition))
            add_fault(out, (struct fault){ .kind = rows[i].kind, .factor = g->cooling_fault });
    if (g->sample.value[METRIC_XID_LAST])
        add_fault(out,
                  (struct fault){ .kind = FAULT_XID, .number = g->sample.value[METRIC_XID_LAST] });
    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        if (g->links[l].down_until_ns)
            add_fault(out,
                      (struct fault){ .kind = FAULT_NVLINK, .which = FAULT_DOWN, .number = l });
    for (int k = 0; k < BROKEN_SENSORS_MAX; k++)
        if (g->broken[k].until_ns)
            add_fault(out, (struct fault){ .kind = FAULT_SENSOR, .number = g->broken[k].metric });
    if (!out->length)
        text_add(out, "none\n");
    return 0;
}

static int store_fault(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_fault(cx->sim, cx->gpu, text, why);
}

/* --- control: settings ----------------------------------------------------------------------- */

static int show_profile(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", world_profiles(cx->world)[cx->plan->profile].name);
    return 0;
}

static int store_profile(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_set_profile(cx->sim, cx->gpu, text, why);
}

static int show_power_limit(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", cx->g->settings.power_limit_mw);
    return 0;
}

static int store_power_limit(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t mw = cx->model->power.default_mw;
    int r = strcmp(text, "auto") ? unit_parse(UNIT_MILLIWATT, text, UNIT_BARE_SHOWN, &mw, why) : 0;

    return r < 0 ? r : sim_set_power_limit(cx->sim, cx->gpu, mw, why);
}

static int show_lock(struct text *out, int64_t min_khz, int64_t max_khz)
{
    if (!max_khz)
        text_add(out, "off\n");
    else
        text_addf(out, "%" PRId64 " %" PRId64 "\n", min_khz / 1000, max_khz / 1000);
    return 0;
}

/* "900", "900 1410", "900,1410" in MHz, or "off". */
static int parse_lock(const char *text, int64_t *min_khz, int64_t *max_khz, struct why *why)
{
    char low[32], high[32], more;
    int n;

    *min_khz = *max_khz = 0;
    if (!strcmp(text, "off") || !strcmp(text, "auto"))
        return 0;
    n = sscanf(text, "%31[^ ,] %*[,] %31s %c", low, high, &more);
    if (n < 2)
        n = sscanf(text, "%31[^ ,] %31s %c", low, high, &more);
    if (n < 1 || n > 2)
        return why_set(why, EINVAL, "'%s' is not a clock lock; allowed: MIN MAX in MHz, or off",
                       text);
    n = unit_parse(UNIT_MEGAHERTZ, low, UNIT_BARE_SHOWN, min_khz, why) < 0 ? -EINVAL
        : n < 2                                                            ? 0
                : unit_parse(UNIT_MEGAHERTZ, high, UNIT_BARE_SHOWN, max_khz, why);
    if (!*max_khz)
        *max_khz = *min_khz;
    return n;
}

static int show_clock_lock(const struct node_ctx *cx, struct text *out)
{
    return show_lock(out, cx->g->settings.sm_lock_min_khz, cx->g->settings.sm_lock_max_khz);
}

static int store_clock_lock(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t low, high;
    int r = parse_lock(text, &low, &high, why);

    return r < 0 ? r : sim_lock_sm_clock(cx->sim, cx->gpu, low, high, why);
}

static int show_memory_clock_lock(const struct node_ctx *cx, struct text *out)
{
    return show_lock(out, cx->g->settings.memory_lock_min_khz, cx->g->settings.memory_lock_max_khz);
}

static int store_memory_clock_lock(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t low, high;
    int r = parse_lock(text, &low, &high, why);

    return r < 0 ? r : sim_lock_memory_clock(cx->sim, cx->gpu, low, high, why);
}

/* Memory clock first, as nvidia-smi -ac takes them. */
static int show_application_clocks(const struct node_ctx *cx, struct text *out)
{
    const struct gpu_settings *s = &cx->g->settings;

    if (!s->sm_application_khz)
        text_add(out, "off\n");
    else
        text_addf(out, "%" PRId64 " %" PRId64 "\n", s->memory_application_khz / 1000,
                  s->sm_application_khz / 1000);
    return 0;
}

static int store_application_clocks(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t memory, sm;
    int r = parse_lock(text, &memory, &sm, why);

    if (r == 0 && memory && !strpbrk(text, " ,"))
        r = why_set(why, EINVAL, "'%s' is one clock; allowed: MEMORY SM in MHz, or off", text);
    return r < 0 ? r : sim_set_application_clocks(cx->sim, cx->gpu, memory, sm, why);
}

static int parse_switch(const char *text, bool *on, struct why *why)
{
    static const char *const words[] = { "0",        "1",       "off",   "on",
                                         "disabled", "enabled", "false", "true" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i])) {
            *on = i & 1;
            return 0;
        }
    return why_set(why, EINVAL, "'%s' is neither on nor off; allowed: 0, 1, off, on", text);
}

typedef int switch_setter(struct sim *sim, int gpu, bool on, struct why *why);

static int store_switch(const struct node_ctx *cx, const char *text, switch_setter *set,
                        struct why *why)
{
    bool on = false;
    int r = parse_switch(text, &on, why);

    return r < 0 ? r : set(cx->sim, cx->gpu, on, why);
}

static int show_persistence_mode(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->g->settings.persistence_mode);
    return 0;
}

static int store_persistence_mode(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_switch(cx, text, sim_set_persistence_mode, why);
}

static int show_ecc_mode(const struct node_ctx *cx, struct text *out)
{
    if (!cx->model->ecc.supported)
        return -ENODATA;
    text_addf(out, "%d\n", cx->g->settings.ecc_mode_pending);
    return 0;
}

static int store_ecc_mode(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_switch(cx, text, sim_set_ecc_mode, why);
}

static int show_mig_mode(const struct node_ctx *cx, struct text *out)
{
    if (!cx->model->mig.count)
        return -ENODATA;
    text_addf(out, "%d\n", cx->g->settings.mig_mode);
    return 0;
}

static int store_mig_mode(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_switch(cx, text, sim_set_mig_mode, why);
}

static int show_accounting_mode(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->g->settings.accounting_mode);
    return 0;
}

static int store_accounting_mode(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_switch(cx, text, sim_set_accounting_mode, why);
}

static int show_compute_mode(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", compute_mode_names[cx->g->settings.compute_mode]);
    return 0;
}

static int store_compute_mode(const struct node_ctx *cx, const char *text, struct why *why)
{
    int64_t mode;

    if (parse_i64(text, &mode) == 0)
        return sim_set_compute_mode(cx->sim, cx->gpu, mode > 1000 ? 1000 : (int)mode, why);
    for (int i = 0; compute_mode_names[i]; i++)
        if (!strcasecmp(text, compute_mode_names[i]))
            return sim_set_compute_mode(cx->sim, cx->gpu, i, why);
    return why_set(why, EINVAL,
                   "'%s' is not a compute mode; allowed: default, exclusive_thread, prohibited, "
                   "exclusive_process",
                   text);
}

static int show_last_error(const struct node_ctx *cx, struct text *out)
{
    return errors_show(cx->host->errors, ERRORS_GPU, cx->plan->id, out);
}

/* --- MIG ------------------------------------------------------------------------------------- */

static bool has_mig(const struct node_ctx *cx)
{
    return cx->model->mig.count > 0;
}

static int show_mig_profiles(const struct node_ctx *cx, struct text *out)
{
    text_add(out,
             "# id name slices count multiprocessors memory_bytes size copy decoders encoders jpeg "
             "ofa starts\n");
    for (int i = 0; i < cx->model->mig.count; i++) {
        const struct mig_profile *p = &cx->model->mig.items[i];

        text_addf(out, "%" PRId64 " %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, p->id,
                  p->name, p->slices, p->count, p->multiprocessors, p->memory_bytes);
        text_addf(out, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                  p->size, p->copy, p->decoders, p->encoders, p->jpeg, p->ofa);
        for (int k = 0; k < p->starts.count; k++)
            text_addf(out, "%c%" PRId64, k ? ',' : ' ', p->starts.items[k]);
        text_add(out, "\n");
    }
    return 0;
}

static int show_mig_instances(const struct node_ctx *cx, struct text *out)
{
    text_add(out, "# gi ci profile start slices multiprocessors memory_bytes uuid\n");
    for (int gi = 0; gi < MIG_GIS_MAX; gi++) {
        const struct mig_gi *instance = &cx->g->gis[gi];
        const struct mig_profile *p = &cx->model->mig.items[instance->profile];

        if (!instance->used)
            continue;
        text_addf(out, "%d - %s %d %" PRId64 " %" PRId64 " %" PRId64 " -\n", gi, p->name,
                  instance->start, p->slices, p->multiprocessors, p->memory_bytes);
        for (int ci = 0; ci < MIG_CIS_MAX; ci++) {
            char uuid[48];

            if (!instance->cis[ci].slices)
                continue;
            mig_uuid(cx->plan->uuid, gi, ci, uuid, sizeof(uuid));
            text_addf(out, "%d %d %s %d %d %" PRId64 " %" PRId64 " %s\n", gi, ci, p->name,
                      instance->cis[ci].start, instance->cis[ci].slices,
                      p->multiprocessors * instance->cis[ci].slices / p->slices, p->memory_bytes,
                      uuid);
        }
    }
    return 0;
}

static int store_mig_instances(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_mig(cx->sim, cx->gpu, text, why);
}

static int show_gi_profile(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s\n", cx->mig->name);
    return 0;
}

static int show_gi_placement(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d:%" PRId64 "\n", cx->instance->start, cx->mig->size);
    return 0;
}

static int show_gi_memory(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", cx->mig->memory_bytes);
    return 0;
}

static int show_gi_memory_used(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", instance_memory_used(cx->world, cx->gpu, cx->gi));
    return 0;
}

static int show_gi_multiprocessors(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", cx->mig->multiprocessors);
    return 0;
}

static int show_ci_uuid(const struct node_ctx *cx, struct text *out)
{
    char uuid[48];

    mig_uuid(cx->plan->uuid, cx->gi, cx->ci, uuid, sizeof(uuid));
    text_addf(out, "%s\n", uuid);
    return 0;
}

static int show_ci_slices(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->instance->cis[cx->ci].slices);
    return 0;
}

static int show_ci_placement(const struct node_ctx *cx, struct text *out)
{
    const struct mig_ci *ci = &cx->instance->cis[cx->ci];

    text_addf(out, "%d:%d\n", ci->start, ci->slices);
    return 0;
}

/* --- links ----------------------------------------------------------------------------------- */

static int show_node_link(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "../../%d", cx->gpu);
    return 0;
}

static int show_index_link(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "../%d", cx->gpu);
    return 0;
}

/* clang-format off */
/* A metric that may be dictated has a control file of its name. */
#define PIN_ROW_PIN(name, id) { "gpus/%i/control/" name, 0644, show_pin, store_pin, METRIC_##id, NODE_CONTROL, NULL },
#define PIN_ROW_WISH(name, id)
#define PIN_ROW_STATIC(name, id)
#define PIN_ROW_0(name, id)
#define CONTROL_ROW(name, fn) { "gpus/%i/control/" name, 0644, show_##fn, store_##fn, 0, NODE_CONTROL, NULL }

const struct node_def gpu_nodes[] = {
#define METRIC(id, file, ...) { "gpus/%i/metrics/" file, 0444, show_metric, NULL, METRIC_##id, 0, NULL },
#include "sim/metrics.def"
#define METRIC(id, file, kind, unit, flags, ...) PIN_ROW_##flags(file, id)
#include "sim/metrics.def"
    CONTROL_ROW("profile", profile),
    CONTROL_ROW("fault", fault),
    CONTROL_ROW("power_limit_mw", power_limit),
    CONTROL_ROW("clock_lock", clock_lock),
    CONTROL_ROW("memory_clock_lock", memory_clock_lock),
    CONTROL_ROW("application_clocks", application_clocks),
    CONTROL_ROW("persistence_mode", persistence_mode),
    CONTROL_ROW("compute_mode", compute_mode),
    CONTROL_ROW("ecc_mode", ecc_mode),
    CONTROL_ROW("mig_mode", mig_mode),
    CONTROL_ROW("accounting_mode", accounting_mode),
    { "gpus/%i/control/last_error", 0444, show_last_error, NULL, 0, 0, NULL },
    { "gpus/%i/sample", 0444, show_sample, NULL, 0, 0, NULL },
    { "gpus/%i/mig/profiles", 0444, show_mig_profiles, NULL, 0, 0, has_mig },
    { "gpus/%i/mig/instances", 0644, show_mig_instances, store_mig_instances, 0, NODE_CONTROL, has_mig },
    { "gpus/%i/mig/gi%g/profile", 0444, show_gi_profile, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/placement", 0444, show_gi_placement, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/memory_total_bytes", 0444, show_gi_memory, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/memory_used_bytes", 0444, show_gi_memory_used, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/multiprocessors", 0444, show_gi_multiprocessors, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/ci%c/uuid", 0444, show_ci_uuid, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/ci%c/slices", 0444, show_ci_slices, NULL, 0, 0, NULL },
    { "gpus/%i/mig/gi%g/ci%c/placement", 0444, show_ci_placement, NULL, 0, 0, NULL },
    { "gpus/by-uuid/%u", S_IFLNK | 0777, show_index_link, NULL, 0, 0, NULL },
    { "gpus/by-bus-id/%b", S_IFLNK | 0777, show_index_link, NULL, 0, 0, NULL },
    { "gpus/by-node/%n/%j", S_IFLNK | 0777, show_node_link, NULL, 0, 0, NULL },
    { 0 },
};
/* clang-format on */
