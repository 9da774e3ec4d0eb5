/*
 * What commands cost where there are thousands of GPUs, and changes where there are thousands of workloads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>

#include "tests/bench_mounted.h"

enum { TIMES = 5, GPUS = 4096, FEW = 100, MANY = 10000 };

/* Of several times, how long a program takes from its start to its end, in ms. */
static double time_of(const char *const *words)
{
    double ms[TIMES];

    for (int i = 0; i < TIMES; i++) {
        int64_t begin = bench_now_ns();

        if (bench_run_words(words) != 0)
            bench_die(words[1] ? words[1] : words[0]);
        ms[i] = (double)(bench_now_ns() - begin) / 1e6;
    }
    return bench_median(ms, TIMES);
}

#define TIME_OF(...) time_of((const char *const[]){ __VA_ARGS__, NULL })

/* As many bind mounts of a file of a tmpfs as exec makes of device nodes and PCI roots, in ms. */
static double native_mounts_ms(void)
{
    int pipes[2], status;
    double ms = 0;
    pid_t child;

    if (pipe(pipes) < 0 || (child = fork()) < 0)
        bench_die("fork");
    if (child == 0) {
        int64_t begin = bench_now_ns();
        bool made = unshare(CLONE_NEWNS) == 0 &&
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount("none", "/mnt", "tmpfs", 0, NULL) == 0;
        char path[64];

        close(open("/mnt/file", O_CREAT | O_WRONLY, 0644));
        for (int i = 0; made && i < 2 * GPUS; i++) {
            snprintf(path, sizeof(path), "/mnt/%d", i);
            close(open(path, O_CREAT | O_WRONLY, 0644));
            made = mount("/mnt/file", path, NULL, MS_BIND, NULL) == 0;
        }
        ms = (double)(bench_now_ns() - begin) / 1e6;
        _exit(made && write(pipes[1], &ms, sizeof(ms)) == sizeof(ms) ? 0 : 1);
    }
    if (waitpid(child, &status, 0) < 0 || status || read(pipes[0], &ms, sizeof(ms)) != sizeof(ms))
        ms = 0;
    close(pipes[0]);
    close(pipes[1]);
    return ms;
}

static void bench_gpus(void)
{
    double none = TIME_OF("/bin/true");
    double status = TIME_OF(bench_program, "status", "--mount", bench_place);
    double exec = TIME_OF(bench_program, "exec", "--mount", bench_place, "--", "/bin/true");
    double native = native_mounts_ms();

    bench_row("fakegpufs status, 4,096 GPUs", status, "ms", 500, none,
              "start and end of /bin/true");
    bench_row("fakegpufs exec, 4,096 GPUs", exec, "ms", 5000, native,
              native > 0 ? "as many bind mounts in a tmpfs" : "");
}

/* Directories FROM to TO are made, or removed, in a directory: us for each. */
static double directories_us(const char *in, int from, int to, bool made)
{
    int64_t begin = bench_now_ns();
    char path[PATH_MAX];

    for (int i = from; i < to; i++) {
        snprintf(path, sizeof(path), "%s/w%d", in, i);
        if ((made ? mkdir(path, 0755) : rmdir(path)) < 0)
            bench_die(path);
    }
    return (double)(bench_now_ns() - begin) / 1e3 / (to - from);
}

static void bench_workloads(void)
{
    char workloads[PATH_MAX], native[] = "/dev/shm/fakegpufs-bench-XXXXXX";
    double few, many, removed, made;

    snprintf(workloads, sizeof(workloads), "%s/workloads", bench_place);
    if (!mkdtemp(native))
        bench_die(native);
    made = directories_us(native, 0, MANY, true);
    directories_us(native, 0, MANY, false);
    rmdir(native);
    few = directories_us(workloads, 0, FEW, true);
    directories_us(workloads, FEW, MANY - FEW, true);
    many = directories_us(workloads, MANY - FEW, MANY, true);
    removed = directories_us(workloads, MANY / 2, MANY / 2 + FEW, false);
    bench_row("making a workload, of the first 100", few, "us", 0, made, "a mkdir in a tmpfs");
    bench_row("… of the last 100 of 10,000", many, "us", 3 * few, made, "a mkdir in a tmpfs");
    bench_row("removing one from the middle of 10,000", removed, "us", 0, made,
              "a mkdir in a tmpfs");
}

int main(int argc, char **argv)
{
    (void)argc;
    bench_prepare(argv[0]);
    bench_mount("--gpus", "4096", "--profile", "cycle");
    bench_heading("thousands");
    bench_gpus();
    bench_unmount();
    mkdir(bench_place, 0700);
    bench_mount("--gpus", "8", "--profile", "cycle");
    bench_workloads();
    bench_unmount();
    return 0;
}
