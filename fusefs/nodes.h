/*
 * Nodes: the tables of the file tree, one per area. Each ends with a row without a path.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_NODES_H
#define FUSEFS_NODES_H

#include "fusefs/node.h"

extern const struct node_def dev_nodes[];       /* dev/ */
extern const struct node_def proc_nodes[];      /* proc/ */
extern const struct node_def sys_nodes[];       /* sys/ */
extern const struct node_def k8s_nodes[];       /* k8s/ */
extern const struct node_def gpu_nodes[];       /* gpus/ */
extern const struct node_def board_nodes[];     /* gpus/: tables */
extern const struct node_def history_nodes[];   /* gpus/, history: what was */
extern const struct node_def tuning_nodes[];    /* gpus/: more control files */
extern const struct node_def workload_nodes[];  /* workloads/ */
extern const struct node_def control_nodes[];   /* control/, events, kmsg, snapshot, usr/ */
extern const struct node_def inventory_nodes[]; /* gpus/: what they are, who uses them */
extern const struct node_def table_nodes[];     /* gpus/: files of all of them in one */

/* Reads a configuration and makes the node so; the effective one is kept in host->config. */
int config_apply_text(struct sim *sim, const struct host *host, const char *text, const char *name,
                      struct why *why);

/* The minor number of a device node. */
unsigned device_minor(const struct node_ctx *cx);

/*
 * Opens the installed files that usr/ shows, where they are. As long as the mount is there they stay what they are
 * now: the kernel keeps their pages, and programs that run from them must not get those of another version.
 */
void host_files_open(int files[HOST_FILES], const char *library_dir, const char *binary_dir);

#endif
