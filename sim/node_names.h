/*
 * Node names: several nodes by one text, as `kwok-[0-511]`.
 *
 * A text has at most one range. Numbers are as long as the first is written: [000-511] is 000, 001 …
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_NODE_NAMES_H
#define SIM_NODE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { NODE_NAME = 254 };

struct node_names {
    const char *text;
    int prefix;         /* bytes before the range */
    const char *suffix; /* behind it */
    int width;          /* digits at least; 0: there is no range */
    int64_t low;
    int count;
};

/* Whether it is a name of one node. */
bool node_name_ok(const char *text);

/* Whether it is the name of a node, or of several. */
bool node_names_ok(const char *text);

/* Reads a text that is good; it is borrowed. */
struct node_names node_names_of(const char *text);

/* Whether `name` is NODE/INDEX with that node and position. */
bool node_device_is(const char *name, const char *node, int index);

/* The name of the i-th. */
void node_names_get(const struct node_names *names, int i, char name[NODE_NAME]);

#endif
