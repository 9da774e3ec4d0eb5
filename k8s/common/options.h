/*
 * Options that the programs of k8s/ have in common, and how each of them refuses what is wrong.
 *
 * A program puts COMMON_OPTIONS among its own, whose values begin at OPTION_OWN, and hands what it does not know
 * itself to common_option.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_COMMON_OPTIONS_H
#define K8S_COMMON_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#define DEFAULT_ROOT "/run/fakegpufs"

enum { EXIT_USAGE = 64 /* as in sysexits.h */ };

enum { OPTION_ONCE = 256, OPTION_DRY_RUN, OPTION_ON_EXIT, OPTION_LOG_LEVEL, OPTION_OWN };

/* clang-format off */
#define COMMON_OPTIONS                                              \
    { "root", required_argument, NULL, 'r' },                       \
    { "interval", required_argument, NULL, 'i' },                   \
    { "once", no_argument, NULL, OPTION_ONCE },                     \
    { "dry-run", no_argument, NULL, OPTION_DRY_RUN },               \
    { "on-exit", required_argument, NULL, OPTION_ON_EXIT },         \
    { "log-level", required_argument, NULL, OPTION_LOG_LEVEL },     \
    { "version", no_argument, NULL, 'V' },                          \
    { "help", no_argument, NULL, 'h' }
#define COMMON_SHORT "r:i:Vh"

/* What is said of them is the same, too. */
#define HELP_ROOT \
    "  -r, --root DIR          the mount; default: FAKEGPUFS_ROOT of the environment, or " DEFAULT_ROOT "\n"
#define HELP_ONCE \
    "      --once              look once; exit code 1 when something could not be done\n" \
    "      --dry-run           look once, print what would be done and do nothing\n"
#define HELP_LAST \
    "      --log-level LEVEL   error, warn, info or debug (info)\n" \
    "  -V, --version           print the version\n" \
    "  -h, --help              print this\n"
/* clang-format on */

/* Texts are those of argv, the environment or the program itself. */
struct common_options {
    const char *root;
    int64_t interval_ns;
    bool once, dry_run; /* the latter implies the former */
    bool remove_at_exit;
};

void common_defaults(struct common_options *o, int64_t interval_ns);

/*
 * One that getopt_long has found. Returns -1 to go on, or the exit code when there is nothing more to do: help was
 * asked for, or a sentence is on standard error.
 */
int common_option(struct common_options *o, int option, const char *help);

/* The same for what is left when all were found: nothing is expected there. */
int common_rest(int argc, char **argv);

/* Reads a time of 100ms to 1h. -1 or the exit code. */
int option_time(const char *option, const char *text, int64_t *ns);

/* Says what is wrong, and EXIT_USAGE. */
int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
