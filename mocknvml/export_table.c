/*
 * Export tables: functions that a program finds by number instead of by name. Each begins with its size in bytes.
 *
 * One is for NVIDIA's own nvidia-smi. What few of its places are known to mean is here. All others answer with
 * success, and put 0 where the function of a device would put its answer. The others are ours: see hold.h, lost.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mocknvml/hold.h"
#include "mocknvml/library.h"
#include "mocknvml/lost.h"

enum { ID_BYTES = 16 };

/* The first table's id, with its first three numbers in either order of bytes. */
static const unsigned char ids[][ID_BYTES] = {
    { 0x6c, 0x3e, 0xfe, 0xc4, 0x8f, 0xc9, 0x4e, 0x6c, 0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7,
      0xc4 },
    { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e, 0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7,
      0xc4 },
};

/* One process, with its name behind the numbers. */
struct named_process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gi, ci;
    unsigned int is_protected;
    char name[4096];
};

_Static_assert(sizeof(struct named_process) == 4128, "as the program steps through them");

static nvmlReturn_t slot_handle(unsigned int index, nvmlDevice_t *device, unsigned int kind)
{
    (void)kind;
    return library_device(index, device);
}

static nvmlReturn_t slot_processes(nvmlDevice_t device, unsigned int *count,
                                   struct named_process *processes)
{
    enum { MOST = 256 };
    nvmlProcessInfo_t found[MOST];
    unsigned int there = MOST;
    nvmlReturn_t result = answer_check(count);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetComputeRunningProcesses_v3(device, &there, found);
    if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    if (there > *count || (there && !processes)) {
        *count = there;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned int i = 0; i < there && i < MOST; i++) {
        processes[i] = (struct named_process){ .pid = found[i].pid,
                                               .used_bytes = found[i].usedGpuMemory,
                                               .gi = found[i].gpuInstanceId,
                                               .ci = found[i].computeInstanceId };
        nvmlSystemGetProcessName(found[i].pid, processes[i].name, sizeof(processes[i].name));
    }
    *count = there;
    return NVML_SUCCESS;
}

static nvmlReturn_t slot_no_processes(nvmlDevice_t device, unsigned int *count)
{
    return give_uint(device, 0, count);
}

static nvmlReturn_t slot_other(nvmlDevice_t device, unsigned int *answer)
{
    /* Not every function has a device and somewhere for an answer as its first two arguments. */
    if (device_check(device) == NVML_SUCCESS && (uintptr_t)answer > UINT16_MAX)
        *answer = 0;
    return NVML_SUCCESS;
}

enum { SLOTS = 256 };

/* 81: a handle by index; 213: compute processes, then graphics and a server's; 230: generation of the slot. */
static const void *const slots[SLOTS] = {
    [0] = (void *)sizeof(slots),
    [1 ... 80] = (void *)slot_other,
    [81] = (void *)slot_handle,
    [82 ... 212] = (void *)slot_other,
    [213] = (void *)slot_processes,
    [214 ... 215] = (void *)slot_no_processes,
    [216 ... 229] = (void *)slot_other,
    [230] = (void *)nvmlDeviceGetMaxPcieLinkGeneration,
    [231 ... SLOTS - 1] = (void *)slot_other,
};

static const void *find_table(const void *id)
{
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        if (!memcmp(id, ids[i], ID_BYTES))
            return slots;
    if (!memcmp(id, HOLD_TABLE_ID, ID_BYTES))
        return &hold_table;
    return memcmp(id, LOST_TABLE_ID, ID_BYTES) ? NULL : &lost_table;
}

nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
    nvmlReturn_t result = arguments_check(id && table);
    const void *found;

    if (result != NVML_SUCCESS)
        return result;
    found = find_table(id);
    if (!found)
        return NVML_ERROR_NOT_SUPPORTED;
    *table = found;
    return NVML_SUCCESS;
}
