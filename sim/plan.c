/*
 * Plan: turning a configuration into sections of a world. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config_resolve.h"
#include "sim/fault_apply.h"
#include "sim/links.h"
#include "sim/plan_apply.h"
#include "sim/runs.h"
#include "sim/sections.h"
#include "sim/workload_plan.h"

static void settle(struct stepping *st)
{
    st->dt_ns = 0;
    runs_step(st);
    for (int i = 0; i < (int)st->world->used[SECTION_GPUS]; i++)
        gpu_step(st, i);
}

void plan_settle(struct stepping *st, const struct gpu_set *gpus)
{
    st->dt_ns = 0;
    loads_settle(st, gpus);
    for (int i = 0; i < (int)st->world->used[SECTION_GPUS]; i++)
        if (gpu_set_has(gpus, i))
            gpu_step(st, i);
}

/* --- a configuration ------------------------------------------------------------------------- */

/* What a configuration wants to run: the GPUs' own loads, then its workloads. */
struct wanted {
    struct workload_spec spec;
    struct device_name device;
};

static size_t wanted_count(const struct applying *a)
{
    return (size_t)a->count + a->cfg->workloads.count;
}

/* A GPU's own load is a workload like any other, with a name that goes with the GPU. */
static bool wanted_of_gpu(const struct gpu_entry *e, struct wanted *w)
{
    if (!e->spec.workload.activity.count && !e->spec.workload.memory.count)
        return false;
    w->spec = e->spec.workload;
    /* What was given stands in other rows of a workload's own table. */
    w->spec.head.set = 0;
    for (const struct bind_field *f = base_workload_table.fields; f->key; f++)
        bind_mark(&workload_table, &w->spec, f->key,
                  bind_is_set(&base_workload_table, &e->spec.workload, f->key));
    snprintf(w->spec.name, sizeof(w->spec.name), "base-%s", e->uuid + 4);
    snprintf(w->device.text, sizeof(w->device.text), "%s", e->uuid);
    w->spec.devices = (struct bind_list){ &w->device, 1 };
    return true;
}

/* The i-th, or false where GPU i has no load of its own. */
static bool wanted_get(const struct applying *a, size_t i, struct wanted *w)
{
    const struct workload_spec *workloads = a->cfg->workloads.items;

    if (i < (size_t)a->count)
        return wanted_of_gpu(&a->entries[i], w);
    i -= (size_t)a->count;
    w->spec = workloads[i];
    config_workload_name(&workloads[i], i, w->spec.name);
    return true;
}

static void count_pins(const struct bind_list *pins, uint32_t need[SECTION_COUNT])
{
    for (size_t k = 0; k < pins->count; k++)
        signal_count((const struct signal_spec *)pins->items + k, &need[SECTION_SIGNALS],
                     &need[SECTION_PHASES]);
}

static void count_needs(const struct applying *a, uint32_t need[SECTION_COUNT])
{
    const struct config *cfg = a->cfg;
    struct wanted wanted;

    memset(need, 0, SECTION_COUNT * sizeof(*need));
    if (a->before)
        memcpy(need, a->before->used, SECTION_COUNT * sizeof(*need));
    need[SECTION_MODELS] = (uint32_t)(a->count < cfg->models.count ? a->count : cfg->models.count);
    need[SECTION_GPU_PLANS] = need[SECTION_GPUS] = (uint32_t)a->count;
    need[SECTION_NODES] = a->count ? (uint32_t)(a->entries[a->count - 1].node_number + 1) : 0;
    need[SECTION_ORDERS] = GPU_ORDERS * need[SECTION_GPU_PLANS] + need[SECTION_NODES];
    need[SECTION_PROFILES] = (uint32_t)cfg->profiles.count;
    need[SECTION_FAULTS] = need[SECTION_DUE] = (uint32_t)cfg->faults.count;
    for (int i = 0; i < cfg->profiles.count; i++)
        count_pins(&cfg->profiles.profiles[i].pins, need);
    for (int i = 0; i < a->count; i++)
        count_pins(&a->entries[i].spec.metrics, need);
    for (size_t i = 0; i < wanted_count(a); i++)
        if (wanted_get(a, i, &wanted))
            workload_count(&wanted.spec, (uint32_t)a->count, need);
}

static void set_node(struct applying *a)
{
    const struct config *cfg = a->cfg;
    struct world *w = a->st.world;
    double speed_before = w->node_plan.speed;

    w->node_plan = (struct node_plan){
        .kernel_module = (int32_t)cfg->driver.kernel_module,
        .mig_strategy = (int32_t)cfg->mig_strategy,
        .dev = (int32_t)cfg->access.dev,
        .nvlink_topology = (int32_t)cfg->nvlink.topology,
        .dev_mode = (uint32_t)cfg->access.dev_mode,
        .control_mode = (uint32_t)cfg->access.control_mode,
        .workloads_mode = (uint32_t)cfg->access.workloads_mode,
        .uid = (uint32_t)cfg->access.uid,
        .gid = (uint32_t)cfg->access.gid,
        .seed = (uint64_t)cfg->seed,
        .step_ns = cfg->step_ns,
        .update_interval_ns = cfg->update_interval_ns,
        .numa_nodes = (int32_t)cfg->numa.nodes,
        .speed = cfg->speed,
        .physics = cfg->physics,
    };
    w->node_plan.physics.head = (struct bind_head){ 0 };
    memcpy(w->node_plan.name, cfg->node, sizeof(w->node_plan.name));
    memcpy(w->node_plan.driver_version, cfg->driver.version, sizeof(w->node_plan.driver_version));
    memcpy(w->node_plan.cuda_version, cfg->driver.cuda, sizeof(w->node_plan.cuda_version));
    memcpy(w->node_plan.nvml_version, cfg->driver.nvml, sizeof(w->node_plan.nvml_version));
    /* A speed set by hand stays until the configuration asks for another one than before. */
    if (!a->before || cfg->speed != speed_before)
        w->node.speed = cfg->speed;
}

static uint32_t use_model(struct world *w, const struct gpu_model *m)
{
    struct gpu_model *models = world_models(w);

    for (uint32_t k = 0; k < w->used[SECTION_MODELS]; k++)
        if (!strcmp(models[k].name, m->name))
            return k;
    models[w->used[SECTION_MODELS]] = *m;
    return w->used[SECTION_MODELS]++;
}

static void set_profiles(struct applying *a, struct signal_fill *fill)
{
    struct world *w = a->st.world;
    struct profile *profiles = world_profiles(w);

    w->used[SECTION_PROFILES] = (uint32_t)a->cfg->profiles.count;
    for (int i = 0; i < a->cfg->profiles.count; i++) {
        const struct profile_spec *spec = &a->cfg->profiles.profiles[i];

        profiles[i] = (struct profile){ .pin_count = (uint32_t)spec->pins.count };
        memcpy(profiles[i].name, spec->name, sizeof(profiles[i].name));
        profiles[i].first_pin = signal_fill_add(fill, &spec->pins);
    }
}

static struct gpu_settings settings_of(const struct gpu_entry *e)
{
    const struct gpu_spec *spec = &e->spec;
    int32_t ecc = bind_is_set(&gpu_table, spec, "ecc_mode") ? (int32_t)spec->ecc_mode
                                                            : (int32_t)e->model->ecc.on_by_default;

    return (struct gpu_settings){
        .power_limit_mw = e->power_limit_mw,
        .persistence_mode = (int32_t)spec->persistence_mode,
        .compute_mode = (int32_t)spec->compute_mode,
        .ecc_mode = ecc,
        .ecc_mode_pending = ecc,
        .mig_mode = (int32_t)spec->mig_mode,
        .mig_mode_pending = (int32_t)spec->mig_mode,
    };
}

static void set_cpus(const struct numa_spec *numa, struct gpu_plan *p)
{
    const struct cpu_list *cpus = numa->cpus.items;

    if (p->numa_node >= 0 && (size_t)p->numa_node < numa->cpus.count)
        memcpy(p->cpus, cpus[p->numa_node].text, sizeof(p->cpus));
}

static void set_nodes(struct applying *a)
{
    struct world *w = a->st.world;
    struct fleet_node *nodes = world_nodes(w);

    memset(nodes, 0, w->room[SECTION_NODES] * sizeof(*nodes));
    w->used[SECTION_NODES] = 0;
    for (int i = 0; i < a->count; i++) {
        const struct gpu_entry *e = &a->entries[i];

        if (e->node_number < 0)
            continue;
        if (!e->node_index) {
            memcpy(nodes[e->node_number].name, e->node, sizeof(e->node));
            nodes[e->node_number].first = (uint32_t)i;
            w->used[SECTION_NODES]++;
        }
        nodes[e->node_number].count++;
    }
}

static void set_gpu_plans(struct applying *a, struct signal_fill *fill)
{
    struct world *w = a->st.world;
    struct gpu_plan *plans = world_gpu_plans(w);

    w->used[SECTION_MODELS] = 0;
    memset(plans, 0, w->room[SECTION_GPU_PLANS] * sizeof(*plans));
    w->used[SECTION_GPU_PLANS] = (uint32_t)a->count;
    for (int i = 0; i < a->count; i++) {
        const struct gpu_entry *e = &a->entries[i];
        struct gpu_plan *p = &plans[i];

        p->id = a->came_from[i] >= 0 ? world_gpu_plans(a->before)[a->came_from[i]].id
                                     : ++w->node.next_gpu;
        memcpy(p->uuid, e->uuid, sizeof(p->uuid));
        memcpy(p->serial, e->serial, sizeof(p->serial));
        p->domain = e->domain;
        p->bus = e->bus;
        p->device = e->device;
        p->function = e->function;
        p->node = e->node_number;
        p->node_index = e->node_index;
        p->node_domain = e->node_domain;
        p->minor = e->minor;
        p->numa_node = e->numa_node;
        p->module_id = e->module_id;
        set_cpus(&a->cfg->numa, p);
        p->model = use_model(w, e->model);
        p->profile = p->configured_profile = (uint32_t)e->profile;
        p->memory_bytes = e->memory_bytes;
        p->cooling = e->spec.cooling;
        p->configured = settings_of(e);
        p->pin_count = (uint32_t)e->spec.metrics.count;
        p->first_pin = signal_fill_add(fill, &e->spec.metrics);
    }
    links_connect(&a->cfg->nvlink, a->entries, a->count, plans);
}

static void set_plans(struct applying *a)
{
    struct world *w = a->st.world;
    struct node_plan *n = &w->node_plan;
    uint32_t signals = n->first_signal, signals_n = n->signal_count, phases = n->first_phase,
             phases_n = n->phase_count;
    struct signal_fill fill;

    w->used[SECTION_PROFILES] = w->used[SECTION_GPU_PLANS] = 0;
    set_node(a);
    section_cut_signals(w, signals, signals_n);
    section_cut_phases(w, phases, phases_n);
    fill = section_fill(w);
    n->first_signal = fill.signal_count;
    n->first_phase = fill.phase_count;
    set_nodes(a);
    set_profiles(a, &fill);
    set_gpu_plans(a, &fill);
    n->signal_count = fill.signal_count - n->first_signal;
    n->phase_count = fill.phase_count - n->first_phase;
    section_filled(w, &fill);
    plan_sort(w);
    world_plan_changed(w);
}

/* --- workloads of the configuration ---------------------------------------------------------- */

/* While a configuration is applied, from_config says whether one of its workloads is still wanted. */
enum { BY_HAND, UNWANTED, WANTED };

static bool is_running_already(const struct world *w, int k, const struct workload_spec *spec)
{
    const struct run *run = &world_runs(w)[k];

    return world_workloads(w)[k].from_config != BY_HAND &&
           world_workloads(w)[k].spec_hash == workload_hash(spec) &&
           !(run->state == RUN_ENDED && run->reason == RUN_GPU_REMOVED);
}

static void mark_wanted(struct applying *a)
{
    struct world *w = a->st.world;
    struct wanted wanted;

    for (size_t i = 0; i < wanted_count(a); i++) {
        int k = wanted_get(a, i, &wanted) ? plan_find_workload(w, wanted.spec.name) : -1;

        if (k >= 0 && is_running_already(w, k, &wanted.spec))
            world_workloads(w)[k].from_config = WANTED;
    }
}

static void drop_unwanted(struct applying *a)
{
    struct world *w = a->st.world;

    for (uint32_t k = w->used[SECTION_WORKLOADS]; k-- > 0;) {
        if (world_workloads(w)[k].from_config != UNWANTED)
            continue;
        if (world_runs(w)[k].state == RUN_RUNNING)
            run_end(&a->st, k, RUN_STOPPED, 0);
        workload_cut(w, k);
    }
}

static int start_wanted(struct applying *a, const struct workload_spec *spec)
{
    struct world *w = a->st.world;
    struct why inner = { 0 };
    int k = plan_find_workload(w, spec->name), r;

    if (k >= 0 && world_workloads(w)[k].from_config != BY_HAND)
        return 0;
    if (k >= 0)
        return why_set(a->why, EEXIST, "%s: there is a workload '%s' already, started by hand",
                       a->cfg->source, spec->name);
    r = workload_append(&a->st, spec, workload_capability(&a->cfg->models, spec), WANTED, &inner);
    if (r < 0)
        why_set(a->why, -r, "%s:%d:%d: %s", a->cfg->source, spec->head.line, spec->head.column,
                why_text(&inner));
    why_release(&inner);
    return r;
}

/* What the configuration no longer wants makes room before anything new starts. */
static int set_workloads(struct applying *a)
{
    struct world *w = a->st.world;
    struct wanted wanted;
    int r = 0;

    mark_wanted(a);
    drop_unwanted(a);
    runs_step(&a->st); /* what was freed counts as free */
    for (size_t i = 0; i < wanted_count(a) && r == 0; i++)
        if (wanted_get(a, i, &wanted))
            r = start_wanted(a, &wanted.spec);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++)
        if (world_workloads(w)[k].from_config != BY_HAND)
            world_workloads(w)[k].from_config = UNWANTED;
    return r;
}

/* --- planned faults -------------------------------------------------------------------------- */

static int64_t next_time(const struct fault_spec *f, int64_t now_ns, bool first)
{
    if (first || f->at_ns > now_ns)
        return f->at_ns;
    if (!f->every_ns)
        return INT64_MAX;
    return f->at_ns + ((now_ns - f->at_ns) / f->every_ns + 1) * f->every_ns;
}

static void set_faults(struct applying *a)
{
    struct world *w = a->st.world;
    const struct fault_spec *specs = a->cfg->faults.items;

    w->used[SECTION_FAULTS] = w->used[SECTION_DUE] = (uint32_t)a->cfg->faults.count;
    for (size_t i = 0; i < a->cfg->faults.count; i++) {
        struct planned_fault *f = &world_faults(w)[i];

        memset(f, 0, sizeof(*f)); /* what lies between its members, too */
        f->at_ns = specs[i].at_ns;
        f->for_ns = specs[i].for_ns;
        f->every_ns = specs[i].every_ns;
        f->gpu = strcmp(specs[i].gpu.text, "all") ? plan_find_gpu(w, specs[i].gpu.text) : -1;
        f->fault = specs[i].fault;
        world_due(w)[i].at_ns = next_time(&specs[i], w->node.now_ns, !a->before);
    }
}

static void say_applied(struct applying *a)
{
    struct event e = { .kind = a->before ? EVENT_CONFIG : EVENT_DRIVER, .gpu = -1 };

    if (!a->before) {
        e.code = a->cfg->driver.kernel_module; /* 0: the open one */
        snprintf(e.text, sizeof(e.text), "%s", a->cfg->driver.version);
    }
    world_event(a->st.store, a->st.world, &e);
}

/* --- all ------------------------------------------------------------------------------------- */

static int apply(struct applying *a)
{
    uint32_t need[SECTION_COUNT];
    int r;

    count_needs(a, need);
    a->st.world = world_begin(a->st.store, need, a->why);
    if (!a->st.world)
        return -ENOMEM;
    applying_trace_gpus(a);
    set_plans(a);
    applying_move_gpus(a);
    r = set_workloads(a);
    if (r < 0)
        return r;
    set_faults(a);
    say_applied(a);
    faults_step(&a->st);
    settle(&a->st);
    for (int i = 0; i < a->count; i++)
        if (!world_gpus(a->st.world)[i].moments)
            archive_keep(&a->st, i); /* a history begins with the GPU */
    world_commit(a->st.store, a->st.world);
    return 0;
}

int plan_apply(struct world_store *store, const struct config *cfg, struct why *why)
{
    struct applying a = {
        .st.store = store, .before = world_current(store), .cfg = cfg, .why = why
    };
    struct gpu_entry *entries;
    int r = config_resolve(cfg, &entries, &a.count, why);

    if (r < 0)
        return r;
    a.entries = entries;
    a.came_from = calloc((size_t)a.count + 1, sizeof(*a.came_from));
    r = a.came_from ? apply(&a) : why_set(why, ENOMEM, "out of memory");
    free(a.came_from);
    free(entries);
    return r;
}
