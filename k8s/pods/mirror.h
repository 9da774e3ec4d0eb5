/*
 * Mirror: one look at the kubelet and the mount, and what follows from it.
 *
 * Keeps nothing from one look to the next but what it has said, so that a state that lasts is told once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_MIRROR_H
#define K8S_PODS_MIRROR_H

#include "k8s/common/said.h"
#include "k8s/pods/grpc.h"
#include "k8s/pods/options.h"

struct mirror {
    const struct options *o; /* borrowed */
    struct grpc *kubelet;    /* borrowed */
    struct said about_kubelet, about_mount, about_pods;
};

/* 0; -EREMOTEIO when the mount or the kubelet is not there, or -EAGAIN when something could not be done. */
int mirror_look(struct mirror *m);

/* Removes all workloads that were ever made. */
void mirror_remove_all(struct mirror *m);

void mirror_release(struct mirror *m);

#endif
