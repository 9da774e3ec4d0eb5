/*
 * Physics: how load becomes clocks, power, energy, heat and throttling.
 *
 * struct physics holds every coefficient by name; docs/simulation.md has the equations. A step changes
 * one struct gpu and touches nothing else. Knows neither files nor the real clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_PHYSICS_H
#define SIM_PHYSICS_H

#include "sim/bind.h"

struct physics {
    struct bind_head head;

    /* activity: what a workload does not say follows from its utilization */
    double sm_active_per_utilization;
    double occupancy_per_sm_active;
    double tensor_per_sm_active;
    double fp32_per_sm_active, fp16_per_sm_active, fp64_per_sm_active, integer_per_sm_active;
    double memory_per_utilization;
    double pcie_tx_per_utilization, pcie_rx_per_utilization; /* shares of the link */
    double nvlink_per_utilization;                           /* of a workload on several GPUs */
    int64_t pcie_idle_bytes_per_second;

    /* clocks */
    double clock_slew_per_s; /* share of the highest clock that it may rise in a second */
    int64_t idle_delay_ns;   /* without load for so long: down to the idle clock and state */

    /* power: idle + (full − idle) · (Σ weights) */
    double power_weight_active; /* clocks up, nothing to do */
    double power_weight_sm, power_weight_tensor, power_weight_memory, power_weight_video;
    double power_clock_exponent; /* of (clock / highest clock) */
    double power_noise;          /* ± share */

    /* heat */
    int64_t ambient_mc;
    double memory_heat_offset_c; /* memory above die, without load */
    double memory_heat_load_c;   /* more at full bandwidth */
    int64_t memory_time_constant_ns;

    /* throttling */
    double thermal_hysteresis_c;  /* software slowdown ends so far below its limit */
    double slowdown_hysteresis_c; /* hardware slowdown likewise */
    double thermal_gain_per_c;    /* share of the highest clock, at once */
    double thermal_gain_per_c_s;  /* and per second */
    double slowdown_clock_share; /* of the highest clock during hardware slowdown and power brake */

    /* fans, on boards that have their own */
    double fan_slew_percent_per_s;
    double
        fan_stopped_resistance; /* thermal resistance is higher by this share with fans at rest */
};

extern const struct bind_table physics_table;

void physics_init(struct physics *p);

struct gpu;
struct gpu_model;
struct gpu_plan;
struct signal_pool;
struct world;
struct world_store;

/* One step of time, as every GPU sees it. */
struct stepping {
    struct world_store *store; /* for events */
    struct world *world;       /* the copy being changed */
    int64_t dt_ns; /* 0: nothing passes, but what follows from a command is worked out */
};

/* Sets a new GPU up: cool, idle, all counters zero. */
void gpu_init(struct stepping *st, int i);

/* Works out which metrics it has, and those that are facts or settings. After any change of settings. */
void gpu_refresh_static(struct stepping *st, int i);

/* Moves it by st->dt_ns. Its load must be there. */
void gpu_step(struct stepping *st, int i);

/* Evaluates the pins whose time has come: all of them, every update interval. */
void gpu_read_due_pins(struct stepping *st, int i);

/* Evaluates the pins of its profile and configuration at once, or only that of one metric. */
void gpu_read_pins(struct stepping *st, int i);
void gpu_read_pin(struct stepping *st, int i, int metric);

/* The largest value of a metric on that GPU, in the parts of its unit: what shares are shares of. */
double gpu_metric_limit(const struct world *w, int i, int metric);

/* Fills in the channels that are NAN from those that are given. */
struct load;
void load_derive(const struct physics *p, const struct gpu_model *model, bool several_gpus,
                 struct load *load);

/* An event about GPU i. `text` may be NULL. */
void gpu_event(struct stepping *st, int i, int kind, int64_t code, int64_t value, const char *text);

/* Reports an Xid: metric, event, log line. */
void gpu_xid(struct stepping *st, int i, int64_t xid);

/* It has been off for a while: as cool as without load. */
void gpu_cool_down(struct stepping *st, int i);

/* The GPU disappears from the bus until `until_ns`. */
void gpu_lose(struct stepping *st, int i, int64_t until_ns);

#endif
