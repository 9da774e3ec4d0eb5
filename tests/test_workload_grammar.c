/*
 * Workloads as people write them: activities in brackets, in short, or as a mapping.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/workload.h"
#include "tests/tap.h"

#define S NS_PER_S

struct reading {
    struct arena arena;
    struct why why;
    struct workload_spec spec;
    int r;
};

static void read_workload(struct reading *q, const char *text)
{
    *q = (struct reading){ 0 };
    q->r = workload_parse(&q->spec, "text", text, &q->arena, &q->why);
}

static void release(struct reading *q)
{
    arena_release(&q->arena);
    why_release(&q->why);
}

static bool reads(struct reading *q, const char *text)
{
    read_workload(q, text);
    return ok(q->r == 0, "accepted: %s %s", text, why_text(&q->why));
}

static const struct phase_spec *phase(const struct reading *q, size_t i)
{
    return i < q->spec.activity.count ? (const struct phase_spec *)q->spec.activity.items + i
                                      : NULL;
}

/* The signal of a channel in a phase, or NULL. */
static const struct signal *signal_in(const struct reading *q, size_t i, enum channel channel)
{
    const struct phase_spec *p = phase(q, i);
    const struct signal_spec *signals = p ? p->signals.items : NULL;

    for (size_t j = 0; p && j < p->signals.count; j++)
        if (signals[j].signal.target == channel)
            return &signals[j].signal;
    return NULL;
}

static void phase_is(const struct reading *q, size_t i, int64_t time_ns, double percent)
{
    const struct phase_spec *p = phase(q, i);
    const struct signal *s = signal_in(q, i, CHANNEL_UTILIZATION);

    is_int(p ? p->time_ns : -1, time_ns, "phase %zu takes its time", i);
    ok(s && s->kind == SIGNAL_CONSTANT, "… at a fixed utilization");
    is_real(s ? s->p[0] : -1, percent * 1000, 0, "… of %g %%", percent);
}

static void test_the_line(void)
{
    struct reading q;

    reads(&q, "[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}], repeat: 5");
    is_int(q.spec.activity.count, 2, "two phases");
    phase_is(&q, 0, 3600 * S, 80);
    phase_is(&q, 1, 3600 * S, 0);
    is_int(q.spec.repeat, 5, "… played five times");
    release(&q);
    reads(&q, "- {time: 1h, utilization: 80}\n- {time: 1h, utilization: 0}\n");
    phase_is(&q, 0, 3600 * NS_PER_S, 80);
    phase_is(&q, 1, 3600 * NS_PER_S, 0);
    release(&q);

    reads(&q,
          " [{time: 1h, utilization: 80},\n  {time: 1h, utilization: 0}],\n repeat: 5 # a day\n");
    is_int(q.spec.activity.count, 2, "the same on several lines");
    is_int(q.spec.repeat, 5, "… and with a comment");
    release(&q);

    reads(&q, "[{utilization: 80}]");
    phase_is(&q, 0, PHASE_FOREVER, 80);
    is_int(q.spec.repeat, 1, "once, where it does not say");
    release(&q);

    reads(&q, "[{time: 1m, utilization: 50}], memory: 10GiB, repeat: 0, name: a, devices: [0, 1]");
    is_int(q.spec.devices.count, 2, "what else a workload has may follow");
    is_str(q.spec.name, "a", "… all of it");
    release(&q);
}

static void test_compact(void)
{
    const struct signal *s;
    struct reading q;

    reads(&q, "80:10:30s,0:0:10s");
    is_int(q.spec.activity.count, 2, "two phases");
    s = signal_in(&q, 0, CHANNEL_UTILIZATION);
    ok(s && s->kind == SIGNAL_JITTER && s->p[0] == 80e3 && s->p[1] == 10e3, "80 ± 10 %%");
    is_int(phase(&q, 0)->time_ns, 30 * S, "… for 30 s");
    phase_is(&q, 1, 10 * S, 0);
    release(&q);

    reads(&q, "80");
    phase_is(&q, 0, PHASE_FOREVER, 80);
    release(&q);
    reads(&q, "12.5%");
    phase_is(&q, 0, PHASE_FOREVER, 12.5);
    release(&q);
    reads(&q, " 80:0:30s, 20\n");
    phase_is(&q, 0, 30 * S, 80);
    phase_is(&q, 1, PHASE_FOREVER, 20);
    release(&q);
    reads(&q, "{activity: '80:0:1m30s,20:0:1s', repeat: 3}");
    phase_is(&q, 0, 90 * S, 80);
    is_int(q.spec.repeat, 3, "and inside a mapping");
    release(&q);
}

/* Every channel takes a value of its unit in a phase. */
static void test_channels(void)
{
    for (int c = 0; c < CHANNEL_COUNT; c++) {
        const char *value = channel_infos[c].unit == UNIT_PERCENT            ? "40"
                            : channel_infos[c].unit == UNIT_BYTES_PER_SECOND ? "5GB/s"
                                                                             : "3GiB";
        double want = channel_infos[c].unit == UNIT_PERCENT            ? 40e3
                      : channel_infos[c].unit == UNIT_BYTES_PER_SECOND ? 5e9
                                                                       : 3 * 0x1p30;
        const struct signal *s;
        struct reading q;
        char text[96];

        snprintf(text, sizeof(text), "[{time: 1m, %s: %s}]", channel_infos[c].name, value);
        reads(&q, text);
        s = signal_in(&q, 0, (enum channel)c);
        ok(s && s->p[0] == want && !s->share, "%s is %s", channel_infos[c].name, value);
        release(&q);
    }
}

static void function_is(const char *text, enum signal_kind kind, bool share, double p0, double p1)
{
    const struct signal *s;
    struct reading q;
    char whole[160];

    snprintf(whole, sizeof(whole), "[{time: 1m, pcie_rx: %s}]", text);
    reads(&q, whole);
    s = signal_in(&q, 0, CHANNEL_PCIE_RX);
    ok(s && s->kind == kind && s->share == share && s->p[0] == p0 && s->p[1] == p1,
       "%s is what it says: %g, %g", text, s ? s->p[0] : 0, s ? s->p[1] : 0);
    release(&q);
}

static void test_functions(void)
{
    function_is("1GB/s", SIGNAL_CONSTANT, false, 1e9, 0);
    function_is("25%", SIGNAL_CONSTANT, true, 0.25, 0);
    function_is("{random: {min: 1GB/s, max: 2GB/s}}", SIGNAL_RANDOM, false, 1e9, 2e9);
    function_is("{random: {min: 10%, max: 50%}}", SIGNAL_RANDOM, true, 0.1, 0.5);
    function_is("{random: {min: 0, max: 50%}}", SIGNAL_RANDOM, true, 0, 0.5);
    function_is("{random-increase: {from: 1GB/s, step: 100MB/s}}", SIGNAL_RANDOM_INCREASE, false,
                1e9, 1e8);
    function_is("{wave: {mean: 50%, amplitude: 25%, period: 1m}}", SIGNAL_WAVE, true, 0.5, 0.25);
    function_is("{ramp: {from: 0, to: 4GB/s, over: 30s}}", SIGNAL_RAMP, false, 0, 4e9);
    function_is("{drift: {from: 1GB/s, rate: 1MB/s}}", SIGNAL_DRIFT, false, 1e9, 1e6);
    function_is("{jitter: {value: 1GB/s, spread: 1MB/s}}", SIGNAL_JITTER, false, 1e9, 1e6);
    function_is("{spike: {base: 1GB/s, peak: 9GB/s}}", SIGNAL_SPIKE, false, 1e9, 9e9);
}

static void test_memory(void)
{
    const struct signal_spec *memory;
    struct reading q;

    reads(&q, "{memory: 20GiB}");
    memory = q.spec.memory.items;
    is_int(q.spec.memory.count, 1, "memory alone makes a workload");
    is_real(memory->signal.p[0], 20 * 0x1p30, 0, "… of 20 GiB");
    is_int(q.spec.activity.count, 0, "… without activity");
    release(&q);
    reads(&q, "{memory: {random-increase: {from: 1GiB, step: 100MiB, max: 30GiB}}}");
    memory = q.spec.memory.items;
    ok(memory->signal.kind == SIGNAL_RANDOM_INCREASE && memory->signal.p[2] == 30 * 0x1p30,
       "memory may leak");
    release(&q);
    reads(&q, "{memory: 75%}");
    memory = q.spec.memory.items;
    ok(memory->signal.share && memory->signal.p[0] == 0.75, "memory may be a share");
    release(&q);
}

static void test_limits(void)
{
    const struct limit_spec *limits;
    struct reading q;

    reads(&q, "{limits: {time: 1h, memory: 30GiB, energy: 1kWh, temperature_gpu_c: 85, "
              "utilization_gpu_percent: 90%, power_usage_mw: 300W}}");
    limits = q.spec.limits.items;
    is_int(q.spec.limits.count, 6, "limits of its own, and metrics");
    if (q.spec.limits.count == 6) {
        ok(limits[0].target == LIMIT_TIME && limits[0].value == 3600 * S, "an hour");
        ok(limits[1].target == LIMIT_MEMORY && limits[1].value == 30 * GIB, "30 GiB");
        ok(limits[2].target == LIMIT_ENERGY && limits[2].value == INT64_C(3600000000), "1 kWh");
        ok(limits[3].target == METRIC_TEMPERATURE_GPU && limits[3].value == 85000, "85 C");
        ok(limits[4].target == METRIC_UTILIZATION_GPU && limits[4].value == 90000, "90 %%");
        ok(limits[5].target == METRIC_POWER_USAGE && limits[5].value == 300000, "300 W");
    }
    release(&q);
    for (int target = 0; target < LIMIT_TARGETS; target++)
        for (int other = 0; other < target; other++)
            if (!strcmp(limit_name(target), limit_name(other)))
                ok(false, "two limits are called %s", limit_name(target));
}

static void test_identity(void)
{
    const struct device_name *devices;
    struct reading q;

    reads(&q, "name: train.1\n"
              "devices:\n"
              "  - 3\n"
              "  - GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1\n"
              "  - 0000:06:00.0\n"
              "model: H100-80GB-HBM3\n"
              "start: 90s\n"
              "sample: 100ms\n"
              "namespace: ml\n"
              "pod: train-0\n"
              "container: main\n"
              "pid: 4242\n"
              "uid: 1000\n"
              "activity: {utilization: 95}\n");
    devices = q.spec.devices.items;
    is_str(q.spec.name, "train.1", "a name");
    is_int(q.spec.devices.count, 3, "three GPUs");
    is_str(devices[2].text, "0000:06:00.0", "… one of them by its bus id");
    is_str(q.spec.model, "H100-80GB-HBM3", "the model it was measured on");
    is_int(q.spec.start_ns, 90 * S, "a start");
    is_int(q.spec.sample_ns, S / 10, "a time between samples");
    is_str(q.spec.namespace, "ml", "a namespace");
    is_str(q.spec.pod, "train-0", "a pod");
    is_str(q.spec.container, "main", "a container");
    is_int(q.spec.pid, 4242, "a process");
    is_int(q.spec.uid, 1000, "a user");
    phase_is(&q, 0, PHASE_FOREVER, 95);
    release(&q);

    reads(&q, "{devices: all, activity: 10}");
    is_str(((struct device_name *)q.spec.devices.items)->text, "all", "one GPU needs no brackets");
    release(&q);
    reads(&q, "");
    is_int(q.spec.gpus, 1, "nothing at all is a workload on one GPU");
    is_int(q.spec.sample_ns, S, "… that samples every second");
    release(&q);
}

static void test_names(void)
{
    ok(workload_name_ok("a"), "a letter is a name");
    ok(workload_name_ok("0-a_b.c"), "so is a digit with more");
    ok(!workload_name_ok(""), "nothing is not");
    ok(!workload_name_ok(".a"), "what begins with a dot is not");
    ok(!workload_name_ok("a/b"), "a path is not");
    ok(!workload_name_ok("a b"), "two words are not");
    ok(!workload_name_ok("\xc3\xa4"), "what is not ASCII is not");
}

/* Prints, reads that, and prints the same again. */
static void survives(const char *text)
{
    struct text first = TEXT_INIT, second = TEXT_INIT;
    struct reading q, again;

    read_workload(&q, text);
    bind_print(&first, &workload_table, &q.spec, 0);
    read_workload(&again, text_str(&first));
    ok(q.r == 0 && again.r == 0, "what is printed is read: %s %s", text, why_text(&again.why));
    bind_print(&second, &workload_table, &again.spec, 0);
    is_str(text_str(&second), text_str(&first), "… and printed the same");
    ok(first.length > 0, "… which is not nothing");
    text_release(&first);
    text_release(&second);
    release(&q);
    release(&again);
}

static void test_printing(void)
{
    survives("[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}], repeat: 5");
    survives("80:10:30s,0:0:10s");
    survives("{activity: [{time: 90s, utilization: {wave: {mean: 50, amplitude: 25, period: 7m}}, "
             "tensor: 12.345, memory: 1000001}, {nvlink_tx: 12%, pcie_rx: {spike: {base: 1GB/s, "
             "peak: 9GB/s, probability: 0.123456789}}}], memory: 33%, sample: 1333us}");
    survives("{activity: [{time: 1m}, {}], limits: {time: 1h30m, memory: 12345, energy: 7mJ, "
             "temperature_gpu_c: 85.5, sm_active_ratio: 0.000001}}");
    survives("{name: a, devices: [0, '1', all], model: T4, start: 1ms, namespace: 'yes', pod: "
             "'a: b', container: '#1', pid: 7, uid: 0}");
}

static void refused(const char *text, int error, const char *words)
{
    struct reading q;

    read_workload(&q, text);
    is_int(q.r, -error, "refused: %s", text);
    contains(why_text(&q.why), words, "… at the right place, with the right words");
    release(&q);
}

/* Columns are those of the text as it was given, whatever it is wrapped in to be read. */
static void test_refusals(void)
{
    refused("[{time: 1h, utilization: 140}], repeat: 5", ERANGE,
            "text:1:26: activity[0].utilization: '140' is out of range; allowed: 0% to 100%");
    refused("[{time: 1h, utilisation: 80}], repeat: 5", EINVAL,
            "text:1:13: activity[0]: unknown key 'utilisation' in a phase; did you mean "
            "'utilization'?");
    refused("[{time: 1h, utilization: 80}], repaet: 5", EINVAL,
            "text:1:32: unknown key 'repaet' in a workload; did you mean 'repeat'?");
    refused("[{time: 1h,\n  utilization: 80},\n  {time: 1, utilization: 0}]", EINVAL,
            "text:3:10: activity[1].time: '1' needs a unit");
    refused("[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}, repeat: 5\n", EINVAL,
            "text:1:68: not valid YAML");
    refused("[{time: 1h, utilization: 80}], repeat: 5, repeat: 6", EINVAL,
            "text:1:43: duplicate key 'repeat', first given at line 1");
    refused("[], repeat: 5", EINVAL, "text:1:1: activity: an activity needs at least one phase");
    refused("[{utilization: 80}, {time: 1s}]", EINVAL,
            "text:1:2: activity[0]: has no time; only the last phase may go on for ever");
    refused("[{utilization: 80}], repeat: 5", EINVAL, "text:1:22: cannot repeat an activity");
    refused("80:10,0:0:1s", EINVAL, "text:1:1: activity[0]: has no time");
    refused("80:10:30s,,0", EINVAL, "activity[1]: has an empty part; allowed: utilization[");
    refused("80:10:30s:1", EINVAL, "activity[0]: has a phase with too many parts");
    refused("80:10:30", EINVAL, "activity[0]: '30' needs a unit");
    refused("80:101:30s", ERANGE, "activity[0]: '101' is out of range; allowed: 0% to 100%");
    refused("80W", EINVAL, "activity[0]: '80W' has a wrong unit; allowed units: %");
    refused("80\", repeat: \"5", EINVAL, "activity[0]: '80\"' has a wrong unit");
    refused("{activity: 80, memory: 10MHz}", EINVAL, "text:1:24: memory: '10MHz' has a wrong unit");
    refused("{activity: [{time: 1s, memory: {timeline: {phases: [{time: 1s, value: 1}]}}}]}",
            EINVAL, "text:1:32: activity[0].memory: a workload has no such function; allowed:");
    refused("{devices: 0, gpus: 2}", EINVAL, "text:1:14: gives both 'devices' and 'gpus'");
    refused("just words", EINVAL,
            "text:1:1: activity[0]: 'just words' is not a number with a unit; allowed units: %");
    refused("- a\n- b\n", EINVAL, "text:1:3: activity[0]: found 'a'; allowed: a phase like");
}

int main(void)
{
    test_the_line();
    test_compact();
    test_channels();
    test_functions();
    test_memory();
    test_limits();
    test_identity();
    test_names();
    test_printing();
    test_refusals();
    return tap_done();
}
