/*
 * fakegpu-exporter: the program. Reads its options, listens, waits for a signal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "exporter/listen.h"
#include "exporter/options.h"
#include "exporter/server.h"
#include "exporter/stage.h"
#include "exporter/web_config.h"
#include "fusefs/log.h"
#include "sim/unit.h"
#include "sim/why.h"

/* The interval is dcgm-exporter's: there DCGM looks at the GPUs that often. */
enum { GRACE_SECONDS = 10, COLLECT_INTERVAL_MS = 30000 };

static int usage(const struct why *why)
{
    fprintf(stderr, "fakegpu-exporter: %s; see 'fakegpu-exporter --help'\n", why_text(why));
    return EXIT_USAGE;
}

/* --- options into what they mean ------------------------------------------------------------- */

/* What the program runs with. */
struct setup {
    struct dialect_set dialects;
    struct stage_options stage;
    struct web_config web;
    char hostname[256];
    int threads, idle_seconds;
};

static int parse_number(const char *option, const char *text, int64_t low, int64_t high,
                        int64_t *value, struct why *why)
{
    int64_t v;

    if (!text)
        return 0;
    if (parse_i64(text, &v) < 0 || v < low || v > high)
        return why_set(why, EINVAL, "--%s: '%s' is not a whole number of %lld to %lld", option,
                       text, (long long)low, (long long)high);
    *value = v;
    return 0;
}

static int parse_choice(const char *option, const char *text, const char *first, const char *second,
                        int *value, struct why *why)
{
    if (!text)
        return 0;
    if (strcmp(text, first) && strcmp(text, second))
        return why_set(why, EINVAL, "--%s: '%s' is not known; allowed: %s, %s", option, text, first,
                       second);
    *value = !strcmp(text, second);
    return 0;
}

static void find_hostname(struct setup *s)
{
    const char *name = getenv("NODE_NAME");

    if (name && *name)
        snprintf(s->hostname, sizeof(s->hostname), "%s", name);
    else
        gethostname(s->hostname, sizeof(s->hostname) - 1);
}

static int read_numbers(struct setup *s, const struct options *o, struct why *why)
{
    struct wishes *w = &s->stage.wishes;
    int64_t interval = 0, xid = 300000, clock = 300000, threads = 2, idle = 120;
    int r = parse_number("collect-interval", o->interval_ms, 1, 86400000, &interval, why);

    if (r == 0)
        r = parse_number("xid-count-window-size", o->xid_window_ms, 1, 86400000, &xid, why);
    if (r == 0)
        r = parse_number("clock-events-count-window-size", o->clock_window_ms, 1, 86400000, &clock,
                         why);
    if (r == 0)
        r = parse_number("threads", o->threads, 1, 64, &threads, why);
    if (r == 0)
        r = parse_number("idle-timeout", o->idle_timeout, 1, 86400, &idle, why);
    s->stage.interval_ns = interval * NS_PER_MS;
    w->xid_window_ns = xid * NS_PER_MS;
    w->clock_window_ns = clock * NS_PER_MS;
    w->sample_ns = (interval ? interval : COLLECT_INTERVAL_MS) * NS_PER_MS;
    s->threads = (int)threads;
    s->idle_seconds = (int)idle;
    return r;
}

static int read_wishes(struct setup *s, const struct options *o, struct why *why)
{
    struct wishes *w = &s->stage.wishes;
    int faulty = w->dialect->faulty == FAULTY_NAN, label = 0, id_type = 0;
    int r = read_numbers(s, o, why);

    if (r == 0)
        r = parse_choice("faulty-values", o->faulty_values, "absent", "nan", &faulty, why);
    if (r == 0)
        r = parse_choice("hostname-label", o->hostname_label, "Hostname", "hostname", &label, why);
    if (r == 0)
        r = parse_choice("kubernetes-gpu-id-type", o->gpu_id_type, "uid", "device-name", &id_type,
                         why);
    if (r == 0)
        r = device_choice_parse(&w->devices, o->devices ? o->devices : "f", why);
    find_hostname(s);
    w->hostname = s->hostname;
    w->hostname_label = o->hostname_label;
    w->no_hostname = o->no_hostname;
    w->pods = o->kubernetes;
    w->old_namespace = o->old_namespace;
    w->replace_blanks = o->replace_blanks;
    w->faulty = faulty ? FAULTY_NAN : FAULTY_ABSENT;
    return r;
}

static int read_setup(struct setup *s, const struct options *o, struct why *why)
{
    int r = dialect_set_load(&s->dialects, o->schemas, why);

    if (r < 0)
        return r;
    s->stage.wishes.dialect = dialect_find(&s->dialects, o->identity, why);
    if (!s->stage.wishes.dialect)
        return -EINVAL;
    s->stage.root = o->root;
    s->stage.counters_file = o->collectors;
    r = read_wishes(s, o, why);
    if (r == 0 && o->web_config)
        r = web_config_load(&s->web, o->web_config, why);
    return r;
}

/* --- listening ------------------------------------------------------------------------------- */

static int listen_all(struct server *server, const struct options *o, const struct setup *s,
                      struct why *why)
{
    int count = o->address_count ? o->address_count : 1;

    for (int i = 0; i < count; i++) {
        const char *address = o->address_count ? o->addresses[i] : s->stage.wishes.dialect->address;
        int fd = listen_tcp(address, why), r;
        char name[300];

        if (fd < 0)
            return fd;
        listen_name(fd, name, sizeof(name));
        r = server_add(server, fd, &s->web, why);
        if (r < 0)
            return r;
        log_line(LOG_INFO, "listening on http%s://%s", s->web.certificate ? "s" : "", name);
    }
    return 0;
}

/* Plain, whatever the web config says: who may connect is a matter of its permissions. */
static int listen_socket(struct server *server, const struct options *o, struct why *why)
{
    char *end;
    unsigned long mode = strtoul(o->unix_mode ? o->unix_mode : "0660", &end, 8);
    int fd, r;

    if (!o->unix_socket)
        return 0;
    if (*end || mode > 0777)
        return why_set(why, EINVAL, "--unix-socket-mode: '%s' is not of 0 to 0777", o->unix_mode);
    fd = listen_unix(o->unix_socket, (mode_t)mode, o->unix_owner, why);
    if (fd < 0)
        return fd;
    r = server_add(server, fd, NULL, why);
    if (r == 0)
        log_line(LOG_INFO, "listening on %s", o->unix_socket);
    return r;
}

/* --- running --------------------------------------------------------------------------------- */

static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void wait_for_end(struct server *server, const sigset_t *signals)
{
    const struct timespec second = { .tv_sec = 1 };

    for (;;) {
        int signal = sigtimedwait(signals, NULL, &second);

        if (signal == SIGTERM || signal == SIGINT)
            return;
        server_tidy(server);
    }
}

static int run(const struct options *o)
{
    struct setup setup = { 0 };
    struct why why = { 0 };
    struct stage *stage = NULL;
    struct server *server = NULL;
    sigset_t signals;
    int r = read_setup(&setup, o, &why);

    /* Blocked before there are threads, so that none of them is interrupted. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    allow_many_files();
    if (r == 0 && !(stage = stage_new(&setup.stage, &why)))
        r = -EINVAL;
    if (r == 0) {
        server = server_new(&(struct server_options){ stage, setup.threads, setup.idle_seconds });
        r = server ? 0 : why_set(&why, ENOMEM, "out of memory");
    }
    if (r == 0)
        r = listen_all(server, o, &setup, &why);
    if (r == 0)
        r = listen_socket(server, o, &why);
    if (r == 0)
        wait_for_end(server, &signals);
    else
        log_line(LOG_ERROR, "%s", why_text(&why));
    if (server)
        server_stop(server, GRACE_SECONDS * NS_PER_S);
    if (r == 0 && o->unix_socket)
        unlink(o->unix_socket);
    stage_free(stage);
    web_config_release(&setup.web);
    dialect_set_release(&setup.dialects);
    why_release(&why);
    return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options o = { .root = "/run/fakegpufs", .identity = "dcgm", .kubernetes = true };
    struct why why = { 0 };
    int r;

    log_program = "fakegpu-exporter";
    if (options_read(&o, argc, argv, &why) < 0) {
        r = usage(&why);
        why_release(&why);
        return r;
    }
    if (o.help) {
        options_help();
        return 0;
    }
    if (o.version) {
        printf("fakegpu-exporter %s\n", FAKEGPUFS_VERSION);
        return 0;
    }
    return run(&o);
}
