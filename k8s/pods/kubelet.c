/*
 * Kubelet: which containers of the node have been given GPUs. See kubelet.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/kubelet.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "k8s/pods/podresources.pb-c.h" /* made from podresources.proto */

#define METHOD "v1.PodResourcesLister/List"

typedef V1__ListPodResourcesResponse response_pb;
typedef V1__PodResources pod_pb;
typedef V1__ContainerResources container_pb;
typedef V1__ContainerDevices devices_pb;
typedef V1__DynamicResource dynamic_pb;

static bool is_wanted(resource_patterns resources, const char *name)
{
    for (; *resources; resources++)
        if (fnmatch(*resources, name, 0) == 0)
            return true;
    return false;
}

/* At most so many. */
static size_t count_ids(const container_pb *c, resource_patterns resources)
{
    size_t count = 0;

    for (size_t i = 0; i < c->n_devices; i++)
        if (is_wanted(resources, c->devices[i]->resource_name))
            count += c->devices[i]->n_device_ids;
    for (size_t i = 0; i < c->n_dynamic_resources; i++)
        count += c->dynamic_resources[i]->n_claim_resources;
    return count;
}

static size_t count_containers(const response_pb *response)
{
    size_t count = 0;

    for (size_t i = 0; i < response->n_pod_resources; i++)
        count += response->pod_resources[i]->n_containers;
    return count;
}

/* The answer is released before the claims are used. NULL when out of memory. */
static const char *keep(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

static int take_id(struct claim *claim, const char *id, struct arena *arena)
{
    const char *kept = keep(arena, id);

    if (!kept)
        return -ENOMEM;
    claim->ids[claim->id_count++] = kept;
    return 0;
}

/* From a device plugin: a resource and its devices. */
static int take_devices(struct claim *claim, const devices_pb *d, resource_patterns resources,
                        struct arena *arena)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < d->n_device_ids && is_wanted(resources, d->resource_name); i++)
        r = take_id(claim, d->device_ids[i], arena);
    return r;
}

/* From a driver of dynamic resources: its name stands for the resource. */
static int take_dynamic(struct claim *claim, const dynamic_pb *d, resource_patterns resources,
                        struct arena *arena)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < d->n_claim_resources; i++)
        if (is_wanted(resources, d->claim_resources[i]->driver_name))
            r = take_id(claim, d->claim_resources[i]->device_name, arena);
    return r;
}

static int take_ids(struct claim *claim, const container_pb *c, resource_patterns resources,
                    struct arena *arena)
{
    int r = 0;

    claim->ids = arena_alloc(arena, (count_ids(c, resources) + 1) * sizeof(*claim->ids));
    if (!claim->ids)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < c->n_devices; i++)
        r = take_devices(claim, c->devices[i], resources, arena);
    for (size_t i = 0; r == 0 && i < c->n_dynamic_resources; i++)
        r = take_dynamic(claim, c->dynamic_resources[i], resources, arena);
    return r;
}

static int take_container(struct claim_list *claims, const pod_pb *pod, const container_pb *c,
                          resource_patterns resources, struct arena *arena)
{
    struct claim claim = {
        .who = { keep(arena, pod->namespace_), keep(arena, pod->name), keep(arena, c->name) },
    };

    if (!claim.who.namespace || !claim.who.pod || !claim.who.container ||
        take_ids(&claim, c, resources, arena) < 0)
        return -ENOMEM;
    if (claim.id_count)
        claims->items[claims->count++] = claim;
    return 0;
}

static int take_response(struct claim_list *claims, const response_pb *response,
                         resource_patterns resources, struct arena *arena)
{
    int r = 0;

    *claims = (struct claim_list){ .count = 0 };
    claims->items = arena_alloc(arena, (count_containers(response) + 1) * sizeof(struct claim));
    if (!claims->items)
        return -ENOMEM;
    for (size_t i = 0; i < response->n_pod_resources; i++) {
        const pod_pb *pod = response->pod_resources[i];

        for (size_t k = 0; k < pod->n_containers && r == 0; k++)
            r = take_container(claims, pod, pod->containers[k], resources, arena);
    }
    return r;
}

static bool is_whole(const response_pb *response, const struct kubelet_query *query)
{
    if (!*query->namespace || !*query->pod)
        return true;
    for (size_t i = 0; i < response->n_pod_resources; i++)
        if (!strcmp(response->pod_resources[i]->namespace_, query->namespace) &&
            !strcmp(response->pod_resources[i]->name, query->pod))
            return true;
    return false;
}

int kubelet_decode(struct grpc_message answer, const struct kubelet_query *query,
                   struct claim_list *claims, struct arena *arena, struct why *why)
{
    response_pb *response = v1__list_pod_resources_response__unpack(NULL, answer.length,
                                                                    answer.data);
    bool whole;
    int r;

    if (!response)
        return why_set(why, EPROTO, "the kubelet's answer is not a list of pods (%zu bytes)",
                       answer.length);
    whole = is_whole(response, query);
    r = take_response(claims, response, query->resources, arena);
    v1__list_pod_resources_response__free_unpacked(response, NULL);
    if (r < 0)
        return why_set(why, ENOMEM, "out of memory");
    if (!whole)
        return why_set(why, EAGAIN,
                       "the kubelet does not know its pods yet: it does not list %s/%s, which asks",
                       query->namespace, query->pod);
    return 0;
}

/* A request has no fields, so its message has no bytes. */
int kubelet_list(struct grpc *grpc, const struct kubelet_query *query, struct claim_list *claims,
                 struct arena *arena, struct why *why)
{
    struct grpc_message answer;
    int r = grpc_call(grpc, METHOD, (struct grpc_message){ NULL, 0 }, &answer, why);

    return r < 0 ? r : kubelet_decode(answer, query, claims, arena, why);
}
