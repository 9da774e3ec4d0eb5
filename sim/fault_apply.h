/*
 * Fault: what faults do to a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_FAULT_APPLY_H
#define SIM_FAULT_APPLY_H

#include "sim/fault.h"
#include "sim/physics.h"

/*
 * Lets the fault happen to GPU i of the copy being changed. -EOPNOTSUPP when the board has nothing that
 * could break that way, -ENODEV when it has fallen off the bus and is not being recovered.
 */
int gpu_fault(struct stepping *st, int i, const struct fault *fault, struct why *why);

/* The planned faults whose time has come. */
void faults_step(struct stepping *st);

#endif
