/*
 * Workloads: the mount as the plan needs it, and what the plan says done to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_WORKLOADS_H
#define K8S_PODS_WORKLOADS_H

#include "k8s/common/mount.h"
#include "k8s/pods/plan.h"

/* What a new workload does until somebody says otherwise. Texts are borrowed. */
struct defaults {
    const char
        *activity; /* percent of what it has ("100"), or any text that the file `activity` takes */
    const char *memory; /* any text that the file `memory` takes */
};

/* What is there. `minors`: the GPUs' minor numbers are needed, too. Goes into the arena. */
int mount_read_gpus(struct mount *m, bool minors, struct inventory *inventory, struct arena *arena,
                    struct why *why);
int mount_read_workloads(struct mount *m, struct present_list *present, struct arena *arena,
                         struct why *why);

/*
 * 0; or -errno, and then nothing has been made. A default that the mount refuses (memory that does not fit) is
 * left out: the sentence is in `refused`, a line each.
 */
int mount_create(struct mount *m, const struct operation *create, const struct defaults *defaults,
                 struct text *refused, struct why *why);

/* 0 also when it is gone already. */
int mount_remove(struct mount *m, const char *name, struct why *why);

#endif
