/*
 * Nodes that have files of all GPUs, or of all workloads, in one: `whose name line` for each line of each.
 *
 * For programs that show all of them: what they read does not become more files when there are more. What is
 * in a line is what the file itself shows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "fusefs/nodes.h"

enum { COLUMNS_MAX = 8 };

/* The rows of the files, in the order in which they were named. */
struct columns {
    const struct node_def *rows[COLUMNS_MAX];
    int count;
};

static const struct node_def *find_row(const char *directory, const char *file)
{
    size_t n = strlen(directory);

    for (int t = 0; node_tables[t]; t++)
        for (const struct node_def *def = node_tables[t]; def->path; def++)
            if (!strncmp(def->path, directory, n) && !strcmp(def->path + n, file))
                return def;
    return NULL;
}

static struct columns find_columns(const char *directory, const char *const files[])
{
    struct columns c = { 0 };

    for (int i = 0; files[i] && c.count < COLUMNS_MAX; i++) {
        const struct node_def *def = find_row(directory, files[i]);

        if (def)
            c.rows[c.count++] = def;
    }
    return c;
}

static void add_lines(struct text *out, const char *whose, const struct node_def *def,
                      const char *text)
{
    const char *name = strrchr(def->path, '/') + 1;

    while (*text) {
        size_t n = strcspn(text, "\n");

        text_add(out, whose);
        text_add(out, " ");
        text_add(out, name);
        text_add(out, " ");
        text_addn(out, text, n);
        text_add(out, "\n");
        text += n + (text[n] == '\n');
    }
}

/* What cannot be read is left out. */
static void add_files(struct text *out, const char *whose, const struct columns *c,
                      struct node_ctx *cx, struct text *one)
{
    for (int i = 0; i < c->count; i++) {
        text_cut(one, 0);
        cx->def = c->rows[i];
        if (c->rows[i]->show(cx, one) == 0)
            add_lines(out, whose, c->rows[i], text_str(one));
    }
}

static int show_conditions(const struct node_ctx *cx, struct text *out)
{
    static const char *const files[] = { "profile", "fault", NULL };
    const struct columns columns = find_columns("gpus/%i/control/", files);
    const struct world *w = cx->world;
    struct text one = TEXT_INIT;
    char whose[16];

    text_add(out, "# gpu name value\n");
    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++) {
        struct node_ctx of = *cx;

        of.gpu = (int)i;
        of.g = &world_gpus(w)[i];
        of.plan = &world_gpu_plans(w)[i];
        of.model = &world_models(w)[of.plan->model];
        snprintf(whose, sizeof(whose), "%d", of.gpu);
        add_files(out, whose, &columns, &of, &one);
    }
    text_release(&one);
    return 0;
}

static int show_workloads(const struct node_ctx *cx, struct text *out)
{
    static const char *const files[] = { "state",     "devices", "progress", "namespace", "pod",
                                         "container", "pid",     "activity", NULL };
    const struct columns columns = find_columns("workloads/%w/", files);
    const struct world *w = cx->world;
    struct text one = TEXT_INIT;

    text_add(out, "# workload name value\n");
    for (uint32_t k = 0; k < w->used[SECTION_WORKLOADS]; k++) {
        struct node_ctx of = *cx;

        of.workload = (int)k;
        of.work = &world_workloads(w)[k];
        of.run = &world_runs(w)[k];
        add_files(out, of.work->name, &columns, &of, &one);
    }
    text_release(&one);
    return 0;
}

/* clang-format off */
const struct node_def table_nodes[] = {
    { "gpus/conditions", 0444, show_conditions, NULL, 0, 0, NULL },
    { "gpus/workloads", 0444, show_workloads, NULL, 0, 0, NULL },
    { 0 },
};
/* clang-format on */
