/*
 * Plan: turning a configuration or a described workload into sections of a world. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fault_apply.h"
#include "sim/links.h"
#include "sim/runs.h"

/* --- finding --------------------------------------------------------------------------------- */

int plan_find_workload(const struct world *w, const char *name)
{
    const struct workload *workloads = world_workloads(w);

    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++)
        if (!strcmp(workloads[k].name, name))
            return (int)k;
    return -1;
}

static int find_uuid(const struct world *w, const char *uuid)
{
    const struct gpu_plan *plans = world_gpu_plans(w);

    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++)
        if (!strcasecmp(plans[i].uuid, uuid))
            return (int)i;
    return -1;
}

int plan_find_gpu(const struct world *w, const char *name)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint32_t domain, bus, device, function;
    int64_t index;

    if (parse_i64(name, &index) == 0)
        return index >= 0 && index < w->used[SECTION_GPU_PLANS] ? (int)index : -1;
    if (bus_id_parse(name, &domain, &bus, &device, &function) < 0)
        return find_uuid(w, name);
    for (uint32_t i = 0; i < w->used[SECTION_GPU_PLANS]; i++)
        if (plans[i].domain == domain && plans[i].bus == bus && plans[i].device == device &&
            plans[i].function == function)
            return (int)i;
    return -1;
}

/* --- sections that shrink -------------------------------------------------------------------- */

/* Closes the gap of n items at `first`. */
#define CUT(w, ID, name, first, n)                                          \
    do {                                                                    \
        uint32_t *used = &(w)->used[SECTION_##ID];                          \
        memmove(&world_##name(w)[first], &world_##name(w)[(first) + (n)],   \
                (*used - (first) - (n)) * sizeof(*world_##name(w)));        \
        *used -= (n);                                                       \
        memset(&world_##name(w)[*used], 0, (n) * sizeof(*world_##name(w))); \
    } while (0)

static void shift(uint32_t *position, uint32_t first, uint32_t n)
{
    if (*position > first)
        *position -= n;
}

static void cut_signals(struct world *w, uint32_t first, uint32_t n)
{
    struct workload *workloads = world_workloads(w);

    CUT(w, SIGNALS, signals, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_PHASES]; k++)
        shift(&world_phases(w)[k].first, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++) {
        shift(&workloads[k].first_signal, first, n);
        if (workloads[k].memory_signal > (int32_t)first)
            workloads[k].memory_signal -= (int32_t)n;
    }
    shift(&w->node_plan.first_signal, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_PROFILES]; k++)
        shift(&world_profiles(w)[k].first_pin, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_GPU_PLANS]; k++)
        shift(&world_gpu_plans(w)[k].first_pin, first, n);
}

static void cut_phases(struct world *w, uint32_t first, uint32_t n)
{
    CUT(w, PHASES, phases, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_SIGNALS]; k++)
        shift(&world_signals(w)[k].first, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++)
        shift(&world_workloads(w)[k].first_phase, first, n);
    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++)
        shift(&world_runs(w)[k].phase, first, n);
    shift(&w->node_plan.first_phase, first, n);
}

static void cut_workload(struct world *w, uint32_t k)
{
    const struct workload plan = world_workloads(w)[k];
    const struct run run = world_runs(w)[k];

    CUT(w, SHARES, shares, run.first_share, run.share_count);
    CUT(w, LIMITS, limits, plan.first_limit, plan.limit_count);
    CUT(w, WORKLOADS, workloads, k, 1);
    CUT(w, RUNS, runs, k, 1);
    for (uint32_t j = 0; j < w->used[SECTION_RUNS]; j++) {
        shift(&world_runs(w)[j].first_share, run.first_share, run.share_count);
        shift(&world_workloads(w)[j].first_limit, plan.first_limit, plan.limit_count);
    }
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++)
        if (world_shares(w)[s].run > k)
            world_shares(w)[s].run--;
    cut_signals(w, plan.first_signal, plan.signal_count);
    cut_phases(w, plan.first_phase, plan.phase_count);
    world_plan_changed(w);
}

/* --- a workload ------------------------------------------------------------------------------ */

/* Room that a workload takes. */
static void count_workload(const struct workload_spec *spec, uint32_t gpus,
                           uint32_t need[SECTION_COUNT])
{
    uint32_t signals = 0, phases = 0;

    phases_count(&spec->activity, &signals, &phases);
    if (spec->memory.count)
        signal_count(spec->memory.items, &signals, &phases);
    need[SECTION_SIGNALS] += signals;
    need[SECTION_PHASES] += phases;
    need[SECTION_WORKLOADS]++;
    need[SECTION_RUNS]++;
    need[SECTION_LIMITS] += (uint32_t)spec->limits.count;
    need[SECTION_SHARES] += gpus;
}

static struct signal_fill pool_fill(struct world *w)
{
    return (struct signal_fill){ world_signals(w), world_phases(w), w->used[SECTION_SIGNALS],
                                 w->used[SECTION_PHASES] };
}

static void pool_filled(struct world *w, const struct signal_fill *fill)
{
    w->used[SECTION_SIGNALS] = fill->signal_count;
    w->used[SECTION_PHASES] = fill->phase_count;
}

static void fill_signals(struct world *w, const struct workload_spec *spec, struct workload *plan)
{
    struct signal_fill fill = pool_fill(w);

    plan->first_signal = fill.signal_count;
    plan->first_phase = phases_fill_add(&fill, &spec->activity);
    plan->phase_count = (uint32_t)spec->activity.count;
    plan->memory_signal = spec->memory.count ? (int32_t)signal_fill_add(&fill, &spec->memory) : -1;
    plan->signal_count = fill.signal_count - plan->first_signal;
    pool_filled(w, &fill);
}

static void fill_limits(struct world *w, const struct workload_spec *spec, struct workload *plan)
{
    const struct limit_spec *limits = spec->limits.items;

    plan->first_limit = w->used[SECTION_LIMITS];
    plan->limit_count = (uint32_t)spec->limits.count;
    for (size_t i = 0; i < spec->limits.count; i++)
        world_limits(w)[w->used[SECTION_LIMITS]++] = (struct limit){ .target = limits[i].target,
                                                                     .value = limits[i].value };
}

static void add_share(struct world *w, uint32_t k, int gpu)
{
    struct run *run = &world_runs(w)[k];
    struct share *shares = world_shares(w);

    for (uint32_t s = 0; s < run->share_count; s++)
        if (shares[run->first_share + s].gpu == gpu)
            return; /* named twice is still one */
    shares[w->used[SECTION_SHARES]++] = (struct share){ .gpu = gpu, .run = k };
    run->share_count++;
}

/* How many workloads are on each GPU; -1 for one that cannot be had. The caller frees it. */
static int *count_crowds(const struct world *w)
{
    int gpus = (int)w->used[SECTION_GPUS];
    int *crowd = calloc((size_t)gpus + 1, sizeof(*crowd));

    if (!crowd)
        return NULL;
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        crowd[share->gpu] += world_runs(w)[share->run].state != RUN_ENDED;
    }
    for (int i = 0; i < gpus; i++)
        if (gpu_has(&world_gpus(w)[i], CONDITION_LOST))
            crowd[i] = -1;
    return crowd;
}

static int least_crowded(const int *crowd, int gpus)
{
    int best = -1;

    for (int i = 0; i < gpus; i++)
        if (crowd[i] >= 0 && (best < 0 || crowd[i] < crowd[best]))
            best = i;
    return best;
}

static int add_least_busy(struct world *w, uint32_t k, int64_t wanted, struct why *why)
{
    int *crowd = count_crowds(w), best = 0;
    int64_t n;

    if (!crowd)
        return why_set(why, ENOMEM, "out of memory");
    for (n = 0; n < wanted; n++) {
        best = least_crowded(crowd, (int)w->used[SECTION_GPUS]);
        if (best < 0)
            break;
        add_share(w, k, best);
        crowd[best] = -1;
    }
    free(crowd);
    if (n < wanted)
        return why_set(why, ENODEV,
                       "workload '%s' asks for %" PRId64 " GPUs; %" PRId64 " can be had",
                       world_workloads(w)[k].name, wanted, n);
    return 0;
}

static int add_devices(struct world *w, uint32_t k, const struct workload_spec *spec,
                       struct why *why)
{
    const struct device_name *devices = spec->devices.items;

    if (!spec->devices.count)
        return add_least_busy(w, k, spec->gpus, why);
    for (size_t i = 0; i < spec->devices.count; i++) {
        int gpu = plan_find_gpu(w, devices[i].text);

        if (!strcmp(devices[i].text, "all")) {
            for (int j = 0; j < (int)w->used[SECTION_GPUS]; j++)
                add_share(w, k, j);
        } else if (gpu < 0) {
            return why_set(why, ENODEV, "workload '%s': there is no GPU '%s'",
                           world_workloads(w)[k].name, devices[i].text);
        } else {
            add_share(w, k, gpu);
        }
    }
    return 0;
}

static uint64_t spec_hash(const struct workload_spec *spec)
{
    struct text text = TEXT_INIT;
    uint64_t hash;

    bind_print(&text, &workload_table, spec, 0);
    hash = rng_hash(spec->devices.count, text_str(&text));
    text_release(&text);
    return hash;
}

/* Writes the workload behind the others. The copy must have room. */
static int append_workload(struct stepping *st, const struct workload_spec *spec, double capability,
                           int from_config, struct why *why)
{
    struct world *w = st->world;
    uint32_t k = w->used[SECTION_WORKLOADS]++;
    struct workload *plan = &world_workloads(w)[k];
    struct run *run = &world_runs(w)[w->used[SECTION_RUNS]++];
    int r;

    *plan = (struct workload){
        .id = ++w->node.next_workload,
        .spec_hash = spec_hash(spec),
        .pid = (int32_t)spec->pid,
        .uid = (uint32_t)spec->uid,
        .from_config = from_config,
        .repeat = spec->repeat,
        .start_ns = spec->start_ns,
        .sample_ns = spec->sample_ns,
        .capability = capability,
    };
    memcpy(plan->name, spec->name, sizeof(plan->name));
    memcpy(plan->namespace, spec->namespace, sizeof(plan->namespace));
    memcpy(plan->pod, spec->pod, sizeof(plan->pod));
    memcpy(plan->container, spec->container, sizeof(plan->container));
    *run = (struct run){ .first_share = w->used[SECTION_SHARES] };
    fill_signals(w, spec, plan);
    fill_limits(w, spec, plan);
    world_plan_changed(w);
    r = add_devices(w, k, spec, why);
    if (r == 0 && w->node.now_ns >= plan->start_ns)
        r = run_start(st, k, why);
    return r;
}

static double capability_of(const struct model_set *models, const struct workload_spec *spec)
{
    const struct gpu_model *m = *spec->model ? model_find(models, spec->model) : NULL;

    return m ? model_capability(m) : 0;
}

int plan_add_workload(struct world_store *store, const struct workload_spec *spec,
                      const struct model_set *models, uint64_t *id, struct why *why)
{
    const struct world *current = world_current(store);
    uint32_t need[SECTION_COUNT];
    struct stepping st = { .store = store };
    int r;

    if (!workload_name_ok(spec->name))
        return why_set(why, EINVAL, "'%s' is not a name for a workload", spec->name);
    if (plan_find_workload(current, spec->name) >= 0)
        return why_set(why, EEXIST, "there is a workload '%s' already", spec->name);
    if (*spec->model && !model_find(models, spec->model))
        return why_set(why, EINVAL, "'%s' is not a model", spec->model);
    if (current->used[SECTION_WORKLOADS] >= CONFIG_WORKLOADS_MAX)
        return why_set(why, ENOSPC, "there are %d workloads already", CONFIG_WORKLOADS_MAX);
    memcpy(need, current->used, sizeof(need));
    count_workload(spec, current->used[SECTION_GPUS], need);
    st.world = world_begin(store, need, why);
    if (!st.world)
        return -ENOMEM;
    r = append_workload(&st, spec, capability_of(models, spec), false, why);
    if (r < 0)
        return r;
    if (id)
        *id = st.world->node.next_workload;
    plan_settle(&st);
    world_commit(store, st.world);
    return 0;
}

int plan_remove_workload(struct world_store *store, const char *name, struct why *why)
{
    int k = plan_find_workload(world_current(store), name);
    struct stepping st = { .store = store };

    if (k < 0)
        return why_set(why, ENOENT, "there is no workload '%s'", name);
    st.world = world_begin(store, NULL, why);
    if (!st.world)
        return -ENOMEM;
    if (world_runs(st.world)[k].state == RUN_RUNNING)
        run_end(&st, (uint32_t)k, RUN_STOPPED, 0);
    cut_workload(st.world, (uint32_t)k);
    plan_settle(&st);
    world_commit(store, st.world);
    return 0;
}

void plan_settle(struct stepping *st)
{
    st->dt_ns = 0;
    runs_step(st);
    for (int i = 0; i < (int)st->world->used[SECTION_GPUS]; i++)
        gpu_step(st, i);
}

/* --- a configuration ------------------------------------------------------------------------- */

/* A configuration on its way into a world. */
struct applying {
    struct stepping st;
    const struct world *before; /* NULL: there is none */
    const struct config *cfg;
    const struct gpu_entry *entries;
    int count;
    int *came_from; /* position before, or -1, for every GPU */
    struct why *why;
};

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
    snprintf(w->spec.name, sizeof(w->spec.name), "base-%s", e->uuid + 4);
    snprintf(w->device.text, sizeof(w->device.text), "%s", e->uuid);
    w->spec.devices = (struct bind_list){ &w->device, 1 };
    return true;
}

/* The i-th, or false where GPU i has no load of its own. */
static bool wanted_get(const struct applying *a, size_t i, struct wanted *w)
{
    if (i < (size_t)a->count)
        return wanted_of_gpu(&a->entries[i], w);
    i -= (size_t)a->count;
    w->spec = ((const struct workload_spec *)a->cfg->workloads.items)[i];
    if (!*w->spec.name)
        snprintf(w->spec.name, sizeof(w->spec.name), "workload-%zu", i);
    return true;
}

static uint32_t wanted_gpus(const struct applying *a, const struct wanted *w)
{
    return w->spec.devices.count ? (uint32_t)a->count : (uint32_t)w->spec.gpus;
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
    need[SECTION_PROFILES] = (uint32_t)cfg->profiles.count;
    need[SECTION_FAULTS] = need[SECTION_DUE] = (uint32_t)cfg->faults.count;
    for (int i = 0; i < cfg->profiles.count; i++)
        count_pins(&cfg->profiles.profiles[i].pins, need);
    for (int i = 0; i < a->count; i++)
        count_pins(&a->entries[i].spec.metrics, need);
    for (size_t i = 0; i < wanted_count(a); i++)
        if (wanted_get(a, i, &wanted))
            count_workload(&wanted.spec, i < (size_t)a->count ? 1 : wanted_gpus(a, &wanted), need);
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

        memcpy(p->uuid, e->uuid, sizeof(p->uuid));
        memcpy(p->serial, e->serial, sizeof(p->serial));
        p->domain = e->domain;
        p->bus = e->bus;
        p->device = e->device;
        p->function = e->function;
        p->minor = e->minor;
        p->numa_node = e->numa_node;
        p->module_id = e->module_id;
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
    cut_signals(w, signals, signals_n);
    cut_phases(w, phases, phases_n);
    fill = pool_fill(w);
    n->first_signal = fill.signal_count;
    n->first_phase = fill.phase_count;
    set_profiles(a, &fill);
    set_gpu_plans(a, &fill);
    n->signal_count = fill.signal_count - n->first_signal;
    n->phase_count = fill.phase_count - n->first_phase;
    pool_filled(w, &fill);
    world_plan_changed(w);
}

/* --- GPUs that stay, come and go ------------------------------------------------------------- */

static bool same_model(const struct world *before, int i, const struct gpu_model *m)
{
    return !strcmp(world_models(before)[world_gpu_plans(before)[i].model].name, m->name);
}

static void trace_gpus(struct applying *a)
{
    for (int i = 0; i < a->count; i++) {
        int from = a->before ? find_uuid(a->before, a->entries[i].uuid) : -1;

        a->came_from[i] = from >= 0 && same_model(a->before, from, a->entries[i].model) ? from : -1;
    }
}

/* What the configuration says differently than before is set; what was set by hand otherwise stays. */
static void merge_settings(struct gpu_settings *now, const struct gpu_settings *before,
                           const struct gpu_settings *asked)
{
#define MERGE(member)                        \
    do {                                     \
        if (asked->member != before->member) \
            now->member = asked->member;     \
    } while (0)
    MERGE(power_limit_mw);
    MERGE(persistence_mode);
    MERGE(compute_mode);
    MERGE(ecc_mode);
    MERGE(ecc_mode_pending);
    MERGE(mig_mode);
    MERGE(mig_mode_pending);
#undef MERGE
}

static bool pins_equal(const struct world *a, uint32_t first_a, uint32_t n, const struct world *b,
                       uint32_t first_b)
{
    const struct signal_pool pa = world_pool(a), pb = world_pool(b);

    for (uint32_t k = 0; k < n; k++)
        if (!signal_equal(&pa, &pa.signals[first_a + k], &pb, &pb.signals[first_b + k]))
            return false;
    return true;
}

static bool same_pins(const struct applying *a, int i, int from)
{
    const struct world *w = a->st.world, *b = a->before;
    const struct gpu_plan *now = &world_gpu_plans(w)[i], *old = &world_gpu_plans(b)[from];
    const struct profile *pn = &world_profiles(w)[now->profile];
    const struct profile *po = &world_profiles(b)[old->profile];

    return !strcmp(pn->name, po->name) && now->pin_count == old->pin_count &&
           pn->pin_count == po->pin_count &&
           pins_equal(w, now->first_pin, now->pin_count, b, old->first_pin) &&
           pins_equal(w, pn->first_pin, pn->pin_count, b, po->first_pin);
}

/* A profile chosen by hand stays, too, unless the configuration now asks for another or it is gone. */
static void keep_profile(struct applying *a, int i, const struct gpu_plan *old)
{
    const struct profile *before = world_profiles(a->before), *now = world_profiles(a->st.world);
    struct gpu_plan *plan = &world_gpu_plans(a->st.world)[i];
    int chosen = profile_find(&a->cfg->profiles, before[old->profile].name);

    if (chosen >= 0 && !strcmp(before[old->configured_profile].name, now[plan->profile].name))
        plan->profile = (uint32_t)chosen;
}

static void keep_gpu(struct applying *a, int i, int from)
{
    struct world *w = a->st.world;
    struct gpu *g = &world_gpus(w)[i];
    const struct gpu_plan *old = &world_gpu_plans(a->before)[from];

    *g = world_gpus(a->before)[from];
    keep_profile(a, i, old);
    merge_settings(&g->settings, &old->configured, &world_gpu_plans(w)[i].configured);
    gpu_refresh_static(&a->st, i);
    if (!same_pins(a, i, from)) {
        g->profile_since_ns = w->node.now_ns;
        gpu_read_pins(&a->st, i);
    }
}

static void move_gpus(struct applying *a)
{
    struct world *w = a->st.world;
    struct gpu *gpus = world_gpus(w);

    memset(gpus, 0, w->room[SECTION_GPUS] * sizeof(*gpus));
    w->used[SECTION_GPUS] = (uint32_t)a->count;
    for (int i = 0; i < a->count; i++) {
        if (a->came_from[i] >= 0) {
            keep_gpu(a, i, a->came_from[i]);
            continue;
        }
        gpu_init(&a->st, i);
        if (a->before)
            gpu_event(&a->st, i, EVENT_GPU_ADDED, 0, 0, world_gpu_plans(w)[i].uuid);
    }
}

static int went_to(const struct applying *a, int from)
{
    for (int i = 0; i < a->count; i++)
        if (a->came_from[i] == from)
            return i;
    return -1;
}

static void say_removed(struct applying *a)
{
    for (uint32_t from = 0; a->before && from < a->before->used[SECTION_GPU_PLANS]; from++) {
        const struct gpu_plan *p = &world_gpu_plans(a->before)[from];
        struct event e = { .kind = EVENT_GPU_REMOVED,
                           .gpu = -1,
                           .domain = p->domain,
                           .bus = p->bus,
                           .device = p->device,
                           .function = p->function };

        if (went_to(a, (int)from) >= 0)
            continue;
        snprintf(e.text, sizeof(e.text), "%s", p->uuid);
        world_event(a->st.store, a->st.world, &e);
    }
}

/* Shares follow their GPUs; a run that loses one of its GPUs ends. */
static void move_shares(struct applying *a)
{
    struct world *w = a->st.world;

    for (uint32_t k = 0; k < w->used[SECTION_RUNS]; k++) {
        struct run *run = &world_runs(w)[k];
        bool lost = false;

        for (uint32_t s = run->first_share; s < run->first_share + run->share_count; s++) {
            struct share *share = &world_shares(w)[s];

            share->gpu = went_to(a, share->gpu);
            lost |= share->gpu < 0;
        }
        if (lost) {
            CUT(w, SHARES, shares, run->first_share, run->share_count);
            for (uint32_t j = 0; j < w->used[SECTION_RUNS]; j++)
                shift(&world_runs(w)[j].first_share, run->first_share, run->share_count);
            run->share_count = 0;
            if (run->state != RUN_ENDED)
                run_end(&a->st, k, RUN_GPU_REMOVED, 0);
        }
    }
}

/* --- workloads of the configuration ---------------------------------------------------------- */

/* While a configuration is applied, from_config says whether one of its workloads is still wanted. */
enum { BY_HAND, UNWANTED, WANTED };

static bool is_running_already(const struct world *w, int k, const struct workload_spec *spec)
{
    const struct run *run = &world_runs(w)[k];

    return world_workloads(w)[k].from_config != BY_HAND &&
           world_workloads(w)[k].spec_hash == spec_hash(spec) &&
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
        cut_workload(w, k);
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
    r = append_workload(&a->st, spec, capability_of(&a->cfg->models, spec), WANTED, &inner);
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
        world_faults(w)[i] = (struct planned_fault){
            .at_ns = specs[i].at_ns,
            .for_ns = specs[i].for_ns,
            .every_ns = specs[i].every_ns,
            .gpu = strcmp(specs[i].gpu.text, "all") ? plan_find_gpu(w, specs[i].gpu.text) : -1,
            .fault = specs[i].fault,
        };
        world_due(w)[i].at_ns = next_time(&specs[i], w->node.now_ns, !a->before);
    }
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
    trace_gpus(a);
    set_plans(a);
    move_gpus(a);
    move_shares(a);
    say_removed(a);
    r = set_workloads(a);
    if (r < 0)
        return r;
    set_faults(a);
    if (a->before)
        world_event(a->st.store, a->st.world, &(struct event){ .kind = EVENT_CONFIG, .gpu = -1 });
    faults_step(&a->st);
    plan_settle(&a->st);
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
