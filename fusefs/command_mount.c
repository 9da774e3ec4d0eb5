/*
 * fakegpufs mount and fakegpufs umount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fusefs/command.h"
#include "fusefs/log.h"
#include "fusefs/node_options.h"
#include "fusefs/supervisor.h"
#include "sim/library.h"

#define DEFAULT_MOUNTPOINT "/run/fakegpufs"

static const char help[] =
    "usage: fakegpufs mount [OPTION …] [MOUNTPOINT]\n\n"
    "Mounts simulated GPUs on MOUNTPOINT (default " DEFAULT_MOUNTPOINT
    ") and returns when they can be read.\n\n"
    "  -c, --config FILE      configuration; default: 8 A100-SXM4-40GB. Reloaded on SIGHUP and when it changes\n"
    "      --node NAME        which of its nodes; default: NODE_NAME of the environment\n"
    "      --schemas DIR      more models and profiles\n"
    "      --gpus N           number of GPUs, without --config\n"
    "      --model MODEL      their model, without --config\n"
    "      --profile PROFILE  their profile or cycle, without --config\n"
    "      --speed X          simulated seconds per real second\n"
    "      --dev MODE         device nodes: char, file (can be opened) or null (opens like /dev/null)\n"
    "  -f, --foreground       stay in the foreground\n"
    "      --pid-file FILE    write the process id there\n"
    "      --log FILE         write the log there instead of standard error, which in the background is\n"
    "                         left alone once it serves\n"
    "      --log-level LEVEL  error, warn, info or debug\n\n"
    "examples:\n"
    "  fakegpufs mount --gpus 2 --model H100-80GB-HBM3 /tmp/gpus\n"
    "  fakegpufs mount --foreground -c node.yaml\n";

struct options {
    struct node_options which;
    const char *node, *schemas, *speed, *pid_file, *log, *mountpoint;
    int dev_mode;
    bool foreground;
};

/* --- options --------------------------------------------------------------------------------- */

static int parse_dev(const char *text, int *mode)
{
    for (int i = DEV_CHAR; dev_mode_names[i]; i++)
        if (!strcmp(dev_mode_names[i], text)) {
            *mode = i;
            return 0;
        }
    return command_usage("mount", "--dev: '%s' is not known; allowed: char, file, null", text);
}

static int parse_options(struct options *o, int argc, char **argv)
{
    enum { NODE = 256, SCHEMAS, GPUS, MODEL, PROFILE, SPEED, DEV, PID_FILE, LOG, LOG_LEVEL };
    static const struct option longs[] = {
        { "config", required_argument, NULL, 'c' },
        { "node", required_argument, NULL, NODE },
        { "schemas", required_argument, NULL, SCHEMAS },
        { "gpus", required_argument, NULL, GPUS },
        { "model", required_argument, NULL, MODEL },
        { "profile", required_argument, NULL, PROFILE },
        { "speed", required_argument, NULL, SPEED },
        { "dev", required_argument, NULL, DEV },
        { "foreground", no_argument, NULL, 'f' },
        { "pid-file", required_argument, NULL, PID_FILE },
        { "log", required_argument, NULL, LOG },
        { "log-level", required_argument, NULL, LOG_LEVEL },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int c, r = 0, level;

    *o = (struct options){ .mountpoint = DEFAULT_MOUNTPOINT, .node = getenv("NODE_NAME") };
    opterr = 0;
    while (r == 0 && (c = getopt_long(argc, argv, "c:fh", longs, NULL)) != -1) {
        switch (c) {
        case 'c':
            o->which.config = optarg;
            break;
        case 'f':
            o->foreground = true;
            break;
        case NODE:
            o->node = optarg;
            break;
        case SCHEMAS:
            o->schemas = optarg;
            break;
        case GPUS:
            o->which.gpus = optarg;
            break;
        case MODEL:
            o->which.model = optarg;
            break;
        case PROFILE:
            o->which.profile = optarg;
            break;
        case SPEED:
            o->speed = optarg;
            break;
        case PID_FILE:
            o->pid_file = optarg;
            break;
        case LOG:
            o->log = optarg;
            break;
        case DEV:
            r = parse_dev(optarg, &o->dev_mode);
            break;
        case LOG_LEVEL:
            level = log_level_find(optarg);
            if (level < 0)
                return command_usage(
                    "mount", "--log-level: '%s' is not known; allowed: error, warn, info, debug",
                    optarg);
            log_threshold = (enum log_level)level;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return command_usage("mount", "'%s' is not an option, or lacks its argument",
                                 argv[optind - 1]);
        }
    }
    if (r == 0 && optind < argc)
        o->mountpoint = argv[optind++];
    if (r == 0 && optind < argc)
        return command_usage("mount", "'%s' is not expected", argv[optind]);
    if (r == 0 && o->which.config && (o->which.gpus || o->which.model || o->which.profile))
        return command_usage("mount", "--gpus, --model and --profile are for use without --config");
    return r;
}

/* --- configuration --------------------------------------------------------------------------- */

static int choose_dev_mode(const struct options *o, const struct config *cfg)
{
    int mode = o->dev_mode ? o->dev_mode : (int)cfg->access.dev;

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

static int run(const struct options *o, const struct config *cfg, const struct config_options *how,
               struct why *why)
{
    char *programs = program_dir(), *libraries = library_dir(programs), *config_path = NULL;
    struct supervisor_options s = {
        .mountpoint = o->mountpoint,
        .config = cfg,
        .read_options = how,
        .speed = o->speed,
        .dev_mode = choose_dev_mode(o, cfg),
        .binary_dir = programs,
        .library_dir = libraries,
        .ready_fd = -1,
    };
    int r = 0;

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
    if (!o->foreground)
        r = go_background(&s.ready_fd);
    if (r == 0)
        r = redirect_log(o->log, o->foreground, why);
    if (r == 0)
        r = write_pid_file(o->pid_file, why);
    if (r == 0)
        r = supervisor_run(&s);
    if (o->pid_file)
        unlink(o->pid_file);
    free(config_path);
    free(libraries);
    free(programs);
    return r;
}

int command_mount(int argc, char **argv)
{
    struct options o;
    struct config_options how = { .environment = environ };
    struct config cfg;
    struct why why = { 0 };
    int r = parse_options(&o, argc, argv);

    if (r)
        return r < 0 ? 0 : r;
    how.node = o.node;
    how.schemas = o.schemas;
    r = node_options_load(&o.which, &how, &cfg, &why);
    if (r == 0) {
        r = run(&o, &cfg, &how, &why);
        config_release(&cfg);
    }
    if (r < 0)
        log_line(LOG_ERROR, "%s", why_text(&why));
    why_release(&why);
    return r < 0 ? 1 : r;
}

int command_umount(int argc, char **argv)
{
    const char *mountpoint = argc > 1 ? argv[1] : DEFAULT_MOUNTPOINT;
    struct why why = { 0 };
    int r;

    if (!strcmp(mountpoint, "--help") || !strcmp(mountpoint, "-h")) {
        printf("usage: fakegpufs umount [MOUNTPOINT]\n\n"
               "Unmounts (default " DEFAULT_MOUNTPOINT
               "); its daemon ends by itself. A mount in use is detached\n"
               "and ends with its last user.\n\n"
               "examples:\n  fakegpufs umount\n  fakegpufs umount /tmp/gpus\n");
        return 0;
    }
    if (argc > 2)
        return command_usage("umount", "takes one mount point");
    r = supervisor_unmount(mountpoint, &why);
    if (r < 0)
        log_line(LOG_ERROR, "%s", why_text(&why));
    why_release(&why);
    return r < 0 ? 1 : 0;
}
