/*
 * Lost: where a GPU is that is lost.
 *
 * NVML gives no handle for it, and says nothing of what it gives no handle for. This library gives a table out under an
 * id of its own; the driver's library refuses it, and who asks goes on without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_LOST_H
#define MOCKNVML_LOST_H

#include <stddef.h>

#include "mocknvml/nvml.h"

#define LOST_TABLE_ID "fakegpufs lost 1" /* 16 bytes, for nvmlInternalGetExportTable */

struct lost_table {
    size_t size; /* in bytes, as every such table begins */
    /* The bus id of the GPU of an index, lost or not: 0000:0B:00.0. NVML_ERROR_INVALID_ARGUMENT: there is none. */
    nvmlReturn_t (*bus_id)(unsigned int index, char *text, unsigned int length);
};

extern const struct lost_table lost_table; /* in the library alone */

#endif
