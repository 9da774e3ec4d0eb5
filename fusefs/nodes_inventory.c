/*
 * Nodes that say what GPUs are and who uses them: files of one GPU, and the same as tables of all of them.
 *
 * The tables are for programs that ask of many GPUs at once: one file to read instead of thousands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fusefs/nodes.h"
#include "fusefs/process.h"

/* --- identity -------------------------------------------------------------------------------- */

/* The GPU system processor, and with it a firmware, came with Turing. */
static bool has_gsp(const struct gpu_model *m)
{
    return atof(m->compute_capability) >= 7.5;
}

/* Appends the text and a newline. */
static int add_identity(struct text *out, const struct world *w, int gpu, enum identity id)
{
    const struct gpu_plan *p = &world_gpu_plans(w)[gpu];
    const struct gpu_model *m = &world_models(w)[p->model];
    const struct node_plan *n = &w->node_plan;
    const char *text = NULL;

    switch (id) {
    case IDENTITY_UUID:
        text = p->uuid;
        break;
    case IDENTITY_NAME:
        text = m->product;
        break;
    case IDENTITY_BRAND:
        text = m->brand;
        break;
    case IDENTITY_SERIAL:
        text = p->serial;
        break;
    case IDENTITY_BOARD_PART_NUMBER:
        text = m->board_part_number;
        break;
    case IDENTITY_GPU_PART_NUMBER:
        text = m->gpu_part_number;
        break;
    case IDENTITY_ARCHITECTURE:
        text = m->architecture;
        break;
    case IDENTITY_COMPUTE_CAPABILITY:
        text = m->compute_capability;
        break;
    case IDENTITY_VBIOS_VERSION:
        text = m->vbios;
        break;
    case IDENTITY_INFOROM_IMAGE_VERSION:
        text = m->inforom.image;
        break;
    case IDENTITY_INFOROM_OEM_VERSION:
        text = m->inforom.oem;
        break;
    case IDENTITY_INFOROM_ECC_VERSION:
        text = m->inforom.ecc;
        break;
    case IDENTITY_INFOROM_POWER_VERSION:
        text = m->inforom.power;
        break;
    case IDENTITY_GSP_FIRMWARE_VERSION:
        text = has_gsp(m) ? n->driver_version : "";
        break;
    case IDENTITY_DRIVER_VERSION:
        text = n->driver_version;
        break;
    case IDENTITY_NVML_VERSION:
        text = n->nvml_version;
        break;
    case IDENTITY_CUDA_VERSION:
        text = n->cuda_version;
        break;
    case IDENTITY_NODE:
        text = p->node < 0 ? "" : world_nodes(w)[p->node].name;
        break;
    case IDENTITY_NODE_INDEX:
        if (p->node < 0)
            return -ENODATA;
        text_addf(out, "%d\n", p->node_index);
        return 0;
    case IDENTITY_NODE_BUS_ID:
        if (p->node < 0)
            return -ENODATA;
        text_addf(out, "%08X:%02X:%02X.%X\n", p->node_domain, p->bus, p->device, p->function);
        return 0;
    case IDENTITY_INDEX:
        text_addf(out, "%d\n", gpu);
        return 0;
    case IDENTITY_MINOR_NUMBER:
        text_addf(out, "%d\n", p->minor);
        return 0;
    case IDENTITY_BUS_ID:
        text_addf(out, "%08X:%02X:%02X.%X\n", p->domain, p->bus, p->device, p->function);
        return 0;
    case IDENTITY_PCI_DEVICE_ID:
        text_addf(out, "0x%04X10DE\n", (unsigned)m->pci.device_id);
        return 0;
    case IDENTITY_PCI_SUBSYSTEM_ID:
        text_addf(out, "0x%04X10DE\n", (unsigned)m->pci.subsystem_id);
        return 0;
    case IDENTITY_CUDA_CORES:
        text_addf(out, "%" PRId64 "\n", m->cuda_cores);
        return 0;
    case IDENTITY_MULTIPROCESSORS:
        text_addf(out, "%" PRId64 "\n", m->multiprocessors);
        return 0;
    case IDENTITY_MEMORY_BUS_WIDTH_BITS:
        text_addf(out, "%" PRId64 "\n", m->memory.bus_width_bits);
        return 0;
    case IDENTITY_INFOROM_CHECKSUM:
    case IDENTITY_INFOROM_VALID:
    case IDENTITY_COUNT:
        return -ENODATA;
    }
    if (!text || !*text)
        return -ENODATA;
    text_add(out, text);
    text_add(out, "\n");
    return 0;
}

static int show_identity(const struct node_ctx *cx, struct text *out)
{
    return add_identity(out, cx->world, cx->gpu, (enum identity)cx->def->arg);
}

static void add_identities(struct text *out, const struct world *w, int gpu)
{
    char number[16];

    snprintf(number, sizeof(number), "%d ", gpu);
    for (int id = 0; id < IDENTITY_COUNT; id++) {
        size_t length = out->length;

        text_add(out, number);
        text_add(out, identity_infos[id].name);
        text_add(out, " ");
        if (add_identity(out, w, gpu, (enum identity)id) < 0)
            text_cut(out, length);
    }
}

static int show_inventory(const struct node_ctx *cx, struct text *out)
{
    int count = (int)cx->world->used[SECTION_GPU_PLANS];

    text_add(out, "# gpu name value\n");
    for (int gpu = 0; gpu < count; gpu++)
        add_identities(out, cx->world, gpu);
    return 0;
}

/* --- processes ------------------------------------------------------------------------------- */

static void add_word(struct text *out, const char *word)
{
    text_addf(out, " %s", *word ? word : "-");
}

static void add_process(struct text *out, const struct world *w, const struct share *share)
{
    const struct workload *work = &world_workloads(w)[share->run];

    text_addf(out, "%d %" PRId64 " ", process_id(work), share->memory_bytes);
    unit_show(out, UNIT_PERCENT, (int64_t)share->utilization_percent);
    add_word(out, work->name);
    add_word(out, work->namespace);
    add_word(out, work->pod);
    add_word(out, work->container);
    process_add_instance(out, share);
    text_add(out, "\n");
}

#define PROCESS_COLUMNS \
    "pid memory_bytes utilization_percent workload namespace pod container gi ci\n"

static int show_processes(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;

    if (gpu_has(cx->g, CONDITION_LOST))
        return -ENODEV;
    text_add(out, "# " PROCESS_COLUMNS);
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        if (share->gpu == cx->gpu && world_share_runs(w, share))
            add_process(out, w, share);
    }
    return 0;
}

static int show_all_processes(const struct node_ctx *cx, struct text *out)
{
    const struct world *w = cx->world;

    text_add(out, "# gpu " PROCESS_COLUMNS);
    for (uint32_t s = 0; s < w->used[SECTION_SHARES]; s++) {
        const struct share *share = &world_shares(w)[s];

        if (share->gpu < 0 || !world_share_runs(w, share) ||
            gpu_has(&world_gpus(w)[share->gpu], CONDITION_LOST))
            continue;
        text_addf(out, "%d ", share->gpu);
        add_process(out, w, share);
    }
    return 0;
}

/* clang-format off */
const struct node_def inventory_nodes[] = {
#define IDENTITY(id, file, ...) { "gpus/%i/identity/" file, 0444, show_identity, NULL, IDENTITY_##id, 0, NULL },
#include "sim/metrics.def"
    { "gpus/%i/processes", 0444, show_processes, NULL, 0, 0, NULL },
    { "gpus/inventory", 0444, show_inventory, NULL, 0, 0, NULL },
    { "gpus/processes", 0444, show_all_processes, NULL, 0, 0, NULL },
    { 0 },
};
/* clang-format on */
