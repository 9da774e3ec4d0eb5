/*
 * Archive: a GPU's history and the accounts of its processes are kept, bounded, and follow the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "sim/physics.h"
#include "sim/workload_plan.h"
#include "tests/node.h"

static const struct gpu *gpu_of(const struct sim *sim, int i)
{
    return &world_gpus(sim_world(sim))[i];
}

static const struct moment *moment(const struct sim *sim, int gpu, uint32_t k)
{
    return archive_moment(sim_store(sim), gpu_of(sim, gpu), k);
}

static const struct moment *newest(const struct sim *sim, int gpu)
{
    return moment(sim, gpu, archive_moments(gpu_of(sim, gpu)) - 1);
}

static uint32_t accounts(const struct sim *sim, int gpu)
{
    return archive_accounts(gpu_of(sim, gpu));
}

static const struct account *account(const struct sim *sim, int gpu, uint32_t k)
{
    return archive_account(sim_store(sim), gpu_of(sim, gpu), k);
}

/* The share of a workload on its first GPU. */
static const struct share *share_of(const struct sim *sim, const char *name)
{
    return &world_shares(sim_world(sim))[sim_find_run(sim, name)->first_share];
}

/* --- history --------------------------------------------------------------------------------- */

static void test_depth(void)
{
    struct sim *sim = node_new("gpus: {count: 2, model: A100-SXM4-40GB}\n");
    uint32_t n;
    int wrong = 0;

    is_int(archive_moments(gpu_of(sim, 0)), 1, "a history begins with the GPU");
    is_int(moment(sim, 0, 0)->time_ns, 0, "at its first instant");
    sim_run(sim, 5 * SEC);
    is_int(archive_moments(gpu_of(sim, 0)), 51, "every 100 ms there is one more");
    sim_run(sim, 60 * SEC);
    n = archive_moments(gpu_of(sim, 1));
    is_int(n, HISTORY_MOMENTS, "up to as many as are kept");
    for (uint32_t k = 0; k < n; k++)
        wrong += moment(sim, 1, k)->time_ns != 65 * SEC - (int64_t)(n - 1 - k) * MOMENT_NS;
    is_int(wrong, 0, "the newest, oldest first, without a gap");
    is_int(newest(sim, 0)->value[SAMPLING_POWER], node_parts(sim, 0, METRIC_POWER_USAGE),
           "the newest is what the metric says");
    is_int(newest(sim, 0)->value[SAMPLING_SM_CLOCK], (int64_t)node_value(sim, 0, METRIC_CLOCK_SM),
           "in shown units");
    is_int(newest(sim, 0)->value[SAMPLING_MODULE_POWER], MOMENT_ABSENT,
           "what the board does not have is absent");
    sim_free(sim);
}

static void test_steps(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\nstep: 1s\n");

    sim_run(sim, 10 * SEC);
    is_int(archive_moments(gpu_of(sim, 0)), 11, "longer steps: a moment at each");
    sim_free(sim);
    sim = node_new("gpus: {count: 1}\nstep: 10ms\n");
    sim_run(sim, 1 * SEC);
    is_int(archive_moments(gpu_of(sim, 0)), 11, "shorter ones: every 100 ms all the same");
    sim_free(sim);
}

static void test_energy(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    int64_t before, used = 0;

    node_workload(sim, "w", "{activity: '70:20:5s,10:5:5s', repeat: 0}", NULL);
    sim_run(sim, 30 * SEC);
    before = node_parts(sim, 0, METRIC_ENERGY_TOTAL);
    sim_run(sim, 10 * SEC);
    for (uint32_t k = HISTORY_MOMENTS - 100; k < HISTORY_MOMENTS; k++)
        used += moment(sim, 0, k)->value[SAMPLING_POWER];
    is_real((double)(node_parts(sim, 0, METRIC_ENERGY_TOTAL) - before), (double)used / 10, 1,
            "power over time is the energy that was counted, in mJ");
    ok(used > 0, "and there was some");
    sim_free(sim);
}

static void test_trouble(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    int64_t last;

    sim_fault(sim, 0, "sensor power_usage_mw", NULL);
    sim_run(sim, SEC);
    is_int(newest(sim, 0)->value[SAMPLING_POWER], MOMENT_FAILED, "a sensor that fails is marked");
    ok(newest(sim, 0)->value[SAMPLING_SM_CLOCK] < MOMENT_FAILED, "the others are not");
    sim_fault(sim, 1, "fallen_off_bus", NULL);
    last = newest(sim, 1)->time_ns;
    sim_run(sim, SEC);
    is_int(newest(sim, 1)->time_ns, last, "a lost GPU has no new moments");
    sim_fault(sim, 1, "recover", NULL);
    sim_run(sim, SEC);
    is_int(newest(sim, 1)->time_ns, 3 * SEC, "until it is back");
    sim_free(sim);
}

static void test_follows_gpu(void)
{
    static const char a[] = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
    static const char b[] = "GPU-bbbbbbbb-0000-0000-0000-000000000000";
    static const char c[] = "GPU-cccccccc-0000-0000-0000-000000000000";
    struct sim *sim;
    char yaml[512];
    uint32_t kept;

    snprintf(yaml, sizeof(yaml), "gpus: [{uuid: %s}, {uuid: %s}]\n", a, b);
    sim = node_new(yaml);
    sim_pin(sim, 1, METRIC_POWER_USAGE, "77777", NULL);
    sim_run(sim, 2 * SEC);
    kept = archive_moments(gpu_of(sim, 1));
    snprintf(yaml, sizeof(yaml),
             "gpus: [{uuid: %s, bus_id: '0000:65:00.0'}, {uuid: %s, bus_id: '0000:66:00.0'}]\n", b,
             c);
    is_int(node_apply(sim, yaml, NULL), 0, "one GPU goes, one comes, one moves");
    is_int(archive_moments(gpu_of(sim, 0)), kept, "the one that moved has its history");
    is_int(newest(sim, 0)->value[SAMPLING_POWER], 77777, "its own");
    is_int(archive_moments(gpu_of(sim, 1)), 1, "the new one begins its own");
    ok(gpu_of(sim, 0)->archive != gpu_of(sim, 1)->archive, "elsewhere");
    sim_run(sim, 20 * SEC);
    is_int(moment(sim, 0, 0)->value[SAMPLING_POWER], 77777, "and neither disturbs the other");
    ok(moment(sim, 1, 0)->value[SAMPLING_POWER] != 77777, "which has its own power");
    sim_free(sim);
}

/* A worker that dies in a step leaves the published history as it was. */
static void test_dropped_step(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    struct moment before[HISTORY_MOMENTS];
    struct stepping st = { .store = (struct world_store *)sim_store(sim), .dt_ns = MOMENT_NS };
    int changed = 0;

    sim_run(sim, 60 * SEC);
    for (uint32_t k = 0; k < HISTORY_MOMENTS; k++)
        before[k] = *moment(sim, 0, k);
    st.world = world_begin(st.store, NULL, NULL);
    st.world->node.now_ns += st.dt_ns;
    archive_keep(&st, 0);
    is_int(archive_moments(&world_gpus(st.world)[0]), HISTORY_MOMENTS,
           "a step that is never published");
    for (uint32_t k = 0; k < HISTORY_MOMENTS; k++)
        changed += memcmp(&before[k], moment(sim, 0, k), sizeof(before[k])) != 0;
    is_int(changed, 0, "changes nothing that can be seen");
    sim_free(sim);
}

/* --- accounting ------------------------------------------------------------------------------ */

static void test_accounting(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    const struct account *a;
    struct why why = { 0 };

    node_workload(sim, "early", "{devices: 0, activity: '50:0:1h'}", NULL);
    sim_run(sim, SEC);
    is_int(share_of(sim, "early")->account.workload, 0, "it is off at first");
    is_int(sim_clear_accounting(sim, 0, &why), -EOPNOTSUPP, "there is nothing to clear");
    is_int(sim_set_accounting_mode(sim, 0, true, &why), 0, "on");
    node_workload(sim, "w",
                  "{devices: [0, 1], activity: '80:0:3s,20:0:1s', memory: 2GiB, pid: 4242}", NULL);
    sim_run(sim, 2 * SEC);
    is_int(share_of(sim, "early")->account.workload, 0, "what ran before has no account");
    is_int(share_of(sim, "w")->account.start_ns, SEC, "what began then has one");
    is_int(accounts(sim, 0), 0, "which is not over");
    sim_run(sim, 8 * SEC);
    is_int(accounts(sim, 0), 1, "when it ends its account stays");
    is_int(accounts(sim, 1), 0, "on the GPU that keeps accounts alone");
    a = account(sim, 0, 0);
    is_int(a->pid, 4242, "with its process");
    is_int(a->end_ns - a->start_ns, 4 * SEC, "its time");
    is_int(a->max_memory_bytes, 2 * GIB, "the most memory that it had");
    /* 80 % and 50 % together are more than there is: each gets its part. */
    is_real(a->gpu_busy_ns / (double)(4 * SEC), (3 * 80. / 130 + 1 * 0.2) / 4, 1e-9,
            "and what it used of the GPU");
    ok(a->memory_busy_ns > 0, "and of its memory");
    is_int(sim_clear_accounting(sim, 0, &why), 0, "those that ended can be forgotten");
    is_int(accounts(sim, 0), 0, "and are");
    node_workload(sim, "late", "{devices: 0, activity: '5:0:1h'}", NULL);
    sim_run(sim, SEC);
    ok(share_of(sim, "late")->account.workload != 0, "another one");
    is_int(sim_set_accounting_mode(sim, 0, false, &why), 0, "off");
    is_int(share_of(sim, "late")->account.workload, 0, "forgets it");
    sim_run(sim, SEC);
    is_int(sim_stop_workload(sim, "late", NULL), 0, "nor does its end");
    is_int(accounts(sim, 0), 0, "leave anything");
    why_release(&why);
    sim_free(sim);
}

static void test_accounting_removal(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");

    sim_set_accounting_mode(sim, 1, true, NULL);
    node_workload(sim, "w", "{devices: 1, activity: '80:0:1h'}", NULL);
    sim_run(sim, 2 * SEC);
    is_int(sim_remove_workload(sim, "w", NULL), 0, "a workload is removed");
    is_int(accounts(sim, 1), 1, "its account is not");
    is_int(account(sim, 1, 0)->end_ns, 2 * SEC, "and says when that was");
    is_int(node_apply(sim, "gpus: {count: 2, power_limit: 300W}\n", NULL), 0,
           "another configuration");
    is_int(gpu_of(sim, 1)->settings.accounting_mode, 1, "leaves it on");
    is_int(accounts(sim, 1), 1, "with what it has");
    sim_free(sim);
}

/* Describing a workload again does not make another process of it. */
static void test_accounting_replaced(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    uint64_t id;

    sim_set_accounting_mode(sim, 0, true, NULL);
    sim_set_accounting_mode(sim, 1, true, NULL);
    node_workload(sim, "w", "{devices: 0, activity: '80:0:1h'}", NULL);
    id = share_of(sim, "w")->account.workload;
    sim_run(sim, 2 * SEC);
    workload_parse(&spec, "w", "{devices: 0, activity: '10:0:1h', name: w}", &arena, NULL);
    is_int(sim_replace_workload(sim, "w", &spec, true, NULL), 0, "it is described again");
    is_int(share_of(sim, "w")->account.start_ns, 0, "its account goes on");
    is_int((int64_t)share_of(sim, "w")->account.workload, (int64_t)id, "for the same process");
    is_int(accounts(sim, 0), 0, "nothing has ended");
    sim_run(sim, 2 * SEC);
    workload_parse(&spec, "w", "{devices: 1, activity: '10:0:1h', name: w}", &arena, NULL);
    is_int(sim_replace_workload(sim, "w", &spec, true, NULL), 0, "it goes to another GPU");
    is_int(accounts(sim, 0), 1, "its account on the first is over");
    is_int(share_of(sim, "w")->account.start_ns, 4 * SEC, "and begins on the second");
    is_int((int64_t)share_of(sim, "w")->account.workload, (int64_t)id, "for the same process");
    node_workload(sim, "later", "{devices: 0, start: 1h, activity: '80:0:1h'}", NULL);
    workload_parse(&spec, "later", "{devices: 0, activity: '10:0:1h', name: later}", &arena, NULL);
    is_int(sim_replace_workload(sim, "later", &spec, false, NULL), 0, "one that waited");
    is_int((int64_t)share_of(sim, "later")->account.workload,
           (int64_t)world_workloads(sim_world(sim))[1].id, "begins under its own name");
    arena_release(&arena);
    sim_free(sim);
}

static void test_accounting_many(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    char name[32], text[64];
    int wrong = 0;

    sim_set_accounting_mode(sim, 0, true, NULL);
    for (int i = 1; i <= ACCOUNTS_KEPT + 50; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(text, sizeof(text), "{activity: '5:0:1h', pid: %d}", i);
        wrong += node_workload(sim, name, text, NULL) != 0;
        wrong += sim_remove_workload(sim, name, NULL) != 0;
    }
    is_int(wrong, 0, "more processes than there is room for accounts");
    is_int(accounts(sim, 0), ACCOUNTS_KEPT, "the last 4000 are kept");
    is_int(account(sim, 0, 0)->pid, 51, "the oldest is gone");
    is_int(account(sim, 0, ACCOUNTS_KEPT - 1)->pid, ACCOUNTS_KEPT + 50, "the newest is there");
    sim_free(sim);
}

/* --- MIG ------------------------------------------------------------------------------------- */

static struct sim *mig_node(void)
{
    struct sim *sim = node_new("gpus: {count: 2, model: A100-SXM4-40GB, mig_mode: true}\n");

    if (sim_mig(sim, 0, "create 3g.20gb", NULL) < 0 || sim_mig(sim, 0, "create 1g.5gb", NULL) < 0)
        bail("no MIG instances");
    return sim;
}

/* The instance of that profile: GI numbers are the driver's. */
static int instance_of(const struct sim *sim, const char *profile)
{
    const struct world *w = sim_world(sim);
    const struct gpu *g = gpu_of(sim, 0);
    const struct gpu_model *m = world_gpu_model(w, 0);

    for (int gi = 0; gi < MIG_GIS_MAX; gi++)
        if (g->gis[gi].used && !strcmp(m->mig.items[g->gis[gi].profile].name, profile))
            return gi;
    return -1;
}

static void test_mig_names(void)
{
    struct sim *sim = mig_node();
    int gi = instance_of(sim, "3g.20gb");
    char text[128], uuid[48], want[128];
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    struct why why = { 0 };

    mig_uuid(world_gpu_plans(sim_world(sim))[0].uuid, gi, 0, uuid, sizeof(uuid));
    snprintf(text, sizeof(text), "{devices: '0:%d', activity: '50:0:1h'}", gi);
    is_int(node_workload(sim, "short", text, &why), 0, "GPU:GI names an instance");
    is_int(share_of(sim, "short")->gi, gi, "that one");
    is_int(share_of(sim, "short")->ci, 0, "and its first compute instance");
    snprintf(text, sizeof(text), "{devices: '0:%d:0', activity: '50:0:1h'}", gi);
    is_int(node_workload(sim, "long", text, &why), 0, "GPU:GI:CI does");
    is_int(share_of(sim, "long")->gi, gi, "too");
    snprintf(text, sizeof(text), "{devices: '%s:%d:0', activity: '50:0:1h'}",
             world_gpu_plans(sim_world(sim))[0].uuid, gi);
    is_int(node_workload(sim, "by-gpu", text, &why), 0, "the GPU by its UUID");
    snprintf(text, sizeof(text), "{devices: %s, activity: '50:0:1h'}", uuid);
    is_int(node_workload(sim, "by-uuid", text, &why), 0, "the instance by its own");
    is_int(share_of(sim, "by-uuid")->gi, gi, "which is that one");
    plan_describe_workload(sim_world(sim), 3, &spec, &arena);
    is_str(((struct device_name *)spec.devices.items)->text, uuid, "and so it is described again");
    static const char *const bad[] = { "0:13", "0:99",    "1:1",  "0:1:7",       "7:1", "0:",
                                       "0:x",  "0:1:0:0", "0:-1", "MIG-nothing", ":1",  "0:1:" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{devices: '%s', activity: '50:0:1h'}", bad[i]);
        is_int(node_workload(sim, "bad", text, &why), -ENODEV, "'%s' is none", bad[i]);
    }
    snprintf(want, sizeof(want), "workload 'bad': there is no GPU '%s'", bad[11]);
    is_str(why_text(&why), want, "and the sentence says so");
    arena_release(&arena);
    why_release(&why);
    sim_free(sim);
}

static void test_mig_load(void)
{
    struct sim *sim = mig_node();
    const struct world *w = sim_world(sim);
    const struct gpu_model *m = &world_models(w)[0];
    int large = instance_of(sim, "3g.20gb"), small = instance_of(sim, "1g.5gb");
    double part = mig_compute_part(gpu_of(sim, 0), m, large, 0);
    char text[128], want[64];
    struct why why = { 0 };

    is_real(part, 42. / 108, 1e-9, "an instance of 3 slices has 42 of 108 SMs");
    snprintf(text, sizeof(text), "{devices: '0:%d', activity: {utilization: 80}, memory: 10GiB}",
             large);
    is_int(node_workload(sim, "w", text, &why), 0, "a workload on an instance");
    sim_run(sim, SEC);
    is_real(share_of(sim, "w")->utilization_percent, 80e3 * part, 1, "uses its part of the GPU");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 10 * GIB, "and of the GPU's memory");
    ok(isnan(node_value(sim, 0, METRIC_UTILIZATION_GPU)), "the GPU as a whole has no utilization");
    snprintf(text, sizeof(text), "{devices: '0:%d', activity: {utilization: 100}}", large);
    node_workload(sim, "other", text, NULL);
    sim_run(sim, SEC);
    is_real(share_of(sim, "w")->utilization_percent + share_of(sim, "other")->utilization_percent,
            100e3 * part, 1, "who shares an instance shares what it has");
    snprintf(text, sizeof(text), "{devices: '0:%d', activity: {utilization: 100}, memory: 5GiB}",
             small);
    is_int(node_workload(sim, "big", text, &why), -ENOSPC, "5 GiB are more than a 1g.5gb has");
    snprintf(want, sizeof(want), "on GPU instance %d of GPU 0, which has", small);
    ok(strstr(why_text(&why), want) != NULL, "and the sentence says where: %s", why_text(&why));
    snprintf(
        text, sizeof(text),
        "{devices: '0:%d', activity: {utilization: 100}, memory: {ramp: {from: 1GiB, to: 8GiB, over: 10s}}}",
        small);
    is_int(node_workload(sim, "grows", text, &why), 0, "one that grows");
    sim_run(sim, 10 * SEC);
    is_int(sim_find_run(sim, "grows")->state, RUN_ENDED, "ends when its instance is full");
    is_int(sim_find_run(sim, "w")->state, RUN_RUNNING, "the others do not");
    snprintf(text, sizeof(text), "destroy %d", large);
    is_int(sim_mig(sim, 0, text, &why), -EBUSY, "an instance in use stays");
    is_int(sim_set_accounting_mode(sim, 0, true, &why), -EOPNOTSUPP, "MIG has no accounting");
    sim_stop_workload(sim, "w", NULL);
    sim_stop_workload(sim, "other", NULL);
    is_int(sim_mig(sim, 0, text, &why), 0, "until nobody uses it");
    why_release(&why);
    sim_free(sim);
}

/* A configuration that switches MIG off takes instances away, and who ran on them ends. */
static void test_mig_off(void)
{
    struct sim *sim = mig_node();
    char text[128];

    snprintf(text, sizeof(text), "{devices: '0:%d', activity: {utilization: 80}}",
             instance_of(sim, "1g.5gb"));
    node_workload(sim, "w", text, NULL);
    sim_run(sim, SEC);
    is_int(node_apply(sim, "gpus: {count: 2, model: A100-SXM4-40GB, mig_mode: false}\n", NULL), 0,
           "MIG is configured away");
    is_int(sim_find_run(sim, "w")->state, RUN_ENDED, "what ran on it has ended");
    sim_run(sim, SEC);
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 0, 0, "and the GPU is idle");
    sim_free(sim);
}

int main(void)
{
    test_depth();
    test_steps();
    test_energy();
    test_trouble();
    test_follows_gpu();
    test_dropped_step();
    test_accounting();
    test_accounting_removal();
    test_accounting_replaced();
    test_accounting_many();
    test_mig_names();
    test_mig_load();
    test_mig_off();
    return tap_done();
}
