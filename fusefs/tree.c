/*
 * Tree: the rows of node.h as a tree of names. See tree.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/majors.h"
#include "sim/rng.h"

enum { ID_BITS = 24, NAME_SIZE = 256 };

enum entity_kind { ENTITY_NONE, ENTITY_GPU, ENTITY_GI, ENTITY_CI, ENTITY_WORKLOAD };

/* What a path names: positions, or -1. A compute instance has its GPU instance and its GPU, too. */
struct entity {
    int gpu, gi, ci, workload;
};

static const struct entity nothing = { -1, -1, -1, -1 };

/* One component of a row's path: a literal, or prefix and token. */
struct branch {
    char *name;            /* the component as written; owned */
    size_t prefix;         /* bytes before the token */
    char token;            /* 0: a literal */
    enum entity_kind kind; /* what the inode's entity is */
    uint32_t id;
    const struct node_def *def; /* NULL: a directory */
    struct branch *parent, *children, *next;
};

struct tree {
    struct branch *root;
    struct branch **by_id; /* sorted by id */
    size_t count;
};

/* --- building -------------------------------------------------------------------------------- */

static enum entity_kind kind_of(char token)
{
    switch (token) {
    case 'i':
    case 'm':
    case 'b':
    case 'u':
    case 'r':
    case 'n':
    case 'j':
        return ENTITY_GPU;
    case 'g':
    case 'k':
        return ENTITY_GI;
    case 'c':
    case 'K':
        return ENTITY_CI;
    case 'w':
        return ENTITY_WORKLOAD;
    default:
        return ENTITY_NONE;
    }
}

static uint32_t path_id(const char *path, size_t n)
{
    struct rng r = { 0x66676673 };

    for (size_t i = 0; i < n; i++)
        r.state = (r.state ^ (unsigned char)path[i]) * UINT64_C(0x100000001b3);
    /* 0 and 1 stay free: the root is 1, and no inode is 0. */
    return (uint32_t)(rng_next(&r) % ((UINT64_C(1) << ID_BITS) - 2)) + 2;
}

uint64_t tree_ino(const char *path, uint64_t entity)
{
    return entity << ID_BITS | path_id(path, strlen(path));
}

static struct branch *branch_new(struct branch *parent, const char *path, size_t from, size_t to)
{
    struct branch *b = calloc(1, sizeof(*b)), **last;
    const char *percent;

    if (!b)
        return NULL;
    b->name = strndup(path + from, to - from);
    if (!b->name) {
        free(b);
        return NULL;
    }
    percent = strchr(b->name, '%');
    b->prefix = percent ? (size_t)(percent - b->name) : strlen(b->name);
    b->token = percent ? percent[1] : 0;
    b->kind = percent ? kind_of(b->token) : ENTITY_NONE;
    if (b->kind == ENTITY_NONE)
        b->kind = parent->kind;
    b->id = path_id(path, to);
    b->parent = parent;
    /* In the order of the tables, so that listings read well. */
    for (last = &parent->children; *last; last = &(*last)->next)
        ;
    *last = b;
    return b;
}

static struct branch *branch_find(struct branch *parent, const char *path, size_t from, size_t to)
{
    for (struct branch *b = parent->children; b; b = b->next)
        if (strlen(b->name) == to - from && !memcmp(b->name, path + from, to - from))
            return b;
    return NULL;
}

static int tree_insert(struct tree *t, const struct node_def *def, struct why *why)
{
    struct branch *at = t->root;
    size_t from = 0, to;

    do {
        struct branch *b;

        to = from + strcspn(def->path + from, "/");
        b = branch_find(at, def->path, from, to);
        if (!b) {
            b = branch_new(at, def->path, from, to);
            t->count++;
        }
        if (!b)
            return why_set(why, ENOMEM, "out of memory");
        at = b;
        from = to + 1;
    } while (def->path[to]);
    if (at->def || at->children)
        return why_set(why, EEXIST, "two rows for %s", def->path);
    at->def = def;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const struct branch *x = *(struct branch *const *)a, *y = *(struct branch *const *)b;

    return (x->id > y->id) - (x->id < y->id);
}

static void gather(struct tree *t, struct branch *b)
{
    t->by_id[t->count++] = b;
    for (struct branch *c = b->children; c; c = c->next)
        gather(t, c);
}

static int tree_index(struct tree *t, struct why *why)
{
    t->by_id = calloc(t->count + 1, sizeof(struct branch *));
    if (!t->by_id)
        return why_set(why, ENOMEM, "out of memory");
    t->count = 0;
    gather(t, t->root);
    qsort(t->by_id, t->count, sizeof(struct branch *), by_id);
    for (size_t i = 1; i < t->count; i++)
        if (t->by_id[i]->id == t->by_id[i - 1]->id)
            return why_set(why, EEXIST, "'%s' and '%s' have the same hash: rename one",
                           t->by_id[i]->name, t->by_id[i - 1]->name);
    return 0;
}

struct tree *tree_new(struct why *why)
{
    struct tree *t = calloc(1, sizeof(*t));

    if (t)
        t->root = calloc(1, sizeof(*t->root));
    if (!t || !t->root) {
        why_set(why, ENOMEM, "out of memory");
        goto fail;
    }
    t->root->id = TREE_ROOT;
    t->count = 1;
    for (int i = 0; node_tables[i]; i++)
        for (const struct node_def *def = node_tables[i]; def->path; def++)
            if (tree_insert(t, def, why) < 0)
                goto fail;
    if (tree_index(t, why) < 0)
        goto fail;
    return t;

fail:
    tree_free(t);
    return NULL;
}

static void branch_free(struct branch *b)
{
    while (b) {
        struct branch *next = b->next;

        branch_free(b->children);
        free(b->name);
        free(b);
        b = next;
    }
}

void tree_free(struct tree *t)
{
    if (!t)
        return;
    branch_free(t->root);
    free(t->by_id);
    free(t);
}

/* --- entities -------------------------------------------------------------------------------- */

static int gpu_of_id(const struct world *w, uint64_t id)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint32_t n = w->used[SECTION_GPU_PLANS];

    /* Ids are given out in order: most GPUs are where their id says. */
    if (id && id <= n && plans[id - 1].id == id)
        return (int)id - 1;
    for (uint32_t i = 0; i < n; i++)
        if (plans[i].id == id)
            return (int)i;
    return -1;
}

static int workload_of_id(const struct world *w, uint64_t id)
{
    const struct workload *workloads = world_workloads(w);
    uint32_t low = 0, high = w->used[SECTION_WORKLOADS];

    /* Most are in the order of their ids: new ones go to the end, and so do those that were changed. */
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (workloads[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < w->used[SECTION_WORKLOADS] && workloads[low].id == id)
        return (int)low;
    for (low = 0; low < w->used[SECTION_WORKLOADS]; low++)
        if (workloads[low].id == id)
            return (int)low;
    return -1;
}

void tree_set_gpu(struct place *p, int gpu)
{
    const struct world *w = p->cx.world;

    p->cx.gpu = gpu;
    p->cx.g = &world_gpus(w)[gpu];
    p->cx.plan = &world_gpu_plans(w)[gpu];
    p->cx.model = &world_models(w)[p->cx.plan->model];
}

static void set_instance(struct place *p, int gi, int ci)
{
    p->cx.gi = gi;
    p->cx.ci = ci;
    p->cx.instance = &p->cx.g->gis[gi];
    p->cx.mig = &p->cx.model->mig.items[p->cx.instance->profile];
}

static void set_workload(struct place *p, int workload)
{
    p->cx.workload = workload;
    p->cx.work = &world_workloads(p->cx.world)[workload];
    p->cx.run = &world_runs(p->cx.world)[workload];
}

static void place_init(struct place *p, const struct tree_view *view, const struct branch *b)
{
    *p = (struct place){
        .directory = !b->def,
        .node = b,
        .cx = { .def = b->def,
                .host = view->host,
                .world = view->world,
                .store = view->store,
                .gpu = -1,
                .gi = -1,
                .ci = -1,
                .workload = -1 },
    };
}

/* The number that stands for an entity in inodes. */
static uint64_t entity_number(const struct world *w, enum entity_kind kind, const struct entity *e)
{
    switch (kind) {
    case ENTITY_GPU:
        return world_gpu_plans(w)[e->gpu].id;
    case ENTITY_GI:
    case ENTITY_CI:
        return world_gpu_plans(w)[e->gpu].id << 8 | (uint64_t)e->gi << 4 | (uint64_t)(e->ci + 1);
    case ENTITY_WORKLOAD:
        return world_workloads(w)[e->workload].id;
    case ENTITY_NONE:
        break;
    }
    return 0;
}

static bool instance_is_there(const struct world *w, enum entity_kind kind, const struct entity *e)
{
    const struct mig_gi *gi = &world_gpus(w)[e->gpu].gis[e->gi];

    return gi->used && (kind == ENTITY_GI || gi->cis[e->ci].slices);
}

/* The entity behind a number, as it is now. */
static bool entity_of_number(const struct world *w, enum entity_kind kind, uint64_t number,
                             struct entity *e)
{
    *e = nothing;
    switch (kind) {
    case ENTITY_NONE:
        return number == 0;
    case ENTITY_GPU:
        e->gpu = gpu_of_id(w, number);
        return e->gpu >= 0;
    case ENTITY_WORKLOAD:
        e->workload = workload_of_id(w, number);
        return e->workload >= 0;
    case ENTITY_GI:
    case ENTITY_CI:
        e->gpu = gpu_of_id(w, number >> 8);
        e->gi = (int)(number >> 4 & 0xf);
        e->ci = (int)(number & 0xf) - 1;
        return e->gpu >= 0 && e->gi < MIG_GIS_MAX && e->ci < MIG_CIS_MAX &&
               (kind == ENTITY_GI) == (e->ci < 0) && instance_is_there(w, kind, e);
    }
    return false;
}

/* Steps to the next entity of a kind, beginning with the first from `nothing`. */
static bool entity_next(const struct world *w, enum entity_kind kind, struct entity *e)
{
    int gpus = (int)w->used[SECTION_GPU_PLANS];

    if (kind == ENTITY_WORKLOAD)
        return ++e->workload < (int)w->used[SECTION_WORKLOADS];
    if (kind == ENTITY_GPU)
        return ++e->gpu < gpus;
    if (e->gpu < 0)
        *e = (struct entity){ 0, kind == ENTITY_CI ? 0 : -1, -1, -1 };
    for (; e->gpu < gpus; e->gpu++, e->gi = kind == ENTITY_CI ? 0 : -1, e->ci = -1) {
        if (!mig_any(&world_gpus(w)[e->gpu]))
            continue;
        if (kind == ENTITY_GI) {
            while (++e->gi < MIG_GIS_MAX)
                if (instance_is_there(w, kind, e))
                    return true;
            continue;
        }
        for (; e->gi < MIG_GIS_MAX; e->gi++, e->ci = -1)
            while (++e->ci < MIG_CIS_MAX)
                if (instance_is_there(w, kind, e))
                    return true;
    }
    return false;
}

/* Puts branch b with that entity into place; -ENOENT when it is not there. */
static int place_set(struct place *p, const struct tree_view *view, const struct branch *b,
                     const struct entity *e)
{
    place_init(p, view, b);
    if (b->kind == ENTITY_WORKLOAD)
        set_workload(p, e->workload);
    else if (b->kind != ENTITY_NONE)
        tree_set_gpu(p, e->gpu);
    if (b->kind == ENTITY_GI || b->kind == ENTITY_CI)
        set_instance(p, e->gi, b->kind == ENTITY_CI ? e->ci : -1);
    p->ino = entity_number(view->world, b->kind,
                           &(struct entity){ p->cx.gpu, p->cx.gi, p->cx.ci, p->cx.workload })
                 << ID_BITS |
             b->id;
    return b->def && b->def->exists && !b->def->exists(&p->cx) ? -ENOENT : 0;
}

static struct entity entity_of(const struct place *p)
{
    return (struct entity){ p->cx.gpu, p->cx.gi, p->cx.ci, p->cx.workload };
}

/* --- names ----------------------------------------------------------------------------------- */

/* The node that a GPU is on. */
static const char *node_name(const struct world *w, const struct gpu_plan *g)
{
    return g->node < 0 ? w->node_plan.name : world_nodes(w)[g->node].name;
}

/* The name of branch b for an entity. */
static void branch_name(const struct tree_view *view, const struct branch *b,
                        const struct entity *e, char name[NAME_SIZE])
{
    const struct gpu_plan *g = &world_gpu_plans(view->world)[e->gpu < 0 ? 0 : e->gpu];
    int n = snprintf(name, NAME_SIZE, "%.*s", (int)b->prefix, b->name);
    char *rest = name + n;
    size_t room = NAME_SIZE - (size_t)n;

    switch (b->token) {
    case 'i':
        snprintf(rest, room, "%d", e->gpu);
        break;
    case 'm':
        snprintf(rest, room, "%d", g->minor);
        break;
    case 'u':
        snprintf(rest, room, "%s", g->uuid);
        break;
    case 'b':
        snprintf(rest, room, "%04x:%02x:%02x.%x", g->domain, g->bus, g->device, g->function);
        break;
    case 'r':
        snprintf(rest, room, "%04x:%02x", g->domain, g->bus);
        break;
    case 'n':
        snprintf(rest, room, "%s", node_name(view->world, g));
        break;
    case 'j':
        snprintf(rest, room, "%d", g->node_index);
        break;
    case 'g':
        snprintf(rest, room, "%d", e->gi);
        break;
    case 'c':
        snprintf(rest, room, "%d", e->ci);
        break;
    case 'k':
    case 'K':
        snprintf(rest, room, "%d",
                 caps_instance_minor(g->minor, e->gi, b->token == 'K' ? e->ci : -1));
        break;
    case 'w':
        snprintf(rest, room, "%s", world_workloads(view->world)[e->workload].name);
        break;
    case 'v':
        snprintf(rest, room, "%s", view->world->node_plan.driver_version);
        break;
    default:
        break;
    }
}

/* Whether this token says more than its parent's: a new entity rather than the same one's other name. */
static bool opens_entity(const struct branch *b)
{
    return kind_of(b->token) != ENTITY_NONE;
}

/* An entity can stand below `parent` when the names on the way to it are its own as well. */
static bool belongs(const struct tree_view *view, const struct place *parent,
                    const struct entity *e)
{
    const struct entity theirs_is = entity_of(parent);
    char theirs[NAME_SIZE], own[NAME_SIZE];

    for (const struct branch *b = parent->node; b; b = b->parent) {
        if (!opens_entity(b))
            continue;
        branch_name(view, b, &theirs_is, theirs);
        branch_name(view, b, e, own);
        if (strcmp(theirs, own))
            return false;
    }
    return true;
}

/* A directory that exists only through entities is there when something is in it. */
static int stop_at_once(void *into, const char *name, const struct place *place)
{
    (void)into;
    (void)name;
    (void)place;
    return 1;
}

/* GPUs and workloads come and go in directories that stay; MIG instances bring theirs along. */
static bool opens_lasting(const struct branch *b)
{
    enum entity_kind kind = kind_of(b->token);

    return kind == ENTITY_GPU || kind == ENTITY_WORKLOAD;
}

static bool is_there(const struct tree_view *view, const struct place *p)
{
    const struct branch *b = p->node;

    if (!p->directory || b->kind == ENTITY_WORKLOAD || !b->parent)
        return true;
    /*
     * What belongs to a GPU is there while something is in it: all of it vanishes with the GPU.
     * Directories above GPUs and workloads stay when those are gone, as the kernel's do.
     */
    for (const struct branch *c = b->children; c; c = c->next)
        if (c->def && !c->token ? !c->def->exists
                                : b->kind == ENTITY_NONE && (opens_lasting(c) || !c->def))
            return true;
    return tree_list(view, p, stop_at_once, NULL) != 0;
}

static bool is_called(const struct tree_view *view, const struct branch *b, const struct entity *e,
                      const char *name)
{
    char candidate[NAME_SIZE];

    /* Of these there may be very many, and each that is made is looked for first. */
    if (b->token == 'w')
        return !strcmp(name + b->prefix, world_workloads(view->world)[e->workload].name);
    branch_name(view, b, e, candidate);
    return !strcmp(candidate, name);
}

/* The GPU of a name that is its index: there may be thousands, and most paths lead through one. */
static bool gpu_called(const struct tree_view *view, const char *name, struct entity *e)
{
    int64_t index;

    if (parse_i64(name, &index) < 0 || index < 0 || index >= view->world->used[SECTION_GPU_PLANS])
        return false;
    e->gpu = (int)index;
    return true;
}

static int lookup_entity(const struct tree_view *view, const struct place *parent,
                         const struct branch *b, const char *name, struct place *place)
{
    struct entity e = nothing;

    if (strncmp(name, b->name, b->prefix))
        return -ENOENT;
    if (b->token == 'i') {
        /* Only as it is written in a listing: not 01, not +1. */
        if (gpu_called(view, name + b->prefix, &e) && is_called(view, b, &e, name) &&
            belongs(view, parent, &e))
            return place_set(place, view, b, &e);
        return -ENOENT;
    }
    while (entity_next(view->world, b->kind, &e))
        if (is_called(view, b, &e, name) && belongs(view, parent, &e))
            return place_set(place, view, b, &e);
    return -ENOENT;
}

/* --- the tree -------------------------------------------------------------------------------- */

int tree_resolve(const struct tree_view *view, uint64_t ino, struct place *place)
{
    struct branch key = { .id = (uint32_t)(ino & ((UINT64_C(1) << ID_BITS) - 1)) };
    const struct branch *wanted = &key, *const * found;
    struct entity e;

    found = bsearch(&wanted, view->tree->by_id, view->tree->count, sizeof(struct branch *), by_id);
    if (!found || !entity_of_number(view->world, (*found)->kind, ino >> ID_BITS, &e))
        return -ENOENT;
    return place_set(place, view, *found, &e);
}

int tree_lookup(const struct tree_view *view, const struct place *parent, const char *name,
                struct place *place)
{
    const struct branch *dir = parent->node;
    const struct entity same = entity_of(parent);
    char candidate[NAME_SIZE];
    int r = -ENOENT;

    if (!parent->directory)
        return -ENOTDIR;
    for (const struct branch *b = dir->children; b && r == -ENOENT; b = b->next) {
        if (opens_entity(b)) {
            r = lookup_entity(view, parent, b, name, place);
        } else {
            if (b->token)
                branch_name(view, b, &same, candidate);
            if (!strcmp(b->token ? candidate : b->name, name))
                r = place_set(place, view, b, &same);
        }
    }
    return r == 0 && !is_there(view, place) ? -ENOENT : r;
}

static int list_branch(const struct tree_view *view, const struct branch *b, const struct entity *e,
                       tree_add *add, void *into)
{
    char name[NAME_SIZE];
    struct place p;

    if (place_set(&p, view, b, e) < 0 || !is_there(view, &p))
        return 0;
    branch_name(view, b, e, name);
    return add(into, name, &p);
}

/* Only PCI roots and nodes are shared by neighbours: each is listed with the first of them. */
static bool repeats(const struct tree_view *view, const struct branch *b, const struct entity *e)
{
    const struct gpu_plan *plans = world_gpu_plans(view->world);

    if (b->token == 'n')
        return plans[e->gpu].node_index > 0;
    for (int i = 0; b->token == 'r' && i < e->gpu; i++)
        if (plans[i].domain == plans[e->gpu].domain && plans[i].bus == plans[e->gpu].bus)
            return true;
    return false;
}

int tree_list(const struct tree_view *view, const struct place *directory, tree_add *add,
              void *into)
{
    const struct branch *dir = directory->node;
    const struct entity same = entity_of(directory);
    int r = 0;

    for (const struct branch *b = dir->children; b && r == 0; b = b->next) {
        struct entity e = nothing;

        if (!opens_entity(b)) {
            r = list_branch(view, b, &same, add, into);
            continue;
        }
        while (r == 0 && entity_next(view->world, b->kind, &e))
            if (belongs(view, directory, &e) && !repeats(view, b, &e))
                r = list_branch(view, b, &e, add, into);
    }
    return r;
}

uint64_t tree_parent(const struct tree_view *view, const struct place *place)
{
    const struct branch *b = place->node;
    const struct entity same = entity_of(place);
    struct place up;

    if (!b->parent || place_set(&up, view, b->parent, &same) < 0)
        return TREE_ROOT;
    return up.ino;
}

static int count_directory(void *into, const char *name, const struct place *place)
{
    (void)name;
    *(unsigned *)into += place->directory;
    return 0;
}

unsigned tree_links(const struct tree_view *view, const struct place *place)
{
    unsigned links = 2;

    if (tree_holds_workloads(place))
        return links + view->world->used[SECTION_WORKLOADS]; /* there may be very many */
    tree_list(view, place, count_directory, &links);
    return links;
}

static bool branch_lasts(const struct branch *b)
{
    if (b->def)
        return !b->def->exists;
    for (const struct branch *c = b->children; c; c = c->next)
        if (opens_lasting(c) && b->kind == ENTITY_NONE)
            return true;
        else if (!opens_entity(c) && branch_lasts(c))
            return true;
    return false;
}

bool tree_lasts(const struct place *place)
{
    return branch_lasts(place->node);
}

bool tree_holds_workloads(const struct place *place)
{
    const struct branch *b = place->node;

    return place->directory && b->children && b->children->token == 'w';
}

bool tree_is_workload(const struct place *place)
{
    const struct branch *b = place->node;

    return place->directory && b->token == 'w';
}

uint32_t tree_mode(const struct place *place)
{
    const struct node_plan *n = &place->cx.world->node_plan;
    const struct node_def *def = place->cx.def;

    if (tree_holds_workloads(place))
        return S_IFDIR | n->workloads_mode;
    if (!def)
        return S_IFDIR | 0755;
    if (def->flags & NODE_DEVICE)
        return (place->cx.host->dev_mode == DEV_FILE ? S_IFREG : S_IFCHR) |
               (def->mode ? def->mode : n->dev_mode);
    if (def->flags & NODE_CONTROL)
        return S_IFREG | n->control_mode;
    return (def->mode & S_IFMT ? 0 : S_IFREG) | def->mode;
}
