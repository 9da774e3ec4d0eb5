/*
 * Event: what happened, in order, numbered without gaps.
 *
 * The ring is not copied from world to world. What is written behind the current world's `events`
 * count is not there yet: the flip that publishes a world publishes its events, and a step that is
 * lost takes its events with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <stdint.h>

struct text;

enum event_kind {
    EVENT_XID,     /* code: the Xid; text: what the driver's log says */
    EVENT_ECC_SBE, /* value: how many */
    EVENT_ECC_DBE,
    EVENT_ROW_REMAP, /* code: enum fault_which; value: how many */
    EVENT_PAGE_RETIRED,
    EVENT_PSTATE, /* code: before; value: now */
    EVENT_CLOCKS, /* code: throttle reasons before; value: now */
    EVENT_NVLINK, /* code: link; value: 1 up, 0 down */
    EVENT_LOST,   /* the GPU fell off the bus */
    EVENT_RECOVERED,
    EVENT_FAULT,            /* text: the fault as it was written */
    EVENT_WORKLOAD_STARTED, /* text: name */
    EVENT_WORKLOAD_ENDED,   /* text: name; code: exit code */
    EVENT_GPU_ADDED,
    EVENT_GPU_REMOVED,
    EVENT_CONFIG, /* a configuration was applied */
    EVENT_DRIVER, /* the driver was loaded; text: its version */
    EVENT_KINDS
};

enum { EVENT_RING = 512, EVENT_TEXT = 96 };

struct event {
    uint64_t number; /* from 1 */
    int64_t time_ns; /* simulated */
    uint32_t kind;
    int32_t gpu;                            /* position, or -1 */
    uint32_t domain, bus, device, function; /* of that GPU, which may be gone */
    int64_t code, value;
    char text[EVENT_TEXT];
};

/* "xid", "workload_started" … */
const char *event_name(enum event_kind kind);

/*
 * The same as text that grows: what a reader of the node follows. `events` has a line for every event,
 * `kmsg` the lines that a driver would leave in the kernel's log.
 */
enum stream { STREAM_EVENTS, STREAM_KMSG, STREAMS };

/* When a stream is full it starts anew with its newest half, as a log file that is rotated. */
enum { STREAM_BYTES = 192 * 1024 };

/* Appends the event's line of that stream; nothing where it has none. */
void event_line(struct text *out, enum stream stream, const struct event *event);

#endif
