/*
 * fakegpufs paths: the rows of all node tables, for people and for the documentation.
 *
 * Names no file itself: a row that is added to a table is listed without a change here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/cli/command.h"
#include "fusefs/nodes.h"

/* What a token of a path stands for: see node.h. */
static const struct {
    char token;
    const char *name, *what;
} tokens[] = {
    { 'i', "<i>", "index of a GPU" },
    { 'm', "<minor>", "its minor number" },
    { 'b', "<bdf>", "its bus address, 0000:06:00.0" },
    { 'u', "<uuid>", "its UUID" },
    { 'r', "<root>", "its PCI root, 0000:06" },
    { 'n', "<node>", "name of the node that it is on" },
    { 'j', "<number>", "its position there" },
    { 'g', "<gi>", "number of a MIG GPU instance" },
    { 'k', "<gi-minor>", "minor number of its capability" },
    { 'c', "<ci>", "number of a MIG compute instance" },
    { 'K', "<ci-minor>", "minor number of its capability" },
    { 'w', "<workload>", "name of a workload" },
    { 'v', "<version>", "version of the driver" },
};

enum { TOKENS = sizeof(tokens) / sizeof(tokens[0]) };

/* One row as it is printed. */
struct line {
    struct text path;
    uint32_t mode; /* permissions */
    const char *access, *kind;
};

/* What to do with a line. */
typedef void line_fn(const struct line *line, void *into);

static const char *token_name(char token)
{
    for (int i = 0; i < TOKENS; i++)
        if (tokens[i].token == token)
            return tokens[i].name;
    return "<?>";
}

static void add_path(struct text *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '%' && path[1])
            text_add(out, token_name(*++path));
        else
            text_addn(out, path, 1);
    }
}

static const char *kind_of(const struct node_def *def)
{
    if (S_ISLNK(def->mode))
        return "link";
    if (def->flags & NODE_DEVICE)
        return "device";
    if (def->flags & NODE_STREAM)
        return "stream";
    if (def->flags & (NODE_SNAPSHOT | NODE_BINARY | NODE_BLOCKS))
        return "binary";
    return def->flags & NODE_HOST_FILE ? "installed" : "file";
}

/* As a mount shows them whose configuration says nothing of access. */
static uint32_t mode_of(const struct node_def *def, const struct config *cfg)
{
    if (def->flags & NODE_CONTROL)
        return (uint32_t)cfg->access.control_mode;
    if (def->flags & NODE_DEVICE && !def->mode)
        return (uint32_t)cfg->access.dev_mode;
    return def->mode & 07777;
}

static bool is_writable(const struct node_def *def, uint32_t mode)
{
    return def->store || def->flags & NODE_ATTACH || (def->flags & NODE_DEVICE && mode & 0222);
}

static void each_line(const struct config *cfg, line_fn *fn, void *into)
{
    struct line line = { .path = TEXT_INIT };

    for (int t = 0; node_tables[t]; t++)
        for (const struct node_def *def = node_tables[t]; def->path; def++) {
            text_cut(&line.path, 0);
            add_path(&line.path, def->path);
            line.mode = mode_of(def, cfg);
            line.access = is_writable(def, line.mode) ? "rw" : "r";
            line.kind = kind_of(def);
            fn(&line, into);
        }
    text_release(&line.path);
}

static void measure(const struct line *line, void *into)
{
    size_t *width = into;

    if (line->path.length > *width)
        *width = line->path.length;
}

static void print_aligned(const struct line *line, void *into)
{
    const size_t *width = into;

    printf("%-*s  %04" PRIo32 "  %-2s  %s\n", (int)*width, text_str(&line->path), line->mode,
           line->access, line->kind);
}

static void print_markdown(const struct line *line, void *into)
{
    (void)into;
    printf("| `%s` | %04" PRIo32 " | %s | %s |\n", text_str(&line->path), line->mode, line->access,
           line->kind);
}

static void add_tokens(struct text *out)
{
    text_add(out, "\n\n");
    for (int i = 0; i < TOKENS; i++)
        text_addf(out, "%s  %-11s %s", i ? "\n" : "", tokens[i].name, tokens[i].what);
}

struct options {
    bool markdown;
};

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct config_options how = { .name = "defaults" };
    struct why why = { 0 };
    struct config cfg;
    size_t width = 0;

    if (config_parse(&cfg, "", 0, &how, &why) < 0)
        return command_fail(&why);
    if (o->markdown) {
        printf("| path | mode | access | kind |\n| --- | --- | --- | --- |\n");
        each_line(&cfg, print_markdown, NULL);
    } else {
        each_line(&cfg, measure, &width);
        each_line(&cfg, print_aligned, &width);
    }
    config_release(&cfg);
    return 0;
}

static const struct command_option options[] = {
    OPTION("markdown", 0, NULL, OPTION_FLAG, struct options, markdown, "as a table for a page"),
    { 0 },
};

const struct command command_paths = {
    .name = "paths",
    .summary = "list the paths of a mount",
    .text =
        "Lists every path of a mount: mode, r (read) or rw (also written), and what it is: file, "
        "link, device, stream, binary, or installed on this machine. In a path",
    .more = "Modes are those of a configuration that says nothing about them.",
    .add_text = add_tokens,
    .options = options,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs paths | grep ' rw '", "fakegpufs paths --markdown" },
    .run = run,
};
