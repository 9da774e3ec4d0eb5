/*
 * Scenario explain: a scenario as a shell script. See scenario_explain.h.
 *
 * The script runs as it is. It does one chain of steps after the other, so it is the same scenario where
 * chains do not overlap, and says so where there are several.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/scenario_explain.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/cli/scenario_run.h"

static const char begin[] =
    "failed=0\n"
    "# now: simulated ms since the script began\n"
    "ms() { sed -n 's/^time_ns //p' gpus/*/sample 2>/dev/null | head -n 1 | sed 's/......$//'; }\n"
    "first=$(ms); [ \"$first\" ] || first=0\n"
    "now() { echo $(($(ms) - first)); }\n"
    "# until_ms TIME: steps the clock up to it\n"
    "until_ms() { [ $(now) -ge $1 ] || echo \"step $(($1 - $(now)))ms\" > control/clock; }\n"
    "# lines STREAM: those since the script began\n"
    "lines() { dd if=$1 iflag=nonblock bs=256k 2>/dev/null; }\n"
    "events=$(lines events | wc -l) kmsg=$(lines kmsg | wc -l)\n"
    "count() { lines $1 | tail -n +$(($2 + 1)) | grep -cF -- \"$3\"; }\n"
    "# expect WITHIN FOR WHAT CONDITION: in ms; steps the clock until it is decided\n"
    "expect() {\n"
    "    local began=$(now) since= at\n"
    "    while :; do\n"
    "        at=$(now)\n"
    "        if eval \"$4\"; then\n"
    "            : ${since:=$at}\n"
    "            [ $((at - since)) -lt $2 ] || { echo \"ok   $3\"; return; }\n"
    "        else\n"
    "            since=\n"
    "            [ $((at - began)) -lt $1 ] || { echo \"FAIL $3\"; failed=1; return; }\n"
    "        fi\n"
    "        echo \"step $check\" > control/clock\n"
    "    done\n"
    "}\n";

static void add_heading(struct text *out, const struct scenario *s, const char *root)
{
    text_addf(out, "#!/usr/bin/env bash\n# %s\n", s->name);
    if (root) {
        text_add(out, "cd ");
        shell_quote(out, root);
        text_add(out, " || exit\n");
    } else {
        text_add(out, "dir=$(mktemp -d) && mkdir \"$dir/mount\" && cat > \"$dir/config.yaml\" "
                      "<<'END' || exit\n");
        scenario_node(out, &s->mount);
        text_add(out, "END\n"
                      "fakegpufs mount -c \"$dir/config.yaml\" \"$dir/mount\" 2>/dev/null || exit\n"
                      "trap 'cd /; fakegpufs umount \"$dir/mount\"; rm -f \"$dir/config.yaml\"; "
                      "rmdir \"$dir/mount\" \"$dir\"' EXIT\n"
                      "cd \"$dir/mount\" || exit\n");
    }
    text_add(out, "echo pause > control/clock\ncheck=");
    if (s->check_ns)
        unit_print(out, UNIT_NANOSECOND, s->check_ns);
    else
        text_add(out, "$(sed -n 's/^step //p' control/clock)");
    text_addf(out, "\n%s", begin);
}

/* --- GPUs ------------------------------------------------------------------------------------ */

static void add_gpus(struct text *out, const struct bind_list *gpus)
{
    const struct device_name *names = gpus->items;

    if (drive_every_gpu(gpus)) {
        text_add(out, "gpus/[0-9]*");
        return;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        text_add(out, i ? " " : "");
        gpu_path(out, names[i].text);
    }
}

/* "for gpu in …; do" where there are several; the directory is then called $gpu. */
static bool begin_gpus(struct text *out, const struct bind_list *gpus, struct text *dir)
{
    const struct device_name *names = gpus->items;
    bool several = gpus->count > 1 || drive_every_gpu(gpus);

    if (several) {
        text_add(out, "for gpu in ");
        add_gpus(out, gpus);
        text_add(out, "; do ");
        text_add(dir, "$gpu");
    } else if (gpus->count) {
        gpu_path(dir, names[0].text);
    }
    return several;
}

/* --- what steps do --------------------------------------------------------------------------- */

static void add_control(struct text *out, const struct bind_list *gpus, const char *file,
                        const char *text)
{
    struct text dir = TEXT_INIT;
    bool several = begin_gpus(out, gpus, &dir);

    text_add(out, "echo ");
    shell_quote(out, text);
    text_addf(out, " > %s/control/%s%s\n", text_str(&dir), file, several ? "; done" : "");
    text_release(&dir);
}

static int add_write(void *whom, const char *path, const char *text)
{
    shell_put(whom, path, text);
    return 0;
}

static void add_actions(struct text *out, const struct scenario_step *s)
{
    const struct scenario_setting *set = s->set.items;
    const struct scenario_write *writes = s->write.items;

    if (scenario_step_has(s, "speed")) {
        text_add(out, "echo speed ");
        print_real(out, s->speed);
        text_add(out, " > control/clock\n");
    }
    if (*s->profile)
        add_control(out, &s->gpu, "profile", s->profile);
    for (size_t i = 0; i < s->set.count; i++)
        add_control(out, &s->gpu, set[i].file, set[i].value);
    if (*s->fault)
        add_control(out, &s->gpu, "fault", s->fault);
    if (*s->end)
        text_addf(out, "rmdir workloads/%s\n", s->end);
    if (*s->workload.name) {
        text_addf(out, "mkdir workloads/%s\n", s->workload.name);
        scenario_workload_files(&s->workload, add_write, out);
    }
    for (size_t i = 0; i < s->write.count; i++)
        shell_put(out, writes[i].file, writes[i].text);
}

/* --- what is expected ------------------------------------------------------------------------ */

/* A test of `value`, a word that the shell expands; awk where a decimal may come. */
static void add_comparison(struct text *out, const struct comparison *c, enum compare_op op,
                           const char *value, const char *dir, bool decimals)
{
    struct text right = TEXT_INIT;

    if (c->metric >= 0)
        text_addf(&right, "$(cat %s/metrics/%s)", dir, metric_infos[c->metric].name);
    else
        print_real(&right, c->number);
    if (decimals || (c->metric < 0 && c->number != floor(c->number)))
        text_addf(out, "awk \"BEGIN { exit !(%s %s %s) }\"", value, compare_infos[op].awk,
                  text_str(&right));
    else if (c->metric < 0)
        text_addf(out, "[ %s %s %.0f ]", value, compare_infos[op].test, c->number);
    else
        text_addf(out, "[ %s %s %s ]", value, compare_infos[op].test, text_str(&right));
    text_release(&right);
}

static void add_reading_fails(struct text *out, const char *path, int64_t error)
{
    text_addf(out, "cat %s 2>&1 >/dev/null | grep -q '%s'", path, strerror(expect_errno(error)));
}

static void add_metric_test(struct text *out, const struct expectation *e, const char *dir)
{
    struct text path = TEXT_INIT, value = TEXT_INIT;
    const char *before = "";

    text_addf(&path, "%s/metrics/%s", dir, e->metric_name);
    text_addf(&value, "$(cat %s 2>/dev/null)", text_str(&path));
    if (expect_has(e, "error"))
        add_reading_fails(out, text_str(&path), e->error);
    for (int op = 0; op < COMPARE_OPS; op++)
        if (e->compare[op].text[0]) {
            text_add(out, before);
            add_comparison(out, &e->compare[op], op, text_str(&value), dir,
                           metric_infos[e->metric].unit == UNIT_RATIO);
            before = " && ";
        }
    text_release(&path);
    text_release(&value);
}

/* In a subshell, so that one GPU can decide for all. */
static void add_metric_condition(struct text *out, const struct expectation *e)
{
    struct text dir = TEXT_INIT, loop = TEXT_INIT;
    bool several = begin_gpus(&loop, &e->gpu, &dir);

    if (several)
        text_addf(out, "(%s", text_str(&loop));
    add_metric_test(out, e, text_str(&dir));
    if (several)
        text_add(out, e->any ? " && exit 0; done; exit 1)" : " || exit 1; done)");
    text_release(&dir);
    text_release(&loop);
}

static void add_workload_condition(struct text *out, const struct expectation *e)
{
    struct text state = TEXT_INIT;
    const char *before = "";

    text_addf(&state, "workloads/%s/state", e->workload);
    if (expect_has(e, "state") && e->state == EXPECT_GONE) {
        text_addf(out, "[ ! -e workloads/%s ]", e->workload);
        before = " && ";
    } else if (expect_has(e, "state")) {
        text_addf(out, "grep -q ^%s %s", expect_state_names[e->state], text_str(&state));
        before = " && ";
    }
    if (expect_has(e, "exit_code")) {
        text_addf(out, "%sgrep -q '^ended %" PRId64 " ' %s", before, e->exit_code,
                  text_str(&state));
        before = " && ";
    }
    if (expect_has(e, "message")) {
        text_addf(out, "%sgrep -qF -- ", before);
        shell_quote(out, e->message);
        text_addf(out, " %s", text_str(&state));
    }
    text_release(&state);
}

static void add_stream_condition(struct text *out, const struct expectation *e)
{
    const char *stream = e->kind == EXPECT_EVENT ? "events" : "kmsg", *before = "";
    struct text value = TEXT_INIT;

    text_addf(&value, "$(count %s $%s ", stream, stream);
    shell_quote(&value, e->kind == EXPECT_EVENT ? e->event : e->kmsg);
    text_add(&value, ")");
    for (int op = 0; op < COMPARE_OPS; op++)
        if (e->compare[op].text[0]) {
            text_add(out, before);
            add_comparison(out, &e->compare[op], op, text_str(&value), "", false);
            before = " && ";
        }
    text_release(&value);
}

static void add_file_condition(struct text *out, const struct expectation *e)
{
    struct text path = TEXT_INIT, value = TEXT_INIT;
    const char *and = "";

    shell_quote(&path, e->file);
    text_addf(&value, "$(cat %s 2>/dev/null)", text_str(&path));
    if (expect_has(e, "exists")) {
        text_addf(out, "[ %s-e %s ]", e->exists ? "" : "! ", text_str(&path));
        and = " && ";
    }
    if (expect_has(e, "error")) {
        text_add(out, and);
        add_reading_fails(out, text_str(&path), e->error);
        and = " && ";
    }
    for (int op = 0; op < COMPARE_OPS; op++) {
        const struct comparison *c = &e->compare[op];

        if (!c->text[0])
            continue;
        text_add(out, and);
        if (isnan(c->number)) {
            text_addf(out, "[ \"%s\" %s ", text_str(&value), op == COMPARE_EQUALS ? "=" : "!=");
            shell_quote(out, c->text);
            text_add(out, " ]");
        } else {
            add_comparison(out, c, op, text_str(&value), "", true);
        }
        and = " && ";
    }
    for (int i = 0; i < 2; i++) {
        const char *wanted = i ? e->matches : e->contains;

        if (!*wanted)
            continue;
        text_addf(out, "%sgrep -q%s -- ", and, i ? "E" : "F");
        shell_quote(out, wanted);
        text_addf(out, " %s", text_str(&path));
        and = " && ";
    }
    text_release(&path);
    text_release(&value);
}

static void add_expectation(struct text *out, const struct expectation *e)
{
    struct text what = TEXT_INIT, condition = TEXT_INIT;

    if (*e->note)
        text_add(&what, e->note);
    else
        expect_print(&what, e);
    switch (e->kind) {
    case EXPECT_METRIC:
        add_metric_condition(&condition, e);
        break;
    case EXPECT_WORKLOAD:
        add_workload_condition(&condition, e);
        break;
    case EXPECT_EVENT:
    case EXPECT_KMSG:
        add_stream_condition(&condition, e);
        break;
    default:
        add_file_condition(&condition, e);
        break;
    }
    text_addf(out, "expect %" PRId64 " %" PRId64 " ", e->within_ns / NS_PER_MS,
              e->for_ns / NS_PER_MS);
    shell_quote(out, text_str(&what));
    text_add(out, " \\\n    ");
    shell_quote(out, text_str(&condition));
    text_add(out, "\n");
    text_release(&what);
    text_release(&condition);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void add_step(struct text *out, const struct scenario_step *s)
{
    const struct expectation *expect = s->expect.items;

    text_add(out, "\n");
    if (*s->note)
        text_addf(out, "# %s\n", s->note);
    if (scenario_step_has(s, "at") && s->at_ns)
        text_addf(out, "until_ms %" PRId64 "\n", s->at_ns / NS_PER_MS);
    if (s->after_ns) {
        text_add(out, "echo 'step ");
        unit_print(out, UNIT_NANOSECOND, s->after_ns);
        text_add(out, "' > control/clock\n");
    }
    add_actions(out, s);
    for (size_t i = 0; i < s->expect.count; i++)
        add_expectation(out, &expect[i]);
}

int scenario_explain(const struct scenario *s, const char *root)
{
    const struct scenario_step *steps = s->steps.items;
    struct text out = TEXT_INIT;
    int chains = 0;

    add_heading(&out, s, root);
    for (size_t i = 0; i < s->steps.count; i++)
        chains += scenario_step_has(&steps[i], "at") && i > 0;
    if (chains)
        text_addf(&out,
                  "\n# %d steps have a time of their own ('at'): fakegpufs scenario begins them "
                  "then, also\n# while an expectation above is still waited for; this script "
                  "does one after the other.\n",
                  chains);
    for (size_t i = 0; i < s->steps.count; i++)
        add_step(&out, &steps[i]);
    text_add(&out, root ? "\necho resume > control/clock\nexit $failed\n" : "\nexit $failed\n");
    fputs(text_str(&out), stdout);
    text_release(&out);
    return 0;
}
