/*
 * Publisher: the thread that owns the simulator.
 *
 * Each round: apply what was asked for, move the time, render the snapshot, let go of the lock, push the
 * snapshot, then answer. So when a command is answered every reader can see its effect. It is the only
 * thread that notifies the kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fusefs/daemon.h"
#include "fusefs/errors.h"
#include "fusefs/log.h"
#include "fusefs/nodes.h"
#include "fusefs/realtime.h"

/* --- commands -------------------------------------------------------------------------------- */

void daemon_remember(struct daemon *d, const struct place *p, const char *sentence)
{
    if (p->cx.gpu >= 0)
        errors_set(d->host.errors, ERRORS_GPU, p->cx.plan->id, sentence);
    else if (p->cx.workload >= 0)
        errors_set(d->host.errors, ERRORS_WORKLOAD, p->cx.work->id, sentence);
    else
        errors_set(d->host.errors, ERRORS_NODE, 0, sentence);
}

static int apply_write(struct daemon *d, struct command *c, struct place *p, struct why *why)
{
    if (p->directory)
        return -EISDIR;
    if (p->cx.def->flags & NODE_DEVICE)
        return 0;
    if (!p->cx.def->store)
        return -EPERM;
    p->cx.sim = d->sim;
    return p->cx.def->store(&p->cx, parse_trimmed(c->text), why);
}

static bool makes_workload(const struct command *c)
{
    return c->kind == COMMAND_MKDIR || c->kind == COMMAND_CREATE;
}

/* What of a workload is answered. */
static uint64_t made_of(const struct command *c, uint64_t id)
{
    return tree_ino(c->kind == COMMAND_CREATE ? "workloads/%w/attach" : "workloads/%w", id);
}

static int apply_mkdir(struct daemon *d, struct command *c, struct why *why)
{
    struct workload_spec spec;
    uint64_t id;
    int r;

    workload_spec_init(&spec);
    snprintf(spec.name, sizeof(spec.name), "%s", c->text);
    spec.uid = c->uid;
    spec.attached = c->kind == COMMAND_CREATE;
    r = sim_add_workload(d->sim, &spec, &id, why);
    c->made = r < 0 ? 0 : made_of(c, id);
    return r;
}

/* A program that holds a device node open is a process on that GPU. */
static int apply_open_device(struct daemon *d, struct command *c, const struct place *p,
                             struct why *why)
{
    struct workload_spec spec;
    struct device_name device;

    workload_spec_init(&spec);
    snprintf(spec.name, sizeof(spec.name), "dev-%" PRIu64, c->fi.fh);
    snprintf(device.text, sizeof(device.text), "%s", p->cx.plan->uuid);
    spec.devices = (struct bind_list){ &device, 1 };
    spec.pid = c->pid;
    spec.uid = c->uid;
    return sim_add_workload(d->sim, &spec, NULL, why);
}

static int apply_close_device(struct daemon *d, const struct command *c)
{
    char name[WORKLOAD_NAME];

    snprintf(name, sizeof(name), "dev-%" PRIu64, c->fi.fh);
    sim_remove_workload(d->sim, name, NULL); /* its GPU may have taken it along */
    return 0;
}

static int apply_rmdir(struct daemon *d, const struct command *c, struct why *why)
{
    return sim_remove_workload(d->sim, c->text, why);
}

static int apply(struct daemon *d, struct command *c, struct place *p, struct why *why)
{
    switch (c->kind) {
    case COMMAND_WRITE:
        return apply_write(d, c, p, why);
    case COMMAND_MKDIR:
    case COMMAND_CREATE:
        return apply_mkdir(d, c, why);
    case COMMAND_RMDIR:
        return apply_rmdir(d, c, why);
    case COMMAND_ATTACH:
        return sim_attach_workload(d->sim, p->cx.work->name, why);
    case COMMAND_DETACH:
        return sim_detach_workload(d->sim, p->cx.work->name, why);
    case COMMAND_OPEN_DEVICE:
        return apply_open_device(d, c, p, why);
    case COMMAND_CLOSE_DEVICE:
        return apply_close_device(d, c);
    }
    return -EINVAL;
}

/* The workload that the worker before had made and not answered. */
static uint64_t made_before(struct daemon *d, const struct command *c)
{
    const struct run *run = sim_find_run(d->sim, c->text);
    const struct world *w = sim_world(d->sim);

    return run ? made_of(c, world_workloads(w)[run - world_runs(w)].id) : 0;
}

/* Says whether steps are due because of it: it is not done before they are made. */
static bool command_apply(struct daemon *d, struct command *c)
{
    int64_t until = sim_world(d->sim)->node.run_until_ns;
    struct tree_view view = daemon_view(d);
    struct why why = { 0 };
    struct place p;

    if (c->resent && world_applied(sim_store(d->sim), c->request)) {
        c->made = makes_workload(c) ? made_before(d, c) : 0;
        return false; /* done, but never answered */
    }
    c->result = tree_resolve(&view, c->ino, &p);
    if (c->result == 0) {
        sim_request(d->sim, c->request);
        c->result = apply(d, c, &p, &why);
        sim_request(d->sim, 0);
        if (c->result < 0 && why.text)
            daemon_remember(d, &p, why_text(&why));
    }
    why_release(&why);
    return sim_world(d->sim)->node.run_until_ns != until && sim_is_behind(d->sim);
}

static void reply_made(struct daemon *d, struct command *c)
{
    struct fuse_entry_param e = { .generation = 1 };
    struct tree_view view;
    struct place p;
    int r;

    pthread_mutex_lock(&d->lock);
    view = daemon_view(d);
    r = tree_resolve(&view, c->made, &p);
    if (r == 0) {
        e.ino = p.ino;
        daemon_fill_attr(d, &p, &e.attr);
    }
    pthread_mutex_unlock(&d->lock);
    if (r < 0)
        fuse_reply_err(c->req, EIO);
    else if (c->kind == COMMAND_CREATE)
        fuse_reply_create(c->req, &e, &c->fi);
    else
        fuse_reply_entry(c->req, &e);
}

static void command_reply(struct daemon *d, struct command *c)
{
    if (c->result < 0)
        fuse_reply_err(c->req, -c->result);
    else if (c->kind == COMMAND_WRITE)
        fuse_reply_write(c->req, c->size);
    else if (makes_workload(c))
        reply_made(d, c);
    else if (c->kind == COMMAND_ATTACH || c->kind == COMMAND_OPEN_DEVICE)
        fuse_reply_open(c->req, &c->fi);
    else
        fuse_reply_err(c->req, 0);
    free(c->text);
    free(c);
}

/* --- those who wait -------------------------------------------------------------------------- */

/* Takes out the reads that can be answered now. */
static struct waiting_read *take_ready(struct daemon *d)
{
    struct tree_view view = daemon_view(d);
    struct waiting_read **at = &d->waiting, *ready = NULL;

    while (*at) {
        struct waiting_read *w = *at;
        struct place p;
        const char *text;
        bool now = w->interrupted || tree_resolve(&view, w->ino, &p) < 0 ||
                   stream_available(d, &p, &w->at, &text) != 0;

        if (!now) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = ready;
        ready = w;
    }
    return ready;
}

static void answer_ready(struct daemon *d, struct waiting_read *ready)
{
    while (ready) {
        struct waiting_read *w = ready;

        ready = w->next;
        fuse_req_interrupt_func(w->req, NULL, NULL);
        if (w->interrupted) {
            fuse_reply_err(w->req, EINTR);
            free(w);
        } else {
            stream_reply(d, w);
        }
    }
}

/* Everyone who polls is woken when events happened; who has nothing to read polls again. */
static void wake_pollers(struct daemon *d)
{
    for (int i = 0; i < SHARED_POLLERS; i++) {
        uint64_t handle = atomic_exchange(&d->shared->pollers[i].handle, 0);

        if (handle)
            connection_wake(&d->connection, handle);
    }
}

/* --- the configuration file ------------------------------------------------------------------ */

/* With the lock held. A file that is wrong is said to be, and the node stays as it is. */
static void reload(struct daemon *d)
{
    uint32_t passed = atomic_load(&d->shared->file_passed);
    struct text file = TEXT_INIT;
    struct why why = { 0 };

    if (passed == atomic_load(&d->shared->file_taken))
        return;
    text_addn(&file, d->shared->file, d->shared->file_length);
    if (config_apply_text(d->sim, &d->host, text_str(&file), d->config_path, &why) < 0) {
        log_line(LOG_ERROR, "configuration not applied: %s", why_text(&why));
        errors_set(d->host.errors, ERRORS_NODE, 0, why_text(&why));
    } else {
        log_line(LOG_INFO, "configuration %s applied", d->config_path);
    }
    atomic_store(&d->shared->file_taken, passed);
    text_release(&file);
    why_release(&why);
}

/* What the next worker must know. The length is written last: a half-written text is not taken. */
static void save_config(struct daemon *d)
{
    size_t n = d->host.config->length;

    if (n > SHARED_CONFIG_BYTES ||
        (n == d->shared->config_length && !memcmp(d->shared->config, text_str(d->host.config), n)))
        return;
    atomic_store(&d->shared->config_length, 0);
    memcpy(d->shared->config, text_str(d->host.config), n);
    atomic_store(&d->shared->config_length, (uint32_t)n);
}

/* Names that stood for other GPUs before are to be asked for again. */
static void forget_names(struct daemon *d, uint32_t before, uint32_t now)
{
    uint64_t gpus = tree_ino("gpus", 0);
    char name[16];

    for (uint32_t i = 0; i < before || i < now; i++) {
        int n = snprintf(name, sizeof(name), "%u", i);

        fuse_lowlevel_notify_inval_entry(d->se, gpus, name, (size_t)n);
    }
    fuse_lowlevel_notify_inval_inode(d->se, tree_ino("snapshot", 0), -1, 0);
}

/* --- rounds ---------------------------------------------------------------------------------- */

/* A step in simulated time, as long as it takes in real time; never less often than ten times a second. */
static int64_t tick_ns(const struct daemon *d)
{
    const struct world *w = sim_world(d->sim);
    double real = w->node.speed > 0 ? (double)w->node_plan.step_ns / w->node.speed : 1e8;

    return real < 1e7 ? NS_PER_S / 100 : real > 1e8 ? NS_PER_S / 10 : (int64_t)real;
}

struct round {
    int64_t next_ns;
    bool stepping;        /* what a `step` asked for is under way: other commands come after it */
    struct command *step; /* that one; NULL: of the worker before */
    uint64_t woken;       /* events up to here have woken the pollers */
    uint64_t plan_version;
    uint64_t gpu_set; /* which GPUs there are, in their order, as one number */
    uint32_t gpus;
};

static void wait_for_work(struct daemon *d, const struct round *r)
{
    struct timespec ts = { .tv_sec = r->next_ns / NS_PER_S, .tv_nsec = r->next_ns % NS_PER_S };

    while (!d->stop && (!d->commands || r->stepping) && real_ns(CLOCK_MONOTONIC) < r->next_ns) {
        bool interrupted = false;

        for (struct waiting_read *w = d->waiting; w; w = w->next)
            interrupted |= w->interrupted;
        if (interrupted || pthread_cond_timedwait(&d->wake, &d->lock, &ts) == ETIMEDOUT)
            return;
    }
}

/*
 * Who waits for the lock does not wait for a long `step`, nor for a clock that is faster than this machine: so
 * much work, a moment for the others, and the rest in the next round. Work, as what others take of this core
 * is not ours.
 */
#define STEPS_MOST_NS (10 * NS_PER_MS)
#define BREAK_NS NS_PER_MS

static void make_steps(struct daemon *d, struct round *r)
{
    int64_t until = real_ns(CLOCK_THREAD_CPUTIME_ID) + STEPS_MOST_NS;
    bool more;

    sim_follow(d->sim, real_ns(CLOCK_MONOTONIC));
    do
        more = sim_catch_up(d->sim);
    while (more && real_ns(CLOCK_THREAD_CPUTIME_ID) < until);
    r->next_ns = real_ns(CLOCK_MONOTONIC) + (more ? BREAK_NS : tick_ns(d));
}

/* Whether other GPUs are there than in the round before; the first round of a worker cannot know. */
static bool note_gpus(const struct world *w, struct round *r)
{
    const struct gpu_plan *plans = world_gpu_plans(w);
    uint64_t before = r->gpu_set;

    if (w->plan_version == r->plan_version)
        return false;
    r->plan_version = w->plan_version;
    r->gpus = w->used[SECTION_GPUS];
    r->gpu_set = 1;
    for (uint32_t i = 0; i < r->gpus; i++)
        r->gpu_set = r->gpu_set * UINT64_C(0x100000001b3) + plans[i].id;
    return r->gpu_set != before;
}

static struct command *take_command(struct daemon *d)
{
    struct command *c = d->commands;

    d->commands = c->next;
    if (!d->commands)
        d->commands_end = &d->commands;
    return c;
}

/* Returns those that are to be answered. */
static struct command *apply_commands(struct daemon *d, struct round *r)
{
    struct command *done = NULL, **end = &done;

    /* No more than the world remembers: a worker that dies now leaves all of them applied and unanswered. */
    for (int i = 0; i < APPLIED_KEPT && d->commands && !r->stepping; i++) {
        struct command *c = take_command(d);

        r->stepping = command_apply(d, c);
        *(r->stepping ? &r->step : end) = c;
        if (!r->stepping)
            end = &c->next;
    }
    *end = NULL;
    return done;
}

/* The `step` under way, once its time has passed, before the other commands that are done. */
static struct command *finish_step(struct daemon *d, struct round *r, struct command *done)
{
    struct command *step = r->step;

    if (!r->stepping || sim_is_behind(d->sim))
        return done;
    r->stepping = false;
    r->step = NULL;
    if (!step)
        return done;
    step->next = done;
    return step;
}

static void round_run(struct daemon *d, struct round *r)
{
    struct command *commands, *next;
    struct waiting_read *ready;
    bool wake, renamed;
    uint32_t gpus_before = r->gpus;
    struct pages_push push;

    wait_for_work(d, r);
    commands = apply_commands(d, r);
    if (r->stepping || real_ns(CLOCK_MONOTONIC) >= r->next_ns)
        make_steps(d, r);
    commands = finish_step(d, r, commands);
    reload(d);
    save_config(d);
    push = pages_prepare(d);
    ready = take_ready(d);
    wake = sim_world(d->sim)->node.events != r->woken;
    r->woken = sim_world(d->sim)->node.events;
    renamed = note_gpus(sim_world(d->sim), r);
    pthread_mutex_unlock(&d->lock);

    if (renamed)
        forget_names(d, gpus_before, r->gpus);
    pages_publish(d, &push);
    for (; commands; commands = next) {
        next = commands->next;
        command_reply(d, commands);
    }
    answer_ready(d, ready);
    if (wake)
        wake_pollers(d);
    pthread_mutex_lock(&d->lock);
}

void *publisher_main(void *daemon)
{
    struct daemon *d = daemon;
    struct round r = { 0 };

    pthread_mutex_lock(&d->lock);
    r.stepping = sim_is_behind(d->sim);
    while (!d->connected && !d->stop)
        pthread_cond_wait(&d->wake, &d->lock);
    pthread_mutex_unlock(&d->lock);
    /* Of what the worker before had pushed some pages may be a turn behind: all are asked for anew. */
    fuse_lowlevel_notify_inval_inode(d->se, tree_ino("snapshot", 0), 0, 0);
    pthread_mutex_lock(&d->lock);
    while (!d->stop)
        round_run(d, &r);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}
