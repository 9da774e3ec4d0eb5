/*
 * Sim: commands to one GPU. See sim.h, and tuning.c for those of an operator's fine work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/change.h"
#include "sim/fault_apply.h"
#include "sim/mig.h"
#include "sim/runs.h"
#include "sim/suggest.h"

/* --- dictated metrics ------------------------------------------------------------------------ */

static int parse_pin(const struct change *c, int gpu, enum metric id, const char *text,
                     int64_t *value, struct why *why)
{
    double limit = gpu_metric_limit(c->st.world, gpu, id);
    int r = unit_parse(metric_infos[id].unit, text, UNIT_BARE_SHOWN, value, why);
    struct text most = TEXT_INIT;

    if (r < 0 || (*value >= 0 && (double)*value <= limit))
        return r;
    unit_print(&most, metric_infos[id].unit, (int64_t)limit);
    r = why_set(why, id == METRIC_MEMORY_USED && *value > 0 ? ENOSPC : ERANGE,
                "%s: %s is out of range; allowed: 0 to %s", metric_infos[id].name, text,
                text_str(&most));
    text_release(&most);
    return r;
}

int sim_pin(struct sim *sim, int gpu, enum metric id, const char *text, struct why *why)
{
    char buf[64];
    struct change c;
    int64_t value;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!(metric_infos[id].flags & METRIC_FLAG_PIN))
        return why_set(why, EPERM, "%s follows from other metrics and cannot be set",
                       metric_infos[id].name);
    if (!metric_mask_has(&c.g->sample.valid, id))
        return why_set(why, ENODATA, "GPU %d (%s) has no %s", gpu, c.m->name,
                       metric_infos[id].name);
    if (parse_trim(text, buf, sizeof(buf)) < 0)
        return why_set(why, E2BIG, "%s: a value is at most %zu characters long",
                       metric_infos[id].name, sizeof(buf) - 1);
    if (!strcmp(buf, "auto")) {
        metric_mask_drop(&c.g->controlled, id);
        gpu_read_pin(&c.st, gpu, id);
        return change_commit(sim, gpu, &c);
    }
    r = parse_pin(&c, gpu, id, buf, &value, why);
    if (r < 0)
        return r;
    metric_mask_add(&c.g->controlled, id);
    metric_mask_add(&c.g->pinned, id);
    metric_mask_drop(&c.g->unread, id);
    c.g->sample.value[id] = value;
    return change_commit(sim, gpu, &c);
}

/* --- faults ---------------------------------------------------------------------------------- */

/* A row for one more planned fault: one that has happened for the last time, or a new one. */
static uint32_t fault_row(const struct world *w)
{
    uint32_t k = 0;

    while (k < w->used[SECTION_FAULTS] && world_due(w)[k].at_ns != INT64_MAX)
        k++;
    return k;
}

/* The fault waits in the plan, beside those of the configuration, until it is due. */
static int plan_fault(struct world_store *store, int gpu, const struct fault *f, struct why *why)
{
    const struct world *now = world_current(store);
    uint32_t need[SECTION_COUNT], k = fault_row(now);
    struct world *w;

    if (k >= CONFIG_FAULTS_MAX)
        return why_set(why, ENOSPC, "%d faults wait already", CONFIG_FAULTS_MAX);
    memcpy(need, now->used, sizeof(need));
    if (k == need[SECTION_FAULTS])
        need[SECTION_FAULTS] = need[SECTION_DUE] = k + 1;
    w = world_begin_part(store, need, why);
    if (!w)
        return -ENOMEM;
    w->used[SECTION_FAULTS] = need[SECTION_FAULTS];
    w->used[SECTION_DUE] = need[SECTION_DUE];
    memset(&world_faults(w)[k], 0, sizeof(struct planned_fault));
    world_faults(w)[k].at_ns = world_due(w)[k].at_ns = w->node.now_ns + f->after_ns;
    world_faults(w)[k].for_ns = f->for_ns;
    world_faults(w)[k].gpu = gpu;
    world_faults(w)[k].fault = *f;
    world_faults(w)[k].fault.for_ns = world_faults(w)[k].fault.after_ns = 0;
    world_touch(w, SECTION_FAULTS, k, 1);
    world_touch(w, SECTION_DUE, k, 1);
    world_commit(store, w);
    return 0;
}

int sim_fault(struct sim *sim, int gpu, const char *text, struct why *why)
{
    struct fault f;
    struct change c;
    int r = fault_parse(text, &f, why);

    if (r == 0)
        r = change_begin(sim, gpu, &c, why);
    /* For one that waits this is a rehearsal, of which nothing is published: does it fit this board? */
    if (r == 0)
        r = gpu_fault(&c.st, gpu, &f, why);
    if (r < 0)
        return r;
    return f.after_ns ? plan_fault(c.st.store, gpu, &f, why) : change_commit(sim, gpu, &c);
}

/* --- profile, power and clocks --------------------------------------------------------------- */

static const char *profile_at(const void *world, int i)
{
    const struct world *w = world;

    return i < (int)w->used[SECTION_PROFILES] ? world_profiles(w)[i].name : NULL;
}

static int unknown_profile(const struct world *w, const char *name, struct why *why)
{
    struct text hint = TEXT_INIT;
    int r;

    suggest_add(&hint, name, profile_at, w);
    r = why_set(why, EINVAL, "'%s' is not a profile%s", name, text_str(&hint));
    text_release(&hint);
    return r;
}

int sim_set_profile(struct sim *sim, int gpu, const char *name, struct why *why)
{
    struct change c;
    uint32_t k = 0;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    while (k < c.st.world->used[SECTION_PROFILES] &&
           strcmp(world_profiles(c.st.world)[k].name, name))
        k++;
    if (k == c.st.world->used[SECTION_PROFILES])
        return unknown_profile(c.st.world, name, why);
    world_gpu_plans(c.st.world)[gpu].profile = k;
    world_touch(c.st.world, SECTION_GPU_PLANS, (uint32_t)gpu, 1);
    c.g->profile_since_ns = c.st.world->node.now_ns;
    gpu_read_pins(&c.st, gpu);
    return change_commit(sim, gpu, &c);
}

int sim_set_power_limit(struct sim *sim, int gpu, int64_t mw, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (mw < c.m->power.min_mw || mw > c.m->power.max_mw)
        return why_set(why, ERANGE, "%" PRId64 " mW is outside %" PRId64 "..%" PRId64, mw,
                       c.m->power.min_mw, c.m->power.max_mw);
    c.g->settings.power_limit_mw = mw;
    return change_commit(sim, gpu, &c);
}

static int check_lock(int64_t min_khz, int64_t max_khz, int64_t low_khz, int64_t high_khz,
                      struct why *why)
{
    if (!min_khz && !max_khz)
        return 0;
    if (min_khz > max_khz || max_khz < low_khz || min_khz > high_khz)
        return why_set(why, ERANGE, "%" PRId64 "..%" PRId64 " MHz is outside %" PRId64 "..%" PRId64,
                       min_khz / 1000, max_khz / 1000, low_khz / 1000, high_khz / 1000);
    return 0;
}

static int check_sm_lock(const struct gpu_model *m, int64_t min_khz, int64_t max_khz,
                         struct why *why)
{
    return check_lock(min_khz, max_khz, m->clocks.sm.min_khz, m->clocks.sm.max_khz, why);
}

static int check_memory_lock(const struct gpu_model *m, int64_t min_khz, int64_t max_khz,
                             struct why *why)
{
    const int64_t *clocks = m->clocks.memory.items; /* the highest first */

    return check_lock(min_khz, max_khz, clocks[m->clocks.memory.count - 1], clocks[0], why);
}

int sim_lock_sm_clock(struct sim *sim, int gpu, int64_t min_khz, int64_t max_khz, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r == 0)
        r = check_sm_lock(c.m, min_khz, max_khz, why);
    if (r < 0)
        return r;
    c.g->settings.sm_lock_min_khz = min_khz;
    c.g->settings.sm_lock_max_khz = max_khz;
    return change_commit(sim, gpu, &c);
}

int sim_lock_memory_clock(struct sim *sim, int gpu, int64_t min_khz, int64_t max_khz,
                          struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r == 0)
        r = check_memory_lock(c.m, min_khz, max_khz, why);
    if (r < 0)
        return r;
    c.g->settings.memory_lock_min_khz = min_khz;
    c.g->settings.memory_lock_max_khz = max_khz;
    return change_commit(sim, gpu, &c);
}

int sim_set_application_clocks(struct sim *sim, int gpu, int64_t memory_khz, int64_t sm_khz,
                               struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r == 0)
        r = check_sm_lock(c.m, sm_khz, sm_khz, why);
    if (r == 0)
        r = check_memory_lock(c.m, memory_khz, memory_khz, why);
    if (r < 0)
        return r;
    c.g->settings.sm_application_khz = sm_khz;
    c.g->settings.memory_application_khz = memory_khz;
    return change_commit(sim, gpu, &c);
}

/* --- modes ----------------------------------------------------------------------------------- */

int sim_set_persistence_mode(struct sim *sim, int gpu, bool on, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    c.g->settings.persistence_mode = on;
    return change_commit(sim, gpu, &c);
}

int sim_set_compute_mode(struct sim *sim, int gpu, int mode, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (mode < COMPUTE_DEFAULT || mode > COMPUTE_EXCLUSIVE_PROCESS)
        return why_set(why, ERANGE, "%d is not a compute mode; allowed: 0 to 3", mode);
    c.g->settings.compute_mode = mode;
    return change_commit(sim, gpu, &c);
}

int sim_set_ecc_mode(struct sim *sim, int gpu, bool on, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.m->ecc.supported)
        return why_set(why, EOPNOTSUPP, "GPU %d (%s) has no ECC", gpu, c.m->name);
    c.g->settings.ecc_mode_pending = on;
    return change_commit(sim, gpu, &c);
}

static bool is_in_use(const struct world *w, int gpu)
{
    const struct share *shares = world_shares(w);

    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (shares[s].gpu == gpu && world_share_runs(w, &shares[s]))
            return true;
    return false;
}

int sim_set_mig_mode(struct sim *sim, int gpu, bool on, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.m->mig.count)
        return why_set(why, EOPNOTSUPP, "GPU %d (%s) has no MIG", gpu, c.m->name);
    if (is_in_use(c.st.world, gpu))
        return why_set(why, EBUSY, "GPU %d is in use", gpu);
    if (!on && mig_any(c.g))
        return why_set(why, EBUSY, "GPU %d has GPU instances; destroy them first", gpu);
    c.g->settings.mig_mode = c.g->settings.mig_mode_pending = on;
    if (on) {
        c.g->settings.accounting_mode = 0;
        accounts_forget(c.st.world, gpu);
    }
    return change_commit(sim, gpu, &c);
}

int sim_set_accounting_mode(struct sim *sim, int gpu, bool on, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (c.g->settings.mig_mode)
        return why_set(why, EOPNOTSUPP, "GPU %d is in MIG mode, which has no accounting", gpu);
    c.g->settings.accounting_mode = on;
    if (!on)
        accounts_forget(c.st.world, gpu);
    return change_commit(sim, gpu, &c);
}

int sim_clear_accounting(struct sim *sim, int gpu, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r < 0)
        return r;
    if (!c.g->settings.accounting_mode)
        return why_set(why, EOPNOTSUPP, "accounting of GPU %d is off", gpu);
    c.g->accounts_before = c.g->accounts;
    return change_commit(sim, gpu, &c);
}

/* --- MIG instances --------------------------------------------------------------------------- */

/* The workload that has, or waits for, something on an instance (ci -1: on any of a GPU instance), or NULL. */
static const char *instance_user(const struct world *w, int gpu, int gi, int ci)
{
    const struct share *shares = world_shares(w);

    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (shares[s].gpu == gpu && shares[s].gi == gi && (ci < 0 || shares[s].ci == ci) &&
            world_runs(w)[shares[s].run].state != RUN_ENDED)
            return world_workloads(w)[shares[s].run].name;
    return NULL;
}

int sim_mig(struct sim *sim, int gpu, const char *text, struct why *why)
{
    struct mig_command command;
    struct change c;
    const char *user;
    int r = mig_parse(text, &command, why);

    if (r == 0)
        r = change_begin_present(sim, gpu, &c, why);
    if (r == 0 && command.verb == MIG_DESTROY &&
        (user = instance_user(c.st.world, gpu, command.gi, command.ci)))
        r = why_set(why, EBUSY, "GPU instance %d is in use by workload '%s'", command.gi, user);
    if (r == 0)
        r = mig_apply(c.g, c.m, &command, why);
    return r < 0 ? r : change_commit(sim, gpu, &c);
}
