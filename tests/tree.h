/*
 * Tree: the files of a simulated node, seen through the tree without a mount.
 *
 *     tree_up();
 *     mount_node("gpus: {count: 1}\n");
 *     is_str(cat("proc/driver/nvidia/registry"), "Binary: \"\"\n", "registry");
 *     tree_down();
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include "fusefs/nodes.h"
#include "fusefs/tree.h"
#include "tests/node.h"

static struct tree *tree;
static struct sim *sim; /* of the node that is looked at */
static struct host host = { .dev_mode = DEV_CHAR, .cpus = 40 };
static uint64_t looked;     /* how many GPUs and workloads were looked at so far */
static struct text content; /* of the file that was read last */

/* Another node takes the place of the one before. */
static inline void mount_node(const char *yaml)
{
    if (sim)
        sim_free(sim);
    sim = node_new(yaml);
}

static inline struct tree_view view_now(void)
{
    return (struct tree_view){ tree, &host, sim_store(sim), sim_world(sim), &looked };
}

/* Finds a path without following links: 0 or -errno. */
static inline int find(const char *path, struct place *place)
{
    struct tree_view view = view_now();
    int r = tree_resolve(&view, TREE_ROOT, place);

    while (r == 0 && *path) {
        size_t n = strcspn(path, "/");
        struct place parent = *place;
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        r = tree_lookup(&view, &parent, name, place);
        path += n + (path[n] == '/');
    }
    return r;
}

static inline bool exists(const char *path)
{
    struct place place;

    return find(path, &place) == 0;
}

static inline int render(const struct place *place)
{
    text_cut(&content, 0);
    return place->cx.def->show(&place->cx, &content);
}

/* The content of a file or the target of a link; NULL when there is none. Valid until the next. */
static inline const char *cat(const char *path)
{
    struct place place;

    if (find(path, &place) < 0 || place.directory || render(&place) < 0)
        return NULL;
    return text_str(&content);
}

/* Goes along a path from the directory `at`, through links; false where it leads nowhere. */
static inline bool enter(struct text *at, const char *path, int links)
{
    bool there = true;

    for (size_t n; there && *path; path += n + (path[n] == '/')) {
        size_t before = at->length;
        struct place place;

        n = strcspn(path, "/");
        if (n == 2 && !strncmp(path, "..", 2)) {
            const char *slash = strrchr(text_str(at), '/');

            text_cut(at, slash ? (size_t)(slash - at->data) : 0);
            continue;
        }
        text_addf(at, "%s%.*s", before ? "/" : "", (int)n, path);
        there = find(text_str(at), &place) == 0;
        if (there && S_ISLNK(tree_mode(&place))) {
            char *target = strdup(cat(text_str(at)));

            text_cut(at, before);
            there = links > 0 && enter(at, target, links - 1);
            free(target);
        }
    }
    return there;
}

/* The path without links and dots, or NULL where one leads nowhere. Valid until the next. */
static inline const char *follow(const char *path)
{
    static char canonical[256];
    struct text at = TEXT_INIT;
    bool there = enter(&at, path, 8);

    snprintf(canonical, sizeof(canonical), "%s", text_str(&at));
    text_release(&at);
    return there ? canonical : NULL;
}

/* Once, before the first node. */
static inline void tree_up(void)
{
    struct why why = { 0 };

    tree = tree_new(&why);
    if (!tree)
        bail("%s", why_text(&why));
}

static inline void tree_down(void)
{
    if (sim)
        sim_free(sim);
    tree_free(tree);
    text_release(&content);
}

#endif
