/*
 * Tables: what a mount says of its GPUs in text files. See tables.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/view.h"
#include "fusefs/reader.h"
#include "sim/arena.h"

enum { TEXT_START = 16384, TEXT_MAX = 64 << 20 };

int tables_read(struct tables *t, const char *path)
{
    for (;;) {
        int r = t->buffer ? reader_text(t->reader, path, t->buffer, t->size) : -E2BIG;
        size_t size = t->buffer ? t->size * 4 : TEXT_START;
        char *grown;

        if (r != -E2BIG || size > TEXT_MAX)
            return r;
        grown = realloc(t->buffer, size);
        if (!grown)
            return -ENOMEM;
        t->buffer = grown;
        t->size = size;
    }
}

void tables_release(struct tables *t)
{
    free(t->buffer);
}

/* --- columns --------------------------------------------------------------------------------- */

/* The next column of a line; "" when there is none, or when it is '-'. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " "), *end = word + strcspn(word, " ");

    *line = end + (*end == ' ');
    *end = '\0';
    if (!strcmp(word, "-"))
        *word = '\0';
    return word;
}

static int64_t next_number(char **line)
{
    return strtoll(next_word(line), NULL, 10);
}

/* The number of an instance, -1 for none. */
static int next_instance(char **line)
{
    const char *word = next_word(line);

    return *word ? atoi(word) : -1;
}

static const char *keep(struct arena *arena, const char *text)
{
    return *text ? arena_strndup(arena, text, strlen(text)) : "";
}

/* --- names ----------------------------------------------------------------------------------- */

static int identity_find(const char *name)
{
    for (int i = 0; i < IDENTITY_COUNT; i++)
        if (!strcmp(identity_infos[i].name, name))
            return i;
    return -1;
}

void tables_names(struct tables *t, struct arena *arena, const char *(*names)[IDENTITY_COUNT],
                  int count)
{
    char *text = t->buffer, *line;

    while ((line = reader_line(&text))) {
        int64_t gpu = next_number(&line);
        int id = identity_find(next_word(&line));

        if (gpu >= 0 && gpu < count && id >= 0)
            names[gpu][id] = keep(arena, line);
    }
}

/* --- lists ----------------------------------------------------------------------------------- */

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines + 1;
}

/* Reads a file of a GPU. Room for an item of each of its lines; NULL, and -errno in `r`. */
static void *read_list(struct tables *t, struct arena *arena, const struct view_gpu *gpu,
                       const char *name, size_t item, int *r)
{
    char path[64];
    void *list;

    snprintf(path, sizeof(path), "gpus/%d/%s", gpu->position, name);
    *r = tables_read(t, path);
    if (*r < 0)
        return NULL;
    list = arena_alloc(arena, count_lines(t->buffer) * item);
    if (!list)
        *r = -ENOMEM;
    return list;
}

static int by_gpu(const void *a, const void *b)
{
    const struct view_process *x = a, *y = b;

    return x->gpu != y->gpu ? (x->gpu > y->gpu) - (x->gpu < y->gpu)
                            : (x->pid > y->pid) - (x->pid < y->pid);
}

/* The rest of a line of processes. */
static void read_process(struct arena *arena, struct view_process *p, char *line)
{
    p->pid = next_number(&line);
    p->memory_bytes = next_number(&line);
    p->utilization_percent = next_number(&line);
    p->workload = keep(arena, next_word(&line));
    p->namespace = keep(arena, next_word(&line));
    p->pod = keep(arena, next_word(&line));
    p->container = keep(arena, next_word(&line));
    p->gi = next_instance(&line);
}

int tables_all_processes(struct tables *t, struct arena *arena, struct view_gpu *gpus,
                         int gpu_count)
{
    int r = tables_read(t, "gpus/processes");
    struct view_process *list;
    size_t count = 0;
    char *text, *line;

    if (r < 0)
        return r;
    list = arena_alloc(arena, count_lines(t->buffer) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    for (text = t->buffer; (line = reader_line(&text)); count++) {
        list[count].gpu = (int)next_number(&line);
        read_process(arena, &list[count], line);
    }
    qsort(list, count, sizeof(*list), by_gpu);
    for (size_t i = 0; i < count; i++) {
        struct view_gpu *g = &gpus[list[i].gpu];

        if (list[i].gpu < 0 || list[i].gpu >= gpu_count)
            continue;
        if (!g->process_count++)
            g->processes = &list[i];
    }
    return 0;
}

int tables_processes(struct tables *t, struct arena *arena, struct view_gpu *gpu)
{
    struct view_process *list;
    char *text, *line;
    int r;

    if (gpu->lost)
        return 0;
    list = read_list(t, arena, gpu, "processes", sizeof(*list), &r);
    if (!list)
        return r == -ENODEV ? -EAGAIN : r;
    for (text = t->buffer; (line = reader_line(&text)); gpu->process_count++) {
        list[gpu->process_count].gpu = gpu->position;
        read_process(arena, &list[gpu->process_count], line);
    }
    qsort(list, (size_t)gpu->process_count, sizeof(*list), by_gpu);
    gpu->processes = list;
    return 0;
}

int tables_instances(struct tables *t, struct arena *arena, struct view_gpu *gpu)
{
    struct view_instance *list;
    char *text, *line;
    int64_t mode;
    int r;

    if (gpu->lost || metric_read(&gpu->sample, METRIC_MIG_MODE, &mode) < 0 || !mode)
        return 0;
    list = read_list(t, arena, gpu, "mig/instances", sizeof(*list), &r);
    if (!list)
        return r;
    gpu->instances = list;
    for (text = t->buffer; (line = reader_line(&text));) {
        struct view_instance *i = &list[gpu->instance_count];

        i->gi = (int)next_number(&line);
        if (*next_word(&line))
            continue; /* a compute instance in it */
        i->profile = keep(arena, next_word(&line));
        next_word(&line);
        next_word(&line);
        i->multiprocessors = next_number(&line);
        i->memory_bytes = next_number(&line);
        gpu->instance_count++;
    }
    return 0;
}

int tables_links(struct tables *t, struct arena *arena, struct view_gpu *gpu)
{
    struct view_link *list;
    char *text, *line;
    int r;

    if (gpu->lost)
        return 0;
    list = read_list(t, arena, gpu, "nvlinks", sizeof(*list), &r);
    if (!list)
        return r == -ENOENT || r == -ENODATA ? 0 : r;
    gpu->links = list;
    for (text = t->buffer; (line = reader_line(&text)); gpu->link_count++) {
        struct view_link *l = &list[gpu->link_count];
        const char *peer;
        int number;

        next_word(&line); /* link up bytes_per_second peer peer_number … */
        l->up = next_number(&line);
        next_word(&line);
        peer = next_word(&line);
        number = (int)next_number(&line);
        l->peer_gpu = !strcmp(peer, "gpu") ? number : -1;
        l->peer_switch = !strcmp(peer, "switch") ? number : -1;
    }
    return 0;
}
