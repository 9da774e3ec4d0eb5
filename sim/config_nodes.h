/*
 * Config: the form with `nodes:`, which lists nodes by name with their GPUs and who uses them.
 *
 * Reading turns it into `gpus`, and nothing behind that knows the form, except for sentences: those call a
 * key what the file calls it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_NODES_H
#define SIM_CONFIG_NODES_H

#include "sim/bind.h"
#include "sim/node_names.h"
#include "sim/workload.h"

struct config;
struct gpu_spec;

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

extern const struct bind_table node_spec_table;

/* Makes `node` and `gpus` of the node that is wanted; NULL: of the only one. */
int config_take_node(struct binder *b, struct config *cfg, const char *wanted);

/* Makes `gpus` of all nodes; each says which it is on. */
int config_take_all_nodes(struct binder *b, struct config *cfg);

/* The node that an item of `gpus` was taken from, or NULL in the other form. */
const struct node_spec *config_node_of(const struct config *cfg, const struct gpu_spec *gpu);

/* What this form calls a key of a GPU. */
const char *node_spec_key(const char *key);

#endif
