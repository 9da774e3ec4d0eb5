/*
 * Options of fakegpu-pods. See options.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/options.h"

#include <stdlib.h>
#include <string.h>

#include "sim/unit.h"

#define DEFAULT_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

/* NVIDIA's plugin: GPUs, MIG devices of strategy `mixed`, and both when they are shared and renamed; its DRA driver. */
static const char *const default_resources[] = { "nvidia.com/gpu", "nvidia.com/gpu.shared",
                                                 "nvidia.com/mig-*", "gpu.nvidia.com" };

static const char help[] =
    "usage: fakegpu-pods [OPTION …]\n\n"
    "Shows the GPUs that the kubelet gave to pods as workloads of a mount, with namespace, pod and container,\n"
    "for as long as the pods are there.\n\n" HELP_ROOT
    "  -s, --socket PATH       the kubelet's pod-resources socket; default:\n"
    "                          " DEFAULT_SOCKET "\n"
    "  -i, --interval TIME     how often to look: 100ms to 1h (1s)\n"
    "      --activity TEXT     what a pod does unless it says so itself: percent of what it was given,\n"
    "                          or anything that the file 'activity' of a workload takes; '' for nothing (100)\n"
    "      --memory TEXT       the same for 'memory', on each GPU (1GiB)\n"
    "      --resource PATTERN  which resources and drivers of claims are GPUs, instead of nvidia.com/gpu,\n"
    "                          nvidia.com/gpu.shared, nvidia.com/mig-* and gpu.nvidia.com; several times\n" HELP_ONCE
    "      --on-exit WHAT      workloads at SIGTERM: keep or remove (keep)\n" HELP_LAST
    "\nPOD_NAMESPACE and POD_NAME of the environment are the pod that this runs in. A list of the kubelet that does\n"
    "not have it is not believed: a kubelet that was just started does not know its pods yet.\n\n"
    "examples:\n"
    "  fakegpu-pods --dry-run\n"
    "  fakegpu-pods --activity '[{time: 5m, utilization: 90}, {time: 1m, utilization: 10}], repeat: 0'\n";

static int add_resource(struct options *o, size_t *count, const char *pattern)
{
    if (!*pattern || *count == RESOURCES_MAX)
        return usage("--resource: '%s' %s", pattern,
                     *pattern ? "is one too many; allowed: 32" : "is not a pattern");
    o->resources[(*count)++] = pattern;
    o->resources[*count] = NULL;
    return -1;
}

/* Of the environment; "" when it is not there. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static void set_defaults(struct options *o)
{
    *o = (struct options){
        .socket = DEFAULT_SOCKET,
        .defaults = { .activity = "100", .memory = "1GiB" },
        .namespace = variable("POD_NAMESPACE"),
        .pod = variable("POD_NAME"),
    };
    common_defaults(&o->common, NS_PER_S);
    memcpy(o->resources, default_resources, sizeof(default_resources));
}

int options_parse(struct options *o, int argc, char **argv)
{
    enum { ACTIVITY = OPTION_OWN, MEMORY, RESOURCE };
    static const struct option longs[] = {
        COMMON_OPTIONS,
        { "socket", required_argument, NULL, 's' },
        { "activity", required_argument, NULL, ACTIVITY },
        { "memory", required_argument, NULL, MEMORY },
        { "resource", required_argument, NULL, RESOURCE },
        { 0 },
    };
    size_t resources = 0;
    int r = -1, c;

    set_defaults(o);
    while (r < 0 && (c = getopt_long(argc, argv, COMMON_SHORT "s:", longs, NULL)) != -1) {
        switch (c) {
        case 's':
            o->socket = optarg;
            break;
        case ACTIVITY:
            o->defaults.activity = optarg;
            break;
        case MEMORY:
            o->defaults.memory = optarg;
            break;
        case RESOURCE:
            r = add_resource(o, &resources, optarg);
            break;
        default:
            r = common_option(&o->common, c, help);
        }
    }
    return r < 0 ? common_rest(argc, argv) : r;
}
