/*
 * Stage: what is served now. Collects, exposes and renders once for each generation of the mounts, however many
 * ask for it. Of a single node only that is collected, and rendered for who asks.
 *
 * A page is the bytes of one format, of one generation; whoever takes one puts it back. New formats are rows
 * of the table in stage.c. Everything here may be called from any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_STAGE_H
#define EXPORTER_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/expose.h"

struct stage;
struct why;

enum page_format { PAGE_TEXT, PAGE_OPENMETRICS, PAGE_JSON, PAGE_FORMATS };
enum page_coding { PAGE_PLAIN, PAGE_GZIP, PAGE_CODINGS };

struct page {
    const char *content_type;
    enum page_coding coding;
    char *data; /* owned, until something is attached: that frees it */
    size_t length;
    int references; /* guarded by the stage */
    /* What a server has made of the bytes, made once. It may need them longer than the page is kept. */
    void *attached;
    void (*detach)(void *attached);
};

struct stage_options {
    const char *root;          /* of the mount */
    const char *roots;         /* a directory of mounts, instead; NULL: none */
    struct wishes wishes;      /* what it points to outlives the stage */
    const char *counters_file; /* NULL: the identity's own; read again when it changes */
    int64_t interval_ns; /* 0: every generation; otherwise collected no more often than that */
};

/* NULL with a sentence. */
struct stage *stage_new(const struct stage_options *options, struct why *why);
void stage_free(struct stage *stage);

/*
 * The page of what the mounts, or one node of them (NULL: all), say now. 0 or -errno with a sentence; -ESRCH when
 * there is no such node.
 */
int stage_take(struct stage *stage, const char *node, enum page_format format,
               enum page_coding coding, struct page **page, struct why *why);
void stage_put(struct stage *stage, struct page *page);

/* Makes page->attached unless it is there: `attach` runs at most once for a page, and takes over its bytes. */
void *stage_attach(struct stage *stage, struct page *page, void *(*attach)(struct page *page),
                   void (*detach)(void *attached));

/*
 * Calls with what there is now, once for each mount; nothing of it may be kept. 0, what `visit` returns, or -errno
 * with a sentence.
 */
typedef int stage_visitor(void *context, const struct view *view, const struct family_set *set);
int stage_visit(struct stage *stage, stage_visitor *visit, void *context, struct why *why);

/* Calls with the name of every node, also of those that do not answer now. 0 or -errno with a sentence. */
typedef void stage_node(void *context, const char *name);
int stage_nodes(struct stage *stage, stage_node *add, void *context, struct why *why);

/* Whether it serves the mounts of a directory. */
bool stage_has_several(const struct stage *stage);

/* How a mount is doing. */
struct stage_health {
    const char *root, *error; /* NULL: it answers */
    uint64_t generation;
    int gpu_count;
};

/* Calls for each mount. 0 when one of them answers, or -errno with a sentence. */
typedef void stage_report(void *context, const struct stage_health *health);
int stage_health(struct stage *stage, stage_report *report, void *context, struct why *why);

#endif
