/*
 * Metric: the registry of metrics.def as types and tables.
 *
 * The only header of sim/ that the readers of a mount share with the simulator: it names metrics and
 * says how one reading is held, and knows nothing of where values come from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_METRIC_H
#define SIM_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/unit.h"

struct text;

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "sim/metrics.def"
    METRIC_COUNT
};

enum identity {
#define IDENTITY(id, ...) IDENTITY_##id,
#include "sim/metrics.def"
    IDENTITY_COUNT
};

enum metric_kind { METRIC_KIND_GAUGE, METRIC_KIND_COUNTER };

enum metric_flags {
    METRIC_FLAG_0 = 0,
    METRIC_FLAG_PIN = 1,    /* a profile, the configuration or a control file may dictate it */
    METRIC_FLAG_STATIC = 2, /* a fact of the model or a setting */
    METRIC_FLAG_WISH = 4 | METRIC_FLAG_PIN, /* a control file only wishes for it */
};

enum dcgm_type {
    DCGM_TYPE_NONE,
    DCGM_TYPE_INT_GAUGE,
    DCGM_TYPE_INT_COUNTER,
    DCGM_TYPE_REAL_GAUGE,
    DCGM_TYPE_REAL_COUNTER,
};

struct metric_info {
    const char *name; /* of its file */
    enum metric_kind kind;
    enum unit unit;
    enum metric_flags flags;
    int dcgm_id; /* 0: DCGM has no such field */
    const char *dcgm_name, *dcgm_name_46;
    enum dcgm_type dcgm_type;
    double dcgm_scale; /* from shown units */
    const char *help;
};

struct identity_info {
    const char *name;
    int dcgm_id;
    const char *dcgm_name, *dcgm_name_46;
    const char *help;
};

struct derived_info {
    int id;
    const char *name;
    enum dcgm_type type;
    const char *help;
};

extern const struct metric_info metric_infos[METRIC_COUNT];
extern const struct identity_info identity_infos[IDENTITY_COUNT];
extern const struct derived_info derived_infos[]; /* ends with a NULL name */

/* Whether the control file of the metric's name dictates its value. */
static inline bool metric_is_controlled(int id)
{
    return metric_infos[id].flags == METRIC_FLAG_PIN;
}

/* The metric of that file name, or -1. */
int metric_find(const char *name);

/* suggest_names over all metrics, or (names != NULL) over those that can be pinned. */
const char *metric_name_at(const void *names, int i);

/* One bit per metric. */
struct metric_mask {
    uint64_t words[(METRIC_COUNT + 63) / 64];
};

static inline bool metric_mask_has(const struct metric_mask *m, enum metric id)
{
    return m->words[id / 64] >> (id % 64) & 1;
}

static inline void metric_mask_add(struct metric_mask *m, enum metric id)
{
    m->words[id / 64] |= UINT64_C(1) << (id % 64);
}

static inline void metric_mask_drop(struct metric_mask *m, enum metric id)
{
    m->words[id / 64] &= ~(UINT64_C(1) << (id % 64));
}

/* All metrics of one GPU at one instant. A value is there, absent (this GPU has no such thing) or failed. */
struct metric_sample {
    int64_t value[METRIC_COUNT]; /* in the parts of its unit */
    struct metric_mask valid;    /* the GPU has it */
    struct metric_mask failed;   /* it has it, but the sensor does not answer */
};

/* 0 with the value, -ENODATA when the GPU has no such metric, -EIO when the sensor fails. */
int metric_read(const struct metric_sample *sample, enum metric id, int64_t *value);

/* The same in the unit that its file shows, rounded as there. */
int metric_read_shown(const struct metric_sample *sample, enum metric id, int64_t *value);

/* --- history --------------------------------------------------------------------------------- */

/* SAMPLING(ID, column, METRIC): what a GPU keeps a short history of, in the order of NVML's sampling types. */
/* clang-format off */
#define SAMPLING_TABLE(SAMPLING)                                           \
    SAMPLING(POWER, "power_usage_mw", POWER_USAGE)                         \
    SAMPLING(GPU, "utilization_gpu_percent", UTILIZATION_GPU)              \
    SAMPLING(MEMORY, "utilization_memory_percent", UTILIZATION_MEMORY)     \
    SAMPLING(ENCODER, "utilization_encoder_percent", UTILIZATION_ENCODER)  \
    SAMPLING(DECODER, "utilization_decoder_percent", UTILIZATION_DECODER)  \
    SAMPLING(SM_CLOCK, "clock_sm_mhz", CLOCK_SM)                           \
    SAMPLING(MEMORY_CLOCK, "clock_memory_mhz", CLOCK_MEMORY)               \
    SAMPLING(MODULE_POWER, "module_power_usage_mw", POWER_USAGE)           \
    SAMPLING(JPEG, "utilization_jpeg_percent", UTILIZATION_JPEG)           \
    SAMPLING(OFA, "utilization_ofa_percent", UTILIZATION_OFA)
/* clang-format on */

enum sampling {
#define SAMPLING(id, column, metric) SAMPLING_##id,
    SAMPLING_TABLE(SAMPLING)
#undef SAMPLING
        SAMPLINGS
};

struct sampling_info {
    const char *column;
    enum metric metric;
};

extern const struct sampling_info sampling_infos[SAMPLINGS];

enum { HISTORY_MOMENTS = 120 }; /* that can be read: 12 s of them */

/* Instead of a value: the GPU has no such thing, or its sensor did not answer. */
#define MOMENT_ABSENT UINT32_MAX
#define MOMENT_FAILED (UINT32_MAX - 1)

/* A GPU at one instant, in shown units. */
struct moment {
    int64_t time_ns; /* simulated */
    uint32_t value[SAMPLINGS];
};

#endif
