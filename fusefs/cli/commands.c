/*
 * Commands: the list of all rows, and who runs which. See command.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/cli/command.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/why.h"

/* clang-format off */
const struct command *const commands[] = {
    &command_mount,
    &command_umount,
    &command_run,
    &command_exec,
    &command_status,
    &command_cdi,
    &command_fault,
    &command_profile,
    &command_clock_show,
    &command_clock_speed,
    &command_clock_pause,
    &command_clock_resume,
    &command_clock_step,
    &command_scenario,
    &command_record,
    &command_replay,
    &command_config_check,
    &command_config_show,
    &command_config_diff,
    &command_config_schema,
    &command_simulate,
    &command_models,
    &command_metrics,
    &command_paths,
    &command_help,
    NULL,
};
/* clang-format on */

/* --- rows and groups ------------------------------------------------------------------------- */

size_t command_group(const struct command *command)
{
    return strcspn(command->name, " ");
}

bool command_same_group(const struct command *a, const struct command *b)
{
    size_t n = command_group(a);

    return n == command_group(b) && !strncmp(a->name, b->name, n);
}

const struct command *command_next_in_group(const struct command *command)
{
    for (int i = 0; commands[i]; i++)
        if (commands[i] == command)
            return commands[i + 1] && command_same_group(command, commands[i + 1]) ? commands[i + 1]
                                                                                   : NULL;
    return NULL;
}

const struct command *command_find(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    for (int i = 0; commands[i]; i++)
        if (commands[i]->name[command_group(commands[i])] &&
            !strncmp(commands[i]->name, name, command_group(commands[i])) &&
            !name[command_group(commands[i])])
            return commands[i];
    return NULL;
}

/* --- sentences ------------------------------------------------------------------------------- */

/* The rest of a sentence about bad usage. A question or a full stop ends what comes before. */
static int print_usage(const char *name, const struct text *said)
{
    const char *text = text_str(said);
    char last = said->length ? text[said->length - 1] : ' ';

    fprintf(stderr, "fakegpufs%s%s: %s%s see 'fakegpufs%s%s --help'\n", *name ? " " : "", name,
            text, last == '?' ? "" : ";", *name ? " " : "", name);
    return EXIT_USAGE;
}

int command_usage(const struct command_call *call, const char *fmt, ...)
{
    struct text said = TEXT_INIT;
    va_list ap;

    va_start(ap, fmt);
    text_vaddf(&said, fmt, ap);
    va_end(ap);
    print_usage(call->command->name, &said);
    text_release(&said);
    return EXIT_USAGE;
}

int command_fail(struct why *why)
{
    fprintf(stderr, "fakegpufs: %s\n", why_text(why));
    why_release(why);
    return 1;
}

/* --- which one ------------------------------------------------------------------------------- */

static const char *first_word_at(const void *unused, int i)
{
    static char words[64][32];

    (void)unused;
    if (!commands[i])
        return NULL;
    snprintf(words[i % 64], sizeof(words[0]), "%.*s", (int)command_group(commands[i]),
             commands[i]->name);
    return words[i % 64];
}

/* Says what the word should have been: a command, or a verb of a group. */
static int unknown(const char *group, const char *word, suggest_names *name_at, const void *names)
{
    struct text said = TEXT_INIT;
    const char *near = suggest_nearest(word, name_at, names);

    if (!*word && !*group)
        text_add(&said, "a command is needed");
    else if (*word)
        text_addf(&said, "'%s' is not a command", word);
    if (near)
        text_addf(&said, "; did you mean '%s'?", near);
    print_usage(group, &said);
    text_release(&said);
    return EXIT_USAGE;
}

/* The verbs of a group: what is behind its first word. */
static const char *verb_at(const void *names, int i)
{
    const struct command *c = names;

    for (; c && i > 0; i--)
        c = command_next_in_group(c);
    return c ? c->name + command_group(c) + 1 : NULL;
}

static int unknown_verb(const struct command *first, const char *word)
{
    struct text said = TEXT_INIT;
    char *group = strndup(first->name, command_group(first));

    if (*word)
        text_addf(&said, "'%s' is not known", word);
    else
        text_add(&said, "one more word is needed");
    suggest_add(&said, word, verb_at, first);
    print_usage(group ? group : "", &said);
    text_release(&said);
    free(group);
    return EXIT_USAGE;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct command_call call = { .command = command };
    void *options = calloc(1, command->options_size ? command->options_size : 1);
    struct text screen = TEXT_INIT;
    int code;

    if (!options) {
        fprintf(stderr, "fakegpufs: out of memory\n");
        return 1;
    }
    if (command->defaults)
        memcpy(options, command->defaults, command->options_size);
    call.options = options;
    code = command_parse(&call, options, argc, argv);
    if (code < 0) {
        command_screen(&screen, command);
        fputs(text_str(&screen), stdout);
        code = 0;
    } else if (code == 0) {
        code = command->run(&call);
    }
    text_release(&screen);
    free(options);
    return code;
}

/* A group: its verb is the next word. */
static int run_group(const struct command *first, int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    struct text screen = TEXT_INIT;

    if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) {
        command_group_screen(&screen, first);
        fputs(text_str(&screen), stdout);
        text_release(&screen);
        return 0;
    }
    for (const struct command *c = first; c; c = command_next_in_group(c))
        if (!strcmp(c->name + command_group(c) + 1, verb))
            return run(c, argc - 1, argv + 1);
    return unknown_verb(first, verb);
}

int command_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *command;

    if (!strcmp(name, "--version")) {
        printf("fakegpufs %s\n", FAKEGPUFS_VERSION);
        return 0;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    command = command_find(name);
    if (!command || strchr(name, ' '))
        return unknown("", name, first_word_at, NULL);
    if (command->name[command_group(command)])
        return run_group(command, argc - 1, argv + 1);
    return run(command, argc - 1, argv + 1);
}
