/*
 * Specimen: the XML of machines that nobody has, which together hold every element that there is.
 *
 * Functions that stand in for the library's say that a GPU has none of a thing, or two where there may be
 * many; the log itself is drawn by the same code as that of real GPUs. What they do not answer is N/A.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/smi/smi.h"

enum { MANY = 2 };

/* --- what a GPU with two of everything answers ---------------------------------------------------- */

static unsigned int specimen_architecture;

static nvmlReturn_t architecture(nvmlDevice_t device, unsigned int *number)
{
    (void)device;
    *number = specimen_architecture;
    return NVML_SUCCESS;
}

static nvmlReturn_t margin(nvmlDevice_t device, nvmlMarginTemperature_v1_t *temperature)
{
    (void)device;
    temperature->marginTemperature = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t fields(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    (void)device;
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_SUCCESS;
    return NVML_SUCCESS;
}

static nvmlReturn_t mig_mode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    (void)device;
    *current = *pending = NVML_DEVICE_MIG_ENABLE;
    return NVML_SUCCESS;
}

static nvmlReturn_t how_many(nvmlDevice_t device, unsigned int *count)
{
    (void)device;
    *count = MANY;
    return NVML_SUCCESS;
}

static nvmlReturn_t mig_device(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    (void)index;
    *mig = device;
    return NVML_SUCCESS;
}

static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *items)
{
    (void)device;
    *count = MANY;
    memset(items, 0, MANY * sizeof(*items));
    items[1].pid = 1;
    return NVML_SUCCESS;
}

static nvmlReturn_t numbers(nvmlDevice_t device, unsigned int *count, unsigned int *items)
{
    *count = MANY;
    memset(items, 0, MANY * sizeof(*items));
    (void)device;
    return NVML_SUCCESS;
}

static nvmlReturn_t graphics_clocks(nvmlDevice_t device, unsigned int memory_mhz,
                                    unsigned int *count, unsigned int *mhz)
{
    (void)memory_mhz;
    return numbers(device, count, mhz);
}

static nvmlReturn_t pages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                          unsigned long long *addresses, unsigned long long *times)
{
    (void)device;
    (void)cause;
    *count = MANY;
    memset(addresses, 0, MANY * sizeof(*addresses));
    memset(times, 0, MANY * sizeof(*times));
    return NVML_SUCCESS;
}

static const struct api plenty = {
    .DeviceGetArchitecture = architecture,
    .DeviceGetFieldValues = fields,
    .DeviceGetMigMode = mig_mode,
    .DeviceGetMaxMigDeviceCount = how_many,
    .DeviceGetMigDeviceHandleByIndex = mig_device,
    .DeviceGetComputeRunningProcesses_v3 = processes,
    .DeviceGetAccountingBufferSize = how_many,
    .DeviceGetAccountingPids = numbers,
    .DeviceGetSupportedMemoryClocks = numbers,
    .DeviceGetSupportedGraphicsClocks = graphics_clocks,
    .DeviceGetRetiredPages_v2 = pages,
};

static const struct api nothing;

/* --- their logs ----------------------------------------------------------------------------------- */

static void draw(FILE *file, bool units, const struct api *answers, unsigned int gpu_count)
{
    struct gpu items[MANY] = { { .bus_id = "" } };
    struct gpus gpus = { items, gpu_count, gpu_count };

    api = *answers;
    log_print(file, &gpus, &(struct options){ .xml = true, .units = units });
}

void specimens_print(FILE *file, bool units)
{
    const struct api real = api;
    struct api answers = plenty;

    for (unsigned int a = NVML_DEVICE_ARCH_KEPLER; a <= NVML_DEVICE_ARCH_AMPERE; a++) {
        specimen_architecture = a;
        answers.DeviceGetMarginTemperature = a % 2 ? margin : NULL;
        draw(file, units, &answers, MANY);
    }
    draw(file, units, &nothing, 1);
    draw(file, units, &nothing, 0);
    api = real;
}
