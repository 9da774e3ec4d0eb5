/*
 * Sandbox: a worker gives up what it does not need. See sandbox.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "sim/why.h"

enum { NOBODY = 65534 };

/* The calls of a sanitizer's runtime are not ours to list. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FILTERED = false };
#else
enum { FILTERED = true };
#endif

/* In a user namespace that has no such user there is nobody else to become. */
static bool has_nobody(void)
{
    unsigned long first, outside, count;
    FILE *f = fopen("/proc/self/uid_map", "re");
    bool found = !f;

    while (f && !found && fscanf(f, "%lu %lu %lu", &first, &outside, &count) == 3)
        found = first <= NOBODY && NOBODY - first < count;
    if (f)
        fclose(f);
    return found;
}

static int become_nobody(struct why *why)
{
    if (!has_nobody())
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return why_set(why, errno, "cannot give up privileges: %s", strerror(errno));
    return 0;
}

/*
 * Reading and writing descriptors, threads, memory, time, and reading files (the configuration, installed
 * libraries). No network, no other processes, no new programs, no changes of the file system.
 */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(close),
    SCMP_SYS(openat),
    SCMP_SYS(open),
    SCMP_SYS(fstat),
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(lseek),
    SCMP_SYS(getdents64),
    SCMP_SYS(fcntl),
    SCMP_SYS(ftruncate),
    SCMP_SYS(dup),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(clone),
    SCMP_SYS(clone3),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(tgkill),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getuid),
    SCMP_SYS(getgid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getegid),
    SCMP_SYS(prctl),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getrandom),
    SCMP_SYS(pipe2),
    SCMP_SYS(splice),
    SCMP_SYS(vmsplice),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(umount2),
};

static int filter_calls(struct why *why)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = filter ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
        if (r == -EDOM || r == -EOPNOTSUPP)
            r = 0; /* a call that this machine does not have */
    }
    if (r == 0)
        r = seccomp_load(filter);
    seccomp_release(filter);
    if (r == -EINVAL || r == -ENOSYS) {
        log_line(LOG_WARN, "the kernel has no seccomp filters: going on without");
        return 0;
    }
    return r < 0 ? why_set(why, -r, "cannot filter system calls: %s", strerror(-r)) : 0;
}

int sandbox_enter(bool drop_privileges, struct why *why)
{
    int r = drop_privileges ? become_nobody(why) : 0;

    if (r < 0)
        return r;
    /* Changing identity clears this; a worker must not outlive its supervisor. */
    prctl(PR_SET_PDEATHSIG, 15);
    prctl(PR_SET_DUMPABLE, 1);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return why_set(why, errno, "cannot forbid new privileges: %s", strerror(errno));
    return FILTERED ? filter_calls(why) : 0;
}
