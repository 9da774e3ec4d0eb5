/*
 * Workload: the grammar of workloads. See workload.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/workload.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sim/suggest.h"

const struct channel_info channel_infos[CHANNEL_COUNT] = {
#define CHANNEL(id, key, unit) [CHANNEL_##id] = { key, UNIT_##unit },
    CHANNEL_TABLE(CHANNEL)
#undef CHANNEL
};

static int out_of_memory(struct binder *b)
{
    return why_set(b->why, ENOMEM, "%s: out of memory", b->file);
}

static int unknown_key(struct binder *b, const struct ynode *key, const char *where,
                       suggest_names *names)
{
    struct text hint = TEXT_INIT;
    int r;

    suggest_add(&hint, key->text, names, NULL);
    r = bind_refuse(b, EINVAL, key, "unknown key %s in %s%s", ynode_describe(b->arena, key), where,
                    text_str(&hint));
    text_release(&hint);
    return r;
}

/* --- signals of a channel -------------------------------------------------------------------- */

static int read_channel(struct binder *b, const struct ynode *node, enum channel channel,
                        struct signal_spec *signal)
{
    const struct channel_info *info = &channel_infos[channel];
    int r = signal_read(b, node, info->unit, channel, signal);

    if (r < 0)
        return r;
    if (signal->signal.kind == SIGNAL_TIMELINE || signal->signal.kind == SIGNAL_FAULT)
        return bind_refuse(b, EINVAL, node,
                           "a workload has no such function; allowed: a value, random, "
                           "random-increase, wave, ramp, drift, jitter, spike");
    return 0;
}

/* --- activity -------------------------------------------------------------------------------- */

static const char *phase_key_at(const void *unused, int i)
{
    (void)unused;
    if (i == 0)
        return "time";
    return i <= CHANNEL_COUNT ? channel_infos[i - 1].name : NULL;
}

static int channel_find(const char *name)
{
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (!strcmp(channel_infos[i].name, name))
            return i;
    return -1;
}

static const struct bind_field time_field = {
    .type = BIND_QUANTITY,
    .unit = UNIT_NANOSECOND,
    .low = NS_PER_MS,
    .high = TIME_MAX_NS,
};

static int read_phase_key(struct binder *b, const struct ynode *key, const struct ynode *value,
                          struct phase_spec *phase, struct signal_spec *signals)
{
    int channel, r;
    size_t path;

    channel = channel_find(key->text);
    if (channel < 0 && strcmp(key->text, "time"))
        return unknown_key(b, key, "a phase", phase_key_at);
    path = bind_enter(b, key->text);
    if (channel < 0)
        r = bind_read_value(b, &time_field, value, &phase->time_ns);
    else
        r = read_channel(b, value, (enum channel)channel, &signals[phase->signals.count++]);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_phase(struct binder *b, const struct ynode *node, struct phase_spec *phase)
{
    struct signal_spec *signals;

    if (node->kind != YNODE_MAP)
        return bind_refuse(b, EINVAL, node,
                           "found %s; allowed: a phase like {time: 10m, utilization: 80}",
                           ynode_describe(b->arena, node));
    signals = arena_alloc(b->arena, node->count * sizeof(*signals));
    if (!signals)
        return out_of_memory(b);
    *phase = (struct phase_spec){ .time_ns = PHASE_FOREVER, .signals = { signals, 0 } };
    for (size_t i = 0; i < node->count; i++) {
        int r = read_phase_key(b, node->keys[i], node->items[i], phase, signals);

        if (r < 0)
            return r;
    }
    return 0;
}

/* A part of a compact phase, as `field` says; it has no place of its own in the document. */
static int read_part(struct binder *b, const struct ynode *node, const struct bind_field *field,
                     char *text, int64_t *value)
{
    struct ynode part = *node;

    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    part.text = text;
    if (!*text)
        return bind_refuse(b, EINVAL, node,
                           "has an empty part; allowed: utilization[:fluctuation[:time]], for "
                           "example 80:10:30s,0:0:10s");
    return bind_read_value(b, field, &part, value);
}

/* "80:10:30s": utilization, fluctuation, time; the time may be missing in the last. */
static int read_compact_phase(struct binder *b, const struct ynode *node, char *text,
                              struct phase_spec *phase)
{
    static const struct bind_field percent_field = {
        .type = BIND_QUANTITY, .unit = UNIT_PERCENT, .high = 100e3, .flags = BIND_BARE
    };
    const struct bind_field *const fields[] = { &percent_field, &percent_field, &time_field };
    int64_t value[] = { 0, 0, PHASE_FOREVER };
    struct signal_spec *s = arena_alloc(b->arena, sizeof(*s));
    char *part;

    if (!s)
        return out_of_memory(b);
    for (int i = 0; (part = strsep(&text, ":")); i++) {
        int r;

        if (i == 3)
            return bind_refuse(b, EINVAL, node,
                               "has a phase with too many parts; allowed: "
                               "utilization[:fluctuation[:time]], for example 80:10:30s,0:0:10s");
        r = read_part(b, node, fields[i], part, &value[i]);
        if (r < 0)
            return r;
    }
    *phase = (struct phase_spec){ .time_ns = value[2], .signals = { s, 1 } };
    s->signal = (struct signal){ .kind = value[1] ? SIGNAL_JITTER : SIGNAL_CONSTANT,
                                 .target = CHANNEL_UTILIZATION,
                                 .p = { (double)value[0], (double)value[1] } };
    return 0;
}

enum { COMPACT_PHASES_MAX = 500000 }; /* of one document */

static int too_many_phases(struct binder *b, const struct ynode *node, size_t count)
{
    return bind_refuse(b, ERANGE, node, "has %zu phases; allowed: at most %d", count,
                       SIGNAL_PHASES_MAX);
}

static int read_compact(struct binder *b, const struct ynode *node, struct bind_list *list)
{
    char *text, *one;
    struct phase_spec *phases;
    size_t count = 1;

    for (const char *p = node->text; *p; p++)
        count += *p == ',';
    if (count > SIGNAL_PHASES_MAX)
        return too_many_phases(b, node, count);
    b->phases += count;
    if (b->phases > COMPACT_PHASES_MAX)
        return bind_refuse(b, E2BIG, node, "all activities together have more than %d phases",
                           COMPACT_PHASES_MAX);
    text = arena_strndup(b->arena, node->text, strlen(node->text));
    phases = arena_alloc(b->arena, count * sizeof(*phases));
    if (!text || !phases)
        return out_of_memory(b);
    for (size_t i = 0; (one = strsep(&text, ",")); i++) {
        size_t path = bind_enter_index(b, i);
        int r = read_compact_phase(b, node, one, &phases[i]);

        if (r < 0)
            return r;
        bind_leave(b, path);
    }
    *list = (struct bind_list){ phases, count };
    return 0;
}

static int read_phases(struct binder *b, const struct ynode *node, struct bind_list *list)
{
    bool single = node->kind == YNODE_MAP;
    size_t count = single ? 1 : node->count;
    struct phase_spec *phases = arena_alloc(b->arena, count * sizeof(*phases));

    if (!phases)
        return out_of_memory(b);
    if (count > SIGNAL_PHASES_MAX)
        return too_many_phases(b, node, count);
    for (size_t i = 0; i < count; i++) {
        size_t path = bind_enter_index(b, i);
        int r = read_phase(b, single ? node : node->items[i], &phases[i]);

        if (r < 0)
            return r;
        bind_leave(b, path);
    }
    *list = (struct bind_list){ phases, count };
    return 0;
}

static int read_activity(struct binder *b, const struct ynode *node, void *member)
{
    struct bind_list *list = member;
    const struct phase_spec *phases;
    int r = node->kind == YNODE_SCALAR ? read_compact(b, node, list) : read_phases(b, node, list);

    if (r < 0)
        return r;
    phases = list->items;
    if (!list->count)
        return bind_refuse(b, EINVAL, node, "an activity needs at least one phase");
    for (size_t i = 0; i + 1 < list->count; i++)
        if (phases[i].time_ns == PHASE_FOREVER) {
            bind_enter_index(b, i);
            return bind_refuse(b, EINVAL, node->kind == YNODE_LIST ? node->items[i] : node,
                               "has no time; only the last phase may go on for ever");
        }
    return 0;
}

static void print_phase(struct text *out, const struct phase_spec *phase)
{
    const struct signal_spec *signals = phase->signals.items;
    const char *before = "";

    text_add(out, "{");
    if (phase->time_ns != PHASE_FOREVER) {
        text_add(out, "time: ");
        unit_print(out, UNIT_NANOSECOND, phase->time_ns);
        before = ", ";
    }
    for (size_t i = 0; i < phase->signals.count; i++) {
        const struct channel_info *info = &channel_infos[signals[i].signal.target];

        text_addf(out, "%s%s: ", before, info->name);
        signal_print(out, info->unit, &signals[i]);
        before = ", ";
    }
    text_add(out, "}");
}

static void print_activity(struct text *out, const void *member, int indent)
{
    const struct bind_list *list = member;
    const struct phase_spec *phases = list->items;

    text_add(out, "\n");
    for (size_t i = 0; i < list->count; i++) {
        text_addf(out, "%*s- ", indent, "");
        print_phase(out, &phases[i]);
        text_add(out, "\n");
    }
}

void workload_activity_print(struct text *out, const struct bind_list *activity)
{
    const struct phase_spec *phases = activity->items;

    text_add(out, "[");
    for (size_t i = 0; i < activity->count; i++) {
        text_add(out, i ? ", " : "");
        print_phase(out, &phases[i]);
    }
    text_add(out, "]");
}

static const struct bind_custom activity_custom = {
    read_activity,
    print_activity,
    "\"$ref\": \"#/$defs/activity\"",
};

void workload_activity_schema(struct text *out)
{
    text_add(out, "\"anyOf\": [\n"
                  "      { \"type\": [\"string\", \"number\"], \"description\": "
                  "\"utilization:fluctuation:time, several separated by commas\" },\n"
                  "      { \"$ref\": \"#/$defs/phase\" },\n"
                  "      { \"type\": \"array\", \"minItems\": 1, \"items\": { \"$ref\": "
                  "\"#/$defs/phase\" } }\n    ]");
}

void workload_phase_schema(struct text *out)
{
    text_add(out, "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\n"
                  "      \"time\": { ");
    unit_schema(out, UNIT_NANOSECOND, UNIT_BARE_REFUSED);
    text_add(out, " }");
    for (int i = 0; i < CHANNEL_COUNT; i++)
        text_addf(out, ",\n      \"%s\": { \"$ref\": \"#/$defs/signal\" }", channel_infos[i].name);
    text_add(out, "\n    }");
}

/* --- memory ---------------------------------------------------------------------------------- */

static int read_memory(struct binder *b, const struct ynode *node, void *member)
{
    struct bind_list *list = member;
    struct signal_spec *s = arena_alloc(b->arena, sizeof(*s));

    if (!s)
        return out_of_memory(b);
    *list = (struct bind_list){ s, 1 };
    return read_channel(b, node, CHANNEL_MEMORY, s);
}

static void print_memory(struct text *out, const void *member, int indent)
{
    const struct bind_list *list = member;

    (void)indent;
    text_add(out, " ");
    signal_print(out, UNIT_BYTES, list->items);
    text_add(out, "\n");
}

static const struct bind_custom memory_custom = {
    read_memory,
    print_memory,
    "\"$ref\": \"#/$defs/signal\"",
};

/* --- limits ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum unit unit;
} own_limits[] = {
    [LIMIT_TIME - METRIC_COUNT] = { "time", UNIT_NANOSECOND },
    [LIMIT_ENERGY - METRIC_COUNT] = { "energy", UNIT_MILLIJOULE },
    [LIMIT_MEMORY - METRIC_COUNT] = { "memory", UNIT_BYTES },
};

const char *limit_name(int target)
{
    return target < METRIC_COUNT ? metric_infos[target].name
                                 : own_limits[target - METRIC_COUNT].name;
}

enum unit limit_unit(int target)
{
    return target < METRIC_COUNT ? metric_infos[target].unit
                                 : own_limits[target - METRIC_COUNT].unit;
}

/* The own ones first: they are what a person means. */
static int limit_order(int i)
{
    int own = LIMIT_TARGETS - METRIC_COUNT;

    return i < own ? METRIC_COUNT + i : i - own;
}

static const char *limit_name_at(const void *unused, int i)
{
    (void)unused;
    return i < LIMIT_TARGETS ? limit_name(limit_order(i)) : NULL;
}

static int limit_find(const char *name)
{
    for (int i = 0; i < LIMIT_TARGETS; i++)
        if (!strcmp(limit_name(i), name))
            return i;
    return -1;
}

/* A metric is written as its file shows it; a time or an energy says its unit. */
static enum unit_bare limit_is_bare(int target)
{
    return target < METRIC_COUNT || target == LIMIT_MEMORY ? UNIT_BARE_SHOWN : UNIT_BARE_REFUSED;
}

static int read_limit(struct binder *b, const struct ynode *key, const struct ynode *value,
                      struct limit_spec *limit)
{
    struct bind_field f = { .type = BIND_QUANTITY, .low = 0, .high = 0x1p62 };
    int target = limit_find(key->text), r;
    size_t path;

    if (target < 0)
        return unknown_key(b, key, "limits", limit_name_at);
    path = bind_enter(b, key->text);
    if (ynode_is_null(value))
        return bind_refuse(b, EINVAL, key, "has no value");
    f.unit = limit_unit(target);
    if (f.unit == UNIT_PERCENT || f.unit == UNIT_RATIO)
        f.high = (double)unit_parts(f.unit) * (f.unit == UNIT_PERCENT ? 100 : 1);
    f.flags = limit_is_bare(target) == UNIT_BARE_SHOWN ? BIND_BARE : 0;
    limit->target = target;
    r = bind_read_value(b, &f, value, &limit->value);
    if (r == 0)
        bind_leave(b, path);
    return r;
}

static int read_limits(struct binder *b, const struct ynode *node, void *member)
{
    struct bind_list *list = member;
    struct limit_spec *limits;

    if (node->kind != YNODE_MAP)
        return bind_refuse(b, EINVAL, node,
                           "found %s; allowed: a mapping like {memory: 30GiB, time: 1h}",
                           ynode_describe(b->arena, node));
    if (node->count > WORKLOAD_LIMITS_MAX)
        return bind_refuse(b, ERANGE, node, "has %zu limits; allowed: at most %d", node->count,
                           WORKLOAD_LIMITS_MAX);
    limits = arena_alloc(b->arena, node->count * sizeof(*limits));
    if (!limits)
        return out_of_memory(b);
    for (size_t i = 0; i < node->count; i++) {
        int r = read_limit(b, node->keys[i], node->items[i], &limits[i]);

        if (r < 0)
            return r;
    }
    *list = (struct bind_list){ limits, node->count };
    return 0;
}

void workload_limits_print(struct text *out, const struct bind_list *list)
{
    const struct limit_spec *limits = list->items;

    text_add(out, "{");
    for (size_t i = 0; i < list->count; i++) {
        text_addf(out, "%s%s: ", i ? ", " : "", limit_name(limits[i].target));
        unit_print(out, limit_unit(limits[i].target), limits[i].value);
    }
    text_add(out, "}");
}

static void print_limits(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    workload_limits_print(out, member);
    text_add(out, "\n");
}

static const struct bind_custom limits_custom = {
    read_limits,
    print_limits,
    "\"$ref\": \"#/$defs/limits\"",
};

void workload_limits_schema(struct text *out)
{
    text_add(out, "\"type\": \"object\", \"additionalProperties\": { \"type\": [\"number\", "
                  "\"string\"] }, \"properties\": {");
    for (int i = 0; limit_order(i) >= METRIC_COUNT; i++) {
        text_addf(out, "%s\n      \"%s\": { ", i ? "," : "", limit_name(limit_order(i)));
        unit_schema(out, limit_unit(limit_order(i)), limit_is_bare(limit_order(i)));
        text_add(out, " }");
    }
    text_add(out, "\n    }, \"propertyNames\": { \"enum\": [");
    for (int i = 0; i < LIMIT_TARGETS; i++)
        text_addf(out, "%s\n      \"%s\"", i ? "," : "", limit_name(limit_order(i)));
    text_add(out, "\n    ] }");
}

/* --- the tables ------------------------------------------------------------------------------ */

bool workload_name_ok(const char *name)
{
    if (!isalnum((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-_.", *name))
            return false;
    return true;
}

static const struct bind_shape name_shape = {
    workload_name_ok,
    "letters, digits, '-', '_' and '.', beginning with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9._-]*$",
};

static const struct bind_field device_item = { .type = BIND_TEXT,
                                               .size = sizeof(struct device_name) };

/* clang-format off */
#define WORKLOAD_PLAY_ROWS                                                                           \
    BIND_ROW_TYPED("activity", workload_spec, activity, &activity_custom,                            \
                    "[phases](configuration.md#workloads), or `utilization:fluctuation:time`",       \
                    "Phases one after the other; the last may have no time and goes on for ever."),  \
    BIND_ROW_INT("repeat", workload_spec, repeat, 0, 1e9, 0,                                         \
                 "How often the activity is played; 0 for ever."),                                   \
    BIND_ROW_TYPED("memory", workload_spec, memory, &memory_custom,                                  \
                    "size, or a [signal](simulation.md#signals)",                                    \
                    "Memory on each of its GPUs, where no phase says otherwise.")

#define WORKLOAD_IDENTITY_ROWS                                                                       \
    BIND_ROW_TEXT("namespace", workload_spec, namespace, 0, "Kubernetes namespace."),                \
    BIND_ROW_TEXT("pod", workload_spec, pod, 0, "Pod."),                                             \
    BIND_ROW_TEXT("container", workload_spec, container, 0, "Container."),                           \
    BIND_ROW_INT("pid", workload_spec, pid, 0, 4194303, 0, "Process id; 0: a simulated one.")

#define WORKLOAD_ACTIVITY_ROWS                                                                       \
    WORKLOAD_PLAY_ROWS,                                                                              \
    BIND_ROW_QUANTITY("sample", workload_spec, sample_ns, UNIT_NANOSECOND, 1e6, 3.6e12, 0,           \
                      "How often random values change."),                                            \
    WORKLOAD_IDENTITY_ROWS,                                                                          \
    BIND_ROW_INT("uid", workload_spec, uid, 0, 4294967294, 0, "Who it belongs to.")

#define WORKLOAD_DEVICES_ROW                                                                         \
    BIND_ROW_LIST("devices", workload_spec, devices, &device_item, struct device_name,               \
                  WORKLOAD_DEVICES_MAX, BIND_SINGLE, "GPUs by index, UUID or bus id, or all.")
#define WORKLOAD_LIMITS_ROW                                                                          \
    BIND_ROW_TYPED("limits", workload_spec, limits, &limits_custom,                                  \
                   "mapping of `time`, `energy`, `memory` or a metric to a value", "What terminates it.")

static const struct bind_field workload_fields[] = {
    BIND_ROW_SHAPED("name", workload_spec, name, 0, &name_shape, "Unique name."),
    WORKLOAD_DEVICES_ROW,
    BIND_ROW_INT("gpus", workload_spec, gpus, 1, WORKLOAD_DEVICES_MAX, 0,
                 "How many GPUs, where they are not named: the least busy are taken."),
    BIND_ROW_TEXT("model", workload_spec, model, 0,
                  "Model its times were measured on; on a slower GPU it takes longer."),
    BIND_ROW_QUANTITY("start", workload_spec, start_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0,
                      "Simulated time at which it begins."),
    WORKLOAD_LIMITS_ROW,
    WORKLOAD_ACTIVITY_ROWS,
    { 0 },
};

/* What the files of a workload's directory can say. */
static const struct bind_field made_workload_fields[] = {
    BIND_ROW_SHAPED("name", workload_spec, name, BIND_REQUIRED, &name_shape, "Unique name."),
    WORKLOAD_DEVICES_ROW,
    WORKLOAD_LIMITS_ROW,
    WORKLOAD_PLAY_ROWS,
    WORKLOAD_IDENTITY_ROWS,
    { 0 },
};

/* clang-format on */

static int check_repeat(struct binder *b, const struct ynode *node, void *object)
{
    const struct workload_spec *w = object;
    const struct phase_spec *phases = w->activity.items;

    if (w->repeat > 1 && w->activity.count &&
        phases[w->activity.count - 1].time_ns == PHASE_FOREVER)
        return bind_refuse(b, EINVAL, ynode_key(node, "repeat"),
                           "cannot repeat an activity whose last phase has no time and never ends");
    return 0;
}

static int check_workload(struct binder *b, const struct ynode *node, void *object)
{
    const struct workload_spec *w = object;

    if (bind_is_set(&workload_table, w, "gpus") && bind_is_set(&workload_table, w, "devices"))
        return bind_refuse(b, EINVAL, ynode_key(node, "gpus"),
                           "gives both 'devices' and 'gpus'; allowed: one of them");
    return check_repeat(b, node, object);
}

const struct bind_table workload_table = {
    .what = "a workload",
    .def = "workload",
    .fields = workload_fields,
    .check = check_workload,
    .init = workload_spec_init,
};

static const struct bind_field base_workload_fields[] = { WORKLOAD_ACTIVITY_ROWS, { 0 } };

const struct bind_table base_workload_table = {
    .what = "a GPU's own workload",
    .def = "own_workload",
    .fields = base_workload_fields,
    .check = check_repeat,
};

const struct bind_table made_workload_table = {
    .what = "a workload",
    .def = "workload",
    .fields = made_workload_fields,
    .check = check_repeat,
    .init = workload_spec_init,
};

void workload_spec_init(void *spec)
{
    *(struct workload_spec *)spec = (struct workload_spec){ .gpus = 1,
                                                            .repeat = 1,
                                                            .sample_ns = NS_PER_S };
}

/* --- from text ------------------------------------------------------------------------------- */

/* An activity as the only key of a workload. */
static int read_activity_alone(struct binder *b, struct ynode *value, struct workload_spec *spec)
{
    struct ynode key = { .text = "activity", .line = value->line, .column = value->column };
    struct ynode *keys[] = { &key }, *values[] = { value };
    struct ynode map = { .kind = YNODE_MAP, .line = value->line, .column = value->column };

    map.keys = keys;
    map.items = values;
    map.count = 1;
    return bind_read(b, &workload_table, &map, spec);
}

/* "80:10:30s,…", which would not survive as YAML. */
static int read_compact_text(struct binder *b, const char *text, struct workload_spec *spec)
{
    struct ynode value = { .text = text, .line = 1, .column = 1 };

    return read_activity_alone(b, &value, spec);
}

/* An activity in brackets, with what may follow it, is the inside of a mapping. */
static int read_yaml_text(struct binder *b, const char *text, bool inside,
                          struct workload_spec *spec)
{
    struct ydoc doc;
    int r = inside ? ydoc_parse_between(&doc, b->file, "{activity:", text, "}", b->why)
                   : ydoc_parse(&doc, b->file, text, strlen(text), b->why);

    if (r < 0)
        return r;
    /* Phases in lines of their own, or a word that is none. */
    r = doc.root && doc.root->kind != YNODE_MAP ? read_activity_alone(b, doc.root, spec)
                                                : bind_read(b, &workload_table, doc.root, spec);
    ydoc_release(&doc);
    return r;
}

int workload_parse(struct workload_spec *spec, const char *source, const char *text,
                   struct arena *arena, struct why *why)
{
    struct binder b = { .file = source, .arena = arena, .why = why };
    char first = text[strspn(text, " \t\r\n")];
    int r;

    workload_spec_init(spec);
    if (isdigit((unsigned char)first))
        r = read_compact_text(&b, text, spec);
    else
        r = read_yaml_text(&b, text, first == '[', spec);
    text_release(&b.path);
    return r;
}
