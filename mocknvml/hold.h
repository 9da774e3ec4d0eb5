/*
 * Hold: several questions about a GPU, answered from one reading of it; and where a GPU is that is lost.
 *
 * NVML has no word for "now": each of its functions looks anew, and a program that asks for utilization and then
 * for power may be told of two instants. Between begin() and end() the thread's answers about a GPU come from
 * the page that the first of them read; a question about another GPU, a change that the thread makes and a mount that comes
 * and goes end that. Nor does it say anything of a GPU that it gives no handle for. This library gives the table out
 * under an id of its own; the driver's library refuses it, and who asks goes on without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_HOLD_H
#define MOCKNVML_HOLD_H

#include <stddef.h>

#include "mocknvml/nvml.h"

#define HOLD_TABLE_ID "fakegpufs hold 1" /* 16 bytes, for nvmlInternalGetExportTable */

struct hold_table {
    size_t size; /* in bytes, as every such table begins */
    void (*begin)(void);
    void (*end)(void);
    /* Where a GPU is that gives no handle, lost as it is: 0000:0B:00.0. NVML_ERROR_INVALID_ARGUMENT: there is none. */
    nvmlReturn_t (*bus_id)(unsigned int index, char *text, unsigned int length);
};

extern const struct hold_table hold_table; /* in the library alone */

#endif
