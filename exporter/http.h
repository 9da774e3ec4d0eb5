/*
 * HTTP: what is answered to whom. Routes are rows of a table in http.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_HTTP_H
#define EXPORTER_HTTP_H

#include <microhttpd.h>
#include <stdbool.h>

struct stage;
struct users;

/* What a handler of requests works with; one for each listening socket. */
struct http {
    struct stage *stage;
    struct users *users; /* who may ask; NULL: everybody */
};

/* Whether the request announces a body. */
bool http_has_body(struct MHD_Connection *connection);

/* Answers one request, of which the headers have come; a body is refused unread. */
enum MHD_Result http_answer(struct http *http, struct MHD_Connection *connection, const char *path,
                            const char *method);

/*
 * Queues a text as a whole. `type` is its content type. Adds what every answer has. For routes.
 */
enum MHD_Result http_send(struct MHD_Connection *connection, unsigned status, const char *type,
                          const char *text, size_t length);

#endif
