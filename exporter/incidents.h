/*
 * Incidents: Xid errors and changes of the clocks' reasons, read from the mount's `events`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_INCIDENTS_H
#define EXPORTER_INCIDENTS_H

#include "exporter/view.h"

struct incidents;
struct reader;

/* NULL when out of memory. */
struct incidents *incidents_new(void);
void incidents_free(struct incidents *in);

/*
 * Reads what is new. Those since `since_ns` are in *list until the next call, and for each GPU one change of
 * the clocks before that, which says what held then. 0 or -errno.
 */
int incidents_follow(struct incidents *in, struct reader *reader, int64_t since_ns,
                     const struct incident **list, size_t *count);

#endif
