/*
 * Options that the programs of k8s/ have in common. See options.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/common/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/log.h"
#include "sim/unit.h"
#include "sim/why.h"

#define SHORTEST_NS (100 * NS_PER_MS)
#define LONGEST_NS (3600 * NS_PER_S)

int usage(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s: ", log_program);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; see '%s --help'\n", log_program);
    return EXIT_USAGE;
}

int option_time(const char *option, const char *text, int64_t *ns)
{
    struct why why = { 0 };
    int r = unit_parse(UNIT_NANOSECOND, text, UNIT_BARE_REFUSED, ns, &why);

    if (r == 0 && (*ns < SHORTEST_NS || *ns > LONGEST_NS))
        r = why_set(&why, ERANGE, "'%s' is out of range; allowed: 100ms to 1h", text);
    r = r < 0 ? usage("--%s: %s", option, why_text(&why)) : -1;
    why_release(&why);
    return r;
}

static int parse_on_exit(struct common_options *o, const char *text)
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

void common_defaults(struct common_options *o, int64_t interval_ns)
{
    const char *root = getenv("FAKEGPUFS_ROOT");

    *o = (struct common_options){
        .root = root && *root ? root : DEFAULT_ROOT,
        .interval_ns = interval_ns,
    };
}

int common_option(struct common_options *o, int option, const char *help)
{
    switch (option) {
    case 'r':
        o->root = optarg;
        return -1;
    case 'i':
        return option_time("interval", optarg, &o->interval_ns);
    case OPTION_ONCE:
        o->once = true;
        return -1;
    case OPTION_DRY_RUN:
        o->once = o->dry_run = true;
        return -1;
    case OPTION_ON_EXIT:
        return parse_on_exit(o, optarg);
    case OPTION_LOG_LEVEL:
        return parse_log_level(optarg);
    case 'V':
        printf("%s %s\n", log_program, FAKEGPUFS_VERSION);
        return 0;
    case 'h':
        fputs(help, stdout);
        return 0;
    default:
        return EXIT_USAGE; /* getopt has said why */
    }
}

int common_rest(int argc, char **argv)
{
    return optind < argc ? usage("'%s' is not expected", argv[optind]) : -1;
}
