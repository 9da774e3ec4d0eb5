/*
 * gRPC: one call with one message each way, over a Unix socket.
 *
 * HTTP/2 is k8s/common/http.h's, with a connection for each call. This knows gRPC's frame around a message and
 * its status in the trailers, and nothing of what the messages say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_GRPC_H
#define K8S_PODS_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/why.h"

struct grpc;

struct grpc_options {
    const char *socket; /* its path; borrowed */
    int timeout_ms;     /* of a call */
    /* Asked now and then during a call; true ends it with -EINTR. May be NULL. */
    bool (*interrupted)(void *context);
    void *context;
};

struct grpc_message {
    const uint8_t *data; /* good until the next call */
    size_t length;
};

/* 0 or -ENOMEM. */
int grpc_new(struct grpc **grpc, const struct grpc_options *options);
void grpc_free(struct grpc *grpc);

/*
 * Calls `method` ("v1.PodResourcesLister/List"). 0; -ECONNREFUSED: nobody answers there; -ETIMEDOUT; -EINTR;
 * -EREMOTEIO: the server refused, with its status in the sentence; -EPROTO: what it said is not gRPC.
 */
int grpc_call(struct grpc *grpc, const char *method, struct grpc_message request,
              struct grpc_message *reply, struct why *why);

/* The one message in a body. 0 or -EPROTO. */
int grpc_unframe(const uint8_t *body, size_t length, struct grpc_message *message, struct why *why);

#endif
