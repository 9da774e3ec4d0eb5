/*
 * Plan: what has to be done so that the mount's workloads are what the kubelet has given to pods.
 *
 * The core of fakegpu-pods: three lists in, one list of operations out. Knows no kubelet, no mount, no
 * clock and nothing of earlier plans, so the same lists always give the same operations, and whoever starts
 * anew finds what he made before.
 *
 * A workload is known as ours by its name: pod-NAMESPACE-POD-CONTAINER (cut when long) and twelve
 * hexadecimal digits. The first eight follow from namespace, pod and container, which the workload's files
 * tell as well; the other four from the devices. So another allocation has another name, nothing has to be
 * compared, and what somebody changes in one of ours stays as it is.
 *
 * Texts are borrowed from the lists; what is made goes into the arena.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_PLAN_H
#define K8S_PODS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/pods/device.h"
#include "sim/arena.h"
#include "sim/text.h"

/* "" for what is not known. */
struct holder {
    const char *namespace, *pod, *container;
};

/* A container that was given devices. */
struct claim {
    struct holder who;
    const char **ids; /* as the device plugin calls them */
    size_t id_count;
};

struct claim_list {
    struct claim *items;
    size_t count;
};

/* A workload that is in the mount. */
struct present {
    const char *name;
    struct holder who;
    bool gpu_lost; /* ended because a GPU was lost */
};

struct present_list {
    struct present *items;
    size_t count;
};

enum operation_kind { OPERATION_REMOVE, OPERATION_CREATE };

struct operation {
    enum operation_kind kind;
    const char *name;
    const char *reason; /* remove: for the log */
    /* create: */
    struct holder who;
    const char *devices; /* "0,2:1:0": GPUs and MIG devices, as the file `devices` shows them */
};

struct plan {
    struct operation *items; /* in the order in which they are to be done */
    size_t count;
    struct text problems; /* a line for each thing that cannot be done; "" when there is none */
};

#define PLAN_PREFIX "pod-"
enum {
    PLAN_NAME = 64 /* bytes of a workload's name */
};

/* 0 or -ENOMEM. Release it in either case. */
int plan_make(struct plan *plan, const struct claim_list *claims, const struct inventory *inventory,
              const struct present_list *present, struct arena *arena);
void plan_release(struct plan *plan);

/* Whether fakegpu-pods made it. */
bool plan_is_ours(const struct present *p);

/* The name of a container's workload on these devices; what plan_is_ours recognises. */
void plan_name(char name[PLAN_NAME], const struct holder *who, const struct device_set *devices);

#endif
