/*
 * Workload plan: described workloads in a world.
 *
 * Everything here works on the copy being changed and may refuse at any point: the caller then drops the
 * copy, and nothing has happened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_WORKLOAD_PLAN_H
#define SIM_WORKLOAD_PLAN_H

#include "sim/model.h"
#include "sim/physics.h"
#include "sim/workload.h"
#include "sim/world.h"

/* Adds a workload and starts it if its time has come. -EEXIST, -ENODEV, -ENOSPC, … */
int plan_add_workload(struct world_store *store, const struct workload_spec *spec,
                      const struct model_set *models, uint64_t *id, struct why *why);

/*
 * Describes a workload again, as plan_add_workload would take it. Lists go into `arena`. 0 or -ENOMEM.
 */
int plan_describe_workload(const struct world *w, int k, struct workload_spec *spec,
                           struct arena *arena);

/*
 * Gives a workload another description; its name and id stay. With `restart` it begins again, otherwise
 * it goes on where it is. Refused, it stays as it was.
 */
int plan_replace_workload(struct world_store *store, const char *name,
                          const struct workload_spec *spec, const struct model_set *models,
                          bool restart, struct why *why);

/* Takes a workload out, ended or not. -ENOENT. */
int plan_remove_workload(struct world_store *store, const char *name, struct why *why);

/* --- for plan.c, which starts the workloads of a configuration ------------------------------- */

/* The most shares that a workload can have on a node of so many GPUs. */
uint32_t workload_shares(const struct workload_spec *spec, uint32_t gpus);

/* Adds the room that a workload takes on a node of that many GPUs. */
void workload_count(const struct workload_spec *spec, uint32_t gpus, uint32_t need[SECTION_COUNT]);

/* A number that differs when the description does. */
uint64_t workload_hash(const struct workload_spec *spec);

/* Compute of the model that its times were measured on; 0 for any. */
double workload_capability(const struct model_set *models, const struct workload_spec *spec);

/* Writes it behind the others and starts it if its time has come. The copy must have room. */
int workload_append(struct stepping *st, const struct workload_spec *spec, double capability,
                    int from_config, struct why *why);

/* Takes it out with all that belongs to it. What follows for its GPUs is not worked out. */
void workload_cut(struct world *w, uint32_t k);

#endif
