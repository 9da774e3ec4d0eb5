/*
 * Stubs: every function that no simulated driver supports, from functions.def.
 *
 * Like others they say first that the library is not initialized, then that a handle is none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/library.h"

/* What the first argument is, by the beginning of the name. */
static nvmlReturn_t refuse(const char *name, const void *first)
{
    if (!strncmp(name, "nvmlDevice", strlen("nvmlDevice")))
        return device_unsupported((nvmlDevice_t)(uintptr_t)first);
    if (!strncmp(name, "nvmlGpuInstance", strlen("nvmlGpuInstance")) &&
        !library_knows_gpu_instance((nvmlGpuInstance_t)(uintptr_t)first))
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    if (!strncmp(name, "nvmlUnit", strlen("nvmlUnit"))) /* there is none, so no handle is one */
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return library_refuse(NVML_ERROR_NOT_SUPPORTED);
}

/* Further arguments do not matter: callers put them where callees that look at none find them harmless. */
#define FUNCTION_implemented(name)
#define FUNCTION_constant(name)
#define FUNCTION_unsupported(name)        \
    nvmlReturn_t name(const void *first); \
    nvmlReturn_t name(const void *first)  \
    {                                     \
        return refuse(#name, first);      \
    }
#define FUNCTION(name, status, source) FUNCTION_##status(name)
#include "mocknvml/functions.def"
