/*
 * HTTP: what is answered to whom. See http.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/accept.h"
#include "exporter/page_json.h"
#include "exporter/stage.h"
#include "exporter/users.h"
#include "sim/bind.h"

enum { NODE_MAX = 256 }; /* a name, with its end: that of a directory at most */

static const char text_plain[] = "text/plain; charset=utf-8";

/* --- answers --------------------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

bool http_has_body(struct MHD_Connection *c)
{
    const char *length = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return header(c, MHD_HTTP_HEADER_TRANSFER_ENCODING) || (length && strcmp(length, "0"));
}

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

/* A refusal: one sentence, and perhaps a header that goes with it. */
static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *sentence,
                              const char *name, const char *value)
{
    struct text line = TEXT_INIT;
    struct MHD_Response *r;

    text_addf(&line, "%s\n", sentence);
    r = MHD_create_response_from_buffer(line.length, (void *)(uintptr_t)text_str(&line),
                                        MHD_RESPMEM_MUST_COPY);
    if (r) {
        add_common(r, text_plain);
        if (name)
            MHD_add_response_header(r, name, value);
        /* What was sent along is not read: the next request could not be told from it. */
        if (http_has_body(c))
            MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    text_release(&line);
    return queue(c, status, r);
}

/* --- /metrics -------------------------------------------------------------------------------- */

/*
 * A response belongs to its page, and is the same for everybody who gets that page. While somebody is slow to take it
 * the page may go, so the bytes are the response's.
 */
static void *make_response(struct page *page)
{
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback(page->length,
                                                                                page->data, free);

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

static enum MHD_Result send_page(struct http *h, struct MHD_Connection *c, const char *node,
                                 enum page_format format)
{
    enum page_coding coding = accepts_gzip(header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING)) ? PAGE_GZIP
                                                                                       : PAGE_PLAIN;
    struct why why = { 0 };
    enum MHD_Result result;
    struct MHD_Response *response;
    struct page *page;
    int r = stage_take(h->stage, node, format, coding, &page, &why);

    if (r < 0) {
        result = refuse(c, r == -ESRCH ? MHD_HTTP_NOT_FOUND : MHD_HTTP_SERVICE_UNAVAILABLE,
                        why_text(&why), NULL, NULL);
        why_release(&why);
        return result;
    }
    response = stage_attach(h->stage, page, make_response, drop_response);
    result = response ? MHD_queue_response(c, MHD_HTTP_OK, response) : MHD_NO;
    stage_put(h->stage, page);
    return result;
}

static enum MHD_Result get_metrics(struct http *h, struct MHD_Connection *c, const char *node,
                                   const char *unused)
{
    (void)unused;
    return send_page(h, c, node,
                     accepts_openmetrics(header(c, MHD_HTTP_HEADER_ACCEPT)) ? PAGE_OPENMETRICS
                                                                            : PAGE_TEXT);
}

/* --- /health --------------------------------------------------------------------------------- */

/* "path": …, and how it is, without the braces. */
static void add_mount(void *context, const struct stage_health *health)
{
    struct text *out = context;

    text_addf(out, "%s{\"path\": ", out->length ? ", " : "");
    bind_json_text(out, health->root);
    if (health->error) {
        text_add(out, ", \"error\": ");
        bind_json_text(out, health->error);
    } else {
        text_addf(out, ", \"gpus\": %d, \"generation\": %" PRIu64, health->gpu_count,
                  health->generation);
    }
    text_add(out, "}");
}

/* One mount is "mount"; where there may be several they are the list "mounts". */
static enum MHD_Result get_health(struct http *h, struct MHD_Connection *c, const char *node,
                                  const char *unused)
{
    struct text mounts = TEXT_INIT, out = TEXT_INIT;
    struct why why = { 0 };
    bool healthy = stage_health(h->stage, add_mount, &mounts, &why) == 0;
    bool several = stage_has_several(h->stage);
    enum MHD_Result result;

    (void)node;
    (void)unused;
    text_addf(&out, "{\"status\": \"%s\", ", healthy ? "healthy" : "unhealthy");
    if (several && !healthy) {
        text_add(&out, "\"error\": ");
        bind_json_text(&out, why_text(&why));
        text_add(&out, ", ");
    }
    text_addf(&out, several ? "\"mounts\": [%s]}\n" : "\"mount\": %s}\n", text_str(&mounts));
    result = http_send(c, healthy ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, "application/json",
                       text_str(&out), out.length);
    text_release(&mounts);
    text_release(&out);
    why_release(&why);
    return result;
}

/* --- /nodes ---------------------------------------------------------------------------------- */

/* A list of targets for Prometheus, on its way. */
struct targets {
    struct text out;
    const char *host; /* as the one who asks calls this server */
    bool tls;
};

/* The path as it is: Prometheus itself escapes what a URL must not have. */
static void add_target(void *context, const char *name)
{
    struct targets *t = context;
    struct text path = TEXT_INIT;

    text_add(&t->out, t->out.length > 1 ? ",\n{\"targets\": [" : "\n{\"targets\": [");
    bind_json_text(&t->out, t->host);
    text_addf(&path, "/nodes/%s/metrics", name);
    text_add(&t->out, "], \"labels\": {\"__metrics_path__\": ");
    bind_json_text(&t->out, text_str(&path));
    text_add(&t->out, ", ");
    if (t->tls)
        text_add(&t->out, "\"__scheme__\": \"https\", ");
    text_add(&t->out, "\"node\": ");
    bind_json_text(&t->out, name);
    text_add(&t->out, "}}");
    text_release(&path);
}

/* What Prometheus' http_sd_configs asks for: a target for each node, at this server. */
static enum MHD_Result get_nodes(struct http *h, struct MHD_Connection *c, const char *node,
                                 const char *unused)
{
    struct targets t = {
        .host = header(c, MHD_HTTP_HEADER_HOST),
        .tls = MHD_get_connection_info(c, MHD_CONNECTION_INFO_PROTOCOL) != NULL,
    };
    struct why why = { 0 };
    enum MHD_Result result;

    (void)node;
    (void)unused;
    if (!t.host)
        return refuse(c, MHD_HTTP_BAD_REQUEST,
                      "the header Host is needed: targets are called as it", NULL, NULL);
    text_add(&t.out, "[");
    if (stage_nodes(h->stage, add_target, &t, &why) < 0) {
        result = refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, why_text(&why), NULL, NULL);
    } else {
        text_add(&t.out, "]\n");
        result = http_send(c, MHD_HTTP_OK, "application/json", text_str(&t.out), t.out.length);
    }
    text_release(&t.out);
    why_release(&why);
    return result;
}

/* --- the live page --------------------------------------------------------------------------- */

static enum MHD_Result get_page_json(struct http *h, struct MHD_Connection *c, const char *node,
                                     const char *unused)
{
    (void)unused;
    return send_page(h, c, node, PAGE_JSON);
}

static const struct schema_file *page_file(const char *name)
{
    const struct schema_file *file = page_files;

    while (strcmp(file->path, name))
        file++;
    return file;
}

/* A file of exporter/page/. The browser may ask this exporter, and nobody else. */
static enum MHD_Result get_file(struct http *h, struct MHD_Connection *c, const char *node,
                                const char *name)
{
    const struct schema_file *file = page_file(name);
    const char *ending = strrchr(name, '.');
    struct MHD_Response *r = MHD_create_response_from_buffer(file->length,
                                                             (void *)(uintptr_t)file->text,
                                                             MHD_RESPMEM_PERSISTENT);

    (void)h;
    (void)node;
    if (r) {
        add_common(r, !strcmp(ending, ".css")  ? "text/css; charset=utf-8"
                      : !strcmp(ending, ".js") ? "text/javascript; charset=utf-8"
                                               : "text/html; charset=utf-8");
        MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        MHD_add_response_header(r, "Content-Security-Policy",
                                "default-src 'none'; script-src 'self'; style-src 'self'; "
                                "connect-src 'self'; img-src data:; frame-ancestors 'none'");
    }
    return queue(c, MHD_HTTP_OK, r);
}

/* --- routes ---------------------------------------------------------------------------------- */

/* Those of a node are below /nodes/NAME, too. */
static const struct route {
    const char *path;
    enum MHD_Result (*get)(struct http *http, struct MHD_Connection *connection, const char *node,
                           const char *argument);
    const char *argument;
    bool of_node;
} routes[] = {
    { "/metrics", get_metrics, NULL, true },   { "/health", get_health, NULL, false },
    { "/healthz", get_health, NULL, true },    { "/nodes", get_nodes, NULL, false },
    { "/", get_file, "index.html", true },     { "/page.css", get_file, "page.css", true },
    { "/page.js", get_file, "page.js", true }, { "/page.json", get_page_json, NULL, true },
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static const struct route *find_route(const char *path, bool of_node)
{
    for (size_t i = 0; i < ROUTES; i++)
        if (!strcmp(routes[i].path, path) && (routes[i].of_node || !of_node))
            return &routes[i];
    return NULL;
}

/* Splits /nodes/NAME/… ; false when the path is none of a node, or its name longer than any. */
static bool split_node(const char **path, char node[NODE_MAX])
{
    static const char prefix[] = "/nodes/";
    const char *name = *path + strlen(prefix), *end;

    if (strncmp(*path, prefix, strlen(prefix)))
        return false;
    end = strchr(name, '/');
    if (!end || end == name || end - name >= NODE_MAX)
        return false;
    memcpy(node, name, (size_t)(end - name));
    node[end - name] = '\0';
    *path = end;
    return true;
}

/* Whether somebody who is known asks, or everybody may. */
static bool is_allowed(struct http *h, struct MHD_Connection *c)
{
    char *password = NULL, *name;
    bool allowed;

    if (!h->users)
        return true;
    name = MHD_basic_auth_get_username_password(c, &password);
    allowed = name && password && users_check(h->users, name, password);
    MHD_free(name);
    MHD_free(password);
    return allowed;
}

enum MHD_Result http_answer(struct http *h, struct MHD_Connection *c, const char *path,
                            const char *method)
{
    char node[NODE_MAX];
    bool of_node = split_node(&path, node);
    const struct route *route = find_route(path, of_node);

    if (!is_allowed(h, c))
        return refuse(c, MHD_HTTP_UNAUTHORIZED, "a name and a password are needed",
                      MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic");
    if (!route)
        return refuse(c, MHD_HTTP_NOT_FOUND,
                      of_node ? "there is no such page of a node; try /nodes/NAME/metrics"
                              : "there is no such page; try /metrics",
                      NULL, NULL);
    if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
        return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed here",
                      MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (http_has_body(c))
        return refuse(c, MHD_HTTP_BAD_REQUEST, "a request has no body here", NULL, NULL);
    return route->get(h, c, of_node ? node : NULL, route->argument);
}
