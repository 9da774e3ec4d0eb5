/*
 * fakegpufs scenario: runs a timeline of loads, faults and expectations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/cli/command.h"
#include "fusefs/cli/private.h"
#include "fusefs/cli/scenario_explain.h"
#include "fusefs/cli/scenario_report.h"
#include "fusefs/cli/stop.h"
#include "sim/library.h"
#include "sim/schemas.h"
#include "sim/suggest.h"

enum { EXIT_BROKEN = 65, EXIT_INTERRUPTED = 130 };

#define FOLDER "scenarios/"

struct options {
    struct client_options client;
    const char *schemas, *speed, *junit;
    bool realtime, tap, list, show, check, schema, reference;
};

/* --- ready scenarios ------------------------------------------------------------------------- */

/* The name of the i-th built-in scenario's file, without ".yaml". */
static const char *ready_name_at(const void *unused, int i)
{
    static char names[64][64];

    (void)unused;
    for (const struct schema_file *f = schema_files; f->path; f++) {
        if (strncmp(f->path, FOLDER, strlen(FOLDER)) || i-- > 0)
            continue;
        snprintf(names[(f - schema_files) % 64], sizeof(names[0]), "%.*s",
                 (int)(strlen(f->path) - strlen(FOLDER) - strlen(".yaml")),
                 f->path + strlen(FOLDER));
        return names[(f - schema_files) % 64];
    }
    return NULL;
}

static const struct schema_file *find_ready(const char *name)
{
    size_t n = strlen(name);

    for (const struct schema_file *f = schema_files; f->path; f++)
        if (!strncmp(f->path, FOLDER, strlen(FOLDER)) &&
            !strncmp(f->path + strlen(FOLDER), name, n) &&
            !strcmp(f->path + strlen(FOLDER) + n, ".yaml"))
            return f;
    return NULL;
}

/* A file, or the name of a ready scenario where there is no such file. The caller frees *text. */
static int read_text(const char *name, char **text, unsigned long *length, struct why *why)
{
    const struct schema_file *ready = strchr(name, '/') ? NULL : find_ready(name);
    struct text hint = TEXT_INIT;
    int r;

    if (ready && access(name, F_OK) < 0) {
        *text = strndup(ready->text, ready->length);
        *length = ready->length;
        return *text ? 0 : why_set(why, ENOMEM, "out of memory");
    }
    r = library_read_file(name, text, length, why);
    if (r == -ENOENT && !strchr(name, '/')) {
        suggest_add(&hint, name, ready_name_at, NULL);
        r = why_set(why, ENOENT, "'%s' is neither a file nor a ready scenario%s", name,
                    text_str(&hint));
        text_release(&hint);
    }
    return r;
}

static int read_scenario(const char *name, const char *schemas, struct scenario *s, struct why *why)
{
    const struct scenario_options how = { .name = name, .schemas = schemas };
    unsigned long length;
    char *text;
    int r = read_text(name, &text, &length, why);

    if (r < 0)
        return r;
    r = scenario_parse(s, text, length, &how, why);
    free(text);
    return r;
}

/* The first sentence of a description. */
static void print_summary(const char *description)
{
    const char *end = strstr(description, ". ");
    int n = end ? (int)(end - description) : (int)strlen(description);

    for (int i = 0; i < n && !(i == n - 1 && description[i] == '.'); i++)
        putchar(description[i] == '\n' ? ' ' : description[i]);
    putchar('\n');
}

static int list(struct why *why)
{
    const char *name;

    for (int i = 0; (name = ready_name_at(NULL, i)); i++) {
        struct scenario s;

        if (read_scenario(name, NULL, &s, why) < 0)
            return command_fail(why);
        printf("%-24s ", name);
        print_summary(s.description);
        scenario_release(&s);
    }
    return 0;
}

static int show(const char *name, struct why *why)
{
    unsigned long length;
    char *text;

    if (read_text(name, &text, &length, why) < 0)
        return command_fail(why);
    fwrite(text, 1, length, stdout);
    free(text);
    return 0;
}

static int print(void (*add)(struct text *out))
{
    struct text out = TEXT_INIT;

    add(&out);
    fputs(text_str(&out), stdout);
    text_release(&out);
    return 0;
}

/* --- a mount of its own ---------------------------------------------------------------------- */

static int make_mount(struct private_mount *mount, const struct scenario *s, const char *schemas,
                      struct why *why)
{
    struct text yaml = TEXT_INIT;
    int r;

    scenario_node(&yaml, &s->mount);
    r = private_mount_make(mount, text_str(&yaml), schemas, why);
    text_release(&yaml);
    return r;
}

/* --- running --------------------------------------------------------------------------------- */

static int exit_code(int r, const struct scenario_report *report, struct why *why)
{
    if (r == -EINTR)
        return EXIT_INTERRUPTED;
    if (r < 0)
        return client_fail(r, why);
    return report->failed ? 1 : 0;
}

static int run_on(const struct options *o, const struct scenario *s, const char *root, bool keep,
                  double speed, struct why *why)
{
    struct scenario_report report = { .scenario = s, .tap = o->tap };
    struct scenario_run run = {
        .scenario = s,
        .keep = keep,
        .paced = o->realtime || o->speed,
        .speed = speed,
        .tell = report_item,
        .remark = report_remark,
        .whom = &report,
    };
    const struct client_options here = { .mount = root };
    int r = client_open(&run.client, &here, why), code;

    if (r < 0)
        return client_fail(r, why);
    r = scenario_run_begin(&run, why);
    if (r == 0) {
        report_begin(&report, &run);
        r = scenario_run_all(&run, &stop_asked, why);
        report_end(&report, &run);
    }
    code = exit_code(r, &report, why);
    if (o->junit && run.items && report_junit(&report, &run, o->junit, why) < 0)
        code = command_fail(why);
    scenario_run_end(&run);
    client_close(&run.client);
    return code;
}

static int run_scenario(const struct options *o, const struct scenario *s, double speed,
                        struct why *why)
{
    struct private_mount mount;
    int code;

    stop_listen();
    if (o->client.mount)
        return run_on(o, s, o->client.mount, false, speed, why);
    if (make_mount(&mount, s, o->schemas, why) < 0)
        return command_fail(why);
    code = run_on(o, s, mount.root, true, speed, why);
    private_mount_end(&mount);
    return code;
}

static int run_operand(const struct command_call *call, const struct options *o)
{
    struct scenario s;
    struct why why = { 0 };
    double speed = 1;
    int code;

    if (o->speed && (parse_real(o->speed, &speed) < 0 || speed <= 0 || speed > 1e6))
        return command_usage(call, "--speed: '%s' is not a speed; allowed: above 0 to 1000000",
                             o->speed);
    if (o->show)
        return show(call->argv[0], &why);
    if (read_scenario(call->argv[0], o->schemas, &s, &why) < 0) {
        command_fail(&why);
        return EXIT_BROKEN;
    }
    if (o->check) {
        printf("%s: scenario '%s' with %zu step%s\n", call->argv[0], s.name, s.steps.count,
               s.steps.count == 1 ? "" : "s");
        code = 0;
    } else if (o->client.explain) {
        code = scenario_explain(&s, o->client.mount);
    } else {
        code = run_scenario(o, &s, o->speed ? speed : s.speed, &why);
    }
    scenario_release(&s);
    why_release(&why);
    return code;
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct why why = { 0 };
    bool alone = o->list || o->schema || o->reference;

    if (alone && call->argc)
        return command_usage(call, "'%s' is not expected", call->argv[0]);
    if (o->list)
        return list(&why);
    if (o->schema)
        return print(scenario_schema);
    if (o->reference)
        return print(scenario_reference);
    if (!call->argc)
        return command_usage(call, "a FILE or the name of a ready scenario is needed");
    return run_operand(call, o);
}

/* clang-format off */
static const struct command_option options[] = {
    OPTION("mount", 'm', "DIR", OPTION_TEXT, struct options, client.mount, "run on this mount, and restore what was changed", .complete = COMPLETE_DIRECTORY),
    OPTION("schemas", 0, "DIR", OPTION_TEXT, struct options, schemas, "more models and profiles", .complete = COMPLETE_DIRECTORY),
    OPTION("realtime", 0, NULL, OPTION_FLAG, struct options, realtime, "let time pass at the scenario's own speed"),
    OPTION("speed", 0, "X", OPTION_TEXT, struct options, speed, "the same at X simulated seconds per real one"),
    OPTION("tap", 0, NULL, OPTION_FLAG, struct options, tap, "report in the Test Anything Protocol"),
    OPTION("junit", 0, "FILE", OPTION_TEXT, struct options, junit, "write a report as JUnit's XML, too", .complete = COMPLETE_FILE),
    OPTION("check", 0, NULL, OPTION_FLAG, struct options, check, "only say whether the file is right"),
    OPTION("explain", 0, NULL, OPTION_FLAG, struct options, client.explain, "print a shell script that does the same"),
    OPTION("list", 0, NULL, OPTION_FLAG, struct options, list, "list the ready scenarios"),
    OPTION("show", 0, NULL, OPTION_FLAG, struct options, show, "print the scenario, to be changed"),
    OPTION("schema", 0, NULL, OPTION_FLAG, struct options, schema, "print the JSON Schema of the format"),
    OPTION("reference", 0, NULL, OPTION_FLAG, struct options, reference, "print its keys as tables for a page"),
    { 0 },
};

static const struct command_operand operands[] = {
    { "FILE", OPERAND_OPTIONAL, NULL, COMPLETE_FILE },
    { 0 },
};

static const struct command_exit exits[] = {
    { "1", "Something was not as expected, or a step was refused." },
    { "2", "The daemon of the mount is gone." },
    { "65", "The file is wrong: the sentence names line, key and what is allowed." },
    { "130", "Interrupted. What was changed is restored." },
    { 0 },
};
/* clang-format on */

const struct command command_scenario = {
    .name = "scenario",
    .summary = "run a timeline of loads, faults and expectations",
    .text =
        "Runs FILE, or a ready scenario by its name, and says whether everything came as "
        "expected. Without --mount it makes a mount of its own and removes it. Unless the clock "
        "is to run, it is stepped: fast, the same every time, and nothing is missed.",
    .more = "The format of a scenario is in docs/scenarios.md.",
    .options = options,
    .operands = operands,
    .exits = exits,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs scenario thermal-runaway",
                  "fakegpufs scenario --junit report.xml tests/gpu-lost.yaml" },
    .run = run,
};
