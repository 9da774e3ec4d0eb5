/*
 * Takeover: the worker is killed again and again, and nobody who uses the mount notices.
 *
 * Children read, write, wait and hold on to things all the time. Each says in the end what went wrong
 * for it; what they did must have happened exactly once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <poll.h>
#include <sys/mman.h>

#include "fusefs/reader.h"
#include "tests/mounted.h"

enum { KILLS = 20, WRITERS = 3, WORKLOADS = 1000 };

/* What the children have in common: memory of all of them. */
static struct board {
    volatile bool stop;
    struct tally {
        volatile int64_t done, wrong; /* times */
        volatile int64_t longest_ms;  /* of one time */
        char first[120];              /* what went wrong first */
    } tallies[32];
} * board;

static void wrong(struct tally *t, const char *format, ...) TAP_PRINTF(2, 3);
static void wrong(struct tally *t, const char *format, ...)
{
    va_list args;

    if (t->wrong++)
        return;
    va_start(args, format);
    vsnprintf(t->first, sizeof(t->first), format, args);
    va_end(args);
}

/* --- those who use it ------------------------------------------------------------------------ */

/* Does its thing once. */
typedef void action(struct tally *t);

static void read_files(struct tally *t)
{
    static int fd = -1;
    char buf[64];
    ssize_t n;

    if (fd < 0)
        fd = file_open("gpus/0/metrics/memory_total_bytes", O_RDONLY);
    n = pread(fd, buf, sizeof(buf), 0);
    if (n != 12 || memcmp(buf, "42949672960\n", 12))
        wrong(t, "a file that was open: %zd bytes, %s", n, strerror(errno));
    n = file_read("gpus/1/identity/name", buf, sizeof(buf));
    if (n != 22)
        wrong(t, "a file: %zd", n);
}

static void read_snapshot(struct tally *t)
{
    static struct reader *reader;
    static uint64_t before;
    struct reader_node node;
    struct reader_gpu gpu;
    int r = reader ? 0 : reader_open(&reader, mounted.root);

    if (r == 0)
        r = reader_gpu(reader, 1, &gpu);
    if (r == 0)
        r = reader_node(reader, &node);
    if (r < 0) {
        wrong(t, "snapshot: %s", strerror(-r));
        return;
    }
    if (gpu.generation < before)
        wrong(t, "generation %" PRIu64 " after %" PRIu64, gpu.generation, before);
    before = gpu.generation;
}

/* Entries of a directory, or -errno. */
static int count_entries(const char *path)
{
    DIR *dir = opendir(file_path("%s", path));
    int n = 0;

    if (!dir)
        return -errno;
    errno = 0;
    while (readdir(dir))
        n++;
    n = errno ? -errno : n;
    closedir(dir);
    return n;
}

static void list_directory(struct tally *t)
{
    int n = count_entries("gpus/0/metrics");

    if (n != METRIC_COUNT + 2)
        wrong(t, "%d entries", n);
}

static void write_fault(struct tally *t)
{
    int r = file_put("gpus/0/control/fault", "ecc sbe 1");

    if (r < 0)
        wrong(t, "a fault: %s", strerror(-r));
}

static void write_and_read_back(struct tally *t)
{
    static int value;
    char text[16];

    value = (value + 1) % 100;
    snprintf(text, sizeof(text), "%d", value);
    if (file_put("gpus/1/control/utilization_gpu_percent", text) < 0)
        wrong(t, "a write: %s", strerror(errno));
    if (file_number("gpus/1/metrics/utilization_gpu_percent") != value)
        wrong(t, "%d was written", value);
}

static void make_and_remove(struct tally *t)
{
    static int number;
    char path[256];

    snprintf(path, sizeof(path), "%s", file_path("workloads/w%d", number++));
    if (mkdir(path, 0755) < 0)
        wrong(t, "mkdir %d: %s", number, strerror(errno));
    if (rmdir(path) < 0)
        wrong(t, "rmdir %d: %s", number, strerror(errno));
    if (rmdir(path) == 0 || errno != ENOENT)
        wrong(t, "rmdir of what is gone: %s", strerror(errno));
}

static void open_device(struct tally *t)
{
    int fd = file_open("dev/nvidia1", O_RDWR);

    if (fd < 0)
        wrong(t, "a device: %s", strerror(-fd));
    close(fd);
}

static void attach_and_let_go(struct tally *t)
{
    static int number;
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "workloads/a%d/attach", number++);
    if (mkdir(file_path("%.*s", (int)(strlen(name) - 7), name), 0755) < 0)
        wrong(t, "mkdir: %s", strerror(errno));
    fd = file_open(name, O_WRONLY);
    if (fd < 0)
        wrong(t, "attach: %s", strerror(-fd));
    close(fd);
    /* close(2) does not wait for the release. */
    if (!WAIT_UNTIL(access(file_path("%s", name), F_OK) < 0))
        wrong(t, "%s is still there", name);
}

/* Made and held in one step: whether or not the answer came, there is one who holds it. */
static void make_held_and_let_go(struct tally *t)
{
    static int number;
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "workloads/h%d", number++);
    fd = open(file_path("workloads/.%s", name + strlen("workloads/")), O_CREAT | O_EXCL | O_WRONLY,
              0644);
    if (fd < 0)
        wrong(t, "%s is not made: %s", name, strerror(errno));
    if (access(file_path("%s", name), F_OK) < 0)
        wrong(t, "%s is not there: %s", name, strerror(errno));
    close(fd);
    if (!WAIT_UNTIL(access(file_path("%s", name), F_OK) < 0))
        wrong(t, "%s is still there", name);
}

static void follow_events(struct tally *t)
{
    static char buf[65536];
    static size_t used;
    static int64_t before = -1;
    static int fd = -1;
    char *line = buf, *end;
    ssize_t n;

    if (fd < 0)
        fd = file_open("events", O_RDONLY);
    n = read(fd, buf + used, sizeof(buf) - used - 1);
    if (n < 0 && errno == EPIPE) { /* the log was turned: what is kept begins anew */
        lseek(fd, 0, SEEK_SET);
        used = 0;
        return;
    }
    if (n <= 0) {
        wrong(t, "read: %zd, %s", n, strerror(errno));
        return;
    }
    buf[used + (size_t)n] = '\0';
    for (; (end = strchr(line, '\n')); line = end + 1) {
        int64_t number = strtoll(line, NULL, 10);

        if (before >= 0 && number > before + 1)
            wrong(t, "event %" PRId64 " after %" PRId64, number, before);
        if (number > before)
            before = number;
    }
    used = strlen(line);
    memmove(buf, line, used + 1);
}

static void poll_events(struct tally *t)
{
    static int fd = -1;
    static char buf[65536];
    struct pollfd p = { .events = POLLIN };
    ssize_t n;

    if (fd < 0)
        fd = file_open("kmsg", O_RDONLY | O_NONBLOCK);
    p.fd = fd;
    if (poll(&p, 1, WAIT_MS) != 1)
        wrong(t, "poll was not woken");
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        ;
    if (errno == EPIPE)
        lseek(fd, 0, SEEK_SET);
    else if (errno != EAGAIN)
        wrong(t, "read: %s", strerror(errno));
}

static void raise_xid(struct tally *t)
{
    int r = file_put("gpus/1/control/fault", "xid 31");

    if (r < 0)
        wrong(t, "an Xid: %s", strerror(-r));
    pause_ms(5);
}

static const struct {
    const char *name;
    action *act;
} users[] = {
    { "readers of files", read_files },
    { "a reader of the snapshot", read_snapshot },
    { "one who lists directories", list_directory },
    { "one who reads what he wrote", write_and_read_back },
    { "one who makes and removes workloads", make_and_remove },
    { "one who opens devices", open_device },
    { "one who attaches and lets go", attach_and_let_go },
    { "one who makes what he holds", make_held_and_let_go },
    { "one who follows the events", follow_events },
    { "one who polls the kernel log", poll_events },
    { "one who raises Xids", raise_xid },
    { "a writer of faults", write_fault }, /* the last WRITERS are these */
    { "another writer of faults", write_fault },
    { "a third writer of faults", write_fault },
};

enum { USERS = sizeof(users) / sizeof(users[0]) };

static void use(int i)
{
    struct tally *t = &board->tallies[i];

    while (!board->stop) {
        int64_t before = now_ms(), took;

        users[i].act(t);
        took = now_ms() - before;
        t->done++;
        if (took > t->longest_ms)
            t->longest_ms = took;
    }
    _exit(0);
}

/* --- the killer ------------------------------------------------------------------------------ */

static void status_line(pid_t pid, const char *key, char *value, size_t size)
{
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    snprintf(value, size, "?");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
            snprintf(value, size, "%s",
                     line + strlen(key) + 1 + strspn(line + strlen(key) + 1, " \t"));
    value[strcspn(value, "\n")] = '\0';
    if (f)
        fclose(f);
}

static void test_sandbox(void)
{
    char value[256];
    pid_t worker;

    file_text("control/clock"); /* it serves: then it has given up everything */
    worker = worker_now();
    status_line(worker, "Uid", value, sizeof(value));
    is_str(value, "65534\t65534\t65534\t65534", "the worker is nobody");
    status_line(worker, "Gid", value, sizeof(value));
    is_str(value, "65534\t65534\t65534\t65534", "and in no group of others");
    status_line(worker, "Groups", value, sizeof(value));
    is_str(value, "", "at all");
    status_line(worker, "CapEff", value, sizeof(value));
    is_str(value, "0000000000000000", "without capabilities");
    status_line(worker, "NoNewPrivs", value, sizeof(value));
    is_str(value, "1", "and without the way to get any");
    status_line(worker, "Seccomp", value, sizeof(value));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    is_str(value, "0", "no filter: the calls of a sanitizer are not ours to list");
#else
    is_str(value, "2", "its system calls are filtered");
#endif
}

/* --- one thing at a time --------------------------------------------------------------------- */

static void test_handles(void)
{
    char before[16384], after[16384];
    int sample = file_open("gpus/0/sample", O_RDONLY);
    int state = file_open("workloads/held/state", O_RDONLY);
    ssize_t n = pread(sample, before, sizeof(before) - 1, 0);
    struct pollfd p = { .fd = state, .events = POLLIN };
    DIR *dir = opendir(file_path("gpus/0/metrics"));
    int names = 1;

    ok(n > 1000, "a sample is read");
    ok(pread(state, after, sizeof(after), 0) > 0, "and the state of a workload");
    ok(dir && readdir(dir), "and a name of a directory");
    ok(kill_worker(), "the worker is killed");
    before[n < 0 ? 0 : n] = '\0';
    ok(WAIT_UNTIL(text_number(file_text("control/clock"), "generation") >
                  text_number(before, "generation")),
       "and time goes on");
    is_int(pread(sample, after, sizeof(after), 1), n - 1, "the rest of the sample is as long");
    is_mem(after, before + 1, (size_t)n - 1, "and of the same generation");
    ok(WAIT_UNTIL(pread(sample, after, sizeof(after), 0) > 1000 &&
                  text_number(after, "generation") > text_number(before, "generation")),
       "from its beginning on it is a younger one");
    while (dir && readdir(dir))
        names++;
    is_int(names, METRIC_COUNT + 2, "the directory goes on, with every name");
    closedir(dir);
    is_int(file_put("workloads/held/activity", "50:0:1h"), 0, "the workload is started anew");
    is_int(poll(&p, 1, WAIT_MS), 1, "and whoever polled its state is woken");
    close(sample);
    close(state);
}

/* Whoever was refused may still ask why. */
static void test_last_error(void)
{
    static const struct {
        const char *refuses, *says;
    } files[] = {
        { "gpus/0/control/fault", "gpus/0/control/last_error" },
        { "gpus/1/control/fault", "gpus/1/control/last_error" },
        { "workloads/held/activity", "workloads/held/last_error" },
        { "control/clock", "control/last_error" },
    };
    enum { FILES = sizeof(files) / sizeof(files[0]) };
    char before[FILES][1000];

    for (int i = 0; i < FILES; i++) {
        ok(file_put(files[i].refuses, "nonsense") < 0, "%s refuses nonsense", files[i].refuses);
        snprintf(before[i], sizeof(before[i]), "%s", file_text(files[i].says));
        ok(strstr(before[i], "nonsense"), "and %s says so", files[i].says);
    }
    ok(kill_worker(), "the worker is killed");
    for (int i = 0; i < FILES; i++)
        is_str(file_text(files[i].says), before[i], "%s is kept", files[i].says);
    ok(file_put(files[0].refuses, "rubbish") < 0, "the next worker refuses something else");
    ok(strstr(file_text(files[0].says), "rubbish"), "and says so");
}

/* Opens the events and reads all that are there. */
static int events_at_end(void)
{
    int fd = file_open("events", O_RDONLY | O_NONBLOCK);
    char buf[65536];

    while (read(fd, buf, sizeof(buf)) > 0)
        ;
    fcntl(fd, F_SETFL, 0);
    return fd;
}

/* A read that waits, and a poll that waits, across the death. */
static void test_waiting(void)
{
    int to_read = events_at_end(), to_poll = events_at_end(), status;
    pid_t reader, poller;

    poller = child_start();
    if (poller == 0) {
        struct pollfd p = { .fd = to_poll, .events = POLLIN };

        _exit(poll(&p, 1, WAIT_MS) == 1 && p.revents & POLLIN ? 0 : 1);
    }
    reader = child_start();
    if (reader == 0) {
        char buf[4096];
        ssize_t n = read(to_read, buf, sizeof(buf) - 1);

        buf[n < 0 ? 0 : n] = '\0';
        _exit(n > 0 && strstr(buf, "ecc_sbe") ? 0 : 1);
    }
    pause_ms(50); /* so that they are in the middle of it; if not, the test passes all the same */
    for (int i = 0; i < 2; i++)
        ok(kill_worker(), "the worker is killed while they wait");
    is_int(waitpid(reader, &status, WNOHANG), 0, "a read that waits goes on waiting");
    is_int(file_put("gpus/0/control/fault", "ecc sbe 1"), 0, "something happens");
    is_int(child_end(reader), 0, "the read returns it");
    is_int(child_end(poller), 0, "the poll, too");
    close(to_read);
    close(to_poll);
}

static int64_t simulated_ms(void)
{
    return text_number(file_text("gpus/0/sample"), "time_ns") / 1000000;
}

/* By how much the node's clock is before the real one, both since they were what is given here. */
static int64_t clock_gain_ms(int64_t real_ms, int64_t clock_ms)
{
    return (simulated_ms() - clock_ms) - (now_ms() - real_ms);
}

static void test_under_load(void)
{
    int64_t real_ms, clock_ms, gain_ms = 0, faults = 0, counted;
    pid_t pids[USERS];
    int killed = 0, made = 0, left = 0, held;
    unsigned seed = 1;

    /* The more there are the longer it takes to make another, and the likelier it is met in the middle. */
    for (int i = 0; i < WORKLOADS; i++)
        made += mkdir(file_path("workloads/many%d", i), 0755) == 0;
    is_int(made, WORKLOADS, "many workloads");
    counted = file_number("gpus/0/metrics/ecc_sbe_volatile_total");
    held = file_open("workloads/held/attach", O_WRONLY);
    is_str(file_text("workloads/held/attach"), "1", "a workload is held");
    real_ms = now_ms();
    clock_ms = simulated_ms();
    for (int i = 0; i < USERS; i++) {
        pids[i] = child_start();
        if (pids[i] == 0)
            use(i);
    }
    ok(WAIT_UNTIL(board->tallies[USERS - 1].done > 5), "all are at work");
    for (int i = 0; i < KILLS; i++) {
        /* Long enough for the next one not to be taken for one that keeps dying. */
        pause_ms(110 + rand_r(&seed) % 30);
        killed += kill_worker();
    }
    is_int(killed, KILLS, "the worker was killed %d times, and there is one again", KILLS);
    /* A busy machine makes it late for a while; what is lost or made twice stays so. */
    WAIT_UNTIL(llabs(gain_ms = clock_gain_ms(real_ms, clock_ms)) <= 1000);
    is_real((double)gain_ms, 0, 1000, "the clock has kept up, in ms");
    board->stop = true;
    for (int i = 0; i < USERS; i++) {
        const struct tally *t = &board->tallies[i];

        /* Those who wait for an event are waiting now. */
        WAIT_UNTIL(file_put("gpus/1/control/fault", "xid 31") < 0 || process_gone(pids[i]));
        is_int(child_end(pids[i]), 0, "%s: at work to the end", users[i].name);
        is_int(t->wrong, 0, "%s: nothing went wrong in %" PRId64 " times", users[i].name, t->done);
        if (t->wrong)
            diag("%s", t->first);
        ok(t->done > 0, "%s: it went on", users[i].name);
        ok(t->longest_ms < WAIT_MS / 3, "%s: the longest time took %" PRId64 " ms", users[i].name,
           t->longest_ms);
        if (i >= USERS - WRITERS)
            faults += t->done;
    }
    is_int(file_number("gpus/0/metrics/ecc_sbe_volatile_total") - counted, faults,
           "every one of %" PRId64 " faults happened exactly once", faults);
    for (int i = 0; i < WORKLOADS; i++)
        left += rmdir(file_path("workloads/many%d", i)) == 0;
    is_int(left, WORKLOADS, "all workloads are still there");
    is_str(file_text("gpus/1/processes"),
           "# pid memory_bytes utilization_percent workload namespace pod container gi ci",
           "no process is left on a GPU whose device was closed");
    is_int(count_entries("workloads"), 1 + 2, "and none of those that were made and removed");
    is_str(file_text("workloads/held/attach"), "1", "the workload is still held");
    close(held);
    ok(WAIT_UNTIL(access(file_path("workloads/held"), F_OK) < 0), "until it is let go");
}

/* Those that keep dying are not restarted at once; the log says so, and the mount lives on. */
static void test_backoff(void)
{
    char log[65536] = "";

    ok(WAIT_UNTIL(kill_worker() && mounted_read_log(log, sizeof(log)) > 0 &&
                  strstr(log, "keeps dying")),
       "a worker that is killed again and again");
    like(log, "error: the worker keeps dying \\([0-9]+ times in a row\\); next try in [0-9]+ ms",
         "the log has a clear message");
    like(log, "warning: the worker was killed by signal 9 \\(Killed\\); starting another",
         "and one for each death");
    is_int(file_number("gpus/0/identity/index"), 0, "the mount serves on");
}

int main(void)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        bail("out of memory");
    mounted_up("--gpus", "2", "--dev", "file");
    is_int(mkdir(file_path("workloads/held"), 0755), 0, "a workload");
    test_sandbox();
    ok(kill_worker(), "the worker is killed");
    is_str(file_text("workloads/held/state"), "running", "and the mount serves on");
    test_sandbox();
    test_handles();
    test_last_error();
    test_waiting();
    test_under_load();
    test_backoff();
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
