/*
 * How fast the mount is, against files of the kernel's own sysfs read in the same run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "fusefs/reader.h"
#include "fusefs/snapshot.h"
#include "tests/bench_mounted.h"

/* A file that the kernel renders at each read, as the metric files are. */
static const char sysfs_file[] = "/sys/kernel/mm/transparent_hugepage/enabled";

/* The median time of one call, in us. */
static double time_us(void (*call)(void *), void *argument, int times)
{
    enum { ROUNDS = 9 };
    double rounds[ROUNDS];

    for (int r = 0; r < ROUNDS; r++) {
        int64_t start = bench_now_ns();

        for (int i = 0; i < times; i++)
            call(argument);
        rounds[r] = (double)(bench_now_ns() - start) / times / 1000;
    }
    return bench_median(rounds, ROUNDS);
}

static void open_read_close(void *path)
{
    char buf[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, buf, sizeof(buf)) <= 0)
        bench_die(path);
    close(fd);
}

static void read_again(void *fd)
{
    char buf[4096];

    if (pread(*(int *)fd, buf, sizeof(buf), 0) <= 0)
        bench_die("pread");
}

static void read_page(void *fd)
{
    char buf[SNAPSHOT_PAGE];

    if (pread(*(int *)fd, buf, sizeof(buf), SNAPSHOT_PAGE) != sizeof(buf))
        bench_die("pread of the snapshot");
}

static void write_command(void *fd)
{
    if (pwrite(*(int *)fd, "50\n", 3, 0) != 3)
        bench_die("write");
}

static int open_in(const char *path, int flags)
{
    char full[PATH_MAX];
    int fd;

    snprintf(full, sizeof(full), "%s/%s", bench_place, path);
    fd = open(full, flags | O_CLOEXEC);
    if (fd < 0)
        bench_die(full);
    return fd;
}

static void bench_reads(void)
{
    char metric[PATH_MAX];
    int sysfs = open(sysfs_file, O_RDONLY | O_CLOEXEC), snapshot = open_in("snapshot", O_RDONLY);
    int file = open_in("gpus/0/metrics/power_usage_mw", O_RDONLY);
    int control = open_in("gpus/0/control/utilization_gpu_percent", O_WRONLY);
    double native, native_open;

    if (sysfs < 0)
        bench_die(sysfs_file);
    snprintf(metric, sizeof(metric), "%s/gpus/0/metrics/power_usage_mw", bench_place);
    native_open = time_us(open_read_close, (void *)(uintptr_t)sysfs_file, 20000);
    bench_row("open, read, close of a metric file", time_us(open_read_close, metric, 2000), "us",
              12 * native_open, native_open, "a sysfs file");
    native = time_us(read_again, &sysfs, 50000);
    bench_row("pread of an open metric file", time_us(read_again, &file, 4000), "us", 0, native,
              "a sysfs file");
    bench_row("pread of a snapshot page", time_us(read_page, &snapshot, 50000), "us", 1.2 * native,
              native, "a sysfs file");
    bench_row("a command, until every reader sees it", time_us(write_command, &control, 1000), "us",
              0, native, "a sysfs pread");
    close(sysfs);
    close(snapshot);
    close(file);
    close(control);
}

/* Processes whose program is ours and whose argument is the mount point: supervisor and worker. */
static int daemons(pid_t pids[2])
{
    char line[PATH_MAX + 64];
    int n = 0;
    FILE *p;

    snprintf(line, sizeof(line), "pgrep -f 'fakegpufs mount.*%s'", bench_place);
    p = popen(line, "r");
    while (p && n < 2 && fscanf(p, "%d", &pids[n]) == 1)
        n++;
    if (p)
        pclose(p);
    return n;
}

static double resident_mib(pid_t pid)
{
    return bench_proc_number(pid, "status", "VmRSS") / 1024;
}

static double cpu_ms(pid_t pid)
{
    unsigned long user = 0, kernel = 0;
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                    &kernel) != 2)
        user = kernel = 0;
    if (f)
        fclose(f);
    return (double)(user + kernel) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

static void bench_rest(void)
{
    pid_t pids[2] = { 0 };
    int n = daemons(pids);
    double resident = 0, before = 0, after = 0;

    for (int i = 0; i < n; i++) {
        resident += resident_mib(pids[i]);
        before += cpu_ms(pids[i]);
    }
    bench_row("resident memory, both processes, 8 GPUs", resident, "MiB", 10, 0, "");
    sleep(10);
    for (int i = 0; i < n; i++)
        after += cpu_ms(pids[i]);
    bench_row("one core, nobody reading, 8 GPUs", (after - before) / 10000 * 100, "%", 0.5, 0, "");
}

/* --- many readers, and a worker that is killed ------------------------------------------------ */

/* What the children saw; memory of all of them. */
static struct tally {
    volatile bool stop;
    volatile long reads[32], errors[32];
    volatile int64_t longest_ns[32];
} * tally;

/* A value and a page; a page is wrong when it is not whole, or older than the one before. */
static void read_on(int i)
{
    char metric[PATH_MAX], buf[64];
    struct reader *reader;
    struct reader_gpu gpu;
    uint64_t before = 0;

    snprintf(metric, sizeof(metric), "%s/gpus/%d/metrics/power_usage_mw", bench_place, i % 8);
    if (reader_open(&reader, bench_place) < 0)
        tally->errors[i]++;
    while (!tally->stop) {
        int64_t start = bench_now_ns(), took;
        int fd = open(metric, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, buf, sizeof(buf));
        int r = reader_gpu(reader, i % 8, &gpu);

        close(fd);
        took = bench_now_ns() - start;
        if (n < 2 || buf[n - 1] != '\n' || r < 0 || gpu.generation < before ||
            strlen(gpu.uuid) != 40)
            tally->errors[i]++;
        before = gpu.generation;
        if (took > tally->longest_ns[i])
            tally->longest_ns[i] = took;
        tally->reads[i] += 2;
    }
    _exit(0);
}

static void start_readers(int count)
{
    memset(tally, 0, sizeof(*tally));
    for (int i = 0; i < count; i++)
        if (fork() == 0)
            read_on(i);
}

/* Ends the readers; their reads, errors and longest wait together. */
static long end_readers(int count, long *errors, double *longest_ms)
{
    long reads = 0;

    tally->stop = true;
    while (wait(NULL) > 0)
        ;
    *errors = 0;
    *longest_ms = 0;
    for (int i = 0; i < count; i++) {
        reads += tally->reads[i];
        *errors += tally->errors[i];
        if ((double)tally->longest_ns[i] / 1e6 > *longest_ms)
            *longest_ms = (double)tally->longest_ns[i] / 1e6;
    }
    return reads;
}

static void bench_many(void)
{
    double longest_ms;
    long errors;

    start_readers(32);
    sleep(60);
    bench_row("32 readers for 60 s: values read", (double)end_readers(32, &errors, &longest_ms), "",
              0, 0, "");
    bench_row("… of them failed or torn", (double)errors, "", 0, 0, "");
}

static long reads_so_far(void)
{
    return tally->reads[0] + tally->reads[1];
}

static void bench_kills(void)
{
    pid_t pids[2] = { 0 };
    double longest_ms;
    long errors, reads;

    start_readers(2);
    for (int kills = 0; kills < 20; kills++) {
        while (reads_so_far() < (kills + 1) * 5000)
            usleep(1000);
        if (daemons(pids) == 2)
            kill(pids[0] > pids[1] ? pids[0] : pids[1], SIGKILL);
        usleep(150000);
    }
    reads = end_readers(2, &errors, &longest_ms);
    bench_row("reads across 20 kills of the worker", (double)reads, "", 0, 0, "");
    bench_row("… of them failed or torn", (double)errors, "", 0, 0, "");
    bench_row("… the longest that one took", longest_ms, "ms", 100, 0, "");
}

static void bench_serving(const char *gpus, const char *what, double most_ms)
{
    int64_t start = bench_now_ns();

    if (bench_run(bench_program, "mount", "--gpus", gpus, bench_place) != 0)
        bench_die("cannot mount");
    bench_row(what, (double)(bench_now_ns() - start) / 1e6, "ms", most_ms, 0, "");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (access("/dev/fuse", R_OK | W_OK) < 0) {
        printf("mount: SKIP: /dev/fuse is not there\n");
        return 0;
    }
    bench_prepare(argv[0]);
    bench_heading("mount");
    bench_serving("1024", "start to serving, 1,024 GPUs", 1000);
    bench_unmount();
    mkdir(bench_place, 0700);
    bench_serving("8", "start to serving, 8 GPUs", 50);
    bench_reads();
    bench_rest();
    tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        bench_die("mmap");
    bench_kills();
    bench_many();
    bench_unmount();
    return 0;
}
