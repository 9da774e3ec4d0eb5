/*
 * Config: everything a person can say about a simulated node, read strictly.
 *
 * config_load reads and checks a file as a whole; config_resolve works out every GPU (model, UUID, bus
 * address, profile …). Neither touches a world: sim_new and sim_apply do, once all of it is right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include "sim/bind.h"
#include "sim/fault.h"
#include "sim/model.h"
#include "sim/node_names.h"
#include "sim/physics.h"
#include "sim/profile.h"
#include "sim/workload.h"

enum {
    CONFIG_GPUS_MAX = 4096,
    CONFIG_NODES_MAX = 4096,
    CONFIG_WORKLOADS_MAX = 16384,
    CONFIG_FAULTS_MAX = 65536,
    CONFIG_SHARES_MAX = 262144, /* GPUs of all workloads together, and of all faults */
    MINOR_MAX = 247,            /* that can be asked for */
};

enum compute_mode {
    COMPUTE_DEFAULT,
    COMPUTE_EXCLUSIVE_THREAD,
    COMPUTE_PROHIBITED,
    COMPUTE_EXCLUSIVE_PROCESS
};
enum mig_strategy { MIG_STRATEGY_NONE, MIG_STRATEGY_SINGLE, MIG_STRATEGY_MIXED };
enum dev_mode { DEV_AUTO, DEV_CHAR, DEV_FILE, DEV_NULL };
enum nvlink_topology {
    NVLINK_AUTO,
    NVLINK_NONE,
    NVLINK_SWITCH,
    NVLINK_MESH,
    NVLINK_RING,
    NVLINK_PAIRS
};
enum kernel_module { MODULE_OPEN, MODULE_PROPRIETARY };

extern const char *const compute_mode_names[],
    *const mig_strategy_names[], *const dev_mode_names[], *const nvlink_topology_names[],
                                                              *const kernel_module_names[];

struct profile_choice {
    struct bind_list
        names; /* of struct profile_name; GPU i takes i mod count; "cycle" is expanded */
};

struct profile_name {
    char text[32];
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

struct driver_spec {
    struct bind_head head;
    char version[32], cuda[16], nvml[32];
    int64_t kernel_module;
};

struct pci_spec {
    struct bind_head head;
    int64_t domain, first_bus, bus_step;
};

struct numa_spec {
    struct bind_head head;
    int64_t nodes;
    struct bind_list cpus; /* of struct cpu_list, one per node */
};

struct cpu_list {
    char text[128];
};

struct nvlink_pair {
    struct bind_head head;
    int64_t from, to, count;
};

struct nvlink_spec {
    struct bind_head head;
    int64_t topology;
    struct bind_list links; /* of struct nvlink_pair */
};

struct access_spec {
    struct bind_head head;
    int64_t dev;
    int64_t dev_mode, control_mode, workloads_mode; /* permission bits */
    int64_t uid, gid;
};

struct fault_spec {
    struct bind_head head;
    int64_t at_ns;
    struct device_name gpu;
    struct fault fault;
    int64_t for_ns;
    int64_t every_ns; /* 0: once */
};

/* The form with `nodes:`. */
struct node_metadata {
    struct bind_head head;
    char namespace[WORKLOAD_NAME], pod[WORKLOAD_POD], container[WORKLOAD_NAME];
};

struct node_metrics {
    struct bind_head head;
    struct node_metadata metadata;
    int64_t utilization_percent; /* in 1/1000 */
    int64_t fb_used_mib;
};

struct node_gpu {
    struct bind_head head;
    char id[48];
    struct node_metrics metrics;
};

struct node_spec {
    struct bind_head head;
    char key[NODE_NAME];
    int64_t gpu_memory_mib, gpu_count;
    char gpu_product[64];
    struct bind_list gpus; /* of struct node_gpu */
};

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

extern const struct bind_table config_table, gpu_table;

/* One GPU, worked out. */
struct gpu_entry {
    struct gpu_spec spec;        /* with overrides merged in */
    const struct gpu_spec *from; /* the item of gpus it came from */
    const struct gpu_model *model;
    int profile;          /* in config.profiles */
    char node[NODE_NAME]; /* which of several it is on; "": there is only one */
    int node_number;      /* of that node; -1: there is only one */
    int node_index;       /* position on that node */
    uint32_t
        node_domain; /* PCI domain there: `domain` is of the mount, where all have their place */
    char uuid[48], serial[24];
    uint32_t domain, bus, device, function;
    int minor, numa_node, module_id;
    int64_t memory_bytes, power_limit_mw;
};

struct config_options {
    const char *name;    /* of the text, for sentences */
    const char *schemas; /* directory that overrides or adds models and profiles; NULL: none */
    const char *
        node; /* name of the node, and which of `nodes:`; NULL: the config's own, or the only one */
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

/* Works out every GPU. The caller frees *entries. Refuses duplicates and what does not fit a model. */
int config_resolve(const struct config *cfg, struct gpu_entry **entries, int *count,
                   struct why *why);

/* How many GPUs an item of `gpus` stands for, on all of its nodes. */
int64_t gpu_spec_gpus(const struct gpu_spec *spec);

/* Appends the configuration as YAML that config_parse reads to the same. */
void config_print(struct text *out, const struct config *cfg);

/* Appends the JSON Schema (draft 2020-12) of the format. */
void config_schema(struct text *out);

/* Makes a choice of `count` names, copied into the arena. 0 or -ENOMEM. */
int profile_choice_set(struct arena *arena, struct profile_choice *choice, const char *const *names,
                       size_t count);

/* Checks for identities, shared with control files. */
bool uuid_ok(const char *text);
bool bus_id_ok(const char *text);
int bus_id_parse(const char *text, uint32_t *domain, uint32_t *bus, uint32_t *device,
                 uint32_t *function);

#endif
