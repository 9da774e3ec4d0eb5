/*
 * fakegpufs: the program; picks a subcommand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/command.h"

static const struct {
    const char *name;
    command_fn *run;
    const char *help;
} commands[] = {
    { "mount", command_mount, "mount simulated GPUs" },
    { "umount", command_umount, "unmount them" },
    { "simulate", command_simulate, "run a node without a mount and print its metrics as CSV" },
    { "config", command_config, "check, show or describe a configuration" },
    { "models", command_models, "list the GPU models" },
    { "metrics", command_metrics, "list the metrics" },
    { "paths", command_paths, "list the paths of a mount" },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

int command_usage(const char *name, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "fakegpufs %s: ", name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; see 'fakegpufs %s --help'\n", name);
    return EXIT_USAGE;
}

static void print_help(void)
{
    printf(
        "fakegpufs simulates NVIDIA GPUs.\n\nusage: fakegpufs COMMAND [ARGUMENT …]\n\ncommands:\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    printf("\n'fakegpufs COMMAND --help' says more.\n\n"
           "examples:\n"
           "  fakegpufs mount --gpus 2 --profile wave /tmp/gpus\n"
           "  fakegpufs config check node.yaml\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help();
        return 0;
    }
    if (!strcmp(name, "--version")) {
        printf("fakegpufs %s\n", FAKEGPUFS_VERSION);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return commands[i].run(argc - 1, argv + 1);
    if (!*name)
        fprintf(stderr, "fakegpufs: a command is needed; see 'fakegpufs --help'\n");
    else
        fprintf(stderr, "fakegpufs: '%s' is not a command; see 'fakegpufs --help'\n", name);
    return EXIT_USAGE;
}
