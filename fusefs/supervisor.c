/*
 * Supervisor: mounts, holds what must not be lost, and restarts the worker. See supervisor.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/supervisor.h"

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/log.h"
#include "fusefs/nodes.h"
#include "fusefs/realtime.h"
#include "fusefs/worker.h"
#include "sim/library.h"

/* A worker that lived this long died neither of its start nor of the first request it met. */
#define LIVED_NS (NS_PER_S / 10)
enum { DEATHS_MAX = 10, BACKOFF_FIRST_MS = 10, BACKOFF_MAX_MS = 2000 };
/* How often the configuration file is looked at, and the worker asked whether it has taken the last one. */
enum { WATCH_MS = 1000, RETRY_MS = 20 };

struct supervisor {
    const struct supervisor_options *o;
    struct worker_setup setup;
    struct sim *sim;              /* made here, served by workers through its descriptor */
    struct fuse_session *mounter; /* non-root: fusermount3's session, which owns the descriptor */
    dev_t device;                 /* of the mount: what tells it from others on the same place */
    int signals;                  /* signalfd */
    pid_t worker;
    bool ready, ending;
    int deaths; /* in quick succession */
    int64_t born_ns;
    struct stat file; /* the configuration file as it was last seen; st_ino 0: never */
    bool reload;      /* it is to be read again */
};

/* --- mounting -------------------------------------------------------------------------------- */

/* Whether it answers ENOTCONN; what the kernel remembers of it does not count. */
static bool is_dead_mount(const char *mountpoint)
{
    struct statx st;

    return statx(AT_FDCWD, mountpoint, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st) < 0 &&
           errno == ENOTCONN;
}

/* A mount whose daemon is gone is in the way and of no use. */
static void clear_dead_mounts(const char *mountpoint)
{
    for (int i = 0; i < 8 && is_dead_mount(mountpoint); i++) {
        log_line(LOG_INFO, "removing the dead mount on %s", mountpoint);
        if (supervisor_unmount(mountpoint, NULL) < 0)
            return;
    }
}

static int make_mountpoint(const char *mountpoint, struct why *why)
{
    struct stat st;

    if (stat(mountpoint, &st) == 0)
        return S_ISDIR(st.st_mode) ? 0 : why_set(why, ENOTDIR, "%s is not a directory", mountpoint);
    if (mkdir(mountpoint, 0755) < 0)
        return why_set(why, errno, "cannot make %s: %s", mountpoint, strerror(errno));
    return 0;
}

/* For root, and for whoever may mount in a namespace of his own. */
static int mount_directly(const char *mountpoint, int dev_mode, struct why *why)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), err;
    unsigned long flags = MS_NOSUID | (dev_mode == DEV_FILE ? MS_NODEV : 0);
    char options[160];

    if (fd < 0)
        return why_set(why, errno, "cannot open /dev/fuse: %s", strerror(errno));
    snprintf(options, sizeof(options),
             "fd=%d,rootmode=40755,user_id=%u,group_id=%u,default_permissions,allow_other", fd,
             (unsigned)geteuid(), (unsigned)getegid());
    if (mount("fakegpufs", mountpoint, "fuse.fakegpufs", flags, options) == 0)
        return fd;
    err = errno;
    close(fd);
    return why_set(why, err, "cannot mount on %s: %s", mountpoint, strerror(err));
}

/* Without this line fusermount3 lets no others in, and complains aloud when asked to. */
static bool others_allowed(void)
{
    static const char wanted[] = "user_allow_other";
    FILE *f = fopen("/etc/fuse.conf", "re");
    bool found = false;
    char line[256];

    while (f && !found && fgets(line, sizeof(line), f)) {
        line[strcspn(line, " \t\r\n")] = '\0';
        found = !strcmp(line, wanted);
    }
    if (f)
        fclose(f);
    return found;
}

/* Through fusermount3, which may or may not let others in. */
static int mount_as_user(struct supervisor *s, const char *mountpoint, struct why *why)
{
    static const struct fuse_lowlevel_ops none;
    const char *const tries[] = {
        "default_permissions,allow_other,fsname=fakegpufs,subtype=fakegpufs",
        "default_permissions,fsname=fakegpufs,subtype=fakegpufs"
    };

    for (size_t i = others_allowed() ? 0 : 1; i < sizeof(tries) / sizeof(tries[0]); i++) {
        char *argv[] = { (char *)"fakegpufs", (char *)"-o", (char *)tries[i], NULL };
        struct fuse_args args = FUSE_ARGS_INIT(3, argv);

        s->mounter = fuse_session_new(&args, &none, sizeof(none), NULL);
        fuse_opt_free_args(&args);
        if (!s->mounter)
            return why_set(why, ENOMEM, "cannot make a FUSE session");
        if (fuse_session_mount(s->mounter, mountpoint) == 0)
            return fuse_session_fd(s->mounter);
        fuse_session_destroy(s->mounter);
        s->mounter = NULL;
    }
    return why_set(
        why, EPERM,
        "cannot mount on %s: fusermount3 refused (is fuse3 installed, and is the directory yours?)",
        mountpoint);
}

int supervisor_unmount(const char *mountpoint, struct why *why)
{
    pid_t child;
    int status;

    if (umount2(mountpoint, UMOUNT_NOFOLLOW) == 0 ||
        umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (errno != EPERM)
        return why_set(why, errno, "cannot unmount %s: %s", mountpoint, strerror(errno));
    child = fork();
    if (child == 0) {
        execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", mountpoint, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        return why_set(why, EPERM, "cannot unmount %s: it is not yours, or fusermount3 is missing",
                       mountpoint);
    return 0;
}

/* Whose mount is to be seen there; 0 when that cannot be told. Nobody need serve it. */
static dev_t mounted_device(const char *mountpoint)
{
    struct statx st;

    if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
        return 0;
    return makedev(st.stx_dev_major, st.stx_dev_minor);
}

/*
 * Takes down what we mounted, and nothing that somebody else has mounted there since. One that we had covered
 * may have died meanwhile, and could not be taken down then.
 */
static void unmount_ours(const struct supervisor *s)
{
    struct why why = { 0 };

    if (mounted_device(s->o->mountpoint) != s->device)
        log_line(LOG_WARN, "another mount is on %s: it stays", s->o->mountpoint);
    else if (supervisor_unmount(s->o->mountpoint, &why) < 0)
        log_line(LOG_ERROR, "%s", why_text(&why));
    else
        clear_dead_mounts(s->o->mountpoint);
    why_release(&why);
}

/* The kernel has let go of the connection: unmounted by us or anybody. */
static bool mount_is_gone(const struct supervisor *s)
{
    struct pollfd p = { .fd = s->setup.fuse_fd };

    return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

/* --- readiness ------------------------------------------------------------------------------- */

/* systemd's protocol: one datagram to the socket that the environment names. */
static void notify_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t n = path ? strlen(path) : 0;
    int fd;

    if (n == 0 || n >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, n);
    if (*path == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        log_line(LOG_WARN, "cannot notify %s: %s", path, strerror(errno));
    close(fd);
}

static void say_ready(struct supervisor *s)
{
    uint32_t gpus = sim_world(s->sim)->used[SECTION_GPUS];

    s->ready = true;
    log_line(LOG_INFO, "%s serves %u GPU%s", s->o->mountpoint, gpus, gpus == 1 ? "" : "s");
    notify_systemd("READY=1");
    if (s->o->ready_fd >= 0) {
        if (write(s->o->ready_fd, "1", 1) < 0)
            log_line(LOG_DEBUG, "nobody waits for readiness");
        close(s->o->ready_fd);
    }
}

/* --- workers --------------------------------------------------------------------------------- */

static int start_worker(struct supervisor *s)
{
    sigset_t none;

    s->born_ns = real_ns(CLOCK_MONOTONIC);
    s->worker = fork();
    if (s->worker != 0)
        return s->worker < 0 ? -errno : 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(s->signals);
    if (s->o->ready_fd >= 0)
        close(s->o->ready_fd);
    _exit(worker_main(&s->setup));
}

static void sleep_ms(int ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&ts, NULL);
}

static const char *describe_death(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(buf, size, "ended with exit code %d", WEXITSTATUS(status));
    return buf;
}

/* Returns whether there is a worker again. */
static bool replace_worker(struct supervisor *s, int status)
{
    bool young = real_ns(CLOCK_MONOTONIC) - s->born_ns < LIVED_NS;
    int wait_ms = BACKOFF_FIRST_MS;
    char how[96];

    s->deaths = young ? s->deaths + 1 : 1;
    log_line(LOG_WARN, "the worker %s; starting another", describe_death(status, how, sizeof(how)));
    if (s->deaths > DEATHS_MAX && !s->setup.shared->ready) {
        log_line(LOG_ERROR, "the worker died %d times without serving: giving up", s->deaths);
        return false;
    }
    /* The first ones at once: readers wait. Those that keep dying, with more and more patience. */
    if (s->deaths > 3) {
        for (int i = 4; i < s->deaths && wait_ms < BACKOFF_MAX_MS; i++)
            wait_ms *= 2;
        log_line(LOG_ERROR, "the worker keeps dying (%d times in a row); next try in %d ms",
                 s->deaths, wait_ms);
        sleep_ms(wait_ms);
    }
    return start_worker(s) == 0;
}

/* --- the loop -------------------------------------------------------------------------------- */

/* Returns whether to go on; *exit_code otherwise. */
static bool child_changed(struct supervisor *s, int *exit_code)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != s->worker)
            continue;
        s->worker = 0;
        *exit_code = 0;
        if (s->ending || mount_is_gone(s))
            return false;
        *exit_code = 1;
        if (!replace_worker(s, status))
            return false;
    }
    return true;
}

/* --- the configuration file ------------------------------------------------------------------ */

/* Follows symbolic links, so that the swap of a mounted ConfigMap is another file. */
static bool file_changed(struct supervisor *s)
{
    struct stat *was = &s->file, now;
    bool changed;

    if (stat(s->o->config_path, &now) < 0)
        return false;
    changed = was->st_ino && (now.st_dev != was->st_dev || now.st_ino != was->st_ino ||
                              now.st_size != was->st_size ||
                              memcmp(&now.st_mtim, &was->st_mtim, sizeof(now.st_mtim)));
    *was = now;
    return changed;
}

/* Hands the file over as it is; to understand it is the worker's. */
static void pass_file(struct supervisor *s)
{
    struct shared *shared = s->setup.shared;
    struct why why = { 0 };
    unsigned long length;
    char *text;
    int r = library_read_file(s->o->config_path, &text, &length, &why);

    if (r == 0 && length > SHARED_CONFIG_BYTES)
        r = why_set(&why, EFBIG, "%s has more than %d bytes", s->o->config_path,
                    SHARED_CONFIG_BYTES);
    if (r < 0) {
        log_line(LOG_ERROR, "configuration not applied: %s", why_text(&why));
    } else if (length == 0) {
        free(text); /* just being written: it will change again */
    } else {
        memcpy(shared->file, text, length);
        shared->file_length = (uint32_t)length;
        atomic_fetch_add(&shared->file_passed, 1);
        free(text);
    }
    why_release(&why);
}

static void watch_file(struct supervisor *s)
{
    const struct shared *shared = s->setup.shared;

    if (!s->o->config_path)
        return;
    s->reload |= file_changed(s);
    if (!s->reload || atomic_load(&shared->file_passed) != atomic_load(&shared->file_taken))
        return;
    s->reload = false;
    pass_file(s);
}

/* --- signals --------------------------------------------------------------------------------- */

/* Returns whether there is still a worker to wait for. */
static bool terminate(struct supervisor *s)
{
    if (s->ending)
        return true;
    s->ending = true;
    notify_systemd("STOPPING=1");
    unmount_ours(s);
    /* It is somebody else by now, and we may not be allowed to tell him. He ends when we do. */
    return s->worker > 0 && kill(s->worker, SIGTERM) == 0;
}

static bool take_signal(struct supervisor *s, int *exit_code)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != sizeof(info))
        return true;
    switch (info.ssi_signo) {
    case SIGCHLD:
        return child_changed(s, exit_code);
    case SIGHUP:
        s->reload = s->o->config_path != NULL;
        return true;
    default:
        *exit_code = 0;
        return terminate(s);
    }
}

static int supervise(struct supervisor *s)
{
    struct pollfd p = { .fd = s->signals, .events = POLLIN };
    int exit_code = 0;
    bool on = start_worker(s) == 0;

    while (on) {
        /* Until it serves, look often; then only signals and the configuration count. */
        int n = poll(&p, 1,
                     !s->ready           ? 1
                     : s->reload         ? RETRY_MS
                     : s->o->config_path ? WATCH_MS
                                         : -1);

        if (!s->ready && atomic_load(&s->setup.shared->ready))
            say_ready(s);
        if (n > 0)
            on = take_signal(s, &exit_code);
        if (on && s->ready)
            watch_file(s);
    }
    return exit_code;
}

/* --- life ------------------------------------------------------------------------------------ */

static int catch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void keep_config(struct shared *shared, const struct config *cfg)
{
    struct text text = TEXT_INIT;

    config_print(&text, cfg);
    if (text.length <= SHARED_CONFIG_BYTES) {
        memcpy(shared->config, text_str(&text), text.length);
        atomic_store(&shared->config_length, (uint32_t)text.length);
    }
    text_release(&text);
}

static int set_speed(struct sim *sim, const char *speed, struct why *why)
{
    struct text command = TEXT_INIT;
    int r = 0;

    if (speed) {
        text_addf(&command, "speed %s", speed);
        r = sim_clock(sim, text_str(&command), why);
    }
    text_release(&command);
    return r;
}

static int prepare(struct supervisor *s, struct why *why)
{
    const struct supervisor_options *o = s->o;
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return why_set(why, ENOMEM, "out of memory");
    shared->start_real_ns = real_ns(CLOCK_REALTIME);
    if (o->config_path)
        file_changed(s); /* from now on */
    keep_config(shared, o->config);
    s->sim = sim_new(o->config, why);
    if (!s->sim || set_speed(s->sim, o->speed, why) < 0)
        return -EINVAL;
    s->setup = (struct worker_setup){
        .world_fd = sim_store(s->sim)->fd,
        .shared = shared,
        .models = &o->config->models,
        .host = { .dev_mode = o->dev_mode,
                  .uid = geteuid(),
                  .gid = getegid(),
                  .start_real_ns = shared->start_real_ns,
                  .cpus = (int)sysconf(_SC_NPROCESSORS_ONLN),
                  .options = o->read_options },
        .config_path = o->config_path,
        .drop_privileges = geteuid() == 0,
    };
    host_files_open(s->setup.host.files, o->library_dir, o->binary_dir);
    return 0;
}

static int mount_somehow(struct supervisor *s, struct why *why)
{
    int r;

    clear_dead_mounts(s->o->mountpoint);
    r = make_mountpoint(s->o->mountpoint, why);
    if (r < 0)
        return r;
    r = mount_directly(s->o->mountpoint, s->o->dev_mode, why);
    if ((r == -EPERM || r == -EACCES) && geteuid() != 0)
        r = mount_as_user(s, s->o->mountpoint, why);
    s->setup.fuse_fd = r;
    s->device = mounted_device(s->o->mountpoint);
    return r;
}

int supervisor_run(const struct supervisor_options *options)
{
    struct supervisor s = { .o = options };
    struct why why = { 0 };
    int exit_code = 1;

    s.signals = catch_signals();
    if (prepare(&s, &why) == 0 && mount_somehow(&s, &why) >= 0) {
        exit_code = supervise(&s);
        if (!s.ending && !mount_is_gone(&s))
            unmount_ours(&s);
    } else {
        log_line(LOG_ERROR, "%s", why_text(&why));
    }
    why_release(&why);
    sim_free(s.sim);
    close(s.signals);
    return exit_code;
}
