/*
 * Config: everything a person can say about a simulated node, read strictly.
 *
 * From a text to a world:
 *
 *     config.c          reads the document as a whole into a struct config, by tables: its own, those of
 *                       config_gpu.c and config_host.c, and fault_config.c, physics_config.c, workload.c
 *     config_nodes.c    turns the form with `nodes:` into `gpus`
 *     config_env.c      puts the environment over that
 *     config_resolve.c  works out every GPU (model, UUID, bus address, profile …), and refuses here what
 *                       does not go together
 *     plan.c            makes a world of it, once all of it is right
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include "sim/bind.h"
#include "sim/config_gpu.h"
#include "sim/config_host.h"
#include "sim/config_nodes.h"
#include "sim/fault_config.h"
#include "sim/model.h"
#include "sim/node_names.h"
#include "sim/physics.h"
#include "sim/profile.h"
#include "sim/workload.h"

enum {
    CONFIG_NODES_MAX = 4096,
    CONFIG_WORKLOADS_MAX = 16384,
    CONFIG_FAULTS_MAX = 65536,
    CONFIG_SHARES_MAX = 262144, /* GPUs of all workloads together, and of all faults */
};

enum mig_strategy { MIG_STRATEGY_NONE, MIG_STRATEGY_SINGLE, MIG_STRATEGY_MIXED };

extern const char *const mig_strategy_names[];

struct config {
    struct bind_head head;
    int64_t version;
    char node[NODE_NAME];
    struct driver_spec driver;
    int64_t seed, step_ns, update_interval_ns;
    double speed;
    int64_t mig_strategy;
    struct profile_choice profile;
    struct bind_list gpus;      /* of struct gpu_spec */
    struct bind_list overrides; /* of struct gpu_spec, by key */
    struct pci_spec pci;
    struct numa_spec numa;
    struct nvlink_spec nvlink;
    struct access_spec access;
    struct physics physics;
    struct bind_list workloads; /* of struct workload_spec */
    struct bind_list faults;    /* of struct fault_spec */
    struct bind_list nodes;     /* of struct node_spec; turned into gpus when read */

    /* not keys of the file */
    char source[256]; /* what sentences call it */
    struct ydoc doc;  /* kept for the positions of late refusals */
    struct model_set models;
    struct profile_set profiles;
    struct arena arena; /* owns all lists */
};

extern const struct bind_table config_table;

struct config_options {
    const char *name;    /* of the text, for sentences */
    const char *schemas; /* directory that overrides or adds models and profiles; NULL: none */
    /* name of the node, and which of `nodes:`; NULL: the config's own, or the only one */
    const char *node;
    bool all_nodes;     /* all of `nodes:`, instead of one */
    char **environment; /* NULL-terminated NAME=value; NULL: none is looked at */
};

/*
 * Reads a configuration, then the environment over it (NUM_FAKE_GPUS, METRIC_PROFILE, GPU_PROFILES,
 * METRIC_UPDATE_INTERVAL). An empty text is 8 × A100-SXM4-40GB. On success the caller releases it; on
 * failure it is empty and `why` names file, line, column, key, what was found and what is allowed.
 */
int config_parse(struct config *cfg, const char *text, size_t length,
                 const struct config_options *options, struct why *why);

/* The same from a file. */
int config_load(struct config *cfg, const char *path, const struct config_options *options,
                struct why *why);

void config_release(struct config *cfg);

/* What item `i` of `workloads` is called, also where it has no name of its own. */
void config_workload_name(const struct workload_spec *spec, size_t i, char name[WORKLOAD_NAME]);

/* Appends the configuration as YAML that config_parse reads to the same. */
void config_print(struct text *out, const struct config *cfg);

/* Appends the JSON Schema (draft 2020-12) of the format. */
void config_schema(struct text *out);

#endif
