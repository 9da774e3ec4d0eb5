/*
 * Accept: what a client says it can read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_ACCEPT_H
#define EXPORTER_ACCEPT_H

#include <stdbool.h>

/* Of an Accept header (NULL: none): whether OpenMetrics is liked at least as much as plain text. */
bool accepts_openmetrics(const char *accept);

/* Of an Accept-Encoding header (NULL: none): whether gzip may be sent. */
bool accepts_gzip(const char *accept_encoding);

#endif
