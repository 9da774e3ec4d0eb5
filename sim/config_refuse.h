/*
 * Config: refusals of what does not go together, found long after reading.
 *
 * A sentence names file, line, column and key as if the reading itself had refused: the key may have been
 * given in `gpus`, in `overrides`, or in the form with `nodes:` under another name. For config_resolve.c and
 * its helpers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_REFUSE_H
#define SIM_CONFIG_REFUSE_H

#include "sim/config_resolve.h"

/* The GPUs of a configuration while they are worked out. */
struct resolver {
    const struct config *cfg;
    struct gpu_entry *entries;
    int count;           /* of entries, so far */
    int *override_of;    /* for each of cfg->overrides: the GPU it is about, or -1 */
    int64_t next_domain; /* behind those of the nodes so far */
    struct why *why;
};

enum { NO_ITEM = -1 };

/* About a key of a GPU. All of these return -err. */
int refuse_gpu(struct resolver *r, int err, const struct gpu_entry *e, const char *key,
               const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* About the memory of a GPU's own load. */
int refuse_own_memory(struct resolver *r, int err, const struct gpu_entry *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* About a key of item `i` of a list; where that is a list itself, about its `item`. */
int refuse_item(struct resolver *r, int err, const char *list, size_t i,
                const struct bind_head *head, const char *key, ptrdiff_t item, const char *fmt, ...)
    __attribute__((format(printf, 8, 9)));

/* The configuration is not to blame. */
int refuse_out_of_memory(struct resolver *r);

/* The override that gave a key to a GPU, or NULL. The last one that did counts. */
const struct gpu_spec *override_with(const struct resolver *r, const struct gpu_entry *e,
                                     const char *key);

#endif
