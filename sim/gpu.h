/*
 * Gpu: one simulated GPU as it lies in the world: what it is (struct gpu_plan, changed by commands
 * only) and how it is now (struct gpu, changed by every step).
 *
 * Both are flat. The model and the profile are positions in the world's sections.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_GPU_H
#define SIM_GPU_H

#include "sim/link_counters.h"
#include "sim/metric.h"
#include "sim/mig.h"
#include "sim/model.h"
#include "sim/rng.h"
#include "sim/workload.h"

enum link_peer { LINK_NONE, LINK_GPU, LINK_SWITCH };

struct link_plan {
    uint8_t peer;      /* enum link_peer */
    uint8_t peer_link; /* number of the link at the other end */
    int16_t peer_gpu;  /* LINK_GPU: position of the other GPU; LINK_SWITCH: number of the switch */
};

/* What can be set and stays set. */
struct gpu_settings {
    int64_t power_limit_mw;
    int64_t sm_lock_min_khz, sm_lock_max_khz;         /* 0: not locked */
    int64_t memory_lock_min_khz, memory_lock_max_khz; /* 0: not locked */
    int64_t sm_application_khz, memory_application_khz;
    int64_t sm_offset_khz, memory_offset_khz; /* added to what the clocks would be */
    int64_t fan_percent;                      /* in 1/1000; 0: by temperature */
    int32_t persistence_mode, compute_mode;
    int32_t draining; /* takes no new workloads */
    int32_t ecc_mode, ecc_mode_pending;
    int32_t mig_mode, mig_mode_pending;
    int32_t accounting_mode; /* off when the driver is loaded, whatever the configuration says */
};

struct gpu_plan {
    uint64_t id; /* never used again */
    char uuid[48], serial[24];
    uint32_t domain, bus, device, function;
    int32_t node;         /* in the world's nodes; -1: there is only one */
    int32_t node_index;   /* position on it */
    uint32_t node_domain; /* PCI domain there */
    int32_t minor, numa_node, module_id;
    char cpus[128]; /* near it, as the configuration says; "": by the number of NUMA nodes */
    uint32_t model, profile;
    uint32_t configured_profile;
    uint32_t first_pin, pin_count; /* its own pins, in the world's signals */
    int64_t memory_bytes;
    struct gpu_settings configured; /* what the configuration asked for */
    double cooling;
    struct link_plan links[NVLINK_LINKS_MAX];
};

/* Why clocks are not higher: NVML's bits. */
enum throttle_reason {
    THROTTLE_IDLE = 0x1,
    THROTTLE_APPLICATION_CLOCKS = 0x2,
    THROTTLE_POWER_CAP = 0x4,
    THROTTLE_HW_SLOWDOWN = 0x8,
    THROTTLE_SYNC_BOOST = 0x10,
    THROTTLE_SW_THERMAL = 0x20,
    THROTTLE_HW_THERMAL = 0x40,
    THROTTLE_POWER_BRAKE = 0x80,
    THROTTLE_DISPLAY_CLOCK = 0x100,
};

/* Faults that last. */
enum gpu_condition {
    CONDITION_THERMAL,
    CONDITION_POWER_BRAKE,
    CONDITION_HANG,
    CONDITION_LOST, /* fallen off the bus */
    CONDITIONS
};

/* A sensor that a fault silenced. */
struct broken_sensor {
    int32_t metric;
    int64_t until_ns; /* 0: free entry; INT64_MAX: until recover */
};

enum { BROKEN_SENSORS_MAX = 8 };

struct link {
    uint64_t tx_bytes, rx_bytes;
    uint32_t crc_flit, crc_data, replay, recovery;
    int64_t down_until_ns; /* 0: up; INT64_MAX: until it is brought up */
    struct link_counter counters[LINK_COUNTERS];
};

/* What the workloads of one instant ask of a GPU, added up; in the parts of each channel's unit. */
struct load {
    double channel[CHANNEL_COUNT];
};

struct gpu {
    struct metric_sample sample;   /* the state that is also a metric lives here, and only here */
    struct metric_mask pinned;     /* dictated by profile, configuration or control */
    struct metric_mask controlled; /* … by a control file: profiles leave it alone */
    struct metric_mask unread;     /* dictated readings that failed this time */
    struct gpu_settings settings;
    struct rng rng;
    struct load load;
    int32_t crowd; /* workloads on it, or on instances of it, that have not ended: their shares */

    int64_t profile_since_ns; /* when its profile began: t = 0 of its signals */
    int64_t next_reading_ns;  /* when pins are evaluated again */
    int64_t idle_since_ns;    /* since when nothing runs; INT64_MAX while something does */
    double clock_khz;         /* SM clock before it is rounded to the grid */
    double temperature_c, memory_temperature_c, fan_percent;
    double thermal_cap; /* software slowdown: share of the highest clock, before the quick term */
    int32_t sw_thermal, hw_thermal;
    double power_noise; /* relative, of the last step */
    int64_t energy_uj, energy_rest_pj;
    int64_t ecc_sbe_before, ecc_dbe_before; /* aggregate counts from before the last reset */
    double cooling_fault;                   /* factor while CONDITION_THERMAL */
    int64_t xid_until_ns; /* when xid_last goes back to 0; INT64_MAX: at recover */
    struct broken_sensor broken[BROKEN_SENSORS_MAX];
    int64_t condition_until_ns[CONDITIONS]; /* 0: does not hold; INT64_MAX: until recover */
    struct link links[NVLINK_LINKS_MAX];
    struct mig_gi gis[MIG_GIS_MAX]; /* by number; none while MIG is off */

    uint32_t archive;         /* which of the store's archives is its own: see archive.h */
    uint64_t moments;         /* ever kept there */
    int64_t next_moment_ns;   /* when the next is due */
    uint64_t accounts;        /* of ended processes, ever kept there */
    uint64_t accounts_before; /* so many of them were cleared */
};

/* Memory that workloads can have. */
static inline int64_t gpu_memory_capacity(const struct gpu_plan *plan, const struct gpu_model *m)
{
    return plan->memory_bytes - m->memory.reserved_bytes;
}

static inline bool gpu_has(const struct gpu *g, enum gpu_condition c)
{
    return g->condition_until_ns[c] != 0;
}

#endif
