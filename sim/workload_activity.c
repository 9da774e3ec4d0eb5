/*
 * Workload: what it does over time, and the memory it takes. See workload.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "sim/workload.h"

const struct channel_info channel_infos[CHANNEL_COUNT] = {
#define CHANNEL(id, key, unit) [CHANNEL_##id] = { key, UNIT_##unit },
    CHANNEL_TABLE(CHANNEL)
#undef CHANNEL
};

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
        return bind_unknown_key(b, key, "a phase", phase_key_at, NULL);
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
        return bind_expected(b, node, "a phase like {time: 10m, utilization: 80}");
    signals = arena_alloc(b->arena, node->count * sizeof(*signals));
    if (!signals)
        return bind_out_of_memory(b);
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

    part.text = parse_trimmed(text);
    if (!*part.text)
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
        return bind_out_of_memory(b);
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
        return bind_out_of_memory(b);
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
        return bind_out_of_memory(b);
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

const struct bind_custom workload_activity_custom = {
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
        return bind_out_of_memory(b);
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

const struct bind_custom workload_memory_custom = {
    read_memory,
    print_memory,
    "\"$ref\": \"#/$defs/signal\"",
};
