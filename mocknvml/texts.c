/*
 * Texts: files of a GPU that change only when the node's plan does, read once.
 *
 * Reading a file takes a hundred times as long as a page of the snapshot, and a program asks for names and facts
 * of the board again and again. What was read is forgotten when a page says that the plan is another, and with the
 * mount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/lock.h"
#include "mocknvml/state.h"

struct kept_text {
    char *texts[IDENTITY_COUNT + TABLE_COUNT]; /* owned; NULL: not read yet */
};

/* In the place of a text: there is no such file for this GPU. */
static char missing[] = "";

static const char *const tables[TABLE_COUNT] = {
    [TABLE_BOARD] = "board",
    [TABLE_CLOCKS] = "supported_clocks",
    [TABLE_MIG_PROFILES] = "mig/profiles",
};

void texts_forget(void)
{
    for (int d = 0; library.texts && d < DEVICES_MAX; d++) {
        for (int i = 0; library.texts[d] && i < IDENTITY_COUNT + TABLE_COUNT; i++)
            if (library.texts[d]->texts[i] != missing)
                free(library.texts[d]->texts[i]);
        free(library.texts[d]);
    }
    free(library.texts);
    library.texts = NULL;
}

/* Copies a text that is kept. False: it is not. */
static bool take(int slot, uint64_t plan_version, int which, char *buf, size_t size, int *result)
{
    unsigned int place = lock_shared();
    const struct kept_text *kept = library.texts && library.texts_version == plan_version
                                       ? library.texts[slot]
                                       : NULL;
    const char *text = kept ? kept->texts[which] : NULL;

    if (text) {
        *result = text == missing ? -ENODATA : strlen(text) < size ? 0 : -E2BIG;
        if (*result == 0)
            memcpy(buf, text, strlen(text) + 1);
    }
    unlock_shared(place);
    return text != NULL;
}

/* Keeps a text, which is then not the caller's any more. Without memory it is read again next time. */
static void keep(int slot, uint64_t plan_version, int which, char *text)
{
    char **to = NULL;

    lock_alone();
    if (library.texts_version != plan_version)
        texts_forget();
    library.texts_version = plan_version;
    if (!library.texts)
        library.texts = calloc(DEVICES_MAX, sizeof(*library.texts));
    if (library.texts && !library.texts[slot])
        library.texts[slot] = calloc(1, sizeof(**library.texts));
    if (library.texts && library.texts[slot])
        to = &library.texts[slot]->texts[which];
    if (to && !*to) {
        *to = text;
        text = missing;
    }
    unlock_alone();
    if (text != missing)
        free(text);
}

/* `which` counts the identities, then the tables. */
static nvmlReturn_t kept_text(nvmlDevice_t device, int which, const char *path, char *buf,
                              size_t size)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read(device, &gpu);
    nvmlDevice_t owner;
    char file[128];
    int slot, found;

    if (result != NVML_SUCCESS)
        return result;
    owner = device->parent ? device->parent : device;
    slot = (int)(owner - library.devices);
    if (take(slot, gpu.plan_version, which, buf, size, &found))
        return nvml_error(found);
    gpu_path(owner, path, file, sizeof(file));
    result = root_text(file, buf, size);
    if (result == NVML_SUCCESS) {
        char *copy = strdup(buf);

        if (copy)
            keep(slot, gpu.plan_version, which, copy);
    } else if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_NOT_FOUND) {
        keep(slot, gpu.plan_version, which, missing);
        result = NVML_ERROR_NOT_SUPPORTED;
    }
    return result;
}

nvmlReturn_t device_identity(nvmlDevice_t device, enum identity id, char *buf, unsigned int length)
{
    char path[64], text[256];
    nvmlReturn_t result;

    if (!buf)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    snprintf(path, sizeof(path), "identity/%s", identity_infos[id].name);
    result = kept_text(device, id, path, text, sizeof(text));
    return result == NVML_SUCCESS ? give_text(text, buf, length) : result;
}

nvmlReturn_t device_table(nvmlDevice_t device, enum table_name name, struct table *table)
{
    table->rest = table->text;
    return kept_text(device, IDENTITY_COUNT + (int)name, tables[name], table->text,
                     sizeof(table->text));
}

nvmlReturn_t device_fact(nvmlDevice_t device, const char *name, int64_t *value)
{
    char *line;
    struct table board;
    nvmlReturn_t result = device_table(device, TABLE_BOARD, &board);
    size_t length = strlen(name);

    if (result != NVML_SUCCESS)
        return result;
    while ((line = reader_line(&board.rest)))
        if (!strncmp(line, name, length) && line[length] == ' ' &&
            sscanf(line + length, "%" SCNd64, value) == 1)
            return NVML_SUCCESS;
    return NVML_ERROR_NOT_SUPPORTED;
}
