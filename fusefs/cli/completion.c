/*
 * Completion: what a shell offers on the tab key, made from the rows of the commands. See command.h.
 *
 * A script has everything in it that does not depend on a mount. GPUs are those of the mount that is
 * there when the key is pressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "fusefs/cli/command.h"
#include "sim/config.h"

/* A shell's own way of saying it. */
struct shell {
    const char *name;
    void (*add_script)(struct text *out);
};

static const char gpus_of_mount[] = "ls \"${FAKEGPUFS_ROOT:-" DEFAULT_MOUNT
                                    "}/gpus\" 2>/dev/null | grep -v by-";

/* --- words ----------------------------------------------------------------------------------- */

static void add_word(struct text *out, const char *word)
{
    text_addf(out, "%s%s", out->length ? " " : "", word);
}

static void add_models(struct text *out)
{
    struct model_set set;

    if (model_set_load(&set, NULL, NULL) < 0)
        return;
    for (int i = 0; i < set.count; i++)
        add_word(out, set.models[i].name);
    model_set_release(&set);
}

static void add_profiles(struct text *out)
{
    struct profile_set set;

    if (profile_set_load(&set, NULL, NULL) < 0)
        return;
    for (int i = 0; i < set.count; i++)
        add_word(out, set.profiles[i].name);
    profile_set_release(&set);
    add_word(out, "cycle");
}

static void add_first_words(struct text *out)
{
    for (int i = 0; commands[i]; i++)
        if (!i || !command_same_group(commands[i - 1], commands[i])) {
            add_word(out, "");
            text_addn(out, commands[i]->name, command_group(commands[i]));
        }
}

void command_words(struct text *out, const char *const *words, enum complete complete)
{
    for (; words && *words; words++)
        add_word(out, *words);
    if (complete == COMPLETE_MODEL)
        add_models(out);
    if (complete == COMPLETE_PROFILE)
        add_profiles(out);
    if (complete == COMPLETE_METRIC)
        for (int i = 0; i < METRIC_COUNT; i++)
            add_word(out, metric_infos[i].name);
    if (complete == COMPLETE_COMMAND)
        add_first_words(out);
}

static bool is_first_of_group(int i)
{
    return !i || !command_same_group(commands[i - 1], commands[i]);
}

static bool is_group(const struct command *c)
{
    return c->name[command_group(c)];
}

static const char *verb_of(const struct command *c)
{
    return c->name + command_group(c) + 1;
}

/* The operand that stands at place i; the last may stand for all behind it. */
static const struct command_operand *operand_at(const struct command *c, int i)
{
    const struct command_operand *o = c->operands;

    for (; o && o->name && i > 0 && o->count < OPERAND_MANY; i--)
        o++;
    return o && o->name ? o : NULL;
}

static void add_verbs(struct text *out, const struct command *first)
{
    for (const struct command *c = first; c; c = command_next_in_group(c))
        text_addf(out, "%s%s", c == first ? "" : " ", verb_of(c));
}

/* In single quotes, for any of the shells. */
static void add_quoted(struct text *out, const char *s)
{
    text_add(out, "'");
    for (; *s; s++)
        text_add(out, *s == '\'' ? "'\\''" : (char[]){ *s, '\0' });
    text_add(out, "'");
}

/* --- bash ------------------------------------------------------------------------------------ */

static void bash_reply(struct text *out, const char *const *words, enum complete complete)
{
    struct text list = TEXT_INIT;

    command_words(&list, words, complete);
    switch (complete) {
    case COMPLETE_FILE:
        text_add(out, "compopt -o filenames; words=$(compgen -f -- \"$current\")");
        break;
    case COMPLETE_DIRECTORY:
        text_add(out, "compopt -o filenames; words=$(compgen -d -- \"$current\")");
        break;
    case COMPLETE_PROGRAM:
        text_add(out, "words=$(compgen -c -- \"$current\")");
        break;
    case COMPLETE_GPU:
        text_addf(out, "words=$(compgen -W \"$(%s)\" -- \"$current\")", gpus_of_mount);
        break;
    default:
        text_addf(out, "words=$(compgen -W '%s' -- \"$current\")", text_str(&list));
    }
    text_release(&list);
}

static void bash_option_names(struct text *out, const struct command *c)
{
    text_add(out, "--help");
    for (const struct command_option *o = c->options; o && o->name; o++) {
        text_addf(out, " --%s", o->name);
        if (o->letter)
            text_addf(out, " -%c", o->letter);
    }
}

static void bash_command(struct text *out, const struct command *c)
{
    text_addf(out, "    '%s')\n        case $before in\n", c->name);
    for (const struct command_option *o = c->options; o && o->name; o++) {
        if (!o->argument)
            continue;
        text_add(out, "        ");
        if (o->letter)
            text_addf(out, "-%c | ", o->letter);
        text_addf(out, "--%s) ", o->name);
        bash_reply(out, o->words, o->complete);
        text_add(out, " ;;\n");
    }
    text_add(out, "        *)\n            case $current in\n            -*) words=$(compgen -W '");
    bash_option_names(out, c);
    text_add(out, "' -- \"$current\") ;;\n");
    if (c->operands) {
        const struct command_operand *o = c->operands;

        text_add(out, "            *)\n                case $place in\n");
        for (int i = 0; o->name; i++, o++) {
            text_addf(out,
                      o->count >= OPERAND_MANY ? "                *) " : "                %d) ", i);
            bash_reply(out, o->words, o->complete);
            text_add(out, " ;;\n");
        }
        text_add(out, "                esac ;;\n");
    }
    text_add(out, "            esac ;;\n        esac ;;\n");
}

/* Options with an argument, so that operands can be counted. */
static void bash_with_argument(struct text *out)
{
    const char *before = "";

    for (int i = 0; commands[i]; i++)
        for (const struct command_option *o = commands[i]->options; o && o->name; o++) {
            if (!o->argument)
                continue;
            text_addf(out, "%s'%s --%s'", before, commands[i]->name, o->name);
            before = " | ";
            if (o->letter)
                text_addf(out, " | '%s -%c'", commands[i]->name, o->letter);
        }
}

static void add_bash(struct text *out)
{
    text_add(out,
             "# bash completion for fakegpufs; made by `fakegpufs help --completion bash`.\n"
             "_fakegpufs() {\n"
             "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
             "    local command=${COMP_WORDS[1]} words= place=0 i=2\n"
             "    COMPREPLY=()\n"
             "    if ((COMP_CWORD == 1)); then\n"
             "        COMPREPLY=($(compgen -W '");
    add_first_words(out);
    text_add(out, " --help --version' -- \"$current\"))\n"
                  "        return\n"
                  "    fi\n"
                  "    case $command in\n");
    for (int i = 0; commands[i]; i++) {
        if (!is_group(commands[i]) || !is_first_of_group(i))
            continue;
        text_addf(out,
                  "    %.*s)\n        if ((COMP_CWORD == 2)); then\n            "
                  "COMPREPLY=($(compgen -W '",
                  (int)command_group(commands[i]), commands[i]->name);
        add_verbs(out, commands[i]);
        text_add(out, " --help' -- \"$current\"))\n            return\n        fi\n"
                      "        command=\"$command ${COMP_WORDS[2]}\" i=3 ;;\n");
    }
    text_add(out, "    esac\n"
                  "    for (( ; i < COMP_CWORD; i++)); do\n"
                  "        case \"$command ${COMP_WORDS[i]}\" in\n        ");
    bash_with_argument(out);
    text_add(out, ") ((++i)) ;;\n"
                  "        *' '-*) ;;\n"
                  "        *) ((++place)) ;;\n"
                  "        esac\n"
                  "    done\n"
                  "    case $command in\n");
    for (int i = 0; commands[i]; i++)
        bash_command(out, commands[i]);
    text_add(out, "    esac\n"
                  "    local IFS=$'\\n'\n"
                  "    COMPREPLY=($words)\n"
                  "}\n"
                  "complete -F _fakegpufs fakegpufs\n");
}

/* --- zsh ------------------------------------------------------------------------------------- */

/* "MESSAGE:ACTION" of an argument. */
static void zsh_action(struct text *out, const char *name, const char *const *words,
                       enum complete complete)
{
    struct text list = TEXT_INIT;

    command_words(&list, words, complete);
    text_addf(out, ":%s:", name);
    if (complete == COMPLETE_FILE)
        text_add(out, "_files");
    else if (complete == COMPLETE_DIRECTORY)
        text_add(out, "_directories");
    else if (complete == COMPLETE_PROGRAM)
        text_add(out, "_normal");
    else if (complete == COMPLETE_GPU)
        text_add(out, "_fakegpufs_gpus");
    else if (list.length)
        text_addf(out, "(%s)", text_str(&list));
    else
        text_add(out, " ");
    text_release(&list);
}

static void zsh_bracketed(struct text *out, const char *s)
{
    for (; *s; s++) {
        if (strchr("[]:\\", *s))
            text_add(out, "\\");
        text_addn(out, s, 1);
    }
}

static void zsh_option(struct text *out, const struct command_option *o, const char *dashes,
                       const char *name)
{
    const struct command_option *said = o;
    struct text spec = TEXT_INIT;

    while (!said->help && said[1].name)
        said++;
    text_addf(&spec, "%s%s%s[", o->kind == OPTION_EACH ? "*" : "", dashes, name);
    zsh_bracketed(&spec, said->help);
    text_add(&spec, "]");
    if (o->argument)
        zsh_action(&spec, o->argument, o->words, o->complete);
    text_add(out, " \\\n            ");
    add_quoted(out, text_str(&spec));
    text_release(&spec);
}

static void zsh_command(struct text *out, const struct command *c)
{
    text_addf(out, "    '%s')\n        _arguments -s '--help[say how it is used]'", c->name);
    for (const struct command_option *o = c->options; o && o->name; o++) {
        zsh_option(out, o, "--", o->name);
        if (o->letter)
            zsh_option(out, o, "-", (char[]){ o->letter, '\0' });
    }
    for (int i = 0; c->operands && c->operands[i].name; i++) {
        const struct command_operand *o = &c->operands[i];
        struct text spec = TEXT_INIT;

        if (o->count >= OPERAND_PROGRAM)
            text_add(&spec, "*:");
        else if (o->count == OPERAND_MANY)
            text_add(&spec, "*");
        else
            text_addf(&spec, "%d%s", i + 1, o->count == OPERAND_OPTIONAL ? ":" : "");
        zsh_action(&spec, o->name, o->words, o->complete);
        text_add(out, " \\\n            ");
        add_quoted(out, text_str(&spec));
        text_release(&spec);
    }
    text_add(out, "\n        ;;\n");
}

static void add_zsh(struct text *out)
{
    text_addf(out,
              "#compdef fakegpufs\n"
              "# zsh completion for fakegpufs; made by `fakegpufs help --completion zsh`.\n"
              "_fakegpufs_gpus() {\n"
              "    compadd -- ${(f)\"$(%s)\"}\n"
              "}\n"
              "_fakegpufs() {\n"
              "    local command=$words[2]\n"
              "    local -a all\n"
              "    if ((CURRENT == 2)); then\n"
              "        all=(",
              gpus_of_mount);
    for (int i = 0; commands[i]; i++) {
        struct text row = TEXT_INIT;

        if (!is_first_of_group(i))
            continue;
        text_addf(&row, "%.*s:%s", (int)command_group(commands[i]), commands[i]->name,
                  commands[i]->summary);
        text_add(out, "\n            ");
        add_quoted(out, text_str(&row));
        text_release(&row);
    }
    text_add(out, ")\n        _describe command all\n        return\n    fi\n"
                  "    shift words; ((CURRENT--))\n"
                  "    case $command in\n");
    for (int i = 0; commands[i]; i++) {
        if (!is_group(commands[i]) || !is_first_of_group(i))
            continue;
        text_addf(out, "    %.*s)\n        if ((CURRENT == 2)); then\n            all=(",
                  (int)command_group(commands[i]), commands[i]->name);
        add_verbs(out, commands[i]);
        text_add(out, ")\n            _describe word all\n            return\n        fi\n"
                      "        command=\"$command $words[2]\"; shift words; ((CURRENT--)) ;;\n");
    }
    text_add(out, "    esac\n    case $command in\n");
    for (int i = 0; commands[i]; i++)
        zsh_command(out, commands[i]);
    text_add(out, "    esac\n}\n"
                  "if [[ $funcstack[1] == _fakegpufs ]]; then\n"
                  "    _fakegpufs \"$@\"\n"
                  "else\n"
                  "    compdef _fakegpufs fakegpufs\n"
                  "fi\n");
}

/* --- fish ------------------------------------------------------------------------------------ */

static void fish_condition(struct text *out, const struct command *c)
{
    text_addf(out, "complete -c fakegpufs -n '__fish_seen_subcommand_from %.*s",
              (int)command_group(c), c->name);
    if (is_group(c))
        text_addf(out, "; and __fish_seen_subcommand_from %s", verb_of(c));
    text_add(out, "'");
}

static void fish_argument(struct text *out, const char *const *words, enum complete complete)
{
    struct text list = TEXT_INIT;

    command_words(&list, words, complete);
    if (complete == COMPLETE_FILE)
        text_add(out, " -F");
    else if (complete == COMPLETE_DIRECTORY)
        text_add(out, " -x -a '(__fish_complete_directories)'");
    else if (complete == COMPLETE_PROGRAM)
        text_add(out, " -x -a '(__fish_complete_subcommand)'");
    else if (complete == COMPLETE_GPU)
        text_add(out, " -x -a '(__fakegpufs_gpus)'");
    else if (list.length)
        text_addf(out, " -x -a '%s'", text_str(&list));
    text_release(&list);
}

static void fish_command(struct text *out, const struct command *c)
{
    for (const struct command_option *o = c->options; o && o->name; o++) {
        const struct command_option *said = o;

        while (!said->help && said[1].name)
            said++;
        fish_condition(out, c);
        text_addf(out, " -l %s", o->name);
        if (o->letter)
            text_addf(out, " -s %c", o->letter);
        if (o->argument)
            text_add(out, " -r");
        fish_argument(out, o->words, o->complete);
        text_add(out, " -d ");
        add_quoted(out, said->help);
        text_add(out, "\n");
    }
    fish_condition(out, c);
    text_add(out, " -l help -d 'say how it is used'\n");
    for (int i = 0; operand_at(c, i) && (i == 0 || operand_at(c, i) != operand_at(c, i - 1)); i++) {
        fish_condition(out, c);
        fish_argument(out, operand_at(c, i)->words, operand_at(c, i)->complete);
        text_add(out, "\n");
    }
}

static void add_fish(struct text *out)
{
    text_add(out, "# fish completion for fakegpufs; made by `fakegpufs help --completion fish`.\n"
                  "function __fakegpufs_gpus\n"
                  "    set -q FAKEGPUFS_ROOT; or set -l FAKEGPUFS_ROOT " DEFAULT_MOUNT "\n"
                  "    ls $FAKEGPUFS_ROOT/gpus 2>/dev/null | string match -rv by-\n"
                  "end\n"
                  "complete -c fakegpufs -f\n");
    for (int i = 0; commands[i]; i++) {
        if (is_first_of_group(i)) {
            text_addf(out, "complete -c fakegpufs -n __fish_use_subcommand -a %.*s -d ",
                      (int)command_group(commands[i]), commands[i]->name);
            add_quoted(out, commands[i]->summary);
            text_add(out, "\n");
        }
        if (is_group(commands[i])) {
            text_addf(out,
                      "complete -c fakegpufs -n 'test (count (commandline -opc)) -eq 2; and "
                      "__fish_seen_subcommand_from %.*s' -a %s -d ",
                      (int)command_group(commands[i]), commands[i]->name, verb_of(commands[i]));
            add_quoted(out, commands[i]->summary);
            text_add(out, "\n");
        }
    }
    for (int i = 0; commands[i]; i++)
        fish_command(out, commands[i]);
}

/* --- which ----------------------------------------------------------------------------------- */

static const struct shell shells[] = { { "bash", add_bash },
                                       { "zsh", add_zsh },
                                       { "fish", add_fish } };

void command_completion(struct text *out, const char *shell)
{
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (!strcmp(shells[i].name, shell))
            shells[i].add_script(out);
}
