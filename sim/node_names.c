/*
 * Node names: several nodes by one text. See node_names.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/node_names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More digits than any range needs, and few enough for every number to fit. */
enum { DIGITS_MAX = 9, RANGE_MAX = 4096 };

bool node_name_ok(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-.", *p))
            return false;
    return isalnum((unsigned char)*text);
}

/* A number at *at, behind which that goes on; its digits, 0 for none or too many. */
static int read_number(const char **at, int64_t *number)
{
    int digits = 0;

    for (*number = 0; isdigit((unsigned char)**at) && digits <= DIGITS_MAX; (*at)++, digits++)
        *number = *number * 10 + (**at - '0');
    return digits > DIGITS_MAX ? 0 : digits;
}

/* Fills everything but the text; false when the range is not one. */
static bool read_range(const char *text, struct node_names *n)
{
    const char *at = strchr(text, '[');
    int64_t high;

    n->count = 1;
    n->prefix = (int)strlen(text);
    n->suffix = text + n->prefix;
    if (!at)
        return true;
    n->prefix = (int)(at++ - text);
    n->width = read_number(&at, &n->low);
    if (!n->width || *at++ != '-' || !read_number(&at, &high) || *at++ != ']')
        return false;
    n->suffix = at;
    n->count = high - n->low < RANGE_MAX ? (int)(high - n->low) + 1 : 0;
    return n->count > 0;
}

struct node_names node_names_of(const char *text)
{
    struct node_names n = { .text = text };

    read_range(text, &n);
    return n;
}

void node_names_get(const struct node_names *n, int i, char name[NODE_NAME])
{
    if (n->width)
        snprintf(name, NODE_NAME, "%.*s%0*" PRId64 "%s", n->prefix, n->text, n->width, n->low + i,
                 n->suffix);
    else
        snprintf(name, NODE_NAME, "%s", n->text);
}

bool node_names_ok(const char *text)
{
    struct node_names n = { .text = text };
    char last[NODE_NAME];

    /* The last is the longest; all are of the same letters. */
    if (strlen(text) >= NODE_NAME || !read_range(text, &n))
        return false;
    node_names_get(&n, n.count - 1, last);
    return node_name_ok(last);
}

bool node_device_is(const char *name, const char *node, int index)
{
    size_t length = strlen(node);
    char number[16];

    snprintf(number, sizeof(number), "%d", index);
    return length && !strncmp(name, node, length) && name[length] == '/' &&
           !strcmp(name + length + 1, number);
}
