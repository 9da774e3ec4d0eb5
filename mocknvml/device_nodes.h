/*
 * Device nodes: what of a mount has its nodes in /dev.
 *
 * A container that was given GPUs by CDI has the nodes of these alone, and no word of which they are: as for a real
 * driver, the nodes decide what there is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_DEVICE_NODES_H
#define MOCKNVML_DEVICE_NODES_H

#include <stdbool.h>

struct mig_name;
struct reader;

/*
 * Whether this is a container that was given GPUs as device nodes: it has some, and no driver of the kernel, or of
 * `fakegpufs exec`, that they could be of.
 */
bool nodes_decide(void);

/* Whether the GPU of that index has its node; whether a MIG device of it has those of its capabilities. */
bool nodes_have_gpu(struct reader *reader, int index);
bool nodes_have_mig(struct reader *reader, int index, const struct mig_name *name);

#endif
