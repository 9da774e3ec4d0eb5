/*
 * Private: a mount of a command's own. See private.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/reader.h"
#include "fusefs/realtime.h"
#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"

enum { READY_SECONDS = 60, READY_PAUSE_NS = 500000 };

static int write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return -errno;
    fputs(text, f);
    return fclose(f) == 0 ? 0 : -errno;
}

/* The child: this very program, serving in the foreground. Does not return. */
static void serve(const char *config, const char *root, const char *schemas, pid_t parent)
{
    static const char *const meddlers[] = { "NUM_FAKE_GPUS", "METRIC_PROFILE",
                                            "GPU_PROFILES",  "METRIC_UPDATE_INTERVAL",
                                            "NODE_NAME",     "NOTIFY_SOCKET" };
    const char *argv[] = { "fakegpufs", "mount", "--foreground", "--log-level", "error", "--config",
                           config,      root,    NULL,           NULL,          NULL };

    if (schemas) {
        argv[8] = "--schemas";
        argv[9] = schemas;
    }
    /* The node is what the configuration says, wherever this runs. */
    for (size_t i = 0; i < sizeof(meddlers) / sizeof(meddlers[0]); i++)
        unsetenv(meddlers[i]);
    /* A group of its own: a Ctrl-C at the terminal is for the command, which then ends it. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

/* Until it can be read. A daemon that ends instead has said why on standard error. */
static int wait_until_ready(struct private_mount *m, struct why *why)
{
    struct reader *reader;
    int64_t end = real_ns(CLOCK_MONOTONIC) + READY_SECONDS * NS_PER_S;

    do {
        if (waitpid(m->daemon, NULL, WNOHANG) == m->daemon) {
            m->daemon = 0;
            return why_set(why, EIO, "a private mount could not be made");
        }
        if (reader_open(&reader, m->root) == 0) {
            reader_close(reader);
            return 0;
        }
        nanosleep(&(struct timespec){ .tv_nsec = READY_PAUSE_NS }, NULL);
    } while (real_ns(CLOCK_MONOTONIC) < end);
    return why_set(why, ETIMEDOUT, "a private mount did not come up in %d s", READY_SECONDS);
}

static int make(struct private_mount *m, const char *yaml, const char *schemas, struct why *why)
{
    const char *parent_dir = getenv("TMPDIR");
    struct text path = TEXT_INIT;
    pid_t self = getpid();
    int r;

    text_addf(&path, "%s/fakegpufs-XXXXXX", parent_dir && *parent_dir ? parent_dir : "/tmp");
    m->dir = path.data;
    if (!m->dir || !mkdtemp(m->dir)) {
        r = why_set(why, errno, "cannot make a directory %s: %s", text_str(&path), strerror(errno));
        free(m->dir);
        m->dir = NULL;
        return r;
    }
    path = (struct text)TEXT_INIT;
    if (asprintf(&m->root, "%s/mount", m->dir) < 0)
        m->root = NULL;
    text_addf(&path, "%s/config.yaml", m->dir);
    r = !m->root ? -ENOMEM : mkdir(m->root, 0755) < 0 ? -errno : write_file(text_str(&path), yaml);
    if (r == 0 && (m->daemon = fork()) < 0) {
        r = -errno;
        m->daemon = 0;
    }
    if (r < 0)
        why_set(why, -r, "cannot make a private mount in %s: %s", m->dir, strerror(-r));
    else if (m->daemon == 0)
        serve(text_str(&path), m->root, schemas, self);
    text_release(&path);
    return r < 0 ? r : wait_until_ready(m, why);
}

int private_mount_make(struct private_mount *m, const char *yaml, const char *schemas,
                       struct why *why)
{
    int r;

    *m = (struct private_mount){ 0 };
    r = make(m, yaml, schemas, why);
    if (r < 0)
        private_mount_end(m);
    return r;
}

void private_mount_end(struct private_mount *m)
{
    struct text path = TEXT_INIT;

    if (m->daemon > 0) {
        kill(m->daemon, SIGTERM);
        while (waitpid(m->daemon, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (m->dir) {
        text_addf(&path, "%s/config.yaml", m->dir);
        unlink(text_str(&path));
        text_release(&path);
        if (m->root)
            rmdir(m->root);
        rmdir(m->dir);
    }
    free(m->root);
    free(m->dir);
    *m = (struct private_mount){ 0 };
}
