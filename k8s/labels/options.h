/*
 * Options of fakegpu-labels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_OPTIONS_H
#define K8S_LABELS_OPTIONS_H

#include "k8s/common/options.h"
#include "sim/text.h"

/* Texts are those of argv, the environment or the program itself. */
struct options {
    struct common_options common;
    const char *node;
    struct text server; /* its URL, with nothing behind the port; owned */
    const char *token_file, *ca_file;
    int64_t resync_ns;
    bool check, remove; /* not both; each implies --once */
};

/*
 * Returns -1 to go on, or the exit code when there is nothing more to do: help was asked for, or a sentence is
 * on standard error. Release them in either case.
 */
int options_parse(struct options *o, int argc, char **argv);
void options_release(struct options *o);

#endif
