/*
 * Handles: lists of what was allocated for a program, so that a pointer it gives is known to be one of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_HANDLES_H
#define MOCKNVML_HANDLES_H

#include <stdbool.h>

#include "mocknvml/nvml.h"

/* The first member of whatever is in a list. */
struct handle {
    struct handle *next;
};

void handle_add(struct handle **list, struct handle *handle);

/* False: it was not there. */
bool handle_remove(struct handle **list, const void *handle);

/* NVML_ERROR_UNINITIALIZED, NVML_ERROR_INVALID_ARGUMENT when it is not in the list. */
nvmlReturn_t handle_check(struct handle *const *list, const void *handle);

#endif
