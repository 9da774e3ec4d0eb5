/*
 * Driver: the kernel driver as it is loaded: its release branch, its modules and who uses them.
 *
 * proc/modules and sys/module tell of the same modules; both read this.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_DRIVER_H
#define FUSEFS_DRIVER_H

#include <stdint.h>

struct text;
struct world;

/* In the order of proc/modules: what was loaded last comes first. */
enum driver_module { DRIVER_UVM, DRIVER_DRM, DRIVER_MODESET, DRIVER_NVIDIA, DRIVER_MODULES };

/* The first number of the driver's version: 550. What the files say differs between branches. */
int driver_branch(const struct world *w);

const char *driver_module_name(enum driver_module module);

/* Bytes of the loaded module. */
int64_t driver_module_bytes(const struct world *w, enum driver_module module);

/* What holds the module: modules above it, persistence mode and running workloads. */
int driver_module_users(const struct world *w, enum driver_module module);

/* The modules that need this one. Ends with -1. */
const int *driver_module_holders(enum driver_module module);

/* The letters of what the module does to the kernel's reputation: "OE", "POE". */
const char *driver_taint(const struct world *w);

/* Appends the checksum of the module's sources, as `srcversion` shows it. */
void driver_module_srcversion(struct text *out, const struct world *w, enum driver_module module);

#endif
