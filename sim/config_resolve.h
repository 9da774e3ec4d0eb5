/*
 * Config: every GPU of a configuration, worked out.
 *
 * What needs more than one key (duplicates, references, what a model allows) is checked here, so that
 * applying a configuration to a world can no longer fail half way for a reason in the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_RESOLVE_H
#define SIM_CONFIG_RESOLVE_H

#include "sim/config.h"

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
        node_domain; /* PCI domain there; `domain` is the mount's, where all have their place */
    char uuid[48], serial[24];
    uint32_t domain, bus, device, function;
    int minor, numa_node, module_id;
    int64_t memory_bytes, power_limit_mw;
};

/* Works out every GPU. The caller frees *entries. Refuses duplicates and what does not fit a model. */
int config_resolve(const struct config *cfg, struct gpu_entry **entries, int *count,
                   struct why *why);

#endif
