/*
 * fakegpufs exec: runs a program on a machine that has the simulated GPUs.
 *
 * The machine is a mount namespace (stage.h), so it needs nothing of the program: a static one sees the
 * same files. Nobody outside sees anything of it, and it is gone with the last process inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fusefs/cli/child.h"
#include "fusefs/cli/client.h"
#include "fusefs/cli/node_options.h"
#include "fusefs/cli/stage.h"

struct options {
    struct client_options client;
    struct node_options which;
    const char *schemas, *speed, *dev;
};

enum { MOUNT_WORDS_MAX = 32 };

struct machine {
    const struct command_call *call;
    const struct options *o;
    const char *root; /* the mount that was given; NULL: one of its own */
    struct stage stage;
    char *words[MOUNT_WORDS_MAX]; /* fakegpufs mount …, for one of its own */
    pid_t daemon;                 /* which serves it; 0: none */
    int notes;                    /* where it says that it is ready, or stops; -1 */
    int signals;
    struct why why;
};

/* --- a mount of its own ----------------------------------------------------------------------- */

static void collect_words(struct machine *m, char *program)
{
    const struct options *o = m->o;
    const struct {
        const char *option, *value;
    } given[] = {
        { "--config", o->which.config },   { "--node", o->which.node },
        { "--gpus", o->which.gpus },       { "--model", o->which.model },
        { "--profile", o->which.profile }, { "--schemas", o->schemas },
        { "--speed", o->speed },           { "--dev", o->dev },
        { "--log-level", "warn" },
    };
    int n = 0;

    m->words[n++] = program;
    m->words[n++] = (char *)"mount";
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        if (given[i].value) {
            m->words[n++] = (char *)given[i].option;
            m->words[n++] = (char *)given[i].value;
        }
    m->words[n] = (char *)STAGE_ROOT;
}

/* Where the daemon says that it is ready, as it would to systemd. Known by its number, in no directory. */
static int listen_for_ready(struct text *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    text_addf(name, "@fakegpufs-exec-%d", (int)getpid());
    memcpy(at.sun_path + 1, text_str(name) + 1, name->length - 1);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name->length)) < 0) {
        int err = -errno;

        if (fd >= 0)
            close(fd);
        return err;
    }
    return fd;
}

/* In a session of its own: what the terminal sends to the program is not meant for the daemon. */
static _Noreturn void become_daemon(struct machine *m, const char *ready)
{
    int n = 0;

    child_begin();
    setsid();
    stage_lend_privilege(&m->stage);
    setenv("NOTIFY_SOCKET", ready, 1);
    while (m->words[n])
        n++;
    m->words[n] = (char *)"--foreground";
    execv("/proc/self/exe", m->words);
    _exit(EXIT_CANNOT_RUN);
}

/* Until it serves, or has ended and said why. */
static int wait_until_ready(struct machine *m)
{
    struct pollfd p = { .fd = m->notes, .events = POLLIN };
    char said[64] = "";

    for (;;) {
        if (poll(&p, 1, 20) > 0 && recv(m->notes, said, sizeof(said) - 1, 0) > 0 &&
            !strncmp(said, "READY=1", 7))
            return 0;
        if (waitpid(m->daemon, NULL, WNOHANG) == m->daemon) {
            m->daemon = 0;
            return why_set(&m->why, EIO, "no mount of its own could be made");
        }
    }
}

static int start_daemon(struct machine *m)
{
    struct text name = TEXT_INIT;
    int r;

    m->notes = listen_for_ready(&name);
    if (m->notes < 0) {
        text_release(&name);
        return why_set(&m->why, -m->notes, "cannot wait for a daemon: %s", strerror(-m->notes));
    }
    m->daemon = fork();
    if (m->daemon == 0)
        become_daemon(m, text_str(&name));
    r = m->daemon < 0 ? why_set(&m->why, errno, "cannot start a daemon: %s", strerror(errno))
                      : wait_until_ready(m);
    text_release(&name);
    return r;
}

static void stop_daemon(struct machine *m)
{
    if (m->daemon <= 0)
        return;
    kill(m->daemon, SIGTERM);
    waitpid(m->daemon, NULL, 0);
    m->daemon = 0;
    close(m->notes);
}

/* To unmount would not end it: it lives in the namespace, where its files are bound to many places. */
static void explain_daemon(struct machine *m, struct text *script)
{
    for (int i = 0; m->words[i]; i++) {
        shell_quote(script, m->words[i]);
        text_add(script, " ");
    }
    text_addf(script, "--pid-file %s/pid\ndaemon=$(cat %s/pid)\n", m->stage.place, m->stage.place);
}

/* --- the machine ------------------------------------------------------------------------------ */

static int check_fuse(struct why *why)
{
    if (access("/dev/fuse", F_OK) < 0)
        return why_set(why, ENOENT,
                       "there is no /dev/fuse, so no mount can be made; --mount names one that is");
    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return why_set(
            why, EACCES,
            "/dev/fuse cannot be opened (%s), so no mount can be made; --mount names one "
            "that is",
            strerror(errno));
    return 0;
}

static int own_root(struct machine *m)
{
    int r = m->stage.script ? 0 : check_fuse(&m->why);

    if (r == 0)
        r = stage_make_root(&m->stage, &m->why);
    if (r == 0 && m->stage.script)
        explain_daemon(m, m->stage.script);
    else if (r == 0)
        r = start_daemon(m);
    return r;
}

static int build(struct machine *m)
{
    int r = stage_enter(&m->stage, &m->why);

    if (r == 0)
        r = stage_open(&m->stage, m->root ? m->root : "", &m->why);
    if (r == 0)
        r = m->root ? stage_bind_root(&m->stage, m->root, &m->why) : own_root(m);
    if (r == 0)
        r = stage_dress(&m->stage, &m->why);
    if (m->stage.place)
        stage_close(&m->stage);
    return r;
}

/* `addition` comes before what is there. */
static const struct {
    const char *name, *addition;
    bool list;
} variables[] = {
    { "FAKEGPUFS_ROOT", STAGE_ROOT, false },
    { "LD_LIBRARY_PATH", STAGE_ROOT "/usr/lib64", true },
    { "PATH", STAGE_ROOT "/usr/bin", true },
};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

static void set_variables(void)
{
    for (int i = 0; i < VARIABLES; i++) {
        const char *now = getenv(variables[i].name);
        struct text value = TEXT_INIT;

        text_add(&value, variables[i].addition);
        if (variables[i].list && now && *now)
            text_addf(&value, ":%s", now);
        setenv(variables[i].name, text_str(&value), 1);
        text_release(&value);
    }
}

static int run_program(struct machine *m)
{
    pid_t child = fork();

    if (child == 0) {
        child_begin();
        set_variables();
        child_become(m->call->argv);
    }
    if (child > 0)
        return child_wait(child, m->signals);
    why_set(&m->why, errno, "cannot start '%s': %s", m->call->argv[0], strerror(errno));
    return command_fail(&m->why);
}

/* --- explaining ------------------------------------------------------------------------------- */

static void explain_program(struct machine *m, struct text *script)
{
    /* ${NAME:+:$NAME}: nothing where there is nothing, for an empty part would be this directory. */
    for (int i = 0; i < VARIABLES; i++) {
        text_addf(script, "export %s=%s", variables[i].name, variables[i].addition);
        if (variables[i].list)
            text_addf(script, "${%s:+:$%s}", variables[i].name, variables[i].name);
        text_add(script, "\n");
    }
    for (int i = 0; i < m->call->argc; i++) {
        text_add(script, i ? " " : "code=0\n");
        shell_quote(script, m->call->argv[i]);
    }
    text_addf(script, " || code=$?\n%sexit $code\n", m->root ? "" : "kill \"$daemon\"\n");
}

static int explain(struct machine *m)
{
    struct text script = TEXT_INIT, quoted = TEXT_INIT;
    int r;

    m->stage.script = &script;
    r = build(m);
    if (r == 0) {
        explain_program(m, &script);
        shell_quote(&quoted, text_str(&script));
        printf("unshare --mount%s sh -ec %s\n",
               m->stage.in_user_namespace ? " --user --map-current-user --keep-caps" : "",
               text_str(&quoted));
    }
    text_release(&script);
    text_release(&quoted);
    return r < 0 ? command_fail(&m->why) : 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static const char *given_root(const struct client_options *o)
{
    const char *named = getenv("FAKEGPUFS_ROOT");

    return o->mount || (named && *named) ? client_root(o) : NULL;
}

static int check_root(struct machine *m)
{
    struct client c;
    int r;

    if (!m->root)
        return 0;
    r = client_open(&c, &m->o->client, &m->why);
    client_close(&c);
    return r;
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct machine m = {
        .call = call, .o = o, .root = given_root(&o->client), .signals = -1, .notes = -1
    };
    int r = node_options_check(call, &o->which);

    if (r)
        return r;
    if (m.root && (o->which.config || o->which.gpus || o->which.model || o->which.profile ||
                   o->which.node || o->schemas || o->speed || o->dev))
        return command_usage(call,
                             "there is a mount, %s, whose GPUs are what they are: no option "
                             "says otherwise",
                             m.root);
    collect_words(&m, (char *)"fakegpufs");
    r = check_root(&m);
    if (r < 0)
        return client_fail(r, &m.why);
    if (o->client.explain)
        return explain(&m);
    m.signals = child_catch_signals();
    r = m.signals < 0 ? why_set(&m.why, -m.signals, "cannot wait for signals") : build(&m);
    r = r < 0 ? command_fail(&m.why) : run_program(&m);
    stop_daemon(&m);
    if (m.signals >= 0)
        close(m.signals);
    return r;
}

static const struct command_option options[] = {
    NODE_MOUNT_OPTIONS(struct options, which),
    OPTION("mount", 'm', "DIR", OPTION_TEXT, struct options, client.mount,
           "a mount that is there; default: $FAKEGPUFS_ROOT", .complete = COMPLETE_DIRECTORY),
    OPTION("explain", 0, NULL, OPTION_FLAG, struct options, client.explain,
           "print the shell lines that do the same"),
    { 0 },
};

static const struct command_operand operands[] = {
    { .name = "COMMAND", .count = OPERAND_PROGRAM, .complete = COMPLETE_PROGRAM },
    { 0 },
};

static const struct command_exit exits[] = {
    { "any", "that of COMMAND; 126 when it cannot be run, 127 when there is none" },
    { "1", "the machine could not be made, and a sentence on standard error says why" },
    { "2", "the mount's daemon is gone" },
    { 0 },
};

const struct command command_exec = {
    .name = "exec",
    .summary = "run a program on a machine with simulated GPUs",
    .text = "Runs COMMAND where /dev/nvidia*, /proc and /sys show the simulated GPUs and NVML is "
            "theirs. They are those of a mount, or COMMAND's own, which end with it.",
    .more =
        "Nothing of it can be seen outside: COMMAND has a mount namespace of its own. There "
        "/dev has the mount's device nodes among those of the system, /proc/driver, /proc/devices, "
        "/proc/modules, /sys/bus/pci, /sys/devices and /sys/module are those of the simulated "
        "machine, and the loader's cache and LD_LIBRARY_PATH lead to the mock libraries. The "
        "mount itself is on " STAGE_ROOT ". Device nodes of GPUs that a configuration adds later "
        "do not appear in /dev.\n\n"
        "Without CAP_SYS_ADMIN a user namespace is used, where the system allows it; COMMAND "
        "stays the user that it is.",
    .options = options,
    .operands = operands,
    .options_size = sizeof(struct options),
    .exits = exits,
    .examples = { "fakegpufs exec --gpus 2 --model H100-80GB-HBM3 -- ls -l /dev/",
                  "fakegpufs exec --mount /tmp/gpus -- python3 train.py" },
    .run = run,
};
