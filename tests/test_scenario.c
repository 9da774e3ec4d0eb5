/*
 * Scenarios as a format: what is read, and what is refused with which words at which place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sim/scenario.h"
#include "tests/tap.h"

static int parse(struct scenario *s, const char *text, struct why *why)
{
    const struct scenario_options how = { .name = "s.yaml" };

    return scenario_parse(s, text, strlen(text), &how, why);
}

/* --- what is right --------------------------------------------------------------------------- */

static const char whole[] =
    "name: whole\n"
    "description: >\n"
    "  Two lines\n"
    "  of text.\n"
    "mount: {gpus: 2, model: [T4, A10], profile: wave, seed: 7, step: 1s}\n"
    "speed: 60\n"
    "check: 10s\n"
    "steps:\n"
    "  - workload: {name: w, devices: [0, 1], activity: '80:5:10m', memory: 2GiB, limits: {time: 1h}}\n"
    "  - {after: 1m, gpu: 0, fault: thermal 2 for 5m, note: hot}\n"
    "  - at: 1h\n"
    "    gpu: all\n"
    "    set: {utilization_gpu_percent: 50, power_limit_mw: 60W}\n"
    "    profile: idle\n"
    "    speed: 1\n"
    "    write: {file: control/clock, text: pause}\n"
    "    end: w\n"
    "    expect:\n"
    "      - {metric: memory_used_ratio, above: 0.25, below: 0.75, within: 5m, for: 30s}\n"
    "      - {gpu: any, metric: temperature_gpu_c, at_least: temperature_slowdown_c}\n"
    "      - {event: xid gpu=0}\n"
    "      - {kmsg: 'NVRM: Xid', equals: 0}\n"
    "      - {workload: w, exit_code: 1, message: memory}\n"
    "      - {file: dev/nvidia0, exists: false}\n"
    "      - {file: gpus/0/identity/name, matches: 'T4$', contains: NVIDIA}\n"
    "      - {gpu: 1, metric: pstate, error: ENODEV}\n";

static void check_whole(void)
{
    struct scenario s;
    struct why why = { 0 };
    const struct scenario_step *steps;
    const struct expectation *e;
    struct text words = TEXT_INIT;

    if (!is_int(parse(&s, whole, &why), 0, "everything that can be said is read: %s",
                why_text(&why)))
        return;
    steps = s.steps.items;
    is_str(s.description, "Two lines of text.", "a folded description is one text");
    is_int(s.mount.gpus, 2, "GPUs");
    is_int((int64_t)s.mount.model.count, 2, "models");
    is_int(s.check_ns, 10 * NS_PER_S, "check");
    is_int((int64_t)s.steps.count, 3, "steps");
    is_str(steps[0].workload.name, "w", "a workload");
    is_int(steps[1].after_ns, 60 * NS_PER_S, "after");
    ok(scenario_step_has(&steps[2], "at") && !scenario_step_has(&steps[1], "at"),
       "it is known which key was given");
    ok(scenario_step_acts(&steps[1]), "a fault is an action");
    is_int((int64_t)steps[2].set.count, 2, "settings");
    is_int((int64_t)steps[2].expect.count, 8, "expectations");
    e = steps[2].expect.items;
    is_real(e[0].compare[COMPARE_ABOVE].number, 0.25, 0, "a number is in the unit of the file");
    is_int(e[0].within_ns, 300 * NS_PER_S, "within");
    is_int((int64_t)e[0].gpu.count, 1, "an expectation has the GPUs of its step");
    ok(e[1].any, "or its own");
    is_int(e[1].compare[COMPARE_AT_LEAST].metric, METRIC_TEMPERATURE_SLOWDOWN,
           "a metric is compared with a metric");
    is_real(e[2].compare[COMPARE_AT_LEAST].number, 1, 0, "an event is expected once");
    is_real(e[3].compare[COMPARE_EQUALS].number, 0, 0, "unless its number is said");
    ok(e[3].compare[COMPARE_AT_LEAST].text[0] == '\0', "and then nothing else is compared");
    is_int(expect_errno(e[7].error), ENODEV, "an error by its name");
    expect_print(&words, &e[0]);
    is_str(text_str(&words), "every GPU: memory_used_ratio above 0.25 below 0.75 within 5m for 30s",
           "an expectation in words");
    text_release(&words);
    scenario_release(&s);
}

/* --- what is wrong --------------------------------------------------------------------------- */

#define STEP "name: n\nsteps:\n  - "

static const struct {
    const char *text, *sentence;
} wrongs[] = {
    { "", "s.yaml:1:1: a scenario needs the key 'name'" },
    { "name: n\n", "s.yaml:1:1: a scenario needs the key 'steps'" },
    { "name: n\nsteps: []\n", "s.yaml:2:8: there is no step" },
    { "name: n\nstep: 1\nsteps: []\n",
      "s.yaml:2:1: unknown key 'step' in a scenario; did you mean 'steps'?" },
    { "name: n\nmount: {model: T44}\nsteps: []\n",
      "s.yaml:2:16: mount: 'T44' is not a model; did you mean 'T4'?" },
    { "name: n\nmount: {profile: waves}\nsteps: []\n",
      "s.yaml:2:18: mount.profile: 'waves' is not a profile; did you mean 'wave'?" },
    { STEP "{after: 1m}\n", "s.yaml:3:5: steps[0]: does nothing; allowed: fault," },
    { STEP "{at: 1m, after: 1m, end: w}\n", "s.yaml:3:14: steps[0]: gives both 'at' and 'after'" },
    { STEP "{at: 60, end: w}\n", "s.yaml:3:10: steps[0].at: '60' needs a unit" },
    { STEP "{fault: xid 79}\n", "s.yaml:3:6: steps[0]: 'fault' does not say of which GPU" },
    { STEP "{gpu: any, fault: xid 79}\n",
      "s.yaml:3:16: steps[0]: 'fault' does not say of which GPU" },
    { STEP "{gpu: 0, fault: explode}\n", "s.yaml:3:21: steps[0].fault: 'explode' is not a fault" },
    { STEP "{gpu: 1, fault: xid 79}\n",
      "s.yaml:3:5: steps[0]: there is no GPU 1: mount.gpus asks for 1" },
    { STEP "{gpu: 0, profile: wavy}\n",
      "s.yaml:3:23: steps[0].profile: 'wavy' is not a profile; did you mean 'wave'?" },
    { STEP "{gpu: 0, set: {utilisation_gpu_percent: 1}}\n",
      "s.yaml:3:20: steps[0].set: unknown control file 'utilisation_gpu_percent'; did you mean 'utilization_gpu_percent'?" },
    { STEP "{gpu: 0, set: {memory_used_bytes: 5GHz}}\n",
      "s.yaml:3:39: steps[0].set.memory_used_bytes: '5GHz'" },
    { STEP "{gpu: 0, set: 5}\n", "s.yaml:3:19: steps[0].set: found '5'; allowed: a mapping" },
    { STEP "{workload: {activity: 80}}\n",
      "s.yaml:3:16: steps[0].workload: a workload needs the key 'name'" },
    { STEP "{workload: {name: w, start: 5s}}\n",
      "s.yaml:3:26: steps[0].workload: unknown key 'start' in a workload" },
    { STEP "{workload: {name: w, devices: 3}}\n", "s.yaml:3:5: steps[0]: there is no GPU 3" },
    { STEP "{write: {file: ../etc/passwd, text: x}}\n",
      "s.yaml:3:20: steps[0].write.file: found '../etc/passwd'; allowed: a path below the mount" },
    { STEP "{write: {file: a/../../b, text: x}}\n", "s.yaml:3:20: steps[0].write.file: found" },
    { STEP "{write: {file: /etc/passwd, text: x}}\n", "s.yaml:3:20: steps[0].write.file: found" },
    { STEP "{write: {file: kmsg}}\n", "s.yaml:3:13: steps[0].write: a write needs the key 'text'" },
    { STEP "{expect: {}}\n", "s.yaml:3:14: steps[0].expect: does not say what to look at" },
    { STEP "{expect: {metric: pstate, equals: 0}}\n",
      "s.yaml:3:14: steps[0].expect: does not say of which GPU" },
    { STEP "{expect: {gpu: 0, metric: pstat, equals: 0}}\n",
      "s.yaml:3:31: steps[0].expect.metric: 'pstat' is not a metric; did you mean 'pstate'?" },
    { STEP "{expect: {gpu: 0, metric: pstate}}\n",
      "s.yaml:3:14: steps[0].expect: does not say what to expect of 'metric'; allowed: above, below," },
    { STEP "{expect: {gpu: 0, metric: pstate, contains: P0}}\n",
      "s.yaml:3:39: steps[0].expect: 'contains' does not go with 'metric'" },
    { STEP "{expect: {gpu: 0, metric: pstate, file: kmsg, equals: 0}}\n",
      "s.yaml:3:39: steps[0].expect: gives both 'metric' and 'file'" },
    { STEP "{expect: {gpu: 0, metric: temperature_gpu_c, above: 80W}}\n",
      "s.yaml:3:57: steps[0].expect.above: '80W'" },
    { STEP "{expect: {gpu: 0, metric: temperature_gpu_c, above: power_limit_mw}}\n",
      "s.yaml:3:57: steps[0].expect.above: is a metric of another unit" },
    { STEP "{expect: {gpu: 2, metric: pstate, equals: 0}}\n",
      "s.yaml:3:14: steps[0]: there is no GPU 2" },
    { STEP "{expect: {event: x, above: many}}\n",
      "s.yaml:3:32: steps[0].expect.above: is not a number" },
    { STEP "{expect: {event: x, gpu: 0}}\n",
      "s.yaml:3:25: steps[0].expect: 'gpu' goes with 'metric' only" },
    { STEP "{expect: {file: kmsg, matches: '('}}\n",
      "s.yaml:3:36: steps[0].expect.matches: is not an extended regular expression" },
    { STEP "{expect: {file: kmsg, error: EWHAT}}\n",
      "s.yaml:3:34: steps[0].expect.error: 'EWHAT' is not known" },
    { STEP "{expect: {workload: w}}\n",
      "s.yaml:3:14: steps[0].expect: does not say what to expect of 'workload'; allowed: state, exit_code, message" },
    { STEP "{expect: {workload: w, state: finished}}\n",
      "s.yaml:3:35: steps[0].expect.state: 'finished' is not known" },
};

static void check_wrong(void)
{
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct scenario s;
        struct why why = { 0 };
        int r = parse(&s, wrongs[i].text, &why);

        ok(r < 0, "refused: %s", wrongs[i].text);
        is_str(strncmp(why_text(&why), wrongs[i].sentence, strlen(wrongs[i].sentence))
                   ? why_text(&why)
                   : wrongs[i].sentence,
               wrongs[i].sentence, "and the sentence says where and why");
        if (r == 0)
            scenario_release(&s);
        why_release(&why);
    }
}

/* --- comparisons ----------------------------------------------------------------------------- */

static void check_comparisons(void)
{
    static const struct {
        enum compare_op op;
        bool below, same, above; /* what 1, 2 and 3 are to 2 */
    } rows[] = {
        { COMPARE_ABOVE, false, false, true },   { COMPARE_BELOW, true, false, false },
        { COMPARE_AT_LEAST, false, true, true }, { COMPARE_AT_MOST, true, true, false },
        { COMPARE_EQUALS, false, true, false },  { COMPARE_DIFFERS, true, false, true },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ok(compare_holds(rows[i].op, 1, 2) == rows[i].below &&
               compare_holds(rows[i].op, 2, 2) == rows[i].same &&
               compare_holds(rows[i].op, 3, 2) == rows[i].above,
           "%s", compare_infos[rows[i].op].key);
}

int main(void)
{
    check_whole();
    check_wrong();
    check_comparisons();
    return tap_done();
}
