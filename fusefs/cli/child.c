/*
 * Child: a program that a command runs for its caller. See child.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

int child_catch_signals(void)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void child_begin(void)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn void child_become(char **argv)
{
    execvp(argv[0], argv);
    fprintf(stderr, "fakegpufs: cannot run '%s': %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN);
}

/* What the terminal sends the child gets by itself; what was sent to this process alone is passed on. */
int child_wait(pid_t child, int signals)
{
    struct signalfd_siginfo info;
    int status;

    while (waitpid(child, &status, WNOHANG) != child)
        if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD &&
            info.ssi_code != SI_KERNEL)
            kill(child, (int)info.ssi_signo);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}
