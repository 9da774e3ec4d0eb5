/*
 * Push: sends what is served to an OpenTelemetry receiver, every so often.
 *
 * Two threads: one collects on time, the other sends. Between them is a queue of a fixed length, so that a
 * receiver that is away costs the oldest requests and not memory. Secrets (headers, users in the URL) are
 * never logged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_PUSH_H
#define EXPORTER_PUSH_H

#include <stdbool.h>
#include <stdint.h>

struct push;
struct stage;
struct why;

/* Borrowed texts; NULL where there is none. */
struct push_options {
    const char *endpoint;    /* URL; /v1/metrics is added unless it ends in that */
    const char *headers;     /* "name=value,…", values percent-encoded */
    const char *certificate; /* file of authorities to trust instead of the system's */
    const char *resource;    /* attributes, written as headers are */
    const char *service;     /* name of the service */
    const char *hostname;
    const char *node; /* name of the Kubernetes node */
    int64_t interval_ns;
    bool gzip;
};

/* Looks at the options. NULL with a sentence. */
struct push *push_new(const struct push_options *options, struct why *why);
void push_free(struct push *push);

/* Begins to send what the stage has. 0 or -errno with a sentence. */
int push_start(struct push *push, struct stage *stage, struct why *why);

/* Tries once more to send what is queued, for `grace_ns` at most, and ends. Needs not have begun. */
void push_stop(struct push *push, int64_t grace_ns);

#endif
