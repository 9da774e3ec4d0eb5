/*
 * Table: a file of a mount that has something of everyone of a kind, as lines `whose name value`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_TABLE_H
#define FUSEFS_CLI_TABLE_H

#include "fusefs/cli/client.h"

struct table_line {
    const char *whose, *name, *value; /* of the table's own text */
};

/* All lines, sorted by whose they are; those of one stay in their order. */
struct table {
    struct text text;
    struct table_line *lines;
    int count;
};

/* 0 or -errno. Release it in either case. */
int table_read(const struct client *client, struct table *table, const char *path);
void table_release(struct table *table);

/* The number of lines of `whose`; `first` is the first of them. */
int table_find(const struct table *table, const char *whose, const struct table_line **first);

/* Of these lines the value of the first of that name, or NULL. */
const char *table_value(const struct table_line *lines, int count, const char *name);

#endif
