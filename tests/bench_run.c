/*
 * How fast `fakegpufs run` registers a workload, what a thousand of them at once cost, and how soon those
 * of killed clients are gone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <signal.h>

#include "tests/bench_mounted.h"

enum { TIMES = 51, MANY = 1000, STEPS = 600, PATIENCE_S = 120 };

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", bench_place, name);
    return path;
}

static int count_workloads(void)
{
    DIR *dir = opendir(path_of("workloads"));
    struct dirent *entry;
    int count = 0;

    if (!dir)
        bench_die("workloads");
    while ((entry = readdir(dir)))
        count += *entry->d_name != '.';
    closedir(dir);
    return count;
}

/* Until there are so many: how long that took, in ms. */
static double wait_for_workloads(int count, int64_t since_ns)
{
    int64_t end = bench_now_ns() + PATIENCE_S * INT64_C(1000000000);

    while (count_workloads() != count && bench_now_ns() < end)
        usleep(200);
    return (double)(bench_now_ns() - since_ns) / 1e6;
}

/* From the start of the program to its first line, which it prints when its workload is there. */
static double register_ms(void)
{
    const char *const words[] = { bench_program, "run",     "--mount", bench_place,
                                  "--memory",    "1GiB",    "--pod",   "trainer-0",
                                  "--activity",  "80:5:1h", NULL };
    int64_t begin = bench_now_ns();
    double ms;
    int out[2];
    pid_t pid;
    char byte;

    if (pipe2(out, O_CLOEXEC) < 0)
        bench_die("pipe");
    pid = bench_start(words, out[1]);
    close(out[1]);
    if (read(out[0], &byte, 1) != 1)
        bench_die("fakegpufs run says nothing");
    ms = (double)(bench_now_ns() - begin) / 1e6;
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    close(out[0]);
    return ms;
}

static double true_ms(void)
{
    int64_t begin = bench_now_ns();

    bench_run("/bin/true");
    return (double)(bench_now_ns() - begin) / 1e6;
}

static pid_t start_quiet(int i)
{
    char name[32];

    snprintf(name, sizeof(name), "job-%d", i);
    return bench_start((const char *const[]){ bench_program, "run", "--quiet", "--mount",
                                              bench_place, "--name", name, "--memory", "100MiB",
                                              "--activity", "20:5:1h", NULL },
                       -1);
}

/* From the kill of a client to the end of its workload; the mount steps every 100 ms. */
static double kill_ms(void)
{
    pid_t pid = start_quiet(0);
    int64_t begin;
    double ms;

    wait_for_workloads(1, 0);
    usleep(20000);
    begin = bench_now_ns();
    kill(pid, SIGKILL);
    ms = wait_for_workloads(0, begin);
    waitpid(pid, NULL, 0);
    return ms;
}

static void write_clock(const char *text)
{
    int fd = open(path_of("control/clock"), O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        bench_die("control/clock");
    close(fd);
}

static double step_ms(void)
{
    char command[32];
    int64_t begin;

    snprintf(command, sizeof(command), "step %ds", STEPS / 10);
    begin = bench_now_ns();
    write_clock(command);
    return (double)(bench_now_ns() - begin) / 1e6 / STEPS;
}

/* All that were killed are waited for, though some may have ended by themselves: those are counted. */
static int end_all(pid_t *pids, int count)
{
    int ended = 0, status;

    for (int i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++) {
        waitpid(pids[i], &status, 0);
        ended += !WIFSIGNALED(status);
    }
    return ended;
}

static void bench_many(double idle_step_ms)
{
    static pid_t pids[MANY];
    int64_t begin = bench_now_ns();
    double all_ms, busy_ms;
    int there, lost;

    for (int i = 0; i < MANY; i++)
        pids[i] = start_quiet(i);
    all_ms = wait_for_workloads(MANY, begin);
    busy_ms = step_ms();
    there = count_workloads();
    begin = bench_now_ns();
    lost = end_all(pids, MANY);
    bench_row("1,000 clients at once, until all are registered", all_ms / 1000, "s", 0, 0, "");
    bench_row("of them lost", MANY - there + lost, "", 0, 0, "");
    bench_row("a step with 1,000 workloads on 8 GPUs", busy_ms, "ms", 2, idle_step_ms,
              "one without workloads");
    bench_row("1,000 clients killed, until their workloads are gone", wait_for_workloads(0, begin),
              "ms", 0, 0, "");
}

int main(int argc, char **argv)
{
    static double registering[TIMES], native[TIMES], killing[TIMES];
    double idle_ms;

    (void)argc;
    bench_prepare(argv[0]);
    bench_mount("--gpus", "8");
    atexit(bench_unmount);
    for (int i = 0; i < TIMES; i++) {
        registering[i] = register_ms();
        native[i] = true_ms();
    }
    wait_for_workloads(0, 0);
    for (int i = 0; i < TIMES; i++)
        killing[i] = kill_ms();
    idle_ms = step_ms();
    bench_heading("fakegpufs run");
    bench_row("start of the program to a registered workload", bench_median(registering, TIMES),
              "ms", 20, bench_median(native, TIMES), "start and end of /bin/true");
    bench_row("kill of a client to the end of its workload", bench_median(killing, TIMES), "ms",
              100, 0, "");
    bench_many(idle_ms);
    return 0;
}
