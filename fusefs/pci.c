/*
 * Pci: a simulated GPU as the PCI bus would see it. See pci.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/pci.h"

#include <stdio.h>
#include <string.h>

#include "fusefs/node.h"

/* --- what a model is ------------------------------------------------------------------------- */

int model_generation(const struct gpu_model *model)
{
    int major = 0, minor = 0;

    sscanf(model->compute_capability, "%d.%d", &major, &minor);
    return major * 10 + minor;
}

bool model_has_gsp(const struct gpu_model *model)
{
    return model_generation(model) >= 75;
}

bool model_has_flr(const struct gpu_model *model)
{
    return model_generation(model) >= 80;
}

static bool is_vga(const struct gpu_model *model)
{
    return model->pci.class >> 8 == 0x0300;
}

int pci_dma_bits(const struct gpu_model *model)
{
    int generation = model_generation(model);

    return generation >= 90 ? 52 : generation >= 60 ? 47 : 40;
}

int pci_irq(const struct node_ctx *cx)
{
    enum { FIRST_VECTOR = 128 }; /* below are those of the machine itself */

    return FIRST_VECTOR + cx->plan->minor;
}

/* --- regions --------------------------------------------------------------------------------- */

enum region_flags {
    REGION_IO = 0x100,
    REGION_MEMORY = 0x200,
    REGION_PREFETCH = 0x2000,
    REGION_SIZE_ALIGNED = 0x40000,
    REGION_WIDE = 0x100000,
    REGION_BAR_BITS = 0xf, /* as they stand in the BAR itself */
    /* the three kinds */
    REGION_PORTS = REGION_SIZE_ALIGNED | REGION_IO | 0x1,
    REGION_SMALL = REGION_SIZE_ALIGNED | REGION_MEMORY,
    REGION_LARGE = REGION_WIDE | REGION_SIZE_ALIGNED | REGION_PREFETCH | REGION_MEMORY | 0x8 | 0x4,
};

/* What NVIDIA calls them, whichever BARs hold them. */
enum region { REGION_NONE, REGION_REGISTERS, REGION_FRAMEBUFFER, REGION_INSTANCE, REGION_VGA };

enum {
    PORTS_BASE = 0x3000,
    PORTS_BYTES = 128,
    PORTS_PLACES = 64,
    SMALL_PLACES = 96, /* that fit below the chipset's own registers */
};
#define SMALL_BASE UINT64_C(0x80000000)
#define REGISTERS_BYTES (16 * MIB)
#define INSTANCE_BYTES (32 * MIB)

/* Every GPU has a window of 1 TiB far above the memory: half for its framebuffer, then the rest. */
#define WINDOW_BASE UINT64_C(0x200000000000)
#define WINDOW_BYTES (1024 * GIB)
#define FRAMEBUFFER_MAX (WINDOW_BYTES / 2)

/* Two kinds of boards: from Hopper on, all BARs are wide and capabilities begin sooner. */
struct layout {
    enum region bars[PCI_BARS];
    uint32_t registers_flags;
    uint8_t power, msi, express; /* offsets of the capabilities, in their order */
    uint16_t power_capabilities, msi_control;
};

static const struct layout layout_older = {
    .bars = { REGION_REGISTERS, REGION_FRAMEBUFFER, REGION_NONE, REGION_INSTANCE, REGION_NONE,
              REGION_VGA },
    .registers_flags = REGION_SMALL,
    .power = 0x60,
    .msi = 0x68,
    .express = 0x78,
    .power_capabilities = 0x4803, /* version 3, PME from D0 and D3hot */
    .msi_control = 0x0081,        /* on, one message, 64 bits */
};

static const struct layout layout_hopper = {
    .bars = { REGION_REGISTERS, REGION_NONE, REGION_FRAMEBUFFER, REGION_NONE, REGION_INSTANCE,
              REGION_NONE },
    .registers_flags = REGION_LARGE,
    .power = 0x40,
    .msi = 0x48,
    .express = 0x60,
    .power_capabilities = 0x0013, /* version 3, ready at once */
    .msi_control = 0x0189,        /* on, up to 16 messages, 64 bits, maskable */
};

static const struct layout *layout_of(const struct gpu_model *model)
{
    return model_generation(model) >= 90 ? &layout_hopper : &layout_older;
}

/* BARs have sizes that are powers of two. */
static uint64_t framebuffer_bytes(const struct gpu_model *model)
{
    uint64_t bytes = MIB;

    while (bytes < (uint64_t)model->memory.bar1_bytes && bytes < FRAMEBUFFER_MAX)
        bytes *= 2;
    return bytes;
}

static struct pci_region region_at(uint64_t start, uint64_t bytes, uint64_t flags)
{
    return (struct pci_region){ start, start + bytes - 1, flags };
}

struct pci_region pci_region(const struct node_ctx *cx, int bar)
{
    const struct layout *layout = layout_of(cx->model);
    uint64_t place = (uint64_t)cx->plan->minor, window = WINDOW_BASE + place * WINDOW_BYTES;

    switch (bar < PCI_BARS ? layout->bars[bar] : REGION_NONE) {
    case REGION_REGISTERS:
        /* More GPUs than places: they would hang off another host bridge with addresses of its own. */
        if (layout->registers_flags == REGION_SMALL)
            return region_at(SMALL_BASE + place % SMALL_PLACES * REGISTERS_BYTES, REGISTERS_BYTES,
                             REGION_SMALL);
        return region_at(window + FRAMEBUFFER_MAX + INSTANCE_BYTES, REGISTERS_BYTES, REGION_LARGE);
    case REGION_FRAMEBUFFER:
        return region_at(window, framebuffer_bytes(cx->model), REGION_LARGE);
    case REGION_INSTANCE:
        return region_at(window + FRAMEBUFFER_MAX, INSTANCE_BYTES, REGION_LARGE);
    case REGION_VGA:
        if (is_vga(cx->model))
            return region_at(PORTS_BASE + place % PORTS_PLACES * PORTS_BYTES, PORTS_BYTES,
                             REGION_PORTS);
        break;
    case REGION_NONE:
        break;
    }
    return (struct pci_region){ 0 };
}

/* --- the link -------------------------------------------------------------------------------- */

int pci_link_generation(const struct node_ctx *cx, int64_t *generation)
{
    return metric_read(&cx->g->sample, METRIC_PCIE_LINK_GENERATION, generation);
}

int pci_link_width(const struct node_ctx *cx, int64_t *width)
{
    return metric_read(&cx->g->sample, METRIC_PCIE_LINK_WIDTH, width);
}

const char *pci_speed_name(int64_t generation)
{
    static const char *const names[] = {
        "Unknown",        "2.5 GT/s PCIe",  "5.0 GT/s PCIe",  "8.0 GT/s PCIe",
        "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe", "128.0 GT/s PCIe",
    };

    return names[generation > 0 && generation <= 7 ? generation : 0];
}

/* --- configuration space --------------------------------------------------------------------- */

/* A register of the header or of a capability; numbers are in the specification's order. */
static void put8(unsigned char *config, int at, uint32_t value)
{
    config[at] = (unsigned char)value;
}

static void put16(unsigned char *config, int at, uint32_t value)
{
    put8(config, at, value);
    put8(config, at + 1, value >> 8);
}

static void put32(unsigned char *config, int at, uint32_t value)
{
    put16(config, at, value);
    put16(config, at + 2, value >> 16);
}

static void put_header(const struct node_ctx *cx, unsigned char *config)
{
    const struct model_pci *pci = &cx->model->pci;

    put16(config, 0x00, PCI_VENDOR_NVIDIA);
    put16(config, 0x02, (uint32_t)pci->device_id);
    put16(config, 0x04, 0x0547); /* ports, memory, bus master, parity and system errors, no INTx */
    put16(config, 0x06, 0x0010); /* has capabilities */
    put32(config, 0x08, (uint32_t)pci->class << 8 | PCI_REVISION);
    put16(config, 0x2c, PCI_VENDOR_NVIDIA);
    put16(config, 0x2e, (uint32_t)pci->subsystem_id);
    put8(config, 0x34, layout_of(cx->model)->power);
    put8(config, 0x3c, 0x0a); /* the firmware's choice: nobody uses INTx */
    put8(config, 0x3d, 0x01); /* pin A */
}

static void put_bars(const struct node_ctx *cx, unsigned char *config)
{
    for (int bar = 0; bar < PCI_BARS; bar++) {
        struct pci_region r = pci_region(cx, bar);

        if (!r.flags)
            continue;
        put32(config, 0x10 + 4 * bar, (uint32_t)(r.start | (r.flags & REGION_BAR_BITS)));
        if (r.flags & REGION_WIDE)
            put32(config, 0x14 + 4 * bar, (uint32_t)(r.start >> 32));
    }
}

static void put_power(const struct layout *layout, unsigned char *config)
{
    int at = layout->power;

    put16(config, at, (uint32_t)layout->msi << 8 | 0x01);
    put16(config, at + 2, layout->power_capabilities);
    put16(config, at + 4, 0x0008); /* D0, keeps its state through D3hot */
}

static void put_msi(const struct layout *layout, unsigned char *config, int irq)
{
    int at = layout->msi;

    put16(config, at, (uint32_t)layout->express << 8 | 0x05);
    put16(config, at + 2, layout->msi_control);
    put32(config, at + 4, 0xfee00000);
    put16(config, at + 12, (uint32_t)irq & 0xff);
}

/* What the link does now. A register must hold something even when the sensor above it fails. */
static uint32_t link_status(const struct node_ctx *cx)
{
    int64_t generation, width;

    if (pci_link_generation(cx, &generation) < 0)
        generation = cx->model->pci.generation;
    if (pci_link_width(cx, &width) < 0)
        width = cx->model->pci.width;
    return 0x1000 | (uint32_t)generation | (uint32_t)width << 4; /* on the slot's clock */
}

static void put_express(const struct node_ctx *cx, unsigned char *config)
{
    const struct model_pci *pci = &cx->model->pci;
    int at = layout_of(cx->model)->express;

    put16(config, at, 0x10);
    put16(config, at + 2, is_vga(cx->model) ? 0x0012 : 0x0002); /* version 2, (legacy) endpoint */
    /* device: payloads of 256, extended tags, latencies, role-based errors, slot of 75 W, reset */
    put32(config, at + 0x04, 0x012c8de1u | (model_has_flr(cx->model) ? UINT32_C(1) << 28 : 0));
    put16(config, at + 0x08, 0x2137); /* reports errors, relaxed order, 256 and 512 bytes */
    /* link: what it could do (with L1 and its optional compliance), and what it does */
    put32(config, at + 0x0c,
          0x00400800u | (uint32_t)pci->device_generation | (uint32_t)pci->width << 4);
    put16(config, at + 0x10, 0x0040); /* common clock */
    put16(config, at + 0x12, link_status(cx));
    put32(config, at + 0x24, 0x00000813); /* time-outs A and B, can be off, tells its latency */
    put32(config, at + 0x2c, ((UINT32_C(1) << pci->device_generation) - 1) << 1);
    put16(config, at + 0x30, (uint32_t)pci->device_generation);
}

void pci_config(const struct node_ctx *cx, unsigned char config[PCI_CONFIG_BYTES])
{
    const struct layout *layout = layout_of(cx->model);

    memset(config, 0, PCI_CONFIG_BYTES);
    put_header(cx, config);
    put_bars(cx, config);
    put_power(layout, config);
    put_msi(layout, config, pci_irq(cx));
    put_express(cx, config);
}
