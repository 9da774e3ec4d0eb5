/*
 * Workload: what a running job does to its GPUs, as written by a person.
 *
 * This is the grammar (activities, memory, limits, identity). How a workload runs is runs.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/bind.h"
#include "sim/metric.h"
#include "sim/signal.h"

/* CHANNEL(ID, key, unit): what a workload can keep busy. A channel that is not given follows from the others. */
/* clang-format off */
#define CHANNEL_TABLE(CHANNEL)                                  \
    CHANNEL(UTILIZATION, "utilization", PERCENT)                \
    CHANNEL(MEMORY_UTILIZATION, "memory_utilization", PERCENT)  \
    CHANNEL(SM_ACTIVE, "sm_active", PERCENT)                    \
    CHANNEL(OCCUPANCY, "occupancy", PERCENT)                    \
    CHANNEL(TENSOR, "tensor", PERCENT)                          \
    CHANNEL(FP64, "fp64", PERCENT)                              \
    CHANNEL(FP32, "fp32", PERCENT)                              \
    CHANNEL(FP16, "fp16", PERCENT)                              \
    CHANNEL(INTEGER, "integer", PERCENT)                        \
    CHANNEL(ENCODER, "encoder", PERCENT)                        \
    CHANNEL(DECODER, "decoder", PERCENT)                        \
    CHANNEL(JPEG, "jpeg", PERCENT)                              \
    CHANNEL(OFA, "ofa", PERCENT)                                \
    CHANNEL(PCIE_TX, "pcie_tx", BYTES_PER_SECOND)               \
    CHANNEL(PCIE_RX, "pcie_rx", BYTES_PER_SECOND)               \
    CHANNEL(NVLINK_TX, "nvlink_tx", BYTES_PER_SECOND)           \
    CHANNEL(NVLINK_RX, "nvlink_rx", BYTES_PER_SECOND)           \
    CHANNEL(MEMORY, "memory", BYTES)
/* clang-format on */

enum channel {
#define CHANNEL(id, key, unit) CHANNEL_##id,
    CHANNEL_TABLE(CHANNEL)
#undef CHANNEL
        CHANNEL_COUNT
};

struct channel_info {
    const char *name;
    enum unit unit;
};

extern const struct channel_info channel_infos[CHANNEL_COUNT];

/* What a limit is set on: a metric of its GPUs, or one of these. */
enum limit_target {
    LIMIT_TIME = METRIC_COUNT, /* ns since it started */
    LIMIT_ENERGY,              /* mJ its GPUs used meanwhile */
    LIMIT_MEMORY,              /* bytes per GPU */
    LIMIT_TARGETS
};

const char *limit_name(int target);
enum unit limit_unit(int target);

struct limit_spec {
    int32_t target;
    int64_t value; /* in the parts of its unit */
};

enum {
    WORKLOAD_NAME = 64,
    WORKLOAD_POD = 254,
    WORKLOAD_DEVICES_MAX = 4096,
    WORKLOAD_LIMITS_MAX = 32,
};

struct device_name {
    char text[272]; /* an index, a UUID, a bus id, NODE/INDEX, a MIG device, or "all" */
};

struct workload_spec {
    struct bind_head head;
    char name[WORKLOAD_NAME];
    struct bind_list devices;  /* of struct device_name; empty: `gpus` of them are chosen */
    int64_t gpus;              /* how many, where devices are not named */
    char model[64];            /* the model its times were measured on; "" for any */
    struct bind_list activity; /* of struct phase_spec; the targets are channels */
    struct bind_list memory;   /* of struct signal_spec: none or one */
    int64_t repeat;            /* how often the activity is played; 0 for ever */
    int64_t start_ns;          /* after which simulated time it begins */
    int64_t sample_ns;         /* how often random values change */
    struct bind_list limits;   /* of struct limit_spec */
    char namespace[WORKLOAD_NAME], pod[WORKLOAD_POD], container[WORKLOAD_NAME];
    int64_t pid, uid;
    int attached; /* how many hold it from the beginning; nobody describes that */
};

extern const struct bind_table workload_table;

/* The same without name, devices and start: what one GPU does by itself. */
extern const struct bind_table base_workload_table;

/* The same as far as the files of workloads/NAME go: without gpus, model, start, sample and uid. */
extern const struct bind_table made_workload_table;

/* The defaults: one GPU, played once. */
void workload_spec_init(void *spec);

/*
 * Reads a workload from text, as YAML in flow or block style:
 *     {activity: [{time: 1h, utilization: 80}], repeat: 5, memory: 20GiB}
 * or an activity alone:
 *     [{time: 1h, utilization: 80}, {time: 1h, utilization: 0}], repeat: 5
 *     - {time: 1h, utilization: 80}  (and more such lines)
 *     80:10:30s,0:0:10s              (utilization : fluctuation : time, …)
 * `source` is what sentences call the text. Lists go into `arena`.
 */
int workload_parse(struct workload_spec *spec, const char *source, const char *text,
                   struct arena *arena, struct why *why);

/* How its activity, memory and limits are read and printed: workload_activity.c, workload_limits.c. */
extern const struct bind_custom workload_activity_custom, workload_memory_custom,
    workload_limits_custom;

/* Append an activity (of struct phase_spec), or limits, in one line of flow style that reads back. */
void workload_activity_print(struct text *out, const struct bind_list *activity);
void workload_limits_print(struct text *out, const struct bind_list *limits);

/* Append the members of the JSON Schema for an activity, its phases, and limits. */
void workload_activity_schema(struct text *out);
void workload_phase_schema(struct text *out);
void workload_limits_schema(struct text *out);

/* A name that can be a directory: letters, digits, '-', '_', '.', not beginning with a dot. */
bool workload_name_ok(const char *name);

/* Names are looked for by this. */
uint64_t workload_name_hash(const char *name);

#endif
