/*
 * Options: one row is the whole truth about an option. See options.h.
 *
 * Names, short names and environment variables are dcgm-exporter's where it has the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/why.h"

enum option_kind { OPTION_TEXT, OPTION_FLAG, OPTION_LIST };

struct option_row {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    size_t offset;
    const char *environment; /* NULL: none */
    const char *argument;
    const char *help;
};

/* clang-format off */
#define TEXT_ROW(n, l, m, e, a, h) { n, l, OPTION_TEXT, offsetof(struct options, m), e, a, h }
#define FLAG_ROW(n, l, m, e, h)    { n, l, OPTION_FLAG, offsetof(struct options, m), e, NULL, h }
static const struct option_row rows[] = {
    TEXT_ROW("root", 0, root, "FAKEGPUFS_ROOT", "DIR", "the mount (/run/fakegpufs)"),
    TEXT_ROW("roots", 0, roots, "FAKEGPUFS_ROOTS", "DIR", "all mounts in this directory, instead of one"),
    TEXT_ROW("identity", 'i', identity, "FAKEGPU_EXPORTER_IDENTITY", "NAME", "which exporter to be, or a .yaml file (dcgm)"),
    TEXT_ROW("schemas", 0, schemas, "FAKEGPU_EXPORTER_SCHEMAS", "DIR", "a directory with more identities"),
    TEXT_ROW("collectors", 'f', collectors, "DCGM_EXPORTER_COLLECTORS", "FILE", "CSV of DCGM fields (26 default counters)"),
    { "address", 'a', OPTION_LIST, 0, "DCGM_EXPORTER_LISTEN", "ADDR", "HOST:PORT to listen on, may be repeated (:9400)" },
    TEXT_ROW("collect-interval", 'c', interval_ms, "DCGM_EXPORTER_INTERVAL", "MS", "collect no more often than this (live)"),
    FLAG_ROW("kubernetes", 'k', kubernetes, "DCGM_EXPORTER_KUBERNETES", "label series with their pods (true)"),
    TEXT_ROW("kubernetes-gpu-id-type", 0, gpu_id_type, "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", "T", "uid or device-name; both find the same pods"),
    FLAG_ROW("use-old-namespace", 'o', old_namespace, "DCGM_EXPORTER_USE_OLD_NAMESPACE", "labels of dcgm-exporter 1.x"),
    FLAG_ROW("no-hostname", 'n', no_hostname, "DCGM_EXPORTER_NO_HOSTNAME", "leave the hostname out"),
    TEXT_ROW("hostname-label", 0, hostname_label, "DCGM_EXPORTER_HOSTNAME_LABEL", "L", "what its label is called: Hostname or hostname"),
    TEXT_ROW("devices", 'd', devices, "DCGM_EXPORTER_DEVICES_STR", "D", "f, g[:IDS] or i[:IDS]: GPUs, MIG instances (f)"),
    TEXT_ROW("xid-count-window-size", 'x', xid_window_ms, "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "MS", "window of the Xid counts (300000)"),
    TEXT_ROW("clock-events-count-window-size", 0, clock_window_ms, "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE", "MS", "the same of clock events (300000)"),
    FLAG_ROW("replace-blanks-in-model-name", 0, replace_blanks, "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", "dashes for blanks in modelName"),
    TEXT_ROW("faulty-values", 0, faulty_values, "FAKEGPU_EXPORTER_FAULTY_VALUES", "V", "nan or absent, for readings that failed"),
    TEXT_ROW("web-config-file", 0, web_config, "DCGM_EXPORTER_WEB_CONFIG_FILE", "FILE", "TLS and users, as Prometheus' exporters have it"),
    TEXT_ROW("unix-socket", 0, unix_socket, "UDS_SOCKET_PATH", "PATH", "listen there, too (with ENABLE_UDS=true: see the docs)"),
    TEXT_ROW("unix-socket-mode", 0, unix_mode, "UDS_SOCKET_MODE", "MODE", "its permissions (0660)"),
    TEXT_ROW("unix-socket-owner", 0, unix_owner, "UDS_SOCKET_OWNER", "U[:G]", "its owner"),
    TEXT_ROW("idle-timeout", 0, idle_timeout, "FAKEGPU_EXPORTER_IDLE_TIMEOUT", "S", "close connections that ask nothing for so long (120)"),
    TEXT_ROW("otlp-endpoint", 0, otlp_endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT", "URL", "send the metrics there, too, as OTLP over HTTP"),
    TEXT_ROW("otlp-interval", 0, otlp_interval, "FAKEGPU_EXPORTER_OTLP_INTERVAL", "TIME", "how often (10s)"),
    TEXT_ROW("otlp-headers", 0, otlp_headers, "OTEL_EXPORTER_OTLP_HEADERS", "H", "NAME=VALUE,… to send along"),
    TEXT_ROW("otlp-compression", 0, otlp_compression, "OTEL_EXPORTER_OTLP_COMPRESSION", "C", "gzip or none (none)"),
    TEXT_ROW("otlp-certificate", 0, otlp_certificate, "OTEL_EXPORTER_OTLP_CERTIFICATE", "FILE", "authorities to trust"),
    TEXT_ROW("threads", 't', threads, "FAKEGPU_EXPORTER_THREADS", "N", "threads that serve an address (2)"),
    TEXT_ROW("log-level", 0, log_level, "FAKEGPU_EXPORTER_LOG_LEVEL", "L", "error, warn, info or debug (info)"),
    FLAG_ROW("list-identities", 0, list_identities, NULL, "say which there are"),
    FLAG_ROW("identity-schema", 0, schema, NULL, "print the JSON Schema of an identity"),
    FLAG_ROW("help", 'h', help, NULL, "this"),
    FLAG_ROW("version", 'v', version, NULL, "the version"),
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]), FIRST_LONG = 256 };

static const char *row_name_at(const void *unused, int i)
{
    (void)unused;
    return i < ROWS ? rows[i].name : NULL;
}

/* --- one option ------------------------------------------------------------------------------ */

static int set_flag(bool *flag, const char *value)
{
    static const char *const words[] = { "false", "true", "0", "1", "off", "on",
                                         "no",    "yes",  "f", "t", "F",   "T" };

    for (size_t i = 0; value && i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(words[i], value)) {
            *flag = i & 1;
            return 0;
        }
    *flag = true;
    return value ? -EINVAL : 0;
}

static int set_row(struct options *o, const struct option_row *row, const char *value)
{
    void *member = (char *)o + row->offset;

    if (row->kind == OPTION_FLAG)
        return set_flag(member, value);
    if (row->kind == OPTION_TEXT) {
        *(const char **)member = value;
        return 0;
    }
    if (o->address_count == ADDRESSES_MAX)
        return -E2BIG;
    o->addresses[o->address_count++] = value;
    return 0;
}

static int refuse(int err, const char *what, const char *value, struct why *why)
{
    if (err == -E2BIG)
        return why_set(why, EINVAL, "%s: at most %d addresses", what, ADDRESSES_MAX);
    return why_set(why, EINVAL, "%s: '%s' is neither true nor false", what, value);
}

/* --- environment ----------------------------------------------------------------------------- */

static int read_environment(struct options *o, struct why *why)
{
    const char *uds = getenv("ENABLE_UDS");

    for (int i = 0; i < ROWS; i++) {
        const char *value = rows[i].environment ? getenv(rows[i].environment) : NULL;
        int r = value && *value ? set_row(o, &rows[i], value) : 0;

        if (r < 0)
            return refuse(r, rows[i].environment, value, why);
    }
    if (uds && *uds && set_flag(&o->uds, uds) < 0)
        return refuse(-EINVAL, "ENABLE_UDS", uds, why);
    /* A path alone does not open a socket: it may be set for every program of a pod. */
    if (!o->uds)
        o->unix_socket = NULL;
    else if (!o->unix_socket)
        o->unix_socket = "/tmp/fakegpu-exporter.sock";
    return 0;
}

/* --- command line ---------------------------------------------------------------------------- */

static void fill_getopt(struct option longs[ROWS + 1], char letters[ROWS * 3 + 2])
{
    int at = 0;

    letters[at++] = ':';
    for (int i = 0; i < ROWS; i++) {
        bool flag = rows[i].kind == OPTION_FLAG;

        longs[i] = (struct option){ rows[i].name, flag ? optional_argument : required_argument,
                                    NULL, FIRST_LONG + i };
        if (!rows[i].letter)
            continue;
        letters[at++] = rows[i].letter;
        letters[at++] = ':';
        if (flag) /* as in -k=false */
            letters[at++] = ':';
    }
    letters[at] = '\0';
    longs[ROWS] = (struct option){ 0 };
}

static const struct option_row *row_of(int c)
{
    for (int i = 0; i < ROWS; i++)
        if (c == FIRST_LONG + i || (c && c == rows[i].letter))
            return &rows[i];
    return NULL;
}

static int unknown_option(const char *word, struct why *why)
{
    const char *name = word + strspn(word, "-"), *nearest;
    char copy[64];

    snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(name, "="), name);
    nearest = word[1] == '-' ? suggest_nearest(copy, row_name_at, NULL) : NULL;
    return why_set(why, EINVAL, "'%s' is not an option%s%s%s", word,
                   nearest ? "; did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

int options_read(struct options *o, int argc, char **argv, struct why *why)
{
    struct option longs[ROWS + 1];
    char letters[ROWS * 3 + 2];
    int c, r = read_environment(o, why);
    bool addresses_given = false;

    if (r < 0)
        return r;
    fill_getopt(longs, letters);
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct option_row *row = row_of(c);

        if (c == ':')
            return why_set(why, EINVAL, "'%s' needs a value", argv[optind - 1]);
        if (!row)
            return unknown_option(argv[optind - 1], why);
        if (row->kind == OPTION_LIST && !addresses_given) {
            addresses_given = true;
            o->address_count = 0;
        }
        if (optarg && row->kind == OPTION_FLAG && c < FIRST_LONG && *optarg++ != '=')
            return why_set(why, EINVAL, "'%s': each option needs a - of its own", argv[optind - 1]);
        r = set_row(o, row, optarg);
        if (r < 0)
            return refuse(r, row->name, optarg, why);
    }
    if (optind < argc)
        return why_set(why, EINVAL, "'%s' is one argument too many; options begin with -",
                       argv[optind]);
    return 0;
}

void options_help(void)
{
    printf(
        "fakegpu-exporter gives Prometheus what an exporter of real GPUs would, read from a mount.\n\n"
        "usage: fakegpu-exporter [OPTION …]\n\n");
    for (int i = 0; i < ROWS; i++) {
        char head[64];

        snprintf(head, sizeof(head), "%c%c%s--%s%s%s", rows[i].letter ? '-' : ' ',
                 rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ", " : "  ", rows[i].name,
                 rows[i].argument ? " " : "", rows[i].argument ? rows[i].argument : "");
        printf("  %-40s %s\n", head, rows[i].help);
    }
    printf(
        "\nEndpoints: / /metrics /nodes /nodes/NAME/metrics /health. See docs/exporter.md for more.\n");
}
