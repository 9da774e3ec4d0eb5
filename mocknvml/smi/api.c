/*
 * Api: the management library, loaded. See api.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/api.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mocknvml/hold.h"
#include "mocknvml/lost.h"

struct api api;

static const char library_name[] = "libnvidia-ml.so.1";
static const char *(*error_string)(nvmlReturn_t);
static nvmlReturn_t (*export_table)(const void **table, const void *id);

/* Where one of each lies in `struct api`, all of which are pointers to functions. */
static const struct entry {
    const char *symbol;
    size_t offset;
} entries[] = {
#define DECLARED(name) { "nvml" #name, offsetof(struct api, name) },
#define OTHER(name, ...) { "nvml" #name, offsetof(struct api, name) },
#include "mocknvml/smi/functions.def"
};

static void *open_plain(void)
{
    return dlopen(library_name, RTLD_LAZY | RTLD_LOCAL);
}

/* The library in `place` below the directory that is `up` levels above the program's own file. */
static void *open_beside(int up, const char *place)
{
    char path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);

    if (length <= 0 || length == PATH_MAX)
        return NULL;
    path[length] = '\0';
    for (int i = 0; i <= up; i++) {
        char *slash = strrchr(path, '/');

        if (!slash)
            return NULL;
        *slash = '\0';
    }
    snprintf(path + strlen(path), 64, "/%s%s", place, library_name);
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

static void *open_library(void)
{
    const char *chosen = getenv("LD_LIBRARY_PATH");
    void *handle = chosen && *chosen ? open_plain() : NULL;

    if (!handle)
        handle = open_beside(1, "lib64/");
    if (!handle)
        handle = open_plain();
    if (!handle)
        handle = open_beside(0, "");
    if (!handle)
        handle = open_beside(1, "lib/fakegpufs/");
    return handle;
}

nvmlReturn_t api_load(void)
{
    void *handle = open_library();

    if (!handle)
        return NVML_ERROR_LIBRARY_NOT_FOUND;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *symbol = dlsym(handle, entries[i].symbol);

        memcpy((char *)&api + entries[i].offset, &symbol, sizeof(symbol));
    }
    *(void **)&error_string = dlsym(handle, "nvmlErrorString");
    *(void **)&export_table = dlsym(handle, "nvmlInternalGetExportTable");
    return NVML_SUCCESS;
}

/* A table of the library's own, known from its start on. NULL: it has none. */
static const void *find_table(const char *id, size_t size)
{
    const void *found = NULL;

    /* A program may be newer than the library that it finds: a shorter table is none. */
    if (!export_table || export_table(&found, id) != NVML_SUCCESS || *(const size_t *)found < size)
        return NULL;
    return found;
}

static const struct hold_table *find_hold(void)
{
    static const struct hold_table *hold;

    if (!hold)
        hold = find_table(HOLD_TABLE_ID, sizeof(*hold));
    return hold;
}

void api_hold(void)
{
    const struct hold_table *hold = find_hold();

    if (hold)
        hold->begin();
}

void api_release(void)
{
    const struct hold_table *hold = find_hold();

    if (hold)
        hold->end();
}

void api_bus_id(unsigned int index, char *text, unsigned int length)
{
    const struct lost_table *lost = find_table(LOST_TABLE_ID, sizeof(*lost));

    if (!lost || lost->bus_id(index, text, length) != NVML_SUCCESS)
        *text = '\0';
}

const char *api_error(nvmlReturn_t result)
{
    return error_string ? error_string(result) : "Unknown Error";
}
