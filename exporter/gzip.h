/*
 * Gzip: bytes made smaller, for HTTP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_GZIP_H
#define EXPORTER_GZIP_H

#include "sim/text.h"

/* Appends the bytes as one gzip member. Out of memory is in out->failed. */
void gzip_add(struct text *out, const char *data, size_t length);

#endif
