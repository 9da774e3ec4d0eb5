/*
 * Options: reads a command line by the command's row. See command.h.
 *
 * As everywhere: `--name value`, `--name=value`, `-n value`, `-nvalue`, letters together, `--` ends the
 * options, and options may come behind operands. Names are written out: an abbreviation that is clear
 * today would not be with the next option.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/cli/command.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"

enum { HELP = -1 };

struct reading {
    struct command_call *call;
    char *options; /* the struct */
    int argc, at;
    char **argv;
};

static const char *option_name_at(const void *names, int i)
{
    const struct command_option *options = names;

    return options ? options[i].name : NULL;
}

/* --- values ---------------------------------------------------------------------------------- */

static int refuse(const struct reading *r, const struct command_option *o, struct why *why)
{
    int code = command_usage(r->call, "--%s: %s", o->name, why_text(why));

    why_release(why);
    return code;
}

static bool is_word(const char *const *words, const char *value)
{
    for (; *words; words++)
        if (!strcmp(*words, value))
            return true;
    return false;
}

static int check_word(const struct reading *r, const char *what, const char *const *words,
                      const char *value)
{
    struct text hint = TEXT_INIT;
    int code = 0;

    if (!words || is_word(words, value))
        return 0;
    suggest_add(&hint, value, suggest_from_strings, words);
    code = command_usage(r->call, "%s: '%s' is not known%s", what, value, text_str(&hint));
    text_release(&hint);
    return code;
}

static int set_text(const struct reading *r, const struct command_option *o, const char *value)
{
    struct text what = TEXT_INIT;
    int code;

    text_addf(&what, "--%s", o->name);
    code = check_word(r, text_str(&what), o->words, value);
    text_release(&what);
    if (code == 0)
        *(const char **)(void *)(r->options + o->offset) = value;
    return code;
}

static int set_time(const struct reading *r, const struct command_option *o, const char *value)
{
    int64_t *ns = (void *)(r->options + o->offset);
    struct why why = { 0 };

    if (unit_parse(UNIT_NANOSECOND, value, UNIT_BARE_REFUSED, ns, &why) < 0)
        return refuse(r, o, &why);
    if (*ns > 0 && *ns <= TIME_MAX_NS)
        return 0;
    why_set(&why, ERANGE, "'%s' is out of range; allowed: above zero, up to 366d", value);
    return refuse(r, o, &why);
}

static int set_count(const struct reading *r, const struct command_option *o, const char *value)
{
    int64_t *count = (void *)(r->options + o->offset);

    if (parse_i64(value, count) == 0 && *count >= 0)
        return 0;
    return command_usage(r->call, "--%s: '%s' is not a whole number from 0 on", o->name, value);
}

static int add_each(const struct reading *r, const struct command_option *o, const char *value)
{
    struct option_list *list = (void *)(r->options + o->offset);

    if (list->count == OPTION_LIST_MAX)
        return command_usage(r->call, "--%s is given more than %d times", o->name, OPTION_LIST_MAX);
    list->items[list->count++] = value;
    return 0;
}

static int set_value(const struct reading *r, const struct command_option *o, const char *value)
{
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)(r->options + o->offset) = true;
        return 0;
    case OPTION_TEXT:
        return set_text(r, o, value);
    case OPTION_TIME:
        return set_time(r, o, value);
    case OPTION_COUNT:
        return set_count(r, o, value);
    case OPTION_EACH:
        return add_each(r, o, value);
    }
    return 0;
}

/* --- options --------------------------------------------------------------------------------- */

/* An option with its value, which is `joined` to it or the next word. */
static int read_option(struct reading *r, const struct command_option *o, const char *joined)
{
    if (!o->argument)
        return set_value(r, o, NULL);
    if (!joined && r->at + 1 >= r->argc)
        return command_usage(r->call, "--%s lacks its argument %s", o->name, o->argument);
    return set_value(r, o, joined ? joined : r->argv[++r->at]);
}

static int unknown_option(const struct reading *r, const char *word, const char *name)
{
    const char *near = suggest_nearest(name, option_name_at, r->call->command->options);

    if (!near)
        return command_usage(r->call, "'%s' is not an option", word);
    return command_usage(r->call, "'%s' is not an option; did you mean '--%s'?", word, near);
}

static int read_long(struct reading *r, const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    char *name;
    int code;

    if (length == 6 && !strncmp(word, "--help", length))
        return HELP;
    for (const struct command_option *o = r->call->command->options; o && o->name; o++) {
        if (strlen(o->name) != length - 2 || strncmp(o->name, word + 2, length - 2))
            continue;
        if (value && !o->argument)
            return command_usage(r->call, "--%s takes no argument", o->name);
        return read_option(r, o, value ? value + 1 : NULL);
    }
    name = strndup(word, length);
    code = unknown_option(r, name ? name : word, name ? name + 2 : word);
    free(name);
    return code;
}

static const struct command_option *find_letter(const struct reading *r, char letter)
{
    for (const struct command_option *o = r->call->command->options; o && o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static int read_letters(struct reading *r, const char *word)
{
    int code = 0;

    for (const char *p = word + 1; code == 0 && *p; p++) {
        const struct command_option *o = find_letter(r, *p);

        if (*p == 'h' && !o)
            return HELP;
        if (!o)
            return command_usage(r->call, "'-%c' is not an option", *p);
        code = read_option(r, o, o->argument && p[1] ? p + 1 : NULL);
        if (o->argument)
            break;
    }
    return code;
}

/* --- operands -------------------------------------------------------------------------------- */

static bool takes_program(const struct command *c)
{
    return c->operands && c->operands->name && c->operands->count >= OPERAND_PROGRAM;
}

/* "an argument is missing: FILE", "'x' is not expected". */
static int check_operands(struct reading *r)
{
    const struct command_operand *o = r->call->command->operands;
    int code = 0, i = 0;

    for (; code == 0 && o && o->name; o++) {
        bool needed = o->count == OPERAND_ONE || o->count == OPERAND_MANY ||
                      o->count == OPERAND_PROGRAM;

        if (i >= r->call->argc) {
            if (needed)
                return command_usage(r->call, "%s is missing", o->name);
            continue;
        }
        code = check_word(r, o->name, o->words, r->call->argv[i]);
        i = o->count == OPERAND_ONE || o->count == OPERAND_OPTIONAL ? i + 1 : r->call->argc;
    }
    if (code == 0 && i < r->call->argc)
        return command_usage(r->call, "'%s' is not expected", r->call->argv[i]);
    return code;
}

int command_parse(struct command_call *call, void *options, int argc, char **argv)
{
    struct reading r = { .call = call, .options = options, .argc = argc, .argv = argv };
    int code = 0, first = 1;

    /* Operands move to the front; they are what is left. */
    for (r.at = 1; code == 0 && r.at < argc; r.at++) {
        char *word = argv[r.at];

        if (word[0] == '-' && word[1] == '-' && word[2]) {
            code = read_long(&r, word);
        } else if (word[0] == '-' && word[1] && word[1] != '-') {
            code = read_letters(&r, word);
        } else {
            bool rest = !strcmp(word, "--") || takes_program(call->command);

            r.at += !strcmp(word, "--");
            for (; r.at < argc; r.at++) {
                argv[first++] = argv[r.at];
                if (!rest)
                    break;
            }
        }
    }
    if (code)
        return code;
    argv[first] = NULL; /* they may become a program's */
    call->argc = first - 1;
    call->argv = argv + 1;
    return check_operands(&r);
}
