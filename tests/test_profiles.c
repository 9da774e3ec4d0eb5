/*
 * Profiles: each of the seven follows its formula, reading after reading.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "tests/node.h"

enum { READINGS = 200 };

/* What every reading of a profile is checked with; t in seconds. */
typedef bool reading_ok(double t, int result, double value);

struct seen {
    int failed, low, high, distinct;
    double least, most;
};

static struct sim *node_with(const char *profile)
{
    char yaml[128];

    snprintf(yaml, sizeof(yaml), "seed: 7\ngpus: {count: 1, model: A100-SXM4-40GB}\nprofile: %s\n",
             profile);
    return node_new(yaml);
}

/* Checks the temperature in the middle of every interval: it holds from one reading to the next. */
static struct seen follow(const char *profile, reading_ok *check)
{
    struct sim *sim = node_with(profile);
    struct seen seen = { .least = 1e9, .most = -1e9 };
    int wrong = 0, moved = 0;
    double before = NAN;

    for (int i = 0; i < READINGS; i++) {
        int64_t v = 0, again = 0;
        int r = sim_read(sim, 0, METRIC_TEMPERATURE_GPU, &v);
        double c = (double)v / 1000;

        wrong += !check(30.0 * i, r, c);
        sim_run(sim, 29 * SEC);
        moved += sim_read(sim, 0, METRIC_TEMPERATURE_GPU, &again) != r || again != v;
        sim_run(sim, SEC);
        seen.failed += r == -EIO;
        if (r < 0)
            continue;
        seen.least = fmin(seen.least, c);
        seen.most = fmax(seen.most, c);
        seen.low += c == 50;
        seen.high += c == 100;
        seen.distinct += c != before;
        before = c;
    }
    is_int(wrong, 0, "%s: every reading fits the formula", profile);
    is_int(moved, 0, "%s: a reading holds for the update interval", profile);
    sim_free(sim);
    return seen;
}

static bool is_static(double t, int r, double c)
{
    (void)t;
    return r == 0 && c == 50;
}

static bool is_stable(double t, int r, double c)
{
    (void)t;
    return r == 0 && c >= 47.5 && c <= 52.5;
}

static bool is_spike(double t, int r, double c)
{
    (void)t;
    return r == 0 && (c == 50 || c == 100);
}

static bool is_wave(double t, int r, double c)
{
    return r == 0 && fabs(c - (50 + 20 * sin(t / 60))) < 0.001;
}

/* An A100 switches itself off at 92 C. */
static bool is_degrading(double t, int r, double c)
{
    return r == 0 && fabs(c - fmin(50 + 0.5 * t, 92)) < 0.001;
}

static bool is_faulty(double t, int r, double c)
{
    (void)t;
    return r == -EIO || (r == 0 && c == 50);
}

static bool is_chaos(double t, int r, double c)
{
    (void)t;
    return r == 0 && c >= 20 && c < 100;
}

static void test_formulas(void)
{
    struct seen seen;

    follow("static", is_static);
    seen = follow("stable", is_stable);
    ok(seen.least < 48 && seen.most > 52, "stable uses its whole range");
    seen = follow("spike", is_spike);
    ok(seen.high >= READINGS / 20 && seen.high <= READINGS / 5,
       "spike is at the top now and then (%d)", seen.high);
    seen = follow("wave", is_wave);
    ok(seen.distinct > READINGS / 2, "wave moves");
    seen = follow("degrading", is_degrading);
    ok(seen.most == 92, "degrading stops at the shutdown limit");
    seen = follow("faulty", is_faulty);
    ok(seen.failed >= READINGS / 10 && seen.failed <= 3 * READINGS / 10,
       "faulty fails one reading in five (%d of %d)", seen.failed, READINGS);
    seen = follow("chaos", is_chaos);
    ok(seen.least < 25 && seen.most > 95, "chaos uses its whole range");
}

/* The other metrics do alike in their own range. */
static void test_other_metrics(void)
{
    struct sim *sim = node_with("static");
    double usable = (double)(40960 - 518) * (double)MIB;

    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 50, 0, "static: utilization is 50 %%");
    is_real(node_value(sim, 0, METRIC_MEMORY_USED), usable / 2, 1,
            "static: half of the memory is used");
    is_real(node_value(sim, 0, METRIC_POWER_USAGE), 200000, 0, "static: half of the power limit");
    sim_run(sim, 60 * SEC);
    is_real(node_value(sim, 0, METRIC_ENERGY_TOTAL), 60 * 200000.0, 60 * 200,
            "energy follows the pinned power");
    sim_free(sim);

    sim = node_with("faulty");
    sim_run(sim, 1800 * SEC);
    ok(node_parts(sim, 0, METRIC_ENERGY_TOTAL) > 0, "faulty: what cannot be read is still used up");
    sim_free(sim);

    sim = node_with("degrading");
    sim_run(sim, 600 * SEC);
    ok(node_parts(sim, 0, METRIC_THROTTLE_REASONS) & THROTTLE_SW_THERMAL,
       "degrading: clocks are throttled for the heat");
    ok(node_value(sim, 0, METRIC_CLOCK_SM) < 1000, "degrading: and lower");
    ok(node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL) > 0, "degrading: counts memory errors");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_AGGREGATE_TOTAL),
           node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL),
           "the aggregate count follows a pinned one");
    ok(!isnan(node_value(sim, 0, METRIC_TEMPERATURE_GPU)),
       "a dictated 92 C does not switch it off");
    sim_free(sim);
}

static void test_cycle(void)
{
    struct sim *sim = node_new("gpus: {count: 16}\nprofile: cycle\n");
    const struct world *w = sim_world(sim);
    int wrong = 0;

    for (int i = 0; i < 16; i++)
        wrong += strcmp(world_profiles(w)[world_gpu_plans(w)[i].profile].name,
                        profile_cycle[i % 7]) != 0;
    is_int(wrong, 0, "cycle: GPU i has profile i mod 7");
    sim_free(sim);
}

static void test_interval(void)
{
    struct sim *sim = node_new("update_interval: 5s\ngpus: {count: 1}\nprofile: wave\n");

    sim_run(sim, 5 * SEC);
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50 + 20 * sin(5 / 60.0), 0.001,
            "update_interval sets how often readings change");
    sim_free(sim);
}

static void test_change_of_profile(void)
{
    struct sim *sim = node_with("static");
    struct why why = { 0 };

    sim_run(sim, 45 * SEC);
    is_int(sim_set_profile(sim, 0, "wave", &why), 0, "a profile can be chosen while it runs");
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50, 0.001, "its time begins then");
    sim_run(sim, 30 * SEC);
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 50 + 20 * sin(0.5), 0.001,
            "and goes on from there");
    is_int(sim_set_profile(sim, 0, "idle", &why), 0, "idle pins nothing");
    sim_run(sim, 120 * SEC);
    ok(node_value(sim, 0, METRIC_TEMPERATURE_GPU) < 35, "idle: it cools down");
    is_int(sim_set_profile(sim, 0, "wvae", &why), -EINVAL, "an unknown profile is refused");
    contains(why_text(&why), "did you mean 'wave'", "with a hint");
    why_release(&why);
    sim_free(sim);
}

static void test_own_pins(void)
{
    struct sim *sim = node_new(
        "profile: static\n"
        "update_interval: 10s\n"
        "gpus:\n"
        "  count: 1\n"
        "  metrics:\n"
        "    temperature_gpu_c: {timeline: {repeat: 2, phases: [{time: 10s, value: 60}, "
        "{time: 10s, value: {ramp: {from: 60, to: 80, over: 10s}}}]}}\n"
        "    ecc_sbe_volatile_total: {random-increase: {from: 5, step: 4, max: 20}}\n");
    int64_t errors, before = 0;
    int fell = 0;

    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 60, 0,
            "a GPU's own pin stands before its profile's");
    is_real(node_value(sim, 0, METRIC_UTILIZATION_GPU), 50, 0, "which holds for the others");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL), 5, "random-increase starts at from");
    for (int i = 0; i < 40; i++) {
        sim_run(sim, 10 * SEC);
        errors = node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL);
        fell += errors < before;
        before = errors;
        if (i == 1)
            is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 60, 0, "a timeline repeats");
    }
    is_int(fell, 0, "a counter that is pinned never falls");
    is_int(before, 20, "and stops at max");
    is_real(node_value(sim, 0, METRIC_TEMPERATURE_GPU), 80, 0,
            "a timeline that is over stays at its end");
    sim_free(sim);
}

int main(void)
{
    test_formulas();
    test_other_metrics();
    test_cycle();
    test_interval();
    test_change_of_profile();
    test_own_pins();
    return tap_done();
}
