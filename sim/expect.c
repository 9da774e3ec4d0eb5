/*
 * Expect: what a scenario expects to see. See expect.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/expect.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/suggest.h"

const struct compare_info compare_infos[COMPARE_OPS] = {
#define COMPARE(id, key, test, awk, words) [COMPARE_##id] = { key, test, awk, words },
    COMPARE_TABLE(COMPARE)
#undef COMPARE
};

/* clang-format off */
const char *const expect_state_names[] = { "waiting", "running", "ended", "gone", NULL };
const char *const expect_error_names[] = { "ENODATA", "EIO", "ENODEV", "ENOENT", "ENXIO", "EACCES", NULL };
static const int error_numbers[] = { ENODATA, EIO, ENODEV, ENOENT, ENXIO, EACCES };
/* clang-format on */

int expect_errno(int64_t position)
{
    return error_numbers[position];
}

const char *expect_errno_name(int err)
{
    for (int i = 0; expect_error_names[i]; i++)
        if (error_numbers[i] == err)
            return expect_error_names[i];
    return NULL;
}

bool compare_holds(enum compare_op op, double left, double right)
{
    switch (op) {
    case COMPARE_ABOVE:
        return left > right;
    case COMPARE_BELOW:
        return left < right;
    case COMPARE_AT_LEAST:
        return left >= right;
    case COMPARE_AT_MOST:
        return left <= right;
    case COMPARE_EQUALS:
        return left == right;
    case COMPARE_DIFFERS:
        return left != right;
    default:
        return false;
    }
}

bool expect_path_ok(const char *path)
{
    if (*path == '/')
        return false;
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (!strcmp(p, "..") || !strncmp(p, "../", 3))
            return false;
    return true;
}

const struct bind_shape expect_path_shape = {
    expect_path_ok,
    "a path below the mount like gpus/0/identity/name, without '..'",
    "^[^/]",
};

/* --- comparisons ----------------------------------------------------------------------------- */

/* What it is compared with is worked out when it is known what is looked at. */
static int read_comparison(struct binder *b, const struct ynode *node, void *member)
{
    struct comparison *c = member;
    const struct bind_field text = { .type = BIND_TEXT, .size = sizeof(c->text) };

    c->number = NAN;
    c->metric = -1;
    return bind_read_value(b, &text, node, c->text);
}

static void print_comparison(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    bind_print_text(out, ((const struct comparison *)member)->text);
    text_add(out, "\n");
}

static const struct bind_custom comparison_custom = {
    read_comparison,
    print_comparison,
    "\"type\": [\"number\", \"string\"]",
};

static int refuse_number(struct binder *b, const struct ynode *node, const char *key,
                         const char *sentence)
{
    bind_enter(b, key);
    return bind_refuse(b, EINVAL, ynode_get(node, key), "%s", sentence);
}

/* A number in the metric's unit, or another metric of the same GPU. */
static int resolve_metric_comparison(struct binder *b, const struct ynode *node, const char *key,
                                     int metric, struct comparison *c)
{
    enum unit unit = metric_infos[metric].unit;
    struct why inner = { 0 };
    int64_t stored;
    int r;

    c->metric = metric_find(c->text);
    if (c->metric >= 0 && metric_infos[c->metric].unit == unit)
        return 0;
    if (c->metric >= 0)
        return refuse_number(b, node, key, "is a metric of another unit");
    r = unit_parse(unit, c->text, UNIT_BARE_SHOWN, &stored, &inner);
    if (r < 0)
        r = refuse_number(b, node, key, why_text(&inner));
    else
        c->number = (double)stored / (double)unit_parts(unit);
    why_release(&inner);
    return r;
}

/* A count of lines, or what a file shows: a number, or (equals, differs) a text. */
static int resolve_plain_comparison(struct binder *b, const struct ynode *node,
                                    const struct expectation *e, enum compare_op op,
                                    struct comparison *c)
{
    bool text_too = e->kind == EXPECT_FILE && (op == COMPARE_EQUALS || op == COMPARE_DIFFERS);

    if (parse_real(c->text, &c->number) == 0)
        return 0;
    c->number = NAN;
    if (text_too)
        return 0;
    return refuse_number(b, node, compare_infos[op].key, "is not a number");
}

static int resolve_comparisons(struct binder *b, const struct ynode *node, struct expectation *e)
{
    for (int op = 0; op < COMPARE_OPS; op++) {
        struct comparison *c = &e->compare[op];
        int r = 0;

        if (!c->text[0])
            continue;
        if (e->kind == EXPECT_METRIC)
            r = resolve_metric_comparison(b, node, compare_infos[op].key, e->metric, c);
        else
            r = resolve_plain_comparison(b, node, e, op, c);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct bind_field device_item = { .type = BIND_TEXT,
                                               .size = sizeof(struct device_name) };

/* clang-format off */
#define EXPECT_COMPARISON(id, k, test, awk, words_) \
    { .key = k, .type = BIND_CUSTOM, BIND_AT(expectation, compare[COMPARE_##id]), .custom = &comparison_custom, \
      .size = sizeof(struct comparison), .words = "number with or without its unit, or a metric of the same GPU", \
      .help = "The value is " words_ " this." },

static const struct bind_field expect_fields[] = {
    BIND_ROW_TEXT("metric", expectation, metric_name, 0, "A metric of `gpu`, as its file shows it."),
    BIND_ROW_TEXT("workload", expectation, workload, 0, "A workload: its `state`, `exit_code` or `message`."),
    BIND_ROW_TEXT("event", expectation, event, 0, "Lines of `events`, since the scenario began, that hold this text: how many; at least one unless compared."),
    BIND_ROW_TEXT("kmsg", expectation, kmsg, 0, "The same of `kmsg`."),
    BIND_ROW_SHAPED("file", expectation, file, 0, &expect_path_shape, "A file below the mount."),
    BIND_ROW_LIST("gpu", expectation, gpu, &device_item, struct device_name, WORKLOAD_DEVICES_MAX, BIND_SINGLE,
                  "Index, UUID or bus id; several or `all`: every one of them; `any`: one of all is enough. Unless given, the step's."),
    COMPARE_TABLE(EXPECT_COMPARISON)
    BIND_ROW_TEXT("contains", expectation, contains, 0, "The file holds this text."),
    BIND_ROW_TEXT("matches", expectation, matches, 0, "The file matches this extended regular expression."),
    BIND_ROW_BOOL("exists", expectation, exists, "Whether the file is there."),
    BIND_ROW_CHOICE("error", expectation, error, expect_error_names, "What reading the metric or file fails with."),
    BIND_ROW_CHOICE("state", expectation, state, expect_state_names, "State of the workload; `gone`: there is none of that name."),
    BIND_ROW_INT("exit_code", expectation, exit_code, 0, 255, 0, "Exit code of the workload, which has ended."),
    BIND_ROW_TEXT("message", expectation, message, 0, "Part of the sentence with which the workload ended."),
    BIND_ROW_QUANTITY("within", expectation, within_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0, "It must come true within this simulated time; at once unless given."),
    BIND_ROW_QUANTITY("for", expectation, for_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0, "From then on it must stay true for this simulated time."),
    BIND_ROW_TEXT("note", expectation, note, 0, "What to call it in reports."),
    { 0 },
};
/* clang-format on */

/* Which kinds a condition is for. */
#define OF(kind) (1U << EXPECT_##kind)

static const struct {
    const char *key;
    unsigned kinds;
} conditions[] = {
#define COMPARE(id, key, test, awk, words) { key, OF(METRIC) | OF(EVENT) | OF(KMSG) | OF(FILE) },
    COMPARE_TABLE(COMPARE)
#undef COMPARE
        { "contains", OF(FILE) },
    { "matches", OF(FILE) },
    { "exists", OF(FILE) },
    { "error", OF(METRIC) | OF(FILE) },
    { "state", OF(WORKLOAD) },
    { "exit_code", OF(WORKLOAD) },
    { "message", OF(WORKLOAD) },
};

enum { CONDITIONS = sizeof(conditions) / sizeof(conditions[0]) };

bool expect_has(const struct expectation *e, const char *key)
{
    return bind_is_set(&expect_table, e, key);
}

static int check_kind(struct binder *b, const struct ynode *node, struct expectation *e)
{
    const char *found = NULL;

    for (int kind = 0; kind < EXPECT_KINDS; kind++) {
        const char *key = expect_fields[kind].key;

        if (!expect_has(e, key))
            continue;
        if (found)
            return bind_refuse(b, EINVAL, ynode_key(node, key),
                               "gives both '%s' and '%s'; allowed: one of them", found, key);
        found = key;
        e->kind = kind;
    }
    return found ? 0
                 : bind_refuse(b, EINVAL, node,
                               "does not say what to look at; allowed: one of metric, workload, "
                               "event, kmsg, file");
}

static int check_conditions(struct binder *b, const struct ynode *node, struct expectation *e)
{
    struct text allowed = TEXT_INIT;
    int given = 0, r = 0;

    for (int i = 0; i < CONDITIONS; i++)
        if (conditions[i].kinds >> e->kind & 1)
            text_addf(&allowed, "%s%s", allowed.length ? ", " : "", conditions[i].key);
    for (int i = 0; r == 0 && i < CONDITIONS; i++) {
        if (!expect_has(e, conditions[i].key))
            continue;
        given++;
        if (!(conditions[i].kinds >> e->kind & 1))
            r = bind_refuse(b, EINVAL, ynode_key(node, conditions[i].key),
                            "'%s' does not go with '%s'; allowed: %s", conditions[i].key,
                            expect_fields[e->kind].key, text_str(&allowed));
    }
    if (r == 0 && !given && (e->kind == EXPECT_EVENT || e->kind == EXPECT_KMSG))
        e->compare[COMPARE_AT_LEAST] = (struct comparison){ .text = "1",
                                                            .number = 1,
                                                            .metric = -1 };
    else if (r == 0 && !given)
        r = bind_refuse(b, EINVAL, node, "does not say what to expect of '%s'; allowed: %s",
                        expect_fields[e->kind].key, text_str(&allowed));
    text_release(&allowed);
    return r;
}

static int check_metric(struct binder *b, const struct ynode *node, struct expectation *e)
{
    struct text hint = TEXT_INIT;
    int r = 0;

    e->metric = metric_find(e->metric_name);
    if (e->metric < 0) {
        suggest_add(&hint, e->metric_name, metric_name_at, NULL);
        bind_enter(b, "metric");
        r = bind_refuse(b, EINVAL, ynode_get(node, "metric"), "'%s' is not a metric%s",
                        e->metric_name, text_str(&hint));
        text_release(&hint);
    }
    return r;
}

static int compile_regex(struct binder *b, const struct ynode *node, struct expectation *e)
{
    char sentence[128];
    int r = regcomp(&e->regex, e->matches, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);

    e->compiled = r == 0;
    if (r == 0)
        return 0;
    regerror(r, &e->regex, sentence, sizeof(sentence));
    bind_enter(b, "matches");
    return bind_refuse(b, EINVAL, ynode_get(node, "matches"),
                       "is not an extended regular expression: %s", sentence);
}

static int check_expectation(struct binder *b, const struct ynode *node, void *object)
{
    struct expectation *e = object;
    int r = check_kind(b, node, e);

    e->metric = -1;
    if (r == 0)
        r = check_conditions(b, node, e);
    if (r == 0 && e->kind == EXPECT_METRIC)
        r = check_metric(b, node, e);
    if (r == 0)
        r = resolve_comparisons(b, node, e);
    if (r == 0 && expect_has(e, "gpu") && e->kind != EXPECT_METRIC)
        r = bind_refuse(b, EINVAL, ynode_key(node, "gpu"), "'gpu' goes with 'metric' only");
    if (r == 0 && expect_has(e, "matches"))
        r = compile_regex(b, node, e);
    return r;
}

const struct bind_table expect_table = {
    .what = "an expectation",
    .def = "expectation",
    .fields = expect_fields,
    .check = check_expectation,
};

void expect_release(struct expectation *e)
{
    if (e->compiled)
        regfree(&e->regex);
}

/* --- in words -------------------------------------------------------------------------------- */

static void print_gpus(struct text *out, const struct expectation *e)
{
    const struct device_name *names = e->gpu.items;

    if (e->any) {
        text_add(out, "any GPU: ");
        return;
    }
    if (e->gpu.count == 1 && !strcmp(names[0].text, "all")) {
        text_add(out, "every GPU: ");
        return;
    }
    text_add(out, "GPU ");
    for (size_t i = 0; i < e->gpu.count; i++)
        text_addf(out, "%s%s", i ? ", " : "", names[i].text);
    text_add(out, ": ");
}

static void print_subject(struct text *out, const struct expectation *e)
{
    switch (e->kind) {
    case EXPECT_METRIC:
        print_gpus(out, e);
        text_add(out, e->metric_name);
        break;
    case EXPECT_WORKLOAD:
        text_addf(out, "workload %s", e->workload);
        break;
    case EXPECT_EVENT:
        text_addf(out, "events with '%s'", e->event);
        break;
    case EXPECT_KMSG:
        text_addf(out, "lines of kmsg with '%s'", e->kmsg);
        break;
    default:
        text_add(out, e->file);
        break;
    }
}

void expect_print(struct text *out, const struct expectation *e)
{
    print_subject(out, e);
    for (int op = 0; op < COMPARE_OPS; op++)
        if (e->compare[op].text[0])
            text_addf(out, " %s %s", compare_infos[op].words, e->compare[op].text);
    if (expect_has(e, "contains"))
        text_addf(out, " contains '%s'", e->contains);
    if (expect_has(e, "matches"))
        text_addf(out, " matches '%s'", e->matches);
    if (expect_has(e, "exists"))
        text_add(out, e->exists ? " exists" : " does not exist");
    if (expect_has(e, "error"))
        text_addf(out, " fails with %s", expect_error_names[e->error]);
    if (expect_has(e, "state"))
        text_addf(out, " %s", expect_state_names[e->state]);
    if (expect_has(e, "exit_code"))
        text_addf(out, " exit code %" PRId64, e->exit_code);
    if (expect_has(e, "message"))
        text_addf(out, " says '%s'", e->message);
    if (e->within_ns) {
        text_add(out, " within ");
        unit_print(out, UNIT_NANOSECOND, e->within_ns);
    }
    if (e->for_ns) {
        text_add(out, " for ");
        unit_print(out, UNIT_NANOSECOND, e->for_ns);
    }
}
