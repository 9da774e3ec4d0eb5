/*
 * Options: what the command line and the environment ask of the exporter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_OPTIONS_H
#define EXPORTER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct why;

enum { ADDRESSES_MAX = 16, EXIT_USAGE = 64 };

/* Texts are of the command line or the environment: borrowed. */
struct options {
    const char *root, *roots;
    const char *identity;
    const char *schemas;
    const char *collectors;
    const char *addresses[ADDRESSES_MAX];
    int address_count;
    const char *interval_ms; /* NULL: live */
    const char *xid_window_ms, *clock_window_ms;
    const char *devices;
    const char *node_name;
    const char *hostname_label;
    const char *faulty_values;
    const char *gpu_id_type;
    const char *web_config;
    const char *unix_socket, *unix_mode, *unix_owner;
    const char *otlp_endpoint, *otlp_interval, *otlp_headers, *otlp_compression, *otlp_certificate;
    const char *threads, *idle_timeout;
    const char *log_level;
    bool kubernetes, old_namespace, no_hostname, replace_blanks, uds;
    bool help, version, schema, list_identities;
};

/* Reads both; the command line wins. 0, or -EINVAL with a sentence. */
int options_read(struct options *options, int argc, char **argv, struct why *why);

/* Prints the help. */
void options_help(void);

#endif
