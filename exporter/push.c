/*
 * Push: sends what is served to an OpenTelemetry receiver. See push.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/push.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/curl.h"
#include "exporter/gzip.h"
#include "exporter/otlp.h"
#include "exporter/pairs.h"
#include "exporter/stage.h"
#include "fusefs/log.h"
#include "fusefs/realtime.h"
#include "sim/why.h"

enum {
    QUEUE = 32, /* requests */
    HEADERS_MAX = 32,
    ATTRIBUTES_MAX = 64,
    ANSWER_MAX = 64 * 1024, /* bytes of an answer that are looked at */
    CONNECT_MS = 5000,
    REQUEST_MS = 10000,
};

/* A receiver that is away is asked again after this, then twice as long, and so on. */
static const int64_t retry_min_ns = NS_PER_S / 2, retry_max_ns = 30 * NS_PER_S;

struct push {
    struct push_options options;
    struct stage *stage;
    const struct curl_api *api;
    struct arena arena;
    struct label attributes[ATTRIBUTES_MAX]; /* of the resource */
    size_t attribute_count;
    struct label pairs[HEADERS_MAX]; /* headers to send along */
    size_t pair_count;
    char *url, *shown_url; /* the latter without secrets, for people */
    struct curl_slist *headers;
    bool started;
    uint64_t start_ns; /* real time since the epoch */
    pthread_t collector, sender;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    struct text queue[QUEUE];
    int first, queued;
    uint64_t lost; /* since the last one that was sent */
    bool stop;
    int64_t stop_by_ns; /* monotonic; when stop */

    /* the sender's own */
    CURL *curl;
    struct text answer;
    int64_t retry_ns; /* 0: the last one was sent */
};

/* --- collecting ------------------------------------------------------------------------------ */

static int encode(void *context, const struct view *view, const struct family_set *set)
{
    const struct push *p = ((void **)context)[0];
    struct text *out = ((void **)context)[1];
    struct otlp_frame frame = { p->attributes, p->attribute_count, p->start_ns,
                                (uint64_t)real_ns(CLOCK_REALTIME) };

    (void)view;
    otlp_encode(out, set, &frame);
    return out->failed ? -ENOMEM : 0;
}

static int make_request(struct push *p, struct text *request, struct why *why)
{
    struct text plain = TEXT_INIT;
    int r = stage_visit(p->stage, encode, (void *[]){ p, p->options.gzip ? &plain : request }, why);

    if (r == 0 && p->options.gzip) {
        gzip_add(request, text_str(&plain), plain.length);
        r = request->failed ? -ENOMEM : 0;
    }
    text_release(&plain);
    return r;
}

/* Takes the request. When there is no more room, the oldest makes some. */
static void enqueue(struct push *p, struct text *request)
{
    pthread_mutex_lock(&p->lock);
    if (p->queued == QUEUE) {
        text_release(&p->queue[p->first]);
        p->first = (p->first + 1) % QUEUE;
        p->queued--;
        p->lost++;
    }
    p->queue[(p->first + p->queued++) % QUEUE] = *request;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void collect(struct push *p)
{
    struct text request = TEXT_INIT;
    struct why why = { 0 };

    if (make_request(p, &request, &why) == 0) {
        enqueue(p, &request);
    } else {
        log_line(LOG_DEBUG, "there is nothing to send: %s", why_text(&why));
        text_release(&request);
    }
    why_release(&why);
}

/* Waits until then (monotonic), or until it is to stop. With the lock held. */
static void wait_until(struct push *p, int64_t then_ns)
{
    struct timespec then = { then_ns / NS_PER_S, then_ns % NS_PER_S };

    while (!p->stop && pthread_cond_timedwait(&p->changed, &p->lock, &then) != ETIMEDOUT)
        ;
}

static void *collector_main(void *context)
{
    struct push *p = context;
    int64_t next = real_ns(CLOCK_MONOTONIC);
    bool stop = false;

    while (!stop) {
        int64_t now;

        collect(p);
        now = real_ns(CLOCK_MONOTONIC);
        while (next <= now)
            next += p->options.interval_ns;
        pthread_mutex_lock(&p->lock);
        wait_until(p, next);
        stop = p->stop;
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* --- sending --------------------------------------------------------------------------------- */

enum outcome {
    SENT,
    REFUSED, /* and would be again */
    AWAY,    /* worth another try */
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct push *p = context;
    size_t n = size * count;

    if (p->answer.length < ANSWER_MAX)
        text_addn(&p->answer, bytes, n);
    return n;
}

/* Not 0 ends the transfer. */
static int give_up(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct push *p = context;
    bool late;

    (void)a, (void)b, (void)c, (void)d;
    pthread_mutex_lock(&p->lock);
    late = p->stop && real_ns(CLOCK_MONOTONIC) > p->stop_by_ns;
    pthread_mutex_unlock(&p->lock);
    return late;
}

static enum outcome outcome_of(long status)
{
    if (status >= 200 && status < 300)
        return SENT;
    return status == 429 || status == 502 || status == 503 || status == 504 ? AWAY : REFUSED;
}

static void look_at_answer(struct push *p)
{
    struct text said = TEXT_INIT;
    int64_t rejected = otlp_rejected(p->answer.data, p->answer.length, &said);

    if (rejected || said.length)
        log_line(LOG_WARN, "%s did not want %" PRId64 " points: %s", p->shown_url, rejected,
                 text_str(&said));
    text_release(&said);
}

/* One try. What is worth saying is in `why`; *after_ns is when the receiver wants to be asked again. */
static enum outcome post(struct push *p, const struct text *request, int64_t *after_ns,
                         struct why *why)
{
    curl_off_t after = 0;
    long status = 0;
    CURLcode code;

    text_cut(&p->answer, 0);
    p->api->easy_setopt(p->curl, CURLOPT_POSTFIELDS, request->data);
    p->api->easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    code = p->api->easy_perform(p->curl);
    *after_ns = 0;
    if (code != CURLE_OK) {
        why_set(why, EIO, "%s", p->api->easy_strerror(code));
        return AWAY;
    }
    p->api->easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
    p->api->easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &after);
    if (after > 0 && after < 3600)
        *after_ns = after * NS_PER_S;
    if (outcome_of(status) == SENT)
        look_at_answer(p);
    else
        why_set(why, EIO, "status %ld", status);
    return outcome_of(status);
}

static void say_away(struct push *p, const struct why *why)
{
    log_line(p->retry_ns ? LOG_DEBUG : LOG_WARN, "cannot send to %s: %s; trying again",
             p->shown_url, why_text(why));
}

static void say_back(struct push *p)
{
    uint64_t lost;

    pthread_mutex_lock(&p->lock);
    lost = p->lost;
    p->lost = 0;
    pthread_mutex_unlock(&p->lock);
    if (p->retry_ns)
        log_line(LOG_INFO, "%s takes it again; %" PRIu64 " requests are lost", p->shown_url, lost);
}

/* Waits before the next try; false when there is to be none. */
static bool wait_to_retry(struct push *p, int64_t after_ns)
{
    bool stop;

    p->retry_ns = !p->retry_ns                     ? retry_min_ns
                  : p->retry_ns > retry_max_ns / 2 ? retry_max_ns
                                                   : p->retry_ns * 2;
    if (after_ns < p->retry_ns)
        after_ns = p->retry_ns;
    pthread_mutex_lock(&p->lock);
    wait_until(p, real_ns(CLOCK_MONOTONIC) + after_ns);
    stop = p->stop;
    pthread_mutex_unlock(&p->lock);
    return !stop;
}

/* Until it is sent, refused, or everything is to stop. */
static void deliver(struct push *p, const struct text *request)
{
    enum outcome outcome;
    int64_t after_ns;

    do {
        struct why why = { 0 };

        outcome = post(p, request, &after_ns, &why);
        if (outcome == REFUSED)
            log_line(LOG_WARN, "%s refuses what is sent to it: %s", p->shown_url, why_text(&why));
        else if (outcome == AWAY)
            say_away(p, &why);
        why_release(&why);
    } while (outcome == AWAY && wait_to_retry(p, after_ns));
    if (outcome == SENT) {
        say_back(p);
        p->retry_ns = 0;
    }
}

/* The oldest; false when there is none and none will come. */
static bool dequeue(struct push *p, struct text *request)
{
    bool taken;

    pthread_mutex_lock(&p->lock);
    while (!p->queued && !p->stop)
        pthread_cond_wait(&p->changed, &p->lock);
    taken = p->queued > 0;
    if (taken) {
        *request = p->queue[p->first];
        p->first = (p->first + 1) % QUEUE;
        p->queued--;
    }
    pthread_mutex_unlock(&p->lock);
    return taken;
}

static void *sender_main(void *context)
{
    struct push *p = context;
    struct text request;

    while (dequeue(p, &request)) {
        deliver(p, &request);
        text_release(&request);
    }
    return NULL;
}

/* --- beginning and end ----------------------------------------------------------------------- */

/* The URL to post to, and the same without user, password and query. */
static int make_urls(struct push *p, struct why *why)
{
    static const char path[] = "/v1/metrics";
    const char *endpoint = p->options.endpoint, *host, *user;
    size_t scheme = !strncmp(endpoint, "http://", 7)    ? 7
                    : !strncmp(endpoint, "https://", 8) ? 8
                                                        : 0;
    size_t length = strcspn(endpoint, "?#"), authority = strcspn(endpoint + scheme, "/?#");
    struct text url = TEXT_INIT, shown = TEXT_INIT;

    host = endpoint + scheme;
    user = memrchr(host, '@', authority);
    if (user)
        host = user + 1;
    if (!scheme || host == endpoint + scheme + authority || strpbrk(endpoint, " \t\r\n"))
        return why_set(why, EINVAL, "--otlp-endpoint: not a URL of http:// or https://");
    while (endpoint[length - 1] == '/')
        length--;
    if (length > strlen(path) && !strncmp(endpoint + length - strlen(path), path, strlen(path)))
        length -= strlen(path);
    text_addf(&url, "%.*s%s%s", (int)length, endpoint, path, endpoint + strcspn(endpoint, "?#"));
    text_addf(&shown, "%.*s%.*s%s", (int)scheme, endpoint, (int)(endpoint + length - host), host,
              path);
    p->url = url.data;
    p->shown_url = shown.data;
    return url.failed || shown.failed ? why_set(why, ENOMEM, "out of memory") : 0;
}

static int add_header(struct push *p, const char *name, const char *value)
{
    struct text line = TEXT_INIT;
    struct curl_slist *longer;

    text_addf(&line, "%s: %s", name, value);
    longer = line.failed ? NULL : p->api->slist_append(p->headers, text_str(&line));
    text_release(&line);
    if (longer)
        p->headers = longer;
    return longer ? 0 : -ENOMEM;
}

static int make_headers(struct push *p)
{
    int r = add_header(p, "Content-Type", "application/x-protobuf");

    if (r == 0 && p->options.gzip)
        r = add_header(p, "Content-Encoding", "gzip");
    for (size_t i = 0; r == 0 && i < p->pair_count; i++)
        r = add_header(p, p->pairs[i].name, p->pairs[i].value);
    return r;
}

/* What the resource attributes say wins over what is known anyway. */
static void add_attribute(struct push *p, const char *name, const char *value)
{
    for (size_t i = 0; i < p->attribute_count; i++)
        if (!strcmp(p->attributes[i].name, name))
            return;
    if (value && *value && p->attribute_count < ATTRIBUTES_MAX)
        p->attributes[p->attribute_count++] = (struct label){ name, value };
}

static int make_attributes(struct push *p, struct why *why)
{
    const struct push_options *o = &p->options;
    enum { KNOWN = 4 };
    int r = pairs_parse("OTEL_RESOURCE_ATTRIBUTES", o->resource, p->attributes, &p->attribute_count,
                        ATTRIBUTES_MAX - KNOWN, &p->arena, why);

    add_attribute(p, "service.name", o->service ? o->service : "fakegpu-exporter");
    add_attribute(p, "service.version", FAKEGPUFS_VERSION);
    add_attribute(p, "host.name", o->hostname);
    add_attribute(p, "k8s.node.name", o->node);
    return r;
}

static int make_curl(struct push *p, struct why *why)
{
    p->api = curl_load(why);
    if (!p->api)
        return -ENOENT;
    p->curl = p->api->easy_init();
    if (!p->curl || make_headers(p) < 0)
        return why_set(why, ENOMEM, "out of memory");
    p->api->easy_setopt(p->curl, CURLOPT_URL, p->url);
    p->api->easy_setopt(p->curl, CURLOPT_POST, 1L);
    p->api->easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
    p->api->easy_setopt(p->curl, CURLOPT_USERAGENT, "fakegpu-exporter/" FAKEGPUFS_VERSION);
    p->api->easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
    p->api->easy_setopt(p->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    p->api->easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, (long)REQUEST_MS);
    p->api->easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, take_answer);
    p->api->easy_setopt(p->curl, CURLOPT_WRITEDATA, p);
    p->api->easy_setopt(p->curl, CURLOPT_NOPROGRESS, 0L);
    p->api->easy_setopt(p->curl, CURLOPT_XFERINFOFUNCTION, give_up);
    p->api->easy_setopt(p->curl, CURLOPT_XFERINFODATA, p);
    if (p->options.certificate)
        p->api->easy_setopt(p->curl, CURLOPT_CAINFO, p->options.certificate);
    return 0;
}

void push_free(struct push *p)
{
    if (!p)
        return;
    for (; p->queued; p->queued--, p->first = (p->first + 1) % QUEUE)
        text_release(&p->queue[p->first]);
    text_release(&p->answer);
    if (p->api) {
        p->api->slist_free_all(p->headers);
        p->api->easy_cleanup(p->curl);
    }
    free(p->url);
    free(p->shown_url);
    arena_release(&p->arena);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct push *push_make(const struct push_options *options)
{
    struct push *p = calloc(1, sizeof(*p));
    pthread_condattr_t monotonic;

    if (!p)
        return NULL;
    p->options = *options;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &monotonic);
    return p;
}

static int start_threads(struct push *p, struct why *why)
{
    int r = pthread_create(&p->sender, NULL, sender_main, p);

    if (r == 0) {
        r = pthread_create(&p->collector, NULL, collector_main, p);
        if (r) {
            pthread_mutex_lock(&p->lock);
            p->stop = true;
            pthread_cond_broadcast(&p->changed);
            pthread_mutex_unlock(&p->lock);
            pthread_join(p->sender, NULL);
        }
    }
    return r ? why_set(why, r, "cannot start a thread: %s", strerror(r)) : 0;
}

struct push *push_new(const struct push_options *options, struct why *why)
{
    struct push *p = push_make(options);
    int r = p ? make_urls(p, why) : why_set(why, ENOMEM, "out of memory");

    if (r == 0)
        r = pairs_parse("--otlp-headers", options->headers, p->pairs, &p->pair_count, HEADERS_MAX,
                        &p->arena, why);
    if (r == 0)
        r = make_attributes(p, why);
    if (r == 0)
        return p;
    push_free(p);
    return NULL;
}

int push_start(struct push *p, struct stage *stage, struct why *why)
{
    int r;

    p->stage = stage;
    p->start_ns = (uint64_t)real_ns(CLOCK_REALTIME);
    r = make_curl(p, why);
    if (r == 0)
        r = start_threads(p, why);
    p->started = r == 0;
    if (r == 0)
        log_line(LOG_INFO, "sending to %s", p->shown_url);
    return r;
}

void push_stop(struct push *p, int64_t grace_ns)
{
    if (!p || !p->started)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    p->stop_by_ns = real_ns(CLOCK_MONOTONIC) + grace_ns;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->collector, NULL);
    pthread_join(p->sender, NULL);
    p->started = false;
}
