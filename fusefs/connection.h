/*
 * Connection: to the kernel, which outlives the processes that serve it.
 *
 * The kernel's INIT request comes once. It is kept, and each later worker is fed the same request before
 * anything else; its answer goes nowhere. Then the kernel is asked to send again what the worker before
 * had read and not answered.
 *
 * Who asks once mostly asks again at once, and to wake a sleeping thread on another processor takes far
 * longer than an answer: so after each request the connection looks out for the next for a moment before
 * it sleeps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CONNECTION_H
#define FUSEFS_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;
struct shared;

struct connection {
    int fd;
    int stop_fd; /* readable: wait no longer */
    struct fuse_session *se;
    struct shared *shared;
    bool replay;      /* the next read is the kept INIT */
    uint64_t swallow; /* the answer to this request goes nowhere; 0: none */
    bool resent;      /* the kernel was asked for what was left unanswered */
};

/* Lets the session use the connection, which must stay where it is. 0 or -errno. */
int connection_attach(struct connection *c, struct fuse_session *se, int fd, struct shared *shared);

/* Ends the session, also while it waits for a request. For signal handlers. */
void connection_stop(struct connection *c);

void connection_release(struct connection *c);

/* After the session has seen INIT: asks the kernel for what was left unanswered. */
void connection_resume(struct connection *c);

/* The number of the request in a received buffer; resent ones have the same number as before. */
uint64_t connection_request(const void *buffer, bool *resent);

/* Wakes the poller with that handle. */
void connection_wake(const struct connection *c, uint64_t poll_handle);

#endif
