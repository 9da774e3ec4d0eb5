/*
 * Sources: the mounts that are served. See sources.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/log.h"
#include "sim/why.h"

void source_drop(struct source *source)
{
    family_set_release(&source->set);
    source->view = (struct view){ 0 };
    source->stamp = (struct view_stamp){ 0 };
}

static void source_free(struct source *source)
{
    if (!source)
        return;
    source_drop(source);
    collector_free(source->collector);
    free(source->name);
    free(source->root);
    free(source);
}

/* NULL when out of memory. */
static struct source *source_new(const char *root, const char *name)
{
    struct source *source = calloc(1, sizeof(*source));
    int r = 0;

    if (!source)
        return NULL;
    if (name)
        r = asprintf(&source->root, "%s/%s", root, name);
    else
        source->root = strdup(root);
    if (r < 0)
        source->root = NULL;
    source->name = name ? strdup(name) : NULL;
    if (source->root && (source->name || !name))
        source->collector = collector_new(source->root, name);
    if (!source->collector) {
        source_free(source);
        return NULL;
    }
    return source;
}

/* --- mounts that come and go ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct source *x = *(struct source *const *)a, *y = *(struct source *const *)b;

    return strcmp(x->name, y->name);
}

static struct source *source_called(const struct sources *s, size_t count, const char *name)
{
    struct source key = { .name = (char *)(uintptr_t)name }, *wanted = &key, **found;

    found = count ? bsearch(&wanted, s->items, count, sizeof(struct source *), by_name) : NULL;
    return found ? *found : NULL;
}

static int add_source(struct sources *s, const char *name, const struct view_wants *wants)
{
    struct source **items = realloc(s->items, (s->count + 1) * sizeof(struct source *));
    struct source *source = items ? source_new(s->directory, name) : NULL;

    s->items = items ? items : s->items;
    if (!source)
        return -ENOMEM;
    collector_want(source->collector, wants);
    source->is_there = true;
    s->items[s->count++] = source;
    return 0;
}

/* Those that were known before come first and are sorted: they are looked for among themselves. */
static int scan_entries(struct sources *s, DIR *dir, const struct view_wants *wants)
{
    size_t known = s->count;
    const struct dirent *entry;
    int r = 0;

    while (r == 0 && (entry = readdir(dir))) {
        struct source *source;

        if (*entry->d_name == '.' ||
            (entry->d_type != DT_DIR && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN))
            continue;
        source = source_called(s, known, entry->d_name);
        if (source)
            source->is_there = true;
        else if (s->count < SOURCES_MAX)
            r = add_source(s, entry->d_name, wants);
    }
    return r;
}

static size_t drop_missing(struct sources *s)
{
    size_t kept = 0, dropped;

    for (size_t i = 0; i < s->count; i++)
        if (s->items[i]->is_there)
            s->items[kept++] = s->items[i];
        else
            source_free(s->items[i]);
    dropped = s->count - kept;
    s->count = kept;
    return dropped;
}

int sources_scan(struct sources *s, const struct view_wants *wants, struct why *why)
{
    size_t before = s->count, added, dropped;
    DIR *dir = s->directory ? opendir(s->directory) : NULL;
    int r = 0, err = errno;

    if (!s->directory)
        return 0;
    for (size_t i = 0; i < s->count; i++)
        s->items[i]->is_there = false;
    if (dir)
        r = scan_entries(s, dir, wants);
    else
        r = why_set(why, err, "cannot read '%s': %s", s->directory, strerror(err));
    if (dir)
        closedir(dir);
    added = s->count - before;
    dropped = drop_missing(s);
    if (added)
        qsort(s->items, s->count, sizeof(struct source *), by_name);
    s->changed |= added || dropped;
    return r < 0 ? r : added || dropped;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* A node among those of all sources. */
struct claim {
    const char *name;
    size_t source;
    struct view_node *node;
};

static int claim_order(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->source > y->source) - (x->source < y->source);
}

/* Without memory for it nothing is hidden, and Prometheus will say that there are duplicates. */
static void hide_twins(struct sources *s)
{
    size_t room = 0, count = 0;
    struct claim *claims;

    for (size_t i = 0; i < s->count; i++)
        room += (size_t)s->items[i]->nodes.count;
    claims = calloc(room + 1, sizeof(*claims));
    for (size_t i = 0; claims && i < s->count; i++)
        for (int n = 0; n < s->items[i]->nodes.count; n++) {
            struct view_node *node = &s->items[i]->nodes.items[n];

            node->hidden = false;
            claims[count++] = (struct claim){ node->name, i, node };
        }
    if (claims)
        qsort(claims, count, sizeof(*claims), claim_order);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(claims[i - 1].name, claims[i].name)) {
            claims[i].node->hidden = true;
            log_line(LOG_WARN, "'%s' and '%s' both have a node '%s': the first counts",
                     s->items[claims[i - 1].source]->root, s->items[claims[i].source]->root,
                     claims[i].name);
        }
    free(claims);
}

bool sources_look(struct sources *s)
{
    bool changed = s->changed, dropped = false;

    s->changed = false;
    for (size_t i = 0; i < s->count; i++) {
        struct source *source = s->items[i];
        uint64_t version = source->nodes.version;
        struct why why = { 0 };

        /* One that is not there keeps its nodes: they are known, and do not answer. */
        collector_nodes(source->collector, &source->nodes, &why);
        why_release(&why);
        changed |= version != source->nodes.version;
    }
    if (changed && s->directory)
        hide_twins(s);
    for (size_t i = 0; i < s->count; i++) {
        struct source *source = s->items[i];

        if (!source->stamp.mount ||
            (!(changed && s->directory) && source->view.nodes_version == source->nodes.version))
            continue;
        source_drop(source);
        dropped = true;
    }
    return dropped;
}

bool sources_find(const struct sources *s, const char *name, const char *unnamed,
                  struct source **source, int *node)
{
    for (size_t i = 0; i < s->count; i++)
        for (int n = 0; n < s->items[i]->nodes.count; n++) {
            const struct view_node *at = &s->items[i]->nodes.items[n];

            if (at->hidden || strcmp(at->name ? at->name : unnamed, name))
                continue;
            *source = s->items[i];
            *node = n;
            return true;
        }
    return false;
}

/* --- life ------------------------------------------------------------------------------------ */

int sources_init(struct sources *s, const char *root, const char *directory)
{
    struct source *source;

    *s = (struct sources){ .directory = directory };
    if (directory)
        return 0;
    source = source_new(root, NULL);
    s->items = source ? malloc(sizeof(struct source *)) : NULL;
    if (!s->items) {
        source_free(source);
        return -ENOMEM;
    }
    s->items[s->count++] = source;
    return 0;
}

void sources_release(struct sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        source_free(s->items[i]);
    free(s->items);
    *s = (struct sources){ 0 };
}
