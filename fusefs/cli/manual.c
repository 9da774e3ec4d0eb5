/*
 * Manual: man pages and docs/commands.md, made from the rows of the commands. See command.h.
 *
 * One walk over the rows, which says what stands where; two ways to write it down.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <string.h>

#include "fusefs/cli/command.h"
#include "sim/text.h"

/* How a page is written. Texts are plain; each function does its own quoting. */
struct style {
    void (*section)(struct text *out, const char *title);
    void (*paragraph)(struct text *out, const char *s, size_t n);
    void (*verbatim)(struct text *out, const char *s, size_t n);
    void (*item)(struct text *out, const char *term, const char *s);
    void (*end_items)(struct text *out);
};

/* --- man ------------------------------------------------------------------------------------- */

/* A dash is one that can be copied; a control character at the beginning of a line is none. */
static void add_roff(struct text *out, const char *s, size_t n)
{
    static const char ellipsis[] = "…";

    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || s[i - 1] == '\n') && (s[i] == '.' || s[i] == '\''))
            text_add(out, "\\&");
        if (s[i] == '\\') {
            text_add(out, "\\e");
        } else if (s[i] == '-') {
            text_add(out, "\\-");
        } else if (s[i] == '\'') {
            text_add(out, "\\(aq");
        } else if (n - i >= 3 && !strncmp(s + i, ellipsis, 3)) {
            text_add(out, "\\&...");
            i += 2;
        } else {
            text_addn(out, s + i, 1);
        }
    }
}

static void man_section(struct text *out, const char *title)
{
    text_add(out, ".SH ");
    for (; *title; title++)
        text_addf(out, "%c", toupper((unsigned char)*title));
    text_add(out, "\n");
}

static void man_paragraph(struct text *out, const char *s, size_t n)
{
    text_add(out, ".PP\n");
    add_roff(out, s, n);
    text_add(out, "\n");
}

static void man_verbatim(struct text *out, const char *s, size_t n)
{
    text_add(out, ".PP\n.nf\n");
    add_roff(out, s, n);
    text_add(out, "\n.fi\n");
}

static void man_item(struct text *out, const char *term, const char *s)
{
    text_add(out, ".TP\n.B ");
    add_roff(out, term, strlen(term));
    text_add(out, "\n");
    add_roff(out, s, strlen(s));
    text_add(out, "\n");
}

static void man_end_items(struct text *out)
{
    (void)out;
}

static const struct style man = { man_section, man_paragraph, man_verbatim, man_item,
                                  man_end_items };

/* --- markdown -------------------------------------------------------------------------------- */

static void markdown_section(struct text *out, const char *title)
{
    text_addf(out, "%s:\n\n", title);
}

/* Names in angle brackets would be taken for tags. */
static void add_markdown(struct text *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr("<*_|", s[i]))
            text_add(out, "\\");
        text_addn(out, s + i, 1);
    }
}

static void markdown_paragraph(struct text *out, const char *s, size_t n)
{
    add_markdown(out, s, n);
    text_add(out, "\n\n");
}

static void markdown_verbatim(struct text *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t line = strcspn(s + i, "\n");

        line = line < n - i ? line : n - i;
        text_addf(out, "    %.*s\n", (int)line, s + i);
        i += line + 1;
    }
    text_add(out, "\n");
}

static void markdown_item(struct text *out, const char *term, const char *s)
{
    text_addf(out, "- `%s` ", term);
    add_markdown(out, s, strlen(s));
    text_add(out, "\n");
}

static void markdown_end_items(struct text *out)
{
    text_add(out, "\n");
}

static const struct style markdown = { markdown_section, markdown_paragraph, markdown_verbatim,
                                       markdown_item, markdown_end_items };

/* --- what stands where ----------------------------------------------------------------------- */

static void add_paragraphs(struct text *out, const struct style *style, const char *s)
{
    while (s && *s) {
        const char *end = strstr(s, "\n\n");
        size_t n = end ? (size_t)(end - s) : strlen(s);

        (*s == ' ' ? style->verbatim : style->paragraph)(out, s, n);
        s += n + (end ? 2 : 0);
    }
}

static void add_description(struct text *out, const struct style *style, const struct command *c)
{
    struct text text = TEXT_INIT;

    text_add(&text, c->text);
    if (c->add_text)
        c->add_text(&text);
    add_paragraphs(out, style, text_str(&text));
    add_paragraphs(out, style, c->more);
    text_release(&text);
}

static void add_synopsis(struct text *out, const struct style *style, const struct command *c)
{
    struct text line = TEXT_INIT;

    text_add(&line, "fakegpufs ");
    command_synopsis(&line, c);
    style->verbatim(out, text_str(&line), line.length);
    text_release(&line);
}

static void add_options(struct text *out, const struct style *style, const struct command *c)
{
    struct text term = TEXT_INIT;

    if (!c->options)
        return;
    style->section(out, "Options");
    for (const struct command_option *o = c->options; o->name; o++) {
        const struct command_option *said = o;

        while (!said->help && said[1].name)
            said++;
        text_cut(&term, 0);
        if (o->letter)
            text_addf(&term, "-%c, ", o->letter);
        text_addf(&term, "--%s%s%s", o->name, o->argument ? " " : "",
                  o->argument ? o->argument : "");
        style->item(out, text_str(&term), said->help);
    }
    style->end_items(out);
    text_release(&term);
}

static const struct command_exit usual_exits[] = {
    { "0", "it is done" },
    { "1", "it is not, and a sentence on standard error says why" },
    { 0 },
};

static void add_exits(struct text *out, const struct style *style, const struct command *c)
{
    style->section(out, "Exit status");
    for (const struct command_exit *e = c->exits ? c->exits : usual_exits; e->code; e++)
        style->item(out, e->code, e->meaning);
    style->item(out, "64", "bad usage");
    style->end_items(out);
}

static void add_examples(struct text *out, const struct style *style, const struct command *c)
{
    struct text lines = TEXT_INIT;

    text_addf(&lines, "%s\n%s", c->examples[0], c->examples[1]);
    style->section(out, "Examples");
    style->verbatim(out, text_str(&lines), lines.length);
    text_release(&lines);
}

/* --- pages ----------------------------------------------------------------------------------- */

static void add_title(struct text *out, const char *name, size_t n, const char *summary)
{
    text_add(out, ".TH ");
    for (size_t i = 0; i < n; i++)
        text_addf(out, "%c", toupper((unsigned char)name[i]));
    text_add(out, " 1 \"\" \"fakegpufs " FAKEGPUFS_VERSION "\" \"User Commands\"\n.SH NAME\n");
    add_roff(out, name, n);
    text_add(out, " \\- ");
    add_roff(out, summary, strlen(summary));
    text_add(out, "\n");
}

/* Rows of a group are one page. */
void command_manual(struct text *out, const struct command *first)
{
    struct text name = TEXT_INIT, summary = TEXT_INIT;
    bool group = command_next_in_group(first) != NULL;

    text_addf(&name, "fakegpufs-%.*s", (int)command_group(first), first->name);
    for (const struct command *c = first; c; c = command_next_in_group(c))
        text_addf(&summary, "%s%s", c == first ? "" : ", ", c->summary);
    add_title(out, text_str(&name), name.length, text_str(&summary));
    man_section(out, "Synopsis");
    for (const struct command *c = first; c; c = command_next_in_group(c))
        add_synopsis(out, &man, c);
    for (const struct command *c = first; c; c = command_next_in_group(c)) {
        man_section(out, group ? c->name : "Description");
        add_description(out, &man, c);
        add_options(out, &man, c);
        add_exits(out, &man, c);
        add_examples(out, &man, c);
    }
    man_section(out, "See also");
    man_paragraph(out, "fakegpufs(1)", strlen("fakegpufs(1)"));
    text_release(&name);
    text_release(&summary);
}

static const char about[] =
    "fakegpufs simulates NVIDIA GPUs and shows them as files: a mount point is an NVIDIA driver. Every "
    "command that is about a mount only reads and writes its files; with --explain it prints the shell "
    "lines that do the same.";

static const struct {
    const char *name, *meaning;
} environment[] = {
    { "FAKEGPUFS_ROOT",
      "the mount that commands are about, unless --mount says another; default: " DEFAULT_MOUNT },
    { "NODE_NAME", "which node of a configuration with several" },
};

static void add_environment(struct text *out, const struct style *style)
{
    style->section(out, "Environment");
    for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i++)
        style->item(out, environment[i].name, environment[i].meaning);
    style->end_items(out);
}

void command_program_manual(struct text *out)
{
    add_title(out, "fakegpufs", strlen("fakegpufs"), "simulated NVIDIA GPUs as files");
    man_section(out, "Synopsis");
    man_verbatim(out, "fakegpufs COMMAND [ARGUMENT …]", strlen("fakegpufs COMMAND [ARGUMENT …]"));
    man_section(out, "Description");
    man_paragraph(out, about, strlen(about));
    man_section(out, "Commands");
    for (int i = 0; commands[i]; i++)
        man_item(out, commands[i]->name, commands[i]->summary);
    add_environment(out, &man);
    man_section(out, "See also");
    text_add(out, ".PP\n");
    for (int i = 0; commands[i]; i++)
        if (!i || !command_same_group(commands[i - 1], commands[i]))
            text_addf(out, "%sfakegpufs\\-%.*s(1)", i ? ",\n" : "", (int)command_group(commands[i]),
                      commands[i]->name);
    text_add(out, "\n");
}

void command_markdown(struct text *out)
{
    text_add(out,
             "# Commands\n\n"
             "<!-- Made by `fakegpufs help --markdown` from the rows of the commands. -->\n\n");
    markdown_paragraph(out, about, strlen(about));
    text_add(out, "| command | what it does |\n| --- | --- |\n");
    for (int i = 0; commands[i]; i++) {
        text_addf(out, "| [%s](#fakegpufs-", commands[i]->name);
        for (const char *p = commands[i]->name; *p; p++)
            text_addn(out, *p == ' ' ? "-" : p, 1);
        text_addf(out, ") | %s |\n", commands[i]->summary);
    }
    text_add(out, "\n");
    add_environment(out, &markdown);
    for (int i = 0; commands[i]; i++) {
        text_addf(out, "## fakegpufs %s\n\n", commands[i]->name);
        add_synopsis(out, &markdown, commands[i]);
        add_description(out, &markdown, commands[i]);
        add_options(out, &markdown, commands[i]);
        add_exits(out, &markdown, commands[i]);
        add_examples(out, &markdown, commands[i]);
    }
    text_cut(out, out->length - 1); /* the empty line behind the last */
}
