/*
 * Gpus: the library's start, and the GPUs that a command is about. See smi.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mocknvml/smi/smi.h"

int exit_status(nvmlReturn_t result)
{
    return result == NVML_ERROR_UNKNOWN ? EXIT_OTHER : (int)result;
}

int complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    return EXIT_INVALID;
}

bool wait_period(FILE *file, long period_ms)
{
    static struct timespec next;

    if (fflush(file) != 0)
        return false;
    if (!next.tv_sec)
        clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec += period_ms / 1000;
    next.tv_nsec += period_ms % 1000 * 1000000;
    if (next.tv_nsec >= 1000000000) {
        next.tv_nsec -= 1000000000;
        next.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    return true;
}

int output_close(FILE *file, int status)
{
    bool failed = ferror(file);

    failed |= fclose(file) != 0;
    return failed && status == 0 ? EXIT_OTHER : status;
}

/* --- the library -------------------------------------------------------------------------------- */

int library_start(void)
{
    nvmlReturn_t result = api_load();

    if (result == NVML_ERROR_LIBRARY_NOT_FOUND) {
        puts(
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the "
            "NVIDIA Display Driver is properly installed and present in your system.\n"
            "Please also try adding directory that contains libnvidia-ml.so to your system PATH.");
        return exit_status(result);
    }
    result = ASK(Init_v2);
    if (result == NVML_ERROR_DRIVER_NOT_LOADED)
        puts(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
            "the latest NVIDIA driver is installed and running.\n");
    else if (result == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        puts("Failed to initialize NVML: Driver/library version mismatch");
    else if (result != NVML_SUCCESS)
        printf("Failed to initialize NVML: %s\n", api_error(result));
    return exit_status(result);
}

/* --- GPUs --------------------------------------------------------------------------------------- */

static void say_no_handle(const char *which, nvmlReturn_t result)
{
    printf("Unable to determine the device handle for GPU%s: %s%s\n", which, api_error(result),
           result == NVML_ERROR_GPU_IS_LOST ? ".  Reboot the system to recover this GPU" : "");
}

/* As the driver's tool names it: "2: 0000:0B:00.0". */
static void say_no_handle_at(unsigned int index, nvmlReturn_t result)
{
    char which[TEXT_BYTES + 16], bus_id[TEXT_BYTES];

    api_bus_id(index, bus_id, sizeof(bus_id));
    snprintf(which, sizeof(which), "%u%s%s", index, *bus_id ? ": " : "", bus_id);
    say_no_handle(which, result);
}

static int no_devices(void)
{
    puts("No devices were found");
    return exit_status(NVML_ERROR_NOT_FOUND);
}

static void add(struct gpus *gpus, nvmlDevice_t device)
{
    struct gpu *gpu = &gpus->items[gpus->count++];
    char bus_id[TEXT_BYTES] = "";

    gpu->device = device;
    ASK(DeviceGetIndex, device, &gpu->index);
    if (get_pci(gpu, PCI_BUS_ID, bus_id) == NVML_SUCCESS)
        snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%.*s", (int)sizeof(gpu->bus_id) - 1, bus_id);
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* An index, a UUID, a bus id or a serial number. */
static nvmlReturn_t find(const struct gpus *gpus, const char *id, nvmlDevice_t *device)
{
    if (is_number(id) && strlen(id) < 6 && strtoul(id, NULL, 10) < gpus->present)
        return ASK(DeviceGetHandleByIndex_v2, (unsigned int)strtoul(id, NULL, 10), device);
    if (!strncmp(id, "GPU-", 4) || !strncmp(id, "MIG-", 4))
        return ASK(DeviceGetHandleByUUID, id, device);
    if (strchr(id, ':'))
        return ASK(DeviceGetHandleByPciBusId_v2, id, device);
    return ASK(DeviceGetHandleBySerial, id, device);
}

static int refuse_listed(const char *id, nvmlReturn_t result)
{
    if (is_number(id))
        say_no_handle_at((unsigned int)strtoul(id, NULL, 10), result);
    else
        say_no_handle("", result);
    return exit_status(result);
}

static int add_listed(struct gpus *gpus, const char *ids)
{
    char *copy = strdup(ids), *rest = copy, *id;
    int status = 0;

    while (copy && status == 0 && (id = strsep(&rest, ","))) {
        nvmlDevice_t device;
        nvmlReturn_t result = find(gpus, id, &device);

        if (result == NVML_SUCCESS)
            add(gpus, device);
        else if (result == NVML_ERROR_NOT_FOUND || result == NVML_ERROR_INVALID_ARGUMENT)
            status = no_devices();
        else
            status = refuse_listed(id, result);
    }
    free(copy);
    return status;
}

/* One that is lost is told of first, and the others are shown all the same. */
static int add_all(struct gpus *gpus)
{
    for (unsigned int i = 0; i < gpus->present; i++) {
        nvmlDevice_t device;
        nvmlReturn_t result = ASK(DeviceGetHandleByIndex_v2, i, &device);

        if (result == NVML_SUCCESS)
            add(gpus, device);
        else
            say_no_handle_at(i, result);
    }
    return gpus->count ? 0 : no_devices();
}

static unsigned int listed(const char *ids)
{
    unsigned int count = 1;

    for (; *ids; ids++)
        count += *ids == ',';
    return count;
}

int gpus_open(struct gpus *gpus, const char *ids)
{
    nvmlReturn_t result;
    int status;

    *gpus = (struct gpus){ 0 };
    result = ASK(DeviceGetCount_v2, &gpus->present);
    if (result != NVML_SUCCESS) {
        printf("Failed to count the GPUs: %s\n", api_error(result));
        return exit_status(result);
    }
    gpus->items = calloc(ids ? listed(ids) : gpus->present + 1, sizeof(*gpus->items));
    if (!gpus->items)
        return exit_status(NVML_ERROR_MEMORY);
    api_hold();
    status = ids ? add_listed(gpus, ids) : add_all(gpus);
    api_release();
    if (status != 0)
        gpus_close(gpus);
    return status;
}

int gpus_start(struct gpus *gpus, const char *ids)
{
    int status = library_start();

    return status == 0 ? gpus_open(gpus, ids) : status;
}

void gpus_close(struct gpus *gpus)
{
    free(gpus->items);
    *gpus = (struct gpus){ 0 };
}
