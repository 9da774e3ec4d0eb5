/*
 * Collecting a view from a mount. See view.h.
 *
 * Samples come from the snapshot, a pread each. Names change with the plan only and are kept until then.
 * Processes and MIG instances are text files: one of all GPUs for the former, one for each GPU with MIG on
 * for the latter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/incidents.h"
#include "exporter/view.h"
#include "fusefs/reader.h"
#include "sim/arena.h"
#include "sim/text.h"
#include "sim/why.h"

/* A generation can end while it is read; then it is read again, but not for ever. */
enum { TRIES = 8, TEXT_START = 16384, TEXT_MAX = 64 << 20 };

struct collector {
    char *root;
    struct reader *reader; /* NULL: not there, or no longer */
    uint64_t mount;        /* how often it was opened */
    struct incidents *incidents;
    struct view_wants wants;

    char *buffer; /* for text files; grows as needed */
    size_t buffer_size;

    struct arena names_arena; /* of one plan_version */
    uint64_t names_version;
    const char *(*names)[IDENTITY_COUNT];
    int names_count;

    struct arena arena; /* of the view */
    struct view view;
};

/* --- the mount ------------------------------------------------------------------------------- */

static void forget_mount(struct collector *c)
{
    reader_close(c->reader);
    c->reader = NULL;
    incidents_free(c->incidents);
    c->incidents = NULL;
    arena_release(&c->names_arena);
    c->names = NULL;
    c->names_count = 0;
    c->names_version = 0;
}

static int no_mount(struct collector *c, int err, struct why *why)
{
    forget_mount(c);
    switch (-err) {
    case ENOENT:
        return why_set(why, -err, "there is no mount at '%s'", c->root);
    case ENOTCONN:
        return why_set(why, -err, "the daemon of the mount at '%s' is gone", c->root);
    case EPROTO:
        return why_set(why, -err, "the mount at '%s' was made by another version", c->root);
    default:
        return why_set(why, -err, "cannot read the mount at '%s': %s", c->root, strerror(-err));
    }
}

/* The node page; opens the mount when that is needed, or again when it was replaced by another. */
static int look(struct collector *c, struct reader_node *node)
{
    int r = -ENOENT;

    if (c->reader) {
        r = reader_node(c->reader, node);
        if (r == 0 && reader_is_current(c->reader, c->root))
            return 0;
        forget_mount(c);
    }
    r = reader_open(&c->reader, c->root);
    if (r < 0) {
        c->reader = NULL;
        return r;
    }
    c->mount++;
    return reader_node(c->reader, node);
}

/* A text file as a whole, in the collector's buffer. Its length or -errno. */
static int read_text(struct collector *c, const char *path)
{
    for (;;) {
        int r = c->buffer ? reader_text(c->reader, path, c->buffer, c->buffer_size) : -E2BIG;
        size_t size = c->buffer ? c->buffer_size * 4 : TEXT_START;
        char *grown;

        if (r != -E2BIG || size > TEXT_MAX)
            return r;
        grown = realloc(c->buffer, size);
        if (!grown)
            return -ENOMEM;
        c->buffer = grown;
        c->buffer_size = size;
    }
}

/* --- tables ---------------------------------------------------------------------------------- */

/* The next line of a text, without its newline, or NULL behind the last. Lines that begin with # are no data. */
static char *next_line(char **text)
{
    for (;;) {
        char *line = *text, *end = line + strcspn(line, "\n");

        if (!*line)
            return NULL;
        *text = end + (*end == '\n');
        *end = '\0';
        if (*line != '#')
            return line;
    }
}

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

static int identity_find(const char *name)
{
    for (int i = 0; i < IDENTITY_COUNT; i++)
        if (!strcmp(identity_infos[i].name, name))
            return i;
    return -1;
}

static int read_names(struct collector *c, const struct reader_node *node)
{
    char *text, *line;
    int r;

    if (c->names && c->names_version == node->plan_version && c->names_count == node->gpu_count)
        return 0;
    r = read_text(c, "gpus/inventory");
    if (r < 0)
        return r;
    arena_release(&c->names_arena);
    c->names_count = node->gpu_count;
    c->names_version = node->plan_version;
    c->names = arena_alloc(&c->names_arena, (size_t)(node->gpu_count + 1) * sizeof(*c->names));
    if (!c->names)
        return -ENOMEM;
    for (text = c->buffer; (line = next_line(&text));) {
        int64_t gpu = next_number(&line);
        int id = identity_find(next_word(&line));

        if (gpu >= 0 && gpu < c->names_count && id >= 0)
            c->names[gpu][id] = keep(&c->names_arena, line);
    }
    return 0;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines + 1;
}

static int by_gpu(const void *a, const void *b)
{
    const struct view_process *x = a, *y = b;

    return x->gpu != y->gpu ? (x->gpu > y->gpu) - (x->gpu < y->gpu)
                            : (x->pid > y->pid) - (x->pid < y->pid);
}

static int read_processes(struct collector *c, struct view_gpu *gpus, int gpu_count)
{
    int r = read_text(c, "gpus/processes");
    struct view_process *list;
    size_t count = 0;
    char *text, *line;

    if (r < 0)
        return r;
    list = arena_alloc(&c->arena, count_lines(c->buffer) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    for (text = c->buffer; (line = next_line(&text)); count++) {
        struct view_process *p = &list[count];

        p->gpu = (int)next_number(&line);
        p->pid = next_number(&line);
        p->memory_bytes = next_number(&line);
        p->utilization_percent = next_number(&line);
        p->workload = keep(&c->arena, next_word(&line));
        p->namespace = keep(&c->arena, next_word(&line));
        p->pod = keep(&c->arena, next_word(&line));
        p->container = keep(&c->arena, next_word(&line));
        p->gi = next_instance(&line);
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

/* Of a GPU whose MIG mode is on: its GPU instances. */
static int read_instances(struct collector *c, struct view_gpu *gpu)
{
    struct view_instance *list;
    char path[64], *text, *line;
    int64_t mode;
    int r;

    if (gpu->lost || metric_read(&gpu->sample, METRIC_MIG_MODE, &mode) < 0 || !mode)
        return 0;
    snprintf(path, sizeof(path), "gpus/%d/mig/instances", gpu->index);
    r = read_text(c, path);
    if (r < 0)
        return r;
    list = arena_alloc(&c->arena, count_lines(c->buffer) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    gpu->instances = list;
    for (text = c->buffer; (line = next_line(&text));) {
        struct view_instance *i = &list[gpu->instance_count];

        i->gi = (int)next_number(&line);
        if (*next_word(&line))
            continue; /* a compute instance in it */
        i->profile = keep(&c->arena, next_word(&line));
        next_word(&line);
        next_word(&line);
        i->multiprocessors = next_number(&line);
        i->memory_bytes = next_number(&line);
        gpu->instance_count++;
    }
    return 0;
}

/* link up bytes_per_second peer peer_number …; the file is there only on boards that have links. */
static int read_links(struct collector *c, struct view_gpu *gpu)
{
    struct view_link *list;
    char path[64], *text, *line;
    int r;

    if (gpu->lost || !c->wants.links)
        return 0;
    snprintf(path, sizeof(path), "gpus/%d/nvlinks", gpu->index);
    r = read_text(c, path);
    if (r < 0)
        return r == -ENOENT || r == -ENODATA ? 0 : r;
    list = arena_alloc(&c->arena, count_lines(c->buffer) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    gpu->links = list;
    for (text = c->buffer; (line = next_line(&text)); gpu->link_count++) {
        struct view_link *l = &list[gpu->link_count];
        const char *peer;
        int number;

        next_word(&line);
        l->up = next_number(&line);
        next_word(&line);
        peer = next_word(&line);
        number = (int)next_number(&line);
        l->peer_gpu = !strcmp(peer, "gpu") ? number : -1;
        l->peer_switch = !strcmp(peer, "switch") ? number : -1;
    }
    return 0;
}

/* --- one view -------------------------------------------------------------------------------- */

/* -EAGAIN: the generation ended meanwhile. */
static int read_gpu(struct collector *c, const struct reader_node *node, int index,
                    struct view_gpu *gpu)
{
    struct reader_gpu page;
    int r = reader_gpu(c->reader, index, &page);

    if (r == -ENODEV || (r == 0 && page.generation != node->generation))
        return -EAGAIN;
    if (r < 0)
        return r;
    gpu->index = index;
    gpu->lost = page.lost;
    gpu->sample = page.sample;
    memcpy(gpu->names, c->names[index], sizeof(gpu->names));
    r = read_instances(c, gpu);
    return r < 0 ? r : read_links(c, gpu);
}

static int read_view(struct collector *c)
{
    struct reader_node node, after;
    struct view_gpu *gpus;
    int r = look(c, &node);

    if (r == 0)
        r = read_names(c, &node);
    if (r < 0)
        return r;
    arena_release(&c->arena);
    gpus = arena_alloc(&c->arena, (size_t)(node.gpu_count + 1) * sizeof(*gpus));
    if (!gpus)
        return -ENOMEM;
    for (int i = 0; i < node.gpu_count && r == 0; i++)
        r = read_gpu(c, &node, i, &gpus[i]);
    if (r == 0)
        r = read_processes(c, gpus, node.gpu_count);
    if (r == 0)
        r = reader_node(c->reader, &after);
    if (r < 0)
        return r;
    c->view = (struct view){
        .generation = node.generation,
        .plan_version = node.plan_version,
        .now_ns = node.now_ns,
        .gpus = gpus,
        .gpu_count = node.gpu_count,
    };
    return after.generation == node.generation ? 0 : -EAGAIN;
}

static int read_incidents(struct collector *c)
{
    if (!c->wants.incidents_ns)
        return 0;
    if (!c->incidents)
        c->incidents = incidents_new();
    if (!c->incidents)
        return -ENOMEM;
    return incidents_follow(c->incidents, c->reader, c->view.now_ns - c->wants.incidents_ns,
                            &c->view.incidents, &c->view.incident_count);
}

int collector_refresh(struct collector *c, const struct view **view, struct why *why)
{
    int r = -EAGAIN;

    c->view = (struct view){ 0 };
    for (int i = 0; i < TRIES && r == -EAGAIN; i++)
        r = read_view(c);
    /* A busy node is not a lost one: what was read last is of two neighbouring instants. */
    if (r == -EAGAIN && c->view.gpus)
        r = 0;
    if (r == 0)
        r = read_incidents(c);
    if (r < 0)
        return no_mount(c, r, why);
    *view = &c->view;
    return 0;
}

int collector_peek(struct collector *c, struct view_stamp *stamp, struct why *why)
{
    struct reader_node node;
    int r = look(c, &node);

    if (r < 0)
        return no_mount(c, r, why);
    *stamp = (struct view_stamp){ c->mount, node.generation };
    return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

struct collector *collector_new(const char *root)
{
    struct collector *c = calloc(1, sizeof(*c));

    if (c)
        c->root = strdup(root);
    if (c && !c->root) {
        free(c);
        return NULL;
    }
    return c;
}

void collector_want(struct collector *c, const struct view_wants *wants)
{
    c->wants = *wants;
}

void collector_free(struct collector *c)
{
    if (!c)
        return;
    forget_mount(c);
    arena_release(&c->arena);
    free(c->buffer);
    free(c->root);
    free(c);
}
