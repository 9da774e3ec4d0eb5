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
#include <time.h>

#include "exporter/counters_file.h"
#include "exporter/gzip.h"
#include "exporter/page_json.h"
#include "fusefs/log.h"
#include "exporter/render.h"
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
    struct collector *collector;
    struct counters_file *counters; /* NULL: the identity lists its families */

    struct view_stamp stamp; /* of what is below; mount 0: nothing */
    int64_t collected_ns;    /* real time */
    const struct view *view; /* the collector's */
    struct family_set set;
    struct page *pages[PAGE_FORMATS][PAGE_CODINGS]; /* made when asked for */
};

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* --- pages ----------------------------------------------------------------------------------- */

static void page_put(struct page *page)
{
    if (!page || --page->references)
        return;
    if (page->attached)
        page->detach(page->attached);
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

static struct page *render_page(struct stage *s, enum page_format format)
{
    struct text out = TEXT_INIT;

    if (formats[format].render)
        formats[format].render(&out, &s->set);
    else
        formats[format].show(&out, s->view);
    return page_new(formats[format].content_type, PAGE_PLAIN, &out);
}

static struct page *compress_page(const struct page *plain)
{
    struct text out = TEXT_INIT;

    gzip_add(&out, plain->data ? plain->data : "", plain->length);
    return page_new(plain->content_type, PAGE_GZIP, &out);
}

/* The page as the stage keeps it. NULL: no memory. */
static struct page *make_page(struct stage *s, enum page_format format, enum page_coding coding)
{
    struct page **kept = s->pages[format];

    if (!kept[PAGE_PLAIN])
        kept[PAGE_PLAIN] = render_page(s, format);
    if (coding == PAGE_GZIP && kept[PAGE_PLAIN] && !kept[PAGE_GZIP])
        kept[PAGE_GZIP] = compress_page(kept[PAGE_PLAIN]);
    return kept[coding];
}

static void drop_edition(struct stage *s)
{
    for (int f = 0; f < PAGE_FORMATS; f++)
        for (int c = 0; c < PAGE_CODINGS; c++) {
            page_put(s->pages[f][c]);
            s->pages[f][c] = NULL;
        }
    family_set_release(&s->set);
    s->view = NULL;
    s->stamp = (struct view_stamp){ 0 };
}

/* --- editions -------------------------------------------------------------------------------- */

static void say_wants(struct stage *s)
{
    const struct wishes *w = &s->options.wishes;
    const struct counter_list *list = s->counters ? counters_file_list(s->counters) : NULL;
    struct view_wants wants = { 0 };

    if (list && counter_list_has(list, COUNTER_XID_COUNT))
        wants.incidents_ns = w->xid_window_ns;
    if (list && counter_list_has(list, COUNTER_CLOCK_EVENT_COUNT) &&
        w->clock_window_ns > wants.incidents_ns)
        wants.incidents_ns = w->clock_window_ns;
    if (list)
        wants.links = counter_list_has(list, COUNTER_P2P) || counter_list_has(list, COUNTER_HEALTH);
    collector_want(s->collector, &wants);
}

static void reload_counters(struct stage *s, int64_t now)
{
    struct why why = { 0 };
    int r = s->counters ? counters_file_reload(s->counters, now, &why) : 0;

    if (r < 0)
        log_line(LOG_WARN, "%s; going on with the counters as they were", why_text(&why));
    if (r > 0) {
        log_line(LOG_INFO, "read the counters again");
        drop_edition(s);
        say_wants(s);
    }
    why_release(&why);
}

static bool is_recent(const struct stage *s, int64_t now)
{
    return s->view && s->options.interval_ns && now - s->collected_ns < s->options.interval_ns;
}

/* Makes sure that there is an edition, and that it is of now. */
static int refresh(struct stage *s, struct why *why)
{
    int64_t now = now_ns();
    struct view_stamp stamp;
    int r;

    reload_counters(s, now);
    if (is_recent(s, now))
        return 0;
    r = collector_peek(s->collector, &stamp, why);
    if (r == 0 && s->view && !memcmp(&stamp, &s->stamp, sizeof(stamp))) {
        s->collected_ns = now;
        return 0;
    }
    drop_edition(s);
    if (r == 0)
        r = collector_refresh(s->collector, &s->view, why);
    if (r < 0)
        return r;
    r = expose(&s->set, s->view, &s->options.wishes,
               s->counters ? counters_file_list(s->counters) : NULL);
    if (r < 0) {
        s->view = NULL;
        return why_set(why, -r, "out of memory");
    }
    s->stamp = (struct view_stamp){ stamp.mount, s->view->generation };
    s->collected_ns = now;
    return 0;
}

int stage_take(struct stage *s, enum page_format format, enum page_coding coding,
               struct page **page, struct why *why)
{
    int r;

    pthread_mutex_lock(&s->lock);
    r = refresh(s, why);
    if (r == 0) {
        *page = make_page(s, format, coding);
        if (*page)
            (*page)->references++;
        else
            r = why_set(why, ENOMEM, "out of memory");
    }
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
    if (r == 0)
        r = visit(context, s->view, &s->set);
    pthread_mutex_unlock(&s->lock);
    return r;
}

int stage_health(struct stage *s, struct stage_health *health, struct why *why)
{
    struct view_stamp stamp;
    int r;

    *health = (struct stage_health){ .root = s->options.root };
    pthread_mutex_lock(&s->lock);
    /* What was collected an interval ago says nothing of now. */
    r = collector_peek(s->collector, &stamp, why);
    if (r < 0)
        drop_edition(s);
    else
        r = refresh(s, why);
    if (r == 0) {
        health->generation = stamp.generation;
        health->gpu_count = s->view->gpu_count;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* --- life ------------------------------------------------------------------------------------ */

struct stage *stage_new(const struct stage_options *options, struct why *why)
{
    const struct dialect *d = options->wishes.dialect;
    struct stage *s = calloc(1, sizeof(*s));

    if (s)
        s->collector = collector_new(options->root);
    if (!s || !s->collector) {
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
    drop_edition(s);
    counters_file_close(s->counters);
    collector_free(s->collector);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
