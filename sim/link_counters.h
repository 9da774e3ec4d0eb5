/*
 * Link counters: what can be done to the counters of a GPU's NVLinks.
 *
 * Beside what a link has carried since it was there, each has two counters of the same traffic that can be
 * cleared and frozen apart from each other. Commands:
 *
 *     clear errors           the error counts of all links
 *     clear errors 3         of link 3
 *     clear traffic 3 0      counter 0 of link 3
 *     freeze 3 0             it stands still
 *     unfreeze 3 0           and goes on from where it stood
 *     control 3 0 2 255      what it was asked to count: unit and packet filter, which are kept and nothing more
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_LINK_COUNTERS_H
#define SIM_LINK_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct gpu_model;
struct link;
struct why;

enum { LINK_COUNTERS = 2 };

/* While it counts, tx and rx are what the link had carried at its zero; frozen, what it stands at. */
struct link_counter {
    uint64_t tx_bytes, rx_bytes;
    uint32_t filter;
    uint8_t unit;
    uint8_t frozen;
};

/* What counter `set` of the link stands at. */
void link_counter_read(const struct link *link, int set, uint64_t *tx_bytes, uint64_t *rx_bytes);

/* Carries one command out. -EINVAL, -ERANGE, -EOPNOTSUPP (no NVLink) with a sentence. */
int link_counters_apply(struct gpu *g, const struct gpu_model *m, const char *text,
                        struct why *why);

#endif
