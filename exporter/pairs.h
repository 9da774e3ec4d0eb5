/*
 * Pairs: "name=value,name=value" as OpenTelemetry's environment variables have it, values percent-encoded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_PAIRS_H
#define EXPORTER_PAIRS_H

#include "exporter/families.h"

struct why;

/*
 * Reads them into `pairs` behind the *count there are, at most `room` in all. -EINVAL with a sentence that
 * begins with `what` and shows no value: it may be a secret.
 */
int pairs_parse(const char *what, const char *text, struct label *pairs, size_t *count, size_t room,
                struct arena *arena, struct why *why);

#endif
