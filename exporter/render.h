/*
 * Render: a set of families as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_RENDER_H
#define EXPORTER_RENDER_H

#include "exporter/families.h"
#include "sim/text.h"

/* A set and those that hang on it are written as one, a family of theirs at a time. */

/* Prometheus' text format, version 0.0.4. Out of memory is in out->failed. */
void render_text(struct text *out, const struct family_set *set);

/* OpenMetrics 1.0, with the same names of samples. */
void render_openmetrics(struct text *out, const struct family_set *set);

/* Appends a number as `format` says. */
void render_number(struct text *out, enum number_format format, int decimals, double value);

#endif
