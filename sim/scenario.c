/*
 * Scenario: the format of a timeline, as tables. See scenario.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/config.h"
#include "sim/fault.h"
#include "sim/scenario_settings.h"
#include "sim/suggest.h"

/* What readers look names up in. */
struct reading {
    struct model_set models;
    struct profile_set profiles;
};

/* --- texts of several lines ------------------------------------------------------------------ */

static int read_lines(struct binder *b, const struct ynode *node, void *member)
{
    size_t n = node->kind == YNODE_SCALAR ? strlen(node->text) : 0;

    if (node->kind != YNODE_SCALAR)
        return bind_expected(b, node, "a text");
    while (n && node->text[n - 1] == '\n')
        n--;
    if (n >= SCENARIO_TEXT)
        return bind_refuse(b, E2BIG, node, "is longer than %d characters", SCENARIO_TEXT - 1);
    memcpy(member, node->text, n);
    ((char *)member)[n] = '\0';
    return 0;
}

static void print_lines(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    bind_print_text(out, member);
    text_add(out, "\n");
}

static const struct bind_custom lines_custom = {
    read_lines,
    print_lines,
    "\"type\": [\"string\", \"number\", \"boolean\"]",
};

/* --- names ----------------------------------------------------------------------------------- */

static int check_model(struct binder *b, const struct ynode *node, const char *name)
{
    const struct reading *reading = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (model_find(&reading->models, name))
        return 0;
    suggest_add(&hint, name, model_name_at, &reading->models);
    r = bind_refuse(b, EINVAL, node, "'%s' is not a model%s", name, text_str(&hint));
    text_release(&hint);
    return r;
}

static int check_profile(struct binder *b, const struct ynode *node, const char *name)
{
    const struct reading *reading = b->context;
    struct text hint = TEXT_INIT;
    int r;

    if (!*name || profile_find(&reading->profiles, name) >= 0)
        return 0;
    suggest_add(&hint, name, profile_name_at, &reading->profiles);
    bind_enter(b, "profile");
    r = bind_refuse(b, EINVAL, ynode_get(node, "profile"), "'%s' is not a profile%s", name,
                    text_str(&hint));
    text_release(&hint);
    return r;
}

/* --- fault ----------------------------------------------------------------------------------- */

static int read_fault(struct binder *b, const struct ynode *node, void *member)
{
    const struct bind_field text = { .type = BIND_TEXT,
                                     .size = sizeof(((struct scenario_step *)0)->fault) };
    struct why inner = { 0 };
    struct fault fault;
    int r = bind_read_value(b, &text, node, member);

    if (r == 0 && (r = fault_parse(node->text, &fault, &inner)) < 0)
        bind_refuse(b, -r, node, "%s", why_text(&inner));
    why_release(&inner);
    return r;
}

static const struct bind_custom fault_custom = {
    read_fault,
    print_lines,
    "\"$ref\": \"#/$defs/fault\"",
};

/* --- the tables ------------------------------------------------------------------------------ */

static int check_step(struct binder *b, const struct ynode *node, void *object);
static int check_mount(struct binder *b, const struct ynode *node, void *object);
static int check_scenario(struct binder *b, const struct ynode *node, void *object);

static void step_init(void *object)
{
    struct scenario_step *s = object;

    *s = (struct scenario_step){ 0 };
    workload_spec_init(&s->workload);
}

/* clang-format off */
static const struct bind_field device_item = { .type = BIND_TEXT, .size = sizeof(struct device_name) };
static const struct bind_field model_item = { .type = BIND_TEXT, .size = sizeof(struct scenario_model) };
static const struct bind_field expect_item = { .type = BIND_STRUCT, .table = &expect_table };

static const struct bind_field write_fields[] = {
    BIND_ROW_SHAPED("file", scenario_write, file, BIND_REQUIRED, &expect_path_shape, "A file below the mount."),
    { .key = "text", .type = BIND_CUSTOM, BIND_AT(scenario_write, text), .custom = &lines_custom,
      .size = SCENARIO_TEXT, .flags = BIND_REQUIRED, .words = "text", .help = "What is written to it, in one piece." },
    { 0 },
};
static const struct bind_table write_table = { .what = "a write", .def = "write", .fields = write_fields };
static const struct bind_field write_item = { .type = BIND_STRUCT, .table = &write_table };

static const struct bind_field step_fields[] = {
    BIND_ROW_QUANTITY("at", scenario_step, at_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0, "Simulated time since the scenario began. Begins a chain of steps that others do not hold up."),
    BIND_ROW_QUANTITY("after", scenario_step, after_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0, "Simulated time since the step above was done; 0s where neither is given."),
    BIND_ROW_TEXT("note", scenario_step, note, 0, "What to call the step in reports."),
    BIND_ROW_LIST("gpu", scenario_step, gpu, &device_item, struct device_name, WORKLOAD_DEVICES_MAX, BIND_SINGLE, "GPUs that the step is about, by index, UUID or bus id, or `all`."),
    BIND_ROW_STRUCT("workload", scenario_step, workload, &made_workload_table, "A workload that begins."),
    BIND_ROW_TEXT("end", scenario_step, end, 0, "Name of a workload that is ended and removed."),
    { .key = "fault", .type = BIND_CUSTOM, BIND_AT(scenario_step, fault), .custom = &fault_custom, .size = 128,
      .words = "[fault](simulation.md#faults)", .help = "A fault of `gpu`, also with a duration, or `recover`." },
    BIND_ROW_TEXT("profile", scenario_step, profile, 0, "Another profile for `gpu`."),
    { .key = "set", .type = BIND_CUSTOM, BIND_AT(scenario_step, set), .custom = &scenario_settings_custom, .size = sizeof(struct bind_list),
      .words = "mapping of [control files](filesystem.md#control-of-a-gpu-gpusicontrol) to values", .help = "What is written to control files of `gpu`: pinned metrics, limits, modes." },
    { .key = "write", .type = BIND_LIST, BIND_AT(scenario_step, write), .item = &write_item, .size = sizeof(struct scenario_write),
      .high = SCENARIO_WRITES_MAX, .flags = BIND_SINGLE, .help = "What is written to any file." },
    BIND_ROW_REAL("speed", scenario_step, speed, 0, 1e6, "Simulated seconds per real second, of a run at a pace."),
    { .key = "expect", .type = BIND_LIST, BIND_AT(scenario_step, expect), .item = &expect_item, .size = sizeof(struct expectation),
      .high = SCENARIO_EXPECTATIONS_MAX, .flags = BIND_SINGLE, .help = "What must come true." },
    { 0 },
};
const struct bind_table scenario_step_table = {
    .what = "a step", .def = "step", .fields = step_fields, .check = check_step, .init = step_init,
};
static const struct bind_field step_item = { .type = BIND_STRUCT, .table = &scenario_step_table };

static const struct bind_field mount_fields[] = {
    BIND_ROW_INT("gpus", scenario_mount, gpus, 1, CONFIG_GPUS_MAX, 0, "At least so many GPUs; 1 unless given."),
    BIND_ROW_LIST("model", scenario_mount, model, &model_item, struct scenario_model, CONFIG_GPUS_MAX, BIND_SINGLE, "Their model; of a list GPU i has number i modulo its length. Unless given: any, and A100-SXM4-40GB where a mount is made."),
    BIND_ROW_TEXT("profile", scenario_mount, profile, 0, "Their profile; `idle` unless given. A mount that is there gets it for the time of the run."),
    BIND_ROW_INT("seed", scenario_mount, seed, 0, 0x1p53, 0, "Seed of a mount that is made."),
    BIND_ROW_QUANTITY("step", scenario_mount, step_ns, UNIT_NANOSECOND, 1e6, 6e10, 0, "Step of a mount that is made; 100ms unless given."),
    { 0 },
};
const struct bind_table scenario_mount_table = { .what = "mount", .fields = mount_fields, .check = check_mount };

static const struct bind_field scenario_fields[] = {
    BIND_ROW_TEXT("name", scenario, name, BIND_REQUIRED, "Name of the scenario."),
    { .key = "description", .type = BIND_CUSTOM, BIND_AT(scenario, description), .custom = &lines_custom,
      .size = SCENARIO_TEXT, .words = "text", .help = "What it shows." },
    BIND_ROW_STRUCT("mount", scenario, mount, &scenario_mount_table, "The mount that it needs."),
    BIND_ROW_REAL("speed", scenario, speed, 0.001, 1e6, "Simulated seconds per real second of `--realtime`; 1 unless given."),
    BIND_ROW_QUANTITY("check", scenario, check_ns, UNIT_NANOSECOND, 1e6, TIME_MAX_NS, 0, "How often expectations are looked at, in simulated time; at every step of the simulation unless given."),
    { .key = "steps", .type = BIND_LIST, BIND_AT(scenario, steps), .item = &step_item, .size = sizeof(struct scenario_step),
      .high = SCENARIO_STEPS_MAX, .flags = BIND_REQUIRED, .help = "What happens, and what is expected." },
    { 0 },
};
const struct bind_table scenario_table = { .what = "a scenario", .fields = scenario_fields, .check = check_scenario };
/* clang-format on */

/* --- checks ---------------------------------------------------------------------------------- */

bool scenario_step_has(const struct scenario_step *step, const char *key)
{
    return bind_is_set(&scenario_step_table, step, key);
}

/* Keys that do something; the first three do it to `gpu`. */
static const char *const actions[] = { "fault", "profile", "set",   "workload",
                                       "end",   "write",   "speed", NULL };
enum { ACTIONS_ON_GPUS = 3 };

bool scenario_step_acts(const struct scenario_step *step)
{
    for (int i = 0; actions[i]; i++)
        if (scenario_step_has(step, actions[i]))
            return true;
    return false;
}

static bool is_any(const struct bind_list *gpu)
{
    const struct device_name *names = gpu->items;

    return gpu->count == 1 && !strcmp(names[0].text, "any");
}

/* Expectations of metrics look at the step's GPUs unless they name their own. */
static int inherit_gpus(struct binder *b, struct scenario_step *s)
{
    struct expectation *items = s->expect.items;

    for (size_t i = 0; i < s->expect.count; i++) {
        struct expectation *e = &items[i];

        if (e->kind == EXPECT_METRIC && !e->gpu.count)
            e->gpu = s->gpu;
        if (e->kind == EXPECT_METRIC && !e->gpu.count) {
            bind_enter(b, "expect");
            return bind_refuse_at(b, EINVAL, &e->head,
                                  "does not say of which GPU; allowed: gpu: an index, UUID, bus "
                                  "id, a list of them, all, or any");
        }
        e->any = is_any(&e->gpu);
    }
    return 0;
}

static int check_step(struct binder *b, const struct ynode *node, void *object)
{
    struct scenario_step *s = object;
    int r;

    if (scenario_step_has(s, "at") && scenario_step_has(s, "after"))
        return bind_refuse(b, EINVAL, ynode_key(node, "after"),
                           "gives both 'at' and 'after'; allowed: one of them");
    if (!scenario_step_acts(s) && !s->expect.count)
        return bind_refuse(b, EINVAL, node,
                           "does nothing; allowed: fault, profile, set, workload, end, write, "
                           "speed, expect");
    for (int i = 0; i < ACTIONS_ON_GPUS; i++)
        if (scenario_step_has(s, actions[i]) && (!s->gpu.count || is_any(&s->gpu)))
            return bind_refuse(b, EINVAL, ynode_key(node, actions[i]),
                               "'%s' does not say of which GPU; allowed: gpu: an index, UUID, bus "
                               "id, a list of them, or all",
                               actions[i]);
    r = check_profile(b, node, s->profile);
    return r < 0 ? r : inherit_gpus(b, s);
}

static int check_mount(struct binder *b, const struct ynode *node, void *object)
{
    const struct scenario_mount *m = object;
    const struct scenario_model *models = m->model.items;

    for (size_t i = 0; i < m->model.count; i++) {
        int r = check_model(b, ynode_get(node, "model"), models[i].text);

        if (r < 0)
            return r;
    }
    return check_profile(b, node, m->profile);
}

/* Whether each index is that of a GPU which the scenario has asked for. */
static int check_indices(struct binder *b, const struct scenario *s, const struct bind_head *at,
                         const struct bind_list *gpus)
{
    const struct device_name *names = gpus->items;
    int64_t index;

    for (size_t i = 0; i < gpus->count; i++)
        if (parse_i64(names[i].text, &index) == 0 && (index < 0 || index >= s->mount.gpus))
            return bind_refuse_at(b, ENODEV, at, "there is no GPU %s: mount.gpus asks for %" PRId64,
                                  names[i].text, s->mount.gpus);
    return 0;
}

static int check_scenario(struct binder *b, const struct ynode *node, void *object)
{
    const struct scenario *s = object;
    const struct scenario_step *steps = s->steps.items;

    if (!s->steps.count)
        return bind_refuse(b, EINVAL, ynode_get(node, "steps"), "there is no step");
    for (size_t i = 0; i < s->steps.count; i++) {
        const struct expectation *expect = steps[i].expect.items;
        size_t path = bind_enter(b, "steps");
        int r;

        bind_enter_index(b, i);
        r = check_indices(b, s, &steps[i].head, &steps[i].gpu);
        if (r == 0)
            r = check_indices(b, s, &steps[i].head, &steps[i].workload.devices);
        for (size_t k = 0; r == 0 && k < steps[i].expect.count; k++)
            r = check_indices(b, s, &expect[k].head, &expect[k].gpu);
        if (r < 0)
            return r;
        bind_leave(b, path);
    }
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static int read_document(struct scenario *s, const struct reading *reading, const char *text,
                         size_t length, struct why *why)
{
    struct binder b = { .file = s->source, .arena = &s->arena, .why = why, .context = reading };
    struct ydoc doc;
    int r = ydoc_parse(&doc, s->source, text, length, why);

    if (r < 0)
        return r;
    r = bind_read(&b, &scenario_table, doc.root, s);
    text_release(&b.path);
    ydoc_release(&doc);
    return r;
}

int scenario_parse(struct scenario *s, const char *text, size_t length,
                   const struct scenario_options *options, struct why *why)
{
    struct reading reading = { 0 };
    int r;

    *s = (struct scenario){ .speed = 1, .mount = { .gpus = 1, .step_ns = NS_PER_S / 10 } };
    snprintf(s->source, sizeof(s->source), "%s", options->name);
    r = model_set_load(&reading.models, options->schemas, why);
    if (r == 0)
        r = profile_set_load(&reading.profiles, options->schemas, why);
    if (r == 0)
        r = read_document(s, &reading, text, length, why);
    profile_set_release(&reading.profiles);
    model_set_release(&reading.models);
    if (r < 0)
        scenario_release(s);
    return r;
}

void scenario_release(struct scenario *s)
{
    struct scenario_step *steps = s->steps.items;

    for (size_t i = 0; i < s->steps.count; i++) {
        struct expectation *expect = steps[i].expect.items;

        for (size_t k = 0; k < steps[i].expect.count; k++)
            expect_release(&expect[k]);
    }
    arena_release(&s->arena);
    *s = (struct scenario){ 0 };
}

void scenario_node(struct text *out, const struct scenario_mount *m)
{
    const struct scenario_model *models = m->model.items;

    text_addf(out, "node: scenario\nspeed: 0\nseed: %" PRId64 "\nstep: ", m->seed);
    unit_print(out, UNIT_NANOSECOND, m->step_ns);
    text_add(out, "\nprofile: ");
    bind_print_text(out, *m->profile ? m->profile : "idle");
    text_add(out, "\ngpus:\n");
    for (int64_t i = 0; i < m->gpus; i++) {
        text_add(out, "  - model: ");
        bind_print_text(out, m->model.count ? models[(size_t)i % m->model.count].text
                                            : "A100-SXM4-40GB");
        text_add(out, "\n");
    }
}

/* --- schema and reference -------------------------------------------------------------------- */

static void write_schema(struct text *out)
{
    bind_schema(out, &write_table, 4);
}

static void workload_schema(struct text *out)
{
    bind_schema(out, &made_workload_table, 4);
}

static void expect_schema(struct text *out)
{
    bind_schema(out, &expect_table, 4);
}

static void step_schema(struct text *out)
{
    bind_schema(out, &scenario_step_table, 4);
}

void scenario_schema(struct text *out)
{
    static const struct schema_def defs[] = {
        { "signal", signal_schema },
        { "phase", workload_phase_schema },
        { "activity", workload_activity_schema },
        { "limits", workload_limits_schema },
        { "fault", fault_schema },
        { "settings", scenario_settings_schema },
        { "write", write_schema },
        { "workload", workload_schema },
        { "expectation", expect_schema },
        { "step", step_schema },
        { 0 },
    };

    bind_schema_document(out, "fakegpufs scenario", defs, "", &scenario_table);
}

void scenario_reference(struct text *out)
{
    static const struct bind_table *const tables[] = {
        &scenario_table, &scenario_mount_table, &scenario_step_table,
        &write_table,    &made_workload_table,  &expect_table,
    };

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        text_add(out, i ? "\n" : "");
        bind_reference(out, tables[i]);
    }
}
