/*
 * fakegpufs mount and fakegpufs umount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fusefs/cli/command.h"
#include "fusefs/cli/node_options.h"
#include "fusefs/log.h"
#include "fusefs/supervisor.h"
#include "sim/library.h"

struct options {
    struct node_options which;
    const char *schemas, *speed, *pid_file, *log, *log_level, *dev;
    bool foreground;
};

/* --- configuration --------------------------------------------------------------------------- */

static int choose_dev_mode(const struct options *o, const struct config *cfg)
{
    int mode = (int)cfg->access.dev;

    for (int i = DEV_CHAR; o->dev && dev_mode_names[i]; i++)
        if (!strcmp(dev_mode_names[i], o->dev))
            mode = i;

    return mode != DEV_AUTO ? mode : geteuid() == 0 ? DEV_CHAR : DEV_FILE;
}

/* --- where the mock libraries are ------------------------------------------------------------ */

/* Beside the program: build/, or PREFIX/bin with PREFIX/lib/fakegpufs. */
static char *program_dir(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    if (n < 0)
        return NULL;
    path[n] = '\0';
    slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path)) : NULL;
}

static char *library_dir(const char *programs)
{
    struct text path = TEXT_INIT;
    char *dir;

    if (!programs)
        return NULL;
    text_addf(&path, "%s/../lib/fakegpufs", programs);
    dir = realpath(text_str(&path), NULL);
    text_release(&path);
    return dir ? dir : strdup(programs);
}

static bool is_below(const char *path, const char *directory)
{
    size_t n = strlen(directory);

    if (n == 1)
        return true; /* of the root everything is */
    return !strncmp(path, directory, n) && (path[n] == '/' || !path[n]);
}

/* Whoever hides them has nothing to unmount with. */
static int check_not_covered(const char *mountpoint, const char *programs, const char *libraries,
                             struct why *why)
{
    const char *const own[] = { programs, libraries };
    char *real = realpath(mountpoint, NULL);
    int r = 0;

    for (int i = 0; real && r == 0 && i < 2; i++)
        if (own[i] && is_below(own[i], real))
            r = why_set(why, EBUSY,
                        "cannot mount on %s: the program's own files in %s would be hidden",
                        mountpoint, own[i]);
    free(real);
    return r;
}

/* --- background ------------------------------------------------------------------------------ */

static int write_pid_file(const char *path, struct why *why)
{
    FILE *f = path ? fopen(path, "we") : NULL;

    if (!path)
        return 0;
    if (!f)
        return why_set(why, errno, "cannot write %s: %s", path, strerror(errno));
    fprintf(f, "%d\n", (int)getpid());
    return fclose(f) == 0 ? 0 : why_set(why, errno, "cannot write %s: %s", path, strerror(errno));
}

static int redirect_log(const char *path, bool foreground, struct why *why)
{
    int fd = -1;

    if (path)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (path && fd < 0)
        return why_set(why, errno, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
    if (!foreground) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    return 0;
}

/* Passes on what the daemon says until it is ready: the exit code. Nothing of the caller's stays open in it. */
static int wait_until_ready(int ready, int messages)
{
    struct pollfd p[] = { { .fd = messages, .events = POLLIN }, { .fd = ready, .events = POLLIN } };
    char buf[1024];
    ssize_t n;

    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents) {
            n = read(messages, buf, sizeof(buf));
            if (n <= 0 || write(STDERR_FILENO, buf, (size_t)n) < 0)
                p[0].fd = -1;
        } else if (p[1].revents) {
            /* End of file without a byte: it died, and has said why. */
            return read(ready, buf, 1) == 1 ? 0 : 1;
        }
    }
}

/* Returns in the child with a descriptor to say that it is ready; the parent waits for that and exits. */
static int go_background(int *ready_fd)
{
    int ready[2], messages[2];
    pid_t child;

    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(messages, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child < 0)
        return -errno;
    if (child > 0) {
        close(ready[1]);
        close(messages[1]);
        _exit(wait_until_ready(ready[0], messages[0]));
    }
    close(ready[0]);
    close(messages[0]);
    setsid();
    signal(SIGPIPE, SIG_IGN); /* later nobody listens: that is what --log is for */
    dup2(messages[1], STDERR_FILENO);
    close(messages[1]);
    *ready_fd = ready[1];
    return 0;
}

static int serve(const struct options *o, const char *mountpoint, const struct config *cfg,
                 const struct config_options *how, struct why *why)
{
    char *programs = program_dir(), *libraries = library_dir(programs), *config_path = NULL;
    struct supervisor_options s = {
        .mountpoint = mountpoint,
        .config = cfg,
        .read_options = how,
        .speed = o->speed,
        .dev_mode = choose_dev_mode(o, cfg),
        .binary_dir = programs,
        .library_dir = libraries,
        .ready_fd = -1,
    };
    int r;

    /* The worker looks at it later, from wherever it is then. The name itself may be a link that is swapped. */
    if (o->which.config)
        config_path = *o->which.config == '/' ? strdup(o->which.config) : NULL;
    if (o->which.config && !config_path) {
        char *here = getcwd(NULL, 0);

        if (asprintf(&config_path, "%s/%s", here ? here : "", o->which.config) < 0)
            config_path = NULL;
        free(here);
    }
    s.config_path = config_path;
    r = check_not_covered(mountpoint, programs, libraries, why);
    if (r == 0 && !o->foreground)
        r = go_background(&s.ready_fd);
    if (r == 0)
        r = redirect_log(o->log, o->foreground, why);
    if (r == 0)
        r = write_pid_file(o->pid_file, why);
    if (r == 0) {
        r = supervisor_run(&s);
        if (o->pid_file)
            unlink(o->pid_file);
    }
    free(config_path);
    free(libraries);
    free(programs);
    return r;
}

static int run_mount(const struct command_call *call)
{
    const struct options *o = call->options;
    struct config_options how = { .environment = environ, .schemas = o->schemas };
    struct config cfg;
    struct why why = { 0 };
    int r = node_options_check(call, &o->which);

    if (r)
        return r;
    if (o->log_level)
        log_threshold = (enum log_level)log_level_find(o->log_level);
    r = node_options_load(&o->which, &how, &cfg, &why);
    if (r == 0) {
        r = serve(o, call->argc ? call->argv[0] : DEFAULT_MOUNT, &cfg, &how, &why);
        config_release(&cfg);
    }
    if (r < 0)
        log_line(LOG_ERROR, "%s", why_text(&why));
    why_release(&why);
    return r < 0 ? 1 : r;
}

static const char *const levels[] = { "error", "warn", "info", "debug", NULL };

static const struct command_option mount_options[] = {
    NODE_MOUNT_OPTIONS(struct options, which),
    OPTION("foreground", 'f', NULL, OPTION_FLAG, struct options, foreground,
           "stay in the foreground"),
    OPTION("pid-file", 0, "FILE", OPTION_TEXT, struct options, pid_file,
           "write the process id there", .complete = COMPLETE_FILE),
    OPTION("log", 0, "FILE", OPTION_TEXT, struct options, log,
           "write the log there, not to standard error", .complete = COMPLETE_FILE),
    OPTION("log-level", 0, "LEVEL", OPTION_TEXT, struct options, log_level,
           "error, warn, info or debug", .words = levels),
    { 0 },
};

static const struct command_operand mountpoint[] = {
    { .name = "MOUNTPOINT", .count = OPERAND_OPTIONAL, .complete = COMPLETE_DIRECTORY },
    { 0 },
};

const struct command command_mount = {
    .name = "mount",
    .summary = "mount simulated GPUs",
    .text = "Mounts simulated GPUs on MOUNTPOINT (default " DEFAULT_MOUNT
            ") and returns when they can be read.",
    .more =
        "The configuration file is read again on SIGHUP and when it changes; one that is wrong "
        "changes nothing. In the background, standard error is left alone once the mount serves: "
        "what comes later is in the file of --log. SIGTERM and SIGINT unmount.",
    .options = mount_options,
    .operands = mountpoint,
    .options_size = sizeof(struct options),
    .examples = { "fakegpufs mount --gpus 2 --model H100-80GB-HBM3 /tmp/gpus",
                  "fakegpufs mount --foreground -c node.yaml" },
    .run = run_mount,
};

/* --- umount ---------------------------------------------------------------------------------- */

static int run_umount(const struct command_call *call)
{
    struct why why = { 0 };
    int r = supervisor_unmount(call->argc ? call->argv[0] : DEFAULT_MOUNT, &why);

    if (r < 0)
        log_line(LOG_ERROR, "%s", why_text(&why));
    why_release(&why);
    return r < 0 ? 1 : 0;
}

const struct command command_umount = {
    .name = "umount",
    .summary = "unmount them",
    .text = "Unmounts MOUNTPOINT (default " DEFAULT_MOUNT
            "); its daemon ends by itself. A mount in use is detached and ends with its last user.",
    .operands = mountpoint,
    .examples = { "fakegpufs umount", "fakegpufs umount /tmp/gpus" },
    .run = run_umount,
};
