/*
 * Config: what names GPUs: workloads, faults, overrides and links, each checked against the GPUs there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_REFERENCES_H
#define SIM_CONFIG_REFERENCES_H

#include "sim/config_refuse.h"

/* When all GPUs are there. -EINVAL, -ERANGE, -ENOSPC, -ENOMEM. */
int check_references(struct resolver *r);

#endif
