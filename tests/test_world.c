/*
 * World: flat, deterministic, published whole, adopted by another, changed by a second configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/node.h"

/* Everything that happens by chance or by time, in one node. */
static const char lively[] =
    "seed: 42\n"
    "gpus: [{count: 3}, {model: T4, count: 2}, {model: RTX-4090, profile: chaos}]\n"
    "overrides: {1: {profile: faulty}, 2: {profile: spike}}\n"
    "workloads:\n"
    "  - {name: a, devices: [0, 1], activity: '80:15:20s,10:5:7s', repeat: 0, memory: 5GiB}\n"
    "  - {name: b, activity: {utilization: {random: {min: 5, max: 90}}}, memory: {random-increase: {step: 10MiB}}}\n"
    "faults:\n"
    "  - {at: 5m, gpu: 3, fault: ecc dbe}\n"
    "  - {at: 20m, gpu: 4, fault: fallen_off_bus, for: 1m}\n";

/* An hour with some commands in between. */
static struct sim *lived_hour(const char *yaml)
{
    struct sim *sim = node_new(yaml);

    sim_run(sim, 600 * SEC);
    sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "33", NULL);
    sim_run(sim, 600 * SEC);
    sim_set_power_limit(sim, 1, 250000, NULL);
    sim_set_accounting_mode(sim, 0, true, NULL);
    node_workload(sim, "late", "{activity: '70:20:100s', repeat: 3, memory: 1GiB}", NULL);
    sim_run(sim, 1200 * SEC);
    sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "auto", NULL);
    sim_fault(sim, 2, "thermal 2 for 5m", NULL);
    sim_run(sim, 1200 * SEC);
    return sim;
}

static bool same_archives(const struct sim *a, const struct sim *b)
{
    for (uint32_t i = 0; i < sim_world(a)->used[SECTION_GPUS]; i++)
        if (memcmp(&sim_store(a)->head->archives[i], &sim_store(b)->head->archives[i],
                   sizeof(struct archive)))
            return false;
    return true;
}

static bool same_bytes(const struct sim *a, const struct sim *b)
{
    const struct world *wa = sim_world(a), *wb = sim_world(b);

    return wa->bytes == wb->bytes && !memcmp(wa, wb, wa->bytes) && same_archives(a, b) &&
           !memcmp(sim_store(a)->head->ring, sim_store(b)->head->ring,
                   sizeof(struct event) * EVENT_RING);
}

static void test_determinism(void)
{
    struct sim *a = lived_hour(lively), *b = lived_hour(lively), *c;
    char other[sizeof(lively)];

    is_int(sim_world(a)->node.now_ns, 3600 * SEC, "an hour has passed");
    ok(same_bytes(a, b), "the same seed, configuration and commands give the same bytes");
    memcpy(other, lively, sizeof(other));
    other[7] = '3'; /* seed: 43 → another world */
    c = lived_hour(other);
    ok(!same_bytes(a, c), "another seed gives others");
    sim_free(a);
    sim_free(b);
    sim_free(c);
}

/* A GPU's stream is its own: more GPUs beside it do not disturb it. */
static void test_streams_are_independent(void)
{
    struct sim *one = node_new("gpus: {count: 1}\nprofile: chaos\n");
    struct sim *many = node_new("gpus: {count: 8}\nprofile: chaos\n");

    sim_run(one, 600 * SEC);
    sim_run(many, 600 * SEC);
    is_mem(&world_gpus(sim_world(many))[0], &world_gpus(sim_world(one))[0], sizeof(struct gpu),
           "GPU 0 is the same, alone or among eight");
    ok(memcmp(&world_gpus(sim_world(many))[0].rng, &world_gpus(sim_world(many))[1].rng,
              sizeof(struct rng)),
       "GPU 1 has a stream of its own");
    sim_free(one);
    sim_free(many);
}

static void test_publication(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    const struct world *before = sim_world(sim);
    uint64_t generation = before->node.generation;
    int64_t power = world_gpus(before)[0].sample.value[METRIC_POWER_USAGE];

    sim_step(sim);
    ok(sim_world(sim) != before, "a step is published in the other place");
    is_int(world_gpus(before)[0].sample.value[METRIC_POWER_USAGE], power,
           "whoever still looks at the old world sees it unchanged");
    is_int(sim_world(sim)->node.generation, (int64_t)generation + 1, "generations count up");
    is_int(sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "200", NULL), -ERANGE, "a refused command");
    is_int(sim_world(sim)->node.generation, (int64_t)generation + 1, "publishes nothing");
    sim_free(sim);
}

/* What another process finds in the memfd is the world, also when the first one died in mid-step. */
static void test_adoption(void)
{
    struct config cfg;
    struct sim *sim, *heir;
    struct world *unfinished;
    int status, fd;
    pid_t child;

    config_parse(&cfg, lively, strlen(lively), NULL, NULL);
    sim = sim_new(&cfg, NULL);
    sim_run(sim, 100 * SEC);
    child = fork();
    if (child == 0) {
        sim_run(sim, 100 * SEC);
        unfinished = world_begin((struct world_store *)(uintptr_t)sim_store(sim), NULL, NULL);
        memset(world_gpus(unfinished), 0xff, sizeof(struct gpu) * 4);
        memset(world_gpu_plans(unfinished), 0xff,
               sizeof(struct gpu_plan) * 4); /* half of a command */
        _exit(0);
    }
    waitpid(child, &status, 0);
    fd = dup(sim_store(sim)->fd);
    heir = sim_adopt(fd, &cfg.models, NULL);
    ok(heir != NULL, "another process adopts the world");
    is_int(sim_world(heir)->node.now_ns, 200 * SEC, "as it was last published");
    sim_run(heir, 100 * SEC);
    sim_free(sim);
    sim = sim_new(&cfg, NULL);
    sim_run(sim, 300 * SEC);
    ok(same_bytes(sim, heir), "and it goes on as if nothing had happened");
    sim_free(heir);
    sim_free(sim);
    config_release(&cfg);
}

static void test_foreign_worlds_are_refused(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    struct model_set none = { 0 };
    struct why why = { 0 };
    int pipes[2];

    sim_store(sim)->head->layout ^= 1;
    ok(!sim_adopt(dup(sim_store(sim)->fd), &none, &why),
       "a world of another layout is not touched");
    contains(why_text(&why), "another version", "and the sentence says why");
    if (pipe(pipes) == 0)
        ok(!sim_adopt(pipes[0], &none, &why), "nor what is no world at all");
    close(pipes[0]);
    close(pipes[1]);
    why_release(&why);
    sim_free(sim);
}

static void test_growth(void)
{
    struct sim *sim = node_new("gpus: {count: 8}\n");
    size_t small = world_store_bytes(sim_store(sim)), large;
    char name[32];
    int refused = 0;

    ok(small < 1 << 20, "the world of 8 GPUs is below 1 MiB (%zu KiB)", small >> 10);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        refused += node_workload(sim, name, "{activity: '10:5:30s', repeat: 0, memory: 10MiB}",
                                 NULL) != 0;
    }
    is_int(refused, 0, "1,000 workloads find room");
    sim_run(sim, 60 * SEC);
    large = world_store_bytes(sim_store(sim));
    ok(large > small, "the world grew");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 125 * 10 * MIB, "and lost none of them");
    is_int(sim_world(sim)->used[SECTION_RUNS], 1000, "all of them run");
    sim_free(sim);
}

/* --- what a change copies -------------------------------------------------------------------- */

static int refused;

static void set_limit(struct sim *sim, int i)
{
    refused += sim_set_power_limit(sim, i % 8, 300000 + i, NULL) != 0;
}

static void set_profile(struct sim *sim, int i)
{
    refused += sim_set_profile(sim, i % 8, i % 2 ? "static" : "wave", NULL) != 0;
}

static void add_workload(struct sim *sim, int i)
{
    char name[32];

    snprintf(name, sizeof(name), "more-%d", i);
    refused += node_workload(sim, name, "{activity: '0.01:0:30s', repeat: 0, memory: 1MiB}",
                             NULL) != 0;
}

static void describe_again(struct sim *sim, int i)
{
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    char name[32];

    snprintf(name, sizeof(name), "more-%d", i);
    add_workload(sim, i);
    refused += workload_parse(&spec, name, "{activity: '0.02:0:30s', memory: 2MiB}", &arena,
                              NULL) != 0;
    snprintf(spec.name, sizeof(spec.name), "%s", name);
    refused += sim_replace_workload(sim, name, &spec, false, NULL) != 0;
    arena_release(&arena);
}

static void attach(struct sim *sim, int i)
{
    (void)i;
    refused += sim_attach_workload(sim, "w0", NULL) != 0;
}

static void be_refused(struct sim *sim, int i)
{
    refused += sim_pin(sim, i % 8, METRIC_UTILIZATION_GPU, "200", NULL) != -ERANGE;
}

/* Of several times: in one of them both copies may have to grow. */
static uint64_t copied_by(struct sim *sim, void (*command)(struct sim *, int))
{
    const struct world_store *store = sim_store(sim);
    uint64_t least = UINT64_MAX;
    static int number;

    for (int i = 0; i < 8; i++) {
        uint64_t before = store->copied;

        command(sim, number++);
        least = store->copied - before < least ? store->copied - before : least;
    }
    return least;
}

/* A command costs what it changes, not what there is. */
static void test_copies(void)
{
    static const struct {
        const char *what;
        void (*command)(struct sim *, int);
    } rows[] = {
        { "a setting of a GPU", set_limit },
        { "a profile", set_profile },
        { "a new workload", add_workload },
        { "a new workload that is described again", describe_again },
        { "an attachment", attach },
        { "a refusal", be_refused },
    };
    struct sim *few = node_new("gpus: {count: 8}\n"), *many = node_new("gpus: {count: 64}\n");
    char name[32];
    uint64_t before, step;

    refused = 0;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        if (i < 8)
            node_workload(few, name, "{activity: '0.01:0:30s', repeat: 0, memory: 1MiB}", NULL);
        node_workload(many, name, "{activity: '0.01:0:30s', repeat: 0, memory: 1MiB}", NULL);
    }
    is_int(sim_world(many)->used[SECTION_WORKLOADS], 2000, "there are 2,000 workloads");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t a = copied_by(few, rows[i].command), b = copied_by(many, rows[i].command);

        ok(a && a == b,
           "%s copies as much among them as among 8: %" PRIu64 " and %" PRIu64 " bytes",
           rows[i].what, b, a);
    }
    is_int(refused, 0, "all of that was done as it should be");
    sim_step(many);
    before = sim_store(many)->copied;
    sim_step(many);
    ok(sim_store(many)->copied - before <
           64 * sizeof(struct gpu) + 3000 * (sizeof(struct run) + sizeof(struct share)),
       "a step copies what moves, and nothing of the plan");
    before = sim_store(many)->copied;
    sim_step(many);
    step = sim_store(many)->copied - before;
    before = sim_store(many)->copied;
    is_int(sim_advance(many, sim_world(many)->node_plan.step_ns), 1, "time for a step passes");
    is_int((int64_t)(sim_store(many)->copied - before), (int64_t)step,
           "to note that it did copies nothing more");
    sim_free(few);
    sim_free(many);
}

static void test_events(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    uint64_t first = sim_world(sim)->node.events;
    int gaps = 0;

    for (int i = 0; i < 2 * EVENT_RING; i++)
        sim_fault(sim, 0, "xid 13", NULL);
    is_int((int64_t)sim_world(sim)->node.events, (int64_t)first + 4 * EVENT_RING,
           "events are numbered: the Xid and the fault behind it, each time");
    for (uint64_t n = sim_world(sim)->node.events - EVENT_RING + 1;
         n <= sim_world(sim)->node.events; n++)
        gaps += world_event_get(sim_store(sim), n) == NULL;
    is_int(gaps, 0, "the newest are kept");
    ok(!world_event_get(sim_store(sim), first + 1), "the oldest are gone");
    ok(!world_event_get(sim_store(sim), sim_world(sim)->node.events + 1),
       "the next has not happened");
    ok(!world_event_get(sim_store(sim), 0), "there is no event 0");
    sim_free(sim);
}

static void test_clock(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\nspeed: 2\n");

    is_int(sim_advance(sim, SEC), 20, "at speed 2 a second is twenty steps");
    is_int(sim_advance(sim, SEC / 100), 0, "a part of a step is kept");
    is_int(sim_advance(sim, SEC / 25), 1, "until it is a whole one");
    is_int(sim_clock(sim, "pause\n", NULL), 0, "pause");
    is_int(sim_advance(sim, 10 * SEC), 0, "stops the time");
    is_int(sim_clock(sim, "step 30s", NULL), 0, "step");
    ok(sim_is_behind(sim), "is to be made");
    sim_resume(sim);
    is_int(sim_world(sim)->node.now_ns, 32 * SEC + SEC / 10, "moves it all the same");
    sim_clock(sim, "resume", NULL);
    sim_clock(sim, "speed 60", NULL);
    is_int(sim_advance(sim, SEC), 600, "another speed");
    is_int(sim_clock(sim, "speed fast", NULL), -EINVAL, "a speed that is none");
    is_int(sim_clock(sim, "speed -1", NULL), -ERANGE, "a speed backwards");
    is_int(sim_clock(sim, "step 30", NULL), -EINVAL, "a step without a unit");
    is_int(sim_clock(sim, "stop", NULL), -EINVAL, "another word");
    sim_free(sim);
}

/* A clock that is faster than the machine: its steps are made one by one, and others may come in between. */
static void test_behind(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\nspeed: 100\n");
    int64_t start = SEC; /* on the real clock */

    sim_follow(sim, start);
    ok(!sim_catch_up(sim), "nothing is due when it begins to follow");
    sim_follow(sim, start + SEC);
    is_int(sim_world(sim)->node.now_ns, 0, "what is due is not made yet");
    ok(sim_catch_up(sim), "one step, and there are more");
    is_int(sim_world(sim)->node.now_ns, SEC / 10, "it was one");
    sim_follow(sim, start + 2 * SEC);
    sim_resume(sim);
    is_int(sim_world(sim)->node.now_ns, 100 * SEC, "while it is behind nothing is added");
    sim_follow(sim, start + 2 * SEC);
    sim_resume(sim);
    is_int(sim_world(sim)->node.now_ns, 200 * SEC, "that comes after it: no time is lost");
    sim_follow(sim, start + 3 * SEC);
    sim_catch_up(sim);
    sim_clock(sim, "pause", NULL);
    ok(!sim_catch_up(sim), "a pause is one at once");
    is_int(sim_world(sim)->node.now_ns, 200 * SEC + SEC / 10, "whatever was due");
    sim_free(sim);
}

/* --- a second configuration ------------------------------------------------------------------ */

static struct gpu gpu_copy(const struct sim *sim, int i)
{
    return world_gpus(sim_world(sim))[i];
}

static void test_apply_adds_and_removes(void)
{
    struct sim *sim = node_new("gpus: {count: 4}\nprofile: chaos\n");
    struct gpu kept[4], now;
    char uuid[48];

    node_workload(sim, "by-hand", "{activity: 40, devices: 1}", NULL);
    sim_run(sim, 100 * SEC);
    for (int i = 0; i < 4; i++)
        kept[i] = gpu_copy(sim, i);
    is_int(node_apply(sim, "gpus: {count: 6}\nprofile: chaos\n", NULL), 0, "two GPUs more");
    is_int(sim_world(sim)->used[SECTION_GPUS], 6, "are there");
    for (int i = 0; i < 4; i++) {
        now = gpu_copy(sim, i);
        is_mem(&now, &kept[i], sizeof(now), "GPU %d is untouched", i);
    }
    is_int(sim_world(sim)->node.now_ns, 100 * SEC, "time goes on");
    is_int(sim_find_run(sim, "by-hand")->state, RUN_RUNNING,
           "and so does a workload started by hand");
    memcpy(uuid, world_gpu_plans(sim_world(sim))[1].uuid, sizeof(uuid));
    is_int(node_apply(sim, "gpus: {count: 1}\nprofile: chaos\n", NULL), 0, "five less");
    is_int(sim_find_gpu(sim, uuid), -1, "are gone");
    now = gpu_copy(sim, 0);
    is_mem(&now, &kept[0], sizeof(now), "the one left is untouched");
    is_int(sim_find_run(sim, "by-hand")->state, RUN_ENDED,
           "a workload on a GPU that went has ended");
    sim_run(sim, SEC);
    is_int(node_apply(sim, "gpus: []\n", NULL), 0, "no GPU at all");
    sim_run(sim, SEC);
    is_int(sim_world(sim)->used[SECTION_GPUS], 0, "is a node, too");
    sim_free(sim);
}

/* A GPU is its UUID, not its place in the list. */
static void test_apply_reorders(void)
{
    const char *const a = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
    struct sim *sim = node_new(
        "gpus:\n"
        "  - {uuid: GPU-bbbbbbbb-0000-0000-0000-000000000000, bus_id: '0000:01:00.0'}\n"
        "  - {uuid: GPU-aaaaaaaa-0000-0000-0000-000000000000, bus_id: '0000:02:00.0'}\n");
    int64_t energy;

    node_workload(sim, "w", "{activity: 70, devices: GPU-aaaaaaaa-0000-0000-0000-000000000000}",
                  NULL);
    sim_run(sim, 60 * SEC);
    energy = node_parts(sim, 1, METRIC_ENERGY_TOTAL);
    is_int(
        node_apply(sim,
                   "gpus:\n"
                   "  - {uuid: GPU-aaaaaaaa-0000-0000-0000-000000000000, bus_id: '0000:02:00.0'}\n"
                   "  - {uuid: GPU-cccccccc-0000-0000-0000-000000000000, bus_id: '0000:03:00.0'}\n",
                   NULL),
        0, "another order");
    is_int(sim_find_gpu(sim, a), 0, "it has moved");
    is_int(node_parts(sim, 0, METRIC_ENERGY_TOTAL), energy, "with all it counted");
    sim_run(sim, SEC);
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 70, 0, "and its workload");
    is_real(node_value(sim, 1, METRIC_UTILIZATION_GPU), 0, 0, "the new one is idle");
    sim_free(sim);
}

static void test_apply_settings(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");

    sim_set_power_limit(sim, 0, 300000, NULL);
    sim_set_profile(sim, 0, "static", NULL);
    node_apply(sim, "gpus: {count: 2}\nupdate_interval: 10s\n", NULL);
    is_int(node_parts(sim, 0, METRIC_POWER_LIMIT), 300000, "what was set by hand stays");
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50, 0, "the profile, too");
    node_apply(sim, "gpus: {count: 2, power_limit: 250W, profile: wave}\n", NULL);
    is_int(node_parts(sim, 0, METRIC_POWER_LIMIT), 250000,
           "until the configuration asks for something");
    sim_run(sim, 30 * SEC);
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50 + 20 * sin(0.5), 0.001,
            "of the profile as well");
    sim_clock(sim, "speed 9", NULL);
    node_apply(sim, "gpus: {count: 2}\n", NULL);
    is_real(sim_world(sim)->node.speed, 9, 0, "and of the speed");
    sim_free(sim);
}

static void test_apply_workloads(void)
{
    static const char first[] =
        "gpus: {count: 2}\nworkloads: [{name: a, activity: 10, devices: 0}, "
        "{name: b, activity: 20, devices: 0}]\n";
    static const char second[] =
        "gpus: {count: 2}\nworkloads: [{name: b, activity: 20, devices: 0}, "
        "{name: c, activity: 40, devices: 0}]\n";
    struct sim *sim = node_new(first);
    uint64_t id;

    sim_run(sim, 10 * SEC);
    id = world_workloads(sim_world(sim))[1].id;
    is_int(node_apply(sim, second, NULL), 0, "other workloads");
    ok(!sim_find_run(sim, "a"), "one has gone");
    is_int(sim_find_run(sim, "b")->started_ns, 0, "one goes on");
    is_int((int64_t)world_workloads(sim_world(sim))[0].id, (int64_t)id, "as the very same");
    is_int(sim_find_run(sim, "c")->started_ns, 10 * SEC, "one has come");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 60, 0, "the load is what it should be");
    sim_free(sim);
}

static void test_apply_is_all_or_nothing(void)
{
    struct sim *sim = node_new("gpus: {count: 4}\nprofile: wave\n");
    struct why why = { 0 };
    struct world *before;
    uint64_t generation;

    sim_run(sim, 50 * SEC);
    generation = sim_world(sim)->node.generation;
    before = malloc(sim_world(sim)->bytes);
    memcpy(before, sim_world(sim), sim_world(sim)->bytes);
    is_int(
        node_apply(
            sim,
            "gpus: {count: 8}\nprofile: chaos\nworkloads: [{name: x, activity: 5, memory: 39GiB, devices: 0}, "
            "{name: y, activity: 5, memory: 2GiB, devices: 0}]\n",
            &why),
        -ENOSPC, "a configuration whose last workload does not fit");
    like(why_text(&why), "^config:3:.*workload 'y' needs 2048 MiB on GPU 0",
         "is refused with its place");
    is_int((int64_t)sim_world(sim)->node.generation, (int64_t)generation, "nothing is published");
    is_mem(sim_world(sim), before, before->bytes, "nothing is changed");
    sim_step(sim);
    is_int(sim_world(sim)->used[SECTION_GPUS], 4, "and it goes on as before");
    free(before);
    why_release(&why);
    sim_free(sim);
}

/* The planned faults of a second configuration happen from then on, not all at once. */
static void test_apply_faults(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");

    sim_run(sim, 100 * SEC);
    node_apply(
        sim,
        "gpus: {count: 1}\nfaults: [{at: 50s, gpu: 0, fault: xid 13}, {at: 110s, gpu: 0, fault: xid 31}, "
        "{at: 5s, every: 60s, gpu: 0, fault: ecc sbe}]\n",
        NULL);
    sim_step(sim);
    is_int(node_parts(sim, 0, METRIC_XID_LAST), 0, "what is past does not happen");
    sim_run(sim, 20 * SEC);
    is_int(node_parts(sim, 0, METRIC_XID_LAST), 31, "what is to come does");
    sim_run(sim, 70 * SEC);
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL), 2, "what repeats keeps its beat");
    sim_free(sim);
}

int main(void)
{
    test_determinism();
    test_streams_are_independent();
    test_publication();
    test_adoption();
    test_foreign_worlds_are_refused();
    test_growth();
    test_copies();
    test_events();
    test_clock();
    test_behind();
    test_apply_adds_and_removes();
    test_apply_reorders();
    test_apply_settings();
    test_apply_workloads();
    test_apply_is_all_or_nothing();
    test_apply_faults();
    return tap_done();
}
