/*
 * Help: what `--help` prints, and fakegpufs help. See command.h.
 *
 * A screen is one of 80 columns and 24 lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fusefs/cli/command.h"
#include "sim/text.h"
#include "sim/why.h"

enum { WIDTH = 80, OPTION_COLUMN = 26 };

/* --- laying out ------------------------------------------------------------------------------ */

/* Characters, not bytes. */
static int columns(const char *s, size_t n)
{
    int count = 0;

    for (size_t i = 0; i < n; i++)
        count += (s[i] & 0xc0) != 0x80;
    return count;
}

static void add_wrapped(struct text *out, const char *s, size_t n)
{
    int at = 0;

    for (size_t i = 0; i < n;) {
        size_t word = strcspn(s + i, " \n");
        int wide;

        word = word < n - i ? word : n - i;
        wide = columns(s + i, word);
        if (at && at + 1 + wide >= WIDTH) {
            text_add(out, "\n");
            at = 0;
        }
        text_addf(out, "%s%.*s", at ? " " : "", (int)word, s + i);
        at += wide + (at > 0);
        i += word;
        while (i < n && (s[i] == ' ' || s[i] == '\n'))
            i++;
    }
    text_add(out, "\n");
}

static void add_paragraphs(struct text *out, const char *s)
{
    while (*s) {
        const char *end = strstr(s, "\n\n");
        size_t n = end ? (size_t)(end - s) : strlen(s);

        if (*s == ' ')
            text_addf(out, "%.*s\n", (int)n, s);
        else
            add_wrapped(out, s, n);
        s += n;
        if (end) {
            text_add(out, "\n");
            s += 2;
        }
    }
}

static void add_text(struct text *out, const struct command *c)
{
    struct text text = TEXT_INIT;

    text_add(&text, c->text);
    if (c->add_text)
        c->add_text(&text);
    add_paragraphs(out, text_str(&text));
    text_release(&text);
}

/* --- one command ----------------------------------------------------------------------------- */

void command_synopsis(struct text *out, const struct command *c)
{
    static const char *const forms[] = {
        [OPERAND_ONE] = " %s",
        [OPERAND_OPTIONAL] = " [%s]",
        [OPERAND_MANY] = " %s …",
        [OPERAND_PROGRAM] = " -- %s …",
        [OPERAND_PROGRAM_OPTIONAL] = " [-- %s …]",
    };

    text_add(out, c->name);
    if (c->options)
        text_add(out, " [OPTION …]");
    for (const struct command_operand *o = c->operands; o && o->name; o++) {
        const char *form = forms[o->count], *hole = strstr(form, "%s");

        text_addf(out, "%.*s%s%s", (int)(hole - form), form, o->name, hole + 2);
    }
}

/* Rows without a help of their own share the line of the next: "--pod, --container NAME". */
static const struct command_option *add_option(struct text *out, const struct command_option *o)
{
    struct text names = TEXT_INIT;
    int wide;

    text_addf(&names, "  %s%c%s", o->letter ? "-" : " ", o->letter ? o->letter : ' ',
              o->letter ? ", " : "  ");
    text_addf(&names, "--%s", o->name);
    for (; !o->help && o[1].name; o++)
        text_addf(&names, ", --%s", o[1].name);
    if (o->argument)
        text_addf(&names, " %s", o->argument);
    wide = columns(text_str(&names), names.length);
    text_add(out, text_str(&names));
    if (wide >= OPTION_COLUMN) {
        text_add(out, "\n");
        wide = 0;
    }
    text_addf(out, "%*s%s\n", OPTION_COLUMN - wide, "", o->help ? o->help : "");
    text_release(&names);
    return o + 1;
}

static void add_examples(struct text *out, const struct command *a, int i, const struct command *b,
                         int j)
{
    text_addf(out, "\nexamples:\n  %s\n  %s\n", a->examples[i], b->examples[j]);
}

void command_screen(struct text *out, const struct command *c)
{
    const struct command_option *o = c->options;

    text_add(out, "usage: fakegpufs ");
    command_synopsis(out, c);
    text_add(out, "\n\n");
    add_text(out, c);
    if (o)
        text_add(out, "\n");
    while (o && o->name)
        o = add_option(out, o);
    add_examples(out, c, 0, c, 1);
}

void command_group_screen(struct text *out, const struct command *first)
{
    const struct command *last = first;

    for (const struct command *c = first; c; c = command_next_in_group(c)) {
        text_addf(out, "%s fakegpufs ", c == first ? "usage:" : "      ");
        command_synopsis(out, c);
        text_add(out, "\n");
    }
    text_add(out, "\n");
    for (const struct command *c = first; c; c = command_next_in_group(c)) {
        text_addf(out, "  %-10s %s\n", c->name + command_group(c) + 1, c->summary);
        last = c;
    }
    text_addf(out, "\n'fakegpufs %.*s WORD --help' says more.\n", (int)command_group(first),
              first->name);
    add_examples(out, first, 0, last == first ? first : command_next_in_group(first),
                 last == first ? 1 : 0);
}

/* --- fakegpufs help -------------------------------------------------------------------------- */

struct options {
    bool man, markdown;
    const char *completion, *pages;
};

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

static const struct command_option options[] = {
    OPTION("man", 0, NULL, OPTION_FLAG, struct options, man, "print the man page"),
    OPTION("markdown", 0, NULL, OPTION_FLAG, struct options, markdown, "print docs/commands.md"),
    OPTION("completion", 0, "SHELL", OPTION_TEXT, struct options, completion,
           "print the completions for bash, zsh or fish", .words = shells),
    OPTION("pages", 0, "DIR", OPTION_TEXT, struct options, pages,
           "write all of them, as below a prefix's share", .complete = COMPLETE_DIRECTORY),
    { 0 },
};

static const struct command_operand operands[] = {
    { .name = "COMMAND", .count = OPERAND_OPTIONAL, .complete = COMPLETE_COMMAND },
    { .name = "WORD", .count = OPERAND_OPTIONAL },
    { 0 },
};

/* --- files of it ------------------------------------------------------------------------------ */

/* Makes the folders on the way to `path`. */
static void make_folders(char *path)
{
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0755); /* what cannot be made is missed by fopen, which says so */
        *slash = '/';
    }
}

/* Writes a page and empties it. */
static int write_page(const char *dir, const char *name, struct text *page, struct why *why)
{
    struct text path = TEXT_INIT;
    FILE *f;
    int r = 0;

    text_addf(&path, "%s/%s", dir, name);
    if (path.data)
        make_folders(path.data);
    f = fopen(text_str(&path), "we");
    if (!f || fputs(text_str(page), f) < 0 || fclose(f) != 0)
        r = why_set(why, errno, "cannot write %s: %s", text_str(&path), strerror(errno));
    text_release(&path);
    text_cut(page, 0);
    return r;
}

static int write_pages(const char *dir, struct why *why)
{
    static const char *const places[] = { "bash-completion/completions/fakegpufs",
                                          "zsh/site-functions/_fakegpufs",
                                          "fish/vendor_completions.d/fakegpufs.fish" };
    struct text page = TEXT_INIT, name = TEXT_INIT;
    int r;

    command_program_manual(&page);
    r = write_page(dir, "man/man1/fakegpufs.1", &page, why);
    for (int i = 0; r == 0 && commands[i]; i++) {
        if (i && command_same_group(commands[i], commands[i - 1]))
            continue;
        text_cut(&name, 0);
        text_addf(&name, "man/man1/fakegpufs-%.*s.1", (int)command_group(commands[i]),
                  commands[i]->name);
        command_manual(&page, commands[i]);
        r = write_page(dir, text_str(&name), &page, why);
    }
    for (int i = 0; r == 0 && shells[i]; i++) {
        command_completion(&page, shells[i]);
        r = write_page(dir, places[i], &page, why);
    }
    text_release(&name);
    text_release(&page);
    return r;
}

/* --- what is asked for ------------------------------------------------------------------------ */

/* One line for each group, so that the list stays a screen. */
static void add_program_screen(struct text *out)
{
    text_add(out,
             "usage: fakegpufs COMMAND [ARGUMENT …]; 'fakegpufs COMMAND --help' says more\n\n");
    for (int i = 0; commands[i]; i++) {
        const struct command *c = commands[i];
        size_t group = command_group(c);

        if (i && command_same_group(c, commands[i - 1]))
            continue;
        text_addf(out, "  %-10.*s %s", (int)group, c->name, c->summary);
        for (c = command_next_in_group(c); c; c = command_next_in_group(c))
            text_addf(out, ", %s", c->name + group + 1);
        text_add(out, "\n");
    }
    text_add(out, "\nexamples:\n"
                  "  fakegpufs mount --gpus 2 --profile wave /tmp/gpus\n"
                  "  fakegpufs exec --gpus 2 -- nvidia-smi\n");
}

static int help_about(const struct command_call *call, struct text *out)
{
    const struct options *o = call->options;
    struct text name = TEXT_INIT;
    const struct command *c;
    int code = 0;

    for (int i = 0; i < call->argc; i++)
        text_addf(&name, "%s%s", i ? " " : "", call->argv[i]);
    c = command_find(text_str(&name));
    if (!c)
        code = command_usage(call, "'%s' is not a command", text_str(&name));
    else if (o->man)
        command_manual(out, c);
    else if (strcmp(c->name, text_str(&name)))
        command_group_screen(out, c);
    else
        command_screen(out, c);
    text_release(&name);
    return code;
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct text out = TEXT_INIT;
    struct why why = { 0 };
    int code = 0;

    if (o->man + o->markdown + (o->completion != NULL) + (o->pages != NULL) > 1)
        return command_usage(call, "--man, --markdown, --completion and --pages are one at a time");
    if (o->pages)
        return write_pages(o->pages, &why) < 0 ? command_fail(&why) : 0;
    if (o->completion)
        command_completion(&out, o->completion);
    else if (o->markdown)
        command_markdown(&out);
    else if (call->argc)
        code = help_about(call, &out);
    else if (o->man)
        command_program_manual(&out);
    else
        add_program_screen(&out);
    fputs(text_str(&out), stdout);
    text_release(&out);
    return code;
}

const struct command command_help = {
    .name = "help",
    .summary = "say how commands are used",
    .text = "Says how COMMAND is used, or lists all commands.",
    .options = options,
    .operands = operands,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs help mount", "fakegpufs help --completion bash > fakegpufs.bash" },
    .run = run,
};
