/*
 * Nodes: the list of all tables. A new area of the tree is one more line here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/nodes.h"

#include <stddef.h>

/* clang-format off */
const struct node_def *const node_tables[] = {
    dev_nodes,
    proc_nodes,
    sys_nodes,
    k8s_nodes,
    gpu_nodes,
    inventory_nodes,
    board_nodes,
    history_nodes,
    tuning_nodes,
    workload_nodes,
    control_nodes,
    table_nodes,
    NULL,
};
/* clang-format on */
