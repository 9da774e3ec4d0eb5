/*
 * Pci: a simulated GPU as the PCI bus would see it: its memory regions, interrupt, DMA reach and
 * configuration space.
 *
 * All of it follows from plan, model and the state of the link, so that every file that tells of the
 * same thing (proc's information; sysfs's resource, irq, config, link speed) agrees. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_PCI_H
#define FUSEFS_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_model;
struct node_ctx;

enum {
    PCI_VENDOR_NVIDIA = 0x10de,
    PCI_REVISION = 0xa1,
    PCI_CONFIG_BYTES = 256,
    PCI_BARS = 6,
    PCI_RESOURCES = 13, /* BARs, ROM and the BARs of virtual functions */
};

/* A region as the kernel shows it; all zero where there is none. */
struct pci_region {
    uint64_t start, end, flags; /* flags: IORESOURCE_* */
};

/* Compute capability × 10: 80 for 8.0. The architectures in the order they came. */
int model_generation(const struct gpu_model *model);

/* Its system processor runs the firmware that comes with the driver: Turing and newer. */
bool model_has_gsp(const struct gpu_model *model);

/* Resets single functions. */
bool model_has_flr(const struct gpu_model *model);

/* How many bits of an address it can put on the bus. */
int pci_dma_bits(const struct gpu_model *model);

/* Its first interrupt. */
int pci_irq(const struct node_ctx *cx);

/* The region behind BAR number `bar`. */
struct pci_region pci_region(const struct node_ctx *cx, int bar);

/* The state of the link: generation (1 …) and lanes. -EIO and -ENODATA as of any reading. */
int pci_link_generation(const struct node_ctx *cx, int64_t *generation);
int pci_link_width(const struct node_ctx *cx, int64_t *width);

/* "16.0 GT/s PCIe", as the kernel calls the speed of a generation. */
const char *pci_speed_name(int64_t generation);

/* The configuration space, without its extended part. */
void pci_config(const struct node_ctx *cx, unsigned char config[PCI_CONFIG_BYTES]);

#endif
