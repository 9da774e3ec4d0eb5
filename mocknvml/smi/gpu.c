/*
 * Gpu: what several values come from, and the words for values. See gpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gpu_fresh(struct gpu *gpu)
{
    memset(&gpu->answers, 0, sizeof(gpu->answers));
}

/* --- words -------------------------------------------------------------------------------------- */

nvmlReturn_t say(nvmlReturn_t result, char *text, const char *format, ...)
{
    va_list arguments;

    if (result != NVML_SUCCESS)
        return result;
    va_start(arguments, format);
    vsnprintf(text, TEXT_BYTES, format, arguments);
    va_end(arguments);
    return result;
}

nvmlReturn_t say_word(nvmlReturn_t result, char *text, const char *const *words, size_t count,
                      unsigned int number)
{
    const char *word = words[number < count ? number : count - 1];

    return say(result, text, "%s", word ? word : words[count - 1]);
}

nvmlReturn_t say_enabled(nvmlReturn_t result, char *text, unsigned int state)
{
    return say(result, text, state ? "Enabled" : "Disabled");
}

nvmlReturn_t say_yes(nvmlReturn_t result, char *text, unsigned int state)
{
    return say(result, text, state ? "Yes" : "No");
}

nvmlReturn_t say_active(nvmlReturn_t result, char *text, bool active)
{
    return say(result, text, active ? "Active" : "Not Active");
}

nvmlReturn_t get_absent(struct gpu *gpu, int argument, char *text)
{
    (void)gpu, (void)argument, (void)text;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* --- values that functions give as they are -------------------------------------------------------- */

/* The function that the argument says; NULL when the library has it not. */
static void function_of(int argument, void *function)
{
    memcpy(function, (const char *)&api + argument, sizeof(void (*)(void)));
}

nvmlReturn_t get_text(struct gpu *gpu, int argument, char *text)
{
    text_function *ask;

    function_of(argument, &ask);
    return ask ? ask(gpu->device, text, TEXT_BYTES) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

nvmlReturn_t get_uint(struct gpu *gpu, int argument, char *text)
{
    unsigned int number = 0;
    uint_function *ask;
    nvmlReturn_t result;

    function_of(argument, &ask);
    result = ask ? ask(gpu->device, &number) : NVML_ERROR_FUNCTION_NOT_FOUND;
    return say(result, text, "%u", number);
}

nvmlReturn_t get_percent(struct gpu *gpu, int argument, char *text)
{
    unsigned int percent = 0, period_us = 0;
    percent_function *ask;
    nvmlReturn_t result;

    function_of(argument, &ask);
    result = ask ? ask(gpu->device, &percent, &period_us) : NVML_ERROR_FUNCTION_NOT_FOUND;
    return say(result, text, "%u", percent);
}

/* --- answers to several values ------------------------------------------------------------------ */

static nvmlReturn_t ask_fields(struct gpu *gpu)
{
    static const struct {
        unsigned int number, scope;
    } fields[FIELD_COUNT] = {
#define FIELD(name, number, scope) { number, scope },
#include "mocknvml/smi/fields.def"
    };
    nvmlFieldValue_t *values = gpu->answers.fields.values;

    for (int i = 0; i < FIELD_COUNT; i++)
        values[i] = (nvmlFieldValue_t){ .fieldId = fields[i].number,
                                        .scopeId = fields[i].scope,
                                        .nvmlReturn = NVML_ERROR_NOT_SUPPORTED };
    return ASK(DeviceGetFieldValues, gpu->device, FIELD_COUNT, values);
}

nvmlReturn_t gpu_field(struct gpu *gpu, enum gpu_field field, long long *value)
{
    const nvmlFieldValue_t *got = &gpu->answers.fields.values[field];
    nvmlReturn_t result = ONCE(gpu, fields, ask_fields(gpu));

    if (result != NVML_SUCCESS)
        return result;
    switch (got->valueType) {
    case NVML_VALUE_TYPE_DOUBLE:
        *value = (long long)got->value.dVal;
        break;
    case NVML_VALUE_TYPE_UNSIGNED_INT:
        *value = got->value.uiVal;
        break;
    case NVML_VALUE_TYPE_SIGNED_INT:
        *value = got->value.siVal;
        break;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT:
        *value = got->value.usVal;
        break;
    default:
        *value = got->value.sllVal;
        break;
    }
    return got->nvmlReturn;
}

/* Drivers before 510 have only the older function, which counts what is reserved as used. */
static nvmlReturn_t ask_memory(struct gpu *gpu)
{
    nvmlMemory_v2_t *memory = &gpu->answers.memory.value;
    nvmlMemory_t older;
    nvmlReturn_t result;

    memory->version = VERSION_OF(*memory, 2);
    result = ASK(DeviceGetMemoryInfo_v2, gpu->device, memory);
    if (result != NVML_ERROR_FUNCTION_NOT_FOUND)
        return result;
    result = ASK(DeviceGetMemoryInfo, gpu->device, &older);
    if (result == NVML_SUCCESS)
        *memory = (nvmlMemory_v2_t){ .total = older.total, .used = older.used, .free = older.free };
    return result;
}

nvmlReturn_t gpu_memory(struct gpu *gpu, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = ONCE(gpu, memory, ask_memory(gpu));

    *memory = gpu->answers.memory.value;
    return result;
}

nvmlReturn_t gpu_ecc(struct gpu *gpu, bool pending, nvmlEnableState_t *state)
{
    struct answers *a = &gpu->answers;
    nvmlReturn_t result = ONCE(gpu, ecc_current,
                               ASK(DeviceGetEccMode, gpu->device, &a->ecc_current.value,
                                   &a->ecc_pending.value));

    *state = pending ? a->ecc_pending.value : a->ecc_current.value;
    return result;
}

nvmlReturn_t gpu_mig(struct gpu *gpu, bool pending, unsigned int *mode)
{
    struct answers *a = &gpu->answers;
    nvmlReturn_t result = ONCE(gpu, mig,
                               ASK(DeviceGetMigMode, gpu->device, &a->mig.value,
                                   &a->mig_pending.value));

    *mode = pending ? a->mig_pending.value : a->mig.value;
    return result;
}

nvmlReturn_t gpu_scoped_field(struct gpu *gpu, unsigned int number, unsigned int scope,
                              unsigned long long *value)
{
    nvmlFieldValue_t field = { .fieldId = number, .scopeId = scope };
    nvmlReturn_t result = ASK(DeviceGetFieldValues, gpu->device, 1, &field);

    *value = field.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? field.value.uiVal
                                                             : field.value.ullVal;
    return result == NVML_SUCCESS ? (nvmlReturn_t)field.nvmlReturn : result;
}

void gpu_title(struct gpu *gpu)
{
    char name[TEXT_BYTES] = "", uuid[TEXT_BYTES] = "";

    get_text(gpu, TEXT_OF(DeviceGetName), name);
    get_text(gpu, TEXT_OF(DeviceGetUUID), uuid);
    printf("GPU %u: %s (UUID: %s)\n", gpu->index, name, uuid);
}

bool gpu_is_mig(struct gpu *gpu)
{
    unsigned int mode;

    return gpu_mig(gpu, false, &mode) == NVML_SUCCESS && mode;
}

nvmlReturn_t gpu_utilization(struct gpu *gpu, nvmlUtilization_t *rates)
{
    nvmlReturn_t result = ONCE(gpu, utilization,
                               ASK(DeviceGetUtilizationRates, gpu->device,
                                   &gpu->answers.utilization.value));

    *rates = gpu->answers.utilization.value;
    return result;
}

nvmlReturn_t gpu_reasons(struct gpu *gpu, unsigned long long *reasons)
{
    nvmlReturn_t result = ONCE(gpu, reasons,
                               ASK(DeviceGetCurrentClocksEventReasons, gpu->device,
                                   &gpu->answers.reasons.value));

    *reasons = gpu->answers.reasons.value;
    return result;
}
