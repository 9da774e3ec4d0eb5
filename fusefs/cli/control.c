/*
 * Commands that each write to one control file: fault, profile, clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "fusefs/cli/client.h"
#include "sim/unit.h"

struct options {
    struct client_options client;
    const char *after, *lasting;
};

/* One command for one file below a GPU's directory, or below all of them. */
static int put_gpu(const struct client *c, const char *gpu, const char *file, const char *text,
                   struct why *why)
{
    struct text path = TEXT_INIT;
    int r = client_gpu_path(c, &path, gpu, why);

    text_addf(&path, "/control/%s", file);
    if (r == 0)
        r = client_put(c, text_str(&path), text, why);
    text_release(&path);
    return r;
}

static void explain_all(const struct client *c, const char *file, const char *text)
{
    struct text quoted = TEXT_INIT;

    shell_quote(&quoted, text);
    client_say(c, "for gpu in %s/gpus/[0-9]*; do\n    echo %s > \"$gpu/control/%s\"\ndone", c->root,
               text_str(&quoted), file);
    text_release(&quoted);
}

static int put_all(const struct client *c, const char *file, const char *text, struct why *why)
{
    struct reader_node node = { 0 };
    char index[16];
    int r;

    if (c->explain) {
        explain_all(c, file, text);
        return 0;
    }
    r = reader_node(c->reader, &node);
    if (r < 0)
        return why_set(why, -r, "cannot read %s: %s", c->root, strerror(-r));
    for (int i = 0; r == 0 && i < node.gpu_count; i++) {
        snprintf(index, sizeof(index), "%d", i);
        r = put_gpu(c, index, file, text, why);
    }
    return r;
}

static int control_gpu(const struct client_options *options, const char *gpu, const char *file,
                       const char *text)
{
    struct client c;
    struct why why = { 0 };
    int r = client_open(&c, options, &why);

    if (r == 0)
        r = strcmp(gpu, "all") ? put_gpu(&c, gpu, file, text, &why) : put_all(&c, file, text, &why);
    client_close(&c);
    return r < 0 ? client_fail(r, &why) : 0;
}

/* --- fault ----------------------------------------------------------------------------------- */

static int run_fault(const struct command_call *call)
{
    const struct options *o = call->options;
    struct text fault = TEXT_INIT;
    int code;

    for (int i = 1; i < call->argc; i++)
        text_addf(&fault, "%s%s", i > 1 ? " " : "", call->argv[i]);
    if (o->after)
        text_addf(&fault, " after %s", o->after);
    if (o->lasting)
        text_addf(&fault, " for %s", o->lasting);
    code = control_gpu(&o->client, call->argv[0], "fault", text_str(&fault));
    text_release(&fault);
    return code;
}

static const struct command_option fault_options[] = {
    OPTION("after", 0, "TIME", OPTION_TEXT, struct options, after,
           "not now but so much later, of simulated time"),
    OPTION("for", 0, "TIME", OPTION_TEXT, struct options, lasting,
           "over after that, of simulated time"),
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_operand fault_operands[] = {
    { .name = "GPU", .count = OPERAND_ONE, .complete = COMPLETE_GPU },
    { .name = "FAULT", .count = OPERAND_MANY },
    { 0 },
};

const struct command command_fault = {
    .name = "fault",
    .summary = "let something happen to a GPU",
    .text = "Lets a fault happen to GPU: an index, UUID, bus id or all. A fault is one of\n\n"
            "  xid N   ecc sbe|dbe [N]   rows correctable|uncorrectable [N]   rows failure\n"
            "  pages sbe|dbe [N]   thermal [FACTOR]   power_brake   hang\n"
            "  nvlink [LINK] down|up   sensor METRIC   fallen_off_bus\n\n"
            "and `recover` resets the GPU.",
    .more = "With --after the command returns at once, and the fault waits in the mount. "
            "A new configuration drops faults that wait.",
    .options = fault_options,
    .operands = fault_operands,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs fault 0 'xid 79' --after 10m --for 30s",
                  "fakegpufs fault all recover" },
    .run = run_fault,
};

/* --- profile --------------------------------------------------------------------------------- */

static int run_profile(const struct command_call *call)
{
    const struct options *o = call->options;

    return control_gpu(&o->client, call->argv[0], "profile", call->argv[1]);
}

static const struct command_option plain_options[] = {
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_operand profile_operands[] = {
    { .name = "GPU", .count = OPERAND_ONE, .complete = COMPLETE_GPU },
    { .name = "NAME", .count = OPERAND_ONE, .complete = COMPLETE_PROFILE },
    { 0 },
};

const struct command command_profile = {
    .name = "profile",
    .summary = "let a GPU behave otherwise",
    .text =
        "Gives GPU (an index, UUID, bus id or all) the profile NAME: idle, static, stable, spike, "
        "wave, degrading, faulty, chaos, or one of your own.",
    .options = plain_options,
    .operands = profile_operands,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs profile 0 wave", "fakegpufs profile all idle" },
    .run = run_profile,
};

/* --- clock ----------------------------------------------------------------------------------- */

static int put_clock(const struct command_call *call, const char *verb)
{
    const struct options *o = call->options;
    struct text text = TEXT_INIT;
    struct client c;
    struct why why = { 0 };
    int r = client_open(&c, &o->client, &why);

    text_add(&text, verb);
    for (int i = 0; i < call->argc; i++)
        text_addf(&text, " %s", call->argv[i]);
    if (r == 0)
        r = client_put(&c, "control/clock", text_str(&text), &why);
    text_release(&text);
    client_close(&c);
    return r < 0 ? client_fail(r, &why) : 0;
}

/* The verb is the last word of the command's own name. */
static int run_clock(const struct command_call *call)
{
    return put_clock(call, call->command->name + command_group(call->command) + 1);
}

static int run_clock_show(const struct command_call *call)
{
    const struct options *o = call->options;
    struct text text = TEXT_INIT;
    struct client c;
    struct why why = { 0 };
    int r = client_open(&c, &o->client, &why);

    if (r == 0 && c.explain)
        client_say(&c, "cat %s/control/clock", c.root);
    else if (r == 0 && (r = client_read(&c, &text, "control/clock")) < 0)
        why_set(&why, -r, "%s/control/clock: %s", c.root, strerror(-r));
    else if (r == 0)
        puts(text_str(&text));
    text_release(&text);
    client_close(&c);
    return r < 0 ? client_fail(r, &why) : 0;
}

static const struct command_operand speed_operands[] = {
    { .name = "NUMBER", .count = OPERAND_ONE },
    { 0 },
};

static const struct command_operand step_operands[] = {
    { .name = "TIME", .count = OPERAND_ONE },
    { 0 },
};

/* CLOCK(verb, what it does, a sentence, its operands, a second example) */
#define CLOCK(verb, summary_, text_, operands_, run_, first, second)         \
    const struct command command_clock_##verb = {                            \
        .name = "clock " #verb,                                              \
        .summary = summary_,                                                 \
        .text = text_,                                                       \
        .options = plain_options,                                            \
        .operands = operands_,                                               \
        .options_size = sizeof(struct options),                              \
        .examples = { "fakegpufs clock " first, "fakegpufs clock " second }, \
        .run = run_,                                                         \
    }

CLOCK(show, "show simulated time", "Shows whether time runs, how fast, and how much has passed.",
      NULL, run_clock_show, "show", "show --mount /tmp/gpus");
CLOCK(speed, "let time run faster or slower",
      "Lets NUMBER simulated seconds pass in a real one. With 0 time stands still.", speed_operands,
      run_clock, "speed 60", "speed 0.5");
CLOCK(pause, "stop time", "Stops time until `resume`.", NULL, run_clock, "pause",
      "pause --mount /tmp/gpus");
CLOCK(resume, "let time go on", "Lets time go on after `pause`.", NULL, run_clock, "resume",
      "resume --mount /tmp/gpus");
CLOCK(step, "let some time pass at once",
      "Lets TIME pass as fast as it goes, and returns when it has.", step_operands, run_clock,
      "step 30s", "step 2h");
