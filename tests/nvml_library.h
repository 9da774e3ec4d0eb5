/*
 * Nvml_library: the mock NVML against a mount of the test's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NVML_LIBRARY_H
#define TESTS_NVML_LIBRARY_H

#include "tests/mounted.h"
#include "tests/nvml_loaded.h"

/* Mounts the node of that configuration and loads the library, which is not initialized yet. */
static inline void nvml_mount(const char *config)
{
    const char *build = getenv("BUILD");
    char path[4096];

    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", build ? build : "build");
    mounted_up("--dev", "null", "--config", config);
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    nvml_load(path);
}

static inline nvmlDevice_t nvml_gpu(unsigned int index)
{
    nvmlDevice_t device = NULL;

    CALL(nvmlDeviceGetHandleByIndex_v2)(index, &device);
    return device;
}

#endif
