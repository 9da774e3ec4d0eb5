/*
 * Files of a real mount: what a read is made of, what a write may be, and who waits for a stream.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <regex.h>
#include <sys/epoll.h>
#include <utime.h>

#include "fusefs/reader.h"
#include "sim/text.h"
#include "tests/mounted.h"

enum { SOMEBODY = 12345, SAMPLE_BYTES = 16384 };

#define UTILIZATION "gpus/0/control/utilization_gpu_percent"
#define FAULT "gpus/0/control/fault"

static struct reader *reader;

/* --- reading --------------------------------------------------------------------------------- */

static int64_t generation_now(void)
{
    return text_number(file_text("control/clock"), "generation");
}

static bool generation_moved(int64_t from)
{
    return WAIT_UNTIL(generation_now() > from);
}

/* The whole text that an open file shows, from offset 0. */
static int read_at_once(int fd, char *buf)
{
    ssize_t n = pread(fd, buf, SAMPLE_BYTES - 1, 0);

    buf[n < 0 ? 0 : n] = '\0';
    return (int)n;
}

static void test_chunks(void)
{
    static const size_t steps[] = { 1, 7, 100, 4095 };
    char whole[SAMPLE_BYTES], part[SAMPLE_BYTES];
    int a = file_open("gpus/0/sample", O_RDONLY), b = file_open("gpus/0/sample", O_RDONLY), n;
    bool same = true, moved = true;
    size_t used = 1;

    n = read_at_once(a, whole);
    ok(n > 1000, "a sample has %d bytes", n);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        moved = moved && generation_moved(text_number(whole, "generation"));
        for (size_t at = steps[i]; at < (size_t)n; at += steps[i]) {
            ssize_t got = pread(a, part, steps[i], (off_t)at);

            same = same && got > 0 && !memcmp(part, whole + at, (size_t)got);
        }
    }
    ok(moved, "the simulation goes on meanwhile");
    ok(same, "chunks, whatever their size, are of the generation that offset 0 showed");
    is_int(pread(a, part, 10, n), 0, "behind it is the end");
    is_int(pread(a, part, 10, (off_t)1 << 40), 0, "far behind it as well");
    n = read_at_once(a, part);
    ok(text_number(part, "generation") > text_number(whole, "generation"),
       "reading offset 0 again refreshes");

    /* Byte by byte, with generations passing by. */
    is_int(read(b, part, 1), 1, "one byte");
    generation_moved(generation_now());
    while (read(b, part + used, 1) == 1)
        if (used++ % 256 == 0)
            generation_moved(generation_now());
    part[used] = '\0';
    is_int(pread(b, whole, SAMPLE_BYTES, 1), (int64_t)used - 1, "as many bytes one by one");
    is_mem(whole, part + 1, used - 1, "and the same");
    ok(text_number(part, "generation") < generation_now() && part[used - 1] == '\n',
       "of one generation, up to the last newline");
    close(a);
    close(b);
}

/* --- sample and snapshot --------------------------------------------------------------------- */

static void test_snapshot(void)
{
    char sample[SAMPLE_BYTES];
    struct reader_node node;
    struct reader_gpu gpu;
    struct text shown = TEXT_INIT;
    int wrong = 0, lines = 0;

    is_int(file_put("control/clock", "pause"), 0, "the clock is paused");
    is_int(file_put("gpus/1/control/fault", "sensor temperature_memory_c"), 0, "a sensor breaks");
    file_read("gpus/1/sample", sample, sizeof(sample));
    is_int(reader_gpu(reader, 1, &gpu), 0, "the reader reads a GPU");
    is_int(reader_node(reader, &node), 0, "and the node");
    is_int(node.gpu_count, 2, "with its GPUs");
    is_int((int64_t)gpu.generation, text_number(sample, "generation"),
           "snapshot and sample are of one generation");
    is_int(node.now_ns, text_number(sample, "time_ns"), "and time");
    is_str(gpu.uuid, file_text("gpus/1/identity/uuid"), "the snapshot knows the UUID");
    text_addf(&shown, "generation %" PRIu64 "\ntime_ns %" PRId64 "\n", gpu.generation, node.now_ns);
    for (int id = 0; id < METRIC_COUNT; id++) {
        char path[128];
        int64_t value;
        int r = metric_read(&gpu.sample, (enum metric)id, &value), file;

        snprintf(path, sizeof(path), "gpus/1/metrics/%s", metric_infos[id].name);
        file = file_read(path, (char[64]){ 0 }, 64);
        wrong += (r < 0 ? r : 1) != (file < 0 ? file : 1);
        if (r == -ENODATA)
            continue;
        lines++;
        text_addf(&shown, "%s ", metric_infos[id].name);
        if (r == 0)
            unit_show(&shown, metric_infos[id].unit, value);
        else
            text_add(&shown, "NaN");
        text_add(&shown, "\n");
    }
    is_str(sample, text_str(&shown), "all %d metrics are the same in both", lines);
    is_int(wrong, 0, "what has no value or fails does so in the files, too");
    text_release(&shown);

    is_int(reader_gpu(reader, 2, &gpu), -ENODEV, "there is no third GPU");
    is_int(reader_gpu(reader, -1, &gpu), -ENODEV, "nor one below 0");
    is_int(reader_open(&(struct reader *){ NULL }, mounted.dir), -ENOENT, "nor a mount elsewhere");
    is_int(reader_text(reader, "gpus/0/identity/name", sample, sizeof(sample)), 21,
           "the reader reads texts");
    is_str(sample, "NVIDIA A100-SXM4-40GB", "without their newline");
    is_int(reader_text(reader, "gpus/0/sample", sample, 10), -E2BIG,
           "what does not fit is no text");
    is_int(reader_write(reader, UTILIZATION, "101"), -ERANGE, "the reader writes");
    is_int(file_put("gpus/1/control/fault", "recover"), 0, "the sensor is repaired");
    is_int(file_put("control/clock", "resume"), 0, "the clock goes on");
}

/* --- read your writes ------------------------------------------------------------------------ */

/* Another process: for every byte it gets it looks, and says what it saw in the file and the snapshot. */
static void watch(int from, int to)
{
    struct reader *own;
    struct reader_gpu gpu;
    char byte;

    if (reader_open(&own, mounted.root) < 0)
        _exit(1);
    while (read(from, &byte, 1) == 1) {
        int64_t seen[2] = { -1, -1 };

        if (reader_gpu(own, 0, &gpu) == 0 &&
            metric_read(&gpu.sample, METRIC_UTILIZATION_GPU, &seen[1]) == 0)
            seen[1] /= unit_parts(UNIT_PERCENT);
        seen[0] = file_number("gpus/0/metrics/utilization_gpu_percent");
        if (write(to, seen, sizeof(seen)) != sizeof(seen))
            break;
    }
    _exit(0);
}

static void test_read_your_writes(void)
{
    int ask[2], answer[2], stale_files = 0, stale_pages = 0, refused = 0;
    pid_t pid;

    if (pipe(ask) < 0 || pipe(answer) < 0)
        bail("pipe: %s", strerror(errno));
    pid = child_start();
    if (pid == 0) {
        close(ask[1]);
        close(answer[0]);
        watch(ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    for (int i = 0; i < 300; i++) {
        int64_t seen[2] = { -1, -1 };
        char text[16];

        snprintf(text, sizeof(text), "%d\n", i % 101);
        refused += file_put(UTILIZATION, text) < 0;
        if (write(ask[1], "", 1) != 1 || read(answer[0], seen, sizeof(seen)) != sizeof(seen))
            break;
        stale_files += seen[0] != i % 101;
        stale_pages += seen[1] != i % 101;
    }
    close(ask[1]);
    is_int(refused, 0, "300 writes");
    is_int(stale_files, 0, "another process sees each at once in the file");
    is_int(stale_pages, 0, "and in the snapshot");
    is_int(child_end(pid), 0, "until it ends");
    close(answer[0]);
    is_int(file_put(UTILIZATION, "auto"), 0, "auto gives it back");
    is_str(file_text(UTILIZATION), "auto", "and is shown");
}

/* --- refusals -------------------------------------------------------------------------------- */

static const struct refusal {
    const char *path, *text;
    int want;
    const char *last_error, *sentence;
} refusals[] = {
    { UTILIZATION, "eighty", EINVAL, "gpus/0/control/last_error", "'eighty' is not a number" },
    { UTILIZATION, "80 90", EINVAL, "gpus/0/control/last_error", "80 90" },
    { UTILIZATION, "80\n90\n", EINVAL, "gpus/0/control/last_error", "80\n90" },
    { UTILIZATION, "\n", EINVAL, "gpus/0/control/last_error", "'' is not a number" },
    { UTILIZATION, "101", ERANGE, "gpus/0/control/last_error", "101 is out of range.*0 to 100" },
    { UTILIZATION, "-1", ERANGE, "gpus/0/control/last_error", "-1 is out of range" },
    { UTILIZATION, "80 of a hundred per cent of what is there to be used by whoever comes", E2BIG,
      "gpus/0/control/last_error", "at most 63 characters" },
    { "gpus/0/control/memory_used_bytes", "41GiB", ENOSPC, "gpus/0/control/last_error", "41GiB" },
    { "gpus/0/control/memory_used_bytes", "-1", ERANGE, "gpus/0/control/last_error", "-1" },
    { "gpus/0/control/power_limit_mw", "1", ERANGE, "gpus/0/control/last_error", "100000|100W" },
    { "gpus/0/control/power_limit_mw", "much", EINVAL, "gpus/0/control/last_error", "'much'" },
    { "gpus/0/control/profile", "waves", EINVAL, "gpus/0/control/last_error",
      "did you mean 'wave'" },
    { "gpus/0/control/compute_mode", "7", ERANGE, "gpus/0/control/last_error", "7" },
    { "gpus/0/control/persistence_mode", "maybe", EINVAL, "gpus/0/control/last_error", "'maybe'" },
    { "gpus/0/control/clock_lock", "900 1410 1500", EINVAL, "gpus/0/control/last_error", "1500" },
    { FAULT, "xid", EINVAL, "gpus/0/control/last_error", "xid" },
    { FAULT, "xid 1000", ERANGE, "gpus/0/control/last_error", "1000" },
    { FAULT, "ecc sbe 0", ERANGE, "gpus/0/control/last_error", "0" },
    { FAULT, "explode", EINVAL, "gpus/0/control/last_error", "'explode'" },
    { "gpus/0/control/mig_mode", "1", EBUSY, "gpus/0/control/last_error", "in use" },
    { "gpus/0/metrics/power_usage_mw", "1", EPERM, NULL, NULL },
    { "gpus/0/sample", "1", EPERM, NULL, NULL },
    { "events", "1", EPERM, NULL, NULL },
    { "control/clock", "speed fast", EINVAL, "control/last_error", "'fast' is not a speed" },
    { "control/clock", "speed -1", ERANGE, "control/last_error", "-1" },
    { "control/clock", "step 30", EINVAL, "control/last_error", "needs a unit" },
    { "control/clock", "halt", EINVAL, "control/last_error", "'halt' is not a clock command" },
    { "control/config", "gpus: {count: two}", EINVAL, "control/last_error",
      "control/config:1:15: .*'two'" },
    { "control/config", "gpus: [", EINVAL, "control/last_error", "control/config:" },
    { "control/config", "gpus: {count: 5000}", ERANGE, "control/last_error", "5000" },
    { "workloads/job/devices", "7", ENODEV, "workloads/job/last_error", "there is no GPU '7'" },
    { "workloads/job/activity", "often", EINVAL, "workloads/job/last_error", "." },
    { "workloads/job/memory", "30GB30", EINVAL, "workloads/job/last_error", "30GB30" },
    { "workloads/job/repeat", "-1", ERANGE, "workloads/job/last_error", "-1" },
    { "workloads/job/limits", "wisdom=1", EINVAL, "workloads/job/last_error", "wisdom" },
    { "workloads/job/pid", "4194304", ERANGE, "workloads/job/last_error", "4194304" },
    { "workloads/job/pod", "a\nb", EINVAL, "workloads/job/last_error", "control characters" },
    { "workloads/job/state", "ended", EPERM, NULL, NULL },
};

static void test_refusals(void)
{
    static const char *const shown[] = { UTILIZATION, "control/config", "gpus/0/control/profile",
                                         "workloads/job/devices" };
    char before[4][4096];

    is_int(mkdir(file_path("workloads/job"), 0755), 0, "a workload");
    is_int(file_put("workloads/job/devices", "0"), 0, "on GPU 0");
    for (int i = 0; i < 4; i++)
        file_read(shown[i], before[i], sizeof(before[i]));
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *r = &refusals[i];

        is_int(file_put(r->path, r->text), -r->want, "'%s' to %s: %s", r->text, r->path,
               strerror(r->want));
        if (r->last_error)
            like(file_text(r->last_error), r->sentence, "%s says why", r->last_error);
    }
    for (int i = 0; i < 4; i++) {
        char after[4096];

        file_read(shown[i], after, sizeof(after));
        is_str(after, before[i], "%s is as it was", shown[i]);
    }
    is_int(file_write(UTILIZATION,
                      "8\0"
                      "0",
                      3),
           -EINVAL, "a zero byte is no part of a command");
    like(file_text("gpus/0/control/last_error"), "zero bytes", "and last_error says so");
    is_str(file_text(UTILIZATION), "auto", "what was before it counts for nothing");
    is_str(file_text("gpus/1/control/last_error"), "none", "GPU 1 was refused nothing");
}

/* A write is one command or none, however the kernel may cut it. */
static void test_huge(void)
{
    enum { MANY = 3 << 20 };
    char *bytes = aligned_alloc(4096, MANY + 4096);
    static const size_t sizes[] = { (1 << 20) - 4095, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, MANY };
    static const size_t offsets[] = { 0, 1, 4095 };
    int unexpected = 0;

    if (!bytes)
        bail("out of memory");
    for (size_t o = 0; o < 3; o++)
        for (size_t s = 0; s < 5; s++) {
            /* Whole, it would be a configuration, and so would the first mebibyte of it. */
            memset(bytes, '\n', MANY + 4096);
            memcpy(bytes + offsets[o], "gpus: {count: 5}", 16);
            unexpected += file_write("control/config", bytes + offsets[o], sizes[s]) != -E2BIG;
        }
    is_int(unexpected, 0, "more than a mebibyte is E2BIG, wherever in memory it lies");
    like(file_text("control/last_error"), "at most 1 MiB", "and last_error says so");
    is_int(access(file_path("gpus/4"), F_OK), -1, "no part of it was taken");
    memset(bytes, '\n', MANY);
    memcpy(bytes, "gpus: {count: 2}", 16);
    is_int(file_write("control/config", bytes, (1 << 20) - 4096), 0, "less is a command");
    free(bytes);
}

static int change_mode(const char *path)
{
    return chmod(path, 0777) < 0 ? -errno : 0;
}

static int change_owner(const char *path)
{
    return chown(path, SOMEBODY, SOMEBODY) < 0 ? -errno : 0;
}

static int change_times(const char *path)
{
    return utime(path, NULL) < 0 ? -errno : 0;
}

static int create(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);

    return fd < 0 ? -errno : fd;
}

static int make_node(const char *path)
{
    return mknod(path, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

static int make_symlink(const char *path)
{
    return symlink("target", path) < 0 ? -errno : 0;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0755) < 0 ? -errno : 0;
}

static int make_link(const char *path)
{
    return link(path, file_path("other")) < 0 ? -errno : 0;
}

static int rename_it(const char *path)
{
    return rename(path, file_path("workloads/other")) < 0 ? -errno : 0;
}

static int remove_file(const char *path)
{
    return unlink(path) < 0 ? -errno : 0;
}

static int remove_directory(const char *path)
{
    return rmdir(path) < 0 ? -errno : 0;
}

static int open_it(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int open_to_write(const char *path)
{
    return open_it(path, O_WRONLY);
}

static int open_to_read(const char *path)
{
    return open_it(path, O_RDONLY);
}

static int read_it(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;
    char buf[16];

    if (fd < 0)
        return -errno;
    r = read(fd, buf, sizeof(buf)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

#define LONG_NAME "a234567890b234567890c234567890d234567890e234567890f234567890g234"

static const struct attempt {
    int (*call)(const char *path);
    const char *what, *path;
    int root, other; /* errno that root and somebody else get; -1: not tried */
} attempts[] = {
    { create, "create", "new", EPERM, EACCES },
    { create, "create", "workloads/new", EPERM, EPERM },
    { make_node, "mknod", "workloads/new", EPERM, EPERM },
    { make_symlink, "symlink", "workloads/new", EPERM, EPERM },
    { make_link, "link", "control/clock", EPERM, -1 },
    { make_directory, "mkdir", "new", EPERM, EACCES },
    { make_directory, "mkdir", "gpus/2", EPERM, EACCES },
    { make_directory, "mkdir", "workloads/job/new", EPERM, EACCES },
    { make_directory, "mkdir", "workloads/job", EEXIST, EEXIST },
    { make_directory, "mkdir", "workloads/.hidden", EINVAL, EINVAL },
    { make_directory, "mkdir", "workloads/two words", EINVAL, EINVAL },
    { make_directory, "mkdir", "workloads/" LONG_NAME, ENAMETOOLONG, ENAMETOOLONG },
    { remove_file, "unlink", "control/clock", EPERM, EACCES },
    { remove_file, "unlink", "workloads/job/memory", EPERM, EACCES },
    { remove_file, "unlink", "workloads/job", EISDIR, EPERM },
    { remove_directory, "rmdir", "gpus/0", EPERM, EACCES },
    { remove_directory, "rmdir", "workloads", EPERM, EACCES },
    { remove_directory, "rmdir", "workloads/job", -1, EPERM },
    { remove_directory, "rmdir", "workloads/nothing", ENOENT, ENOENT },
    { remove_directory, "rmdir", "control/clock", ENOTDIR, -1 },
    { rename_it, "rename", "workloads/job", EPERM, EPERM },
    { change_mode, "chmod", "control/clock", EPERM, EPERM },
    { change_mode, "chmod", "workloads/job", EPERM, EPERM },
    { change_owner, "chown", "control/clock", EPERM, EPERM },
    { change_times, "utime", "control/clock", EPERM, EACCES },
    { open_to_write, "open to write", "gpus", EISDIR, EISDIR },
    { open_to_write, "open to write", "control/clock", 0, EACCES },
    { open_to_write, "open to write", "workloads/job/memory", 0, EACCES },
    { open_to_write, "open to write", "workloads/job/attach", -1, EACCES },
    { open_to_read, "open to read", "control/clock/now", ENOTDIR, ENOTDIR },
    { open_to_read, "open to read", "nothing", ENOENT, ENOENT },
    { open_to_read, "open to read", "gpus/2/sample", ENOENT, ENOENT },
    { read_it, "read", "gpus", EISDIR, EISDIR },
    { read_it, "read", "gpus/0/metrics/fan_speed_percent", ENODATA, ENODATA },
    { read_it, "read", "control/clock", 0, 0 },
    { read_it, "read", "workloads/job/state", 0, 0 },
};

static void test_attempts(void)
{
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        const struct attempt *a = &attempts[i];
        const char *path = file_path("%s", a->path);

        if (a->root >= 0)
            is_int(a->call(path), -a->root, "%s of %s by root: %s", a->what, a->path,
                   strerror(a->root));
        if (a->other >= 0)
            is_int(as_user(SOMEBODY, a->call, path), -a->other, "%s of %s by somebody: %s", a->what,
                   a->path, strerror(a->other));
    }
    is_str(file_text("workloads/job/state"), "running", "the workload has seen nothing of it");
}

/* --- ways to open and write ------------------------------------------------------------------ */

static void test_opens(void)
{
    static const struct {
        const char *name;
        int flags;
    } ways[] = { { "O_TRUNC", O_WRONLY | O_TRUNC },
                 { "O_APPEND", O_WRONLY | O_APPEND },
                 { "O_CREAT", O_WRONLY | O_CREAT | O_TRUNC },
                 { "O_RDWR", O_RDWR } };
    struct stat st;
    char buf[16] = "";
    int fd;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        fd = file_open(UTILIZATION, ways[i].flags);
        snprintf(buf, sizeof(buf), "%zu\n", 10 + i);
        is_int(write(fd, buf, strlen(buf)), 3, "a write to what %s opened", ways[i].name);
        is_int(file_number("gpus/0/metrics/utilization_gpu_percent"), 10 + (int64_t)i,
               "%s: counts before it is closed", ways[i].name);
        is_int(write(fd, "5", 1), 1, "and a second one");
        is_int(pwrite(fd, "6\n", 2, 1000), 2, "and one at an offset");
        is_int(file_number("gpus/0/metrics/utilization_gpu_percent"), 6, "each is a command");
        if (ways[i].flags & O_RDWR) {
            is_int(pread(fd, buf, sizeof(buf), 0), 2, "what was opened for both is read");
            is_mem(buf, "6\n", 2, "and shows what was written");
        }
        is_int(ftruncate(fd, 0), 0, "%s: ftruncate is accepted", ways[i].name);
        close(fd);
    }
    is_int(truncate(file_path(UTILIZATION), 0), 0, "truncate is accepted");
    is_int(truncate(file_path(UTILIZATION), 77), 0, "to whatever length");
    is_int(file_number("gpus/0/metrics/utilization_gpu_percent"), 6, "and changes nothing");
    is_int(stat(file_path(UTILIZATION), &st), 0, "it is there");
    is_int(st.st_size, 4096, "as long as before");
    is_int(file_put(UTILIZATION, "  auto \n\n"), 0, "white space around a command is nothing");
    is_int(file_put("control/config", "# two\ngpus:\n  count: 2\n"), 0,
           "a command may have several lines, where they make sense");
}

/* --- a GPU that fails ------------------------------------------------------------------------ */

static void test_failing(void)
{
    int fd = file_open("gpus/1/metrics/temperature_gpu_c", O_RDONLY);
    struct reader_gpu gpu;
    int64_t value;
    char buf[16];

    ok(read(fd, buf, sizeof(buf)) > 0, "a temperature");
    is_int(file_put("gpus/1/control/fault", "sensor temperature_gpu_c"), 0, "its sensor fails");
    is_str(file_text("gpus/1/metrics/temperature_gpu_c"), "errno 5", "then it is EIO");
    is_int(pread(fd, buf, sizeof(buf), 0) < 0 ? errno : 0, EIO, "for who had it open, too");
    is_int(reader_gpu(reader, 1, &gpu), 0, "the snapshot");
    is_int(metric_read(&gpu.sample, METRIC_TEMPERATURE_GPU, &value), -EIO, "says the same");
    contains(file_text("gpus/1/sample"), "\ntemperature_gpu_c NaN\n", "the sample says NaN");
    is_int(file_put("gpus/1/control/fault", "fallen_off_bus"), 0, "it falls off the bus");
    is_int(pread(fd, buf, sizeof(buf), 0) < 0 ? errno : 0, ENODEV, "then it is ENODEV");
    is_int(file_put("gpus/1/control/power_limit_mw", "300000"), -ENODEV, "to write, too");
    like(file_text("gpus/1/control/last_error"), "fallen off the bus", "which last_error explains");
    is_int(reader_gpu(reader, 1, &gpu), 0, "the snapshot");
    ok(gpu.lost, "says that it is lost");
    is_int(file_put("gpus/1/control/fault", "recover"), 0, "it is recovered");
    ok(pread(fd, buf, sizeof(buf), 0) > 0, "and can be read again");
    close(fd);
}

/* --- streams --------------------------------------------------------------------------------- */

/* Opens a stream and reads all that is there; later reads wait for more unless it is O_NONBLOCK. */
static int stream_at_end(const char *path, int flags)
{
    int fd = file_open(path, O_RDONLY | O_NONBLOCK);
    char buf[4096];

    while (read(fd, buf, sizeof(buf)) > 0)
        ;
    if (fd < 0 || errno != EAGAIN)
        bail("%s: %s", path, strerror(errno));
    fcntl(fd, F_SETFL, flags);
    return fd;
}

static void on_signal(int number)
{
    (void)number;
}

static void catch_usr1(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    sigaction(SIGUSR1, &action, NULL);
}

/* In a child: reads once, says so before and what came of it after. */
static pid_t read_in_child(int fd, int *told)
{
    int pipes[2];
    pid_t pid;

    if (pipe(pipes) < 0)
        bail("pipe: %s", strerror(errno));
    pid = child_start();
    if (pid == 0) {
        char buf[4096];
        ssize_t n;

        catch_usr1();
        if (write(pipes[1], "", 1) != 1)
            _exit(1);
        n = read(fd, buf, sizeof(buf));
        n = n < 0 ? -errno : n;
        if (write(pipes[1], &n, sizeof(n)) != sizeof(n))
            _exit(1);
        _exit(0);
    }
    close(pipes[1]);
    if (read(pipes[0], (char[1]){ 0 }, 1) != 1)
        bail("the child did not start");
    *told = pipes[0];
    return pid;
}

static bool is_readable(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

/* What the child read, or INT64_MIN when it waits for ever. */
static int64_t told_by_child(pid_t pid, int told)
{
    int64_t n = INT64_MIN;

    if (is_readable(told, WAIT_MS) && read(told, &n, sizeof(n)) != sizeof(n))
        n = INT64_MIN;
    close(told);
    if (n == INT64_MIN)
        kill(pid, SIGKILL);
    child_end(pid);
    return n;
}

static bool is_asleep(pid_t pid)
{
    char path[64], buf[512] = "";
    const char *state;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
        buf[0] = '\0';
    close(fd);
    state = strrchr(buf, ')');
    return state && strchr("SD", state[2]);
}

static void test_blocking(void)
{
    int fd = stream_at_end("events", 0), told;
    pid_t pid = read_in_child(fd, &told);

    ok(WAIT_UNTIL(is_asleep(pid)), "a read behind the end waits");
    ok(!is_readable(told, 50), "and goes on waiting");
    is_int(file_put(FAULT, "ecc sbe 1"), 0, "something happens");
    ok(told_by_child(pid, told) > 0, "and the read returns it");
    close(fd);

    fd = stream_at_end("events", 0);
    pid = read_in_child(fd, &told);
    ok(WAIT_UNTIL(is_asleep(pid)), "another one waits");
    ok(WAIT_UNTIL(kill(pid, SIGUSR1) == 0 && is_readable(told, 10)), "a signal comes");
    is_int(told_by_child(pid, told), -EINTR, "and it is interrupted");
    close(fd);

    fd = stream_at_end("events", 0);
    pid = read_in_child(fd, &told);
    WAIT_UNTIL(is_asleep(pid));
    kill(pid, SIGKILL);
    is_int(child_end(pid), 128 + SIGKILL, "who waits can be killed");
    close(told);
    is_str(file_text("workloads/job/state"), "running", "and the mount serves on");
    close(fd);
}

static void test_poll(void)
{
    int fd = stream_at_end("kmsg", O_NONBLOCK), poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = { .events = EPOLLIN, .data.fd = 42 }, event;
    char buf[4096];
    ssize_t n;

    is_int(read(fd, buf, sizeof(buf)) < 0 ? errno : 0, EAGAIN, "O_NONBLOCK: EAGAIN at the end");
    ok(!is_readable(fd, 0), "poll has nothing");
    for (int i = 0; i < 3; i++) {
        pid_t pid = child_start();

        if (pid == 0) {
            pause_ms(20);
            _exit(file_put(FAULT, "xid 13") < 0);
        }
        ok(is_readable(fd, WAIT_MS), "poll is woken by an event");
        is_int(child_end(pid), 0, "of another process");
        ok(is_readable(fd, 0), "and says so until it is read");
        while ((n = read(fd, buf, sizeof(buf))) > 0)
            ;
        ok(!is_readable(fd, 0), "then it waits again");
    }
    is_int(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &wanted), 0, "epoll takes it");
    is_int(epoll_wait(poller, &event, 1, 0), 0, "and has nothing");
    for (int i = 0; i < 3; i++) {
        pid_t pid = child_start();

        if (pid == 0) {
            pause_ms(20);
            _exit(file_put(FAULT, "xid 31") < 0);
        }
        is_int(epoll_wait(poller, &event, 1, WAIT_MS), 1, "epoll is woken by an event");
        is_int(event.data.fd, 42, "of this file");
        child_end(pid);
        while ((n = read(fd, buf, sizeof(buf))) > 0)
            ;
        is_int(epoll_wait(poller, &event, 1, 0), 0, "and has nothing once it is read");
    }
    close(poller);
    close(fd);
    fd = file_open("gpus/0/sample", O_RDONLY);
    ok(is_readable(fd, 0), "any other file is readable");
    close(fd);
}

/* Reads lines until `last` was seen: how many had `what`; -1 when their numbers have a gap. */
static int count_events(int fd, const char *what, const char *last)
{
    char buf[65536];
    size_t used = 0;
    int64_t before = -1;
    int count = 0;

    for (;;) {
        ssize_t n = read(fd, buf + used, sizeof(buf) - used - 1);
        char *line = buf, *end;

        if (n <= 0)
            return -1;
        used += (size_t)n;
        buf[used] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            int64_t number = strtoll(line, NULL, 10);

            *end = '\0';
            if (before >= 0 && number != before + 1)
                return -1;
            before = number;
            count += strstr(line, what) != NULL;
            if (strstr(line, last))
                return count;
        }
        used = strlen(line);
        memmove(buf, line, used + 1);
    }
}

static void test_two_readers(void)
{
    pid_t readers[2];
    int fds[2], refused = 0;

    for (int i = 0; i < 2; i++) {
        fds[i] = stream_at_end("events", 0);
        readers[i] = child_start();
        if (readers[i] == 0)
            _exit(count_events(fds[i], " ecc_sbe ", " xid=62 ") == 50 ? 0 : 1);
    }
    for (int i = 0; i < 50; i++)
        refused += file_put(FAULT, "ecc sbe 1") < 0;
    is_int(refused, 0, "50 things happen");
    is_int(file_put(FAULT, "xid 62"), 0, "and one more");
    for (int i = 0; i < 2; i++) {
        is_int(child_end(readers[i]), 0, "each of two readers sees every event once, in order");
        close(fds[i]);
    }
}

/* What NVIDIA's DCGM looks for in the kernel's log. */
static void test_kmsg(void)
{
    static const char dcgm[] = "^[0-9]+,[0-9]+,([0-9]+),.*;NVRM: Xid \\(PCI:(.*)\\): ([0-9]+),.*";
    int fd = stream_at_end("kmsg", 0);
    regmatch_t match[4];
    char buf[4096];
    regex_t regex;
    ssize_t n;

    is_int(file_put(FAULT, "xid 48"), 0, "an Xid");
    n = read(fd, buf, sizeof(buf) - 1);
    buf[n < 0 ? 0 : n] = '\0';
    is_int(regcomp(&regex, dcgm, REG_EXTENDED | REG_NEWLINE), 0, "DCGM's regular expression");
    if (ok(regexec(&regex, buf, 4, match, 0) == 0, "matches a line of the kernel's log")) {
        is_mem(buf + match[3].rm_so, "48,", 3, "with the Xid");
        is_mem(buf + match[2].rm_so, "0000:06:00", 10, "and the GPU");
    } else {
        diag("%s", buf);
    }
    regfree(&regex);
    close(fd);
}

int main(void)
{
    mounted_up("--gpus", "2", "--speed", "1000");
    is_int(reader_open(&reader, mounted.root), 0, "the reader opens the mount");
    test_chunks();
    is_int(file_put("control/clock", "speed 1"), 0, "from here in real time");
    test_snapshot();
    test_read_your_writes();
    test_refusals();
    test_attempts();
    test_opens();
    test_failing();
    test_blocking();
    test_poll();
    test_two_readers();
    test_kmsg();
    test_huge();
    reader_close(reader);
    is_str(file_text("workloads/job/state"), "running", "the workload ran through all of this");
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
