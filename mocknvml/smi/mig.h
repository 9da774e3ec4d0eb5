/*
 * Mig: the MIG devices of a GPU, with what -L, -q and the summary say about each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_MIG_H
#define SMI_MIG_H

#include "mocknvml/smi/gpu.h"

struct mig_device {
    nvmlDevice_t device;
    unsigned int index; /* among those of the GPU */
    unsigned int gi, ci;
    char name[96]; /* "1g.5gb" */
    char uuid[80];
    nvmlDeviceAttributes_t has;
    nvmlReturn_t memory_result, bar1_result, errors_result;
    nvmlMemory_v2_t memory;
    nvmlBAR1Memory_t bar1;
    unsigned long long sram_errors; /* volatile, not corrected */
};

/* The next MIG device from *index on, which moves behind it; false when there are no more. */
bool mig_next(struct gpu *gpu, unsigned int *index, struct mig_device *device);

#endif
