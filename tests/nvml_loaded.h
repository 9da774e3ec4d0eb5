/*
 * Nvml loaded: the mock NVML as programs load it, at run time.
 *
 *     nvml_load(path);
 *     is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NVML_LOADED_H
#define TESTS_NVML_LOADED_H

#include <dlfcn.h>

#include "mocknvml/nvml.h"
#include "tests/tap.h"

static void *nvml_handle;

static inline void nvml_load(const char *library)
{
    nvml_handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nvml_handle)
        bail("cannot load %s: %s", library, dlerror());
}

static inline void *nvml_symbol(const char *name)
{
    void *found = dlsym(nvml_handle, name);

    if (!found)
        bail("there is no %s", name);
    return found;
}

/* CALL(nvmlX)(…) is the library's function, with the type that the header gives it. */
#define CALL(name) ((__typeof__(&name))nvml_symbol(#name))

#endif
