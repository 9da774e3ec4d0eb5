/*
 * gRPC: one call with one message each way, over a Unix socket. See grpc.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/grpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "k8s/common/http.h"
#include "sim/text.h"
#include "sim/unit.h"

enum {
    FRAME = 5,                           /* a flag and the length, big endian */
    BODY_MAX = 16 * 1024 * 1024 + FRAME, /* what the kubelet's own clients take */
    NO_STATUS = -1,
};

struct grpc {
    struct grpc_options o;
    struct http *http;
    struct text message; /* grpc-message, decoded */
    int64_t status;      /* grpc-status, or NO_STATUS */
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

/* In the headers or, behind the body, in the trailers. */
static void take_header(void *context, const char *name, const char *value)
{
    struct grpc *g = context;

    if (!strcasecmp(name, "grpc-status") && parse_i64(value, &g->status) < 0)
        g->status = NO_STATUS;
    if (!strcasecmp(name, "grpc-message")) {
        text_cut(&g->message, 0);
        decode_message(&g->message, value);
    }
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

static int explain_answer(struct grpc *g, const struct http_answer *answer,
                          struct grpc_message *reply, struct why *why)
{
    const char *message = text_str(&g->message);

    if (g->status > 0)
        return why_set(why, EREMOTEIO, "%s refuses: %s%s%s", g->o.socket, status_name(g->status),
                       *message ? ": " : "", message);
    if (answer->status != 200)
        return why_set(why, EPROTO, "%s does not speak gRPC: it answers with HTTP status %d",
                       g->o.socket, answer->status);
    if (g->status != 0)
        return why_set(why, EPROTO, "%s does not speak gRPC: its answer has no status",
                       g->o.socket);
    return grpc_unframe((const uint8_t *)answer->body, answer->length, reply, why);
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

int grpc_call(struct grpc *g, const char *method, struct grpc_message request,
              struct grpc_message *reply, struct why *why)
{
    static const char *const headers[] = { "content-type: application/grpc", "te: trailers",
                                           "user-agent: fakegpu-pods/" FAKEGPUFS_VERSION, NULL };
    struct text url = TEXT_INIT, body = TEXT_INIT;
    struct http_answer answer;
    int r = -ENOMEM;

    text_cut(&g->message, 0);
    g->status = NO_STATUS;
    text_addf(&url, "http://localhost/%s", method);
    frame(&body, request);
    if (!url.failed && !body.failed)
        r = http_exchange(g->http,
                          &(struct http_request){ "POST", text_str(&url), headers, text_str(&body),
                                                  body.length, take_header, g },
                          &answer, why);
    else
        why_set(why, ENOMEM, "out of memory");
    /* A status says more than the way in which the stream ended. */
    if (r == 0 || g->status > 0)
        r = explain_answer(g, &answer, reply, why);
    else if (r == -EPROTO)
        r = why_set(why, EPROTO, "%s does not speak gRPC: %s", g->o.socket, why_text(why));
    text_release(&url);
    text_release(&body);
    return r;
}

int grpc_new(struct grpc **out, const struct grpc_options *options)
{
    const struct http_options http = { .where = options->socket,
                                       .socket = options->socket,
                                       .http2 = true,
                                       .body_max = BODY_MAX,
                                       .timeout_ms = options->timeout_ms,
                                       .interrupted = options->interrupted,
                                       .context = options->context };
    struct grpc *g = calloc(1, sizeof(*g));

    if (!g)
        return -ENOMEM;
    g->o = *options;
    if (http_new(&g->http, &http) < 0) {
        grpc_free(g);
        return -ENOMEM;
    }
    *out = g;
    return 0;
}

void grpc_free(struct grpc *g)
{
    if (!g)
        return;
    http_free(g->http);
    text_release(&g->message);
    free(g);
}
