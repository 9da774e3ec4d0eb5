/*
 * Samples: a short history of a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/tables.h"

/* --- history --------------------------------------------------------------------------------- */

_Static_assert((int)SAMPLINGS == (int)NVML_SAMPLINGTYPE_COUNT, "the mount samples what NVML names");

/* Oldest first, as many as there is room for: whoever goes on from the last one he got misses none. */
static void add_moments(const struct reader_history *h, nvmlSamplingType_t type,
                        unsigned long long after_us, struct list *list)
{
    for (int k = 0; k < h->count && list->used < list->room; k++) {
        const struct moment *m = &h->moments[k];
        nvmlSample_t sample = { .timeStamp = (unsigned long long)(h->epoch_ns + m->time_ns) /
                                             1000 };

        sample.sampleValue.uiVal = m->value[type];
        if (sample.timeStamp > after_us && m->value[type] < MOMENT_FAILED)
            list_add(list, &sample);
    }
}

/* NULL asks how many there can be. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long after_us, nvmlValueType_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples)
{
    struct list list = { samples, sizeof(*samples), count ? *count : 0, 0 };
    struct reader_history history;
    nvmlReturn_t result = arguments_check(value_type && count &&
                                          (unsigned int)type < NVML_SAMPLINGTYPE_COUNT);

    if (result == NVML_SUCCESS)
        result = device_history(device, &history);
    if (result != NVML_SUCCESS)
        return result;
    if (history.count && history.moments[history.count - 1].value[type] == MOMENT_ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!samples) {
        *count = HISTORY_MOMENTS;
        return NVML_SUCCESS;
    }
    add_moments(&history, type, after_us, &list);
    *count = list.used;
    return list.used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
