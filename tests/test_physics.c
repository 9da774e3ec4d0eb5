/*
 * Physics: power, energy, heat, clocks and throttling hang together as on a real board.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "tests/node.h"

#define ONE_A100 "seed: 3\ngpus: {count: 1, model: A100-SXM4-40GB}\n"
#define QUIET ONE_A100 "physics: {power_noise: 0}\n"

static const char heavy[] = "{activity: {utilization: 100, tensor: 100, memory_utilization: 100}}";

static int64_t reasons(const struct sim *sim)
{
    return node_parts(sim, 0, METRIC_THROTTLE_REASONS);
}

static void test_energy_is_the_integral_of_power(void)
{
    struct sim *sim = node_new(ONE_A100);
    double joules = 0, energy;

    node_workload(sim, "w", "{activity: '90:10:7s,0:0:5s,50:20:9s', repeat: 0}", NULL);
    for (int i = 0; i < 36000; i++) {
        sim_step(sim);
        joules += node_value(sim, 0, METRIC_POWER_USAGE) / 1000 * 0.1;
    }
    energy = node_value(sim, 0, METRIC_ENERGY_TOTAL) / 1000;
    ok(fabs(energy - joules) / joules < 0.001,
       "energy equals the integral of power to 0.1 %% (%.0f J, %.0f J)", energy, joules);
    sim_free(sim);
}

/* After one time constant a first-order lag has gone 1 − 1/e of its way. */
static void test_time_constant(void)
{
    struct sim *sim = node_new(QUIET "profile: idle\n");
    double start = node_value(sim, 0, METRIC_TEMPERATURE_GPU), end, after;

    sim_pin(sim, 0, METRIC_POWER_USAGE, "300000", NULL);
    end = 25 + 0.12 * 300;
    sim_run(sim, 20 * SEC);
    after = node_value(sim, 0, METRIC_TEMPERATURE_GPU);
    is_real(after, start + (end - start) * (1 - exp(-1)), 0.05,
            "after 20 s it has gone 63 %% of the way");
    sim_run(sim, 40 * SEC);
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), end - (end - start) * exp(-3), 0.05,
            "after 60 s 95 %%");
    sim_run(sim, 600 * SEC);
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), end, 0.01, "it settles at ambient + R · P");
    sim_free(sim);
}

static void test_step_does_not_matter(void)
{
    struct sim *fine = node_new(QUIET "step: 10ms\n"), *coarse = node_new(QUIET "step: 1s\n");

    node_workload(fine, "w", "{activity: 100}", NULL);
    node_workload(coarse, "w", "{activity: 100}", NULL);
    sim_run(fine, 60 * SEC);
    sim_run(coarse, 60 * SEC);
    is_real(node_value(fine, 0, METRIC_TEMPERATURE_GPU),
            node_value(coarse, 0, METRIC_TEMPERATURE_GPU), 0.6,
            "a hundred times finer steps end at the same temperature");
    sim_free(fine);
    sim_free(coarse);
}

static void test_power_cap(void)
{
    struct sim *sim = node_new(ONE_A100);
    int above = 0, capped = 0;

    node_workload(sim, "w", heavy, NULL);
    sim_run(sim, 5 * SEC);
    for (int limit = 400; limit >= 100; limit -= 50) {
        sim_set_power_limit(sim, 0, limit * 1000, NULL);
        sim_run(sim, 2 * SEC);
        for (int i = 0; i < 600; i++) {
            sim_step(sim);
            above += node_value(sim, 0, METRIC_POWER_USAGE) > limit * 1000;
            capped += (reasons(sim) & THROTTLE_POWER_CAP) != 0;
        }
    }
    is_int(above, 0, "the power limit is never exceeded after settling");
    is_int(capped, 7 * 600, "and said to be the reason");
    is_real(node_value(sim, 0, METRIC_CLOCK_SM), 210, 1, "at 100 W the clock is at its lowest");
    ok(node_parts(sim, 0, METRIC_VIOLATION_POWER) >= 7 * 60 * SEC, "violation time counts");
    sim_set_power_limit(sim, 0, 400000, NULL);
    sim_run(sim, 2 * SEC);
    ok(node_value(sim, 0, METRIC_CLOCK_SM) > 1000, "with the limit up the clock rises again");
    ok(node_value(sim, 0, METRIC_POWER_USAGE) > 380000, "and the power with it");
    is_int(sim_set_power_limit(sim, 0, 99999, NULL), -ERANGE,
           "a limit below the model's is refused");
    is_int(sim_set_power_limit(sim, 0, 400001, NULL), -ERANGE, "and one above");
    sim_free(sim);
}

static void test_clock_grid(void)
{
    struct sim *sim = node_new(
        "gpus: [{model: A100-SXM4-40GB}, {model: B200}, {model: Tesla-K80}]\n");
    int off_grid = 0;

    node_workload(sim, "w",
                  "{activity: {utilization: 100, tensor: {random: {min: 0, max: 100}}, "
                  "memory_utilization: 100}, devices: all}",
                  NULL);
    sim_set_power_limit(sim, 0, 250000, NULL);
    for (int i = 0; i < 600; i++) {
        sim_step(sim);
        off_grid += ((int)node_value(sim, 0, METRIC_CLOCK_SM) - 210) % 15 != 0;
        off_grid += node_value(sim, 1, METRIC_CLOCK_SM) !=
                    floor(node_value(sim, 1, METRIC_CLOCK_SM));
        off_grid += node_value(sim, 2, METRIC_CLOCK_SM) > 875;
    }
    is_int(off_grid, 0, "clocks are ones that the board supports");
    sim_free(sim);
}

static void test_clock_locks(void)
{
    struct sim *sim = node_new(ONE_A100);

    is_int(sim_lock_sm_clock(sim, 0, 900000, 900000, NULL), 0, "the clock can be locked");
    sim_run(sim, 3 * SEC);
    is_real(node_value(sim, 0, METRIC_CLOCK_SM), 900, 0, "idle, it is where it was locked");
    node_workload(sim, "w", "{activity: 100}", NULL);
    sim_run(sim, 3 * SEC);
    is_real(node_value(sim, 0, METRIC_CLOCK_SM), 900, 0, "under load, too");
    sim_lock_sm_clock(sim, 0, 0, 0, NULL);
    sim_run(sim, 3 * SEC);
    is_real(node_value(sim, 0, METRIC_CLOCK_SM), 1410, 0, "unlocked it boosts");
    is_int(sim_set_application_clocks(sim, 0, 1215000, 1005000, NULL), 0, "application clocks");
    sim_run(sim, 3 * SEC);
    is_real(node_value(sim, 0, METRIC_CLOCK_SM), 1005, 0, "hold the clock down");
    is_int(reasons(sim), THROTTLE_APPLICATION_CLOCKS, "and say so");
    ok(node_parts(sim, 0, METRIC_VIOLATION_APPLICATION_CLOCKS) > 0, "for as long as they do");
    is_int(sim_lock_sm_clock(sim, 0, 2000000, 2100000, NULL), -ERANGE,
           "a lock above all clocks is refused");
    is_int(sim_lock_sm_clock(sim, 0, 900000, 600000, NULL), -ERANGE, "and one upside down");
    sim_free(sim);
}

/* Software slowdown begins at 85 C, holds the temperature there, and ends only well below. */
static void test_thermal_hysteresis(void)
{
    struct sim *sim = node_new(ONE_A100);
    double hottest = 0, coolest = 200;
    int64_t held;

    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "84", NULL);
    node_workload(sim, "w", "{activity: 100}", NULL);
    sim_run(sim, 5 * SEC);
    is_int(reasons(sim) & THROTTLE_SW_THERMAL, 0, "below its limit nothing is throttled");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "85", NULL);
    sim_run(sim, 5 * SEC);
    ok(reasons(sim) & THROTTLE_SW_THERMAL, "at the limit it is");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "84", NULL);
    sim_run(sim, 20 * SEC);
    ok(reasons(sim) & THROTTLE_SW_THERMAL, "a degree below it still is");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "75", NULL);
    sim_run(sim, 20 * SEC);
    is_int(reasons(sim), 0, "ten degrees below it ends");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "auto", NULL);

    sim_fault(sim, 0, "thermal 2", NULL);
    sim_run(sim, 240 * SEC);
    for (int i = 0; i < 1200; i++) {
        sim_step(sim);
        hottest = fmax(hottest, node_value(sim, 0, METRIC_TEMPERATURE_GPU));
        coolest = fmin(coolest, node_value(sim, 0, METRIC_TEMPERATURE_GPU));
    }
    ok(hottest <= 86 && coolest >= 80,
       "with worse cooling the temperature is held (%.1f to %.1f C)", coolest, hottest);
    ok(node_value(sim, 0, METRIC_CLOCK_SM) < 1300 && node_value(sim, 0, METRIC_CLOCK_SM) > 300,
       "by a lower clock");
    held = node_parts(sim, 0, METRIC_VIOLATION_THERMAL);
    ok(held > 60 * SEC, "thermal violation time counts");
    sim_free(sim);
}

static void test_hardware_slowdown_and_shutdown(void)
{
    struct sim *sim = node_new(ONE_A100);

    node_workload(sim, "w", "{activity: 100}", NULL);
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "89", NULL);
    sim_run(sim, 2 * SEC);
    ok((reasons(sim) & (THROTTLE_HW_SLOWDOWN | THROTTLE_HW_THERMAL)) ==
           (THROTTLE_HW_SLOWDOWN | THROTTLE_HW_THERMAL),
       "at 89 C the hardware slows down");
    ok(node_value(sim, 0, METRIC_CLOCK_SM) <= 705, "to half the clock at most");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "84", NULL);
    sim_run(sim, SEC);
    ok(reasons(sim) & THROTTLE_HW_THERMAL, "five degrees below it still does");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "82", NULL);
    sim_run(sim, SEC);
    is_int(reasons(sim) & THROTTLE_HW_THERMAL, 0, "seven degrees below it no longer does");
    sim_pin(sim, 0, METRIC_TEMPERATURE_GPU, "auto", NULL);
    sim_fault(sim, 0, "thermal 20", NULL);
    sim_run(sim, 600 * SEC);
    is_int(sim_read(sim, 0, METRIC_TEMPERATURE_GPU, &(int64_t){ 0 }), -ENODEV,
           "without any cooling it switches itself off");
    sim_fault(sim, 0, "recover", NULL);
    sim_run(sim, SEC);
    ok(node_value(sim, 0, METRIC_TEMPERATURE_GPU) < 40, "and is cool after recovery");
    sim_free(sim);
}

static void test_idle_states(void)
{
    struct sim *sim = node_new("gpus: [{model: T4}, {model: A100-SXM4-40GB}]\n");

    is_int(node_parts(sim, 0, METRIC_PSTATE), 8, "a T4 idles in P8");
    is_real(node_value(sim, 0, METRIC_CLOCK_MEMORY), 405, 0, "with a low memory clock");
    is_int(node_parts(sim, 0, METRIC_PCIE_LINK_GENERATION), 1, "and a slow link");
    is_int(node_parts(sim, 1, METRIC_PSTATE), 0, "an A100 idles in P0");
    is_int(node_parts(sim, 1, METRIC_THROTTLE_REASONS), THROTTLE_IDLE,
           "clocks are low because it is idle");
    node_workload(sim, "w", "{activity: '100:0:10s', devices: all}", NULL);
    sim_run(sim, 3 * SEC);
    is_int(node_parts(sim, 0, METRIC_PSTATE), 0, "under load it is in P0");
    is_real(node_value(sim, 0, METRIC_CLOCK_MEMORY), 5001, 0, "with the full memory clock");
    is_int(node_parts(sim, 0, METRIC_PCIE_LINK_GENERATION), 3, "and the full link");
    sim_run(sim, 10 * SEC);
    is_int(node_parts(sim, 0, METRIC_PSTATE), 8, "and back in P8 when it is over");
    is_real(node_value(sim, 1, METRIC_POWER_USAGE), 50000, 1000, "at idle power");
    sim_free(sim);
}

static void test_fans(void)
{
    struct sim *sim = node_new("gpus: {count: 1, model: RTX-4090}\n");

    is_real(node_value(sim, 0, METRIC_FAN_SPEED), 0, 0, "cold, the fans rest");
    node_workload(sim, "w", "{activity: '100:0:300s'}", NULL);
    sim_run(sim, 200 * SEC);
    ok(node_value(sim, 0, METRIC_FAN_SPEED) >= 30, "hot, they turn");
    sim_run(sim, 400 * SEC);
    is_real(node_value(sim, 0, METRIC_FAN_SPEED), 0, 0, "and rest again");
    sim_free(sim);
}

static void test_absent_is_not_zero(void)
{
    struct sim *sim = node_new("gpus: [{model: T4}, {model: A100-SXM4-40GB}, {model: Tesla-K80}, "
                               "{model: A100-SXM4-40GB, ecc_mode: false, mig_mode: true}]\n");
    int64_t v;

    is_int(sim_read(sim, 0, METRIC_FAN_SPEED, &v), -ENODATA, "a T4 has no fan");
    is_int(sim_read(sim, 0, METRIC_TEMPERATURE_MEMORY, &v), -ENODATA, "nor a memory sensor");
    is_int(sim_read(sim, 0, METRIC_NVLINK_TX_BYTES_TOTAL, &v), -ENODATA, "nor NVLink");
    is_int(sim_read(sim, 0, METRIC_REMAPPED_ROWS_PENDING, &v), -ENODATA, "nor row remapping");
    is_int(sim_read(sim, 0, METRIC_RETIRED_PAGES_PENDING, &v), 0, "but page retirement");
    is_int(sim_read(sim, 1, METRIC_RETIRED_PAGES_PENDING, &v), -ENODATA,
           "an A100 does not retire pages");
    is_int(sim_read(sim, 1, METRIC_TEMPERATURE_MEMORY, &v), 0, "but has a memory sensor");
    is_int(sim_read(sim, 2, METRIC_SM_ACTIVE, &v), -ENODATA, "a K80 has no profiling metrics");
    is_int(sim_read(sim, 3, METRIC_ECC_SBE_VOLATILE_TOTAL, &v), -ENODATA, "ECC off: no counts");
    is_int(sim_read(sim, 3, METRIC_UTILIZATION_GPU, &v), -ENODATA,
           "MIG on: no utilization of the whole");
    sim_free(sim);
}

static void test_links_and_bus(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    const struct gpu *g;
    uint64_t sum = 0;

    node_workload(sim, "w",
                  "{activity: {utilization: 100, nvlink_tx: 120GB/s, pcie_rx: 5GB/s}, gpus: 2}",
                  NULL);
    sim_run(sim, 10 * SEC);
    is_real(node_value(sim, 0, METRIC_NVLINK_TX), 120e9, 0, "NVLink carries what was asked");
    is_real(node_value(sim, 0, METRIC_NVLINK_TX_BYTES_TOTAL), 1200e9, 12e9, "and counts it");
    is_real(node_value(sim, 0, METRIC_PCIE_RX), 5e9, 1e6, "PCIe too");
    g = &world_gpus(sim_world(sim))[0];
    for (int l = 0; l < 12; l++)
        sum += g->links[l].tx_bytes;
    is_real((double)sum, node_value(sim, 0, METRIC_NVLINK_TX_BYTES_TOTAL), 1e4,
            "the links add up to the total");
    is_int(sim_fault(sim, 0, "nvlink 3 down for 5s", NULL), 0, "a link can go down");
    is_int(node_parts(sim, 0, METRIC_NVLINK_LINKS_ACTIVE_COUNT), 11, "and is missing");
    ok(node_parts(sim, 0, METRIC_NVLINK_RECOVERY_ERROR_TOTAL) > 0, "errors count");
    sim_run(sim, 6 * SEC);
    is_int(node_parts(sim, 0, METRIC_NVLINK_LINKS_ACTIVE_COUNT), 12, "it comes back by itself");
    sim_fault(sim, 0, "nvlink down", NULL);
    sim_run(sim, SEC);
    is_real(node_value(sim, 0, METRIC_NVLINK_TX), 0, 0, "without links nothing is carried");
    sim_free(sim);
}

static void test_memory_adds_up(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");
    int64_t total, used, free_bytes, reserved;

    node_workload(sim, "w", "{activity: 50, memory: 10GiB}", NULL);
    total = node_parts(sim, 0, METRIC_MEMORY_TOTAL);
    used = node_parts(sim, 0, METRIC_MEMORY_USED);
    free_bytes = node_parts(sim, 0, METRIC_MEMORY_FREE);
    reserved = node_parts(sim, 0, METRIC_MEMORY_RESERVED);
    is_int(used, 10 * GIB, "memory is used at once");
    is_int(used + free_bytes + reserved, total, "used + free + reserved = total");
    is_int(sim_pin(sim, 0, METRIC_MEMORY_USED, "20GiB", NULL), 0, "it can be dictated");
    is_int(node_parts(sim, 0, METRIC_MEMORY_FREE), total - reserved - 20 * GIB,
           "and the rest follows");
    is_int(sim_pin(sim, 0, METRIC_MEMORY_USED, "41GiB", NULL), -ENOSPC,
           "but not more than there is");
    is_int(sim_pin(sim, 0, METRIC_MEMORY_USED, "auto", NULL), 0, "auto gives it back");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 10 * GIB, "to the workload");
    sim_free(sim);
}

static void test_dictated_utilization(void)
{
    struct sim *sim = node_new(ONE_A100);
    struct why why = { 0 };

    is_int(sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "80", NULL), 0, "utilization can be dictated");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 80, 0, "and is there at once");
    is_real(node_value(sim, 0, METRIC_SM_ACTIVE), 0.8 * 0.92, 1e-6,
            "with the activity that goes with it");
    sim_run(sim, 30 * SEC);
    ok(node_value(sim, 0, METRIC_POWER_USAGE) > 200000, "power follows");
    ok(node_value(sim, 0, METRIC_TEMPERATURE_GPU) > 45, "and heat");
    is_int(sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "140", &why), -ERANGE, "140 %% is refused");
    contains(why_text(&why), "allowed: 0 to 100%", "with what is allowed");
    is_int(sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "much", NULL), -EINVAL, "and so is a word");
    is_int(sim_pin(sim, 0, METRIC_MEMORY_FREE, "5", NULL), -EPERM,
           "what follows from others cannot be set");
    is_int(sim_pin(sim, 0, METRIC_FAN_SPEED, "5", NULL), -ENODATA, "nor what the board has not");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 80, 0, "a refusal changes nothing");
    sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "auto", NULL);
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 0, 0,
            "auto gives it back to the simulator");
    why_release(&why);
    sim_free(sim);
}

int main(void)
{
    test_energy_is_the_integral_of_power();
    test_time_constant();
    test_step_does_not_matter();
    test_power_cap();
    test_clock_grid();
    test_clock_locks();
    test_thermal_hysteresis();
    test_hardware_slowdown_and_shutdown();
    test_idle_states();
    test_fans();
    test_absent_is_not_zero();
    test_links_and_bus();
    test_memory_adds_up();
    test_dictated_utilization();
    return tap_done();
}
