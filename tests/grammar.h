/*
 * Grammar: random configurations, workloads, signals and faults, mostly right ones.
 *
 * Bytes changed blindly are hardly ever a configuration, so the fuzz targets change their inputs with this, too:
 * by the same tables that read them. A new key of a table is fuzzed without a line here; what a table
 * leaves to a function of its own (BIND_CUSTOM) has its words below. All is in flow style, which
 * stands in a line and can stand anywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_GRAMMAR_H
#define TESTS_GRAMMAR_H

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "sim/config.h"
#include "sim/metric.h"
#include "sim/rng.h"

/* A fuzzer is to explore the simulator, not this. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif

static inline uint64_t grammar_below(struct rng *rng, uint64_t n)
{
    return rng_next(rng) % n;
}

#define GRAMMAR_PICK(rng, array) (array)[grammar_below(rng, sizeof(array) / sizeof((array)[0]))]

/* A number between the two, and often one of them, or just beyond. */
static inline double grammar_number(struct rng *rng, double low, double high)
{
    switch (grammar_below(rng, 8)) {
    case 0:
        return low;
    case 1:
        return high;
    case 2:
        return low - 1;
    case 3:
        return high + 1;
    case 4:
        return low + (high - low < 10 ? high - low : 10) * rng_unit(rng);
    default:
        return rng_between(rng, low, high);
    }
}

static inline void grammar_whole(struct text *out, struct rng *rng, double low, double high)
{
    double v = grammar_number(rng, low, high);

    text_addf(out, "%.0f", v < -0x1p62 ? -0x1p62 : v > 0x1p62 ? 0x1p62 : v);
}

static inline void grammar_quantity(struct text *out, struct rng *rng, enum unit unit, double low,
                                    double high)
{
    double v = grammar_number(rng, low, high);

    unit_print(out, unit, (int64_t)(v < -0x1p62 ? -0x1p62 : v > 0x1p62 ? 0x1p62 : v));
}

static inline void grammar_time(struct text *out, struct rng *rng)
{
    static const char *const times[] = { "1ms",  "100ms", "250ms", "1s", "1s",       "2s",
                                         "1.5s", "1m",    "1h30m", "1d", "31999999s" };

    text_add(out, GRAMMAR_PICK(rng, times));
}

/* --- what tables leave to functions ---------------------------------------------------------- */

static inline void grammar_amount(struct text *out, struct rng *rng, enum unit unit)
{
    static const double most[UNIT_COUNT_OF_UNITS] = {
        [UNIT_PERCENT] = 100e3, [UNIT_BYTES] = 0x1p36,   [UNIT_BYTES_PER_SECOND] = 1e11,
        [UNIT_MILLIWATT] = 7e5, [UNIT_MILLIJOULE] = 1e9, [UNIT_CELSIUS] = 120e3,
        [UNIT_MEGAHERTZ] = 2e6, [UNIT_RATIO] = 1e6,      [UNIT_NANOSECOND] = 1e10,
        [UNIT_COUNT] = 1000,    [UNIT_BITMASK] = 255,
    };

    if (grammar_below(rng, 3) == 0)
        text_addf(out, "%d%%", (int)grammar_below(rng, 101));
    else
        grammar_quantity(out, rng, unit, 0, most[unit]);
}

/* The parameters of a function of time; the letters say what each is. */
static inline void grammar_function(struct text *out, struct rng *rng, enum unit unit)
{
    static const char *const functions[] = {
        "constant: {value: V}",
        "jitter: {value: V, spread: V}",
        "spike: {base: V, peak: V}",
        "spike: {base: V, peak: V, probability: P}",
        "wave: {mean: V, amplitude: V, period: T}",
        "wave: {mean: V, amplitude: V, per_radian: T}",
        "drift: {from: V, rate: V}",
        "drift: {from: V, rate: -V, until: V}",
        "random: {min: V, max: V}",
        "ramp: {from: V, to: V, over: T}",
        "random-increase: {step: V}",
        "random-increase: {from: V, step: V, max: V}",
        "fault: {value: V, probability: P}",
        "timeline: {phases: [{time: T, value: V}, {time: T, value: {random: {min: 0, max: V}}}]}",
        "timeline: {repeat: 2, phases: [{time: T, value: V}]}",
    };

    for (const char *p = GRAMMAR_PICK(rng, functions); *p; p++)
        if (*p == 'V')
            grammar_amount(out, rng, unit);
        else if (*p == 'T')
            grammar_time(out, rng);
        else if (*p == 'P')
            text_addf(out, "%g", rng_unit(rng));
        else
            text_addn(out, p, 1);
}

static inline void grammar_signal(struct text *out, struct rng *rng, enum unit unit)
{
    if (grammar_below(rng, 3) == 0) {
        grammar_amount(out, rng, unit);
        return;
    }
    text_add(out, "{");
    grammar_function(out, rng, unit);
    text_add(out, "}");
}

static inline void grammar_metrics(struct text *out, struct rng *rng)
{
    text_add(out, "{");
    for (uint64_t n = grammar_below(rng, 4); n-- > 0;) {
        enum metric id = (enum metric)grammar_below(rng, METRIC_COUNT);

        if (!(metric_infos[id].flags & METRIC_FLAG_PIN) && grammar_below(rng, 20))
            continue;
        text_addf(out, "%s: ", metric_infos[id].name);
        grammar_signal(out, rng, metric_infos[id].unit);
        text_add(out, ", ");
    }
    text_add(out, "}");
}

static inline void grammar_phase(struct text *out, struct rng *rng, bool last)
{
    const char *before = "";

    text_add(out, "{");
    if (!last || grammar_below(rng, 2)) {
        text_add(out, "time: ");
        grammar_time(out, rng);
        before = ", ";
    }
    for (uint64_t n = 1 + grammar_below(rng, 3); n-- > 0; before = ", ") {
        enum channel c = (enum channel)(grammar_below(rng, 2) ? grammar_below(rng, CHANNEL_COUNT)
                                                              : CHANNEL_UTILIZATION);

        text_addf(out, "%s%s: ", before, channel_infos[c].name);
        grammar_signal(out, rng, channel_infos[c].unit);
    }
    text_add(out, "}");
}

static inline void grammar_activity(struct text *out, struct rng *rng)
{
    static const char *const compact[] = { "80", "\"50:50:1s,0:0:500ms\"", "\"100:0:200ms\"",
                                           "\"10:5\"", "\"0:0:1ms,100:100:1ms\"" };
    uint64_t n = 1 + grammar_below(rng, 3);

    if (grammar_below(rng, 2)) {
        text_add(out, GRAMMAR_PICK(rng, compact));
        return;
    }
    text_add(out, "[");
    while (n-- > 0) {
        grammar_phase(out, rng, n == 0);
        text_add(out, n ? ", " : "]");
    }
}

static inline void grammar_limits(struct text *out, struct rng *rng)
{
    text_add(out, "{");
    for (uint64_t n = grammar_below(rng, 3); n-- > 0;) {
        int target = grammar_below(rng, 2) ? (int)grammar_below(rng, LIMIT_TARGETS)
                                           : METRIC_COUNT + (int)grammar_below(rng, 3);

        text_addf(out, "%s: ", limit_name(target));
        grammar_quantity(out, rng, limit_unit(target), 0, 1e10);
        text_add(out, ", ");
    }
    text_add(out, "}");
}

static inline void grammar_fault(struct text *out, struct rng *rng)
{
    static const char *const faults[] = {
        "xid 31",          "xid 79",       "ecc sbe",          "ecc dbe",
        "ecc sbe 1000000", "ecc dbe 3",    "rows correctable", "rows uncorrectable 700",
        "rows failure",    "pages sbe",    "pages dbe 2",      "thermal",
        "thermal 100",     "thermal 1.25", "power_brake",      "hang",
        "nvlink down",     "nvlink up",    "nvlink 0 down",    "nvlink 17 down",
        "fallen_off_bus",  "recover",      "recover",          "sensor temperature_gpu_c",
    };

    if (grammar_below(rng, 8) == 0)
        text_addf(out, "sensor %s", metric_infos[grammar_below(rng, METRIC_COUNT)].name);
    else
        text_add(out, GRAMMAR_PICK(rng, faults));
    if (grammar_below(rng, 3))
        return;
    text_add(out, " for ");
    grammar_time(out, rng);
}

static inline void grammar_profile(struct text *out, struct rng *rng)
{
    static const char *const choices[] = { "cycle", "idle", "[wave, spike]",
                                           "[idle, chaos, faulty]" };

    text_add(out, grammar_below(rng, 2) ? GRAMMAR_PICK(rng, choices)
                                        : profile_cycle[grammar_below(rng, PROFILE_CYCLE_LENGTH)]);
}

static inline void grammar_custom(struct text *out, struct rng *rng, const char *key)
{
    if (!strcmp(key, "profile"))
        grammar_profile(out, rng);
    else if (!strcmp(key, "fault"))
        grammar_fault(out, rng);
    else if (!strcmp(key, "metrics"))
        grammar_metrics(out, rng);
    else if (!strcmp(key, "activity"))
        grammar_activity(out, rng);
    else if (!strcmp(key, "memory"))
        grammar_signal(out, rng, UNIT_BYTES);
    else if (!strcmp(key, "limits"))
        grammar_limits(out, rng);
    else
        text_addf(out, "%04o", (unsigned)grammar_below(rng, 010000)); /* a mode */
}

/* --- by the tables --------------------------------------------------------------------------- */

static inline void grammar_value(struct text *out, struct rng *rng, const struct bind_field *f,
                                 int depth);

static inline void grammar_mapping(struct text *out, struct rng *rng,
                                   const struct bind_table *table, int depth)
{
    const char *before = "";

    text_add(out, "{");
    for (const struct bind_field *f = table->fields; f->key; f++) {
        if (!(f->flags & BIND_REQUIRED) && grammar_below(rng, 4))
            continue;
        text_addf(out, "%s%s: ", before, f->key);
        grammar_value(out, rng, f, depth + 1);
        before = ", ";
    }
    text_add(out, "}");
}

static inline void grammar_text(struct text *out, struct rng *rng, const char *key)
{
    static const char *const models[] = { "A100-SXM4-40GB", "GB200", "NVIDIA GeForce RTX 4090",
                                          "Tesla-K80", "T4" };
    static const char *const others[] = {
        "0",
        "1",
        "2",
        "all",
        "a",
        "b-1",
        "12.4",
        "550.163.01",
        "\"0000:0a:00.0\"",
        "0-3",
        "GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1",
        "GPU-00000000-0000-0000-0000-000000000001",
        "\"yes\"",
        "1e3",
        "\"\\u0085 x\"",
        "'#: \"'",
        "13",
        "\"0\"",
    };

    if (key && (strstr(key, "model") || strstr(key, "product")))
        text_add(out, GRAMMAR_PICK(rng, models));
    else
        text_add(out, GRAMMAR_PICK(rng, others));
}

static inline void grammar_list(struct text *out, struct rng *rng, const struct bind_field *f,
                                int depth)
{
    uint64_t n = grammar_below(rng, 4);

    if ((f->flags & BIND_SINGLE) && grammar_below(rng, 3) == 0) {
        grammar_value(out, rng, f->item, depth + 1);
        return;
    }
    text_add(out, "[");
    while (n-- > 0) {
        grammar_value(out, rng, f->item, depth + 1);
        text_add(out, n ? ", " : "");
    }
    text_add(out, "]");
}

static inline void grammar_value(struct text *out, struct rng *rng, const struct bind_field *f,
                                 int depth)
{
    int count = 0;

    switch (depth > 6 ? BIND_TEXT : f->type) {
    case BIND_BOOL:
        text_add(out, grammar_below(rng, 2) ? "true" : "off");
        break;
    case BIND_INT: /* counts of things are kept small */
        grammar_whole(out, rng, f->low, f->high > 4000 && f->high < 5000 ? 6 : f->high);
        break;
    case BIND_REAL:
        text_addf(out, "%.*g", (int)grammar_below(rng, 18), grammar_number(rng, f->low, f->high));
        break;
    case BIND_QUANTITY:
        if (f->unit == UNIT_NANOSECOND && grammar_below(rng, 2))
            grammar_time(out, rng);
        else
            grammar_quantity(out, rng, f->unit, f->low, f->high);
        break;
    case BIND_TEXT:
        grammar_text(out, rng, f->key);
        break;
    case BIND_CHOICE:
        while (f->names[count])
            count++;
        text_add(out, f->names[grammar_below(rng, (uint64_t)count)]);
        break;
    case BIND_STRUCT:
        grammar_mapping(out, rng, f->table, depth);
        break;
    case BIND_ARRAY:
    case BIND_LIST:
        grammar_list(out, rng, f, depth);
        break;
    case BIND_MAP:
        text_addf(out, "{%s: ", grammar_below(rng, 2) ? "0" : "n-1");
        grammar_mapping(out, rng, f->table, depth);
        text_add(out, "}");
        break;
    case BIND_CUSTOM:
        grammar_custom(out, rng, f->key);
        break;
    }
}

/* --- changing a text ------------------------------------------------------------------------- */

/* Every table below `table`, itself first; returns how many. */
static inline int grammar_tables(const struct bind_table **tables, int count, int room,
                                 const struct bind_table *table)
{
    for (int i = 0; i < count; i++)
        if (tables[i] == table)
            return count;
    if (count == room)
        return count;
    tables[count++] = table;
    for (const struct bind_field *f = table->fields; f->key; f++) {
        const struct bind_table *below = f->item ? f->item->table : f->table;

        if (below)
            count = grammar_tables(tables, count, room, below);
    }
    return count;
}

/* A field of that name in one of the tables, and its table; tables that share names take turns. */
static inline const struct bind_field *grammar_find(struct rng *rng, const struct bind_table *root,
                                                    const char *key, size_t n,
                                                    const struct bind_table **of)
{
    const struct bind_table *tables[32];
    int count = grammar_tables(tables, 0, 32, root);
    int start = (int)grammar_below(rng, (uint64_t)count);

    for (int i = 0; i < count; i++) {
        *of = tables[(start + i) % count];
        for (const struct bind_field *f = (*of)->fields; f->key; f++)
            if (strlen(f->key) == n && !memcmp(f->key, key, n))
                return f;
    }
    return NULL;
}

/* Where the value that begins at `at` ends: behind its bracket, or before what follows a scalar. */
static inline size_t grammar_skip(const char *text, size_t size, size_t at)
{
    int depth = 0;

    while (at < size && text[at] == ' ')
        at++;
    for (; at < size; at++) {
        if (strchr("{[", text[at]) && text[at])
            depth++;
        if (strchr("}]", text[at]) && text[at] && --depth <= 0)
            return depth < 0 ? at : at + 1;
        if (!depth && (text[at] == ',' || text[at] == '\n'))
            return at;
    }
    return at;
}

/* The n-th "key:" in the text: where it begins; *length is that of the key. */
static inline bool grammar_key(const char *text, size_t size, uint64_t n, size_t *at,
                               size_t *length)
{
    for (size_t i = 0; i < size; i++) {
        size_t begin = i;

        while (begin && (isalnum((unsigned char)text[begin - 1]) || strchr("-_", text[begin - 1])))
            begin--;
        if (text[i] != ':' || begin == i || n-- > 0)
            continue;
        *at = begin;
        *length = i - begin;
        return true;
    }
    return false;
}

/*
 * Changes the value of a key, puts another key of the same mapping before it, or takes it out; as a mapping
 * of `root` when there is no key yet. Returns the new text in `out`, and false where nothing fits.
 */
static inline bool grammar_change(struct text *out, struct rng *rng, const struct bind_table *root,
                                  const char *text, size_t size)
{
    const struct bind_table *table = root;
    const struct bind_field *f, *other;
    size_t at, length, end;
    uint64_t n = 0;
    int fields = 0;

    while (grammar_key(text, size, n, &at, &length))
        n++;
    if (!n) {
        grammar_mapping(out, rng, root, 0);
        return true;
    }
    grammar_key(text, size, grammar_below(rng, n), &at, &length);
    f = grammar_find(rng, root, text + at, length, &table);
    if (!f)
        return false;
    while (table->fields[fields].key)
        fields++;
    other = &table->fields[grammar_below(rng, (uint64_t)fields)];
    end = grammar_skip(text, size, at + length + 1);
    text_addn(out, text, at);
    switch (grammar_below(rng, 4)) {
    case 0: /* another key before it, in the style of where it stands */
        text_addf(out, "%s: ", other->key);
        grammar_value(out, rng, other, 2);
        if (at && strchr("{, ", text[at - 1]))
            text_add(out, ", ");
        else
            text_add(out, "\n");
        end = at;
        break;
    case 1: /* away with it */
        end += end < size && text[end] == ',';
        break;
    default:
        text_addf(out, "%s: ", f->key);
        grammar_value(out, rng, f, 1);
    }
    text_addn(out, text + end, size - end);
    return !out->failed;
}

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
