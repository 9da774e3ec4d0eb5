/*
 * Stage: what is served now. Collects, exposes and renders once for each generation of the mount, however many
 * ask for it.
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
    char *data; /* owned */
    size_t length;
    int references; /* guarded by the stage */
    /* What a server has made of the bytes, made once and dropped with them. */
    void *attached;
    void (*detach)(void *attached);
};

struct stage_options {
    const char *root;          /* of the mount */
    struct wishes wishes;      /* what it points to outlives the stage */
    const char *counters_file; /* NULL: the identity's own; read again when it changes */
    int64_t interval_ns; /* 0: every generation; otherwise collected no more often than that */
};

/* NULL with a sentence. */
struct stage *stage_new(const struct stage_options *options, struct why *why);
void stage_free(struct stage *stage);

/* The page of what the mount says now. 0 or -errno with a sentence. */
int stage_take(struct stage *stage, enum page_format format, enum page_coding coding,
               struct page **page, struct why *why);
void stage_put(struct stage *stage, struct page *page);

/* Makes page->attached unless it is there: `attach` runs at most once for a page. */
void *stage_attach(struct stage *stage, struct page *page, void *(*attach)(struct page *page),
                   void (*detach)(void *attached));

/* Calls with what there is now; nothing of it may be kept. 0, what `visit` returns, or -errno with a sentence. */
typedef int stage_visitor(void *context, const struct view *view, const struct family_set *set);
int stage_visit(struct stage *stage, stage_visitor *visit, void *context, struct why *why);

struct stage_health {
    const char *root;
    uint64_t generation;
    int gpu_count;
};

/* Whether the mount answers: 0 or -errno with a sentence. */
int stage_health(struct stage *stage, struct stage_health *health, struct why *why);

#endif
