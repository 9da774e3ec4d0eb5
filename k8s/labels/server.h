/*
 * Server: the API server of a cluster, for one node.
 *
 * The token is read anew for each request, because it is replaced now and then. It is in no sentence, even when the
 * server says it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_SERVER_H
#define K8S_LABELS_SERVER_H

#include <stdbool.h>

#include "k8s/labels/node.h"

struct server;

/* Texts are borrowed. */
struct server_options {
    const char *url; /* https://HOST:PORT */
    const char *token_file, *ca_file;
    const char *node; /* its name */
    int timeout_ms;   /* of a request */
    bool (*interrupted)(void *context);
    void *context;
};

/* 0 or -ENOMEM. */
int server_new(struct server **server, const struct server_options *options);
void server_free(struct server *server);

/*
 * 0; -EBUSY: the node was changed since it was read; -EREMOTEIO: the server refuses, with its words in the sentence;
 * -EINTR; others: there is no token, no server, or it says nonsense.
 */
int server_get(struct server *server, struct node *node, struct arena *arena, struct why *why);
int server_patch(struct server *server, const char *patch, struct why *why);

/* The word of a header or a line that a token file holds, into `token`. 0 or -EINVAL: there is none, or more. */
int server_read_token(struct text *token, const char *text);

/* Appends what a server said, fit for a log: one line, not too long, without the token. */
void server_quote(struct text *out, const char *said, const char *token);

#endif
