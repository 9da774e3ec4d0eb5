/*
 * HTTP: one request and its answer, on libcurl; the only place that knows libcurl.
 *
 * Every request has a connection of its own: a server that was started anew, or another one in its place,
 * needs no care. No proxy is asked and no redirection followed: what is sent goes to whom it was meant for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_COMMON_HTTP_H
#define K8S_COMMON_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/why.h"

struct http;

/* Texts are borrowed. */
struct http_options {
    const char *where;   /* what sentences call the server: its socket, its URL */
    const char *socket;  /* a Unix socket's path; NULL: where the URL of a request says */
    const char *ca_file; /* who must have certified a server, and nobody else will do; for https */
    bool http2;          /* at once, without asking; else HTTP/1.1 */
    size_t body_max;     /* bytes of an answer */
    int timeout_ms;      /* of a request */
    /* Asked now and then during a request; true ends it with -EINTR. May be NULL. */
    bool (*interrupted)(void *context);
    void *context;
};

struct http_request {
    const char *method, *url;
    const char *const *headers; /* "name: value"; ends with NULL */
    const char *body;           /* NULL: none */
    size_t length;
    /* Called for each header of the answer, and for each trailer. May be NULL. */
    void (*take_header)(void *context, const char *name, const char *value);
    void *context;
};

/* The body has a NUL behind it and is good until the next request. */
struct http_answer {
    int status;
    const char *body;
    size_t length;
};

/* 0 or -ENOMEM. */
int http_new(struct http **http, const struct http_options *options);
void http_free(struct http *http);

/*
 * 0, whatever the status; -ECONNREFUSED: nobody answers there; -ETIMEDOUT; -EINTR; -EACCES: who answers is not
 * certified; -ENOMEM; -EPROTO: there is no whole answer, and the sentence is but the reason. The answer has what
 * had come by then.
 */
int http_exchange(struct http *http, const struct http_request *request, struct http_answer *answer,
                  struct why *why);

#endif
