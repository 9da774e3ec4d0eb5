/*
 * Keeper: one look at the mount and the node, and what follows from it.
 *
 * Keeps from one look to the next what it has set, so that a node is asked only when the mount says something else or
 * time has passed; and what it has said, so that a state that lasts is told once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_KEEPER_H
#define K8S_LABELS_KEEPER_H

#include "k8s/common/said.h"
#include "k8s/labels/options.h"
#include "k8s/labels/server.h"

struct keeper {
    const struct options *o; /* borrowed */
    struct server *server;   /* borrowed */
    struct text set;         /* of the mount's file, when the node had its labels */
    int64_t set_ns;          /* when that was; monotonic */
    struct said about_mount, about_server;
};

/*
 * 0; -ENODEV when the mount is not there or says nonsense; -EREMOTEIO when the node could not be asked or changed;
 * -EAGAIN when --check finds that it has other labels; -EINTR. `anew`: looks at the node in any case.
 */
int keeper_look(struct keeper *k, bool anew);

/* Takes our labels off the node. 0, -EREMOTEIO, -EINTR. */
int keeper_remove(struct keeper *k);

void keeper_release(struct keeper *k);

#endif
