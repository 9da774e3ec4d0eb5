/*
 * Drive: the clock of a mount in a command's hands. See drive.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fusefs/realtime.h"
#include "sim/workload.h"

enum { FILE_MOST = 4 << 20, STEP_MOST_H = 24 };

#define WAIT_LEAST_NS 1e7
#define WAIT_MOST_NS 1e8
#define LATE_MOST_NS 1e9

/* --- the clock ------------------------------------------------------------------------------- */

int drive_begin(struct drive *d, const struct client *client, struct why *why)
{
    struct text shown = TEXT_INIT;
    char state[16], speed[40], now[40], step[40];
    int r;

    *d = (struct drive){ .client = client, .clock = -1 };
    r = drive_peek(client, &shown, "control/clock");
    if (r < 0)
        r = why_set(why, -r, "%s/control/clock: %s", client->root, strerror(-r));
    else if (sscanf(text_str(&shown), "%15s speed %39s now %39s step %39s", state, speed, now,
                    step) != 4 ||
             parse_real(speed, &d->speed) < 0 ||
             unit_parse(UNIT_NANOSECOND, step, UNIT_BARE_REFUSED, &d->step_ns, NULL) < 0)
        r = why_set(why, EPROTO, "%s/control/clock shows something unknown", client->root);
    else
        d->running = !strcmp(state, "running");
    text_release(&shown);
    return r;
}

int drive_alive(const struct client *client, struct why *why)
{
    struct text shown = TEXT_INIT;
    int r = drive_peek(client, &shown, "control/clock");

    text_release(&shown);
    if (r == -ENOENT) /* the mount point is there, and nothing is mounted on it */
        r = -ENOTCONN;
    if (r < 0)
        why_set(why, -r, client_is_lost(r) ? "the daemon of %s is gone" : "cannot read %s: %s",
                client->root, strerror(-r));
    return r;
}

int drive_pause(struct drive *d, struct why *why)
{
    return client_put(d->client, "control/clock", "pause", why);
}

int drive_speed(struct drive *d, double speed, struct why *why)
{
    struct text command = TEXT_INIT;
    int r;

    text_add(&command, "speed ");
    print_real(&command, speed);
    r = client_put(d->client, "control/clock", text_str(&command), why);
    text_release(&command);
    return r;
}

/* Many of them are made: one write each, on a descriptor that stays open. */
static int put_step(struct drive *d, const struct text *command, struct why *why)
{
    struct text path = TEXT_INIT;
    ssize_t n;

    if (d->clock < 0) {
        text_addf(&path, "%s/control/clock", d->client->root);
        d->clock = open(text_str(&path), O_WRONLY | O_CLOEXEC);
        text_release(&path);
    }
    do
        n = d->clock < 0 ? -1 : write(d->clock, text_str(command), command->length);
    while (n < 0 && d->clock >= 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    return client_is_lost(-errno)
               ? why_set(why, errno, "the daemon of %s is gone", d->client->root)
               : why_set(why, errno, "%s/control/clock: %s", d->client->root, strerror(errno));
}

int drive_step(struct drive *d, int64_t ns, struct why *why)
{
    const int64_t most = STEP_MOST_H * 3600 * NS_PER_S;
    struct text command = TEXT_INIT;
    int r = 0;

    for (; r == 0 && ns > 0; ns -= most) {
        text_cut(&command, 0);
        text_add(&command, "step ");
        unit_print(&command, UNIT_NANOSECOND, ns < most ? ns : most);
        r = put_step(d, &command, why);
    }
    text_release(&command);
    return r;
}

/* Simulated time that is due by now. What a machine is late by more than a second is not made up for. */
static double pace_due(struct drive *d, double speed)
{
    int64_t now = real_ns(CLOCK_MONOTONIC);

    d->due_ns += d->paced_ns ? (double)(now - d->paced_ns) * speed : 0;
    if (d->due_ns > LATE_MOST_NS * speed)
        d->due_ns = LATE_MOST_NS * speed;
    d->paced_ns = now;
    return d->due_ns;
}

/* Nobody is woken a thousand times a second for a clock that is fast, or waits for one that hardly moves. */
static void pace_wait(const struct drive *d, double speed)
{
    double ns = speed > 0 ? ((double)d->step_ns - d->due_ns) / speed : WAIT_MOST_NS;

    ns = ns < WAIT_LEAST_NS ? WAIT_LEAST_NS : ns > WAIT_MOST_NS ? WAIT_MOST_NS : ns;
    nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

int drive_pace(struct drive *d, double speed, int64_t ns, struct why *why)
{
    int64_t steps, most = (ns + d->step_ns - 1) / d->step_ns;

    if (pace_due(d, speed) < (double)d->step_ns) {
        pace_wait(d, speed);
        pace_due(d, speed);
    }
    steps = (int64_t)(d->due_ns / (double)d->step_ns);
    if (steps == 0)
        return drive_alive(d->client, why);
    if (steps > most)
        steps = most;
    d->due_ns -= (double)(steps * d->step_ns);
    return drive_step(d, steps * d->step_ns, why);
}

int drive_end(struct drive *d, bool restore, struct why *why)
{
    int r = 0;

    if (d->clock >= 0)
        close(d->clock);
    if (restore && d->step_ns)
        r = drive_speed(d, d->speed, why);
    if (r == 0 && restore && d->step_ns)
        r = client_put(d->client, "control/clock", d->running ? "resume" : "pause", why);
    *d = (struct drive){ .clock = -1 };
    return r;
}

/* --- files ----------------------------------------------------------------------------------- */

static int read_all(int fd, struct text *out)
{
    size_t before = out->length;
    char chunk[4096];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        text_addn(out, chunk, (size_t)n);
        if (out->length - before > FILE_MOST)
            return -EFBIG;
    }
    return out->failed ? -ENOMEM : 0;
}

int drive_peek(const struct client *c, struct text *out, const char *path)
{
    struct text whole = TEXT_INIT;
    size_t before = out->length;
    int fd, r;

    text_addf(&whole, "%s/%s", c->root, path);
    fd = open(text_str(&whole), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    r = fd < 0 ? -errno : read_all(fd, out);
    if (fd >= 0)
        close(fd);
    text_release(&whole);
    if (r == 0 && out->length > before && out->data[out->length - 1] == '\n')
        text_cut(out, out->length - 1);
    return r;
}

bool drive_exists(const struct client *c, const char *path)
{
    struct text whole = TEXT_INIT;
    struct stat st;
    bool there;

    text_addf(&whole, "%s/%s", c->root, path);
    there = lstat(text_str(&whole), &st) == 0;
    text_release(&whole);
    return there;
}

/* --- GPUs ------------------------------------------------------------------------------------ */

bool drive_every_gpu(const struct bind_list *names)
{
    const struct device_name *items = names->items;

    return names->count == 1 && (!strcmp(items[0].text, "all") || !strcmp(items[0].text, "any"));
}

int drive_find_gpus(const struct client *c, const struct bind_list *names, int **gpus,
                    struct why *why)
{
    const struct device_name *items = names->items;
    struct reader_node node;
    int count, r = reader_node(c->reader, &node);

    if (r < 0)
        return why_set(why, -r, "cannot read %s: %s", c->root, strerror(-r));
    count = drive_every_gpu(names) ? node.gpu_count : (int)names->count;
    *gpus = calloc((size_t)count + 1, sizeof(**gpus));
    if (!*gpus)
        return why_set(why, ENOMEM, "out of memory");
    for (int i = 0; i < count; i++) {
        int64_t index;

        r = drive_every_gpu(names) ? i
            : parse_i64(items[i].text, &index) == 0 && index >= 0 && index < node.gpu_count
                ? (int)index
                : client_gpu_index(c, items[i].text, why);
        if (r < 0) {
            free(*gpus);
            *gpus = NULL;
            return r;
        }
        (*gpus)[i] = r;
    }
    return count;
}

/* --- as shell lines -------------------------------------------------------------------------- */

/* A shell's echo writes line by line, and each line would be a command: several go through cat. */
void shell_put(struct text *out, const char *path, const char *text)
{
    bool lines = strchr(text, '\n') != NULL;

    text_add(out, lines ? "cat" : "echo ");
    if (!lines)
        shell_quote(out, text);
    text_add(out, " > ");
    shell_quote(out, path);
    text_addf(out, lines ? " <<'END'\n%s\nEND\n" : "\n", text);
}
