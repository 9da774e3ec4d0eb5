/*
 * Progress: how a workload is doing. See progress.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "sim/unit.h"
#include "fusefs/realtime.h"

enum { DRAW_MS = 200, LINE_MS = 10000, BAR_LEAST = 10, BAR_MOST = 40, WIDTH_UNKNOWN = 80 };

static int terminal_width(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
                                                                       : WIDTH_UNKNOWN;
}

/* --- what there is to show ------------------------------------------------------------------- */

struct view {
    int64_t done_ns, total_ns; /* total 0: it goes on for ever */
    int64_t memory_bytes, percent, power_mw;
    double speed; /* 0: time stands still */
};

/* The power of its GPUs together, and how many they are. */
static int64_t power_of(const struct progress *p, int *count)
{
    int64_t sum = 0, mw;
    struct reader_gpu gpu;
    const char *s = text_str(&p->devices);
    char *end;

    for (*count = 0;; s = end + (*end == ','), ++*count) {
        long index = strtol(s, &end, 10);

        if (end == s)
            return sum;
        if (reader_gpu(p->client->reader, (int)index, &gpu) == 0 && !gpu.lost &&
            metric_read(&gpu.sample, METRIC_POWER_USAGE, &mw) == 0)
            sum += mw;
    }
}

static double speed_of(const struct client *c)
{
    struct text clock = TEXT_INIT;
    const char *found;
    double speed = 0;

    if (client_read(c, &clock, "control/clock") == 0 && !strncmp(text_str(&clock), "running", 7) &&
        (found = strstr(text_str(&clock), "\nspeed ")))
        speed = strtod(found + strlen("\nspeed "), NULL);
    text_release(&clock);
    return speed;
}

static bool look(const struct progress *p, struct view *m)
{
    struct text text = TEXT_INIT;
    bool there = client_read(p->client, &text, "workloads/%s/progress", p->name) == 0;
    const char *s = text_str(&text);
    int gpus;

    *m = (struct view){
        .done_ns = client_line_number(s, "progress_ns", 0),
        .total_ns = client_line_number(s, "total_ns", 0),
        .memory_bytes = client_line_number(s, "memory_bytes", 0),
        .percent = client_line_number(s, "utilization_percent", 0),
    };
    text_release(&text);
    if (!there)
        return false;
    m->power_mw = power_of(p, &gpus);
    m->percent /= gpus ? gpus : 1;
    m->speed = speed_of(p->client);
    return true;
}

/* --- as text --------------------------------------------------------------------------------- */

/* "1h02m", "3m20s", "12s": two places are enough. */
static void add_duration(struct text *out, int64_t ns)
{
    int64_t s = (ns + NS_PER_S / 2) / NS_PER_S;

    if (s >= 3600)
        text_addf(out, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else if (s >= 60)
        text_addf(out, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else
        text_addf(out, "%" PRId64 "s", s);
}

static void add_left(struct text *out, const struct view *m)
{
    if (!m->total_ns) {
        add_duration(out, m->done_ns);
        text_add(out, " so far");
    } else if (m->speed > 0) {
        add_duration(out, (int64_t)((double)(m->total_ns - m->done_ns) / m->speed));
        text_add(out, " left");
    } else {
        text_add(out, "time stands still");
    }
}

static void add_load(struct text *out, const struct view *m)
{
    text_addf(out, "%" PRId64 "%%  %.1f GiB  %" PRId64 " W", m->percent,
              (double)m->memory_bytes / 0x1p30, m->power_mw / 1000);
}

static int percent_done(const struct view *m)
{
    return m->total_ns ? (int)(100 * (double)m->done_ns / (double)m->total_ns) : 0;
}

static void add_bar(struct text *out, const struct view *m, int width)
{
    int full = m->total_ns ? (int)((double)m->done_ns / (double)m->total_ns * width) : 0;

    text_add(out, "[");
    for (int i = 0; i < width; i++)
        text_add(out, i < full ? "#" : ".");
    text_addf(out, "] %3d%%  ", percent_done(m));
}

/* Redrawn over itself; never longer than a line, or it could not be. */
static void draw(struct progress *p, const struct view *m)
{
    struct text line = TEXT_INIT, rest = TEXT_INIT;
    int width = terminal_width() - 1, room;

    add_left(&rest, m);
    text_add(&rest, "  ");
    add_load(&rest, m);
    text_addf(&line, "%s  ", p->name);
    room = width - (int)line.length - (int)rest.length - (int)strlen("[] 100%  ");
    if (m->total_ns && room >= BAR_LEAST)
        add_bar(&line, m, room < BAR_MOST ? room : BAR_MOST);
    else if (m->total_ns)
        text_addf(&line, "%d%%  ", percent_done(m));
    text_add(&line, text_str(&rest));
    printf("\r%.*s\033[K", width, text_str(&line));
    fflush(stdout);
    p->drawn = true;
    text_release(&line);
    text_release(&rest);
}

static void print_line(const struct progress *p, const struct view *m)
{
    struct text line = TEXT_INIT;

    text_addf(&line, "%s: ", p->name);
    if (m->total_ns)
        text_addf(&line, "%d%%, ", percent_done(m));
    add_left(&line, m);
    text_add(&line, ", ");
    add_load(&line, m);
    puts(text_str(&line));
    fflush(stdout);
    text_release(&line);
}

/* --- when ------------------------------------------------------------------------------------ */

void progress_begin(struct progress *p, const struct client *client, const char *name)
{
    const char *term = getenv("TERM");

    *p = (struct progress){ .client = client, .name = name };
    p->terminal = isatty(STDOUT_FILENO) && !(term && !strcmp(term, "dumb"));
    client_read(client, &p->devices, "workloads/%s/devices", name);
}

int progress_show(struct progress *p)
{
    int64_t now = real_ns(CLOCK_MONOTONIC);
    struct view m;

    if (now >= p->next_ns) {
        if (look(p, &m))
            p->terminal ? draw(p, &m) : print_line(p, &m);
        p->next_ns = now + (p->terminal ? DRAW_MS : LINE_MS) * NS_PER_MS;
    }
    return (int)((p->next_ns - now) / NS_PER_MS) + 1;
}

void progress_end(struct progress *p)
{
    if (p->drawn)
        printf("\r\033[K");
    fflush(stdout);
    p->drawn = false;
    text_release(&p->devices);
}
