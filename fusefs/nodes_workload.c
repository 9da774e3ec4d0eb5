/*
 * Workload nodes: workloads/NAME/…, one directory per workload.
 *
 * A workload runs from the moment its directory is made; its files say what it does. Each write replaces
 * one part of its description as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/errors.h"
#include "fusefs/nodes.h"
#include "fusefs/process.h"
#include "sim/runs.h"
#include "sim/workload_plan.h"

/* The workload's description, to be shown or changed; released by describe_end. */
struct described {
    struct arena arena;
    struct workload_spec spec;
};

static int describe(const struct node_ctx *cx, struct described *d)
{
    *d = (struct described){ .arena = ARENA_INIT };
    return plan_describe_workload(cx->world, cx->workload, &d->spec, &d->arena);
}

static void describe_end(struct described *d)
{
    arena_release(&d->arena);
}

/* --- showing --------------------------------------------------------------------------------- */

static int show_activity(const struct node_ctx *cx, struct text *out)
{
    struct described d;
    int r = describe(cx, &d);

    workload_activity_print(out, &d.spec.activity);
    text_add(out, "\n");
    describe_end(&d);
    return r;
}

static int show_memory(const struct node_ctx *cx, struct text *out)
{
    struct described d;
    int r = describe(cx, &d);

    if (r == 0 && d.spec.memory.count)
        signal_print(out, UNIT_BYTES, d.spec.memory.items);
    else
        text_add(out, "0");
    text_add(out, "\n");
    describe_end(&d);
    return r;
}

static int show_limits(const struct node_ctx *cx, struct text *out)
{
    struct described d;
    int r = describe(cx, &d);

    workload_limits_print(out, &d.spec.limits);
    text_add(out, "\n");
    describe_end(&d);
    return r;
}

static int show_devices(const struct node_ctx *cx, struct text *out)
{
    const struct share *shares = &world_shares(cx->world)[cx->run->first_share];

    for (uint32_t s = 0; s < cx->run->share_count; s++) {
        text_addf(out, "%s%d", s ? "," : "", shares[s].gpu);
        if (shares[s].gi >= 0)
            text_addf(out, ":%d:%d", shares[s].gi, shares[s].ci);
    }
    text_add(out, cx->run->share_count ? "\n" : "none\n");
    return 0;
}

static int show_repeat(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%" PRId64 "\n", cx->work->repeat);
    return 0;
}

static int show_pid(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", process_id(cx->work));
    return 0;
}

static int show_name_or_dash(struct text *out, const char *text)
{
    text_addf(out, "%s\n", *text ? text : "-");
    return 0;
}

static int show_namespace(const struct node_ctx *cx, struct text *out)
{
    return show_name_or_dash(out, cx->work->namespace);
}

static int show_pod(const struct node_ctx *cx, struct text *out)
{
    return show_name_or_dash(out, cx->work->pod);
}

static int show_container(const struct node_ctx *cx, struct text *out)
{
    return show_name_or_dash(out, cx->work->container);
}

/* "running", "ended 1 Limit memory reached, terminated": first word, exit code, sentence. */
static int show_state(const struct node_ctx *cx, struct text *out)
{
    static const char *const names[] = { [RUN_WAITING] = "waiting", [RUN_RUNNING] = "running" };

    if (cx->run->state != RUN_ENDED) {
        text_addf(out, "%s\n", names[cx->run->state]);
        return 0;
    }
    text_addf(out, "ended %d ", cx->run->exit_code);
    if (cx->run->reason == RUN_FINISHED)
        text_add(out, "Finished");
    else
        run_message(out, cx->run);
    text_add(out, "\n");
    return 0;
}

/* What it does at this moment, for progress displays. */
static int show_progress(const struct node_ctx *cx, struct text *out)
{
    int64_t length = timeline_length(world_phases(cx->world), cx->work->first_phase,
                                     cx->work->phase_count);
    const struct share *shares = &world_shares(cx->world)[cx->run->first_share];
    int64_t memory = 0;
    double percent = 0;

    for (uint32_t s = 0; s < cx->run->share_count; s++) {
        memory += shares[s].memory_bytes;
        percent += shares[s].utilization_percent;
    }
    text_addf(out, "progress_ns %" PRId64 "\n", cx->run->progress_ns);
    if (length && length != PHASE_FOREVER && cx->work->repeat)
        text_addf(out, "total_ns %" PRId64 "\n", length * cx->work->repeat);
    text_addf(out, "memory_bytes %" PRId64 "\nutilization_percent %.0f\n", memory, percent / 1000);
    return 0;
}

static int show_attach(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%d\n", cx->work->attached);
    return 0;
}

static int show_last_error(const struct node_ctx *cx, struct text *out)
{
    return errors_show(cx->host->errors, ERRORS_WORKLOAD, cx->work->id, out);
}

/* --- storing --------------------------------------------------------------------------------- */

/* Reads `key: text` as a workload of its own, so that the grammar is that of configurations. */
static int parse_part(const struct node_ctx *cx, const char *key, const char *text,
                      struct described *d, struct why *why)
{
    struct text yaml = TEXT_INIT;
    int r;

    text_addf(&yaml, "{%s: %s}", key, text);
    r = workload_parse(&d->spec, cx->work->name, text_str(&yaml), &d->arena, why);
    text_release(&yaml);
    return r;
}

/* Takes what `from` says of the key over into the description. */
typedef void part_taker(struct workload_spec *to, const struct workload_spec *from);

static int store_part(const struct node_ctx *cx, const struct workload_spec *from, part_taker *take,
                      bool restart, struct why *why)
{
    struct described d;
    int r = describe(cx, &d);

    if (r == 0) {
        take(&d.spec, from);
        r = sim_replace_workload(cx->sim, cx->work->name, &d.spec, restart, why);
    }
    describe_end(&d);
    return r;
}

static int store_key(const struct node_ctx *cx, const char *key, const char *text, part_taker *take,
                     bool restart, struct why *why)
{
    struct described part = { .arena = ARENA_INIT };
    int r = parse_part(cx, key, text, &part, why);

    if (r == 0)
        r = store_part(cx, &part.spec, take, restart, why);
    describe_end(&part);
    return r;
}

static void take_activity(struct workload_spec *to, const struct workload_spec *from)
{
    to->activity = from->activity;
    if (bind_is_set(&workload_table, from, "repeat"))
        to->repeat = from->repeat;
    if (bind_is_set(&workload_table, from, "memory"))
        to->memory = from->memory;
}

/* Whether it gives keys that an activity has no business with. */
static bool says_more(const struct workload_spec *spec)
{
    struct workload_spec rest = *spec;

    bind_mark(&workload_table, &rest, "activity", false);
    bind_mark(&workload_table, &rest, "repeat", false);
    bind_mark(&workload_table, &rest, "memory", false);
    return rest.head.set != 0;
}

/* An activity may bring `repeat` along, so it is read as a whole. */
static int store_activity(const struct node_ctx *cx, const char *text, struct why *why)
{
    struct described part = { .arena = ARENA_INIT };
    int r = workload_parse(&part.spec, cx->work->name, text, &part.arena, why);

    if (r == 0 && !part.spec.activity.count)
        r = why_set(
            why, EINVAL,
            "an activity is needed, for example [{time: 10m, utilization: 80}] or 80:5:10m");
    if (r == 0 && says_more(&part.spec))
        r = why_set(why, EINVAL,
                    "an activity may bring 'repeat' and 'memory' along; other keys have files of "
                    "their own");
    if (r == 0)
        r = store_part(cx, &part.spec, take_activity, true, why);
    describe_end(&part);
    return r;
}

static void take_memory(struct workload_spec *to, const struct workload_spec *from)
{
    to->memory = from->memory;
}

static int store_memory(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_key(cx, "memory", text, take_memory, false, why);
}

static void take_repeat(struct workload_spec *to, const struct workload_spec *from)
{
    to->repeat = from->repeat;
}

static int store_repeat(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_key(cx, "repeat", strcmp(text, "forever") ? text : "0", take_repeat, false, why);
}

static void take_limits(struct workload_spec *to, const struct workload_spec *from)
{
    to->limits = from->limits;
}

/* "{memory: 30GiB, time: 1h}", or the same as memory=30GiB,time=1h. */
static int store_limits(const struct node_ctx *cx, const char *text, struct why *why)
{
    struct text yaml = TEXT_INIT;
    int r;

    if (*text == '{') {
        text_add(&yaml, text);
    } else {
        text_add(&yaml, "{");
        for (; *text; text++)
            text_add(&yaml, *text == '=' ? ": " : *text == ',' ? ", " : (char[]){ *text, 0 });
        text_add(&yaml, "}");
    }
    r = store_key(cx, "limits", text_str(&yaml), take_limits, false, why);
    text_release(&yaml);
    return r;
}

static void take_devices(struct workload_spec *to, const struct workload_spec *from)
{
    to->devices = from->devices;
    to->gpus = from->gpus;
}

/* "0,1", "all", UUIDs, bus ids (which hold colons, so each is quoted). */
static int store_devices(const struct node_ctx *cx, const char *text, struct why *why)
{
    static const char separators[] = ", \t\n[]\"";
    struct text yaml = TEXT_INIT;
    int r;

    text_add(&yaml, "[");
    while (*(text += strspn(text, separators))) {
        size_t n = strcspn(text, separators);

        text_addf(&yaml, "%s\"%.*s\"", yaml.length > 1 ? ", " : "", (int)n, text);
        text += n;
    }
    text_add(&yaml, "]");
    r = store_key(cx, "devices", text_str(&yaml), take_devices, true, why);
    text_release(&yaml);
    return r;
}

/* Identity changes nothing that runs. */
static int store_identity(const struct node_ctx *cx, const char *key, const char *text,
                          part_taker *take, struct why *why)
{
    struct described part = { .arena = ARENA_INIT }, d;
    struct text quoted = TEXT_INIT;
    /* Nothing, or the dash that stands for it, takes the name away. */
    bool none = !*text || !strcmp(text, "-");
    int r;

    bind_print_text(&quoted, text);
    r = none ? 0 : parse_part(cx, key, text_str(&quoted), &part, why);
    text_release(&quoted);
    if (r == 0) {
        r = describe(cx, &d);
        take(&d.spec, &part.spec);
        if (r == 0)
            r = sim_identify_workload(cx->sim, cx->work->name, &d.spec, why);
        describe_end(&d);
    }
    describe_end(&part);
    return r;
}

static void take_namespace(struct workload_spec *to, const struct workload_spec *from)
{
    memcpy(to->namespace, from->namespace, sizeof(to->namespace));
}

static void take_pod(struct workload_spec *to, const struct workload_spec *from)
{
    memcpy(to->pod, from->pod, sizeof(to->pod));
}

static void take_container(struct workload_spec *to, const struct workload_spec *from)
{
    memcpy(to->container, from->container, sizeof(to->container));
}

static void take_pid(struct workload_spec *to, const struct workload_spec *from)
{
    to->pid = from->pid;
}

static int store_namespace(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_identity(cx, "namespace", text, take_namespace, why);
}

static int store_pod(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_identity(cx, "pod", text, take_pod, why);
}

static int store_container(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_identity(cx, "container", text, take_container, why);
}

static int store_pid(const struct node_ctx *cx, const char *text, struct why *why)
{
    return store_identity(cx, "pid", text, take_pid, why);
}

/* clang-format off */
#define CONFIGURE(name) { "workloads/%w/" #name, 0644, show_##name, store_##name, 0, 0, NULL }

const struct node_def workload_nodes[] = {
    CONFIGURE(devices),
    CONFIGURE(activity),
    CONFIGURE(memory),
    CONFIGURE(repeat),
    CONFIGURE(limits),
    CONFIGURE(namespace),
    CONFIGURE(pod),
    CONFIGURE(container),
    CONFIGURE(pid),
    { "workloads/%w/state", 0444, show_state, NULL, 0, NODE_POLL, NULL },
    { "workloads/%w/progress", 0444, show_progress, NULL, 0, 0, NULL },
    { "workloads/%w/attach", 0644, show_attach, NULL, 0, NODE_ATTACH, NULL },
    { "workloads/%w/last_error", 0444, show_last_error, NULL, 0, 0, NULL },
    { 0 },
};
/* clang-format on */
