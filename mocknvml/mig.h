/*
 * Mig: the tables of instances and profiles, and what other files need to know of a MIG device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_MIG_H
#define MOCKNVML_MIG_H

#include "mocknvml/library.h"

/* One line of gpus/<i>/mig/instances. */
struct mig_instance {
    int gi, ci; /* ci -1: the GPU instance itself */
    char profile[32];
    unsigned int start, slices, multiprocessors;
    unsigned long long memory_bytes;
    char uuid[LENGTH_UUID];
};

/* One line of gpus/<i>/mig/profiles. */
struct mig_profile {
    unsigned int id;
    char name[32];
    unsigned int slices, count, multiprocessors, size, copy, decoders, encoders, jpeg, ofa;
    unsigned long long memory_bytes;
    char starts[64];
};

nvmlReturn_t mig_read_instances(nvmlDevice_t device, struct table *t);
nvmlReturn_t mig_read_profiles(nvmlDevice_t device, struct table *t);
bool mig_next_instance(struct table *t, struct mig_instance *i);
bool mig_next_profile(struct table *t, struct mig_profile *p);

/* `ci` -1: the GPU instance itself. NVML_ERROR_NOT_FOUND. */
nvmlReturn_t mig_find_instance(nvmlDevice_t device, int gi, int ci, struct mig_instance *i);
nvmlReturn_t mig_find_profile(nvmlDevice_t device, const char *name, struct mig_profile *p);
nvmlReturn_t mig_find_profile_id(nvmlDevice_t device, unsigned int id, struct mig_profile *p);

/* How a MIG device can be called. */
struct mig_name {
    unsigned int number; /* among the MIG devices of its GPU, from 0 */
    int gi, ci;
    char uuid[LENGTH_UUID];
};

/* The next MIG device of mig/instances; `number` counts them. */
bool mig_next_name(struct table *instances, unsigned int *number, struct mig_name *name);

/*
 * "1g.5gb"; with fewer slices than its GPU instance "1c.3g.20gb". What a GPU instance has besides ("+me") is not in
 * the name of a compute instance.
 */
void mig_compute_name(const struct mig_instance *gpu, unsigned int slices, char *buf, size_t size);

/* The same of a MIG device. */
nvmlReturn_t mig_profile_name(nvmlDevice_t device, char *buf, size_t size);

/* Position among the MIG devices of its GPU. */
nvmlReturn_t mig_device_index(nvmlDevice_t device, unsigned int *index);

/* Memory of the GPU instance that it lives in. */
nvmlReturn_t mig_memory_bytes(nvmlDevice_t device, unsigned long long *bytes);

/* Of all its GPU's memory slices, those of the GPU instance that it lives in. */
nvmlReturn_t mig_memory_slices(nvmlDevice_t device, unsigned int *slices, unsigned int *all);

#endif
