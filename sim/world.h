/*
 * World: the whole state of a simulated node, flat in one block of memory.
 *
 * A store is a memfd with a head, the event ring and two copies of the world. A change copies the
 * current world to the other place, works there, and flips: readers of the current one see all of a
 * change or nothing, a crash in mid-change loses nothing, and another process can map the memfd and go
 * on. There is not one pointer in it: sections are arrays, references are positions.
 *
 * PLAN sections change by commands only, LIVE sections change at every step. A change notes what it
 * touches, so that the next one copies that and no more. A copy has room for what it holds; when a change
 * needs more room, its copy is laid out anew.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/archive.h"
#include "sim/event.h"
#include "sim/fault.h"
#include "sim/gpu.h"
#include "sim/model.h"
#include "sim/node_names.h"
#include "sim/physics.h"
#include "sim/signal.h"
#include "sim/workload.h"

struct why;

/* A profile in the world: its pins are signals [first, first + count). */
struct profile {
    char name[32];
    uint32_t first_pin, pin_count;
};

/* One of several nodes that share the mount: GPUs [first, first + count). */
struct fleet_node {
    char name[NODE_NAME];
    uint32_t first, count;
};

/*
 * Positions of GPUs, or of nodes, in the order of what they are looked for by. One behind the other: for GPUs
 * as many as there are, for nodes likewise.
 */
enum gpu_order { ORDER_BUS, ORDER_MINOR, ORDER_UUID, GPU_ORDERS };

/* SECTION(ID, name, type, PLAN or LIVE) */
/* clang-format off */
#define WORLD_SECTIONS(SECTION)                           \
    SECTION(MODELS, models, struct gpu_model, PLAN)       \
    SECTION(PROFILES, profiles, struct profile, PLAN)     \
    SECTION(SIGNALS, signals, struct signal, PLAN)        \
    SECTION(PHASES, phases, struct phase, PLAN)           \
    SECTION(GPU_PLANS, gpu_plans, struct gpu_plan, PLAN)  \
    SECTION(NODES, nodes, struct fleet_node, PLAN)        \
    SECTION(ORDERS, orders, uint32_t, PLAN)               \
    SECTION(WORKLOADS, workloads, struct workload, PLAN)  \
    SECTION(NAMES, names, uint64_t, PLAN)                 \
    SECTION(LIMITS, limits, struct limit, PLAN)           \
    SECTION(FAULTS, faults, struct planned_fault, PLAN)   \
    SECTION(GPUS, gpus, struct gpu, LIVE)                 \
    SECTION(RUNS, runs, struct run, LIVE)                 \
    SECTION(SHARES, shares, struct share, LIVE)           \
    SECTION(DUE, due, struct due_fault, LIVE)
/* clang-format on */

enum world_section {
#define SECTION(id, name, type, kind) SECTION_##id,
    WORLD_SECTIONS(SECTION)
#undef SECTION
        SECTION_COUNT
};

/* A workload as it was described. The hash of its name has the same position in the names. */
struct workload {
    char name[WORKLOAD_NAME];
    char namespace[WORKLOAD_NAME], pod[WORKLOAD_POD], container[WORKLOAD_NAME];
    uint64_t id;        /* never used again */
    uint64_t spec_hash; /* of a workload from the configuration: unchanged ones go on */
    int32_t pid, from_config;
    int32_t attached; /* how many hold its `attach` open */
    uint32_t uid;
    uint32_t first_signal, signal_count; /* all that it has in the pool */
    uint32_t first_phase, phase_count;   /* its activity */
    int32_t memory_signal;               /* position, or -1 */
    uint32_t first_limit, limit_count;
    int64_t repeat, start_ns, sample_ns;
    double capability; /* of the model its times were measured on; 0 for any */
};

struct limit {
    int32_t target; /* a metric or enum limit_target */
    int64_t value;
};

struct planned_fault {
    int64_t at_ns, for_ns, every_ns;
    int32_t gpu; /* position, or -1 for all */
    struct fault fault;
};

enum run_state { RUN_WAITING, RUN_RUNNING, RUN_ENDED };

/* How a workload is doing; the run of a workload has the same position. */
struct run {
    uint32_t state; /* enum run_state */
    int32_t exit_code;
    uint32_t first_share, share_count;
    int64_t started_ns, ended_ns;
    int64_t progress_ns; /* along its timeline, in its own time */
    int64_t next_sample_ns;
    uint32_t phase;          /* that `value` belongs to */
    int64_t energy_start_mj; /* of its GPUs together */
    double
        value[CHANNEL_COUNT]; /* what it asks of each of its GPUs now; NAN where it says nothing */
    struct rng rng;
    int32_t reason; /* ended: see run_message */
    int32_t reason_detail;
};

/* What a share keeps busy beside the SMs, in percent. */
enum share_engine {
    SHARE_MEMORY,
    SHARE_ENCODER,
    SHARE_DECODER,
    SHARE_JPEG,
    SHARE_OFA,
    SHARE_ENGINES
};

/* One workload on one GPU, or on one MIG instance of it. */
struct share {
    int32_t gpu;
    int16_t gi, ci; /* -1: on the whole GPU */
    uint32_t run;
    int64_t memory_bytes;
    double utilization_percent;   /* of the whole GPU; after clamping, in 1/1000 */
    float engines[SHARE_ENGINES]; /* likewise */
    struct account account;
};

/* When a planned fault happens next. */
struct due_fault {
    int64_t at_ns; /* INT64_MAX: never again */
};

/* The node: what it is. */
struct node_plan {
    char name[NODE_NAME];
    char driver_version[32], cuda_version[16], nvml_version[32];
    int32_t kernel_module, mig_strategy;
    int32_t dev, nvlink_topology;
    uint32_t dev_mode, control_mode, workloads_mode, uid, gid;
    uint64_t seed;
    int64_t step_ns, update_interval_ns;
    int32_t numa_nodes;
    double speed;                        /* as configured */
    uint32_t first_signal, signal_count; /* pins of profiles and GPUs, as one piece of the pools */
    uint32_t first_phase, phase_count;
    struct physics physics;
};

/* How much of a stream there is, and in which of its two buffers. */
struct stream_state {
    uint32_t buffer, length;
    uint64_t lines; /* that were ever written */
    uint64_t turns; /* how often it was started anew */
};

enum { APPLIED_KEPT = 32 };

/* The node: how it is. */
struct node {
    uint64_t generation; /* grows by one with every flip */
    int64_t now_ns;      /* simulated time */
    double speed;
    int32_t paused;
    double due_ns;   /* simulated time that has passed but is not yet a whole step */
    uint64_t events; /* events that have happened */
    struct stream_state streams[STREAMS];
    uint64_t next_workload, next_gpu; /* ids */
    int64_t real_ns;      /* on the real clock: up to there `due_ns` counts; 0: not yet */
    int64_t run_until_ns; /* steps are due until then, by the clock or a `step` command */
    uint64_t applied
        [APPLIED_KEPT]; /* requests whose effect is in this world, newest overwriting oldest */
    uint32_t next_applied;
};

/* Items [first, end) of a section; none where that is empty. */
struct touched {
    uint32_t first, end;
};

struct world {
    uint64_t bytes;
    uint64_t plan_version;
    uint32_t used[SECTION_COUNT], room[SECTION_COUNT];
    struct touched touched[SECTION_COUNT]; /* since it was equal to the other copy */
    uint64_t offset[SECTION_COUNT];        /* from this struct */
    struct node_plan node_plan;
    struct node node;
};

#define SECTION(id, name, type, kind)                                    \
    static inline type *world_##name(const struct world *w)              \
    {                                                                    \
        return (type *)((char *)(uintptr_t)w + w->offset[SECTION_##id]); \
    }
WORLD_SECTIONS(SECTION)
#undef SECTION

static inline const struct gpu_model *world_gpu_model(const struct world *w, int gpu)
{
    return &world_models(w)[world_gpu_plans(w)[gpu].model];
}

/* Whether it is a share of a run that runs. */
static inline bool world_share_runs(const struct world *w, const struct share *share)
{
    return world_runs(w)[share->run].state == RUN_RUNNING;
}

static inline struct signal_pool world_pool(const struct world *w)
{
    return (struct signal_pool){ world_signals(w), world_phases(w) };
}

/* --- the store ------------------------------------------------------------------------------- */

struct world_head {
    uint64_t magic;
    uint64_t layout; /* fingerprint of all types above; a world of another layout is not touched */
    _Atomic uint32_t current; /* 0 or 1 */
    uint64_t place[2];        /* offset of each copy; 0: none yet */
    struct event ring[EVENT_RING];
    char streams[STREAMS][2][STREAM_BYTES]; /* text behind the published length is not there yet */
    struct archive archives[ARCHIVES];      /* memory only where something was written */
};

struct world_store {
    int fd;                  /* owned */
    struct world_head *head; /* mapped, larger than the file so that it can grow in place */
    uint64_t request;        /* the next commit is (also) the effect of this request; 0: of none */
    uint64_t copied;         /* bytes of sections, from one copy to the other */
};

/* A new store without a world. */
int world_store_create(struct world_store *s, struct why *why);

/* Maps the store behind `fd`, which it then owns. -EPROTO when its layout is another. */
int world_store_adopt(struct world_store *s, int fd, struct why *why);

void world_store_release(struct world_store *s);

/* The published world, or NULL before the first. Valid until two more flips. */
const struct world *world_current(const struct world_store *s);

/*
 * The other copy, equal to the current one, with room for at least need[i] items in section i (NULL:
 * for what is used). The caller changes it, then commits; or drops it by doing nothing. He may change
 * any LIVE section, as a step does, and says so when he changed a PLAN section.
 */
struct world *world_begin(struct world_store *s, const uint32_t need[SECTION_COUNT],
                          struct why *why);

/*
 * The same for a change of a few items, or of the node alone: the caller says of each item, LIVE or PLAN, that
 * he touches it.
 */
struct world *world_begin_part(struct world_store *s, const uint32_t need[SECTION_COUNT],
                               struct why *why);

/* Says that `next` is about to be changed, or was, in `count` items of a section. */
void world_touch(struct world *next, enum world_section section, uint32_t first, uint32_t count);

/* Publishes the copy of the last world_begin. */
void world_commit(struct world_store *s, struct world *next);

/* Whether the effect of a request is in the published world: it must not be applied again. */
bool world_applied(const struct world_store *s, uint64_t request);

/* Says that PLAN sections of `next` were changed, whichever. */
void world_plan_changed(struct world *next);

/* Adds an event to the copy being changed; published with it. The number and time are filled in. */
void world_event(struct world_store *s, struct world *next, const struct event *event);

/* Event `number` if it is published and still in the ring, else NULL. */
const struct event *world_event_get(const struct world_store *s, uint64_t number);

/* The published text of a stream. */
const char *world_stream(const struct world_store *s, enum stream stream, uint32_t *length);

/* Bytes of a section that are in use. */
size_t world_section_bytes(const struct world *w, enum world_section section);

/* Bytes of the store's file that are in use by the head, the rings, the archives and both copies. */
size_t world_store_bytes(const struct world_store *s);

#endif
