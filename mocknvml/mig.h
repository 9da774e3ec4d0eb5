/*
 * Mig: what other files need to know of a MIG device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_MIG_H
#define MOCKNVML_MIG_H

#include "mocknvml/library.h"

/* "1g.5gb" of a MIG device; with fewer slices than its GPU instance "1c.3g.20gb". */
nvmlReturn_t mig_profile_name(nvmlDevice_t device, char *buf, size_t size);

/* Position among the MIG devices of its GPU. */
nvmlReturn_t mig_device_index(nvmlDevice_t device, unsigned int *index);

/* Memory of the GPU instance that it lives in. */
nvmlReturn_t mig_memory_bytes(nvmlDevice_t device, unsigned long long *bytes);

#endif
