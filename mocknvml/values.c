/*
 * Values: what was read, as the types that functions give, and the protocols of their arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "mocknvml/library.h"

/* --- arguments ------------------------------------------------------------------------------- */

nvmlReturn_t arguments_check(bool good)
{
    return library_refuse(good ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t answer_check(const void *answer)
{
    return arguments_check(answer != NULL);
}

/* The version is the first field of every structure that has one. */
nvmlReturn_t struct_check(const void *structure, unsigned int version)
{
    nvmlReturn_t result = answer_check(structure);
    unsigned int said;

    if (result != NVML_SUCCESS)
        return result;
    memcpy(&said, structure, sizeof(said));
    return said == version ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

/* --- metrics --------------------------------------------------------------------------------- */

int sample_value(const struct metric_sample *sample, enum metric id, int64_t *value)
{
    int64_t parts = unit_parts(metric_infos[id].unit), stored;
    int result = metric_read(sample, id, &stored);

    if (result == 0)
        *value = (stored < 0 ? stored - parts / 2 : stored + parts / 2) / parts;
    return result;
}

nvmlReturn_t sample_values(const struct metric_sample *sample, const enum metric *ids, int count,
                           int64_t *values)
{
    int result = 0;

    for (int i = 0; result == 0 && i < count; i++)
        result = sample_value(sample, ids[i], &values[i]);
    return nvml_error(result);
}

nvmlReturn_t get_values(nvmlDevice_t device, const enum metric *ids, int count, int64_t *values)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);

    return result == NVML_SUCCESS ? sample_values(&gpu.sample, ids, count, values) : result;
}

nvmlReturn_t get_i64(nvmlDevice_t device, enum metric id, int64_t *value)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = answer_check(value);

    if (result == NVML_SUCCESS)
        result = device_read_gpu(device, &gpu);
    return result == NVML_SUCCESS ? nvml_error(sample_value(&gpu.sample, id, value)) : result;
}

nvmlReturn_t get_uint(nvmlDevice_t device, enum metric id, unsigned int *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, value ? &number : NULL);

    if (result == NVML_SUCCESS)
        *value = number < 0 ? 0 : number > UINT_MAX ? UINT_MAX : (unsigned int)number;
    return result;
}

nvmlReturn_t get_u64(nvmlDevice_t device, enum metric id, unsigned long long *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, value ? &number : NULL);

    if (result == NVML_SUCCESS)
        *value = (unsigned long long)number;
    return result;
}

nvmlReturn_t get_int(nvmlDevice_t device, enum metric id, int *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, value ? &number : NULL);

    if (result == NVML_SUCCESS)
        *value = (int)number;
    return result;
}

nvmlReturn_t get_state(nvmlDevice_t device, enum metric id, nvmlEnableState_t *on)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, on ? &number : NULL);

    if (result == NVML_SUCCESS)
        *on = number ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

/* --- what is no metric ----------------------------------------------------------------------- */

nvmlReturn_t give_uint(nvmlDevice_t device, unsigned int constant, unsigned int *value)
{
    nvmlReturn_t result = answer_check(value);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result == NVML_SUCCESS)
        *value = constant;
    return result;
}

nvmlReturn_t give_zeros(nvmlDevice_t device, void *structure, size_t size)
{
    nvmlReturn_t result = answer_check(structure);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result == NVML_SUCCESS)
        memset(structure, 0, size);
    return result;
}

nvmlReturn_t give_fact(nvmlDevice_t device, const char *name, unsigned int *value)
{
    int64_t number;
    nvmlReturn_t result = answer_check(value);

    if (result == NVML_SUCCESS)
        result = device_fact(device, name, &number);
    if (result == NVML_SUCCESS)
        *value = (unsigned int)number;
    return result;
}

nvmlReturn_t device_unsupported(nvmlDevice_t device)
{
    nvmlReturn_t result = device_check(device);

    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvmlReturn_t give_text(const char *text, char *buf, unsigned int length)
{
    if (!buf)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buf, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

/* --- lists and tables ------------------------------------------------------------------------ */

void list_add(struct list *list, const void *item)
{
    if (list->items && list->used < list->room)
        memcpy((char *)list->items + list->used * list->item_size, item, list->item_size);
    list->used++;
}

nvmlReturn_t list_end(const struct list *list, unsigned int *count)
{
    bool short_of_room = list->used > list->room || (list->used && !list->items);

    *count = list->used;
    return short_of_room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}
