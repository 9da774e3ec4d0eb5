/*
 * HTTP: what is answered to whom. See http.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/http.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "exporter/accept.h"
#include "exporter/stage.h"
#include "sim/bind.h"

static const char text_plain[] = "text/plain; charset=utf-8";

/* --- answers --------------------------------------------------------------------------------- */

static void add_common(struct MHD_Response *r, const char *type)
{
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
}

static enum MHD_Result queue(struct MHD_Connection *c, unsigned status, struct MHD_Response *r)
{
    enum MHD_Result result = r ? MHD_queue_response(c, status, r) : MHD_NO;

    if (r)
        MHD_destroy_response(r);
    return result;
}

enum MHD_Result http_send(struct MHD_Connection *c, unsigned status, const char *type,
                          const char *text, size_t length)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(length, (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_MUST_COPY);

    if (r)
        add_common(r, type);
    return queue(c, status, r);
}

static enum MHD_Result send_sentence(struct MHD_Connection *c, unsigned status, const char *text)
{
    struct text line = TEXT_INIT;
    enum MHD_Result result;

    text_addf(&line, "%s\n", text);
    result = http_send(c, status, text_plain, text_str(&line), line.length);
    text_release(&line);
    return result;
}

static enum MHD_Result send_wrong_method(struct MHD_Connection *c)
{
    static const char sentence[] = "only GET and HEAD are allowed here\n";
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(sentence),
                                                             (void *)(uintptr_t)sentence,
                                                             MHD_RESPMEM_PERSISTENT);

    if (r) {
        add_common(r, text_plain);
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    return queue(c, MHD_HTTP_METHOD_NOT_ALLOWED, r);
}

/* --- /metrics -------------------------------------------------------------------------------- */

/* A response belongs to its page, and is the same for everybody who gets that page. */
static void *make_response(struct page *page)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(page->length, page->data,
                                                             MHD_RESPMEM_PERSISTENT);

    if (!r)
        return NULL;
    add_common(r, page->content_type);
    MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
    if (page->coding == PAGE_GZIP)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return r;
}

static void drop_response(void *attached)
{
    MHD_destroy_response(attached);
}

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result get_metrics(struct http *h, struct MHD_Connection *c)
{
    enum page_format format = accepts_openmetrics(header(c, MHD_HTTP_HEADER_ACCEPT))
                                  ? PAGE_OPENMETRICS
                                  : PAGE_TEXT;
    enum page_coding coding = accepts_gzip(header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING)) ? PAGE_GZIP
                                                                                       : PAGE_PLAIN;
    struct why why = { 0 };
    enum MHD_Result result;
    struct MHD_Response *response;
    struct page *page;

    if (stage_take(h->stage, format, coding, &page, &why) < 0) {
        result = send_sentence(c, MHD_HTTP_SERVICE_UNAVAILABLE, why_text(&why));
        why_release(&why);
        return result;
    }
    response = stage_attach(h->stage, page, make_response, drop_response);
    result = response ? MHD_queue_response(c, MHD_HTTP_OK, response) : MHD_NO;
    stage_put(h->stage, page);
    return result;
}

/* --- /health --------------------------------------------------------------------------------- */

static enum MHD_Result get_health(struct http *h, struct MHD_Connection *c)
{
    struct stage_health health;
    struct text out = TEXT_INIT;
    struct why why = { 0 };
    bool healthy = stage_health(h->stage, &health, &why) == 0;
    enum MHD_Result result;

    text_addf(&out,
              "{\"status\": \"%s\", \"mount\": {\"path\": ", healthy ? "healthy" : "unhealthy");
    bind_json_text(&out, health.root);
    if (healthy) {
        text_addf(&out, ", \"gpus\": %d, \"generation\": %" PRIu64 "}}\n", health.gpu_count,
                  health.generation);
    } else {
        text_add(&out, ", \"error\": ");
        bind_json_text(&out, why_text(&why));
        text_add(&out, "}}\n");
    }
    result = http_send(c, healthy ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, "application/json",
                       text_str(&out), out.length);
    text_release(&out);
    why_release(&why);
    return result;
}

/* --- / --------------------------------------------------------------------------------------- */

static enum MHD_Result get_root(struct http *h, struct MHD_Connection *c)
{
    static const char page[] = "<!doctype html><meta charset=utf-8><title>GPU Exporter</title>"
                               "<h1>GPU Exporter</h1><p><a href=/metrics>Metrics</a></p>\n";

    (void)h;
    return http_send(c, MHD_HTTP_OK, "text/html; charset=utf-8", page, strlen(page));
}

/* --- routes ---------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    enum MHD_Result (*get)(struct http *http, struct MHD_Connection *connection);
} routes[] = {
    { "/metrics", get_metrics },
    { "/health", get_health },
    { "/healthz", get_health },
    { "/", get_root },
};

enum MHD_Result http_answer(struct http *h, struct MHD_Connection *c, const char *path,
                            const char *method)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(routes[i].path, path))
            continue;
        if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
            return send_wrong_method(c);
        return routes[i].get(h, c);
    }
    return send_sentence(c, MHD_HTTP_NOT_FOUND, "there is no such page; try /metrics");
}
