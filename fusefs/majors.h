/*
 * Majors: the device numbers that the driver registers.
 *
 * One list for the device nodes and for proc/devices, so that the two never disagree. Only 195 is
 * fixed by the driver; a real kernel hands the others out when modules are loaded, from these ranges.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_MAJORS_H
#define FUSEFS_MAJORS_H

enum device_major {
    MAJOR_NVIDIA = 195,
    MAJOR_NVLINK = 234,
    MAJOR_CAPS = 235,
    MAJOR_IMEX = 236,
    MAJOR_UVM = 510,
    MAJOR_NVSWITCH = 511,
};

/* Of MAJOR_NVIDIA: GPUs have the minors from 0. */
enum nvidia_minor { MINOR_MODESET = 254, MINOR_CONTROL = 255 };

/* Of MAJOR_UVM. */
enum uvm_minor { MINOR_UVM, MINOR_UVM_TOOLS };

/*
 * Of MAJOR_CAPS, as the driver numbers its capabilities: one of NVLink, two of the node, then for each
 * possible GPU its possible instances, and last the one of IMEX.
 */
enum {
    CAPS_GPUS = 32,
    CAPS_GPU_INSTANCES = 15,
    CAPS_COMPUTE_INSTANCES = 8,
    MINOR_FABRIC = 0,
    MINOR_MIG_CONFIG = 1,
    MINOR_MIG_MONITOR = 2,
    MINOR_MIG_GPUS = 3,
    MINOR_IMEX = MINOR_MIG_GPUS + CAPS_GPUS * CAPS_GPU_INSTANCES * (1 + CAPS_COMPUTE_INSTANCES),
};

/* The minor of a GPU instance; those of its compute instances follow. */
static inline int caps_minor(int gpu, int instance)
{
    return MINOR_MIG_GPUS + (gpu * CAPS_GPU_INSTANCES + instance) * (1 + CAPS_COMPUTE_INSTANCES);
}

/* The same for a compute instance, or (ci -1) for the GPU instance. */
static inline int caps_instance_minor(int gpu, int gi, int ci)
{
    return caps_minor(gpu, gi) + 1 + ci;
}

#endif
