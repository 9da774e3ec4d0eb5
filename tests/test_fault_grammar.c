/*
 * The commands that people type: faults, and the clock of a node.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/clock.h"
#include "sim/fault.h"
#include "sim/metric.h"
#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"
#include "sim/world.h"
#include "tests/tap.h"

#define S NS_PER_S

static const struct {
    const char *text, *printed; /* NULL: printed as written */
    struct fault want;
} faults[] = {
    { "xid 79", NULL, { .kind = FAULT_XID, .number = 79 } },
    { "xid 13 for 30s", NULL, { .kind = FAULT_XID, .number = 13, .for_ns = 30 * S } },
    { "xid 0x1f", "xid 31", { .kind = FAULT_XID, .number = 31 } },
    { "xid 999", NULL, { .kind = FAULT_XID, .number = 999 } },
    { "ecc sbe 5", NULL, { .kind = FAULT_ECC, .which = FAULT_CORRECTABLE, .number = 5 } },
    { "ecc dbe", "ecc dbe 1", { .kind = FAULT_ECC, .which = FAULT_UNCORRECTABLE, .number = 1 } },
    { "rows correctable 2", NULL, { .kind = FAULT_ROWS, .which = FAULT_CORRECTABLE, .number = 2 } },
    { "rows uncorrectable",
      "rows uncorrectable 1",
      { .kind = FAULT_ROWS, .which = FAULT_UNCORRECTABLE, .number = 1 } },
    { "rows failure", NULL, { .kind = FAULT_ROWS, .which = FAULT_FAILURE } },
    { "pages sbe 7", NULL, { .kind = FAULT_PAGES, .which = FAULT_CORRECTABLE, .number = 7 } },
    { "pages dbe",
      "pages dbe 1",
      { .kind = FAULT_PAGES, .which = FAULT_UNCORRECTABLE, .number = 1 } },
    { "thermal 2.5", NULL, { .kind = FAULT_THERMAL, .factor = 2.5 } },
    { "thermal", "thermal 2", { .kind = FAULT_THERMAL, .factor = 2 } },
    { "thermal 1.2345678901234567 for 1h30m",
      "thermal 1.2345678901234567 for 90m",
      { .kind = FAULT_THERMAL, .factor = 1.2345678901234567, .for_ns = 5400 * S } },
    { "thermal for 1m",
      "thermal 2 for 1m",
      { .kind = FAULT_THERMAL, .factor = 2, .for_ns = 60 * S } },
    { "power_brake", NULL, { .kind = FAULT_POWER_BRAKE } },
    { "power_brake for 1ms", NULL, { .kind = FAULT_POWER_BRAKE, .for_ns = S / 1000 } },
    { "hang", NULL, { .kind = FAULT_HANG } },
    { "hang for 8784h", NULL, { .kind = FAULT_HANG, .for_ns = TIME_MAX_NS } },
    { "nvlink 3 down", NULL, { .kind = FAULT_NVLINK, .which = FAULT_DOWN, .number = 3 } },
    { "nvlink 17 up", NULL, { .kind = FAULT_NVLINK, .which = FAULT_UP, .number = 17 } },
    { "nvlink down",
      NULL,
      { .kind = FAULT_NVLINK, .which = FAULT_DOWN, .number = FAULT_ALL_LINKS } },
    { "nvlink up", NULL, { .kind = FAULT_NVLINK, .which = FAULT_UP, .number = FAULT_ALL_LINKS } },
    { "nvlink 0 down for 5s",
      NULL,
      { .kind = FAULT_NVLINK, .which = FAULT_DOWN, .number = 0, .for_ns = 5 * S } },
    { "sensor temperature_gpu_c",
      NULL,
      { .kind = FAULT_SENSOR, .number = METRIC_TEMPERATURE_GPU } },
    { "sensor fan_speed_percent for 10s",
      NULL,
      { .kind = FAULT_SENSOR, .number = METRIC_FAN_SPEED, .for_ns = 10 * S } },
    { "fallen_off_bus", NULL, { .kind = FAULT_FALLEN_OFF_BUS } },
    { "fallen_off_bus for 2m", NULL, { .kind = FAULT_FALLEN_OFF_BUS, .for_ns = 120 * S } },
    { "recover", NULL, { .kind = FAULT_RECOVER } },
    { "recover after 1m", NULL, { .kind = FAULT_RECOVER, .after_ns = 60 * S } },
    { "xid 79 after 10m for 30s",
      NULL,
      { .kind = FAULT_XID, .number = 79, .after_ns = 600 * S, .for_ns = 30 * S } },
    { "xid 79 for 30s after 10m",
      "xid 79 after 10m for 30s",
      { .kind = FAULT_XID, .number = 79, .after_ns = 600 * S, .for_ns = 30 * S } },
    { "  xid \t 79\n", "xid 79", { .kind = FAULT_XID, .number = 79 } },
};

static bool same(const struct fault *a, const struct fault *b)
{
    return a->kind == b->kind && a->which == b->which && a->number == b->number &&
           a->factor == b->factor && a->for_ns == b->for_ns && a->after_ns == b->after_ns;
}

static void test_faults(void)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct why why = { 0 };
        struct text out = TEXT_INIT;
        struct fault f, again;
        int r = fault_parse(faults[i].text, &f, &why);

        ok(r == 0 && same(&f, &faults[i].want), "'%s' is understood (%s)", faults[i].text,
           why_text(&why));
        fault_print(&out, &f);
        is_str(text_str(&out), faults[i].printed ? faults[i].printed : faults[i].text,
               "… and printed");
        ok(fault_parse(text_str(&out), &again, &why) == 0 && same(&f, &again),
           "… so that it reads back");
        text_release(&out);
        why_release(&why);
    }
}

/* Each kind has its row above. */
static void test_completeness(void)
{
    bool seen[FAULT_KINDS] = { false };
    int missing = 0;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        seen[faults[i].want.kind] = true;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        missing += !seen[kind];
    is_int(missing, 0, "every kind of fault was tried");
}

static const struct {
    const char *text;
    int error;
    const char *words;
} bad_faults[] = {
    { "", EINVAL, "a fault is needed, for example 'xid 79' or 'recover'" },
    { " \n", EINVAL, "a fault is needed" },
    { "xdi 79", EINVAL, "'xdi' is not a fault; did you mean 'xid'? allowed: xid, ecc, rows" },
    { "XID 79", EINVAL, "did you mean 'xid'?" },
    { "fallen", EINVAL, "did you mean 'fallen_off_bus'?" },
    { "fallen off bus", EINVAL, "did you mean 'fallen_off_bus'?" },
    { "for 30s", EINVAL,
      "'for' is not a fault; allowed: xid, ecc, rows, pages, thermal, power_brake,"
      " hang, nvlink, sensor, fallen_off_bus, recover" },
    { "xid", EINVAL, "'xid' is not understood; allowed: xid NUMBER [for TIME]" },
    { "xid 79 80", EINVAL, "'xid 79 80' is not understood; allowed: xid NUMBER" },
    { "xid\n79\n80", EINVAL, "'xid 79 80' is not understood" },
    { "xid x", EINVAL, "'xid x': 'x' is not a whole number" },
    { "xid 1.5", EINVAL, "'1.5' is not a whole number" },
    { "xid 0", ERANGE, "'xid 0': 0 is out of range; allowed: 1 to 999" },
    { "xid -1", ERANGE, "allowed: 1 to 999" },
    { "xid 1000", ERANGE, "allowed: 1 to 999" },
    { "xid 99999999999999999999", ERANGE, "99999999999999999999 is out of range" },
    { "ecc", EINVAL, "allowed: ecc sbe|dbe [COUNT]" },
    { "ecc 5", EINVAL, "allowed: ecc sbe|dbe [COUNT]" },
    { "ecc sbe 5 6", EINVAL, "allowed: ecc sbe|dbe [COUNT]" },
    { "ecc sbe 1000001", ERANGE, "allowed: 1 to 1000000" },
    { "ecc sbe for 3s", EINVAL, "this fault happens at once and has no duration" },
    { "rows sbe", EINVAL, "allowed: rows correctable|uncorrectable [COUNT], rows failure" },
    { "rows failure 2", EINVAL, "allowed: rows correctable|uncorrectable" },
    { "pages correctable", EINVAL, "allowed: pages sbe|dbe [COUNT]" },
    { "thermal 0.99", ERANGE, "0.99 is out of range; allowed: 1 to 100" },
    { "thermal 101", ERANGE, "allowed: 1 to 100" },
    { "thermal 1e999", ERANGE, "allowed: 1 to 100" },
    { "thermal hot", EINVAL, "'hot' is not a number" },
    { "thermal nan", EINVAL, "'nan' is not a number" },
    { "thermal 2 3", EINVAL, "allowed: thermal [FACTOR] [for TIME]" },
    { "hang now", EINVAL, "'hang now' is not understood; allowed: hang [for TIME]" },
    { "hang for", EINVAL, "'hang for' is not understood" },
    { "hang for 30", EINVAL, "'30' needs a unit; allowed units: d, h, min, m, s, ms, us, ns" },
    { "hang for ever", EINVAL, "'ever' is not a number with a unit" },
    { "hang for -1s", ERANGE, "-1s is out of range; allowed: 1ms to 8784h" },
    { "hang for 0s", ERANGE, "allowed: 1ms to 8784h" },
    { "hang for 8785h", ERANGE, "8785h is out of range" },
    { "hang for 99999999999h", ERANGE, "is too large" },
    { "hang for 1s for 2s", EINVAL, "'hang for 1s for 2s' has 'for' twice" },
    { "hang after 1s after 2s", EINVAL, "'hang after 1s after 2s' has 'after' twice" },
    { "hang after 5", EINVAL, "'5' needs a unit" },
    { "recover after 0s", ERANGE, "0s is out of range; allowed: 1ms to" },
    { "power_brake 1", EINVAL, "allowed: power_brake [for TIME]" },
    { "nvlink", EINVAL, "allowed: nvlink [LINK] down|up [for TIME]" },
    { "nvlink 3", EINVAL, "allowed: nvlink [LINK] down|up" },
    { "nvlink 3 sideways", EINVAL, "allowed: nvlink [LINK] down|up" },
    { "nvlink three down", EINVAL, "'three' is not a whole number" },
    { "nvlink 18 down", ERANGE, "allowed: 0 to 17" },
    { "nvlink -1 down", ERANGE, "allowed: 0 to 17" },
    { "nvlink 1 2 down", EINVAL, "allowed: nvlink [LINK] down|up" },
    { "nvlink 1 up for 3s", EINVAL, "this fault happens at once and has no duration" },
    { "sensor", EINVAL, "allowed: sensor METRIC [for TIME]" },
    { "sensor temprature_gpu_c", EINVAL, "is not a metric; did you mean 'temperature_gpu_c'?" },
    { "sensor a b", EINVAL, "allowed: sensor METRIC" },
    { "recover 1", EINVAL, "'recover 1' is not understood; allowed: recover" },
    { "recover for 1s", EINVAL, "this fault happens at once" },
    { "fallen_off_bus 1", EINVAL, "allowed: fallen_off_bus [for TIME]" },
    { "a b c d e f g h i", EINVAL, "has too many words" },
    { "xid 79 12345678901234567890123456789012345678901234567890123456789012345678901234567890"
      "12345678901234567890123456789012345678901234567890",
      E2BIG, "a fault is at most 127 characters long" },
};

static void test_bad_faults(void)
{
    for (size_t i = 0; i < sizeof(bad_faults) / sizeof(bad_faults[0]); i++) {
        struct why why = { 0 };
        struct fault f;

        is_int(fault_parse(bad_faults[i].text, &f, &why), -bad_faults[i].error, "'%s' is refused",
               bad_faults[i].text);
        contains(why_text(&why), bad_faults[i].words, "… and the sentence says why");
        why_release(&why);
    }
}

static bool lasts(const char *text)
{
    struct fault f;

    if (fault_parse(text, &f, NULL) < 0)
        bail("'%s' is not a fault", text);
    return fault_lasts(&f);
}

static void test_lasting(void)
{
    ok(lasts("hang") && lasts("thermal") && lasts("nvlink down") && lasts("fallen_off_bus") &&
           lasts("power_brake") && lasts("sensor temperature_gpu_c") && lasts("xid 13"),
       "states last");
    ok(!lasts("ecc sbe") && !lasts("rows failure") && !lasts("pages sbe") && !lasts("recover") &&
           !lasts("nvlink up"),
       "what happens at once does not");
    is_str(xid_message(79), "GPU has fallen off the bus.", "an Xid has its message");
    is_str(xid_message(998), "Unknown error", "… even one that is not known");
}

/* --- the clock ------------------------------------------------------------------------------- */

static void clock_is(const char *text, enum clock_command_kind kind, double speed, int64_t step_ns)
{
    struct clock_command c;
    struct why why = { 0 };
    int r = clock_parse(text, &c, &why);

    ok(r == 0 && c.kind == kind && c.speed == speed && c.step_ns == step_ns,
       "'%s' is understood (%s)", text, why_text(&why));
    why_release(&why);
}

static void test_clock(void)
{
    clock_is("speed 60", CLOCK_SPEED, 60, 0);
    clock_is("speed 0.5\n", CLOCK_SPEED, 0.5, 0);
    clock_is("speed 0", CLOCK_SPEED, 0, 0);
    clock_is("speed 1e6", CLOCK_SPEED, 1e6, 0);
    clock_is("  pause ", CLOCK_PAUSE, 0, 0);
    clock_is("resume\n", CLOCK_RESUME, 0, 0);
    clock_is("step 30s", CLOCK_STEP, 0, 30 * S);
    clock_is("step\t1h30m", CLOCK_STEP, 0, 5400 * S);
    clock_is("step 24h", CLOCK_STEP, 0, 86400 * S);
    clock_is("step 1ns", CLOCK_STEP, 0, 1);
}

static const struct {
    const char *text;
    int error;
    const char *words;
} bad_clocks[] = {
    { "", EINVAL, "'' is not a clock command; allowed: speed NUMBER, pause, resume, step TIME" },
    { "stop", EINVAL, "'stop' is not a clock command; allowed: speed NUMBER, pause, resume" },
    { "pause now", EINVAL, "'pause now' is not a clock command" },
    { "Pause", EINVAL, "is not a clock command" },
    { "speed", EINVAL, "is not a clock command" },
    { "speed 1 2", EINVAL, "is not a clock command" },
    { "speed\n1\n2", EINVAL, "'speed 1 2' is not a clock command" },
    { "speed fast", EINVAL, "'fast' is not a speed; allowed: a number, 1 is real time" },
    { "speed 2x", EINVAL, "'2x' is not a speed" },
    { "speed -1", ERANGE, "speed -1 is out of range; allowed: 0 to 1000000" },
    { "speed 1000001", ERANGE, "allowed: 0 to 1000000" },
    { "speed 1e999", ERANGE, "allowed: 0 to 1000000" },
    { "speed inf", EINVAL, "'inf' is not a speed" },
    { "step", EINVAL, "is not a clock command" },
    { "step 30", EINVAL, "'30' needs a unit; allowed units: d, h, min, m, s, ms, us, ns" },
    { "step 1W", EINVAL, "'1W' has a wrong unit" },
    { "step 0s", ERANGE, "step 0s is out of range; allowed: above 0, up to 24h" },
    { "step -1s", ERANGE, "step -1s is out of range" },
    { "step 25h", ERANGE, "step 25h is out of range" },
    { "step 1s 2s", EINVAL, "is not a clock command" },
    { "speed 00000000000000000000000000000000000000000000001", EINVAL, "is not a clock command" },
    { "pausepausepausepausepausepausepausepausepausepausepausepausepause", E2BIG,
      "a clock command is at most 63 characters long" },
};

static void test_bad_clocks(void)
{
    for (size_t i = 0; i < sizeof(bad_clocks) / sizeof(bad_clocks[0]); i++) {
        struct clock_command c;
        struct why why = { 0 };

        is_int(clock_parse(bad_clocks[i].text, &c, &why), -bad_clocks[i].error, "'%s' is refused",
               bad_clocks[i].text);
        contains(why_text(&why), bad_clocks[i].words, "… and the sentence says why");
        why_release(&why);
    }
}

static void test_due(void)
{
    struct node node = { .speed = 1 };

    is_int(clock_due(&node, S / 4, S / 10, 100), 2, "a quarter of a second is two steps of 100 ms");
    is_int(clock_due(&node, S / 20, S / 10, 100), 1, "… and what was left over counts");
    is_int(clock_due(&node, S / 20, S / 10, 100), 0, "… once");
    node.speed = 60;
    is_int(clock_due(&node, S, S / 10, 1000), 600, "sixty times as fast, sixty times as many");
    is_int(clock_due(&node, 3600 * S, S / 10, 50), 50, "a long sleep is not made up for");
    is_int(clock_due(&node, S / 1000, S / 10, 50), 0, "… nor kept for later");
    node = (struct node){ .speed = 1, .paused = 1 };
    is_int(clock_due(&node, 10 * S, S / 10, 100), 0, "nothing is due while it is paused");
    node.paused = 0;
    is_int(clock_due(&node, S / 10, S / 10, 100), 1, "… nor is the pause made up for");
    node = (struct node){ .speed = 0 };
    is_int(clock_due(&node, 10 * S, S / 10, 100), 0, "at speed 0 time stands still");
}

int main(void)
{
    test_faults();
    test_completeness();
    test_bad_faults();
    test_lasting();
    test_clock();
    test_bad_clocks();
    test_due();
    return tap_done();
}
