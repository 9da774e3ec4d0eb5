/*
 * Mounted: a mount of its own for a test program, and its files in one line each.
 *
 *     mounted_up("--gpus", "2");
 *     is_int(file_put("gpus/0/control/utilization_gpu_percent", "80"), 0, "a value is accepted");
 *
 * One mount at a time. It goes when the program ends, however it ends, and so do the children that
 * child_start made. Whatever could wait for ever waits WAIT_MS, and the program as a whole for
 * TEST_SECONDS at most.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_MOUNTED_H
#define TESTS_MOUNTED_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/realtime.h"
#include "tests/tap.h"

/* Whoever runs the tests kills one after ten minutes: a little before, it ends by itself and tidies up. */
enum { WAIT_MS = 30000, MOUNTED_SECONDS = 570, CHILDREN_MAX = 64 };

static struct mounted {
    pid_t owner;   /* children have it all, too, but must not tidy it away */
    char dir[64];  /* "": none */
    char root[80]; /* the mount point */
    char log[80];
    pid_t supervisor; /* 0: not mounted */
    pid_t children[CHILDREN_MAX];
} mounted;

/* --- time ------------------------------------------------------------------------------------ */

static inline int64_t now_ms(void)
{
    return real_ns(CLOCK_MONOTONIC) / 1000000;
}

static inline void pause_ms(int ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&ts, NULL);
}

/* Until the condition holds, looking again and again; gives up in the end. Says whether it holds. */
#define WAIT_UNTIL(condition)                                     \
    ({                                                            \
        int64_t wait_end = now_ms() + WAIT_MS;                    \
        bool wait_held;                                           \
        while (!(wait_held = (condition)) && now_ms() < wait_end) \
            pause_ms(2);                                          \
        wait_held;                                                \
    })

/* --- files ----------------------------------------------------------------------------------- */

/* A path below the mount. Good until the eighth call from now. */
static inline const char *file_path(const char *format, ...) TAP_PRINTF(1, 2);
static inline const char *file_path(const char *format, ...)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    int n = snprintf(path, sizeof(paths[0]), "%s/", mounted.root);
    va_list args;

    va_start(args, format);
    vsnprintf(path + n, sizeof(paths[0]) - (size_t)n, format, args);
    va_end(args);
    return path;
}

static inline int file_open(const char *path, int flags)
{
    int fd = open(file_path("%s", path), flags | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* One write(2) of `size` bytes: 0 or -errno. */
static inline int file_write(const char *path, const void *bytes, size_t size)
{
    int fd = file_open(path, O_WRONLY);
    ssize_t n;
    int r;

    if (fd < 0)
        return fd;
    n = write(fd, bytes, size);
    r = n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;
    close(fd);
    return r;
}

static inline int file_put(const char *path, const char *text)
{
    return file_write(path, text, strlen(text));
}

/* Reads up to the end: the number of bytes or -errno. The text is terminated. */
static inline int file_read(const char *path, char *buf, size_t size)
{
    int fd = file_open(path, O_RDONLY);
    size_t used = 0;
    ssize_t n = 0;
    int r;

    if (fd < 0)
        return fd;
    while (used + 1 < size && (n = read(fd, buf + used, size - used - 1)) > 0)
        used += (size_t)n;
    r = n < 0 ? -errno : (int)used;
    buf[used] = '\0';
    close(fd);
    return r;
}

/* Its text without the last newline, or "errno NUMBER". Good until the fourth call from now. */
static inline const char *file_text(const char *path)
{
    static char texts[4][16384];
    static unsigned next;
    char *text = texts[next++ % 4];
    int n = file_read(path, text, sizeof(texts[0]));

    if (n < 0)
        snprintf(text, sizeof(texts[0]), "errno %d", -n);
    else if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}

/* The number in it; INT64_MIN when there is none. */
static inline int64_t file_number(const char *path)
{
    char *end;
    const char *text = file_text(path);
    int64_t value = strtoll(text, &end, 10);

    return end == text ? INT64_MIN : value;
}

/* The number behind `name ` at the beginning of a line; INT64_MIN when there is none. */
static inline int64_t text_number(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
        if (!strncmp(text, name, n) && text[n] == ' ')
            return strtoll(text + n, NULL, 10);
    return INT64_MIN;
}

/* --- processes ------------------------------------------------------------------------------- */

/* As fork, and the child dies with the test. It must leave by _exit. */
static inline pid_t child_start(void)
{
    pid_t pid = fork();

    if (pid < 0)
        bail("fork: %s", strerror(errno));
    for (int i = 0; pid > 0 && i < CHILDREN_MAX; i++)
        if (!mounted.children[i]) {
            mounted.children[i] = pid;
            break;
        }
    return pid;
}

/* Waits for it: its exit code, or 128 and the signal it died of; -1 and a kill when it does not end. */
static inline int child_end(pid_t pid)
{
    int status = 0;
    bool ended = WAIT_UNTIL(waitpid(pid, &status, WNOHANG) == pid);

    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (mounted.children[i] == pid)
            mounted.children[i] = 0;
    return !ended ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What the function returns when somebody else calls it: 0 or -errno. */
static inline int as_user(uid_t uid, int (*call)(const char *path), const char *path)
{
    pid_t pid = child_start();

    if (pid == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
            _exit(255);
        _exit(-call(path));
    }
    return -child_end(pid);
}

static inline pid_t first_child(pid_t parent)
{
    char path[64], buf[64] = "";
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, buf, sizeof(buf) - 1) < 0)
            buf[0] = '\0';
        close(fd);
    }
    return (pid_t)atoi(buf);
}

/* The process that serves the mount now; 0 when there is none at the moment. */
static inline pid_t worker_now(void)
{
    return first_child(mounted.supervisor);
}

/* Kills that process; whether another one came. */
static inline bool kill_worker(void)
{
    pid_t before = worker_now(), now = 0;

    if (before > 0)
        kill(before, SIGKILL);
    return WAIT_UNTIL((now = worker_now()) > 0 && now != before);
}

/* Its state as /proc shows it, a letter; X when there is no such process. */
static inline char process_state(pid_t pid)
{
    char path[64], buf[512] = "";
    const char *state;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 'X';
    if (read(fd, buf, sizeof(buf) - 1) < 0)
        buf[0] = '\0';
    close(fd);
    state = strrchr(buf, ')');
    return state ? state[2] : 'X';
}

/* Whether it has ended; one that nobody has waited for yet has, too. */
static inline bool process_gone(pid_t pid)
{
    return strchr("ZX", process_state(pid));
}

/* --- mounting -------------------------------------------------------------------------------- */

static int mounted_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void mounted_tidy(void)
{
    if (getpid() != mounted.owner || !*mounted.dir)
        return;
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (mounted.children[i] > 0)
            kill(mounted.children[i], SIGKILL);
    if (mounted.supervisor > 0)
        kill(mounted.supervisor, SIGKILL);
    while (umount2(mounted.root, MNT_DETACH) == 0)
        ;
    nftw(mounted.dir, mounted_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    *mounted.dir = '\0';
}

static void mounted_signal(int number)
{
    mounted_tidy();
    _exit(128 + number);
}

static inline int mounted_run(char *const argv[])
{
    const char *build = getenv("BUILD");
    char program[4096];
    pid_t pid;

    snprintf(program, sizeof(program), "%s/fakegpufs", build ? build : "build");
    pid = child_start();
    if (pid == 0) {
        execv(program, argv);
        _exit(127);
    }
    return child_end(pid);
}

static inline void mounted_prepare(void)
{
    if (*mounted.dir)
        return;
    if (access("/dev/fuse", F_OK) < 0)
        skip_all("there is no /dev/fuse");
    if (geteuid() != 0)
        skip_all("only root can mount in these tests");
    snprintf(mounted.dir, sizeof(mounted.dir), "/tmp/fakegpufs-XXXXXX");
    if (!mkdtemp(mounted.dir) || chmod(mounted.dir, 0755) < 0)
        bail("no directory: %s", strerror(errno));
    snprintf(mounted.root, sizeof(mounted.root), "%s/mnt", mounted.dir);
    snprintf(mounted.log, sizeof(mounted.log), "%s/log", mounted.dir);
    mounted.owner = getpid();
    atexit(mounted_tidy);
    signal(SIGTERM, mounted_signal);
    signal(SIGINT, mounted_signal);
    signal(SIGALRM, mounted_signal);
    signal(SIGPIPE, SIG_IGN);
    alarm(MOUNTED_SECONDS);
}

static inline int mounted_read_log(char *buf, size_t size)
{
    int fd = open(mounted.log, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    buf[n < 0 ? 0 : n] = '\0';
    if (fd >= 0)
        close(fd);
    return (int)n;
}

/* Mounts with these options; the program is left out where nothing can be mounted. */
#define mounted_up(...) mounted_up_with((const char *const[]){ __VA_ARGS__, NULL })
static inline void mounted_up_with(const char *const *options)
{
    static char pid_file[96];
    char *argv[32] = { (char *)"fakegpufs", (char *)"mount", (char *)"--pid-file", pid_file,
                       (char *)"--log",     mounted.log };
    int n = 6;
    FILE *f;

    mounted_prepare();
    snprintf(pid_file, sizeof(pid_file), "%s/pid", mounted.dir);
    unlink(mounted.log);
    while (*options && n < 30)
        argv[n++] = (char *)*options++;
    argv[n] = mounted.root;
    if (mounted_run(argv) != 0) {
        char log[1024];

        mounted_read_log(log, sizeof(log));
        if (strstr(log, "Operation not permitted"))
            skip_all("nothing can be mounted: %s", log);
        bail("cannot mount: %s", log);
    }
    f = fopen(pid_file, "re");
    if (!f || fscanf(f, "%d", &mounted.supervisor) != 1)
        bail("no pid in %s", pid_file);
    fclose(f);
}

/* Takes the mount away, without a look at what becomes of its daemon; whether that worked. */
static inline bool mounted_unmount(void)
{
    char *argv[] = { (char *)"fakegpufs", (char *)"umount", mounted.root, NULL };

    return mounted_run(argv) == 0;
}

/* Unmounts; whether the daemon ended, and no worker before that but those that were killed. */
static inline bool mounted_down(void)
{
    /* A test beside this one may have a mount namespace with a copy of the mount in it: until that is gone,
     * too, the daemon serves. */
    bool ended = mounted_unmount() && (WAIT_UNTIL(process_gone(mounted.supervisor)) ||
                                       WAIT_UNTIL(process_gone(mounted.supervisor)) ||
                                       WAIT_UNTIL(process_gone(mounted.supervisor)));
    char *log = NULL, line[1024];
    size_t size;
    int lines = 0; /* to show from here on */
    FILE *f, *shown = open_memstream(&log, &size);

    if (ended)
        mounted.supervisor = 0;
    f = fopen(mounted.log, "re");
    while (f && shown && fgets(line, sizeof(line), f)) {
        if (!strstr(line, "was killed by signal 9 ") && !strstr(line, "keeps dying") &&
            (strstr(line, "the worker") || strstr(line, "ERROR: ") || strstr(line, "WARNING: ") ||
             strstr(line, "runtime error")))
            lines = 60;
        if (lines-- > 0)
            fputs(line, shown);
    }
    if (f)
        fclose(f);
    if (shown)
        fclose(shown);
    if (log && *log) {
        diag("%s", log);
        ended = false;
    }
    free(log);
    return ended;
}

#endif
