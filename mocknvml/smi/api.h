/*
 * Api: the management library, loaded as any program loads it, with one table of its functions.
 *
 * Nothing of the library is linked in: what this machine's libnvidia-ml.so.1 is decides at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_API_H
#define SMI_API_H

#include "mocknvml/nvml.h"

struct dram_encryption {
    unsigned int version;
    nvmlEnableState_t state;
};

struct api {
#define DECLARED(name) __typeof__(nvml##name) *name;
#define OTHER(name, ...) nvmlReturn_t (*name)(__VA_ARGS__);
#include "mocknvml/smi/functions.def"
};

extern struct api api;

/* ASK(DeviceGetName, device, text, sizeof(text)): what the library answers. */
#define ASK(name, ...) (api.name ? api.name(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* The version field of a structure. */
#define VERSION_OF(structure, number) NVML_STRUCT_VERSION(sizeof(structure), number)

/*
 * Loads the library: the one that LD_LIBRARY_PATH leads to, the one beside this program (../lib64, as in a
 * mount), the system's, the one where this program was built or installed. NVML_ERROR_LIBRARY_NOT_FOUND.
 */
nvmlReturn_t api_load(void);

/*
 * What is asked between the two about one GPU after the other is of one instant for each, where the library has a
 * way to say so (mocknvml/hold.h). The driver's has none: there nothing happens.
 */
void api_hold(void);
void api_release(void);

/* Where the GPU of an index is that gives no handle, if the library can tell; otherwise "". */
void api_bus_id(unsigned int index, char *text, unsigned int length);

/* nvmlErrorString, for which there must be no library. */
const char *api_error(nvmlReturn_t result);

#endif
