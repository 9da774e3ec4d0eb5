/*
 * Mig: the MIG devices of a GPU. See mig.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/mig.h"

#include <stdio.h>
#include <string.h>

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb": the profile is the last word. */
static void profile_name(struct mig_device *mig)
{
    char name[96] = "";
    const char *last;

    ASK(DeviceGetName, mig->device, name, sizeof(name));
    last = strrchr(name, ' ');
    snprintf(mig->name, sizeof(mig->name), "%s", last ? last + 1 : name);
}

static void describe(struct mig_device *mig)
{
    ASK(DeviceGetGpuInstanceId, mig->device, &mig->gi);
    ASK(DeviceGetComputeInstanceId, mig->device, &mig->ci);
    ASK(DeviceGetUUID, mig->device, mig->uuid, sizeof(mig->uuid));
    ASK(DeviceGetAttributes_v2, mig->device, &mig->has);
    mig->memory.version = VERSION_OF(mig->memory, 2);
    mig->memory_result = ASK(DeviceGetMemoryInfo_v2, mig->device, &mig->memory);
    mig->bar1_result = ASK(DeviceGetBAR1MemoryInfo, mig->device, &mig->bar1);
    mig->errors_result = ASK(DeviceGetMemoryErrorCounter, mig->device,
                             NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
                             NVML_MEMORY_LOCATION_SRAM, &mig->sram_errors);
    profile_name(mig);
}

bool mig_next(struct gpu *gpu, unsigned int *index, struct mig_device *mig)
{
    unsigned int most = 0;

    if (!gpu_is_mig(gpu) || ASK(DeviceGetMaxMigDeviceCount, gpu->device, &most) != NVML_SUCCESS)
        return false;
    for (; *index < most; (*index)++) {
        nvmlDevice_t device;

        if (ASK(DeviceGetMigDeviceHandleByIndex, gpu->device, *index, &device) != NVML_SUCCESS)
            continue;
        *mig = (struct mig_device){ .device = device, .index = (*index)++ };
        describe(mig);
        return true;
    }
    return false;
}
