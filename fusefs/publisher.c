/*
 * Publisher: the thread that owns the simulator.
 *
 * Each round: apply what was asked for, move the time, render the snapshot, let go of the lock, push the
 * snapshot, then answer. So when a command is answered every reader can see its effect. It is the only
 * thread that notifies the kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fusefs/daemon.h"
#include "fusefs/errors.h"
#include "fusefs/log.h"
#include "fusefs/nodes.h"
#include "sim/library.h"

/* How often the configuration file is looked at. */
#define WATCH_NS NS_PER_S

static int64_t monotonic_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* --- snapshot -------------------------------------------------------------------------------- */

static void fill_gpu(const struct world *w, int i, struct snapshot_gpu *s)
{
    const struct gpu *g = &world_gpus(w)[i];
    const struct gpu_plan *p = &world_gpu_plans(w)[i];

    memset(s, 0, sizeof(*s));
    s->generation = w->node.generation;
    s->plan_version = w->plan_version;
    s->id = p->id;
    s->flags = gpu_has(g, CONDITION_LOST) ? SNAPSHOT_LOST : 0;
    memcpy(s->uuid, p->uuid, sizeof(s->uuid));
    s->sample = g->sample;
}

static void fill_node(const struct world *w, struct snapshot_node *s)
{
    *s = (struct snapshot_node){
        .magic = SNAPSHOT_MAGIC,
        .registry = snapshot_registry(),
        .generation = w->node.generation,
        .plan_version = w->plan_version,
        .now_ns = w->node.now_ns,
        .gpu_count = w->used[SECTION_GPUS],
    };
}

static bool fit_pages(struct daemon *d, size_t count)
{
    struct snapshot_page *pages;

    if (d->page_count >= count)
        return true; /* GPUs that went leave an empty page behind */
    pages = aligned_alloc(SNAPSHOT_PAGE, count * SNAPSHOT_PAGE);
    if (!pages)
        return false;
    memset(pages, 0, count * SNAPSHOT_PAGE);
    if (d->pages)
        memcpy(pages, d->pages, d->page_count * SNAPSHOT_PAGE);
    free(d->pages);
    d->pages = pages;
    d->page_count = count;
    return true;
}

void snapshot_render(struct daemon *d)
{
    const struct world *w = sim_world(d->sim);
    uint32_t gpus = w->used[SECTION_GPUS];

    if (d->pages_generation == w->node.generation || !fit_pages(d, 1 + (size_t)gpus))
        return;
    /* One generation of pages after the other, whatever the world's own count did meanwhile. */
    for (size_t i = 0; i < d->page_count; i++) {
        struct snapshot_page *page = &d->pages[i];
        uint64_t next = page->first + 1;

        if (i == 0)
            fill_node(w, &page->slot[next & 1].node);
        else if (i <= gpus)
            fill_gpu(w, (int)i - 1, &page->slot[next & 1].gpu);
        else
            memset(&page->slot[next & 1], 0, SNAPSHOT_SLOT);
        page->first = page->last = next;
    }
    d->pages_generation = w->node.generation;
}

/* A copy to push, or NULL when nobody has it open or nothing is new. The caller frees it. */
static char *snapshot_copy(struct daemon *d, uint64_t *pushed, size_t *bytes)
{
    char *copy;

    if (atomic_load(&d->shared->snapshot_opens) <= 0 ||
        *pushed == sim_world(d->sim)->node.generation)
        return NULL;
    snapshot_render(d);
    *bytes = d->page_count * SNAPSHOT_PAGE;
    copy = malloc(*bytes);
    if (!copy)
        return NULL;
    memcpy(copy, d->pages, *bytes);
    *pushed = d->pages_generation;
    return copy;
}

static void snapshot_push(struct daemon *d, char *copy, size_t bytes)
{
    struct fuse_bufvec vec = FUSE_BUFVEC_INIT(bytes);

    if (!copy)
        return;
    vec.buf[0].mem = copy;
    fuse_lowlevel_notify_store(d->se, tree_ino("snapshot", 0), 0, &vec, 0);
    free(copy);
}

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

/* The text without surrounding white space, in place. */
static char *trimmed(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
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
    return p->cx.def->store(&p->cx, trimmed(c->text), why);
}

static int apply_mkdir(struct daemon *d, struct command *c, struct why *why)
{
    struct workload_spec spec;
    uint64_t id;
    int r;

    workload_spec_init(&spec);
    snprintf(spec.name, sizeof(spec.name), "%s", c->text);
    spec.uid = c->uid;
    r = sim_add_workload(d->sim, &spec, &id, why);
    c->made = r < 0 ? 0 : tree_ino("workloads/%w", id);
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

/* The workload of a mkdir that the worker before had made and not answered. */
static uint64_t made_before(struct daemon *d, const struct command *c)
{
    const struct run *run = sim_find_run(d->sim, c->text);
    const struct world *w = sim_world(d->sim);

    return run ? tree_ino("workloads/%w", world_workloads(w)[run - world_runs(w)].id) : 0;
}

static void command_apply(struct daemon *d, struct command *c)
{
    struct tree_view view = daemon_view(d);
    struct why why = { 0 };
    struct place p;

    if (c->resent && world_applied(sim_store(d->sim), c->request)) {
        c->made = c->kind == COMMAND_MKDIR ? made_before(d, c) : 0;
        return; /* done, but never answered */
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
    else
        fuse_reply_entry(c->req, &e);
}

static void command_reply(struct daemon *d, struct command *c)
{
    if (c->result < 0)
        fuse_reply_err(c->req, -c->result);
    else if (c->kind == COMMAND_WRITE)
        fuse_reply_write(c->req, c->size);
    else if (c->kind == COMMAND_MKDIR)
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
                   stream_available(d, &p, w->offset, &text) != 0;

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

struct watch {
    int64_t next_ns;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    bool known;
};

/* Follows symbolic links, so that the swap of a mounted ConfigMap is another file. */
static bool file_changed(const char *path, struct watch *w)
{
    struct stat st;
    bool changed;

    if (stat(path, &st) < 0)
        return false;
    changed = w->known &&
              (st.st_dev != w->dev || st.st_ino != w->ino || st.st_size != w->size ||
               st.st_mtim.tv_sec != w->mtime.tv_sec || st.st_mtim.tv_nsec != w->mtime.tv_nsec);
    *w = (struct watch){ w->next_ns, st.st_dev, st.st_ino, st.st_size, st.st_mtim, true };
    return changed;
}

/* With the lock held. A file that is wrong is said to be, and the node stays as it is. */
static void reload(struct daemon *d)
{
    struct why why = { 0 };
    unsigned long length;
    char *text;
    int r = library_read_file(d->config_path, &text, &length, &why);

    if (r == 0) {
        r = config_apply_text(d->sim, &d->host, text, d->config_path, &why);
        free(text);
    }
    if (r < 0) {
        log_line(LOG_ERROR, "configuration not applied: %s", why_text(&why));
        errors_set(d->host.errors, ERRORS_NODE, 0, why_text(&why));
    } else {
        log_line(LOG_INFO, "configuration %s applied", d->config_path);
    }
    why_release(&why);
}

static void watch_config(struct daemon *d, struct watch *w, int64_t now_ns)
{
    bool wanted = *d->reload_flag;

    *d->reload_flag = 0;
    if (!d->config_path)
        return;
    if (now_ns >= w->next_ns) {
        w->next_ns = now_ns + WATCH_NS;
        wanted |= file_changed(d->config_path, w);
    }
    if (wanted)
        reload(d);
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

static void wait_for_work(struct daemon *d, int64_t until_ns)
{
    struct timespec ts = { .tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S };

    while (!d->stop && !d->commands && monotonic_ns() < until_ns) {
        bool interrupted = false;

        for (struct waiting_read *w = d->waiting; w; w = w->next)
            interrupted |= w->interrupted;
        if (interrupted || pthread_cond_timedwait(&d->wake, &d->lock, &ts) == ETIMEDOUT)
            return;
    }
}

static void advance(struct daemon *d, int64_t now_ns)
{
    int64_t before = atomic_load(&d->shared->advanced_ns);

    if (before)
        sim_advance(d->sim, now_ns - before);
    atomic_store(&d->shared->advanced_ns, now_ns);
}

/* A step in simulated time, as long as it takes in real time; never less often than ten times a second. */
static int64_t tick_ns(const struct daemon *d)
{
    const struct world *w = sim_world(d->sim);
    double real = w->node.speed > 0 ? (double)w->node_plan.step_ns / w->node.speed : 1e8;

    return real < 1e7 ? NS_PER_S / 100 : real > 1e8 ? NS_PER_S / 10 : (int64_t)real;
}

struct round {
    int64_t next_ns;
    uint64_t pushed; /* generation */
    uint64_t woken;  /* events up to here have woken the pollers */
    uint64_t plan_version;
    uint32_t gpus;
    struct watch watch;
};

static struct command *take_commands(struct daemon *d)
{
    struct command *first = d->commands, **end = &d->commands;

    /* No more than the world remembers: a worker that dies now leaves all of them applied and unanswered. */
    for (int i = 0; i < APPLIED_KEPT && *end; i++)
        end = &(*end)->next;
    d->commands = *end;
    *end = NULL;
    if (!d->commands)
        d->commands_end = &d->commands;
    return first;
}

static void round_run(struct daemon *d, struct round *r)
{
    struct command *commands, *next;
    struct waiting_read *ready;
    bool wake, renamed;
    uint32_t gpus_before = r->gpus;
    size_t bytes = 0;
    char *pages;

    wait_for_work(d, r->next_ns);
    commands = take_commands(d);
    for (struct command *c = commands; c; c = c->next)
        command_apply(d, c);
    if (monotonic_ns() >= r->next_ns) {
        advance(d, monotonic_ns());
        r->next_ns = monotonic_ns() + tick_ns(d);
    }
    watch_config(d, &r->watch, monotonic_ns());
    save_config(d);
    pages = snapshot_copy(d, &r->pushed, &bytes);
    ready = take_ready(d);
    wake = sim_world(d->sim)->node.events != r->woken;
    r->woken = sim_world(d->sim)->node.events;
    renamed = sim_world(d->sim)->plan_version != r->plan_version;
    r->plan_version = sim_world(d->sim)->plan_version;
    r->gpus = sim_world(d->sim)->used[SECTION_GPUS];
    pthread_mutex_unlock(&d->lock);

    if (renamed && r->gpus != gpus_before)
        forget_names(d, gpus_before, r->gpus);
    snapshot_push(d, pages, bytes);
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
    sim_resume(d->sim);
    r.plan_version = sim_world(d->sim)->plan_version;
    r.gpus = sim_world(d->sim)->used[SECTION_GPUS];
    while (!d->stop)
        round_run(d, &r);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}
