/*
 * Options of fakegpu-pods. See options.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/log.h"
#include "sim/unit.h"

#define DEFAULT_ROOT "/run/fakegpufs"
#define DEFAULT_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

enum { EXIT_USAGE = 64 /* as in sysexits.h */ };

#define SHORTEST_NS (100 * NS_PER_MS)
#define LONGEST_NS (3600 * NS_PER_S)

/* NVIDIA's plugin: GPUs, MIG devices of strategy `mixed`, and both when they are shared and renamed; its DRA driver. */
static const char *const default_resources[] = { "nvidia.com/gpu", "nvidia.com/gpu.shared",
                                                 "nvidia.com/mig-*", "gpu.nvidia.com" };

static const char help[] =
    "usage: fakegpu-pods [OPTION …]\n\n"
    "Shows the GPUs that the kubelet gave to pods as workloads of a mount, with namespace, pod and container,\n"
    "for as long as the pods are there.\n\n"
    "  -r, --root DIR          the mount; default: FAKEGPUFS_ROOT of the environment, or " DEFAULT_ROOT
    "\n"
    "  -s, --socket PATH       the kubelet's pod-resources socket; default:\n"
    "                          " DEFAULT_SOCKET "\n"
    "  -i, --interval TIME     how often to look: 100ms to 1h (1s)\n"
    "      --activity TEXT     what a pod does unless it says so itself: percent of what it was given,\n"
    "                          or anything that the file 'activity' of a workload takes; '' for nothing (100)\n"
    "      --memory TEXT       the same for 'memory', on each GPU (1GiB)\n"
    "      --resource PATTERN  which resources and drivers of claims are GPUs, instead of nvidia.com/gpu,\n"
    "                          nvidia.com/gpu.shared, nvidia.com/mig-* and gpu.nvidia.com; several times\n"
    "      --once              look once; exit code 1 when something could not be done\n"
    "      --dry-run           look once, print what would be done and do nothing\n"
    "      --on-exit WHAT      workloads at SIGTERM: keep or remove (keep)\n"
    "      --log-level LEVEL   error, warn, info or debug (info)\n"
    "  -V, --version           print the version\n"
    "  -h, --help              print this\n\n"
    "examples:\n"
    "  fakegpu-pods --dry-run\n"
    "  fakegpu-pods --activity '[{time: 5m, utilization: 90}, {time: 1m, utilization: 10}], repeat: 0'\n";

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int usage(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "fakegpu-pods: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; see 'fakegpu-pods --help'\n");
    return EXIT_USAGE;
}

static int parse_interval(struct options *o, const char *text)
{
    struct why why = { 0 };
    int r = unit_parse(UNIT_NANOSECOND, text, UNIT_BARE_REFUSED, &o->interval_ns, &why);

    if (r == 0 && (o->interval_ns < SHORTEST_NS || o->interval_ns > LONGEST_NS))
        r = why_set(&why, ERANGE, "'%s' is out of range; allowed: 100ms to 1h", text);
    r = r < 0 ? usage("--interval: %s", why_text(&why)) : -1;
    why_release(&why);
    return r;
}

static int parse_on_exit(struct options *o, const char *text)
{
    o->remove_at_exit = !strcmp(text, "remove");
    if (!o->remove_at_exit && strcmp(text, "keep"))
        return usage("--on-exit: '%s' is not known; allowed: keep, remove", text);
    return -1;
}

static int parse_log_level(const char *text)
{
    int level = log_level_find(text);

    if (level < 0)
        return usage("--log-level: '%s' is not known; allowed: error, warn, info, debug", text);
    log_threshold = (enum log_level)level;
    return -1;
}

static int add_resource(struct options *o, size_t *count, const char *pattern)
{
    if (!*pattern || *count == RESOURCES_MAX)
        return usage("--resource: '%s' %s", pattern,
                     *pattern ? "is one too many; allowed: 32" : "is not a pattern");
    o->resources[(*count)++] = pattern;
    o->resources[*count] = NULL;
    return -1;
}

static void set_defaults(struct options *o)
{
    const char *root = getenv("FAKEGPUFS_ROOT");

    *o = (struct options){
        .root = root && *root ? root : DEFAULT_ROOT,
        .socket = DEFAULT_SOCKET,
        .defaults = { .activity = "100", .memory = "1GiB" },
        .interval_ns = NS_PER_S,
    };
    memcpy(o->resources, default_resources, sizeof(default_resources));
}

int options_parse(struct options *o, int argc, char **argv)
{
    enum { ACTIVITY = 256, MEMORY, RESOURCE, ONCE, DRY_RUN, ON_EXIT, LOG_LEVEL };
    static const struct option longs[] = {
        { "root", required_argument, NULL, 'r' },
        { "socket", required_argument, NULL, 's' },
        { "interval", required_argument, NULL, 'i' },
        { "activity", required_argument, NULL, ACTIVITY },
        { "memory", required_argument, NULL, MEMORY },
        { "resource", required_argument, NULL, RESOURCE },
        { "once", no_argument, NULL, ONCE },
        { "dry-run", no_argument, NULL, DRY_RUN },
        { "on-exit", required_argument, NULL, ON_EXIT },
        { "log-level", required_argument, NULL, LOG_LEVEL },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    size_t resources = 0;
    int r = -1, c;

    set_defaults(o);
    while (r < 0 && (c = getopt_long(argc, argv, "r:s:i:Vh", longs, NULL)) != -1) {
        switch (c) {
        case 'r':
            o->root = optarg;
            break;
        case 's':
            o->socket = optarg;
            break;
        case 'i':
            r = parse_interval(o, optarg);
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
        case ONCE:
            o->once = true;
            break;
        case DRY_RUN:
            o->once = o->dry_run = true;
            break;
        case ON_EXIT:
            r = parse_on_exit(o, optarg);
            break;
        case LOG_LEVEL:
            r = parse_log_level(optarg);
            break;
        case 'V':
            printf("fakegpu-pods %s\n", FAKEGPUFS_VERSION);
            return 0;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return EXIT_USAGE; /* getopt has said why */
        }
    }
    if (r < 0 && optind < argc)
        r = usage("'%s' is not expected", argv[optind]);
    return r;
}
