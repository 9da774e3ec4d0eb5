/*
 * Config: what must not come twice: identities of GPUs, nodes, names of workloads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_UNIQUE_H
#define SIM_CONFIG_UNIQUE_H

#include "sim/config_refuse.h"

/* When all GPUs are there. -EINVAL, -ENOMEM. */
int check_unique(struct resolver *r);

#endif
