/*
 * Signal: reading, printing and describing signals in a configuration. See signal.h.
 *
 *     80                                            a constant
 *     {random: {min: 10, max: 90}}                  a function with its parameters
 *     {wave: {mean: 50%, amplitude: 20%, period: 10m}}   shares of what the GPU has
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sim/signal.h"
#include "sim/suggest.h"

enum param_type {
    PARAM_VALUE, /* a value of the target: of its unit, or a share of its limit */
    PARAM_SPAN,  /* a distance between two of them: never negative */
    PARAM_RATE,  /* the same, per second and in either direction */
    PARAM_TIME,
    PARAM_CHANCE, /* 0..1 */
};

struct param {
    const char *name;
    enum param_type type;
    int slot; /* which p[] */
    bool optional;
    double otherwise; /* the value of an optional one */
    double factor;    /* from what is written to what is kept */
};

enum { PARAMS_MAX = 5 };

struct kind {
    const char *name, *help;
    struct param params[PARAMS_MAX];
};

/* clang-format off */
#define VALUE(n, i) { .name = n, .type = PARAM_VALUE, .slot = i, .factor = 1 }
#define SPAN(n, i) { .name = n, .type = PARAM_SPAN, .slot = i, .factor = 1 }
#define VALUE_OR(n, i, other) \
    { .name = n, .type = PARAM_VALUE, .slot = i, .optional = true, .otherwise = other, .factor = 1 }
#define CHANCE(n, i, other) \
    { .name = n, .type = PARAM_CHANCE, .slot = i, .optional = true, .otherwise = other, .factor = 1 }

static const struct kind kinds[SIGNAL_KINDS] = {
    [SIGNAL_CONSTANT] = { "constant", "Always the value.", { VALUE("value", 0) } },
    [SIGNAL_JITTER] = { "jitter", "Uniform in value ± spread.",
                        { VALUE("value", 0), SPAN("spread", 1) } },
    [SIGNAL_SPIKE] = { "spike", "Base, or peak with that probability.",
                       { VALUE("base", 0), VALUE("peak", 1), CHANCE("probability", 2, 0.1) } },
    [SIGNAL_WAVE] = { "wave", "mean + amplitude·sin(2π·t/period), or sin(t/per_radian).",
                      { VALUE("mean", 0), SPAN("amplitude", 1),
                        { .name = "period", .type = PARAM_TIME, .slot = 2, .optional = true,
                          .otherwise = NAN, .factor = 0.5 * M_1_PI },
                        { .name = "per_radian", .type = PARAM_TIME, .slot = 2, .optional = true,
                          .otherwise = NAN, .factor = 1 } } },
    [SIGNAL_DRIFT] = { "drift", "from + rate·t, until a value or the GPU's limit.",
                       { VALUE("from", 0),
                         { .name = "rate", .type = PARAM_RATE, .slot = 1, .factor = 1 },
                         VALUE_OR("until", 2, INFINITY) } },
    [SIGNAL_RANDOM] = { "random", "Uniform between min and max.", { VALUE("min", 0), VALUE("max", 1) } },
    [SIGNAL_RAMP] = { "ramp", "From one value to another over a time, then stays.",
                      { VALUE("from", 0), VALUE("to", 1),
                        { .name = "over", .type = PARAM_TIME, .slot = 2, .factor = 1 } } },
    [SIGNAL_RANDOM_INCREASE] = { "random-increase", "Grows by a random part of step at each sample, up to max.",
                                 { VALUE_OR("from", 0, 0), SPAN("step", 1), VALUE_OR("max", 2, INFINITY) } },
    [SIGNAL_FAULT] = { "fault", "The value, or a failed reading with that probability.",
                       { VALUE("value", 0), CHANCE("probability", 1, 0.2) } },
    [SIGNAL_TIMELINE] = { "timeline", "Phases one after the other, repeated.", { { 0 } } },
};
/* clang-format on */

static const char *kind_name(const void *unused, int i)
{
    (void)unused;
    return i < SIGNAL_KINDS ? kinds[i].name : NULL;
}

static const char *param_name(const void *params, int i)
{
    return i < PARAMS_MAX ? ((const struct param *)params)[i].name : NULL;
}

/* --- values ---------------------------------------------------------------------------------- */

/* Whether the parameters read so far were shares. Zero is both. */
enum share { SHARE_UNKNOWN, SHARE_NO, SHARE_YES };

static bool is_share(enum unit unit, const char *text)
{
    size_t n = strlen(text);

    return unit != UNIT_PERCENT && n && text[n - 1] == '%';
}

/* The largest value of a unit, in parts; a GPU may allow less. */
static double largest(enum unit unit)
{
    switch (unit) {
    case UNIT_PERCENT:
        return 100e3;
    case UNIT_RATIO:
        return 1e6;
    case UNIT_CELSIUS:
        return 500e3;
    case UNIT_MILLIWATT:
        return 1e7;
    case UNIT_MEGAHERTZ:
        return 2e7;
    case UNIT_BYTES:
        return 0x1p50;
    default:
        return 1e15; /* a double still counts these one by one */
    }
}

static struct bind_field range_of(enum unit unit, enum param_type type)
{
    struct bind_field f = {
        .type = BIND_QUANTITY, .unit = unit, .high = largest(unit), .flags = BIND_BARE
    };

    if (unit == UNIT_CELSIUS && type == PARAM_VALUE)
        f.low = -100e3;
    if (type == PARAM_RATE)
        f.low = -f.high;
    return f;
}

static int check_shares(struct binder *b, const struct ynode *node, bool percent, int64_t stored,
                        enum share *share)
{
    if (!stored)
        return 0;
    if (*share != SHARE_UNKNOWN && *share != (percent ? SHARE_YES : SHARE_NO))
        return bind_refuse(b, EINVAL, node, "%s mixes shares (%%) with absolute values",
                           ynode_describe(b->arena, node));
    *share = percent ? SHARE_YES : SHARE_NO;
    return 0;
}

static int read_value(struct binder *b, const struct ynode *node, enum unit unit,
                      enum param_type type, enum share *share, double *value)
{
    struct bind_field f;
    int64_t stored = 0;
    bool percent;
    int r;

    if (node->kind != YNODE_SCALAR || ynode_is_null(node))
        return bind_expected(b, node, "a value");
    percent = is_share(unit, node->text);
    f = range_of(percent ? UNIT_PERCENT : unit, type);
    r = bind_read_value(b, &f, node, &stored);
    if (r == 0)
        r = check_shares(b, node, percent, stored, share);
    *value = percent ? (double)stored / (100.0 * (double)unit_parts(UNIT_PERCENT)) : (double)stored;
    return r;
}

static const struct bind_field time_field = {
    .type = BIND_QUANTITY,
    .unit = UNIT_NANOSECOND,
    .low = NS_PER_MS,
    .high = TIME_MAX_NS,
};
static const struct bind_field chance_field = { .type = BIND_REAL, .low = 0, .high = 1 };

static int read_param(struct binder *b, const struct ynode *node, enum unit unit,
                      const struct param *p, enum share *share, double *value)
{
    int64_t ns;
    int r;

    switch (p->type) {
    case PARAM_TIME:
        r = bind_read_value(b, &time_field, node, &ns);
        *value = r < 0 ? 0 : (double)ns / (double)NS_PER_S;
        return r;
    case PARAM_CHANCE:
        return bind_read_value(b, &chance_field, node, value);
    default:
        return read_value(b, node, unit, p->type, share, value);
    }
}

/* --- functions ------------------------------------------------------------------------------- */

static const struct param *param_find(const struct kind *k, const char *name)
{
    for (int i = 0; i < PARAMS_MAX && k->params[i].name; i++)
        if (!strcmp(k->params[i].name, name))
            return &k->params[i];
    return NULL;
}

/* The other key that says what `p` says. */
static const char *rival_of(const struct kind *k, const struct param *p)
{
    const struct param *q = k->params;

    while (q == p || q->slot != p->slot)
        q++;
    return q->name;
}

/* What would make a function pointless or jump. */
static int check_order(struct binder *b, const struct ynode *node, const struct signal *s)
{
    const double *p = s->p;

    if (s->kind == SIGNAL_RANDOM && p[0] > p[1])
        return bind_refuse(b, ERANGE, node, "min is larger than max");
    if (s->kind == SIGNAL_RANDOM_INCREASE && p[0] > p[2])
        return bind_refuse(b, ERANGE, node, "from is larger than max");
    if (s->kind == SIGNAL_DRIFT && p[1] == 0)
        return bind_refuse(b, ERANGE, node, "a drift needs a rate other than 0");
    if (s->kind == SIGNAL_DRIFT && !isinf(p[2]) && (p[1] > 0 ? p[2] < p[0] : p[2] > p[0]))
        return bind_refuse(b, ERANGE, node, "until lies behind from: the rate leads away from it");
    return 0;
}

static int check_params(struct binder *b, const struct ynode *node, const struct kind *k,
                        struct signal *s)
{
    for (int i = 0; i < PARAMS_MAX && k->params[i].name; i++) {
        const struct param *p = &k->params[i];

        if (!isnan(s->p[p->slot]))
            continue;
        if (!p->optional)
            return bind_refuse(b, EINVAL, node, "%s needs the key '%s'", k->name, p->name);
        if (isnan(p->otherwise))
            return bind_refuse(b, EINVAL, node, "%s needs the key '%s' or '%s'", k->name, p->name,
                               rival_of(k, p));
        s->p[p->slot] = p->otherwise;
    }
    for (int i = 0; i < SIGNAL_PARAMS; i++)
        if (isnan(s->p[i]))
            s->p[i] = 0; /* has no meaning here: the same function is the same bytes */
    return check_order(b, node, s);
}

static int read_function(struct binder *b, const struct ynode *node, enum unit unit,
                         const struct kind *k, struct signal *s)
{
    enum share share = SHARE_UNKNOWN;

    if (node->kind != YNODE_MAP)
        return bind_refuse(b, EINVAL, node,
                           "found %s; allowed: a mapping with the parameters of %s",
                           ynode_describe(b->arena, node), k->name);
    for (int i = 0; i < SIGNAL_PARAMS; i++)
        s->p[i] = NAN;
    for (size_t i = 0; i < node->count; i++) {
        const struct param *p = param_find(k, node->keys[i]->text);
        size_t path;
        double v;
        int r;

        if (!p)
            return bind_unknown_key(b, node->keys[i], k->name, param_name, k->params);
        path = bind_enter(b, p->name);
        if (!isnan(s->p[p->slot]))
            return bind_refuse(b, EINVAL, node->keys[i],
                               "'%s' says the same in another way; allowed: one of them",
                               rival_of(k, p));
        r = read_param(b, node->items[i], unit, p, &share, &v);
        if (r < 0)
            return r;
        s->p[p->slot] = v * p->factor;
        bind_leave(b, path);
    }
    s->share = share == SHARE_YES;
    return check_params(b, node, k, s);
}

/* --- timelines ------------------------------------------------------------------------------- */

struct timeline_phase {
    struct bind_head head;
    int64_t time_ns;
    const struct ynode *value;
};

struct timeline {
    struct bind_head head;
    int64_t repeat;
    struct bind_list phases; /* of struct timeline_phase */
};

static int keep_node(struct binder *b, const struct ynode *node, void *member)
{
    (void)b;
    *(const struct ynode **)member = node;
    return 0;
}

static const struct bind_custom any_node = { .read = keep_node };

/* clang-format off */
static const struct bind_field timeline_phase_fields[] = {
    BIND_ROW_QUANTITY("time", timeline_phase, time_ns, UNIT_NANOSECOND, NS_PER_MS, TIME_MAX_NS, BIND_REQUIRED, ""),
    { .key = "value", .type = BIND_CUSTOM, BIND_AT(timeline_phase, value), .custom = &any_node,
      .flags = BIND_REQUIRED },
    { 0 },
};
static const struct bind_table timeline_phase_table = { .what = "a phase", .fields = timeline_phase_fields };
static const struct bind_field timeline_phase_item = { .type = BIND_STRUCT,
                                                       .table = &timeline_phase_table };
static const struct bind_field timeline_fields[] = {
    BIND_ROW_INT("repeat", timeline, repeat, 0, 1e9, 0, ""),
    BIND_ROW_LIST("phases", timeline, phases, &timeline_phase_item, struct timeline_phase,
                  SIGNAL_PHASES_MAX, BIND_REQUIRED, ""),
    { 0 },
};
static const struct bind_table timeline_table = { .what = "a timeline", .fields = timeline_fields };
/* clang-format on */

static int read_phase(struct binder *b, const struct timeline_phase *from, enum unit unit,
                      int target, struct phase_spec *to)
{
    struct signal_spec *inner = arena_alloc(b->arena, sizeof(*inner));
    int r;

    if (!inner)
        return bind_out_of_memory(b);
    r = signal_read(b, from->value, unit, target, inner);
    if (r == 0 && inner->signal.kind == SIGNAL_TIMELINE)
        r = bind_refuse(b, EINVAL, from->value, "a timeline inside a timeline is not allowed");
    *to = (struct phase_spec){ from->time_ns, { inner, 1 } };
    return r;
}

static int read_timeline(struct binder *b, const struct ynode *node, enum unit unit, int target,
                         struct signal_spec *spec)
{
    struct timeline t = { .repeat = 1 };
    const struct timeline_phase *from;
    struct phase_spec *to;
    int r = bind_read(b, &timeline_table, node, &t);

    if (r < 0)
        return r;
    if (!t.phases.count)
        return bind_refuse(b, EINVAL, ynode_get(node, "phases"),
                           "a timeline needs at least one phase");
    from = t.phases.items;
    to = arena_alloc(b->arena, t.phases.count * sizeof(*to));
    if (!to)
        return bind_out_of_memory(b);
    for (size_t i = 0; i < t.phases.count; i++) {
        size_t path = bind_enter(b, "phases");

        bind_enter_index(b, i);
        bind_enter(b, "value");
        r = read_phase(b, &from[i], unit, target, &to[i]);
        if (r < 0)
            return r;
        bind_leave(b, path);
    }
    spec->signal.repeat = t.repeat;
    spec->phases = (struct bind_list){ to, t.phases.count };
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

static int kind_find(const char *name)
{
    for (int i = 0; i < SIGNAL_KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return i;
    return -1;
}

static int read_kind(struct binder *b, const struct ynode *node, enum unit unit, int target,
                     struct signal_spec *spec)
{
    const struct ynode *key = node->keys[0];
    int kind = kind_find(key->text), r;
    struct text hint = TEXT_INIT;
    size_t path;

    if (kind < 0) {
        suggest_add(&hint, key->text, kind_name, NULL);
        r = bind_refuse(b, EINVAL, key, "unknown function %s%s", ynode_describe(b->arena, key),
                        text_str(&hint));
        text_release(&hint);
        return r;
    }
    spec->signal.kind = (uint8_t)kind;
    path = bind_enter(b, key->text);
    if (kind == SIGNAL_TIMELINE)
        r = read_timeline(b, node->items[0], unit, target, spec);
    else
        r = read_function(b, node->items[0], unit, &kinds[kind], &spec->signal);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

int signal_read(struct binder *b, const struct ynode *node, enum unit unit, int target,
                struct signal_spec *spec)
{
    enum share share = SHARE_UNKNOWN;
    int r;

    *spec = (struct signal_spec){ .signal.target = (uint16_t)target };
    if (node->kind == YNODE_MAP && node->count == 1)
        return read_kind(b, node, unit, target, spec);
    if (node->kind != YNODE_SCALAR)
        return bind_refuse(b, EINVAL, node,
                           "found %s; allowed: a value, or one function like "
                           "{random: {min: …, max: …}}",
                           node->count > 1 && node->kind == YNODE_MAP
                               ? "several functions"
                               : ynode_describe(b->arena, node));
    r = read_value(b, node, unit, PARAM_VALUE, &share, &spec->signal.p[0]);
    spec->signal.share = share == SHARE_YES;
    return r;
}

/* --- printing -------------------------------------------------------------------------------- */

/* A double holds days to the nanosecond; longer times are given to the microsecond. */
static int64_t whole_ns(double seconds)
{
    return seconds < 1e5 ? llround(seconds * (double)NS_PER_S) : llround(seconds * 1e6) * NS_PER_US;
}

static void print_param(struct text *out, enum unit unit, const struct signal *s,
                        const struct param *p)
{
    double v = s->p[p->slot] / p->factor;

    switch (p->type) {
    case PARAM_TIME:
        unit_print(out, UNIT_NANOSECOND, whole_ns(v));
        break;
    case PARAM_CHANCE:
        print_real(out, v);
        break;
    default:
        if (s->share)
            unit_print(out, UNIT_PERCENT, llround(v * 100 * (double)unit_parts(UNIT_PERCENT)));
        else
            unit_print(out, unit, llround(v));
    }
}

/* A wave's period is one of two keys: per_radian is written when it says it exactly. */
static bool is_printed(const struct signal *s, const struct param *p)
{
    double v = s->p[p->slot] / p->factor;

    if (s->kind == SIGNAL_WAVE && p->type == PARAM_TIME) {
        bool radian_is_exact = (double)whole_ns(s->p[2]) / (double)NS_PER_S == s->p[2];

        return radian_is_exact == (p->factor == 1);
    }
    return !(p->optional && v == p->otherwise);
}

static void print_timeline(struct text *out, enum unit unit, const struct signal_spec *spec)
{
    const struct phase_spec *phases = spec->phases.items;

    text_addf(out, "{repeat: %lld, phases: [", (long long)spec->signal.repeat);
    for (size_t i = 0; i < spec->phases.count; i++) {
        text_add(out, i ? ", {time: " : "{time: ");
        unit_print(out, UNIT_NANOSECOND, phases[i].time_ns);
        text_add(out, ", value: ");
        signal_print(out, unit, phases[i].signals.items);
        text_add(out, "}");
    }
    text_add(out, "]}");
}

void signal_print(struct text *out, enum unit unit, const struct signal_spec *spec)
{
    const struct signal *s = &spec->signal;
    const struct kind *k = &kinds[s->kind];
    const char *before = "";

    if (s->kind == SIGNAL_CONSTANT) {
        print_param(out, unit, s, &k->params[0]);
        return;
    }
    text_addf(out, "{%s: ", k->name);
    if (s->kind == SIGNAL_TIMELINE) {
        print_timeline(out, unit, spec);
        text_add(out, "}");
        return;
    }
    text_add(out, "{");
    for (int i = 0; i < PARAMS_MAX && k->params[i].name; i++) {
        if (!is_printed(s, &k->params[i]))
            continue;
        text_addf(out, "%s%s: ", before, k->params[i].name);
        print_param(out, unit, s, &k->params[i]);
        before = ", ";
    }
    text_add(out, "}}");
}

/* --- JSON Schema ----------------------------------------------------------------------------- */

/* Any quantity: which unit is right depends on what the signal is for. */
static const char value_schema[] =
    "\"type\": [\"number\", \"string\"], \"pattern\": \"^[-+]?[0-9.]+ *[A-Za-z/%]*$\"";

static void schema_param(struct text *out, const struct param *p)
{
    text_addf(out, "\"%s\": { ", p->name);
    switch (p->type) {
    case PARAM_TIME:
        unit_schema(out, UNIT_NANOSECOND, UNIT_BARE_REFUSED);
        break;
    case PARAM_CHANCE:
        text_add(out, "\"type\": \"number\", \"minimum\": 0, \"maximum\": 1");
        break;
    default:
        text_add(out, value_schema);
    }
    text_add(out, " }");
}

static void schema_params(struct text *out, const struct kind *k)
{
    const char *before = "\"required\": [";
    bool rivals = false;

    for (int i = 0; i < PARAMS_MAX && k->params[i].name; i++) {
        rivals |= isnan(k->params[i].otherwise);
        if (k->params[i].optional)
            continue;
        text_addf(out, "%s\"%s\"", before, k->params[i].name);
        before = ", ";
    }
    text_add(out, "], \"properties\": {");
    for (int i = 0; i < PARAMS_MAX && k->params[i].name; i++) {
        text_add(out, i ? ", " : " ");
        schema_param(out, &k->params[i]);
    }
    text_add(out, " }");
    before = ", \"oneOf\": [";
    for (int i = 0; rivals && i < PARAMS_MAX && k->params[i].name; i++) {
        if (!isnan(k->params[i].otherwise))
            continue;
        text_addf(out, "%s{ \"required\": [\"%s\"] }", before, k->params[i].name);
        before = ", ";
    }
    text_add(out, rivals ? "]" : "");
}

static void schema_timeline(struct text *out)
{
    text_add(out,
             "\"required\": [\"phases\"], \"properties\": { \"repeat\": { \"type\": \"integer\", "
             "\"minimum\": 0 }, \"phases\": { \"type\": \"array\", \"minItems\": 1, \"items\": { "
             "\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"time\", "
             "\"value\"], \"properties\": { \"time\": { ");
    unit_schema(out, UNIT_NANOSECOND, UNIT_BARE_REFUSED);
    text_add(out, " }, \"value\": { \"$ref\": \"#/$defs/signal\" } } } } }");
}

void signal_schema(struct text *out)
{
    text_addf(out, "\"anyOf\": [\n      { %s }", value_schema);
    for (int i = 0; i < SIGNAL_KINDS; i++) {
        text_addf(out,
                  ",\n      { \"description\": \"%s\", \"type\": \"object\", "
                  "\"additionalProperties\": false, \"required\": [\"%s\"], \"properties\": { "
                  "\"%s\": { \"type\": \"object\", \"additionalProperties\": false, ",
                  kinds[i].help, kinds[i].name, kinds[i].name);
        if (i == SIGNAL_TIMELINE)
            schema_timeline(out);
        else
            schema_params(out, &kinds[i]);
        text_add(out, " } } }");
    }
    text_add(out, "\n    ]");
}
