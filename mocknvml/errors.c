/*
 * Errors: the one place where -errno becomes NVML's, and where NVML's become sentences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "mocknvml/library.h"

nvmlReturn_t nvml_error(int result)
{
    switch (-result) {
    case 0:
        return NVML_SUCCESS;
    case ENODATA:
    case EOPNOTSUPP:
        return NVML_ERROR_NOT_SUPPORTED;
    case ENODEV:
    case ENXIO:
        return NVML_ERROR_GPU_IS_LOST;
    case ENOENT:
        return NVML_ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return NVML_ERROR_NO_PERMISSION;
    case EINVAL:
    case ERANGE:
        return NVML_ERROR_INVALID_ARGUMENT;
    case E2BIG:
        return NVML_ERROR_INSUFFICIENT_SIZE;
    case ENOSPC:
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case EBUSY:
        return NVML_ERROR_IN_USE;
    case ENOMEM:
        return NVML_ERROR_MEMORY;
    case ETIMEDOUT:
        return NVML_ERROR_TIMEOUT;
    case ENOTCONN:
    case ECONNABORTED:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case EPROTO:
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

static const char *const sentences[] = {
    [NVML_SUCCESS] = "Success",
    [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
    [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
    [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
    [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
    [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
    [NVML_ERROR_NOT_FOUND] = "Not Found",
    [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
    [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
    [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
    [NVML_ERROR_TIMEOUT] = "Timeout",
    [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
    [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
    [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
    [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
    [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
    [NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
    [NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
    [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "RM has detected an NVML/RM version mismatch.",
    [NVML_ERROR_IN_USE] = "In use by another client",
    [NVML_ERROR_MEMORY] = "Insufficient Memory",
    [NVML_ERROR_NO_DATA] = "No data",
    [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] =
        "The requested vgpu operation is not available on target device, because ECC is enabled",
    [NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
    [NVML_ERROR_FREQ_NOT_SUPPORTED] = "Requested Frequency Not Supported",
    [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
    [NVML_ERROR_DEPRECATED] = "The requested functionality has been deprecated",
    [NVML_ERROR_NOT_READY] = "The system is not ready for the request",
    [NVML_ERROR_GPU_NOT_FOUND] = "No GPUs were found",
    [NVML_ERROR_INVALID_STATE] = "Resource not in correct state to perform requested operation",
    [NVML_ERROR_RESET_TYPE_NOT_SUPPORTED] = "Reset not supported for given device/parameters",
};

const char *nvmlErrorString(nvmlReturn_t result)
{
    unsigned int number = (unsigned int)result;

    return number < sizeof(sentences) / sizeof(sentences[0]) ? sentences[number] : "Unknown Error";
}
