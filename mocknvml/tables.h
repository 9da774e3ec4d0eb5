/*
 * Tables: files of a GPU that can be of any length, one line for each of many things.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_TABLES_H
#define MOCKNVML_TABLES_H

#include "mocknvml/library.h"

/* All of a file in memory; table_line goes through `rest`. */
struct whole_table {
    char *text; /* owned */
    char *rest;
};

/* Reads a file below gpus/<i>/. To be released, whatever the result. */
nvmlReturn_t table_read(nvmlDevice_t device, const char *path, struct whole_table *table);
void table_release(struct whole_table *table);

#endif
