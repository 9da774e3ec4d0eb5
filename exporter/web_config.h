/*
 * Web config: TLS and users, in the file format that Prometheus' exporters share (--web-config-file).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_WEB_CONFIG_H
#define EXPORTER_WEB_CONFIG_H

#include "sim/arena.h"

struct users;
struct why;

struct web_config {
    char *certificate, *key; /* PEM texts; NULL: no TLS */
    const char *priorities;  /* for GnuTLS */
    struct users *users;     /* NULL: everybody may ask */
    struct arena arena;
};

/* Reads the file and those it names (relative to it). -errno with a sentence. */
int web_config_load(struct web_config *config, const char *path, struct why *why);
void web_config_release(struct web_config *config);

#endif
