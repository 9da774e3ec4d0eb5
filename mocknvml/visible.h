/*
 * Visible: which GPUs and MIG devices this process may see.
 *
 * NVIDIA_VISIBLE_DEVICES, as it was at the first init: all, none, or words with commas between them:
 *
 *     2             GPU 2                       2:1          MIG device 1 of GPU 2
 *     GPU-5af2…     the GPU of that UUID        MIG-7c11…    the MIG device of that UUID
 *                                               MIG-GPU-5af2…/1/0    by GPU, GPU instance and compute instance
 *
 * UUIDs may be cut short. GPUs are numbered anew; of a GPU of which only MIG devices are named only those are
 * there.
 *
 * void, which CDI specifications set, names nothing: it leaves the choice to the device nodes that the container was
 * given (device_nodes.h). So it is without the variable, too, for what an engine starts later on in such a container.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_VISIBLE_H
#define MOCKNVML_VISIBLE_H

#include <stdbool.h>

struct mig_name;
struct reader;

/* What the process may see, as NVIDIA_VISIBLE_DEVICES says it; NULL: all. */
const char *visible_wanted(void);

/*
 * Whether such a list has the GPU, or a part of it; whether it has that MIG device of it. While there is no mount the
 * latter gets no reader.
 */
bool visible_gpu(struct reader *reader, const char *list, int index, const char *uuid);
bool visible_mig(struct reader *reader, const char *list, int index, const char *uuid,
                 const struct mig_name *name);

#endif
