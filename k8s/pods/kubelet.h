/*
 * Kubelet: which containers of the node have been given GPUs.
 *
 * Asks the pod-resources interface and keeps of its answer what the resource patterns want.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_KUBELET_H
#define K8S_PODS_KUBELET_H

#include "k8s/pods/grpc.h"
#include "k8s/pods/plan.h"

/* Shell patterns of resource names, ends with NULL: nvidia.com/gpu, nvidia.com/mig-*. */
typedef const char *const *resource_patterns;

/* 0 or -errno as grpc_call. Lists and texts go into the arena. */
int kubelet_list(struct grpc *grpc, resource_patterns resources, struct claim_list *claims,
                 struct arena *arena, struct why *why);

/* The same of an answer that has come. 0, -EPROTO, -ENOMEM. */
int kubelet_decode(struct grpc_message answer, resource_patterns resources,
                   struct claim_list *claims, struct arena *arena, struct why *why);

#endif
