/*
 * Workload: the grammar of workloads. See workload.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/workload.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "sim/rng.h"

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

uint64_t workload_name_hash(const char *name)
{
    return rng_hash(0, name);
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
    BIND_ROW_TYPED("activity", workload_spec, activity, &workload_activity_custom,                   \
                    "[phases](configuration.md#workloads), or `utilization:fluctuation:time`",       \
                    "Phases one after the other; the last may have no time and goes on for ever."),  \
    BIND_ROW_INT("repeat", workload_spec, repeat, 0, 1e9, 0,                                         \
                 "How often the activity is played; 0 for ever."),                                   \
    BIND_ROW_TYPED("memory", workload_spec, memory, &workload_memory_custom,                         \
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
    BIND_ROW_TYPED("limits", workload_spec, limits, &workload_limits_custom,                         \
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
