/*
 * Streams of a real mount, events and kmsg: who waits for them, who is woken, and what they say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <regex.h>
#include <sys/epoll.h>

#include "tests/mounted.h"

#define FAULT "gpus/0/control/fault"

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
    return strchr("SD", process_state(pid));
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
    mounted_up("--gpus", "2");
    is_int(mkdir(file_path("workloads/job"), 0755), 0, "a workload");
    test_blocking();
    test_poll();
    test_two_readers();
    test_kmsg();
    is_str(file_text("workloads/job/state"), "running", "the workload ran through all of this");
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
