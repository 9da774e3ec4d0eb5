/*
 * Scenario report: what a run found. See scenario_report.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/scenario_report.h"
#include "fusefs/realtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TIME_COLUMN = 10 };

/* --- texts ----------------------------------------------------------------------------------- */

/* "1h02m03.5s": what a person reads at a glance. */
static void add_time(struct text *out, int64_t ns)
{
    int64_t tenths = ns / (NS_PER_S / 10), h = tenths / 36000, m = tenths / 600 % 60;

    if (h)
        text_addf(out, "%" PRId64 "h%02" PRId64 "m", h, m);
    else if (m)
        text_addf(out, "%" PRId64 "m", m);
    text_addf(out, h || m ? "%02" PRId64 : "%" PRId64, tenths / 10 % 60);
    if (tenths % 10)
        text_addf(out, ".%" PRId64, tenths % 10);
    text_add(out, "s");
}

static void add_name(struct text *out, const struct item *item)
{
    if (!item->expect)
        scenario_step_print(out, item->step);
    else if (*item->expect->note)
        text_add(out, item->expect->note);
    else
        expect_print(out, item->expect);
}

static int line_of(const struct item *item)
{
    return item->expect ? item->expect->head.line : item->step->head.line;
}

/* What was expected where, what was there instead and when. */
static void add_failure(struct text *out, const struct scenario *s, const struct item *item)
{
    text_addf(out, "%s:%d: ", s->source, line_of(item));
    if (!item->expect) {
        text_addf(out, "refused: %s", text_str(&item->seen));
        return;
    }
    text_add(out, "expected ");
    expect_print(out, item->expect);
    text_add(out, " from ");
    add_time(out, item->began_ns);
    text_addf(out, " on; last seen: %s, at ", text_str(&item->seen));
    add_time(out, item->decided_ns);
}

/* --- as it happens --------------------------------------------------------------------------- */

void report_begin(struct scenario_report *r, const struct scenario_run *run)
{
    r->began_ns = real_ns(CLOCK_MONOTONIC);
    if (r->tap)
        printf("TAP version 13\n1..%zu\n", run->item_count);
    else
        printf("%s: %zu step%s on %d GPU%s of %s\n", r->scenario->name, r->scenario->steps.count,
               r->scenario->steps.count == 1 ? "" : "s", run->gpu_count,
               run->gpu_count == 1 ? "" : "s", run->keep ? "a mount of its own" : run->client.root);
    fflush(stdout);
}

static void print_tap(struct scenario_report *r, const struct item *item)
{
    struct text line = TEXT_INIT, name = TEXT_INIT;

    add_name(&name, item);
    text_addf(&line, "%s %d - ", item->outcome == OUTCOME_PASSED ? "ok" : "not ok", r->told);
    for (const char *p = text_str(&name); *p; p++) /* a bare # would begin a directive */
        text_add(&line, *p == '#' ? "\\#" : *p == '\n' ? " " : (char[]){ *p, 0 });
    text_add(&line, "\n");
    if (item->outcome == OUTCOME_FAILED) {
        text_add(&line, "# ");
        add_failure(&line, r->scenario, item);
        text_add(&line, "\n");
    }
    fputs(text_str(&line), stdout);
    text_release(&line);
    text_release(&name);
}

static void print_line(struct scenario_report *r, const struct item *item)
{
    struct text line = TEXT_INIT, when = TEXT_INIT;
    bool passed = item->outcome == OUTCOME_PASSED;

    add_time(&when, item->decided_ns);
    text_addf(&line, "%*s  %-4s  ", TIME_COLUMN, text_str(&when),
              !passed         ? "FAIL"
              : !item->expect ? ""
                              : "ok");
    add_name(&line, item);
    if (passed && item->expect)
        text_addf(&line, " (%s)", text_str(&item->seen));
    text_add(&line, "\n");
    if (!passed) {
        text_addf(&line, "%*s        ", TIME_COLUMN, "");
        add_failure(&line, r->scenario, item);
        text_add(&line, "\n");
    }
    fputs(text_str(&line), stdout);
    text_release(&when);
    text_release(&line);
}

void report_item(void *report, const struct item *item)
{
    struct scenario_report *r = report;

    r->told++;
    r->failed += item->outcome == OUTCOME_FAILED;
    (r->tap ? print_tap : print_line)(r, item);
    fflush(stdout);
}

void report_remark(void *report, const char *sentence)
{
    (void)report;
    fprintf(stderr, "fakegpufs scenario: %s\n", sentence);
}

void report_end(struct scenario_report *r, const struct scenario_run *run)
{
    struct text simulated = TEXT_INIT;
    double real = (double)(real_ns(CLOCK_MONOTONIC) - r->began_ns) / NS_PER_S;

    add_time(&simulated, run->now_ns);
    printf("%s%s: ", r->tap ? "# " : "", r->scenario->name);
    if ((size_t)r->told < run->item_count)
        printf("interrupted, %zu of %zu not done, ", run->item_count - (size_t)r->told,
               run->item_count);
    else
        printf("%s, ", r->failed ? "failed" : "passed");
    printf("%d of %d as expected, %s simulated in %.1f s\n", r->told - r->failed, r->told,
           text_str(&simulated), real);
    text_release(&simulated);
    fflush(stdout);
}

/* --- JUnit ----------------------------------------------------------------------------------- */

static void add_xml(struct text *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            text_add(out, "&lt;");
        else if (*s == '>')
            text_add(out, "&gt;");
        else if (*s == '&')
            text_add(out, "&amp;");
        else if (*s == '"')
            text_add(out, "&quot;");
        else if ((unsigned char)*s < ' ')
            text_add(out, " ");
        else
            text_addn(out, s, 1);
    }
}

static void add_attribute(struct text *out, const char *name, const char *value)
{
    text_addf(out, " %s=\"", name);
    add_xml(out, value);
    text_add(out, "\"");
}

static void add_testcase(struct text *out, const struct scenario *s, const struct item *item)
{
    int64_t took = item->outcome == OUTCOME_PENDING ? 0 : item->decided_ns - item->began_ns;
    struct text name = TEXT_INIT, failure = TEXT_INIT;

    add_name(&name, item);
    text_add(out, "  <testcase");
    add_attribute(out, "classname", s->name);
    add_attribute(out, "name", text_str(&name));
    add_attribute(out, "file", s->source);
    text_addf(out, " line=\"%d\" time=\"%.3f\">", line_of(item), (double)took / NS_PER_S);
    if (item->outcome == OUTCOME_FAILED) {
        add_failure(&failure, s, item);
        text_add(out, "<failure");
        add_attribute(out, "message", text_str(&failure));
        text_add(out, "/>");
    } else if (item->outcome == OUTCOME_PENDING) {
        text_add(out, "<skipped message=\"interrupted\"/>");
    }
    text_add(out, "</testcase>\n");
    text_release(&name);
    text_release(&failure);
}

int report_junit(const struct scenario_report *r, const struct scenario_run *run, const char *path,
                 struct why *why)
{
    struct text out = TEXT_INIT;
    FILE *f = fopen(path, "we");
    int err = 0;

    if (!f)
        return why_set(why, errno, "cannot write %s: %s", path, strerror(errno));
    text_add(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    add_attribute(&out, "name", r->scenario->name);
    text_addf(&out, " tests=\"%zu\" failures=\"%d\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
              run->item_count, r->failed, run->item_count - (size_t)r->told,
              (double)run->now_ns / NS_PER_S);
    for (size_t i = 0; i < run->item_count; i++)
        add_testcase(&out, r->scenario, &run->items[i]);
    text_add(&out, "</testsuite>\n");
    if (out.failed || fputs(text_str(&out), f) < 0)
        err = out.failed ? ENOMEM : errno;
    if (fclose(f) != 0 && !err)
        err = errno;
    text_release(&out);
    return err ? why_set(why, err, "cannot write %s: %s", path, strerror(err)) : 0;
}
