/*
 * Hold: several questions about a GPU, answered from one reading of it.
 *
 * NVML has no word for "now": each of its functions looks anew, and a program that asks for utilization and then
 * for power may be told of two instants. Between begin() and end() the thread's answers about a GPU come from
 * the page that the first of them read; a question about another GPU, a change that the thread makes and a mount that comes
 * and goes end that. This library gives the table out under an id of its own; the driver's library refuses it, and who
 * asks goes on without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_HOLD_H
#define MOCKNVML_HOLD_H

#include <stddef.h>

#define HOLD_TABLE_ID "fakegpufs hold 1" /* 16 bytes, for nvmlInternalGetExportTable */

struct hold_table {
    size_t size; /* in bytes, as every such table begins */
    void (*begin)(void);
    void (*end)(void);
};

extern const struct hold_table hold_table; /* in the library alone */

#endif
