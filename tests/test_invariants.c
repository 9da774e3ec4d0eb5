/*
 * A long walk through the simulator: random commands and steps, always the same ones, over every model
 * and profile. After each of them tests/invariants.h must hold, and a refused command must have
 * changed nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "sim/sim.h"
#include "tests/invariants.h"
#include "tests/tap.h"

enum { COMMANDS = 5000, GPUS = 4, WORKLOADS_MAX = 12 };

/* --- chance ---------------------------------------------------------------------------------- */

static struct rng rng = { 20240229 };

static int64_t below(int64_t n)
{
    return (int64_t)(rng_next(&rng) % (uint64_t)n);
}

#define ONE_OF(array) (array)[below(sizeof(array) / sizeof((array)[0]))]

/* --- the walk -------------------------------------------------------------------------------- */

struct walk {
    struct sim *sim;
    struct config library; /* for the names of its models and profiles */
    const char *models[GPUS];
    int64_t next_name;
    struct text command; /* the last one, for a person to read */
    struct why why;
};

static const char *any_profile(const struct walk *w)
{
    return w->library.profiles.profiles[below(w->library.profiles.count)].name;
}

static int any_gpu(const struct walk *w)
{
    /* One behind the last now and then. */
    return (int)below(sim_world(w->sim)->used[SECTION_GPUS] + (below(50) == 0));
}

static const struct gpu_model *model_at(const struct walk *w, int gpu)
{
    const struct world *world = sim_world(w->sim);

    if (gpu >= (int)world->used[SECTION_GPUS])
        return &w->library.models.models[0];
    return world_gpu_model(world, gpu);
}

static int64_t between(int64_t low, int64_t high)
{
    return low + below(high - low + 1);
}

static int walk_steps(struct walk *w)
{
    int64_t n = below(10) ? 1 : 20;

    text_addf(&w->command, "%" PRId64 " steps", n);
    while (n-- > 0)
        sim_step(w->sim);
    return 0;
}

static int walk_fault(struct walk *w)
{
    static const char *const faults[] = {
        "xid 31",
        "xid 79 for 2s",
        "ecc sbe 3",
        "ecc dbe",
        "rows correctable 2",
        "rows failure",
        "pages dbe",
        "thermal 3 for 5s",
        "thermal 40",
        "power_brake for 3s",
        "hang for 2s",
        "nvlink 0 down for 4s",
        "nvlink down",
        "nvlink up",
        "sensor power_usage_mw for 1s",
        "sensor temperature_gpu_c",
        "fallen_off_bus for 1s",
        "fallen_off_bus",
        "rows uncorrectable 900",
        "recover",
        "recover",
        "recover",
        "recover",
    };
    const char *fault = ONE_OF(faults);
    int gpu = any_gpu(w);

    text_addf(&w->command, "fault %d %s", gpu, fault);
    return sim_fault(w->sim, gpu, fault, &w->why);
}

static int walk_pin(struct walk *w)
{
    int gpu = any_gpu(w);
    enum metric id = (enum metric)below(METRIC_COUNT);
    double limit = gpu < (int)sim_world(w->sim)->used[SECTION_GPUS]
                       ? gpu_metric_limit(sim_world(w->sim), gpu, id)
                       : 100;
    struct text value = TEXT_INIT;
    int r;

    if (below(2))
        text_add(&value, "auto");
    else
        unit_print(&value, metric_infos[id].unit, (int64_t)rng_between(&rng, 0, limit * 1.05));
    text_addf(&w->command, "pin %d %s %s", gpu, metric_infos[id].name, text_str(&value));
    r = sim_pin(w->sim, gpu, id, text_str(&value), &w->why);
    text_release(&value);
    return r;
}

static int walk_profile(struct walk *w)
{
    int gpu = any_gpu(w);
    const char *name = any_profile(w);

    text_addf(&w->command, "profile %d %s", gpu, name);
    return sim_set_profile(w->sim, gpu, name, &w->why);
}

static int walk_power_limit(struct walk *w)
{
    int gpu = any_gpu(w);
    const struct model_power *p = &model_at(w, gpu)->power;
    int64_t mw = between(p->min_mw - 1000, p->max_mw + 1000);

    text_addf(&w->command, "power limit %d %" PRId64, gpu, mw);
    return sim_set_power_limit(w->sim, gpu, mw, &w->why);
}

static int walk_clocks(struct walk *w)
{
    int gpu = any_gpu(w);
    const struct model_clocks *c = &model_at(w, gpu)->clocks;
    int64_t low = between(0, c->sm.max_khz), high = between(low, c->sm.max_khz + 100000);
    int64_t memory = c->memory.items[below(c->memory.count)];

    text_addf(&w->command, "clocks %d %" PRId64 " %" PRId64 " %" PRId64, gpu, low, high, memory);
    switch (below(6)) {
    case 0:
        return sim_lock_sm_clock(w->sim, gpu, low, high, &w->why);
    case 1:
        return sim_lock_sm_clock(w->sim, gpu, 0, 0, &w->why);
    case 2:
        return sim_lock_memory_clock(w->sim, gpu, memory, memory, &w->why);
    case 3:
        return sim_lock_memory_clock(w->sim, gpu, 0, 0, &w->why);
    case 4:
        return sim_set_application_clocks(w->sim, gpu, memory, high, &w->why);
    default:
        return sim_set_application_clocks(w->sim, gpu, 0, 0, &w->why);
    }
}

static int walk_instances(struct walk *w)
{
    int gpu = any_gpu(w);
    const struct gpu_model *m = model_at(w, gpu);
    char text[64];

    if (m->mig.count && below(2))
        snprintf(text, sizeof(text), "create %s", m->mig.items[below(m->mig.count)].name);
    else
        snprintf(text, sizeof(text), "destroy %d", (int)below(MIG_GIS_MAX));
    text_addf(&w->command, "instance %d %s", gpu, text);
    return sim_mig(w->sim, gpu, text, &w->why);
}

static int walk_modes(struct walk *w)
{
    int gpu = any_gpu(w);
    bool on = below(2);

    text_addf(&w->command, "modes %d", gpu);
    switch (below(9)) {
    case 0:
        return sim_set_persistence_mode(w->sim, gpu, on, &w->why);
    case 1:
        return sim_set_compute_mode(w->sim, gpu, (int)below(5), &w->why);
    case 2:
        return sim_set_ecc_mode(w->sim, gpu, on, &w->why);
    case 3:
        return sim_set_mig_mode(w->sim, gpu, on, &w->why);
    case 4:
        return sim_set_accounting_mode(w->sim, gpu, below(4) > 0, &w->why);
    case 5:
        return sim_clear_accounting(w->sim, gpu, &w->why);
    default:
        return walk_instances(w);
    }
}

static int walk_add(struct walk *w)
{
    static const char *const texts[] = {
        "80:20:3s,10:0:1s",
        "{devices: all, activity: '60:5:2s', repeat: 3, memory: 1GiB}",
        "{gpus: 2, activity: [{time: 2s, utilization: 90, nvlink_tx: 20%, pcie_rx: 50%}], repeat: 0}",
        "{activity: [{utilization: {wave: {mean: 50, amplitude: 50, period: 7s}}, encoder: 40}]}",
        "{gpus: 3, memory: {random-increase: {step: 1GiB}}, activity: '30', sample: 300ms}",
        "{activity: [{utilization: {random: {min: 0, max: 100}}, tensor: 80, memory: 50%}]}",
        "{model: T4, activity: '100:0:5s', repeat: 2, limits: {time: 8s, energy: 3kJ}}",
        "{activity: '70', memory: {ramp: {from: 0, to: 90%, over: 9s}}, limits: {memory: 4GiB}}",
        "{start: 60s, devices: 0, activity: '50:0:10s', memory: 2GiB}",
        "{memory: 30%}",
        "{devices: ['0:1', '1:2', '2:1'], activity: '70:10:5s', memory: 2GiB, repeat: 3}",
        "{devices: '0:2', activity: [{utilization: 90, decoder: 30}], memory: {random-increase: {step: 1GiB}}}",
        "{devices: '1:1:0', activity: '40:0:9s', memory: 1GiB}",
    };
    const char *text = ONE_OF(texts);
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    int r = workload_parse(&spec, "workload", text, &arena, &w->why);

    snprintf(spec.name, sizeof(spec.name), "w%" PRId64, w->next_name++);
    text_addf(&w->command, "run %s %s", spec.name, text);
    if (r == 0)
        r = sim_add_workload(w->sim, &spec, NULL, &w->why);
    arena_release(&arena);
    return r;
}

static int walk_remove(struct walk *w)
{
    const struct world *world = sim_world(w->sim);
    uint32_t count = world->used[SECTION_WORKLOADS];
    char name[WORKLOAD_NAME] = "none";

    if (count)
        memcpy(name, world_workloads(world)[below(count)].name, sizeof(name));
    text_addf(&w->command, "remove %s", name);
    return below(3) ? sim_remove_workload(w->sim, name, &w->why)
                    : sim_stop_workload(w->sim, name, &w->why);
}

static int walk_workload(struct walk *w)
{
    bool full = sim_world(w->sim)->used[SECTION_WORKLOADS] >= WORKLOADS_MAX;

    return full || below(3) == 0 ? walk_remove(w) : walk_add(w);
}

/* A node with some of the GPUs, in this order or the other, and other things to do. */
static void print_node(struct walk *w, struct text *out)
{
    static const char *const steps[] = { "100ms", "1s", "10s" };
    int first = (int)below(GPUS), count = (int)between(1, GPUS);

    text_addf(out, "step: %s\nupdate_interval: 2s\nprofile: %s\ngpus:\n", ONE_OF(steps),
              below(2) ? "cycle" : any_profile(w));
    for (int i = 0; i < count; i++) {
        int k = (first + i) % GPUS;

        /* Named, so that it stays the same GPU wherever it stands. */
        text_addf(out, "- {model: %s, uuid: GPU-00000000-0000-0000-0000-%012d", w->models[k], k);
        text_add(out, below(4) ? "" : ", memory: 8GiB");
        text_add(out, below(4) ? "" : ", workload: {activity: '40:10:3s,0:0:1s', memory: 512MiB}");
        text_add(out, below(4) ? "" : ", metrics: {memory_used_bytes: 40%, clock_sm_mhz: 90%}");
        text_add(out, "}\n");
    }
    if (below(2))
        text_add(out,
                 "workloads: [{name: configured, devices: 0, activity: '20', memory: 256MiB}]\n");
    if (below(2))
        text_add(out,
                 "faults: [{gpu: all, fault: ecc sbe, every: 3s}, {gpu: 0, fault: hang for 1s}]\n");
}

static int walk_config(struct walk *w)
{
    struct text text = TEXT_INIT;
    struct config cfg;
    int r;

    print_node(w, &text);
    text_addf(&w->command, "config\n%s", text_str(&text));
    r = config_parse(&cfg, text_str(&text), text.length, NULL, &w->why);
    if (r == 0) {
        r = w->sim ? sim_apply(w->sim, &cfg, &w->why) : 0;
        if (!w->sim)
            w->sim = sim_new(&cfg, &w->why);
        config_release(&cfg);
    }
    text_release(&text);
    return r;
}

static const struct {
    int weight; /* in 1000 */
    int (*go)(struct walk *w);
} ways[] = {
    { 500, walk_steps },  { 120, walk_fault },      { 150, walk_pin },
    { 40, walk_profile }, { 30, walk_power_limit }, { 40, walk_clocks },
    { 20, walk_modes },   { 90, walk_workload },    { 10, walk_config },
};

static int walk_on(struct walk *w)
{
    int64_t at = below(1000);
    int i = 0;

    while (at >= ways[i].weight)
        at -= ways[i++].weight;
    return ways[i].go(w);
}

/* --- tests ----------------------------------------------------------------------------------- */

/* Goes on until something breaks; returns how many commands were accepted, or -1. */
static int walk_all(struct walk *w)
{
    struct invariants iv = INVARIANTS_INIT;
    int accepted = 0;

    for (int n = 0; n < COMMANDS && accepted >= 0; n++) {
        uint64_t generation = sim_world(w->sim)->node.generation;
        int r;

        text_cut(&w->command, 0);
        r = walk_on(w);
        accepted += r == 0;
        if (r < 0 && sim_world(w->sim)->node.generation != generation)
            text_add(&iv.broken, "it was refused, and changed something");
        if (iv.broken.length || !invariants_hold(&iv, w->sim)) {
            diag("command %d: %s", n, text_str(&w->command));
            diag("%s", text_str(&iv.broken));
            accepted = -1;
        }
    }
    invariants_release(&iv);
    return accepted;
}

static void test_walk(int first)
{
    struct walk w = { .next_name = 1 };
    int accepted, count;

    if (config_parse(&w.library, "", 0, NULL, &w.why) < 0)
        bail("%s", why_text(&w.why));
    count = w.library.models.count;
    for (int i = 0; i < GPUS; i++)
        w.models[i] = w.library.models.models[(first + i) % count].name;
    if (walk_config(&w) < 0 || !w.sim)
        bail("%s", why_text(&w.why));
    accepted = walk_all(&w);
    ok(accepted >= 0, "%d commands on %s, %s, %s and %s keep every invariant", COMMANDS,
       w.models[0], w.models[1], w.models[2], w.models[3]);
    ok(accepted > COMMANDS / 2, "%d of them are accepted", accepted);
    sim_free(w.sim);
    config_release(&w.library);
    text_release(&w.command);
    why_release(&w.why);
}

int main(void)
{
    struct config cfg;
    int count;

    if (config_parse(&cfg, "", 0, NULL, NULL) < 0)
        bail("the built-in configuration is refused");
    count = cfg.models.count;
    config_release(&cfg);
    for (int first = 0; first < count; first += GPUS)
        test_walk(first);
    return tap_done();
}
