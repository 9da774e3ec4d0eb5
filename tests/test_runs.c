/*
 * Runs: workloads move along their timelines, share GPUs, and end as they should.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "sim/runs.h"
#include "tests/node.h"

static const char *message(const struct sim *sim, const char *name)
{
    static char text[128];
    struct text out = TEXT_INIT;

    run_message(&out, sim_find_run(sim, name));
    snprintf(text, sizeof(text), "%s", text_str(&out));
    text_release(&out);
    return text;
}

static double util(const struct sim *sim, int gpu)
{
    return node_value(sim, gpu, METRIC_UTILIZATION_GPU);
}

static void test_timeline(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\nstep: 1s\n");
    const struct run *run;
    int wrong = 0;

    is_int(node_workload(sim, "w",
                         "[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}], repeat: 5",
                         NULL),
           0, "the timeline is accepted as written");
    for (int hour = 0; hour < 10; hour++) {
        sim_run(sim, 1800 * SEC);
        wrong += util(sim, 0) != (hour % 2 ? 0 : 80);
        sim_run(sim, 1800 * SEC);
    }
    is_int(wrong, 0, "80 %% for an hour, nothing for an hour, five times");
    run = sim_find_run(sim, "w");
    is_int(run->state, RUN_ENDED, "then it has ended");
    is_int(run->exit_code, 0, "with exit code 0");
    is_str(message(sim, "w"), "", "and no complaint");
    is_int(run->ended_ns - run->started_ns, 36000 * SEC, "after ten hours exactly");
    is_real(util(sim, 0), 0, 0, "the GPU is free");
    sim_free(sim);
}

static void test_functions(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    double least = 200, most = 0, before = 0;
    int fell = 0;

    node_workload(sim, "random", "{activity: {utilization: {random: {min: 20, max: 60}}}}", NULL);
    for (int i = 0; i < 200; i++) {
        sim_run(sim, SEC);
        least = fmin(least, util(sim, 0));
        most = fmax(most, util(sim, 0));
    }
    ok(least >= 20 && least < 25 && most <= 60 && most > 55,
       "random: between its bounds (%.1f to %.1f)", least, most);
    sim_remove_workload(sim, "random", NULL);

    node_workload(
        sim, "leak",
        "{activity: 10, memory: {random-increase: {from: 1GiB, step: 100MiB, max: 3GiB}}}", NULL);
    is_real(node_value(sim, 0, METRIC_MEMORY_USED), (double)GIB, 0,
            "random-increase: starts at from");
    for (int i = 0; i < 200; i++) {
        sim_run(sim, SEC);
        fell += node_value(sim, 0, METRIC_MEMORY_USED) < before;
        before = node_value(sim, 0, METRIC_MEMORY_USED);
    }
    is_int(fell, 0, "random-increase: never falls");
    is_real(before, 3 * (double)GIB, 0, "random-increase: stops at max");
    sim_remove_workload(sim, "leak", NULL);

    node_workload(sim, "ramp", "{activity: {utilization: {ramp: {from: 0, to: 100, over: 100s}}}}",
                  NULL);
    sim_run(sim, 50 * SEC);
    is_real(util(sim, 0), 50, 1.1, "ramp: half way after half the time");
    sim_remove_workload(sim, "ramp", NULL);

    node_workload(sim, "wave",
                  "{activity: {utilization: {wave: {mean: 50, amplitude: 40, period: 40s}}}}",
                  NULL);
    sim_run(sim, 10 * SEC);
    is_real(util(sim, 0), 90, 1, "wave: at its crest after a quarter");
    sim_remove_workload(sim, "wave", NULL);

    node_workload(sim, "share",
                  "{activity: {utilization: 50, pcie_rx: 25%, nvlink_tx: 10%}, memory: 25%}", NULL);
    is_real(node_value(sim, 0, METRIC_MEMORY_USED), (double)(40960 - 518) * (double)MIB / 4, 1,
            "shares: a quarter of the memory");
    is_real(node_value(sim, 0, METRIC_NVLINK_TX), 12 * 25000e6 / 10, 1,
            "shares: a tenth of NVLink");
    sim_free(sim);
}

static void test_engines(void)
{
    struct sim *sim = node_new("gpus: {count: 1, model: L40S}\n");

    node_workload(sim, "video",
                  "{activity: {encoder: 70, decoder: 30, jpeg: 20, ofa: 10, utilization: 5, "
                  "tensor: 1, fp64: 2, fp32: 3, fp16: 4, integer: 6, occupancy: 7, sm_active: 8}}",
                  NULL);
    is_real(node_value(sim, 0, METRIC_UTILIZATION_ENCODER), 70, 0, "the encoder is busy");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_DECODER), 30, 0, "the decoder");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_JPEG), 20, 0, "the JPEG engine");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_OFA), 10, 0, "optical flow");
    is_real(node_value(sim, 0, METRIC_TENSOR_ACTIVE), 0.01, 1e-9, "the tensor pipe");
    is_real(node_value(sim, 0, METRIC_FP64_ACTIVE), 0.02, 1e-9, "fp64");
    is_real(node_value(sim, 0, METRIC_FP32_ACTIVE), 0.03, 1e-9, "fp32");
    is_real(node_value(sim, 0, METRIC_FP16_ACTIVE), 0.04, 1e-9, "fp16");
    is_real(node_value(sim, 0, METRIC_INTEGER_ACTIVE), 0.06, 1e-9, "integer");
    is_real(node_value(sim, 0, METRIC_SM_OCCUPANCY), 0.07, 1e-9, "occupancy");
    is_real(node_value(sim, 0, METRIC_SM_ACTIVE), 0.08, 1e-9, "SM activity");
    sim_free(sim);
}

static void test_sharing(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    const struct share *shares;

    node_workload(sim, "a", "{activity: 30, devices: 0, memory: 4GiB}", NULL);
    node_workload(sim, "b", "{activity: 50, devices: [0, 1], memory: 6GiB}", NULL);
    is_real(util(sim, 0), 80, 0, "loads on one GPU add up");
    is_real(util(sim, 1), 50, 0, "one workload loads all of its GPUs");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 10 * GIB, "and so does memory");
    is_int(node_parts(sim, 1, METRIC_MEMORY_USED), 6 * GIB, "on each of them");
    node_workload(sim, "c", "{activity: 120:0:10m, devices: 0}", NULL);
    is_int(node_workload(sim, "c", "{activity: 80, devices: 0}", NULL), 0, "a third");
    is_real(util(sim, 0), 100, 0, "together they are clamped");
    shares = world_shares(sim_world(sim));
    is_real(shares[0].utilization_percent, 30e3 * 100 / 160, 1, "and each gets its part");
    sim_remove_workload(sim, "c", NULL);
    sim_remove_workload(sim, "a", NULL);
    is_real(util(sim, 0), 50, 0, "what goes leaves the rest");
    sim_free(sim);
}

static void test_memory_refused(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    struct why why = { 0 };

    node_workload(sim, "a", "{activity: 30, memory: 30GiB}", NULL);
    is_int(node_workload(sim, "b", "{activity: 50, memory: 20GiB}", &why), -ENOSPC,
           "memory that does not fit is refused");
    like(why_text(&why), "needs 20480 MiB on GPU 0, which has 9722 MiB free", "with the numbers");
    ok(!sim_find_run(sim, "b"), "and leaves no workload behind");
    is_real(util(sim, 0), 30, 0, "nor load");
    node_workload(sim, "leak", "{activity: 5, memory: {random-increase: {from: 1GiB, step: 1GiB}}}",
                  NULL);
    sim_run(sim, 120 * SEC);
    is_int(sim_find_run(sim, "leak")->exit_code, 1, "a leak ends when the memory does");
    is_str(message(sim, "leak"), "Out of memory on GPU 0, terminated", "and says so");
    is_int(sim_find_run(sim, "a")->state, RUN_RUNNING, "who was there before stays");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 30 * GIB, "with what it had");
    why_release(&why);
    sim_free(sim);
}

static void limit_ends(const char *text, const char *expected, int64_t after_s, int64_t tolerance_s)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    const struct run *run;

    if (!is_int(node_workload(sim, "w", text, NULL), 0, "%s", text))
        return;
    sim_run(sim, 600 * SEC);
    run = sim_find_run(sim, "w");
    is_int(run->exit_code, 1, "%s: exit code 1", expected);
    is_str(message(sim, "w"), expected, "%s: the message", expected);
    ok(llabs((long long)(run->ended_ns / SEC - after_s)) <= tolerance_s, "%s: after %lld s",
       expected, (long long)(run->ended_ns / SEC));
    sim_free(sim);
}

static void test_limits(void)
{
    limit_ends("{activity: 50, limits: {time: 90s}}", "Limit time reached, terminated", 90, 0);
    limit_ends("{activity: 100, limits: {energy: 20kJ}}", "Limit energy reached, terminated", 57,
               3);
    limit_ends(
        "{activity: 5, memory: {random-increase: {from: 1GiB, step: 200MiB}}, limits: {memory: 3GiB}}",
        "Limit memory reached, terminated", 20, 6);
    limit_ends("{activity: 100, limits: {temperature_gpu_c: 60}}",
               "Limit temperature_gpu_c reached, terminated", 35, 8);
    limit_ends("{activity: [{time: 10s, utilization: 20}, {utilization: 90}], "
               "limits: {utilization_gpu_percent: 80, time: 1h}}",
               "Limit utilization_gpu_percent reached, terminated", 10, 1);
}

static void test_exact_memory_limit(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");

    node_workload(sim, "w", "{activity: 5, memory: 3GiB, limits: {memory: 3GiB}}", NULL);
    sim_run(sim, 10 * SEC);
    is_int(sim_find_run(sim, "w")->state, RUN_RUNNING, "memory may be used up to its limit");
    sim_free(sim);
}

/* 6912 cores at 1410 MHz against 2560 at 1590: a T4 needs 2.39 times as long. */
static void test_scaling(void)
{
    struct sim *sim = node_new(
        "gpus: [{model: A100-SXM4-40GB}, {model: T4}, {model: H100-80GB-HBM3}]\n");
    double t4 = 6912.0 * 1410 / (2560 * 1590.0), h100 = 6912.0 * 1410 / (16896 * 1980.0);
    const char *const names[] = { "on-a100", "on-t4", "on-h100" };
    const double expected[] = { 1, t4, h100 };

    for (int i = 0; i < 3; i++) {
        char text[128];

        snprintf(text, sizeof(text), "{activity: '90:0:100s', model: A100-SXM4-40GB, devices: %d}",
                 i);
        node_workload(sim, names[i], text, NULL);
    }
    sim_run(sim, 400 * SEC);
    for (int i = 0; i < 3; i++) {
        const struct run *run = sim_find_run(sim, names[i]);

        is_real((double)(run->ended_ns - run->started_ns) / (double)SEC, 100 * expected[i], 0.11,
                "%s takes %.1f s", names[i], 100 * expected[i]);
    }
    is_int(node_workload(sim, "x", "{activity: 90, model: A1000}", NULL), -EINVAL,
           "an unknown model is refused");
    sim_free(sim);
}

static void test_placement(void)
{
    struct sim *sim = node_new("gpus: {count: 4}\n");
    struct why why = { 0 };

    for (int i = 0; i < 4; i++)
        node_workload(sim, (const char *[]){ "a", "b", "c", "d" }[i], "{activity: 40}", NULL);
    ok(util(sim, 0) == 40 && util(sim, 1) == 40 && util(sim, 2) == 40 && util(sim, 3) == 40,
       "workloads that name no GPU spread out");
    sim_remove_workload(sim, "c", NULL);
    node_workload(sim, "e", "{activity: 70}", NULL);
    is_real(util(sim, 2), 70, 0, "the free GPU is taken first");
    is_int(node_workload(sim, "f", "{activity: 10, gpus: 5}", &why), -ENODEV,
           "more GPUs than there are");
    like(why_text(&why), "asks for 5 GPUs; 4 can be had", "says how many");
    is_int(node_workload(sim, "g", "{activity: 10, devices: 9}", &why), -ENODEV,
           "a GPU that is not there");
    is_int(node_workload(sim, "a", "{activity: 10}", &why), -EEXIST, "a name that is taken");
    is_int(node_workload(sim, "../x", "{activity: 10}", &why), -EINVAL, "a name that is a path");
    is_int(sim_remove_workload(sim, "nobody", &why), -ENOENT, "removing what is not there");
    is_int(node_workload(sim, "h", "{activity: 10, devices: '0000:17:00.0'}", NULL), 0,
           "a GPU by bus id");
    is_real(util(sim, 1), 50, 0, "is that GPU");
    why_release(&why);
    sim_free(sim);
}

static void test_start_and_stop(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\nworkloads:\n"
                               "  - {name: late, start: 10s, activity: '60:0:5s'}\n"
                               "  - {name: huge, start: 20s, memory: 50%, activity: 1}\n"
                               "  - {name: more, start: 30s, memory: 60%, activity: 1}\n");

    sim_run(sim, 9 * SEC);
    is_int(sim_find_run(sim, "late")->state, RUN_WAITING, "a workload waits for its time");
    is_real(util(sim, 0), 0, 0, "doing nothing");
    sim_run(sim, 3 * SEC);
    is_real(util(sim, 0), 60, 0, "then it runs");
    sim_run(sim, 30 * SEC);
    is_int(sim_find_run(sim, "late")->exit_code, 0, "and ends");
    is_str(message(sim, "more"), "Out of memory on GPU 0, terminated",
           "one that cannot start ends at once");
    is_int(sim_stop_workload(sim, "huge", NULL), 0, "a workload can be stopped");
    is_int(sim_find_run(sim, "huge")->exit_code, 0, "which is not a failure");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 0, "its memory is free");
    sim_free(sim);
}

static void test_base_workload(void)
{
    struct sim *sim = node_new(
        "gpus:\n"
        "  - {model: T4, workload: {activity: 15, memory: 1GiB}}\n"
        "  - {model: T4, workload: {activity: '10:0:5s,30:0:5s', repeat: 0}}\n"
        "  - model: T4\n");

    sim_run(sim, 7 * SEC);
    is_real(util(sim, 0), 15, 0, "a GPU's own load");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), GIB, "with its memory");
    is_real(util(sim, 1), 30, 0, "with its timeline");
    is_real(util(sim, 2), 0, 0, "is only on that GPU");
    node_workload(sim, "w", "{activity: 20, devices: 0}", NULL);
    is_real(util(sim, 0), 35, 0, "others add to it");
    sim_run(sim, 60 * SEC);
    is_int(sim_world(sim)->used[SECTION_RUNS], 3, "and it goes on");
    sim_free(sim);
}

static void test_lost_and_hung(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");

    node_workload(sim, "w", "{activity: '50:0:60s', devices: [0, 1]}", NULL);
    node_workload(sim, "v", "{activity: '50:0:60s', devices: 1}", NULL);
    sim_run(sim, 10 * SEC);
    sim_fault(sim, 1, "hang for 20s", NULL);
    sim_run(sim, 20 * SEC);
    is_int(sim_find_run(sim, "v")->progress_ns / SEC, 10, "on a hung GPU nothing moves on");
    is_real(util(sim, 1), 100, 0, "though it looks busy");
    sim_run(sim, 10 * SEC);
    ok(sim_find_run(sim, "v")->progress_ns / SEC >= 19, "afterwards it does");
    sim_fault(sim, 0, "fallen_off_bus", NULL);
    sim_step(sim);
    is_str(message(sim, "w"), "GPU 0 is lost, terminated", "a lost GPU takes its workloads along");
    is_int(sim_find_run(sim, "v")->state, RUN_RUNNING, "and no others");
    sim_free(sim);
}

/* Sections shrink when workloads go: whatever the order, the others stay what they are. */
static void test_removal_keeps_the_rest(void)
{
    struct sim *sim = node_new("gpus: {count: 8}\nprofile: cycle\n");
    char name[16], text[128];
    int wrong = 0;

    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(text, sizeof(text),
                 "{activity: [{time: 30s, utilization: 1}, {utilization: %d, tensor: 1}], "
                 "memory: %dMiB, limits: {time: %dh}, gpus: %d}",
                 i, i + 1, i + 1, 1 + i % 3);
        wrong += node_workload(sim, name, text, NULL) != 0;
    }
    sim_run(sim, 31 * SEC);
    for (int i = 0; i < 64; i += 1 + i % 2) {
        snprintf(name, sizeof(name), "w%d", i);
        sim_remove_workload(sim, name, NULL);
    }
    sim_run(sim, SEC);
    for (int i = 0; i < 64; i++) {
        const struct run *run;

        snprintf(name, sizeof(name), "w%d", i);
        run = sim_find_run(sim, name);
        if (!run)
            continue;
        wrong += run->value[CHANNEL_UTILIZATION] != i * 1000.0;
        wrong += run->value[CHANNEL_MEMORY] != (double)((i + 1) * MIB);
        wrong += run->share_count != (uint32_t)(1 + i % 3);
        for (uint32_t s = 0; s < run->share_count; s++)
            wrong += world_shares(sim_world(sim))[run->first_share + s].memory_bytes !=
                     (i + 1) * MIB;
    }
    is_int(wrong, 0, "every workload that stays is as it was");
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50, 0, "and so are the profiles");
    sim_free(sim);
}

int main(void)
{
    test_timeline();
    test_functions();
    test_engines();
    test_sharing();
    test_memory_refused();
    test_limits();
    test_exact_memory_limit();
    test_scaling();
    test_placement();
    test_start_and_stop();
    test_base_workload();
    test_lost_and_hung();
    test_removal_keeps_the_rest();
    return tap_done();
}
