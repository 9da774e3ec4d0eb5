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
    next = world_begin_part(&sim->store, NULL, NULL);
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
    next = world_begin_part(&sim->store, NULL, why);
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
    c->st = (struct stepping){ .store = &sim->store,
                               .world = world_begin_part(&sim->store, NULL, why) };
    if (!c->st.world)
        return -ENOMEM;
    world_touch(c->st.world, SECTION_GPUS, (uint32_t)gpu, 1);
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
    *next = world_begin_part(&sim->store, NULL, why);
    if (!*next)
        return NULL;
    world_touch(*next, SECTION_WORKLOADS, (uint32_t)k, 1);
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
    struct gpu_set gpus = { 0 };
    const struct run *run;

    if (k < 0)
        return why_set(why, ENOENT, "there is no workload '%s'", name);
    st.world = world_begin_part(&sim->store, NULL, why);
    if (!st.world)
        return -ENOMEM;
    run = &world_runs(st.world)[k];
    if (run->state != RUN_ENDED)
        run_end(&st, (uint32_t)k, RUN_STOPPED, 0);
    world_touch(st.world, SECTION_RUNS, (uint32_t)k, 1);
    world_touch(st.world, SECTION_SHARES, run->first_share, run->share_count);
    gpu_set_add_run(&gpus, st.world, run);
    plan_settle(&st, &gpus);
    world_commit(&sim->store, st.world);
    return 0;
}

const struct run *sim_find_run(const struct sim *sim, const char *name)
{
    int k = plan_find_workload(sim_world(sim), name);

    return k < 0 ? NULL : &world_runs(sim_world(sim))[k];
}
