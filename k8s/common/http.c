/*
 * HTTP: one request and its answer, on libcurl. See http.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/common/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/text.h"
#include "sim/unit.h"

struct http {
    struct http_options o;
    CURL *curl;
    const struct http_request *request; /* while there is one */
    struct text body;
    bool too_long;
    char error[CURL_ERROR_SIZE];
};

/* --- what comes back ------------------------------------------------------------------------- */

/* Trailers come the same way as headers, behind the body. */
static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    const struct http_request *request = ((struct http *)context)->request;
    char line[1024];
    char *value;

    if (!request->take_header || size * count >= sizeof(line))
        return size * count;
    memcpy(line, data, size * count);
    line[size * count] = '\0';
    value = strchr(line, ':');
    if (!value || parse_trim(value + 1, value + 1, sizeof(line)) < 0)
        return size * count;
    *value++ = '\0';
    request->take_header(request->context, line, value);
    return size * count;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct http *h = context;

    h->too_long = h->body.length + size * count > h->o.body_max;
    if (h->too_long)
        return 0;
    text_addn(&h->body, data, size * count);
    return h->body.failed ? 0 : size * count;
}

static int look_up(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct http *h = context;

    (void)a, (void)b, (void)c, (void)d;
    return h->o.interrupted && h->o.interrupted(h->o.context);
}

/* --- what it means --------------------------------------------------------------------------- */

/* libcurl's word for it, or the code's when it has none. */
static const char *said(const struct http *h, CURLcode code)
{
    return *h->error ? h->error : curl_easy_strerror(code);
}

static int explain_failure(struct http *h, CURLcode code, struct why *why)
{
    long err = 0;

    switch (code) {
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &err);
        return why_set(why, ECONNREFUSED, "nobody answers on %s: %s", h->o.where,
                       err ? strerror((int)err) : "connections are closed at once");
    case CURLE_COULDNT_RESOLVE_HOST:
        return why_set(why, ECONNREFUSED, "nobody answers on %s: %s", h->o.where, said(h, code));
    case CURLE_OPERATION_TIMEDOUT:
        return why_set(why, ETIMEDOUT, "no answer on %s within %d ms", h->o.where, h->o.timeout_ms);
    case CURLE_ABORTED_BY_CALLBACK:
        return why_set(why, EINTR, "interrupted");
    case CURLE_SSL_CACERT_BADFILE:
        return why_set(why, EACCES, "'%s' has no certificates: %s", h->o.ca_file, said(h, code));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return why_set(why, EACCES, "who answers on %s is not certified by '%s': %s", h->o.where,
                       h->o.ca_file, said(h, code));
    case CURLE_OUT_OF_MEMORY:
        return why_set(why, ENOMEM, "out of memory");
    default:
        return why_set(why, EPROTO, "%s", h->too_long ? "the answer is too long" : said(h, code));
    }
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct curl_slist *make_headers(const char *const *lines)
{
    struct curl_slist *headers = NULL;

    for (; *lines; lines++) {
        struct curl_slist *longer = curl_slist_append(headers, *lines);

        if (!longer) {
            curl_slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

static void prepare(struct http *h, const struct http_request *request, struct curl_slist *headers)
{
    text_cut(&h->body, 0);
    h->too_long = false;
    *h->error = '\0';
    h->request = request;
    curl_easy_setopt(h->curl, CURLOPT_URL, request->url);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    if (request->body) {
        curl_easy_setopt(h->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    } else {
        curl_easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, request->method);
}

int http_exchange(struct http *h, const struct http_request *request, struct http_answer *answer,
                  struct why *why)
{
    struct curl_slist *headers = make_headers(request->headers);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long status = 0;

    prepare(h, request, headers);
    if (headers)
        code = curl_easy_perform(h->curl);
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    h->request = NULL;
    *answer = (struct http_answer){ (int)status, text_str(&h->body), h->body.length };
    return code == CURLE_OK ? 0 : explain_failure(h, code, why);
}

int http_new(struct http **out, const struct http_options *options)
{
    struct http *h = calloc(1, sizeof(*h));

    if (!h)
        return -ENOMEM;
    h->o = *options;
    h->curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    if (!h->curl) {
        http_free(h);
        return -ENOMEM;
    }
    curl_easy_setopt(h->curl, CURLOPT_UNIX_SOCKET_PATH, h->o.socket);
    curl_easy_setopt(h->curl, CURLOPT_CAINFO, h->o.ca_file);
    curl_easy_setopt(h->curl, CURLOPT_CAPATH, NULL); /* not whom the system trusts */
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(h->curl, CURLOPT_CA_CACHE_TIMEOUT,
                     0L); /* a file that was replaced counts at once */
#endif
    curl_easy_setopt(h->curl, CURLOPT_HTTP_VERSION,
                     (long)(h->o.http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                       : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(h->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)h->o.timeout_ms);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->error);
    curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(h->curl, CURLOPT_HEADERDATA, h);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
    curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(h->curl, CURLOPT_XFERINFODATA, h);
    *out = h;
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->curl);
    curl_global_cleanup();
    text_release(&h->body);
    free(h);
}
