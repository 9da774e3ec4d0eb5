/*
 * Bench, mounted: a mount of its own for a benchmark, and the programs that were built with it.
 *
 *     bench_prepare(argv[0]);
 *     bench_mount("--gpus", "8");
 *     …
 *     bench_unmount();
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_BENCH_MOUNTED_H
#define TESTS_BENCH_MOUNTED_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench.h"

static char bench_build[PATH_MAX]; /* where everything is built */
static char bench_program[PATH_MAX + 16];
static char bench_place[] = "/tmp/fakegpufs-bench-XXXXXX"; /* the mount point */

static inline void bench_die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

/* Finds the programs beside the benchmark, and makes the mount point. */
static inline void bench_prepare(const char *self)
{
    if (!realpath(self, bench_build))
        bench_die(self);
    dirname(dirname(bench_build));
    snprintf(bench_program, sizeof(bench_program), "%s/fakegpufs", bench_build);
    if (!mkdtemp(bench_place))
        bench_die(bench_place);
}

/* Starts a program whose standard output is `out` (-1: nowhere). */
static inline pid_t bench_start(const char *const *words, int out)
{
    pid_t child = fork();

    if (child < 0)
        bench_die("fork");
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(out < 0 ? null : out, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    return child;
}

/* bench_run("/bin/true"): runs a program, silently; its status. */
#define bench_run(...) bench_run_words((const char *const[]){ __VA_ARGS__, NULL })
static inline int bench_run_words(const char *const *words)
{
    int status;

    if (waitpid(bench_start(words, -1), &status, 0) < 0)
        bench_die("wait");
    return status;
}

/* Mounts with these options. Where that cannot be, the benchmark ends here. */
#define bench_mount(...)                                                                      \
    do {                                                                                      \
        if (bench_run(bench_program, "mount", __VA_ARGS__, bench_place) != 0) {               \
            rmdir(bench_place);                                                               \
            printf("%s: SKIP: nothing can be mounted here\n", program_invocation_short_name); \
            exit(0);                                                                          \
        }                                                                                     \
    } while (0)

/* The mount point goes, too. */
static inline void bench_unmount(void)
{
    bench_run(bench_program, "umount", bench_place);
    for (int i = 0; i < 100 && rmdir(bench_place) < 0; i++)
        usleep(10000);
}

/* The number behind `label:` in a file of /proc/PID; 0 when there is none. */
static inline double bench_proc_number(pid_t pid, const char *file, const char *label)
{
    char path[64], line[256];
    size_t n = strlen(label);
    double number = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, label, n) && line[n] == ':')
            number = strtod(line + n + 1, NULL);
    if (f)
        fclose(f);
    return number;
}

#endif
