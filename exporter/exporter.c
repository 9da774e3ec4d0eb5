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
#include "exporter/push.h"
#include "exporter/server.h"
#include "exporter/stage.h"
#include "exporter/web_config.h"
#include "fusefs/log.h"
#include "sim/unit.h"
#include "sim/why.h"

/* The interval is dcgm-exporter's: there DCGM looks at the GPUs that often. */
enum { GRACE_SECONDS = 10, COLLECT_INTERVAL_MS = 30000, WINDOW_MS = 300000, DAY_MS = 86400000 };

/* --- options into what they mean ------------------------------------------------------------- */

/* What the program runs with. */
struct setup {
    struct dialect_set dialects;
    struct stage_options stage;
    struct web_config web;
    char hostname[256];
    int threads, idle_seconds;
    int faulty; /* -1: as the identity says; 0: absent; 1: nan */
    mode_t unix_mode;
    int otlp_gzip;
    struct push *push; /* NULL: nothing is sent */
};

/* An option that is a whole number. */
struct number {
    const char *option, *text; /* NULL: not given */
    int64_t low, high;
    int64_t value; /* what it is unless given */
};

static int parse_number(struct number *n, struct why *why)
{
    int64_t v;

    if (!n->text)
        return 0;
    if (parse_i64(n->text, &v) < 0 || v < n->low || v > n->high)
        return why_set(why, EINVAL, "--%s: '%s' is not a whole number of %lld to %lld", n->option,
                       n->text, (long long)n->low, (long long)n->high);
    n->value = v;
    return 0;
}

/* An option that is one of a few words. Their position goes to *value. */
struct word {
    const char *option, *text; /* NULL: not given */
    const char *words[5];      /* allowed, up to a NULL */
    int *value;
};

static int parse_word(const struct word *w, struct why *why)
{
    struct text allowed = TEXT_INIT;
    int r;

    for (int i = 0; w->text && w->words[i]; i++)
        if (!strcmp(w->words[i], w->text)) {
            *w->value = i;
            return 0;
        }
    if (!w->text)
        return 0;
    for (int i = 0; w->words[i]; i++)
        text_addf(&allowed, "%s%s", i ? ", " : "", w->words[i]);
    r = why_set(why, EINVAL, "--%s: '%s' is not known; allowed: %s", w->option, w->text,
                text_str(&allowed));
    text_release(&allowed);
    return r;
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
    enum { INTERVAL, XID_WINDOW, CLOCK_WINDOW, THREADS, IDLE, NUMBERS };
    struct number n[NUMBERS] = {
        [INTERVAL] = { "collect-interval", o->interval_ms, 1, DAY_MS, 0 },
        [XID_WINDOW] = { "xid-count-window-size", o->xid_window_ms, 1, DAY_MS, WINDOW_MS },
        [CLOCK_WINDOW] = { "clock-events-count-window-size", o->clock_window_ms, 1, DAY_MS,
                           WINDOW_MS },
        [THREADS] = { "threads", o->threads, 1, 64, 2 },
        [IDLE] = { "idle-timeout", o->idle_timeout, 1, DAY_MS / 1000, 120 },
    };
    struct wishes *w = &s->stage.wishes;

    for (int i = 0; i < NUMBERS; i++)
        if (parse_number(&n[i], why) < 0)
            return -EINVAL;
    s->stage.interval_ns = n[INTERVAL].value * NS_PER_MS;
    w->xid_window_ns = n[XID_WINDOW].value * NS_PER_MS;
    w->clock_window_ns = n[CLOCK_WINDOW].value * NS_PER_MS;
    w->sample_ns = (n[INTERVAL].value ? n[INTERVAL].value : COLLECT_INTERVAL_MS) * NS_PER_MS;
    s->threads = (int)n[THREADS].value;
    s->idle_seconds = (int)n[IDLE].value;
    return 0;
}

static int read_words(struct setup *s, const struct options *o, struct why *why)
{
    int level = LOG_INFO, ignored;
    const struct word words[] = {
        { "faulty-values", o->faulty_values, { "absent", "nan" }, &s->faulty },
        { "hostname-label", o->hostname_label, { "Hostname", "hostname" }, &ignored },
        { "kubernetes-gpu-id-type", o->gpu_id_type, { "uid", "device-name" }, &ignored },
        { "otlp-compression", o->otlp_compression, { "none", "gzip" }, &s->otlp_gzip },
        { "log-level", o->log_level, { "error", "warn", "info", "debug" }, &level },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (parse_word(&words[i], why) < 0)
            return -EINVAL;
    log_threshold = (enum log_level)level;
    return 0;
}

static int read_mode(struct setup *s, const struct options *o, struct why *why)
{
    char *end;
    unsigned long mode = strtoul(o->unix_mode ? o->unix_mode : "0660", &end, 8);

    if (*end || mode > 0777)
        return why_set(why, EINVAL, "--unix-socket-mode: '%s' is not of 0 to 0777", o->unix_mode);
    s->unix_mode = (mode_t)mode;
    return 0;
}

/* What needs no file: everything wrong here is wrong usage. */
static int read_wishes(struct setup *s, const struct options *o, struct why *why)
{
    struct wishes *w = &s->stage.wishes;

    find_hostname(s);
    w->hostname = s->hostname;
    w->hostname_label = o->hostname_label;
    w->no_hostname = o->no_hostname;
    w->pods = o->kubernetes;
    w->old_namespace = o->old_namespace;
    w->replace_blanks = o->replace_blanks;
    for (int i = 0; i < o->address_count; i++)
        if (listen_check(o->addresses[i], why) < 0)
            return -EINVAL;
    if (read_numbers(s, o, why) < 0 || read_words(s, o, why) < 0 || read_mode(s, o, why) < 0)
        return -EINVAL;
    return device_choice_parse(&w->devices, o->devices ? o->devices : "f", why);
}

/* What comes from files. */
static int read_files(struct setup *s, const struct options *o, struct why *why)
{
    const struct dialect *d = dialect_find(&s->dialects, o->identity, why);

    if (!d)
        return -EINVAL;
    s->stage.wishes.dialect = d;
    s->stage.wishes.faulty = s->faulty < 0 ? (enum faulty_values)d->faulty
                             : s->faulty   ? FAULTY_NAN
                                           : FAULTY_ABSENT;
    s->stage.root = o->root;
    s->stage.roots = o->roots;
    s->stage.counters_file = o->collectors;
    return o->web_config ? web_config_load(&s->web, o->web_config, why) : 0;
}

/* Where nothing is to be sent, setup->push stays NULL. */
static int read_push(struct setup *s, const struct options *o, struct why *why)
{
    struct push_options p = {
        .endpoint = o->otlp_endpoint,
        .headers = o->otlp_headers,
        .certificate = o->otlp_certificate,
        .resource = getenv("OTEL_RESOURCE_ATTRIBUTES"),
        .service = getenv("OTEL_SERVICE_NAME"),
        .hostname = s->hostname,
        .node = getenv("NODE_NAME"),
        .interval_ns = 10 * NS_PER_S,
        .gzip = s->otlp_gzip,
    };

    if (o->otlp_interval &&
        (unit_parse(UNIT_NANOSECOND, o->otlp_interval, UNIT_BARE_REFUSED, &p.interval_ns, NULL) ||
         p.interval_ns < 100 * NS_PER_MS || p.interval_ns > 86400 * NS_PER_S))
        return why_set(why, EINVAL, "--otlp-interval: '%s' is not a time of 100ms to 24h, as 10s",
                       o->otlp_interval);
    if (!o->otlp_endpoint)
        return 0;
    s->push = push_new(&p, why);
    return s->push ? 0 : -EINVAL;
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
static int listen_socket(struct server *server, const struct options *o, const struct setup *s,
                         struct why *why)
{
    int fd, r;

    if (!o->unix_socket)
        return 0;
    fd = listen_unix(o->unix_socket, s->unix_mode, o->unix_owner, why);
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

/* Blocked before there are threads, so that none of them is interrupted. */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(struct setup *setup, const struct options *o, struct stage *stage, struct why *why)
{
    const struct server_options options = { stage, setup->threads, setup->idle_seconds };
    struct server *server;
    sigset_t signals;
    bool has_socket;
    int r;

    block_signals(&signals);
    allow_many_files();
    server = server_new(&options);
    r = server ? listen_socket(server, o, setup, why) : why_set(why, ENOMEM, "out of memory");
    has_socket = r == 0 && o->unix_socket;
    if (r == 0)
        r = listen_all(server, o, setup, why);
    if (r == 0 && setup->push)
        r = push_start(setup->push, stage, why);
    if (r == 0)
        wait_for_end(server, &signals);
    push_stop(setup->push, GRACE_SECONDS * NS_PER_S / 2);
    if (server)
        server_stop(server, GRACE_SECONDS * NS_PER_S);
    if (has_socket)
        unlink(o->unix_socket);
    return r;
}

static int run(struct setup *setup, const struct options *o, struct why *why)
{
    int r = read_files(setup, o, why);
    struct stage *stage = r == 0 ? stage_new(&setup->stage, why) : NULL;

    if (stage)
        r = serve(setup, o, stage, why);
    else
        r = -EINVAL;
    stage_free(stage);
    web_config_release(&setup->web);
    return r;
}

/* --- what it says of itself ------------------------------------------------------------------ */

static int usage(const struct why *why)
{
    fprintf(stderr, "fakegpu-exporter: %s; see 'fakegpu-exporter --help'\n", why_text(why));
    return EXIT_USAGE;
}

static void print_identities(const struct dialect_set *set)
{
    for (int i = 0; i < set->count; i++)
        printf("%-20s %-8s %s\n", set->items[i].name, set->items[i].address,
               set->items[i].description);
}

static void print_schema(void)
{
    struct text out = TEXT_INIT;

    dialect_schema(&out);
    fputs(text_str(&out), stdout);
    text_release(&out);
}

/* Whether that was all that was asked for. */
static bool answer_at_once(const struct options *o, const struct dialect_set *dialects)
{
    if (o->help)
        options_help();
    else if (o->version)
        printf("fakegpu-exporter %s\n", FAKEGPUFS_VERSION);
    else if (o->schema)
        print_schema();
    else if (o->list_identities)
        print_identities(dialects);
    else
        return false;
    return true;
}

static int start(struct setup *setup, const struct options *o, struct why *why)
{
    int r = dialect_set_load(&setup->dialects, o->schemas, why);

    if (r == 0 && answer_at_once(o, &setup->dialects))
        return 0;
    if (r == 0 && !dialect_is_known(&setup->dialects, o->identity, why))
        return usage(why);
    if (r == 0)
        r = run(setup, o, why);
    if (r < 0)
        log_line(LOG_ERROR, "%s", why_text(why));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options o = { .root = "/run/fakegpufs", .identity = "dcgm", .kubernetes = true };
    struct setup setup = { .faulty = -1 };
    struct why why = { 0 };
    int r;

    log_program = "fakegpu-exporter";
    if (options_read(&o, argc, argv, &why) < 0 || read_wishes(&setup, &o, &why) < 0 ||
        read_push(&setup, &o, &why) < 0)
        r = usage(&why);
    else
        r = start(&setup, &o, &why);
    push_free(setup.push);
    dialect_set_release(&setup.dialects);
    why_release(&why);
    return r;
}
