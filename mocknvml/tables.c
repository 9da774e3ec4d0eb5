/*
 * Tables: files of any length. See tables.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/tables.h"

#include <stdlib.h>

/* The longest: 4000 ended processes, and as many workloads as there can be. */
enum { WHOLE_TABLE_MAX = 16 << 20 };

nvmlReturn_t table_read(nvmlDevice_t device, const char *path, struct whole_table *table)
{
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;

    *table = (struct whole_table){ 0 };
    for (size_t room = TABLE_BYTES;
         result == NVML_ERROR_INSUFFICIENT_SIZE && room <= WHOLE_TABLE_MAX; room *= 4) {
        free(table->text);
        table->text = malloc(room);
        if (!table->text)
            return NVML_ERROR_MEMORY;
        result = device_text(device, path, table->text, room);
    }
    table->rest = table->text;
    return result;
}

void table_release(struct whole_table *table)
{
    free(table->text);
    *table = (struct whole_table){ 0 };
}
