/*
 * Options: those of `nvidia-smi` itself, in one table that is read, checked and shown by -h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_OPTIONS_H
#define SMI_OPTIONS_H

#include "mocknvml/smi/smi.h"

/* Below which title of -h an option stands. */
enum help_group { HELP_GENERAL, HELP_LIST, HELP_SHOWING, HELP_QUERY, HELP_FIELDS, HELP_CHANGES };

/* Reads and checks the command line. Exit status: 0, or after a complaint. */
int options_parse(struct options *options, int argc, char **argv);

/* The lines of -h of those in the group. */
void options_help(FILE *file, enum help_group group);

#endif
