/*
 * Kubelet: which containers of the node have been given GPUs.
 *
 * Asks the pod-resources interface and keeps of its answer what the resource patterns want.
 *
 * A kubelet that was just started answers before the API server has told it its pods, and lists none, or only those that
 * it has from files. An answer tells nothing of this; but who asks is a pod himself, and is not in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_KUBELET_H
#define K8S_PODS_KUBELET_H

#include "k8s/pods/grpc.h"
#include "k8s/pods/plan.h"

/* Shell patterns of resource names, ends with NULL: nvidia.com/gpu, nvidia.com/mig-*. */
typedef const char *const *resource_patterns;

struct kubelet_query {
    resource_patterns resources;
    const char *namespace, *pod; /* who asks; "" when that is not known, and no list is doubted */
};

/* 0 or -errno as grpc_call, or as kubelet_decode. Lists and texts go into the arena. */
int kubelet_list(struct grpc *grpc, const struct kubelet_query *query, struct claim_list *claims,
                 struct arena *arena, struct why *why);

/* The same of an answer that has come. 0, -EPROTO, -ENOMEM; -EAGAIN when it lacks who asks. */
int kubelet_decode(struct grpc_message answer, const struct kubelet_query *query,
                   struct claim_list *claims, struct arena *arena, struct why *why);

#endif
