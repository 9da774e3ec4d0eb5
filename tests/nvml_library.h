/*
 * Nvml_library: the mock NVML against a mount of the test's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NVML_LIBRARY_H
#define TESTS_NVML_LIBRARY_H

#include "tests/mounted.h"
#include "tests/nvml_loaded.h"

/* Mounts with these options and loads the library, which is not initialized yet. */
#define nvml_mount_with(...)                      \
    do {                                          \
        mounted_up("--dev", "null", __VA_ARGS__); \
        nvml_begin();                             \
    } while (0)
static inline void nvml_begin(void)
{
    const char *build = getenv("BUILD");
    char path[4096];

    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", build ? build : "build");
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    nvml_load(path);
}

/* The same with the node of a configuration. */
static inline void nvml_mount(const char *config)
{
    nvml_mount_with("--config", config);
}

/* A command that what follows stands on. */
static inline void nvml_put(const char *path, const char *text)
{
    int r = file_put(path, text);

    if (r < 0)
        bail("'%s' to %s: %s", text, path, strerror(-r));
}

static inline nvmlDevice_t nvml_gpu(unsigned int index)
{
    nvmlDevice_t device = NULL;

    CALL(nvmlDeviceGetHandleByIndex_v2)(index, &device);
    return device;
}

#endif
