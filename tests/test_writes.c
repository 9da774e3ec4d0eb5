/*
 * Files of a real mount, written: what is a command and what is refused, what else may be tried of files and
 * directories, by root and by somebody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <utime.h>

#include "tests/mounted.h"

enum { SOMEBODY = 12345 };

#define UTILIZATION "gpus/0/control/utilization_gpu_percent"
#define FAULT "gpus/0/control/fault"

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

/* --- attempts -------------------------------------------------------------------------------- */

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

int main(void)
{
    mounted_up("--gpus", "2");
    test_refusals();
    test_attempts();
    test_opens();
    test_huge();
    is_str(file_text("workloads/job/state"), "running", "the workload ran through all of this");
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
