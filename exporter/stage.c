/*
 * Stage: what is served now. See stage.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/counters_file.h"
#include "exporter/gzip.h"
#include "exporter/page_json.h"
#include "exporter/render.h"
#include "exporter/sources.h"
#include "fusefs/log.h"
#include "fusefs/realtime.h"
#include "sim/why.h"

/* Each format as a row: what it is called in HTTP, and who writes it, from the families or from the view. */
static const struct {
    const char *content_type;
    void (*render)(struct text *out, const struct family_set *set);
    void (*show)(struct text *out, const struct view *view);
} formats[PAGE_FORMATS] = {
    [PAGE_TEXT] = { "text/plain; version=0.0.4; charset=utf-8", render_text, NULL },
    [PAGE_OPENMETRICS] = { "application/openmetrics-text; version=1.0.0; charset=utf-8",
                           render_openmetrics, NULL },
    [PAGE_JSON] = { "application/json", NULL, page_json },
};

struct stage {
    pthread_mutex_t lock; /* of everything below */
    struct stage_options options;
    struct sources sources;
    struct view_wants wants;                        /* of all of them */
    struct counters_file *counters;                 /* NULL: the identity lists its families */
    struct page *pages[PAGE_FORMATS][PAGE_CODINGS]; /* of all of them; made when asked for */
};

/* --- pages ----------------------------------------------------------------------------------- */

static void page_put(struct page *page)
{
    if (!page || --page->references)
        return;
    if (page->attached)
        page->detach(page->attached);
    else
        free(page->data);
    free(page);
}

static struct page *page_new(const char *content_type, enum page_coding coding, struct text *text)
{
    struct page *page = calloc(1, sizeof(*page));

    if (!page || text->failed) {
        free(page);
        text_release(text);
        return NULL;
    }
    *page = (struct page){
        .content_type = content_type,
        .coding = coding,
        .data = text->data,
        .length = text->length,
        .references = 1,
    };
    return page;
}

static struct page *render_page(enum page_format format, const struct view *view,
                                const struct family_set *set)
{
    struct text out = TEXT_INIT;

    if (formats[format].render)
        formats[format].render(&out, set);
    else
        formats[format].show(&out, view);
    return page_new(formats[format].content_type, PAGE_PLAIN, &out);
}

static struct page *compress_page(const struct page *plain)
{
    struct text out = TEXT_INIT;

    gzip_add(&out, plain->data ? plain->data : "", plain->length);
    return page_new(plain->content_type, PAGE_GZIP, &out);
}

/* What was collected of all mounts hangs together, as if it were of one. The first of it, or NULL. */
static const struct source *chain(const struct sources *sources)
{
    struct source *first = NULL, *last = NULL;

    for (size_t i = 0; i < sources->count; i++) {
        struct source *source = sources->items[i];

        if (!source->stamp.mount)
            continue;
        source->view.next = NULL;
        source->set.next = NULL;
        if (last) {
            last->view.next = &source->view;
            last->set.next = &source->set;
        }
        first = first ? first : source;
        last = source;
    }
    return first;
}

/* The page as the stage keeps it. NULL: no memory. */
static struct page *make_page(struct stage *s, enum page_format format, enum page_coding coding)
{
    struct page **kept = s->pages[format];
    const struct source *first = kept[PAGE_PLAIN] ? NULL : chain(&s->sources);

    if (first)
        kept[PAGE_PLAIN] = render_page(format, &first->view, &first->set);
    if (coding == PAGE_GZIP && kept[PAGE_PLAIN] && !kept[PAGE_GZIP])
        kept[PAGE_GZIP] = compress_page(kept[PAGE_PLAIN]);
    return kept[coding];
}

static void drop_pages(struct stage *s)
{
    for (int f = 0; f < PAGE_FORMATS; f++)
        for (int c = 0; c < PAGE_CODINGS; c++) {
            page_put(s->pages[f][c]);
            s->pages[f][c] = NULL;
        }
}

static void drop_source(struct stage *s, struct source *source)
{
    drop_pages(s);
    source_drop(source);
}

static void drop_all(struct stage *s)
{
    for (size_t i = 0; i < s->sources.count; i++)
        source_drop(s->sources.items[i]);
    drop_pages(s);
}

/* --- editions -------------------------------------------------------------------------------- */

static void say_wants(struct stage *s)
{
    const struct wishes *w = &s->options.wishes;
    const struct counter_list *list = s->counters ? counters_file_list(s->counters) : NULL;

    s->wants = (struct view_wants){ 0 };
    if (list && counter_list_has(list, COUNTER_XID_COUNT))
        s->wants.incidents_ns = w->xid_window_ns;
    if (list && counter_list_has(list, COUNTER_CLOCK_EVENT_COUNT) &&
        w->clock_window_ns > s->wants.incidents_ns)
        s->wants.incidents_ns = w->clock_window_ns;
    if (list)
        s->wants.links = counter_list_has(list, COUNTER_P2P) ||
                         counter_list_has(list, COUNTER_HEALTH);
    for (size_t i = 0; i < s->sources.count; i++)
        collector_want(s->sources.items[i]->collector, &s->wants);
}

static void reload_counters(struct stage *s, int64_t now)
{
    struct why why = { 0 };
    int r = s->counters ? counters_file_reload(s->counters, now, &why) : 0;

    if (r < 0)
        log_line(LOG_WARN, "%s; going on with the counters as they were", why_text(&why));
    if (r > 0) {
        log_line(LOG_INFO, "read the counters again");
        drop_all(s);
        say_wants(s);
    }
    why_release(&why);
}

static bool is_recent(const struct stage *s, const struct source *source, int64_t now)
{
    return source->stamp.mount && s->options.interval_ns &&
           now - source->collected_ns < s->options.interval_ns;
}

static int expose_view(struct stage *s, struct family_set *set, const struct view *view,
                       struct why *why)
{
    int r = expose(set, view, &s->options.wishes,
                   s->counters ? counters_file_list(s->counters) : NULL);

    return r < 0 ? why_set(why, -r, "out of memory") : 0;
}

/* Whether what was collected is of now, which `stamp` says. 1, 0, or -errno with a sentence. */
static int is_current(struct source *source, int64_t now, struct view_stamp *stamp, struct why *why)
{
    int r = collector_peek(source->collector, stamp, NULL, why);

    if (r < 0 || memcmp(stamp, &source->stamp, sizeof(*stamp)))
        return r;
    source->collected_ns = now;
    return 1;
}

/* Makes sure that all of a mount was collected, and that this is of now. */
static int refresh_source(struct stage *s, struct source *source, int64_t now, struct why *why)
{
    const struct view *view;
    struct view_stamp stamp;
    int r;

    if (is_recent(s, source, now))
        return 0;
    r = is_current(source, now, &stamp, why);
    if (r > 0)
        return 0;
    drop_source(s, source);
    if (r == 0)
        r = collector_refresh(source->collector, &view, why);
    if (r == 0)
        r = expose_view(s, &source->set, view, why);
    if (r < 0)
        return r;
    source->view = *view;
    source->stamp = (struct view_stamp){ stamp.mount, view->generation };
    source->collected_ns = now;
    return 0;
}

/* Which mounts and nodes there are. */
static int look_around(struct stage *s, struct why *why)
{
    int r = sources_scan(&s->sources, &s->wants, why);

    if (r > 0)
        drop_pages(s);
    if (sources_look(&s->sources))
        drop_pages(s);
    return r < 0 ? r : 0;
}

/* None of them answers; `why` is of the last that was asked, if any was. */
static int no_source(const struct stage *s, int err, struct why *why)
{
    if (s->sources.directory && !s->sources.count)
        return why_set(why, ENOENT, "there is no mount in '%s'", s->sources.directory);
    return err;
}

/* The same for all mounts. One that does not answer is left out, unless none does. */
static int refresh(struct stage *s, struct why *why)
{
    int64_t now = real_ns(CLOCK_MONOTONIC);
    size_t good = 0;
    int r = 0, err = 0;

    reload_counters(s, now);
    if (s->sources.directory)
        r = look_around(s, why);
    for (size_t i = 0; r == 0 && i < s->sources.count; i++) {
        int failed = refresh_source(s, s->sources.items[i], now, why);

        good += failed == 0;
        err = failed < 0 ? failed : err;
    }
    if (r < 0)
        return r;
    if (!good)
        return no_source(s, err, why);
    why_release(why); /* of those that are left out */
    return 0;
}

/* --- one node -------------------------------------------------------------------------------- */

static int find_node(struct stage *s, const char *name, struct source **source, int *node,
                     struct why *why)
{
    int r = look_around(s, why);

    if (sources_find(&s->sources, name, s->options.wishes.hostname, source, node))
        return 0;
    /* A mount that was never there has no names yet. */
    if (r == 0 && !s->sources.directory && !s->sources.items[0]->nodes.count)
        r = collector_refresh(s->sources.items[0]->collector, &(const struct view *){ NULL }, why);
    return r < 0 ? r
                 : why_set(why, ESRCH, "there is no node '%s'; /nodes has those that there are",
                           name);
}

/* The part of a view that is one node. */
static struct view part_of(const struct view *all, int node)
{
    struct view part = *all;

    part.gpus = &all->gpus[all->nodes[node].first];
    part.gpu_count = all->nodes[node].count;
    part.next = NULL;
    return part;
}

/* Of what was collected of the whole mount, where that is of now; otherwise the node alone is asked. */
static int collect_node(struct stage *s, struct source *source, int node, struct view *part,
                        struct why *why)
{
    int64_t now = real_ns(CLOCK_MONOTONIC);
    struct view_stamp stamp;
    const struct view *view;
    int r;

    if (s->options.interval_ns) {
        r = refresh_source(s, source, now, why);
        if (r == 0 && node < source->view.node_count)
            *part = part_of(&source->view, node);
        return r;
    }
    r = source->stamp.mount ? is_current(source, now, &stamp, why) : 0;
    if (r > 0)
        *part = part_of(&source->view, node);
    if (r != 0)
        return r < 0 ? r : 0;
    r = collector_refresh_node(source->collector, node, &view, why);
    if (r == 0)
        *part = *view;
    return r;
}

static int make_node_page(struct stage *s, const char *name, enum page_format format,
                          enum page_coding coding, struct page **page, struct why *why)
{
    struct family_set set = { 0 };
    struct view view = { 0 };
    struct source *source;
    struct page *plain;
    int node, r;

    reload_counters(s, real_ns(CLOCK_MONOTONIC));
    r = find_node(s, name, &source, &node, why);
    if (r == 0)
        r = collect_node(s, source, node, &view, why);
    if (r == 0)
        r = expose_view(s, &set, &view, why);
    if (r < 0)
        return r;
    plain = render_page(format, &view, &set);
    family_set_release(&set);
    *page = plain;
    if (plain && coding == PAGE_GZIP) {
        *page = compress_page(plain);
        page_put(plain);
    }
    return *page ? 0 : why_set(why, ENOMEM, "out of memory");
}

static int make_whole_page(struct stage *s, enum page_format format, enum page_coding coding,
                           struct page **page, struct why *why)
{
    int r = refresh(s, why);

    if (r < 0)
        return r;
    *page = make_page(s, format, coding);
    if (!*page)
        return why_set(why, ENOMEM, "out of memory");
    (*page)->references++;
    return 0;
}

/* --- what others ask for --------------------------------------------------------------------- */

int stage_take(struct stage *s, const char *node, enum page_format format, enum page_coding coding,
               struct page **page, struct why *why)
{
    int r;

    pthread_mutex_lock(&s->lock);
    r = node ? make_node_page(s, node, format, coding, page, why)
             : make_whole_page(s, format, coding, page, why);
    pthread_mutex_unlock(&s->lock);
    return r;
}

void stage_put(struct stage *s, struct page *page)
{
    pthread_mutex_lock(&s->lock);
    page_put(page);
    pthread_mutex_unlock(&s->lock);
}

void *stage_attach(struct stage *s, struct page *page, void *(*attach)(struct page *page),
                   void (*detach)(void *attached))
{
    pthread_mutex_lock(&s->lock);
    if (!page->attached) {
        page->attached = attach(page);
        page->detach = detach;
    }
    pthread_mutex_unlock(&s->lock);
    return page->attached;
}

int stage_visit(struct stage *s, stage_visitor *visit, void *context, struct why *why)
{
    int r;

    pthread_mutex_lock(&s->lock);
    r = refresh(s, why);
    for (size_t i = 0; r == 0 && i < s->sources.count; i++) {
        const struct source *source = s->sources.items[i];

        if (source->stamp.mount)
            r = visit(context, &source->view, &source->set);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

int stage_nodes(struct stage *s, stage_node *add, void *context, struct why *why)
{
    size_t known = 0;
    int r;

    pthread_mutex_lock(&s->lock);
    r = look_around(s, why);
    for (size_t i = 0; r == 0 && i < s->sources.count; i++) {
        const struct node_list *nodes = &s->sources.items[i]->nodes;

        known += nodes->count > 0;
        for (int n = 0; n < nodes->count; n++)
            if (!nodes->items[n].hidden)
                add(context,
                    nodes->items[n].name ? nodes->items[n].name : s->options.wishes.hostname);
    }
    if (r == 0 && !known)
        r = refresh(s, why);
    pthread_mutex_unlock(&s->lock);
    return r;
}

bool stage_has_several(const struct stage *s)
{
    return s->options.roots;
}

/* What was collected an interval ago says nothing of now. */
static int check_source(struct stage *s, struct source *source, struct stage_health *health,
                        struct why *why)
{
    struct view_stamp stamp;
    int r = collector_peek(source->collector, &stamp, &health->gpu_count, why);

    health->root = source->root;
    health->generation = r == 0 ? stamp.generation : 0;
    health->error = r == 0 ? NULL : why_text(why);
    if (r < 0)
        drop_source(s, source);
    return r;
}

int stage_health(struct stage *s, stage_report *report, void *context, struct why *why)
{
    int r, err = 0;
    bool good = false;

    pthread_mutex_lock(&s->lock);
    r = look_around(s, why);
    for (size_t i = 0; i < s->sources.count; i++) {
        struct stage_health health = { 0 };
        int failed = check_source(s, s->sources.items[i], &health, why);

        report(context, &health);
        good |= failed == 0;
        err = failed < 0 ? failed : err;
    }
    if (r == 0 && !good)
        r = no_source(s, err, why);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* --- life ------------------------------------------------------------------------------------ */

struct stage *stage_new(const struct stage_options *options, struct why *why)
{
    const struct dialect *d = options->wishes.dialect;
    struct stage *s = calloc(1, sizeof(*s));

    if (!s || sources_init(&s->sources, options->root, options->roots) < 0) {
        free(s);
        why_set(why, ENOMEM, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->options = *options;
    if (*d->counters) {
        s->counters = counters_file_open(options->counters_file, d->counters, why);
        if (!s->counters) {
            stage_free(s);
            return NULL;
        }
    }
    say_wants(s);
    return s;
}

void stage_free(struct stage *s)
{
    if (!s)
        return;
    drop_pages(s);
    counters_file_close(s->counters);
    sources_release(&s->sources);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
