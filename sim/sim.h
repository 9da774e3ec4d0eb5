/*
 * Sim: the simulator as others use it.
 *
 * One struct sim is one node. Every call that changes it changes all or nothing and publishes a new
 * generation; readers look at sim_world. Not for several threads at once: one owner steps and commands,
 * and how others may read is the owner's business.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/config.h"
#include "sim/world.h"

struct sim;

/* A node as configured, at time 0. NULL with a sentence. Free with sim_free. The config may go. */
struct sim *sim_new(const struct config *cfg, struct why *why);

/* A node that another process left in `fd`; takes the descriptor over. `models` is copied. */
struct sim *sim_adopt(int fd, const struct model_set *models, struct why *why);

void sim_free(struct sim *sim);

/* The published world and its store. */
const struct world *sim_world(const struct sim *sim);
const struct world_store *sim_store(const struct sim *sim);

/* --- time ------------------------------------------------------------------------------------ */

/* One step. */
void sim_step(struct sim *sim);

/* Whole steps until at least `ns` more have passed. */
void sim_run(struct sim *sim, int64_t ns);

/* Says that so much has passed on the real clock; makes the steps that are due; returns how many. */
int64_t sim_advance(struct sim *sim, int64_t elapsed_ns);

/*
 * Says what the real clock shows; the world knows up to when it has followed. Makes none of the steps that are due
 * now: they are for sim_catch_up. When some are still left from before this is for later, and nothing changes.
 */
void sim_follow(struct sim *sim, int64_t real_ns);

/* Makes one of the steps that are due, if there is one; says whether there are more. */
bool sim_catch_up(struct sim *sim);
bool sim_is_behind(const struct sim *sim);

/* Makes all that are due, also those that another process had begun. */
void sim_resume(struct sim *sim);

/* The next change is the effect of this request: see world_applied. */
void sim_request(struct sim *sim, uint64_t request);

/* A command for the clock: see clock.h. The steps of a `step` are due then, and not made yet. */
int sim_clock(struct sim *sim, const char *text, struct why *why);

/* --- the node -------------------------------------------------------------------------------- */

/* Another configuration for the running node. GPUs and workloads that stay the same go on untouched. */
int sim_apply(struct sim *sim, const struct config *cfg, struct why *why);

/* The GPU of that index, UUID or bus id, or -1. */
int sim_find_gpu(const struct sim *sim, const char *name);

/* --- one GPU --------------------------------------------------------------------------------- */

/* A reading: 0, -ENODATA, -EIO, or -ENODEV when it has fallen off the bus. */
int sim_read(const struct sim *sim, int gpu, enum metric id, int64_t *value);

/* Dictates a metric ("80", "20GiB"), or gives it back ("auto"). */
int sim_pin(struct sim *sim, int gpu, enum metric id, const char *text, struct why *why);

/* A fault or `recover`: see fault.h. */
int sim_fault(struct sim *sim, int gpu, const char *text, struct why *why);

int sim_set_profile(struct sim *sim, int gpu, const char *name, struct why *why);
int sim_set_power_limit(struct sim *sim, int gpu, int64_t mw, struct why *why);

/* Both 0: unlocked. */
int sim_lock_sm_clock(struct sim *sim, int gpu, int64_t min_khz, int64_t max_khz, struct why *why);
int sim_lock_memory_clock(struct sim *sim, int gpu, int64_t min_khz, int64_t max_khz,
                          struct why *why);
int sim_set_application_clocks(struct sim *sim, int gpu, int64_t memory_khz, int64_t sm_khz,
                               struct why *why);

int sim_set_persistence_mode(struct sim *sim, int gpu, bool on, struct why *why);
int sim_set_compute_mode(struct sim *sim, int gpu, int mode, struct why *why);

/* Pending until the GPU is recovered, as on real boards. */
int sim_set_ecc_mode(struct sim *sim, int gpu, bool on, struct why *why);

/* At once on a GPU where nothing runs, otherwise -EBUSY. */
int sim_set_mig_mode(struct sim *sim, int gpu, bool on, struct why *why);

/*
 * The driver's accounting: processes that begin while it is on have an account, also after their end. Off
 * forgets all of them. -EOPNOTSUPP with MIG.
 */
int sim_set_accounting_mode(struct sim *sim, int gpu, bool on, struct why *why);

/* Forgets the processes that ended. */
int sim_clear_accounting(struct sim *sim, int gpu, struct why *why);

/* In 1/1000 percent; 0: by temperature. */
int sim_set_fan(struct sim *sim, int gpu, int64_t percent, struct why *why);

int sim_set_clock_offsets(struct sim *sim, int gpu, int64_t sm_khz, int64_t memory_khz,
                          struct why *why);

/* The counts since the last reset, or those of the board's life. */
int sim_clear_ecc(struct sim *sim, int gpu, bool aggregate, struct why *why);

/* Clears or freezes counters of NVLinks: see link_counters.h. */
int sim_link_counters(struct sim *sim, int gpu, const char *text, struct why *why);

/* A draining GPU keeps its workloads and is given no new ones, unless they name it. */
int sim_set_draining(struct sim *sim, int gpu, bool on, struct why *why);

/* Creates or destroys instances: see mig.h. */
int sim_mig(struct sim *sim, int gpu, const char *text, struct why *why);

/* --- workloads ------------------------------------------------------------------------------- */

int sim_add_workload(struct sim *sim, const struct workload_spec *spec, uint64_t *id,
                     struct why *why);

/* Another description for a workload: see plan_replace_workload. */
int sim_replace_workload(struct sim *sim, const char *name, const struct workload_spec *spec,
                         bool restart, struct why *why);

/* Its identity alone (namespace, pod, container, pid) from `spec`. */
int sim_identify_workload(struct sim *sim, const char *name, const struct workload_spec *spec,
                          struct why *why);

/* Someone holds on to it, or lets go: when the last lets go it is removed. */
int sim_attach_workload(struct sim *sim, const char *name, struct why *why);
int sim_detach_workload(struct sim *sim, const char *name, struct why *why);

int sim_remove_workload(struct sim *sim, const char *name, struct why *why);

/* Ends it but leaves it there to be looked at. */
int sim_stop_workload(struct sim *sim, const char *name, struct why *why);

/* The run of a workload, or NULL. */
const struct run *sim_find_run(const struct sim *sim, const char *name);

#endif
