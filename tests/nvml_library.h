/*
 * Nvml_library: the mock NVML loaded as programs load it, against a mount of the test's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NVML_LIBRARY_H
#define TESTS_NVML_LIBRARY_H

#include <dlfcn.h>

#include "mocknvml/nvml.h"
#include "tests/mounted.h"

static void *nvml_handle;

static inline void *nvml_symbol(const char *name)
{
    void *found = dlsym(nvml_handle, name);

    if (!found)
        bail("there is no %s", name);
    return found;
}

/* NVML(nvmlX)(…) is the library's function, with the type that the header gives it. */
#define NVML(name) ((__typeof__(&name))nvml_symbol(#name))

/* Mounts the node of that configuration and loads the library, which is not initialized yet. */
static inline void nvml_load(const char *config)
{
    const char *build = getenv("BUILD");
    char path[4096];

    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", build ? build : "build");
    mounted_up("--dev", "null", "--config", config);
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    nvml_handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvml_handle)
        bail("%s", dlerror());
}

static inline nvmlDevice_t nvml_gpu(unsigned int index)
{
    nvmlDevice_t device = NULL;

    NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device);
    return device;
}

#endif
