/*
 * System: what is not about one GPU: versions, lookups of handles, processes by number.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mocknvml/tables.h"

/* --- versions -------------------------------------------------------------------------------- */

/* Texts that every GPU has alike are read from the first one. */
static nvmlReturn_t node_identity(const char *name, char *buf, unsigned int length)
{
    char path[64], text[128];
    nvmlReturn_t result = answer_check(buf);

    if (result != NVML_SUCCESS)
        return result;
    snprintf(path, sizeof(path), "gpus/0/identity/%s", name);
    result = root_text(path, text, sizeof(text));
    return result == NVML_SUCCESS ? give_text(text, buf, length) : result;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    char text[128];
    nvmlReturn_t result = answer_check(version);

    if (result == NVML_SUCCESS)
        result = root_text("sys/module/nvidia/version", text, sizeof(text));
    return result == NVML_SUCCESS ? give_text(text, version, length) : result;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return node_identity("nvml_version", version, length);
}

/* 12040 for "12.4". */
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    int major, minor;
    char text[32];
    nvmlReturn_t result = answer_check(version);

    if (result == NVML_SUCCESS)
        result = node_identity("cuda_version", text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (sscanf(text, "%d.%d", &major, &minor) != 2)
        return NVML_ERROR_UNKNOWN;
    *version = major * 1000 + minor * 10;
    return NVML_SUCCESS;
}

/* The other one asks the CUDA library, where that is newer; here both are the driver's. */
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *info, unsigned int length)
{
    char text[80], branch[96];
    nvmlReturn_t result = STRUCT_CHECK(info, 1);

    if (result == NVML_SUCCESS)
        result = nvmlSystemGetDriverVersion(text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    text[strcspn(text, ".")] = '\0';
    snprintf(branch, sizeof(branch), "r%s_00", text);
    return give_text(branch, info->branch,
                     length < sizeof(info->branch) ? length : sizeof(info->branch));
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *count, nvmlHwbcEntry_t *entries)
{
    nvmlReturn_t result = answer_check(count);

    (void)entries;
    if (result != NVML_SUCCESS)
        return result;
    *count = 0;
    return NVML_SUCCESS;
}

/* --- handles --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return library_count(count);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return library_count(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return library_device(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return library_device(index, device);
}

/* The first device whose identity passes the test; a lost GPU can only be found by its index. */
static nvmlReturn_t find_device(enum identity id,
                                bool (*matches)(const char *text, const void *wanted),
                                const void *wanted, nvmlDevice_t *device)
{
    unsigned int count;
    nvmlReturn_t result = arguments_check(wanted && device);
    char text[128];

    if (result == NVML_SUCCESS)
        result = library_count(&count);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned int i = 0; i < count; i++) {
        nvmlDevice_t found;

        if (library_device(i, &found) == NVML_SUCCESS &&
            device_identity(found, id, text, sizeof(text)) == NVML_SUCCESS &&
            matches(text, wanted)) {
            *device = found;
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool is_same_text(const char *text, const void *wanted)
{
    return !strcasecmp(text, wanted);
}

/* A MIG device's UUID, as gpus/<i>/mig/instances lists it. */
static nvmlReturn_t find_mig_device(const char *uuid, nvmlDevice_t *device)
{
    unsigned int count, migs;
    nvmlReturn_t result = library_count(&count);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < count; i++) {
        nvmlDevice_t parent, mig;

        if (library_device(i, &parent) != NVML_SUCCESS ||
            nvmlDeviceGetMaxMigDeviceCount(parent, &migs) != NVML_SUCCESS)
            continue;
        for (unsigned int m = 0; m < migs; m++)
            if (nvmlDeviceGetMigDeviceHandleByIndex(parent, m, &mig) == NVML_SUCCESS &&
                !strcasecmp(mig->uuid, uuid)) {
                *device = mig;
                return NVML_SUCCESS;
            }
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (uuid && device && !strncmp(uuid, "MIG-", 4))
        return find_mig_device(uuid, device);
    return find_device(IDENTITY_UUID, is_same_text, uuid, device);
}

/* The 16 bytes of "GPU-2e86a165-…". */
static bool is_same_bytes(const char *text, const void *wanted)
{
    const unsigned char *bytes = wanted;
    int i = 0;

    for (text += strcspn(text, "-"); *text && i < 16; i++) {
        unsigned int byte;

        text += strspn(text, "-");
        if (sscanf(text, "%2x", &byte) != 1 || byte != bytes[i])
            return false;
        text += 2;
    }
    return i == 16;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = STRUCT_CHECK(uuid, 1);
    char text[sizeof(uuid->value.str) + 1];

    if (result != NVML_SUCCESS)
        return result;
    if (uuid->type == NVML_UUID_TYPE_BINARY)
        return find_device(IDENTITY_UUID, is_same_bytes, uuid->value.bytes, device);
    if (uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(text, sizeof(text), "%.*s", (int)sizeof(uuid->value.str), uuid->value.str);
    return nvmlDeviceGetHandleByUUID(text, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return find_device(IDENTITY_SERIAL, is_same_text, serial, device);
}

/* Domains of four and of eight digits, with and without function, upper and lower case. */
static bool is_same_bus_id(const char *text, const void *wanted)
{
    unsigned int a[4] = { 0 }, b[4] = { 0 };
    int n = sscanf(wanted, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]);

    if (n == 2) { /* "06:00.0": without domain */
        b[0] = 0;
        n = sscanf(wanted, "%x:%x.%x", &b[1], &b[2], &b[3]);
    }
    return n >= 2 && sscanf(text, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) == 4 &&
           !memcmp(a, b, sizeof(a));
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return find_device(IDENTITY_BUS_ID, is_same_bus_id, bus_id, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    nvmlReturn_t result = answer_check(count);

    if (result != NVML_SUCCESS)
        return result;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index, nvmlExcludedDeviceInfo_t *info)
{
    (void)index, (void)info;
    return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
    return nvmlGetExcludedDeviceCount(count);
}

nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int index, nvmlUnit_t *unit)
{
    (void)index, (void)unit;
    return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
}

/* --- processes ------------------------------------------------------------------------------- */

/* Whether a line of gpus/<i>/processes is about the process, and what it is called. */
static bool is_process(const char *line, unsigned int pid, char *name, size_t size)
{
    unsigned int found;
    char word[256];

    if (sscanf(line, "%u %*s %*s %255s", &found, word) != 2 || found != pid)
        return false;
    snprintf(name, size, "%s", word);
    return true;
}

/* A simulated process is called as its workload; others as the kernel says. */
static bool workload_name(unsigned int pid, char *name, size_t size)
{
    unsigned int count;

    if (library_count(&count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < count; i++) {
        struct whole_table table = { 0 };
        bool named = false;
        nvmlDevice_t device;
        char *line;

        if (library_device(i, &device) == NVML_SUCCESS &&
            table_read(device, "processes", &table) == NVML_SUCCESS)
            while (!named && (line = reader_line(&table.rest)))
                named = is_process(line, pid, name, size);
        table_release(&table);
        if (named)
            return true;
    }
    return false;
}

static bool process_name(unsigned int pid, char *name, size_t size)
{
    char path[64];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    n = fread(name, 1, size - 1, file);
    name[n] = '\0'; /* the first word: the kernel ends each with a zero */
    fclose(file);
    return n > 0;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    nvmlReturn_t result = answer_check(name);
    char text[1024];

    if (result != NVML_SUCCESS)
        return result;
    if (!length)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!process_name(pid, text, sizeof(text)) && !workload_name(pid, text, sizeof(text)))
        return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", text); /* cut, as documented */
    return NVML_SUCCESS;
}

/* --- confidential computing: a host without it ----------------------------------------------- */

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    nvmlReturn_t result = answer_check(state);

    if (result != NVML_SUCCESS)
        return result;
    memset(state, 0, sizeof(*state));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *capabilities)
{
    nvmlReturn_t result = answer_check(capabilities);

    if (result != NVML_SUCCESS)
        return result;
    memset(capabilities, 0, sizeof(*capabilities));
    return NVML_SUCCESS;
}
