/*
 * Collecting a view from a mount. See view.h.
 *
 * Samples come from the snapshot, a pread each. Names change with the plan only and are kept until then. The rest is
 * in text files: see tables.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/incidents.h"
#include "exporter/tables.h"
#include "exporter/view.h"
#include "fusefs/reader.h"
#include "sim/arena.h"
#include "sim/why.h"

/* A generation can end while it is read; then it is read again, but not for ever. */
enum { TRIES = 8 };

/* A view, and what it is made of. */
struct reading {
    struct arena arena;
    struct view view;
};

struct collector {
    char *root;
    char *name;           /* of its node, or NULL */
    struct tables tables; /* with the reader; that is NULL: the mount is not there, or no longer */
    uint64_t mount;       /* how often it was opened */
    struct incidents *incidents;
    struct view_wants wants;

    struct arena names_arena; /* of one plan_version */
    uint64_t names_version;
    const char *(*names)[IDENTITY_COUNT];
    int names_count;
    bool names_are_old; /* of a mount that is gone */
    struct node_list nodes;

    struct reading all, part;
    bool last_try; /* a GPU of the next generation is better than none */
};

/* --- the mount ------------------------------------------------------------------------------- */

static void forget_mount(struct collector *c)
{
    reader_close(c->tables.reader);
    c->tables.reader = NULL;
    incidents_free(c->incidents);
    c->incidents = NULL;
    c->names_are_old = true;
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

    if (c->tables.reader) {
        r = reader_node(c->tables.reader, node);
        if (r == 0 && reader_is_current(c->tables.reader, c->root))
            return 0;
        forget_mount(c);
    }
    r = reader_open(&c->tables.reader, c->root);
    if (r < 0) {
        c->tables.reader = NULL;
        return r;
    }
    c->mount++;
    return reader_node(c->tables.reader, node);
}

/* --- names ----------------------------------------------------------------------------------- */

/* A GPU of several nodes in a mount is called as on its own. */
static void name_by_node(const char *names[IDENTITY_COUNT])
{
    if (!names[IDENTITY_NODE])
        return;
    names[IDENTITY_INDEX] = names[IDENTITY_MINOR_NUMBER] = names[IDENTITY_NODE_INDEX];
    names[IDENTITY_BUS_ID] = names[IDENTITY_NODE_BUS_ID];
}

/* Whether the GPU is on the same node as the one before it. */
static bool is_on_same_node(const struct collector *c, int gpu)
{
    const char *before = c->names[gpu - 1][IDENTITY_NODE], *own = c->names[gpu][IDENTITY_NODE];

    return before && own ? !strcmp(before, own) : before == own;
}

/* There is always one, if without GPUs. */
static int list_nodes(struct collector *c)
{
    struct view_node *nodes = arena_alloc(&c->names_arena,
                                          (size_t)(c->names_count + 1) * sizeof(*nodes));
    int count = 0;

    if (!nodes)
        return -ENOMEM;
    for (int i = 0; i < c->names_count; i++) {
        const char *name = c->names[i][IDENTITY_NODE];

        if (!i || !is_on_same_node(c, i))
            nodes[count++] = (struct view_node){ .name = name ? name : c->name, .first = i };
        nodes[count - 1].count++;
        name_by_node(c->names[i]);
    }
    if (!count)
        nodes[count++] = (struct view_node){ .name = c->name };
    c->nodes = (struct node_list){ nodes, count, c->nodes.version + 1 };
    return 0;
}

static int read_names(struct collector *c, const struct reader_node *node)
{
    int r;

    if (c->names && !c->names_are_old && c->names_version == node->plan_version &&
        c->names_count == node->gpu_count)
        return 0;
    r = tables_read(&c->tables, "gpus/inventory");
    if (r < 0)
        return r;
    arena_release(&c->names_arena);
    c->nodes.count = 0;
    c->names_are_old = false;
    c->names_count = node->gpu_count;
    c->names_version = node->plan_version;
    c->names = arena_alloc(&c->names_arena, (size_t)(node->gpu_count + 1) * sizeof(*c->names));
    if (!c->names)
        return -ENOMEM;
    tables_names(&c->tables, &c->names_arena, c->names, c->names_count);
    return list_nodes(c);
}

/* --- one view -------------------------------------------------------------------------------- */

/* -EAGAIN: the generation ended meanwhile. Its place is filled in already. */
static int read_gpu(struct collector *c, const struct reader_node *node, struct arena *arena,
                    struct view_gpu *gpu)
{
    struct reader_gpu page;
    int r = reader_gpu(c->tables.reader, gpu->position, &page);

    if (r == -ENODEV || (r == 0 && page.generation != node->generation && !c->last_try))
        return -EAGAIN;
    if (r < 0)
        return r;
    gpu->lost = page.lost;
    gpu->sample = page.sample;
    memcpy(gpu->names, c->names[gpu->position], sizeof(gpu->names));
    r = tables_instances(&c->tables, arena, gpu);
    return r < 0 || !c->wants.links ? r : tables_links(&c->tables, arena, gpu);
}

static int read_gpus(struct collector *c, const struct reader_node *node, struct reading *into,
                     int first_node, int node_count)
{
    struct view *v = &into->view;
    const struct view_node *nodes = &c->nodes.items[first_node];
    int count = nodes[node_count - 1].first + nodes[node_count - 1].count - nodes->first, r = 0;
    struct view_gpu *gpus, *gpu;

    arena_release(&into->arena);
    gpus = gpu = arena_alloc(&into->arena, (size_t)(count + 1) * sizeof(*gpus));
    if (!gpus)
        return -ENOMEM;
    for (int n = 0; n < node_count; n++)
        for (int i = 0; i < nodes[n].count && r == 0; i++, gpu++) {
            gpu->index = i;
            gpu->position = nodes[n].first + i;
            gpu->node = first_node + n;
            r = read_gpu(c, node, &into->arena, gpu);
            if (r == 0 && into == &c->part)
                r = tables_processes(&c->tables, &into->arena, gpu);
        }
    if (r == 0 && into == &c->all)
        r = tables_all_processes(&c->tables, &into->arena, gpus, count);
    v->gpus = gpus;
    v->gpu_count = count;
    return r;
}

/* Everything, or one of the nodes. */
static int read_view(struct collector *c, struct reading *into, int only)
{
    struct reader_node node, after;
    struct view *v = &into->view;
    int r = look(c, &node);

    *v = (struct view){ 0 };
    if (r == 0)
        r = read_names(c, &node);
    if (r == 0 && only >= c->nodes.count)
        return -EAGAIN;
    if (r == 0)
        r = read_gpus(c, &node, into, only < 0 ? 0 : only, only < 0 ? c->nodes.count : 1);
    if (r == 0)
        r = reader_node(c->tables.reader, &after);
    if (r < 0) {
        v->gpus = NULL;
        return r;
    }
    v->generation = node.generation;
    v->plan_version = node.plan_version;
    v->now_ns = node.now_ns;
    v->nodes = c->nodes.items;
    v->node_count = c->nodes.count;
    v->nodes_version = c->nodes.version;
    return after.generation == node.generation ? 0 : -EAGAIN;
}

static int read_incidents(struct collector *c, struct view *v)
{
    if (!c->wants.incidents_ns)
        return 0;
    if (!c->incidents)
        c->incidents = incidents_new();
    if (!c->incidents)
        return -ENOMEM;
    return incidents_follow(c->incidents, c->tables.reader, v->now_ns - c->wants.incidents_ns,
                            &v->incidents, &v->incident_count);
}

static int collect(struct collector *c, struct reading *into, int only, const struct view **view,
                   struct why *why)
{
    int r = -EAGAIN;

    for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
        c->last_try = i == TRIES - 1;
        r = read_view(c, into, only);
    }
    /* A busy node is not a lost one: what was read last is of two neighbouring instants. */
    if (r == -EAGAIN && into->view.gpus)
        r = 0;
    if (r == 0)
        r = read_incidents(c, &into->view);
    if (r < 0)
        return no_mount(c, r, why);
    *view = &into->view;
    return 0;
}

int collector_refresh(struct collector *c, const struct view **view, struct why *why)
{
    return collect(c, &c->all, -1, view, why);
}

int collector_refresh_node(struct collector *c, int node, const struct view **view, struct why *why)
{
    return collect(c, &c->part, node, view, why);
}

int collector_nodes(struct collector *c, struct node_list *nodes, struct why *why)
{
    struct reader_node node;
    int r = look(c, &node);

    if (r == 0)
        r = read_names(c, &node);
    *nodes = c->nodes;
    return r < 0 ? no_mount(c, r, why) : 0;
}

int collector_peek(struct collector *c, struct view_stamp *stamp, int *gpus, struct why *why)
{
    struct reader_node node;
    int r = look(c, &node);

    if (r < 0)
        return no_mount(c, r, why);
    *stamp = (struct view_stamp){ c->mount, node.generation };
    if (gpus)
        *gpus = node.gpu_count;
    return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

struct collector *collector_new(const char *root, const char *name)
{
    struct collector *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->root = strdup(root);
    c->name = name ? strdup(name) : NULL;
    if (!c->root || (name && !c->name)) {
        collector_free(c);
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
    arena_release(&c->names_arena);
    arena_release(&c->all.arena);
    arena_release(&c->part.arena);
    tables_release(&c->tables);
    free(c->name);
    free(c->root);
    free(c);
}
