/*
 * How long nvidia-smi takes for 8 GPUs, against starting a program that does nothing; and how often it reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench.h"

enum { GPUS = 8, ROUNDS = 31 };

static char directory[PATH_MAX], daemon_path[PATH_MAX + 16],
    mountpoint[] = "/tmp/fakegpufs-bench-XXXXXX", smi[sizeof(mountpoint) + 32];

static void die(const char *what)
{
    fprintf(stderr, "bench_smi: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* How many read and pread calls the dead, but not yet forgotten, process has made. */
static long reads_of(pid_t pid)
{
    char path[64], line[64];
    long reads = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "syscr: %ld", &reads);
    if (file)
        fclose(file);
    return reads;
}

/* Runs it, silently; its exit status, and its reads when they are asked for. */
static int run(const char *const *words, long *reads)
{
    pid_t child = fork();
    siginfo_t info;
    int status;

    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    if (child < 0 || waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
        die(words[0]);
    if (reads)
        *reads = reads_of(child);
    return waitpid(child, &status, 0) < 0 ? -1 : status;
}

static void unmount(void)
{
    run((const char *[]){ daemon_path, "umount", mountpoint, NULL }, NULL);
    for (int i = 0; i < 100 && rmdir(mountpoint) < 0; i++)
        usleep(10000);
}

/* The median, in ms. */
static double time_ms(const char *const *words)
{
    double rounds[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = bench_now_ns();

        if (run(words, NULL) != 0)
            die(words[1] ? words[1] : words[0]);
        rounds[i] = (double)(bench_now_ns() - start) / 1e6;
    }
    return bench_median(rounds, ROUNDS);
}

/* Elements of `-q -x` that hold others, for one GPU. */
static int sections(void)
{
    char command[sizeof(smi) + 32], line[512];
    int count = 0;
    FILE *pipe;

    snprintf(command, sizeof(command), "%s -q -x -i 0", smi);
    pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof(line), pipe))
        count += strchr(line, '<') && !strstr(line, "</") && strncmp(line, "\t\t<", 3) == 0;
    if (pipe)
        pclose(pipe);
    return count ? count : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *what, *words[4];
        double most_ms;
    } rows[] = {
        { "nvidia-smi", { NULL }, 10 },
        { "nvidia-smi -q", { "-q", NULL }, 30 },
        { "nvidia-smi -q -x", { "-q", "-x", NULL }, 30 },
        { "nvidia-smi --query-gpu, 5 fields",
          { "--query-gpu=index,utilization.gpu,memory.used,power.draw,temperature.gpu",
            "--format=csv", NULL },
          10 },
    };
    const char *const nothing[] = { "/bin/true", NULL };
    long base = 0, reads = 0;
    double native;

    (void)argc;
    if (!realpath(argv[0], directory))
        die(argv[0]);
    dirname(dirname(directory));
    snprintf(daemon_path, sizeof(daemon_path), "%s/fakegpufs", directory);
    if (!mkdtemp(mountpoint))
        die(mountpoint);
    if (run((const char *[]){ daemon_path, "mount", mountpoint, NULL }, NULL) != 0) {
        rmdir(mountpoint);
        fprintf(stderr, "bench_smi: nothing can be mounted here; left out\n");
        return 0;
    }
    atexit(unmount);
    unsetenv("FAKEGPUFS_ROOT");
    unsetenv("LD_LIBRARY_PATH");
    snprintf(smi, sizeof(smi), "%s/usr/bin/nvidia-smi", mountpoint);

    bench_heading("nvidia-smi from a mount, 8 GPUs");
    native = time_ms(nothing);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *words[5] = { smi };

        memcpy(words + 1, rows[i].words, sizeof(rows[i].words));
        bench_row(rows[i].what, time_ms(words), "ms", rows[i].most_ms, native, "/bin/true");
    }
    run((const char *[]){ smi, "--query-gpu=count", "--format=csv", NULL }, &base);
    run((const char *[]){ smi, "-q", "-x", NULL }, &reads);
    bench_row("reads of nvidia-smi -q -x, a GPU and section",
              (double)(reads - base) / GPUS / sections(), "", 1, 0, "");
    return 0;
}
