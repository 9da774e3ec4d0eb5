/*
 * Sim: the simulator as others use it. See sim.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/change.h"
#include "sim/clock.h"
#include "sim/fault_apply.h"
#include "sim/plan.h"
#include "sim/runs.h"
#include "sim/suggest.h"
#include "sim/workload_plan.h"

/* Steps that are due at most, so that a stopped process does not simulate for hours. */
enum { STEPS_AT_ONCE = 100000 };

struct sim {
    struct world_store store;
    struct model_set models; /* owned: what workloads may say they were measured on */
};

/* --- life ------------------------------------------------------------------------------------ */

static int copy_models(struct model_set *to, const struct model_set *from)
{
    size_t bytes = (size_t)from->count * sizeof(*from->models);

    to->models = malloc(bytes ? bytes : 1);
    if (!to->models)
        return -ENOMEM;
    if (bytes)
        memcpy(to->models, from->models, bytes);
    to->count = from->count;
    return 0;
}

struct sim *sim_new(const struct config *cfg, struct why *why)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    if (!sim || copy_models(&sim->models, &cfg->models) < 0) {
        why_set(why, ENOMEM, "out of memory");
        goto fail;
    }
    if (world_store_create(&sim->store, why) < 0)
        goto fail;
    if (plan_apply(&sim->store, cfg, why) < 0)
        goto fail_store;
    return sim;

fail_store:
    world_store_release(&sim->store);
fail:
    if (sim)
        model_set_release(&sim->models);
    free(sim);
    return NULL;
}

struct sim *sim_adopt(int fd, const struct model_set *models, struct why *why)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    if (!sim || copy_models(&sim->models, models) < 0)
        why_set(why, ENOMEM, "out of memory");
    else if (world_store_adopt(&sim->store, fd, why) == 0)
        return sim;
    if (sim)
        model_set_release(&sim->models);
    free(sim);
    return NULL;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    world_store_release(&sim->store);
    model_set_release(&sim->models);
    free(sim);
}

const struct world *sim_world(const struct sim *sim)
{
    return world_current(&sim->store);
}

const struct world_store *sim_store(const struct sim *sim)
{
    return &sim->store;
}

/* --- time ------------------------------------------------------------------------------------ */

void sim_step(struct sim *sim)
{
    struct stepping st = { .store = &sim->store, .world = world_begin(&sim->store, NULL, NULL) };

    /* A step needs no more room than there is, so there is nothing that could fail. */
    st.dt_ns = st.world->node_plan.step_ns;
    st.world->node.now_ns += st.dt_ns;
    faults_step(&st);
    runs_step(&st);
    for (int i = 0; i < (int)st.world->used[SECTION_GPUS]; i++) {
        gpu_step(&st, i);
        archive_keep(&st, i);
    }
    world_commit(&sim->store, st.world);
}

void sim_run(struct sim *sim, int64_t ns)
{
    int64_t end = sim_world(sim)->node.now_ns + ns;

    while (sim_world(sim)->node.now_ns < end)
        sim_step(sim);
}

bool sim_is_behind(const struct sim *sim)
{
    return sim_world(sim)->node.now_ns < sim_world(sim)->node.run_until_ns;
}

/*
 * What is due and up to when that counts are published at once, the steps after it: whoever takes over in
 * between makes the steps that are left, and none twice.
 */
static int64_t note_due(struct sim *sim, int64_t elapsed_ns, int64_t real_ns)
{
    const struct node *now = &sim_world(sim)->node;
    struct world *next;
    int64_t steps;

    if (now->paused || now->speed == 0)
        return 0; /* nothing moves, and no reader need look again */
    next = world_begin(&sim->store, NULL, NULL);
    steps = clock_due(&next->node, elapsed_ns, next->node_plan.step_ns, STEPS_AT_ONCE);
    next->node.run_until_ns = next->node.now_ns + steps * next->node_plan.step_ns;
    next->node.real_ns = real_ns;
    world_commit(&sim->store, next);
    return steps;
}

int64_t sim_advance(struct sim *sim, int64_t elapsed_ns)
{
    int64_t steps;

    sim_resume(sim);
    steps = note_due(sim, elapsed_ns, sim_world(sim)->node.real_ns);
    sim_resume(sim);
    return steps;
}

void sim_follow(struct sim *sim, int64_t real_ns)
{
    int64_t before = sim_world(sim)->node.real_ns;

    if (!sim_is_behind(sim))
        note_due(sim, before ? real_ns - before : 0, real_ns);
}

bool sim_catch_up(struct sim *sim)
{
    if (sim_is_behind(sim))
        sim_step(sim);
    return sim_is_behind(sim);
}

void sim_resume(struct sim *sim)
{
    while (sim_catch_up(sim))
        ;
}

void sim_request(struct sim *sim, uint64_t request)
{
    sim->store.request = request;
}

int sim_clock(struct sim *sim, const char *text, struct why *why)
{
    struct clock_command c;
    struct world *next;
    int r = clock_parse(text, &c, why);

    if (r < 0)
        return r;
    next = world_begin(&sim->store, NULL, why);
    if (!next)
        return -ENOMEM;
    /* What passed before counts no longer, above all not what a pause took. */
    next->node.real_ns = 0;
    next->node.run_until_ns = next->node.now_ns;
    if (c.kind == CLOCK_SPEED)
        next->node.speed = c.speed;
    else if (c.kind == CLOCK_STEP)
        next->node.run_until_ns = next->node.now_ns + c.step_ns;
    else
        next->node.paused = c.kind == CLOCK_PAUSE;
    world_commit(&sim->store, next);
    return 0;
}

/* --- the node -------------------------------------------------------------------------------- */

int sim_apply(struct sim *sim, const struct config *cfg, struct why *why)
{
    struct model_set models = { 0 };
    int r = copy_models(&models, &cfg->models);

    if (r < 0)
        return why_set(why, ENOMEM, "out of memory");
    r = plan_apply(&sim->store, cfg, why);
    if (r < 0) {
        model_set_release(&models);
        return r;
    }
    model_set_release(&sim->models);
    sim->models = models;
    return 0;
}

int sim_find_gpu(const struct sim *sim, const char *name)
{
    return plan_find_gpu(sim_world(sim), name);
}

/* --- one GPU --------------------------------------------------------------------------------- */

static int check_gpu(const struct sim *sim, int gpu, struct why *why)
{
    uint32_t count = sim_world(sim)->used[SECTION_GPUS];

    if (gpu < 0 || (uint32_t)gpu >= count)
        return why_set(why, ENODEV, "there is no GPU %d; there are %" PRIu32, gpu, count);
    return 0;
}

int change_begin(struct sim *sim, int gpu, struct change *c, struct why *why)
{
    int r = check_gpu(sim, gpu, why);

    if (r < 0)
        return r;
    c->st = (struct stepping){ .store = &sim->store, .world = world_begin(&sim->store, NULL, why) };
    if (!c->st.world)
        return -ENOMEM;
    c->g = &world_gpus(c->st.world)[gpu];
    c->plan = &world_gpu_plans(c->st.world)[gpu];
    c->m = &world_models(c->st.world)[c->plan->model];
    return 0;
}

int change_begin_present(struct sim *sim, int gpu, struct change *c, struct why *why)
{
    int r = change_begin(sim, gpu, c, why);

    if (r == 0 && gpu_has(c->g, CONDITION_LOST))
        return why_set(why, ENODEV, "GPU %d has fallen off the bus", gpu);
    return r;
}

int change_commit(struct sim *sim, int gpu, struct change *c)
{
    gpu_refresh_static(&c->st, gpu);
    gpu_step(&c->st, gpu);
    world_commit(&sim->store, c->st.world);
    return 0;
}

int sim_read(const struct sim *sim, int gpu, enum metric id, int64_t *value)
{
    const struct gpu *g;

    if (check_gpu(sim, gpu, NULL) < 0)
        return -ENODEV;
    g = &world_gpus(sim_world(sim))[gpu];
    if (gpu_has(g, CONDITION_LOST))
        return -ENODEV;
    return metric_read(&g->sample, id, value);
}

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

/* A row for one more planned fault: one that has happened for the last time, or a new one. */
static uint32_t fault_row(const struct world *w)
{
    uint32_t k = 0;

    while (k < w->used[SECTION_FAULTS] && world_due(w)[k].at_ns != INT64_MAX)
        k++;
    return k;
}

/* The fault waits in the plan, beside those of the configuration, until it is due. */
static int plan_fault(struct sim *sim, int gpu, const struct fault *f, struct why *why)
{
    uint32_t need[SECTION_COUNT], k = fault_row(sim_world(sim));
    struct world *w;

    if (k >= CONFIG_FAULTS_MAX)
        return why_set(why, ENOSPC, "%d faults wait already", CONFIG_FAULTS_MAX);
    memcpy(need, sim_world(sim)->used, sizeof(need));
    if (k == need[SECTION_FAULTS])
        need[SECTION_FAULTS] = need[SECTION_DUE] = k + 1;
    w = world_begin(&sim->store, need, why);
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
    world_plan_changed(w);
    world_commit(&sim->store, w);
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
    return f.after_ns ? plan_fault(sim, gpu, &f, why) : change_commit(sim, gpu, &c);
}

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
    world_plan_changed(c.st.world);
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

int sim_lock_sm_clock(struct sim *sim, int gpu, int64_t min_khz, int64_t max_khz, struct why *why)
{
    struct change c;
    int r = change_begin_present(sim, gpu, &c, why);

    if (r == 0)
        r = check_lock(min_khz, max_khz, c.m->clocks.sm.min_khz, c.m->clocks.sm.max_khz, why);
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
        r = check_lock(min_khz, max_khz, c.m->clocks.memory.items[c.m->clocks.memory.count - 1],
                       c.m->clocks.memory.items[0], why);
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
        r = check_lock(sm_khz, sm_khz, c.m->clocks.sm.min_khz, c.m->clocks.sm.max_khz, why);
    if (r == 0)
        r = check_lock(memory_khz, memory_khz,
                       c.m->clocks.memory.items[c.m->clocks.memory.count - 1],
                       c.m->clocks.memory.items[0], why);
    if (r < 0)
        return r;
    c.g->settings.sm_application_khz = sm_khz;
    c.g->settings.memory_application_khz = memory_khz;
    return change_commit(sim, gpu, &c);
}

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
        if (shares[s].gpu == gpu && world_runs(w)[shares[s].run].state == RUN_RUNNING)
            return true;
    return false;
}

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

/* --- workloads ------------------------------------------------------------------------------- */

int sim_add_workload(struct sim *sim, const struct workload_spec *spec, uint64_t *id,
                     struct why *why)
{
    return plan_add_workload(&sim->store, spec, &sim->models, id, why);
}

int sim_replace_workload(struct sim *sim, const char *name, const struct workload_spec *spec,
                         bool restart, struct why *why)
{
    return plan_replace_workload(&sim->store, name, spec, &sim->models, restart, why);
}

/* The workload of the copy being changed, or NULL with a sentence. */
static struct workload *workload_begin(struct sim *sim, const char *name, struct world **next,
                                       struct why *why)
{
    int k = plan_find_workload(sim_world(sim), name);

    if (k < 0) {
        why_set(why, ENOENT, "there is no workload '%s'", name);
        return NULL;
    }
    *next = world_begin(&sim->store, NULL, why);
    if (!*next)
        return NULL;
    world_plan_changed(*next);
    return &world_workloads(*next)[k];
}

int sim_identify_workload(struct sim *sim, const char *name, const struct workload_spec *spec,
                          struct why *why)
{
    struct world *next;
    struct workload *w = workload_begin(sim, name, &next, why);

    if (!w)
        return -ENOENT;
    memcpy(w->namespace, spec->namespace, sizeof(w->namespace));
    memcpy(w->pod, spec->pod, sizeof(w->pod));
    memcpy(w->container, spec->container, sizeof(w->container));
    w->pid = (int32_t)spec->pid;
    world_commit(&sim->store, next);
    return 0;
}

int sim_attach_workload(struct sim *sim, const char *name, struct why *why)
{
    struct world *next;
    struct workload *w = workload_begin(sim, name, &next, why);

    if (!w)
        return -ENOENT;
    w->attached++;
    world_commit(&sim->store, next);
    return 0;
}

int sim_detach_workload(struct sim *sim, const char *name, struct why *why)
{
    struct world *next;
    struct workload *w = workload_begin(sim, name, &next, why);

    if (!w)
        return -ENOENT;
    if (--w->attached <= 0)
        return plan_remove_workload(&sim->store, name, why);
    world_commit(&sim->store, next);
    return 0;
}

int sim_remove_workload(struct sim *sim, const char *name, struct why *why)
{
    return plan_remove_workload(&sim->store, name, why);
}

int sim_stop_workload(struct sim *sim, const char *name, struct why *why)
{
    int k = plan_find_workload(sim_world(sim), name);
    struct stepping st = { .store = &sim->store };

    if (k < 0)
        return why_set(why, ENOENT, "there is no workload '%s'", name);
    st.world = world_begin(&sim->store, NULL, why);
    if (!st.world)
        return -ENOMEM;
    if (world_runs(st.world)[k].state != RUN_ENDED)
        run_end(&st, (uint32_t)k, RUN_STOPPED, 0);
    plan_settle(&st);
    world_commit(&sim->store, st.world);
    return 0;
}

const struct run *sim_find_run(const struct sim *sim, const char *name)
{
    int k = plan_find_workload(sim_world(sim), name);

    return k < 0 ? NULL : &world_runs(sim_world(sim))[k];
}
