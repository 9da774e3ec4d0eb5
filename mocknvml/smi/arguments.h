/*
 * Arguments: the options of a subcommand, one row each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_ARGUMENTS_H
#define SMI_ARGUMENTS_H

#include <stdbool.h>

struct argument {
    const char *letter; /* "-i", or NULL */
    const char *name;   /* "--id" */
    bool *flag;         /* set when it is there; or: */
    const char **
        text; /* gets what follows it: "-i 0", "-i=0", "--id=0". With a flag, too, it may be left out */
    const char *help;
};

/* Ends with an empty row. Returns an exit status: 0, or after a complaint; -1 when help was asked for. */
int arguments_parse(const struct argument *rows, const char *command, int argc, char **argv);

/* The rows with their help. */
void arguments_help(const struct argument *rows, const char *command);

/* A whole number in a range; false when `text` is none. */
bool arguments_number(const char *text, long min, long max, long *number);

#endif
