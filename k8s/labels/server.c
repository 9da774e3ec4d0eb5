/*
 * Server: the API server of a cluster, for one node. See server.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "k8s/common/http.h"

enum {
    ANSWER_MAX = 4 * 1024 * 1024, /* bytes; no object of a cluster is as large */
    TOKEN_MAX = 64 * 1024,        /* bytes; headers must stay far below */
    QUOTE_MAX = 1000,             /* bytes of what a server said */
    CONFLICT = 409,
};

#define PATCH_TYPE "content-type: application/merge-patch+json"
/* Without what is not metadata: that is most of a node. Who cannot do this sends all of it. */
#define ACCEPT \
    "accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

struct server {
    struct server_options o;
    struct http *http;
    struct text url; /* of the node */
};

/* --- the token ------------------------------------------------------------------------------- */

int server_read_token(struct text *token, const char *text)
{
    size_t begin = strspn(text, " \t\r\n"), n = strcspn(text + begin, " \t\r\n");

    if (!n || text[begin + n + strspn(text + begin + n, " \t\r\n")])
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (text[begin + i] < '!' || text[begin + i] > '~')
            return -EINVAL;
    text_addn(token, text + begin, n);
    return 0;
}

/* The whole of a small file: its length or -errno. */
static ssize_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 0, length = 0;

    if (fd >= 0)
        while ((size_t)length < size && (n = read(fd, buf + length, size - (size_t)length)) > 0)
            length += n;
    length = n < 0 ? -errno : (size_t)length == size ? -E2BIG : length;
    if (fd >= 0)
        close(fd);
    return length;
}

static int load_token(const struct server *s, struct text *token, struct why *why)
{
    char *text = malloc(TOKEN_MAX);
    ssize_t n = text ? read_file(s->o.token_file, text, TOKEN_MAX) : -ENOMEM;
    int r = 0;

    if (n < 0) {
        r = why_set(why, (int)-n, "cannot read the token '%s': %s", s->o.token_file,
                    strerror((int)-n));
    } else {
        text[n] = '\0';
        if (strlen(text) != (size_t)n || server_read_token(token, text) < 0)
            r = why_set(why, EINVAL, "'%s' has no token: one word is expected", s->o.token_file);
    }
    free(text);
    return r;
}

/* --- what is refused ------------------------------------------------------------------------- */

void server_quote(struct text *out, const char *said, const char *token)
{
    size_t secret = strlen(token), end = out->length + QUOTE_MAX;

    while (*said && out->length < end) {
        if (secret && !strncmp(said, token, secret)) {
            text_add(out, "(token)");
            said += secret;
        } else {
            text_addn(out, (unsigned char)*said < ' ' || *said == 0x7f ? " " : said, 1);
            said++;
        }
        if (out->failed)
            return;
    }
    if (*said)
        text_add(out, "…");
}

static int explain_refusal(const struct server *s, const char *verb,
                           const struct http_answer *answer, const char *token, struct why *why)
{
    struct text message = TEXT_INIT, quoted = TEXT_INIT;
    int err = answer->status == CONFLICT ? EBUSY : EREMOTEIO;

    node_read_status(&message, answer->body, answer->length);
    server_quote(&quoted, text_str(&message), token);
    why_set(why, err, "%s refuses to %s node %s: %s%sHTTP status %d%s", s->o.url, verb, s->o.node,
            text_str(&quoted), quoted.length ? " (" : "", answer->status, quoted.length ? ")" : "");
    text_release(&quoted);
    text_release(&message);
    return -err;
}

/* --- asking ---------------------------------------------------------------------------------- */

static int exchange(struct server *s, const char *verb, const struct http_request *request,
                    const char *token, struct http_answer *answer, struct why *why)
{
    int r = http_exchange(s->http, request, answer, why);

    if (r == -EPROTO)
        return why_set(why, EPROTO, "%s does not answer: %s", s->o.url, why_text(why));
    if (r < 0)
        return r;
    return answer->status == 200 ? 0 : explain_refusal(s, verb, answer, token, why);
}

/* `patch` NULL: only asks. */
static int call(struct server *s, const char *patch, struct http_answer *answer, struct why *why)
{
    struct text token = TEXT_INIT, authorization = TEXT_INIT;
    int r = load_token(s, &token, why);

    text_addf(&authorization, "authorization: Bearer %s", text_str(&token));
    if (r == 0 && (token.failed || authorization.failed))
        r = why_set(why, ENOMEM, "out of memory");
    if (r == 0) {
        const char *headers[] = { text_str(&authorization), ACCEPT,
                                  "user-agent: fakegpu-labels/" FAKEGPUFS_VERSION,
                                  patch ? PATCH_TYPE : NULL, NULL };
        const struct http_request request = { .method = patch ? "PATCH" : "GET",
                                              .url = text_str(&s->url),
                                              .headers = headers,
                                              .body = patch,
                                              .length = patch ? strlen(patch) : 0 };

        r = exchange(s, patch ? "patch" : "get", &request, text_str(&token), answer, why);
    }
    text_release(&authorization);
    text_release(&token);
    return r;
}

int server_get(struct server *s, struct node *node, struct arena *arena, struct why *why)
{
    struct http_answer answer;
    int r = call(s, NULL, &answer, why);

    if (r < 0)
        return r;
    r = node_read(node, s->o.node, answer.body, answer.length, arena, why);
    return r < 0 ? why_set(why, -r, "%s: %s", s->o.url, why_text(why)) : 0;
}

int server_patch(struct server *s, const char *patch, struct why *why)
{
    struct http_answer answer;

    return call(s, patch, &answer, why);
}

int server_new(struct server **out, const struct server_options *options)
{
    const struct http_options http = { .where = options->url,
                                       .ca_file = options->ca_file,
                                       .body_max = ANSWER_MAX,
                                       .timeout_ms = options->timeout_ms,
                                       .interrupted = options->interrupted,
                                       .context = options->context };
    struct server *s = calloc(1, sizeof(*s));
    int r = s ? http_new(&s->http, &http) : -ENOMEM;

    if (r == 0) {
        s->o = *options;
        text_addf(&s->url, "%s/api/v1/nodes/%s", s->o.url, s->o.node);
        r = s->url.failed ? -ENOMEM : 0;
    }
    if (r < 0) {
        server_free(s);
        return r;
    }
    *out = s;
    return 0;
}

void server_free(struct server *s)
{
    if (!s)
        return;
    http_free(s->http);
    text_release(&s->url);
    free(s);
}
