/*
 * Plan: turning a configuration or a described workload into sections of a world.
 *
 * Everything here works on the copy being changed and may refuse at any point: the caller then drops
 * the copy, and nothing has happened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "sim/config.h"
#include "sim/loads.h"
#include "sim/world.h"

/*
 * Makes `next` the node of `cfg`, or (store still empty) the first world. GPUs of the same UUID and model
 * go on untouched except for what the configuration now says differently; so do workloads.
 */
int plan_apply(struct world_store *store, const struct config *cfg, struct why *why);

/* Position of a workload, or -1. */
int plan_find_workload(const struct world *w, const char *name);

/* Position of a GPU by index, UUID or bus id, or -1. */
int plan_find_gpu(const struct world *w, const char *name);

/* Position of a GPU by what no two have, or -1; of a node by its name, or -1. In no time worth mentioning. */
int plan_find_uuid(const struct world *w, const char *uuid);
int plan_find_minor(const struct world *w, int64_t minor);
int plan_find_bus(const struct world *w, uint32_t domain, uint32_t bus, uint32_t device,
                  uint32_t function);
int plan_find_node(const struct world *w, const char *name);

/* All GPUs in the order of their bus addresses, and the place there of the first on that bus, or behind it. */
const uint32_t *plan_gpus_by_bus(const struct world *w);
uint32_t plan_bus_place(const struct world *w, uint32_t domain, uint32_t bus);

/* Sorts GPUs and nodes for the functions above. */
void plan_sort(struct world *w);

/* A GPU, or a compute instance of it. */
struct device_place {
    int gpu, gi, ci; /* gi and ci -1: the whole GPU */
};

/* The same, or a MIG device by its UUID, GPU:GI:CI, or GPU:GI for the first compute instance there. */
bool plan_find_device(const struct world *w, const char *name, struct device_place *at);

/*
 * Works out what follows, with no time passing, when something changed in what is asked of some GPUs: their
 * loads and metrics. Touches what it changes.
 */
void plan_settle(struct stepping *st, const struct gpu_set *gpus);

#endif
