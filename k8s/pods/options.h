/*
 * Options of fakegpu-pods.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_OPTIONS_H
#define K8S_PODS_OPTIONS_H

#include "k8s/common/options.h"
#include "k8s/pods/workloads.h"

enum { RESOURCES_MAX = 32 };

/* Texts are those of argv, the environment or the program itself. */
struct options {
    struct common_options common;
    const char *socket;
    const char *resources[RESOURCES_MAX + 1]; /* patterns; ends with NULL */
    struct defaults defaults;
    const char *namespace, *pod; /* this program's own, or "" */
};

/*
 * Returns -1 to go on, or the exit code when there is nothing more to do: help was asked for, or a sentence is
 * on standard error.
 */
int options_parse(struct options *o, int argc, char **argv);

#endif
