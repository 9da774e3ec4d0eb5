/*
 * fakegpufs run: a workload that lives as long as this process.
 *
 * A workload is a directory with files; this makes it with its `attach` open and fills them in, so that the
 * mount removes the workload however, and whenever, this process ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fusefs/cli/child.h"
#include "fusefs/cli/devices.h"
#include "fusefs/cli/progress.h"
#include "sim/library.h"
#include "sim/workload.h"

struct options {
    struct client_options client;
    const char *name, *gpus, *devices, *devices_glob;
    const char *memory, *activity, *activity_file, *repeat, *limit;
    const char *namespace, *pod, *container;
    int64_t max_index;
    bool quiet;
};

/* What is written to each file of the workload, in this order: the activity, which starts it, comes last. */
enum file { DEVICES, LIMITS, NAMESPACE, POD, CONTAINER, MEMORY, REPEAT, ACTIVITY, FILES };

static const char *const file_names[FILES] = {
    [DEVICES] = "devices", [LIMITS] = "limits",       [NAMESPACE] = "namespace",
    [POD] = "pod",         [CONTAINER] = "container", [MEMORY] = "memory",
    [REPEAT] = "repeat",   [ACTIVITY] = "activity",
};

struct job {
    const struct command_call *call;
    const struct options *o;
    struct client client;
    struct text name, directory; /* workloads/NAME */
    struct text files[FILES];    /* empty: not written */
    bool named;                  /* by the caller: nobody else's name will do */
    int attach;                  /* held open while it lives; -1 */
    int signals;
    pid_t child; /* COMMAND; 0: none */
    struct why why;
};

/* --- what is asked for ----------------------------------------------------------------------- */

/* INDEX in a name is the place of this pod among those of its Job. */
static int add_indexed(struct job *j, struct text *out, const char *s)
{
    static const char word[] = "INDEX";
    const char *value = getenv("JOB_COMPLETION_INDEX"), *found;
    int64_t index = 0;

    if (strstr(s, word) && (!value || parse_i64(value, &index) < 0 || index < 0))
        return command_usage(j->call,
                             "'%s' has INDEX in it, and JOB_COMPLETION_INDEX in the environment is "
                             "not a number",
                             s);
    for (; (found = strstr(s, word)); s = found + strlen(word)) {
        text_addn(out, s, (size_t)(found - s));
        text_addf(out, "%" PRId64, j->o->max_index ? index % j->o->max_index : index);
    }
    text_add(out, s);
    return 0;
}

/* The option, or what the downward API put into the environment. */
static int add_identity(struct job *j, enum file file, const char *option, const char *variable)
{
    const char *s = option ? option : getenv(variable);

    return s ? add_indexed(j, &j->files[file], s) : 0;
}

/* Within what a directory of a workload may be called. */
static int name_job(struct job *j)
{
    const char *pod = text_str(&j->files[POD]);
    int code = 0;

    j->named = j->o->name != NULL;
    if (j->named)
        code = add_indexed(j, &j->name, j->o->name);
    else if (*pod)
        text_addf(&j->name, "%.40s-%d", pod, (int)getpid());
    else
        text_addf(&j->name, "run-%d", (int)getpid());
    if (code == 0 && !workload_name_ok(text_str(&j->name)))
        code =
            command_usage(j->call,
                          "'%s' is not a name for a workload; allowed: up to 63 letters, digits, "
                          "'-', '_' and '.', the first a letter or digit",
                          text_str(&j->name));
    return code;
}

static int read_activity(struct job *j)
{
    const struct options *o = j->o;
    struct text path = TEXT_INIT;
    unsigned long length;
    char *text;
    int code = 0;

    if (o->activity && o->activity_file)
        return command_usage(j->call, "--activity and --activity-file are one at a time");
    if (o->activity)
        text_add(&j->files[ACTIVITY], o->activity);
    if (!o->activity_file)
        return 0;
    code = add_indexed(j, &path, o->activity_file);
    if (code == 0 && library_read_file(text_str(&path), &text, &length, &j->why) < 0) {
        code = command_fail(&j->why);
    } else if (code == 0) {
        text_addn(&j->files[ACTIVITY], text, length);
        free(text);
    }
    text_release(&path);
    return code;
}

/* What is malformed is bad usage, whatever the mount is; what does not fit is for the mount to say. */
static int check_texts(struct job *j)
{
    const struct options *o = j->o;
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    struct text yaml = TEXT_INIT;
    int64_t number;
    int r = 0, code = 0;

    if (j->files[ACTIVITY].length) {
        r = workload_parse(&spec, o->activity ? "--activity" : o->activity_file,
                           text_str(&j->files[ACTIVITY]), &arena, &j->why);
        if (r == 0 && !spec.activity.count)
            r = why_set(&j->why, EINVAL, "--activity: an activity is needed, for example 80:5:10m");
    }
    if (r == 0 && o->memory) {
        text_addf(&yaml, "{memory: %s}", o->memory);
        r = workload_parse(&spec, "--memory", text_str(&yaml), &arena, &j->why);
    }
    if (r == 0 && o->repeat && strcmp(o->repeat, "forever") && parse_i64(o->repeat, &number) < 0)
        r = why_set(&j->why, EINVAL, "--repeat: '%s' is neither a number nor 'forever'", o->repeat);
    if (r < 0)
        code = command_usage(j->call, "%s", why_text(&j->why));
    arena_release(&arena);
    text_release(&yaml);
    return code;
}

static int read_options(struct job *j)
{
    const struct options *o = j->o;
    int code;

    if ((o->devices != NULL) + (o->devices_glob != NULL) + (o->gpus != NULL) > 1 &&
        !(o->devices_glob && o->gpus))
        return command_usage(j->call, "--devices and --gpus, or --devices-glob, are one at a time");
    code = add_identity(j, NAMESPACE, o->namespace, "POD_NAMESPACE");
    if (code == 0)
        code = add_identity(j, POD, o->pod, "POD_NAME");
    if (code == 0)
        code = add_identity(j, CONTAINER, o->container, "CONTAINER_NAME");
    if (code == 0)
        code = name_job(j);
    if (code == 0)
        code = read_activity(j);
    if (o->memory)
        text_add(&j->files[MEMORY], o->memory);
    if (o->repeat)
        text_add(&j->files[REPEAT], o->repeat);
    if (o->limit)
        text_add(&j->files[LIMITS], o->limit);
    return code ? code : check_texts(j);
}

/* --- beginning ------------------------------------------------------------------------------- */

static int choose_devices(struct job *j)
{
    struct text list = TEXT_INIT;
    struct devices_wish wish = { .glob = j->o->devices_glob, .gpus = j->o->gpus };
    int r;

    if (j->o->devices) {
        if (add_indexed(j, &list, j->o->devices) != 0) {
            text_release(&list);
            return EXIT_USAGE;
        }
        wish.devices = text_str(&list);
    }
    r = devices_choose(&j->client, &wish, &j->files[DEVICES], &j->why);
    text_release(&list);
    return r;
}

/* In another container somebody may have the same process id: then a number makes the name another. */
static int make_workload(struct job *j)
{
    size_t length = j->name.length;
    int r = client_make_held(&j->client, text_str(&j->name), &j->attach, &j->why);

    for (int i = 2; r == -EEXIST && !j->named && i < 1000; i++) {
        text_cut(&j->name, length);
        text_addf(&j->name, "-%d", i);
        r = client_make_held(&j->client, text_str(&j->name), &j->attach, &j->why);
    }
    text_cut(&j->directory, 0);
    text_addf(&j->directory, "workloads/%s", text_str(&j->name));
    return r;
}

static int put(struct job *j, const char *file, const char *text)
{
    struct text path = TEXT_INIT;
    int r;

    text_addf(&path, "%s/%s", text_str(&j->directory), file);
    r = client_put(&j->client, text_str(&path), text, &j->why);
    text_release(&path);
    return r;
}

static int put_pid(struct job *j, pid_t pid)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", (int)pid);
    if (!j->client.explain)
        return put(j, "pid", number);
    client_say(&j->client, "echo $$ > %s/%s/pid", j->client.root, text_str(&j->directory));
    return 0;
}

static int begin(struct job *j)
{
    int r = choose_devices(j);

    if (r == 0)
        r = make_workload(j);
    if (r == 0)
        r = put_pid(j, getpid());
    for (int i = 0; r == 0 && i < FILES; i++)
        if (j->files[i].length)
            r = put(j, file_names[i], text_str(&j->files[i]));
    return r;
}

/* It is gone when this returns; whoever holds it open only makes sure of that. */
static void end(struct job *j)
{
    if (j->attach < 0)
        return;
    client_remove(&j->client, text_str(&j->directory), NULL);
    close(j->attach);
    j->attach = -1;
}

/* --- explaining ------------------------------------------------------------------------------ */

static void explain_rest(struct job *j)
{
    struct text command = TEXT_INIT;

    for (int i = 0; i < j->call->argc; i++) {
        text_add(&command, i ? " " : "");
        shell_quote(&command, j->call->argv[i]);
    }
    if (j->call->argc)
        client_say(&j->client, "%s 9>&-\ncode=$?", text_str(&command));
    else
        client_say(&j->client,
                   "while read -r state code message < %s/%s/state && [ \"$state\" != ended ]; do\n"
                   "    sleep 0.2\n"
                   "done\n"
                   "echo \"$message\"",
                   j->client.root, text_str(&j->directory));
    client_say(&j->client, "exec 9>&-\nexit \"$code\"");
    text_release(&command);
}

/* --- while it runs --------------------------------------------------------------------------- */

static int lost(struct job *j, int err)
{
    why_set(&j->why, -err, "the daemon of %s is gone, and workload '%s' with it", j->client.root,
            text_str(&j->name));
    command_fail(&j->why);
    return EXIT_LOST;
}

/* Returns -1 while it runs, otherwise the exit code; the workload's own last words are printed. */
static int look_at_state(struct job *j, int state, struct progress *progress)
{
    char text[512], *message;
    ssize_t n = pread(state, text, sizeof(text) - 1, 0);
    int code;

    if (n < 0 && errno == EINTR)
        return -1;
    if (n < 0) {
        int err = -errno;

        progress_end(progress);
        if (client_is_lost(err))
            return lost(j, err);
        fprintf(stderr, "fakegpufs: workload '%s' was removed\n", text_str(&j->name));
        return 1;
    }
    text[n > 0 && text[n - 1] == '\n' ? n - 1 : n] = '\0';
    if (strncmp(text, "ended ", 6))
        return -1;
    progress_end(progress);
    code = (int)strtol(text + 6, &message, 10);
    fprintf(code ? stderr : stdout, "%s:%s\n", text_str(&j->name), message);
    return code;
}

static int watch(struct job *j)
{
    struct text path = TEXT_INIT;
    struct progress progress;
    struct pollfd p[2] = { { .fd = j->signals, .events = POLLIN }, { .events = POLLIN | POLLPRI } };
    int code = -1;

    text_addf(&path, "%s/state", text_str(&j->directory));
    p[1].fd = reader_open_file(j->client.reader, text_str(&path));
    text_release(&path);
    if (p[1].fd < 0)
        return lost(j, p[1].fd);
    progress_begin(&progress, &j->client, text_str(&j->name));
    /* Read before the first wait: what poll tells of is a state that was not read yet. */
    code = look_at_state(j, p[1].fd, &progress);
    while (code < 0) {
        int ms = j->o->quiet ? -1 : progress_show(&progress);
        struct signalfd_siginfo info;

        if (poll(p, 2, ms) < 0)
            continue;
        if (p[1].revents)
            code = look_at_state(j, p[1].fd, &progress);
        if (code < 0 && p[0].revents && read(j->signals, &info, sizeof(info)) == sizeof(info) &&
            info.ssi_signo != SIGCHLD) {
            progress_end(&progress);
            printf("%s: Stopped\n", text_str(&j->name));
            code = EXIT_SIGNAL + (int)info.ssi_signo;
        }
    }
    close(p[1].fd);
    return code;
}

/* --- COMMAND --------------------------------------------------------------------------------- */

/* It waits at the pipe until its process id stands in the workload. */
static _Noreturn void become_command(struct job *j, int go)
{
    char byte;

    child_begin();
    if (read(go, &byte, 1) != 1)
        _exit(1);
    if (j->o->client.mount)
        setenv("FAKEGPUFS_ROOT", j->client.root, 1);
    child_become(j->call->argv);
}

static int run_command(struct job *j)
{
    int go[2];
    int r;

    if (pipe2(go, O_CLOEXEC) < 0 || (j->child = fork()) < 0) {
        why_set(&j->why, errno, "cannot start '%s': %s", j->call->argv[0], strerror(errno));
        return command_fail(&j->why);
    }
    if (j->child == 0) {
        close(go[1]);
        become_command(j, go[0]);
    }
    close(go[0]);
    r = put_pid(j, j->child);
    if (r == 0 && write(go[1], "1", 1) < 0)
        r = why_set(&j->why, errno, "cannot start '%s': %s", j->call->argv[0], strerror(errno));
    close(go[1]);
    if (r < 0) {
        waitpid(j->child, NULL, 0);
        return client_fail(r, &j->why);
    }
    return child_wait(j->child, j->signals);
}

/* --- all ------------------------------------------------------------------------------------- */

static int run_job(struct job *j)
{
    int r = client_open(&j->client, &j->o->client, &j->why);

    if (r == 0 && (j->signals = child_catch_signals()) < 0)
        r = why_set(&j->why, -j->signals, "cannot wait for signals: %s", strerror(-j->signals));
    if (r == 0)
        r = begin(j);
    if (r != 0) {
        end(j);
        return r < 0 ? client_fail(r, &j->why) : r;
    }
    if (j->client.explain) {
        explain_rest(j);
        return 0;
    }
    r = j->call->argc ? run_command(j) : watch(j);
    end(j);
    return r;
}

static int run(const struct command_call *call)
{
    struct job j = { .call = call, .o = call->options, .attach = -1, .signals = -1 };
    int code = read_options(&j);

    if (code == 0)
        code = run_job(&j);
    client_close(&j.client);
    for (int i = 0; i < FILES; i++)
        text_release(&j.files[i]);
    text_release(&j.name);
    text_release(&j.directory);
    why_release(&j.why);
    if (j.signals >= 0)
        close(j.signals);
    return code;
}

static const struct command_option options[] = {
    OPTION("name", 0, "NAME", OPTION_TEXT, struct options, name,
           "of the workload; default: from the pod, or run-PID"),
    OPTION("gpus", 0, "N", OPTION_TEXT, struct options, gpus,
           "how many GPUs, or all: the least busy that can be seen"),
    OPTION("devices", 0, "LIST", OPTION_TEXT, struct options, devices,
           "these: indices, UUIDs, bus ids, or all", .complete = COMPLETE_GPU),
    OPTION("devices-glob", 0, "GLOB", OPTION_TEXT, struct options, devices_glob,
           "those of these device nodes", .complete = COMPLETE_FILE),
    OPTION("memory", 0, "SIZE", OPTION_TEXT, struct options, memory, "on each of them, as 20GiB"),
    OPTION("activity", 0, "TEXT", OPTION_TEXT, struct options, activity,
           "UTILIZATION:FLUCTUATION:TIME,… or phases as YAML"),
    OPTION("activity-file", 0, "FILE", OPTION_TEXT, struct options, activity_file,
           "the same from a file", .complete = COMPLETE_FILE),
    OPTION("repeat", 0, "N", OPTION_TEXT, struct options, repeat,
           "how often it is played, or forever"),
    OPTION("limit", 0, "LIST", OPTION_TEXT, struct options, limit,
           "ends it: memory=30GiB,time=1h,energy=2MJ,…"),
    OPTION("namespace", 0, "NAME", OPTION_TEXT, struct options, namespace, NULL),
    OPTION("pod", 0, "NAME", OPTION_TEXT, struct options, pod, NULL),
    OPTION("container", 0, "NAME", OPTION_TEXT, struct options, container,
           "default: $POD_NAMESPACE, …"),
    OPTION("max-index", 0, "N", OPTION_COUNT, struct options, max_index,
           "INDEX in names is $JOB_COMPLETION_INDEX modulo N"),
    OPTION("quiet", 'q', NULL, OPTION_FLAG, struct options, quiet, "show no progress"),
    CLIENT_OPTIONS(struct options, client),
    { 0 },
};

static const struct command_operand operands[] = {
    { .name = "COMMAND", .count = OPERAND_PROGRAM_OPTIONAL, .complete = COMPLETE_PROGRAM },
    { 0 },
};

static const struct command_exit exits[] = {
    { "0", "the activity was played to its end" },
    { "1", "a limit was reached, a GPU was lost or ran out of memory, or the mount refused it: a "
           "sentence on standard error says which" },
    { "2", "the daemon is gone" },
    { "130, 143", "ended by SIGINT, SIGTERM" },
    { "any", "with COMMAND: its own; 126 when it cannot be run, 127 when there is none" },
    { 0 },
};

const struct command command_run = {
    .name = "run",
    .summary = "run a workload",
    .text = "Runs a workload until it ends, or as long as COMMAND runs.",
    .more =
        "GPUs are those of --devices or --devices-glob; otherwise those of NVIDIA_VISIBLE_DEVICES, "
        "or those whose nodes are in /dev; otherwise one of all. Of more than --gpus asks for, the "
        "least busy are taken.\n\n"
        "An activity is a list of phases: 80:10:30s,0:0:10s is 30 s at 80 % give or take 10, then "
        "10 s of nothing. Without one the workload goes on until it is ended.\n\n"
        "On a terminal a bar shows how far it has come, the time left, and what it uses; elsewhere "
        "a line every ten seconds does. However this process ends, the workload ends with it. When "
        "the mount's worker dies, nothing is lost and the workload goes on.\n\n"
        "Namespace, pod and container are those of POD_NAMESPACE, POD_NAME and CONTAINER_NAME "
        "unless given, as the downward API of Kubernetes sets them. INDEX in names, --devices and "
        "--activity-file is the number of the pod in an indexed Job.",
    .options = options,
    .operands = operands,
    .options_size = sizeof(struct options),
    .exits = exits,
    .examples = { "fakegpufs run --gpus 2 --memory 20GiB --activity 80:10:30s,0:0:10s",
                  "fakegpufs run --devices 0 --activity 95 -- make test" },
    .run = run,
};
