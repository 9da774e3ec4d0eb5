/*
 * Stubs: every function that no simulated driver supports, from functions.def.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/library.h"

/* Their arguments do not matter: callers put them where callees that look at none find them harmless. */
#define FUNCTION_implemented(name)
#define FUNCTION_constant(name)
#define FUNCTION_unsupported(name)    \
    nvmlReturn_t name(void);          \
    nvmlReturn_t name(void)           \
    {                                 \
        return library_unsupported(); \
    }
#define FUNCTION(name, status, source) FUNCTION_##status(name)
#include "mocknvml/functions.def"
