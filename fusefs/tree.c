/*
 * Tree: the rows of node.h as a tree of names. See tree.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/majors.h"
#include "fusefs/tree_branch.h"
#include "sim/plan.h"

enum { NAME_SIZE = 256 };

/* --- places ---------------------------------------------------------------------------------- */

static uint64_t inode(uint64_t entity, uint32_t branch)
{
    return entity << BRANCH_ID_BITS | branch;
}

uint64_t tree_ino(const char *path, uint64_t entity)
{
    return inode(entity, branch_id(path, strlen(path)));
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

static struct entity entity_of(const struct place *p)
{
    return (struct entity){ p->cx.gpu, p->cx.gi, p->cx.ci, p->cx.workload };
}

/* Puts branch b with that entity into place; -ENOENT when it is not there. */
static int place_set(struct place *p, const struct tree_view *view, const struct branch *b,
                     const struct entity *e)
{
    struct entity own;

    place_init(p, view, b);
    if (b->kind == ENTITY_WORKLOAD)
        set_workload(p, e->workload);
    else if (b->kind != ENTITY_NONE)
        tree_set_gpu(p, e->gpu);
    if (b->kind == ENTITY_GI || b->kind == ENTITY_CI)
        set_instance(p, e->gi, b->kind == ENTITY_CI ? e->ci : -1);
    own = entity_of(p);
    p->ino = inode(entity_number(view->world, b->kind, &own), b->id);
    return b->def && b->def->exists && !b->def->exists(&p->cx) ? -ENOENT : 0;
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
    return token_kind(b->token) != ENTITY_NONE;
}

/* Whether branch b has the same name for both. */
static bool same_name(const struct world *w, const struct branch *b, const struct entity *x,
                      const struct entity *y)
{
    const struct gpu_plan *plans = world_gpu_plans(w);

    switch (b->token) {
    case 'r':
        return plans[x->gpu].domain == plans[y->gpu].domain &&
               plans[x->gpu].bus == plans[y->gpu].bus;
    case 'n':
        return plans[x->gpu].node == plans[y->gpu].node;
    case 'j':
        return plans[x->gpu].node_index == plans[y->gpu].node_index;
    case 'g':
        return x->gi == y->gi;
    case 'c':
        return x->ci == y->ci;
    case 'k':
    case 'K':
        return x->gpu == y->gpu && x->gi == y->gi && x->ci == y->ci;
    case 'w':
        return x->workload == y->workload;
    default:
        return x->gpu ==
               y->gpu; /* no two GPUs share an index, a minor number, a UUID or an address */
    }
}

static void count_look(const struct tree_view *view)
{
    if (view->looked)
        ++*view->looked;
}

/* An entity can stand below `parent` when the names on the way to it are its own as well. */
static bool belongs(const struct tree_view *view, const struct place *parent,
                    const struct entity *e)
{
    const struct entity theirs = entity_of(parent);

    count_look(view);
    for (const struct branch *b = parent->node; b; b = b->parent)
        if (opens_entity(b) && !same_name(view->world, b, &theirs, e))
            return false;
    return true;
}

/* Those that branch b may stand for below `parent`: of thousands of GPUs mostly one. */
static struct entities entities_below(const struct tree_view *view, const struct place *parent,
                                      const struct branch *b)
{
    const struct world *w = view->world;
    struct entities all = { .kind = b->kind,
                            .end = (int)w->used[SECTION_GPU_PLANS],
                            .e = entity_none };
    const struct gpu_plan *plan = parent->cx.plan;
    const struct branch *above = parent->node;

    if (parent->cx.gpu < 0)
        return all;
    while (!opens_entity(above))
        above = above->parent;
    if (above->token == 'n') {
        const struct fleet_node *node = plan->node < 0 ? NULL : &world_nodes(w)[plan->node];

        all.at = node ? (int)node->first : 0;
        all.end = node ? (int)(node->first + node->count) : all.end;
    } else if (above->token == 'r') {
        all.order = plan_gpus_by_bus(w);
        all.at = (int)plan_bus_place(w, plan->domain, plan->bus);
        all.end = (int)plan_bus_place(w, plan->domain, plan->bus + 1);
    } else {
        all.at = parent->cx.gpu;
        all.end = all.at + 1;
    }
    return all;
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
    enum entity_kind kind = token_kind(b->token);

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

    count_look(view);
    branch_name(view, b, e, candidate);
    return !strcmp(candidate, name);
}

/* Whether a text is of that form to its end. */
static bool hex_is(const char *text, const char *format, uint32_t parts[4], int count)
{
    int end = 0;
    int n = count == 2 ? sscanf(text, format, &parts[0], &parts[1], &end)
                       : sscanf(text, format, &parts[0], &parts[1], &parts[2], &parts[3], &end);

    return n == count && end && !text[end];
}

/* The GPU that a name can only be of, or -1: there may be thousands, and most paths lead through one. */
static int gpu_called(const struct tree_view *view, const struct place *parent, char token,
                      const char *name)
{
    const struct world *w = view->world;
    const struct gpu_plan *near = parent->cx.plan;
    uint32_t gpus = w->used[SECTION_GPU_PLANS], p[4], place;
    int64_t number = -1;
    int node;

    switch (token) {
    case 'i':
        return parse_i64(name, &number) == 0 && number >= 0 && number < gpus ? (int)number : -1;
    case 'm':
        return parse_i64(name, &number) == 0 ? plan_find_minor(w, number) : -1;
    case 'u':
        return plan_find_uuid(w, name);
    case 'b':
        return hex_is(name, "%x:%x:%x.%x%n", p, 4) ? plan_find_bus(w, p[0], p[1], p[2], p[3]) : -1;
    case 'r':
        place = hex_is(name, "%x:%x%n", p, 2) ? plan_bus_place(w, p[0], p[1]) : gpus;
        return place < gpus ? (int)plan_gpus_by_bus(w)[place] : -1;
    case 'n':
        node = plan_find_node(w, name);
        return node >= 0                         ? (int)world_nodes(w)[node].first
               : gpus && !w->used[SECTION_NODES] ? 0
                                                 : -1;
    case 'j':
        if (parse_i64(name, &number) < 0 || number < 0 || number >= gpus)
            return -1;
        if (near && near->node >= 0)
            number += world_nodes(w)[near->node].first;
        return number < gpus ? (int)number : -1;
    default:
        return -1;
    }
}

/* Only as it is written in a listing: not 01, not +1. */
static int place_called(const struct tree_view *view, const struct place *parent,
                        const struct branch *b, const char *name, const struct entity *e,
                        struct place *place)
{
    return is_called(view, b, e, name) && belongs(view, parent, e) ? place_set(place, view, b, e)
                                                                   : -ENOENT;
}

static int lookup_entity(const struct tree_view *view, const struct place *parent,
                         const struct branch *b, const char *name, struct place *place)
{
    struct entities all;
    struct entity e = entity_none;
    int r = -ENOENT;

    if (strncmp(name, b->name, b->prefix))
        return -ENOENT;
    if (b->kind == ENTITY_GPU)
        e.gpu = gpu_called(view, parent, b->token, name + b->prefix);
    else if (b->kind == ENTITY_WORKLOAD)
        e.workload = plan_find_workload(view->world, name + b->prefix);
    if (b->kind == ENTITY_GPU || b->kind == ENTITY_WORKLOAD)
        return e.gpu >= 0 || e.workload >= 0 ? place_called(view, parent, b, name, &e, place)
                                             : -ENOENT;
    all = entities_below(view, parent, b);
    while (r == -ENOENT && entities_next(view->world, &all))
        r = place_called(view, parent, b, name, &all.e, place);
    return r;
}

/* --- the tree -------------------------------------------------------------------------------- */

int tree_resolve(const struct tree_view *view, uint64_t ino, struct place *place)
{
    const struct branch *b = tree_branch(view->tree, ino & ((UINT64_C(1) << BRANCH_ID_BITS) - 1));
    struct entity e;

    if (!b || !entity_of_number(view->world, b->kind, ino >> BRANCH_ID_BITS, &e))
        return -ENOENT;
    return place_set(place, view, b, &e);
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
    const struct world *w = view->world;
    const struct gpu_plan *plan = &world_gpu_plans(w)[e->gpu < 0 ? 0 : e->gpu];

    if (b->token == 'n')
        return plan->node_index > 0;
    return b->token == 'r' &&
           plan_gpus_by_bus(w)[plan_bus_place(w, plan->domain, plan->bus)] != (uint32_t)e->gpu;
}

int tree_list(const struct tree_view *view, const struct place *directory, tree_add *add,
              void *into)
{
    const struct branch *dir = directory->node;
    const struct entity same = entity_of(directory);
    int r = 0;

    for (const struct branch *b = dir->children; b && r == 0; b = b->next) {
        struct entities all;

        if (!opens_entity(b)) {
            r = list_branch(view, b, &same, add, into);
            continue;
        }
        all = entities_below(view, directory, b);
        while (r == 0 && entities_next(view->world, &all))
            if (belongs(view, directory, &all.e) && !repeats(view, b, &all.e))
                r = list_branch(view, b, &all.e, add, into);
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
