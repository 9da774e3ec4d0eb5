/*
 * gRPC: one call with one message each way, over a Unix socket. See grpc.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/grpc.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/text.h"
#include "sim/unit.h"

enum {
    FRAME = 5,                           /* a flag and the length, big endian */
    BODY_MAX = 16 * 1024 * 1024 + FRAME, /* what the kubelet's own clients take */
    NO_STATUS = -1,
};

struct grpc {
    struct grpc_options o;
    CURL *curl;
    struct curl_slist *headers;
    struct text body;
    struct text message; /* grpc-message, decoded */
    int64_t status;      /* grpc-status, or NO_STATUS */
    bool too_long;
    char error[CURL_ERROR_SIZE];
};

/* --- what comes back ------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Percent-encoded; control characters have no place in a sentence. */
static void decode_message(struct text *out, const char *s)
{
    for (; *s; s++) {
        int high = *s == '%' ? hex_digit(s[1]) : -1;
        int low = high >= 0 ? hex_digit(s[2]) : -1;
        char c = *s;

        if (low >= 0) {
            c = (char)(high * 16 + low);
            s += 2;
        }
        text_addn(out, (unsigned char)c < ' ' ? " " : &c, 1);
    }
}

/* Trailers come the same way as headers, behind the body. */
static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct grpc *g = context;
    char line[1024];
    char *value;

    if (size * count >= sizeof(line))
        return size * count;
    memcpy(line, data, size * count);
    line[size * count] = '\0';
    value = strchr(line, ':');
    if (!value || parse_trim(value + 1, value + 1, sizeof(line)) < 0)
        return size * count;
    *value++ = '\0';
    if (!strcasecmp(line, "grpc-status") && parse_i64(value, &g->status) < 0)
        g->status = NO_STATUS;
    if (!strcasecmp(line, "grpc-message")) {
        text_cut(&g->message, 0);
        decode_message(&g->message, value);
    }
    return size * count;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct grpc *g = context;

    g->too_long = g->body.length + size * count > BODY_MAX;
    if (g->too_long)
        return 0;
    text_addn(&g->body, data, size * count);
    return g->body.failed ? 0 : size * count;
}

static int look_up(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct grpc *g = context;

    (void)a, (void)b, (void)c, (void)d;
    return g->o.interrupted && g->o.interrupted(g->o.context);
}

int grpc_unframe(const uint8_t *body, size_t length, struct grpc_message *message, struct why *why)
{
    size_t said;

    if (length < FRAME)
        return why_set(why, EPROTO, "the answer ends in the middle of a frame");
    if (body[0] != 0)
        return why_set(why, EPROTO, "the answer is compressed, which was not asked for");
    said = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
    if (said != length - FRAME)
        return why_set(why, EPROTO, "the answer has a message of %zu bytes in a frame of %zu",
                       length - FRAME, said);
    *message = (struct grpc_message){ body + FRAME, said };
    return 0;
}

/* --- what it means --------------------------------------------------------------------------- */

static const char *status_name(int64_t status)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };

    return status >= 0 && status < (int64_t)(sizeof(names) / sizeof(names[0])) ? names[status]
                                                                               : "UNKNOWN";
}

/* libcurl's word for it, or the code's when it has none. */
static const char *said(const struct grpc *g, CURLcode code)
{
    return *g->error ? g->error : curl_easy_strerror(code);
}

static int explain_failure(struct grpc *g, CURLcode code, struct why *why)
{
    long err = 0;

    switch (code) {
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(g->curl, CURLINFO_OS_ERRNO, &err);
        return why_set(why, ECONNREFUSED, "nobody answers on %s: %s", g->o.socket,
                       err ? strerror((int)err) : "connections are closed at once");
    case CURLE_OPERATION_TIMEDOUT:
        return why_set(why, ETIMEDOUT, "no answer on %s within %d ms", g->o.socket,
                       g->o.timeout_ms);
    case CURLE_ABORTED_BY_CALLBACK:
        return why_set(why, EINTR, "interrupted");
    case CURLE_OUT_OF_MEMORY:
        return why_set(why, ENOMEM, "out of memory");
    default:
        return why_set(why, EPROTO, "%s does not speak gRPC: %s", g->o.socket,
                       g->too_long ? "the answer is too long" : said(g, code));
    }
}

static int explain_answer(struct grpc *g, struct grpc_message *reply, struct why *why)
{
    const char *message = text_str(&g->message);
    long http = 0;

    curl_easy_getinfo(g->curl, CURLINFO_RESPONSE_CODE, &http);
    if (g->status > 0)
        return why_set(why, EREMOTEIO, "%s refuses: %s%s%s", g->o.socket, status_name(g->status),
                       *message ? ": " : "", message);
    if (http != 200)
        return why_set(why, EPROTO, "%s does not speak gRPC: it answers with HTTP status %ld",
                       g->o.socket, http);
    if (g->status != 0)
        return why_set(why, EPROTO, "%s does not speak gRPC: its answer has no status",
                       g->o.socket);
    return grpc_unframe((const uint8_t *)text_str(&g->body), g->body.length, reply, why);
}

/* --- calling --------------------------------------------------------------------------------- */

static void frame(struct text *out, struct grpc_message m)
{
    const char head[FRAME] = { 0, (char)(m.length >> 24), (char)(m.length >> 16),
                               (char)(m.length >> 8), (char)m.length };

    text_addn(out, head, FRAME);
    if (m.length)
        text_addn(out, (const char *)m.data, m.length);
}

static void forget_answer(struct grpc *g)
{
    text_cut(&g->body, 0);
    text_cut(&g->message, 0);
    g->status = NO_STATUS;
    g->too_long = false;
    *g->error = '\0';
}

int grpc_call(struct grpc *g, const char *method, struct grpc_message request,
              struct grpc_message *reply, struct why *why)
{
    struct text url = TEXT_INIT, body = TEXT_INIT;
    CURLcode code;
    int r;

    forget_answer(g);
    text_addf(&url, "http://localhost/%s", method);
    frame(&body, request);
    curl_easy_setopt(g->curl, CURLOPT_URL, text_str(&url));
    curl_easy_setopt(g->curl, CURLOPT_POSTFIELDS, text_str(&body));
    curl_easy_setopt(g->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.length);
    code = url.failed || body.failed ? CURLE_OUT_OF_MEMORY : curl_easy_perform(g->curl);
    /* A status says more than the way in which the stream ended. */
    r = code == CURLE_OK || g->status > 0 ? explain_answer(g, reply, why)
                                          : explain_failure(g, code, why);
    text_release(&url);
    text_release(&body);
    return r;
}

static bool add_header(struct grpc *g, const char *header)
{
    struct curl_slist *longer = curl_slist_append(g->headers, header);

    if (longer)
        g->headers = longer;
    return longer != NULL;
}

int grpc_new(struct grpc **out, const struct grpc_options *options)
{
    struct grpc *g = calloc(1, sizeof(*g));

    if (!g)
        return -ENOMEM;
    g->o = *options;
    g->curl = curl_easy_init();
    if (!g->curl || !add_header(g, "content-type: application/grpc") ||
        !add_header(g, "te: trailers") ||
        !add_header(g, "user-agent: fakegpu-pods/" FAKEGPUFS_VERSION)) {
        grpc_free(g);
        return -ENOMEM;
    }
    curl_easy_setopt(g->curl, CURLOPT_UNIX_SOCKET_PATH, g->o.socket);
    curl_easy_setopt(g->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(g->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(g->curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(g->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(g->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(g->curl, CURLOPT_TIMEOUT_MS, (long)g->o.timeout_ms);
    curl_easy_setopt(g->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(g->curl, CURLOPT_HTTPHEADER, g->headers);
    curl_easy_setopt(g->curl, CURLOPT_ERRORBUFFER, g->error);
    curl_easy_setopt(g->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(g->curl, CURLOPT_HEADERDATA, g);
    curl_easy_setopt(g->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(g->curl, CURLOPT_WRITEDATA, g);
    curl_easy_setopt(g->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(g->curl, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(g->curl, CURLOPT_XFERINFODATA, g);
    *out = g;
    return 0;
}

void grpc_free(struct grpc *g)
{
    if (!g)
        return;
    curl_easy_cleanup(g->curl);
    curl_slist_free_all(g->headers);
    text_release(&g->body);
    text_release(&g->message);
    free(g);
}
