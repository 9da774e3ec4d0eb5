/*
 * Nvlink: one line of gpus/<i>/nvlinks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_NVLINK_H
#define MOCKNVML_NVLINK_H

#include "mocknvml/library.h"

struct nvlink {
    unsigned int number, up, peer_link;
    unsigned long long bytes_per_second;
    char peer[8]; /* "gpu", "switch" or "-" */
    int peer_number;
    char peer_bus_id[32];
    unsigned long long tx_bytes, rx_bytes;
    unsigned int crc_flit, crc_data, replay, recovery;
};

/* All links, of which there are at most NVML_NVLINK_MAX_LINKS; NVML_ERROR_NOT_SUPPORTED where there are none. */
nvmlReturn_t nvlink_read_all(nvmlDevice_t device, struct nvlink *links, unsigned int *count);

/* Link `number`; NVML_ERROR_NOT_SUPPORTED where the GPU has none, NVML_ERROR_INVALID_ARGUMENT behind its last. */
nvmlReturn_t nvlink_read(nvmlDevice_t device, unsigned int number, struct nvlink *link);

/* The generation of its links, as NVML numbers them. */
nvmlReturn_t nvlink_version(nvmlDevice_t device, unsigned int *version);

#endif
