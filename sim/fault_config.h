/*
 * Fault config: the faults that a configuration plans.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_FAULT_CONFIG_H
#define SIM_FAULT_CONFIG_H

#include "sim/bind.h"
#include "sim/fault.h"
#include "sim/workload.h"

struct fault_spec {
    struct bind_head head;
    int64_t at_ns;
    struct device_name gpu;
    struct fault fault;
    int64_t for_ns;   /* 0: until recover */
    int64_t every_ns; /* 0: once */
};

extern const struct bind_table fault_spec_table;

#endif
