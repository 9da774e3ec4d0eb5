/*
 * Lost: where a GPU is that gives no handle. See lost.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/lost.h"

#include <stdio.h>
#include <string.h>

#include "mocknvml/library.h"

enum { BUS_ID = 12 }; /* 0000:0B:00.0: with a short domain */

static nvmlReturn_t bus_id(unsigned int index, char *text, unsigned int length)
{
    nvmlReturn_t result = answer_check(text);
    nvmlDevice_t found = result == NVML_SUCCESS ? library_visible(index) : NULL;
    char path[128], id[64];

    if (result == NVML_SUCCESS && !found)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        gpu_path(found->parent ? found->parent : found, "identity/bus_id", path, sizeof(path));
        result = root_text(path, id, sizeof(id));
    }
    if (result == NVML_SUCCESS)
        snprintf(text, length, "%s", strlen(id) > BUS_ID ? id + strlen(id) - BUS_ID : id);
    return result;
}

const struct lost_table lost_table = { sizeof(lost_table), bus_id };
