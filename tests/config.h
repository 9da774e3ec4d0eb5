/*
 * Config: a configuration and its GPUs for a test, from a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_CONFIG_H
#define TESTS_CONFIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "sim/config_resolve.h"
#include "sim/config_shapes.h"
#include "tests/tap.h"

#define S NS_PER_S

/* A node in the form with nodes. */
static const char node_a_text[] = "mig-strategy: mixed\n"
                                  "nodes:\n"
                                  "  node-a:\n"
                                  "    gpu-memory: 11441\n"
                                  "    gpu-product: Tesla-K80\n"
                                  "    gpus:\n"
                                  "      - id: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1\n"
                                  "        metrics:\n"
                                  "          metadata: {namespace: project-a, pod: pod, container: "
                                  "container}\n"
                                  "          utilization: 10\n"
                                  "          fb-used: 5000\n";

/* A configuration with its GPUs worked out. */
struct node {
    struct config cfg;
    struct gpu_entry *gpus;
    int count;
    struct why why;
    int r;
};

static inline void read_node(struct node *n, const char *text, const struct config_options *options)
{
    *n = (struct node){ 0 };
    n->r = config_parse(&n->cfg, text, strlen(text), options, &n->why);
    if (n->r == 0)
        n->r = config_resolve(&n->cfg, &n->gpus, &n->count, &n->why);
}

static inline void release(struct node *n)
{
    free(n->gpus);
    config_release(&n->cfg);
    why_release(&n->why);
}

static inline void with_environment(struct node *n, const char *text, char **environment)
{
    struct config_options options = { .environment = environment };

    read_node(n, text, &options);
}

/* For texts that are right; what follows makes no sense otherwise. */
static inline struct node node_of(const char *text)
{
    struct node n;

    read_node(&n, text, NULL);
    if (n.r < 0)
        bail("%s", why_text(&n.why));
    return n;
}

static inline const char *profile_of(const struct node *n, int gpu)
{
    return n->cfg.profiles.profiles[n->gpus[gpu].profile].name;
}

static inline const struct gpu_entry *gpu(const struct node *n, int i)
{
    if (i >= n->count)
        bail("there is no GPU %d of %d", i, n->count);
    return &n->gpus[i];
}

#endif
