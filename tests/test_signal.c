/*
 * Signals: how each function is written, what it comes to over time, and how it is printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "sim/signal.h"
#include "tests/tap.h"

#define S NS_PER_S
#define HUGE_LIMIT 1e15

enum { TARGET = 7 };

/* A signal as it stands in a configuration, and as it lies in a pool. */
struct reading {
    struct arena arena;
    struct why why;
    struct signal_spec spec;
    struct signal signals[16];
    struct phase phases[16];
    struct signal_pool pool;
    int r;
};

static void fill(struct reading *q)
{
    struct bind_list one = { &q->spec, 1 };
    struct signal_fill f = { .signals = q->signals, .phases = q->phases };
    uint32_t signals = 0, phases = 0;

    signal_count(&q->spec, &signals, &phases);
    if (signals > 16 || phases > 16)
        bail("this test is for small signals");
    signal_fill_add(&f, &one);
    if (f.signal_count != signals || f.phase_count != phases)
        bail("signal_count promised %u signals and %u phases, not %u and %u", signals, phases,
             f.signal_count, f.phase_count);
    q->pool = (struct signal_pool){ q->signals, q->phases };
}

static struct reading *read_signal(struct reading *q, enum unit unit, const char *text)
{
    struct binder b = { .file = "signal", .arena = &q->arena, .why = &q->why };
    struct ydoc doc;

    *q = (struct reading){ 0 };
    b.arena = &q->arena;
    q->r = ydoc_parse(&doc, "signal", text, strlen(text), &q->why);
    if (q->r < 0)
        return q;
    q->r = signal_read(&b, doc.root, unit, TARGET, &q->spec);
    if (q->r == 0)
        fill(q);
    ydoc_release(&doc);
    text_release(&b.path);
    return q;
}

static void release(struct reading *q)
{
    arena_release(&q->arena);
    why_release(&q->why);
}

/* The value in parts after that time, evaluated anew. */
static double value_at(struct reading *q, int64_t elapsed_ns, double limit, struct rng *rng)
{
    double v = NAN;

    if (signal_eval(q->signals, &q->pool, elapsed_ns, limit, 0, true, rng, &v) < 0)
        return INFINITY; /* stands for a failed reading */
    return v;
}

static void comes_to(enum unit unit, const char *text, double limit, int64_t elapsed_ns,
                     double want)
{
    struct rng rng = rng_seeded(1, "test");
    struct reading q;

    read_signal(&q, unit, text);
    if (ok(q.r == 0, "%s is read (%s)", text, why_text(&q.why)))
        is_real(value_at(&q, elapsed_ns, limit, &rng), want, 1e-6 * (1 + fabs(want)),
                "… and is %g after %g s", want, (double)elapsed_ns / (double)S);
    release(&q);
}

static void test_constant(void)
{
    comes_to(UNIT_CELSIUS, "50", 92e3, 0, 50e3);
    comes_to(UNIT_CELSIUS, "50C", 92e3, 0, 50e3);
    comes_to(UNIT_CELSIUS, "-5.5", 92e3, 0, -5500);
    comes_to(UNIT_CELSIUS, "{constant: {value: 50}}", 92e3, 1000 * S, 50e3);
    comes_to(UNIT_PERCENT, "80", 100e3, 0, 80e3);
    comes_to(UNIT_PERCENT, "80%", 50e3, 0, 80e3); /* a percentage is not a share of something */
    comes_to(UNIT_BYTES, "20GiB", 0x1p40, 0, 20 * 0x1p30);
    comes_to(UNIT_BYTES, "4096", 0x1p40, 0, 4096);
    comes_to(UNIT_BYTES, "50%", 40e9, 0, 20e9);
    comes_to(UNIT_BYTES, "0%", 40e9, 0, 0);
    comes_to(UNIT_MILLIWATT, "12.5%", 400e3, 0, 50e3);
    comes_to(UNIT_RATIO, "0.25", 1e6, 0, 250e3);
    comes_to(UNIT_COUNT, "79", HUGE_LIMIT, 0, 79);
    comes_to(UNIT_BYTES_PER_SECOND, "10GB/s", 64e9, 0, 10e9);
}

static void test_wave(void)
{
    comes_to(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, per_radian: 60s}}", 92e3, 0, 50e3);
    comes_to(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, per_radian: 60s}}", 92e3, 30 * S,
             50e3 + 20e3 * sin(0.5));
    comes_to(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, period: 4m}}", 92e3, 60 * S, 70e3);
    comes_to(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, period: 4m}}", 92e3, 180 * S, 30e3);
    comes_to(UNIT_BYTES, "{wave: {mean: 50%, amplitude: 20%, period: 4m}}", 1000, 60 * S, 700);
}

static void test_drift(void)
{
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: 0.5}}", 92e3, 0, 50e3);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: 0.5}}", 92e3, 60 * S, 80e3);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: 0.5}}", 92e3, 3600 * S, 92e3);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: -1}}", 92e3, 20 * S, 30e3);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: -1}}", 92e3, 3600 * S, 0);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: 1, until: 60}}", 92e3, 3600 * S, 60e3);
    comes_to(UNIT_CELSIUS, "{drift: {from: 50, rate: -1, until: 40}}", 92e3, 3600 * S, 40e3);
    comes_to(UNIT_BYTES, "{drift: {from: 50%, rate: 0.5%}}", 1000, 10 * S, 550);
    comes_to(UNIT_BYTES, "{drift: {from: 50%, rate: 0.5%}}", 1000, 3600 * S, 1000);
}

static void test_ramp(void)
{
    comes_to(UNIT_PERCENT, "{ramp: {from: 20, to: 80, over: 1m}}", 100e3, 0, 20e3);
    comes_to(UNIT_PERCENT, "{ramp: {from: 20, to: 80, over: 1m}}", 100e3, 30 * S, 50e3);
    comes_to(UNIT_PERCENT, "{ramp: {from: 20, to: 80, over: 1m}}", 100e3, 90 * S, 80e3);
    comes_to(UNIT_PERCENT, "{ramp: {from: 80, to: 20, over: 1m}}", 100e3, 45 * S, 35e3);
    comes_to(UNIT_BYTES, "{ramp: {from: 0, to: 50%, over: 10s}}", 1000, 5 * S, 250);
}

/* What many evaluations come to. */
struct spread {
    double low, high, mean;
    double failed; /* share of readings that fail */
};

static struct spread sample(enum unit unit, const char *text, double limit)
{
    enum { SAMPLES = 20000 };
    struct spread s = { .low = INFINITY, .high = -INFINITY };
    struct rng rng = rng_seeded(1, text);
    struct reading q;
    int good = 0;

    read_signal(&q, unit, text);
    if (q.r < 0)
        bail("%s", why_text(&q.why));
    for (int i = 0; i < SAMPLES; i++) {
        double v = value_at(&q, i * S, limit, &rng);

        if (isinf(v)) {
            s.failed += 1.0 / SAMPLES;
            continue;
        }
        good++;
        s.low = fmin(s.low, v);
        s.high = fmax(s.high, v);
        s.mean += v;
    }
    s.mean /= good;
    release(&q);
    return s;
}

static void test_random(void)
{
    struct spread s = sample(UNIT_CELSIUS, "{random: {min: 20, max: 100}}", 92e3);

    ok(s.low >= 20e3 && s.low < 20.1e3, "random begins at min: %g", s.low);
    ok(s.high < 100e3 && s.high > 99.9e3, "… goes up to max: %g", s.high);
    is_real(s.mean, 60e3, 500, "… and is uniform");
    s = sample(UNIT_BYTES, "{random: {min: 20%, max: 100%}}", 1000);
    ok(s.low >= 200 && s.high <= 1000 && s.high > 990, "shares are of the limit: %g to %g", s.low,
       s.high);
    s = sample(UNIT_CELSIUS, "{random: {min: 30, max: 30}}", 92e3);
    ok(s.low == 30e3 && s.high == 30e3, "min may be max");

    s = sample(UNIT_CELSIUS, "{jitter: {value: 50, spread: 2.5}}", 92e3);
    ok(s.low >= 47.5e3 && s.low < 47.51e3, "jitter goes down by its spread: %g", s.low);
    ok(s.high <= 52.5e3 && s.high > 52.49e3, "… and up: %g", s.high);
    is_real(s.mean, 50e3, 50, "… around its value");

    s = sample(UNIT_CELSIUS, "{spike: {base: 50, peak: 100}}", 92e3);
    ok(s.low == 50e3 && s.high == 100e3, "a spike is base or peak");
    is_real(s.mean, 55e3, 400, "… one in ten by default");
    s = sample(UNIT_CELSIUS, "{spike: {base: 50, peak: 100, probability: 0.5}}", 92e3);
    is_real(s.mean, 75e3, 500, "… or as often as it says");

    s = sample(UNIT_CELSIUS, "{fault: {value: 50}}", 92e3);
    ok(s.low == 50e3 && s.high == 50e3, "a faulty sensor gives its value");
    is_real(s.failed, 0.2, 0.01, "… or fails, one in five by default");
    s = sample(UNIT_CELSIUS, "{fault: {value: 50, probability: 0}}", 92e3);
    is_real(s.failed, 0, 0, "… or never");
}

static void test_random_increase(void)
{
    struct rng rng = rng_seeded(1, "grows");
    struct reading q;
    double held = 0, v = 0, largest_step = 0;
    bool falls = false;

    read_signal(&q, UNIT_COUNT, "{random-increase: {from: 100, step: 10, max: 5000}}");
    signal_eval(q.signals, &q.pool, 0, HUGE_LIMIT, 999, true, &rng, &held);
    is_real(held, 100, 0, "random-increase begins at from, whatever was before");
    for (int i = 1; i < 500; i++) {
        signal_eval(q.signals, &q.pool, i * S, HUGE_LIMIT, held, false, &rng, &v);
        falls |= v < held;
        largest_step = fmax(largest_step, v - held);
        held = v;
    }
    ok(!falls, "… never falls");
    ok(largest_step <= 10 && largest_step > 9.5, "… grows by up to a step: %g", largest_step);
    is_real(held, 100 + 499 * 5, 250, "… half a step on average");
    for (int i = 0; i < 1000; i++)
        signal_eval(q.signals, &q.pool, 0, HUGE_LIMIT, held, false, &rng, &held);
    is_real(held, 5000, 0, "… and stops at max");
    release(&q);

    read_signal(&q, UNIT_BYTES, "{random-increase: {step: 10%}}");
    signal_eval(q.signals, &q.pool, 0, 1000, 0, true, &rng, &held);
    is_real(held, 0, 0, "without from it begins at nothing");
    for (int i = 0; i < 100; i++)
        signal_eval(q.signals, &q.pool, 0, 1000, held, false, &rng, &held);
    is_real(held, 1000, 0, "… and without max it stops at the limit");
    release(&q);
}

static void test_timeline(void)
{
    static const char text[] = "{timeline: {repeat: 2, phases: ["
                               "{time: 10s, value: 30}, "
                               "{time: 20s, value: {ramp: {from: 40, to: 60, over: 20s}}}]}}";

    comes_to(UNIT_CELSIUS, text, 92e3, 0, 30e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 10 * S - 1, 30e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 10 * S, 40e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 20 * S, 50e3); /* a function's time is its phase's */
    comes_to(UNIT_CELSIUS, text, 92e3, 30 * S, 30e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 45 * S, 45e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 60 * S, 60e3);
    comes_to(UNIT_CELSIUS, text, 92e3, 9999 * S, 60e3);
    comes_to(UNIT_CELSIUS,
             "{timeline: {repeat: 0, phases: [{time: 10s, value: 30}, "
             "{time: 10s, value: 40}]}}",
             92e3, INT64_C(100000000) * 20 * S + 15 * S, 40e3);
}

/* --- places in a timeline -------------------------------------------------------------------- */

/* Three stretches of 10, 20 and 30 s, behind two that belong to somebody else. */
static const struct phase phases[] = {
    { .end_ns = 5 * S },  { .end_ns = 7 * S },  { .end_ns = 10 * S },
    { .end_ns = 30 * S }, { .end_ns = 60 * S },
};
static const struct phase endless[] = { { .end_ns = 10 * S }, { .end_ns = PHASE_FOREVER } };

static void place_is(struct timeline_place at, uint32_t phase, int64_t offset_ns, bool ended,
                     const char *name)
{
    ok(at.phase == phase && at.offset_ns == offset_ns && at.ended == ended,
       "%s: phase %u, %g s, %s", name, at.phase, (double)at.offset_ns / (double)S,
       at.ended ? "ended" : "goes on");
}

static void test_places(void)
{
    is_int(timeline_length(phases, 2, 3), 60 * S, "a timeline is as long as its phases");
    place_is(timeline_locate(phases, 2, 3, 1, 0), 2, 0, false, "the beginning");
    place_is(timeline_locate(phases, 2, 3, 1, 10 * S - 1), 2, 10 * S - 1, false, "just before");
    place_is(timeline_locate(phases, 2, 3, 1, 10 * S), 3, 0, false, "the next phase");
    place_is(timeline_locate(phases, 2, 3, 1, 59 * S), 4, 29 * S, false, "the last phase");
    place_is(timeline_locate(phases, 2, 3, 1, 60 * S), 4, 30 * S, true, "the end");
    place_is(timeline_locate(phases, 2, 3, 1, 999 * S), 4, 30 * S, true, "long after the end");
    place_is(timeline_locate(phases, 2, 3, 2, 60 * S), 2, 0, false, "the second time");
    place_is(timeline_locate(phases, 2, 3, 2, 75 * S), 3, 5 * S, false, "in the second time");
    place_is(timeline_locate(phases, 2, 3, 2, 120 * S), 4, 30 * S, true, "the end of the second");
    place_is(timeline_locate(phases, 2, 3, 0, 6000 * S + 1), 2, 1, false, "for ever");
    place_is(timeline_locate(phases, 2, 1, 1, 9 * S), 2, 9 * S, false, "a single phase");
    place_is(timeline_locate(phases, 2, 0, 1, 9 * S), 2, 0, true, "no phase at all has ended");

    is_int(timeline_length(endless, 0, 2), PHASE_FOREVER, "an endless phase makes it endless");
    place_is(timeline_locate(endless, 0, 2, 1, 10 * S), 1, 0, false, "the endless phase");
    place_is(timeline_locate(endless, 0, 2, 1, INT64_MAX - 1), 1, INT64_MAX - 1 - 10 * S, false,
             "… never ends");
    place_is(timeline_locate(endless, 1, 1, 5, 10 * S), 1, 10 * S, false,
             "an endless phase takes no notice of repeats");
}

/* --- printing -------------------------------------------------------------------------------- */

/* Prints as `printed`, which reads to the very same function. */
static void prints(enum unit unit, const char *text, const char *printed)
{
    struct text out = TEXT_INIT;
    struct reading q, again;

    read_signal(&q, unit, text);
    if (q.r == 0)
        signal_print(&out, unit, &q.spec);
    is_str(text_str(&out), printed, "%s is printed", text);
    read_signal(&again, unit, text_str(&out));
    ok(q.r == 0 && again.r == 0 && signal_equal(&q.pool, q.signals, &again.pool, again.signals),
       "… and reads back the same");
    text_release(&out);
    release(&q);
    release(&again);
}

static void test_printing(void)
{
    prints(UNIT_CELSIUS, "50", "50C");
    prints(UNIT_CELSIUS, "{constant: {value: -0.5}}", "-0.5C");
    prints(UNIT_PERCENT, "33.333", "33.333%");
    prints(UNIT_BYTES, "50%", "50%");
    prints(UNIT_BYTES, "33.333%", "33.333%");
    prints(UNIT_BYTES, "0.001%", "0.001%");
    prints(UNIT_BYTES, "1TiB", "1TiB");
    prints(UNIT_BYTES, "1099511627775", "1099511627775B");
    prints(UNIT_RATIO, "0.000001", "0.000001");
    prints(UNIT_COUNT, "999999999999999", "999999999999999");
    prints(UNIT_BYTES_PER_SECOND, "25781MB/s", "25781MB/s");
    prints(UNIT_CELSIUS, "{jitter: {spread: 2.5, value: 50}}",
           "{jitter: {value: 50C, spread: 2.5C}}");
    prints(UNIT_CELSIUS, "{spike: {base: 50, peak: 90}}", "{spike: {base: 50C, peak: 90C}}");
    prints(UNIT_CELSIUS, "{spike: {base: 50, peak: 90, probability: 0.00001}}",
           "{spike: {base: 50C, peak: 90C, probability: 1e-05}}");
    prints(UNIT_CELSIUS, "{spike: {base: 50, peak: 90, probability: 0.3333333333333333}}",
           "{spike: {base: 50C, peak: 90C, probability: 0.3333333333333333}}");
    prints(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, per_radian: 60s}}",
           "{wave: {mean: 50C, amplitude: 20C, per_radian: 1m}}");
    prints(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, period: 10m}}",
           "{wave: {mean: 50C, amplitude: 20C, period: 10m}}");
    prints(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, period: 6.283185307s}}",
           "{wave: {mean: 50C, amplitude: 20C, period: 6283185307ns}}");
    prints(UNIT_CELSIUS, "{wave: {mean: 50, amplitude: 20, period: 8783h}}",
           "{wave: {mean: 50C, amplitude: 20C, period: 8783h}}");
    prints(UNIT_CELSIUS, "{drift: {from: 50, rate: 0.5}}", "{drift: {from: 50C, rate: 0.5C}}");
    prints(UNIT_BYTES, "{drift: {from: 50%, rate: -0.5%, until: 10%}}",
           "{drift: {from: 50%, rate: -0.5%, until: 10%}}");
    prints(UNIT_PERCENT, "{random: {min: 0, max: 100}}", "{random: {min: 0%, max: 100%}}");
    prints(UNIT_PERCENT, "{ramp: {from: 0, to: 80, over: 90s}}",
           "{ramp: {from: 0%, to: 80%, over: 90s}}");
    prints(UNIT_COUNT, "{random-increase: {step: 10}}", "{random-increase: {step: 10}}");
    prints(UNIT_COUNT, "{random-increase: {from: 5, step: 10, max: 70}}",
           "{random-increase: {from: 5, step: 10, max: 70}}");
    prints(UNIT_CELSIUS, "{fault: {value: 50, probability: 0.2}}", "{fault: {value: 50C}}");
    prints(UNIT_CELSIUS,
           "{timeline: {phases: [{time: 10s, value: 30}, {time: 1h, value: {random: {min: 1, max: "
           "2}}}]}}",
           "{timeline: {repeat: 1, phases: [{time: 10s, value: 30C}, {time: 1h, value: {random: "
           "{min: 1C, max: 2C}}}]}}");
}

static void differs(const char *a, const char *b)
{
    struct reading qa, qb;

    read_signal(&qa, UNIT_BYTES, a);
    read_signal(&qb, UNIT_BYTES, b);
    ok(qa.r == 0 && qb.r == 0 && !signal_equal(&qa.pool, qa.signals, &qb.pool, qb.signals),
       "%s is not %s", a, b);
    release(&qa);
    release(&qb);
}

static void test_equal(void)
{
    differs("50", "51");
    differs("50%", "50");
    differs("{random: {min: 1, max: 2}}", "{ramp: {from: 1, to: 2, over: 1s}}");
    differs("{timeline: {phases: [{time: 1s, value: 1}]}}",
            "{timeline: {phases: [{time: 2s, value: 1}]}}");
    differs("{timeline: {phases: [{time: 1s, value: 1}]}}",
            "{timeline: {phases: [{time: 1s, value: 2}]}}");
    differs("{timeline: {repeat: 2, phases: [{time: 1s, value: 1}]}}",
            "{timeline: {repeat: 3, phases: [{time: 1s, value: 1}]}}");
}

static void refused(enum unit unit, const char *text, int error, const char *words)
{
    struct reading q;

    read_signal(&q, unit, text);
    is_int(q.r, -error, "%s is refused", text);
    contains(why_text(&q.why), words, "… and the sentence says why");
    release(&q);
}

/* The many others stand in tests/bad. */
static void test_refusals(void)
{
    refused(UNIT_CELSIUS, "50%X", EINVAL, "signal:1:1: '50%X' has a wrong unit");
    refused(UNIT_BYTES, "{random: {min: 10%, max: 5GiB}}", EINVAL,
            "signal:1:26: random.max: '5GiB' mixes shares (%) with absolute values");
    refused(UNIT_BYTES, "{random: {min: 10GiB, max: 0%}}", ERANGE, "min is larger than max");
    refused(UNIT_PERCENT, "{random: {min: 10, max: 100.001}}", ERANGE,
            "signal:1:25: random.max: '100.001' is out of range; allowed: 0% to 100%");
    refused(UNIT_BYTES, "1025TiB", ERANGE, "allowed: 0B to 1024TiB");
    refused(UNIT_CELSIUS, "{drift: {from: 50, rate: -1, until: 60}}", ERANGE, "leads away from it");
    refused(UNIT_CELSIUS, "{wavy: {mean: 50}}", EINVAL, "unknown function 'wavy'; did you mean");
    refused(UNIT_CELSIUS,
            "{timeline: {phases: [{time: 1s, value: {fault: {value: 1, probability: "
            "1.5}}}]}}",
            ERANGE, "timeline.phases[0].value.fault.probability: '1.5' is out of range");
}

int main(void)
{
    test_constant();
    test_wave();
    test_drift();
    test_ramp();
    test_random();
    test_random_increase();
    test_timeline();
    test_places();
    test_printing();
    test_equal();
    test_refusals();
    return tap_done();
}
