/*
 * Config: what a person can say about a GPU, or about several that are alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_GPU_H
#define SIM_CONFIG_GPU_H

#include "sim/bind.h"
#include "sim/node_names.h"
#include "sim/workload.h"

enum {
    CONFIG_GPUS_MAX = 4096,
    MINOR_MAX = 247, /* that can be asked for */
};

#define CONFIG_DEFAULT_MODEL "A100-SXM4-40GB"

enum compute_mode {
    COMPUTE_DEFAULT,
    COMPUTE_EXCLUSIVE_THREAD,
    COMPUTE_PROHIBITED,
    COMPUTE_EXCLUSIVE_PROCESS
};

extern const char *const compute_mode_names[];

struct profile_name {
    char text[32];
};

struct profile_choice {
    struct bind_list names; /* of struct profile_name; GPU i takes i mod count; cycle is expanded */
};

struct gpu_spec {
    struct bind_head head;
    char key[48];         /* in `overrides`: an index or a UUID */
    int64_t count;        /* of each node, where it names several */
    char node[NODE_NAME]; /* where it is, or several nodes: see node_names.h; "": where all are */
    char model[64];
    char uuid[48], serial[24], bus_id[20];
    int64_t minor, numa_node, module_id;
    struct profile_choice profile;
    int64_t memory_bytes;
    int64_t power_limit_mw;
    int64_t persistence_mode, compute_mode, ecc_mode, mig_mode;
    double cooling;           /* factor on the thermal resistance */
    struct bind_list metrics; /* of struct signal_spec */
    struct workload_spec workload;
};

/* Its binder's context is the struct config, which knows the models and profiles. */
extern const struct bind_table gpu_table;

/* One GPU that says nothing of itself. */
void gpu_spec_init(void *spec);

/* How many GPUs an item of `gpus` stands for, on all of its nodes. */
int64_t gpu_spec_gpus(const struct gpu_spec *spec);

/* Refuses the value of `key` in the mapping `node` unless it is a model's name, or nothing. */
int config_check_model(struct binder *b, const struct ynode *node, const char *key,
                       const char *name);

/* How a profile_choice is written: a name, `cycle`, or a list. */
extern const struct bind_custom profile_custom;

/* Makes a choice of `count` names, copied into the arena. 0 or -ENOMEM. */
int profile_choice_set(struct arena *arena, struct profile_choice *choice, const char *const *names,
                       size_t count);

#endif
