/*
 * Links: who is connected to whom over NVLink. See links.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/links.h"

/* Boards with links meet in groups of this size where every GPU reaches every other. */
enum { GROUP = 8, SWITCHES_MAX = 6 };

struct wiring {
    const struct gpu_entry *entries;
    struct gpu_plan *plans;
    int count;
};

static int free_link(const struct wiring *w, int gpu)
{
    for (int l = 0; l < w->entries[gpu].model->nvlink.links; l++)
        if (w->plans[gpu].links[l].peer == LINK_NONE)
            return l;
    return -1;
}

/* As many links as both ends still have, at most n. */
static void connect(const struct wiring *w, int a, int b, int64_t n)
{
    for (; n > 0; n--) {
        int la = free_link(w, a), lb = free_link(w, b);

        if (la < 0 || lb < 0 || a == b)
            return;
        w->plans[a].links[la] = (struct link_plan){ LINK_GPU, (uint8_t)lb, (int16_t)b };
        w->plans[b].links[lb] = (struct link_plan){ LINK_GPU, (uint8_t)la, (int16_t)a };
    }
}

static int64_t links_of(const struct wiring *w, int gpu)
{
    return w->entries[gpu].model->nvlink.links;
}

/* Generations of boards came with so many switches. */
static int switches_of(const struct gpu_model *m)
{
    switch (m->nvlink.version) {
    case 4:
        return 4;
    case 5:
        return 2;
    default:
        return 6;
    }
}

static void connect_switches(const struct wiring *w, int gpu)
{
    const struct gpu_model *m = w->entries[gpu].model;
    int switches = switches_of(m), node = w->entries[gpu].node_number;
    int before = node > 0 ? node * SWITCHES_MAX : 0; /* those of other nodes */

    for (int l = 0; l < m->nvlink.links; l++)
        w->plans[gpu].links[l] = (struct link_plan){ LINK_SWITCH, (uint8_t)(gpu % 64),
                                                     (int16_t)(before + l % switches) };
}

/* Members of the group of `gpu`: [first, behind). Links end with a node. */
static void group_of(const struct wiring *w, int gpu, int *first, int *behind)
{
    *first = gpu - w->entries[gpu].node_index % GROUP;
    *behind = gpu + 1;
    while (*behind < w->count && *behind < *first + GROUP && w->entries[*behind].node_index)
        ++*behind;
}

/* Only boards of a kind have plugs that fit. */
static bool fit(const struct wiring *w, int a, int b)
{
    const struct model_nvlink *x = &w->entries[a].model->nvlink, *y = &w->entries[b].model->nvlink;

    return x->version == y->version && x->switched == y->switched;
}

static void connect_mesh(const struct wiring *w, int gpu)
{
    int first, behind;

    group_of(w, gpu, &first, &behind);
    for (int peer = gpu + 1; peer < behind; peer++)
        if (fit(w, gpu, peer))
            connect(w, gpu, peer,
                    links_of(w, gpu) / (behind - first - 1)
                        ? links_of(w, gpu) / (behind - first - 1)
                        : 1);
}

static void connect_ring(const struct wiring *w, int gpu)
{
    int first, behind, next;

    group_of(w, gpu, &first, &behind);
    next = gpu + 1 < behind ? gpu + 1 : first;
    if (fit(w, gpu, next))
        connect(w, gpu, next, links_of(w, gpu) / 2);
}

static void connect_pair(const struct wiring *w, int gpu)
{
    int first, behind;

    group_of(w, gpu, &first, &behind);
    if (w->entries[gpu].node_index % 2 == 0 && gpu + 1 < behind && fit(w, gpu, gpu + 1))
        connect(w, gpu, gpu + 1, links_of(w, gpu));
}

static void connect_by(const struct wiring *w, enum nvlink_topology topology, int gpu)
{
    switch (topology) {
    case NVLINK_AUTO:
        connect_by(w, w->entries[gpu].model->nvlink.switched ? NVLINK_SWITCH : NVLINK_MESH, gpu);
        break;
    case NVLINK_SWITCH:
        connect_switches(w, gpu);
        break;
    case NVLINK_MESH:
        connect_mesh(w, gpu);
        break;
    case NVLINK_RING:
        connect_ring(w, gpu);
        break;
    case NVLINK_PAIRS:
        connect_pair(w, gpu);
        break;
    case NVLINK_NONE:
        break;
    }
}

void links_connect(const struct nvlink_spec *spec, const struct gpu_entry *entries, int count,
                   struct gpu_plan *plans)
{
    const struct wiring w = { entries, plans, count };
    const struct nvlink_pair *pairs = spec->links.items;

    for (size_t i = 0; i < spec->links.count; i++)
        connect(&w, (int)pairs[i].from, (int)pairs[i].to, pairs[i].count);
    if (spec->links.count)
        return;
    for (int gpu = 0; gpu < count; gpu++)
        if (links_of(&w, gpu))
            connect_by(&w, (enum nvlink_topology)spec->topology, gpu);
}
