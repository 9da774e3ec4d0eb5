/*
 * How long nvidia-smi takes for 8 GPUs, against starting a program that does nothing; and how often it reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include "tests/bench_mounted.h"

enum { GPUS = 8, ROUNDS = 31 };

static char smi[sizeof(bench_place) + 32];

/* Runs it, silently: how many read and pread calls it has made. */
static double reads_of(const char *const *words)
{
    pid_t child = bench_start(words, -1);
    siginfo_t info;
    double reads;

    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
        bench_die(words[0]);
    reads = bench_proc_number(child, "io", "syscr"); /* of the dead, but not yet forgotten */
    waitpid(child, NULL, 0);
    return reads;
}

/* The median, in ms. */
static double time_ms(const char *const *words)
{
    double rounds[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = bench_now_ns();

        if (bench_run_words(words) != 0)
            bench_die(words[1] ? words[1] : words[0]);
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
    double native, base, reads;

    (void)argc;
    bench_prepare(argv[0]);
    bench_mount("--gpus", "8");
    atexit(bench_unmount);
    unsetenv("FAKEGPUFS_ROOT");
    unsetenv("LD_LIBRARY_PATH");
    snprintf(smi, sizeof(smi), "%s/usr/bin/nvidia-smi", bench_place);

    bench_heading("nvidia-smi from a mount, 8 GPUs");
    native = time_ms(nothing);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *words[5] = { smi };

        memcpy(words + 1, rows[i].words, sizeof(rows[i].words));
        bench_row(rows[i].what, time_ms(words), "ms", rows[i].most_ms, native, "/bin/true");
    }
    base = reads_of((const char *const[]){ smi, "--query-gpu=count", "--format=csv", NULL });
    reads = reads_of((const char *const[]){ smi, "-q", "-x", NULL });
    bench_row("reads of nvidia-smi -q -x, a GPU and section", (reads - base) / GPUS / sections(),
              "", 1, 0, "");
    return 0;
}
