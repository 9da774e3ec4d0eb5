/*
 * Model: what one kind of GPU is, as data.
 *
 * A model is flat (no pointers), so the world carries copies. The files in schemas/models are built
 * in; a directory of such files overrides them by name or adds to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "sim/bind.h"

/* How far clocks can be moved, where they can: as the driver allows it on every such board. */
enum {
    SM_OFFSET_MIN_KHZ = -1000000,
    SM_OFFSET_MAX_KHZ = 1000000,
    MEMORY_OFFSET_MIN_KHZ = -2000000,
    MEMORY_OFFSET_MAX_KHZ = 6000000,
};

enum {
    MODEL_MEMORY_CLOCKS_MAX = 8,
    MODEL_MIG_PROFILES_MAX = 16,
    MODEL_MIG_STARTS_MAX = 8,
    NVLINK_LINKS_MAX = 18,
};

struct model_inforom {
    struct bind_head head;
    char image[32], oem[8], ecc[8], power[8]; /* "" where the board has no such object */
};

struct model_pci {
    struct bind_head head;
    int64_t device_id, subsystem_id, class;
    int64_t generation;        /* of the link in its usual slot */
    int64_t device_generation; /* what the device itself could do */
    int64_t width;
};

struct model_memory {
    struct bind_head head;
    int64_t total_bytes, reserved_bytes, bar1_bytes;
    int64_t bus_width_bits;
    int64_t temperature_sensor;
    char type[16];
};

struct model_power {
    struct bind_head head;
    int64_t idle_mw, min_mw, default_mw, max_mw;
};

struct model_module_power {
    struct bind_head head;
    int64_t min_mw, max_mw;
};

struct model_sm_clock {
    struct bind_head head;
    int64_t min_khz, idle_khz, base_khz, max_khz, step_khz;
};

struct model_video_clock {
    struct bind_head head;
    int64_t idle_khz, max_khz;
};

struct model_clocks {
    struct bind_head head;
    struct model_sm_clock sm;
    BIND_ARRAY_OF(int64_t, MODEL_MEMORY_CLOCKS_MAX) memory; /* kHz, highest first */
    struct model_video_clock video;
    int64_t offsets; /* may be moved by an offset, as boards for players can */
};

struct model_thermal {
    struct bind_head head;
    int64_t max_operating_mc, slowdown_mc, shutdown_mc, memory_max_mc; /* 1/1000 C */
    int64_t margin_based; /* the driver reports distances to the limit */
    double resistance;    /* C per W */
    int64_t time_constant_ns;
};

struct model_fan {
    struct bind_head head;
    int64_t count; /* 0: none of its own */
    int64_t start_mc, stop_mc, full_mc;
    int64_t min_percent; /* in 1/1000 */
    int64_t max_rpm;     /* at 100 % */
};

struct model_engines {
    struct bind_head head;
    int64_t encoders, decoders, jpeg, ofa, copy;
};

struct model_ecc {
    struct bind_head head;
    int64_t supported, on_by_default;
    int64_t page_retirement; /* pages are retired (before Ampere) */
    int64_t row_remap_banks; /* rows are remapped; 0 where they are not */
};

struct model_nvlink {
    struct bind_head head;
    int64_t version, links, link_bytes_per_second;
    int64_t switched; /* boards meet at switches, not at each other */
};

struct mig_profile {
    struct bind_head head;
    char name[16];
    int64_t id, slices, count, multiprocessors, memory_bytes, size;
    BIND_ARRAY_OF(int64_t, MODEL_MIG_STARTS_MAX) starts;
    int64_t copy, decoders, encoders, jpeg, ofa;
};

struct gpu_model {
    struct bind_head head;
    char name[32];
    char product[64];
    char brand[16];
    char architecture[16];
    char compute_capability[8];
    char addressing_mode[8];
    char vbios[32], board_part_number[32], gpu_part_number[32];
    int64_t cuda_cores, multiprocessors, tensor_cores;
    int64_t profiling;
    int64_t idle_pstate;
    int64_t c2c;
    struct model_inforom inforom;
    struct model_pci pci;
    struct model_memory memory;
    struct model_power power;
    struct model_module_power module_power; /* zero where the board has none */
    struct model_clocks clocks;
    struct model_thermal thermal;
    struct model_fan fan;
    struct model_engines engines;
    struct model_ecc ecc;
    struct model_nvlink nvlink;
    BIND_ARRAY_OF(struct mig_profile, MODEL_MIG_PROFILES_MAX) mig;
};

extern const struct bind_table model_table;

/* A set of models by name. */
struct model_set {
    struct gpu_model *models; /* owned */
    int count;
};

/* The built-in models, then those of `directory` (NULL: none) instead of or beside them. */
int model_set_load(struct model_set *set, const char *directory, struct why *why);
void model_set_release(struct model_set *set);

/*
 * By name or product, ignoring case, a leading "NVIDIA" or "Tesla", and the choice between blank, dash
 * and underscore, so that a node label's "Tesla-K80" is found. NULL when there is none.
 */
const struct gpu_model *model_find(const struct model_set *set, const char *name);

/* suggest_names over a struct model_set. */
const char *model_name_at(const void *set, int i);

/* What a share of compute is measured by: CUDA cores × highest SM clock. */
double model_capability(const struct gpu_model *model);

/* Bytes per second and direction of the whole NVLink, and of a PCIe link. */
int64_t model_nvlink_bytes_per_second(const struct gpu_model *model);
int64_t pcie_bytes_per_second(int64_t generation, int64_t width);

#endif
