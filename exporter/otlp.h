/*
 * OTLP: a set of families as a request of OpenTelemetry's protocol.
 *
 * Gauges and cumulative sums under the names that the text formats have. What Prometheus calls a label is an
 * attribute of the point; what is the same for all of them belongs to the resource.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_OTLP_H
#define EXPORTER_OTLP_H

#include "exporter/families.h"
#include "sim/text.h"

struct otlp_frame {
    const struct label *attributes; /* of the resource */
    size_t attribute_count;
    uint64_t start_ns,
        now_ns; /* real time since the epoch: from when sums count, and of all points */
};

/* Appends the bytes of the request. Out of memory is in out->failed. */
void otlp_encode(struct text *out, const struct family_set *set, const struct otlp_frame *frame);

/* How many points the receiver did not want, from the body of its answer; what it said of them in `said`. */
int64_t otlp_rejected(const void *body, size_t length, struct text *said);

#endif
