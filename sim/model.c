/*
 * Model: what one kind of GPU is, as data. See model.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/model.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/library.h"

/* --- the format ------------------------------------------------------------------------------ */

/* clang-format off */
#define R BIND_REQUIRED
#define MODEL_BYTES(k, S, m, f, h) BIND_ROW_QUANTITY(k, S, m, UNIT_BYTES, 1 << 20, 0x1p50, f, h)
#define MODEL_POWER(k, S, m, h) BIND_ROW_QUANTITY(k, S, m, UNIT_MILLIWATT, 1000, 1e7, R, h)
#define MODEL_CLOCK(k, S, m, f, h) BIND_ROW_QUANTITY(k, S, m, UNIT_MEGAHERTZ, 1e3, 2e7, f, h)
#define MODEL_TEMP(k, S, m, f, h) BIND_ROW_QUANTITY(k, S, m, UNIT_CELSIUS, 0, 2e5, f, h)

static const struct bind_field inforom_fields[] = {
    BIND_ROW_TEXT("image", model_inforom, image, 0, "Version of the image."),
    BIND_ROW_TEXT("oem", model_inforom, oem, 0, "Version of the OEM object."),
    BIND_ROW_TEXT("ecc", model_inforom, ecc, 0, "Version of the ECC object."),
    BIND_ROW_TEXT("power", model_inforom, power, 0, "Version of the power management object."),
    { 0 },
};
static const struct bind_table inforom_table = { .what = "inforom", .fields = inforom_fields };

static int check_pci(struct binder *b, const struct ynode *node, void *object)
{
    struct model_pci *pci = object;

    if (!pci->device_generation)
        pci->device_generation = pci->generation;
    if (pci->device_generation < pci->generation)
        return bind_refuse(b, ERANGE, node, "device_generation is below generation");
    return 0;
}

static const struct bind_field pci_fields[] = {
    BIND_ROW_INT("device_id", model_pci, device_id, 1, 0xffff, R | BIND_HEX, "PCI device id."),
    BIND_ROW_INT("subsystem_id", model_pci, subsystem_id, 0, 0xffff, R | BIND_HEX, "PCI subsystem id."),
    BIND_ROW_INT("class", model_pci, class, 0x030000, 0x03ffff, BIND_HEX, "PCI class code."),
    BIND_ROW_INT("generation", model_pci, generation, 1, 7, R, "PCIe generation of the link."),
    BIND_ROW_INT("device_generation", model_pci, device_generation, 1, 7, 0, "PCIe generation the device could do."),
    BIND_ROW_INT("width", model_pci, width, 1, 32, R, "PCIe lanes."),
    { 0 },
};
static const struct bind_table pci_table = { .what = "pci", .fields = pci_fields, .check = check_pci };

static int check_memory(struct binder *b, const struct ynode *node, void *object)
{
    const struct model_memory *m = object;

    if (m->reserved_bytes >= m->total_bytes)
        return bind_refuse(b, ERANGE, node, "reserved must be below total");
    return 0;
}

static const struct bind_field memory_fields[] = {
    MODEL_BYTES("total", model_memory, total_bytes, R, "Framebuffer memory."),
    MODEL_BYTES("reserved", model_memory, reserved_bytes, R, "Part of it the driver keeps."),
    MODEL_BYTES("bar1", model_memory, bar1_bytes, R, "BAR1 aperture."),
    BIND_ROW_TEXT("type", model_memory, type, 0, "Kind of memory."),
    BIND_ROW_INT("bus_width", model_memory, bus_width_bits, 32, 65536, R, "Bits."),
    BIND_ROW_BOOL("temperature_sensor", model_memory, temperature_sensor, "Whether the memory's temperature can be read."),
    { 0 },
};
static const struct bind_table memory_table = { .what = "memory", .fields = memory_fields, .check = check_memory };

static int check_power(struct binder *b, const struct ynode *node, void *object)
{
    const struct model_power *p = object;

    if (p->min_mw > p->default_mw || p->default_mw > p->max_mw || p->idle_mw >= p->default_mw)
        return bind_refuse(b, ERANGE, node, "must have idle < default and min <= default <= max");
    return 0;
}

static const struct bind_field power_fields[] = {
    MODEL_POWER("idle", model_power, idle_mw, "Draw without load."),
    MODEL_POWER("min", model_power, min_mw, "Lowest power limit."),
    MODEL_POWER("default", model_power, default_mw, "Default power limit."),
    MODEL_POWER("max", model_power, max_mw, "Highest power limit."),
    { 0 },
};
static const struct bind_table power_table = { .what = "power", .fields = power_fields, .check = check_power };

static const struct bind_field module_power_fields[] = {
    MODEL_POWER("min", model_module_power, min_mw, "Lowest limit of the module."),
    MODEL_POWER("max", model_module_power, max_mw, "Highest limit of the module."),
    { 0 },
};
static const struct bind_table module_power_table = { .what = "module_power", .fields = module_power_fields };

static int check_sm_clock(struct binder *b, const struct ynode *node, void *object)
{
    struct model_sm_clock *c = object;

    if (!c->base_khz)
        c->base_khz = c->max_khz;
    if (c->min_khz > c->idle_khz || c->idle_khz > c->max_khz || c->base_khz > c->max_khz)
        return bind_refuse(b, ERANGE, node, "must have min <= idle <= max and base <= max");
    return 0;
}

static const struct bind_field sm_clock_fields[] = {
    MODEL_CLOCK("min", model_sm_clock, min_khz, R, "Lowest clock."),
    MODEL_CLOCK("idle", model_sm_clock, idle_khz, R, "Clock without load."),
    MODEL_CLOCK("base", model_sm_clock, base_khz, 0, "Base clock."),
    MODEL_CLOCK("max", model_sm_clock, max_khz, R, "Highest boost clock."),
    BIND_ROW_QUANTITY("step", model_sm_clock, step_khz, UNIT_MEGAHERTZ, 1e3, 1e5, R, "Distance of supported clocks."),
    { 0 },
};
static const struct bind_table sm_clock_table = { .what = "sm", .fields = sm_clock_fields, .check = check_sm_clock };

static const struct bind_field video_clock_fields[] = {
    MODEL_CLOCK("idle", model_video_clock, idle_khz, R, "Clock without load."),
    MODEL_CLOCK("max", model_video_clock, max_khz, R, "Highest clock."),
    { 0 },
};
static const struct bind_table video_clock_table = { .what = "video", .fields = video_clock_fields };

static const struct bind_table clocks_table;

static int check_clocks(struct binder *b, const struct ynode *node, void *object)
{
    const struct model_clocks *c = object;

    if (!bind_is_set(&clocks_table, c, "sm") || !bind_is_set(&clocks_table, c, "video"))
        return bind_refuse(b, EINVAL, node, "clocks needs the key '%s'",
                           bind_is_set(&clocks_table, c, "sm") ? "video" : "sm");
    if (c->memory.count == 0)
        return bind_refuse(b, EINVAL, node, "memory needs at least one clock");
    for (int i = 1; i < c->memory.count; i++)
        if (c->memory.items[i] >= c->memory.items[i - 1])
            return bind_refuse(b, ERANGE, node, "memory must list its clocks highest first");
    return 0;
}

static const struct bind_field clock_item = { .type = BIND_QUANTITY, .unit = UNIT_MEGAHERTZ,
                                              .low = 1e3, .high = 2e7 };
static const struct bind_field clocks_fields[] = {
    BIND_ROW_STRUCT("sm", model_clocks, sm, &sm_clock_table, "SM and graphics clock."),
    BIND_ROW_ARRAY("memory", model_clocks, memory, &clock_item, MODEL_MEMORY_CLOCKS_MAX, R, "Memory clocks, highest first."),
    BIND_ROW_STRUCT("video", model_clocks, video, &video_clock_table, "Video clock."),
    BIND_ROW_BOOL("offsets", model_clocks, offsets, "Whether the driver lets offsets be added to the clocks."),
    { 0 },
};
static const struct bind_table clocks_table = { .what = "clocks", .fields = clocks_fields, .check = check_clocks };

static int check_thermal(struct binder *b, const struct ynode *node, void *object)
{
    const struct model_thermal *t = object;

    if (t->max_operating_mc >= t->slowdown_mc || t->slowdown_mc >= t->shutdown_mc)
        return bind_refuse(b, ERANGE, node, "must have max_operating < slowdown < shutdown");
    return 0;
}

static const struct bind_field thermal_fields[] = {
    MODEL_TEMP("max_operating", model_thermal, max_operating_mc, R, "Where software slows the clocks down."),
    MODEL_TEMP("slowdown", model_thermal, slowdown_mc, R, "Where the hardware halves the clocks."),
    MODEL_TEMP("shutdown", model_thermal, shutdown_mc, R, "Where the board switches itself off."),
    MODEL_TEMP("memory_max", model_thermal, memory_max_mc, 0, "Highest temperature of the memory."),
    BIND_ROW_BOOL("margin_based", model_thermal, margin_based, "The driver reports margins (T.Limit)."),
    BIND_ROW_REAL("resistance", model_thermal, resistance, 0.001, 10, "C per W between die and inlet air."),
    BIND_ROW_QUANTITY("time_constant", model_thermal, time_constant_ns, UNIT_NANOSECOND, 1e8, 3.6e12, R, "Of the first-order lag."),
    { 0 },
};
static const struct bind_table thermal_table = { .what = "thermal", .fields = thermal_fields, .check = check_thermal };

static int check_fan(struct binder *b, const struct ynode *node, void *object)
{
    const struct model_fan *f = object;

    if (f->count && (f->stop_mc > f->start_mc || f->start_mc >= f->full_mc))
        return bind_refuse(b, ERANGE, node, "must have stop <= start < full");
    return 0;
}

static const struct bind_field fan_fields[] = {
    BIND_ROW_INT("count", model_fan, count, 1, 8, R, "Fans on the board."),
    MODEL_TEMP("start", model_fan, start_mc, R, "Where the fans start."),
    MODEL_TEMP("stop", model_fan, stop_mc, R, "Where the fans stop again."),
    MODEL_TEMP("full", model_fan, full_mc, R, "Where the fans turn at 100 %."),
    BIND_ROW_QUANTITY("min", model_fan, min_percent, UNIT_PERCENT, 0, 1e5, R | BIND_BARE, "Lowest speed of a turning fan."),
    BIND_ROW_INT("max_rpm", model_fan, max_rpm, 100, 30000, 0, "Turns a minute at 100 %."),
    { 0 },
};
static const struct bind_table fan_table = { .what = "fan", .fields = fan_fields, .check = check_fan };

#define MODEL_NUMBER(k, S, m, h) BIND_ROW_INT(k, S, m, 0, 64, 0, h)

static const struct bind_field engines_fields[] = {
    MODEL_NUMBER("encoders", model_engines, encoders, "Video encoders."),
    MODEL_NUMBER("decoders", model_engines, decoders, "Video decoders."),
    MODEL_NUMBER("jpeg", model_engines, jpeg, "JPEG decoders."),
    MODEL_NUMBER("ofa", model_engines, ofa, "Optical flow accelerators."),
    MODEL_NUMBER("copy", model_engines, copy, "Copy engines."),
    { 0 },
};
static const struct bind_table engines_table = { .what = "engines", .fields = engines_fields };

static int check_ecc(struct binder *b, const struct ynode *node, void *object)
{
    struct model_ecc *e = object;

    if (e->page_retirement && e->row_remap_banks)
        return bind_refuse(b, EINVAL, node, "a board retires pages or remaps rows, not both");
    e->on_by_default &= e->supported;
    return 0;
}

static const struct bind_field ecc_fields[] = {
    BIND_ROW_BOOL("supported", model_ecc, supported, "Whether the memory has ECC."),
    BIND_ROW_BOOL("default", model_ecc, on_by_default, "Whether it is on by default."),
    BIND_ROW_BOOL("page_retirement", model_ecc, page_retirement, "Bad memory is retired in pages."),
    BIND_ROW_INT("row_remap_banks", model_ecc, row_remap_banks, 0, 1e6, 0, "Banks whose rows can be remapped."),
    { 0 },
};
static const struct bind_table ecc_table = { .what = "ecc", .fields = ecc_fields, .check = check_ecc };

static const struct bind_field nvlink_fields[] = {
    BIND_ROW_INT("version", model_nvlink, version, 1, 9, R, "NVLink version."),
    BIND_ROW_INT("links", model_nvlink, links, 1, NVLINK_LINKS_MAX, R, "Links of the board."),
    BIND_ROW_QUANTITY("link_speed", model_nvlink, link_bytes_per_second, UNIT_BYTES_PER_SECOND, 1e6, 1e12, R, "Of one link and direction."),
    BIND_ROW_BOOL("switched", model_nvlink, switched, "Boards meet at switches."),
    { 0 },
};
static const struct bind_table nvlink_table = { .what = "nvlink", .fields = nvlink_fields };

static const struct bind_field start_item = { .type = BIND_INT, .low = 0, .high = 15 };
static const struct bind_field mig_fields[] = {
    BIND_ROW_TEXT("name", mig_profile, name, R, "Name of the profile."),
    BIND_ROW_INT("id", mig_profile, id, 0, 255, R, "Number of the profile."),
    BIND_ROW_INT("slices", mig_profile, slices, 1, 8, R, "Compute slices."),
    BIND_ROW_INT("count", mig_profile, count, 1, 8, R, "Instances that fit on an empty GPU."),
    BIND_ROW_INT("multiprocessors", mig_profile, multiprocessors, 1, 1024, R, "Multiprocessors of an instance."),
    MODEL_BYTES("memory", mig_profile, memory_bytes, R, "Memory of an instance."),
    BIND_ROW_INT("size", mig_profile, size, 1, 8, R, "Memory slices of an instance."),
    BIND_ROW_ARRAY("starts", mig_profile, starts, &start_item, MODEL_MIG_STARTS_MAX, R, "Memory slices where an instance can begin."),
    MODEL_NUMBER("copy", mig_profile, copy, "Copy engines."),
    MODEL_NUMBER("decoders", mig_profile, decoders, "Video decoders."),
    MODEL_NUMBER("encoders", mig_profile, encoders, "Video encoders."),
    MODEL_NUMBER("jpeg", mig_profile, jpeg, "JPEG decoders."),
    MODEL_NUMBER("ofa", mig_profile, ofa, "Optical flow accelerators."),
    { 0 },
};
static const struct bind_table mig_table = { .what = "MIG profile", .fields = mig_fields };
static const struct bind_field mig_item = { .type = BIND_STRUCT, .table = &mig_table };

static const char *const groups_required[] = { "pci", "memory", "power", "clocks", "thermal", NULL };

static int check_model(struct binder *b, const struct ynode *node, void *object)
{
    for (int i = 0; groups_required[i]; i++)
        if (!bind_is_set(&model_table, object, groups_required[i]))
            return bind_refuse(b, EINVAL, node, "a model needs the key '%s'", groups_required[i]);
    return 0;
}

static const struct bind_field model_fields[] = {
    BIND_ROW_TEXT("name", gpu_model, name, R, "Name in configurations."),
    BIND_ROW_TEXT("product", gpu_model, product, R, "Name that the driver reports."),
    BIND_ROW_TEXT("brand", gpu_model, brand, 0, "Brand that the driver reports."),
    BIND_ROW_TEXT("architecture", gpu_model, architecture, R, "Architecture."),
    BIND_ROW_TEXT("compute_capability", gpu_model, compute_capability, R, "CUDA compute capability."),
    BIND_ROW_INT("cuda_cores", gpu_model, cuda_cores, 1, 1e6, R, "CUDA cores."),
    BIND_ROW_INT("multiprocessors", gpu_model, multiprocessors, 1, 1e4, R, "Streaming multiprocessors."),
    BIND_ROW_INT("tensor_cores", gpu_model, tensor_cores, 0, 1e5, 0, "Tensor cores."),
    BIND_ROW_BOOL("profiling", gpu_model, profiling, "Whether DCGM's profiling metrics exist."),
    BIND_ROW_TEXT("addressing_mode", gpu_model, addressing_mode, 0, "HMM, ATS or None."),
    BIND_ROW_TEXT("vbios", gpu_model, vbios, 0, "VBIOS version."),
    BIND_ROW_TEXT("board_part_number", gpu_model, board_part_number, 0, "Part number of the board."),
    BIND_ROW_TEXT("gpu_part_number", gpu_model, gpu_part_number, 0, "Part number of the chip."),
    BIND_ROW_STRUCT("inforom", gpu_model, inforom, &inforom_table, "Versions of the InfoROM's objects."),
    BIND_ROW_STRUCT("pci", gpu_model, pci, &pci_table, "On the PCI bus."),
    BIND_ROW_STRUCT("memory", gpu_model, memory, &memory_table, "Memory."),
    BIND_ROW_STRUCT("power", gpu_model, power, &power_table, "Power."),
    BIND_ROW_STRUCT("module_power", gpu_model, module_power, &module_power_table, "Power of the module the GPU shares."),
    BIND_ROW_STRUCT("clocks", gpu_model, clocks, &clocks_table, "Clocks."),
    BIND_ROW_INT("idle_pstate", gpu_model, idle_pstate, 0, 15, 0, "Performance state without load."),
    BIND_ROW_STRUCT("thermal", gpu_model, thermal, &thermal_table, "Thresholds and cooling."),
    BIND_ROW_STRUCT("fan", gpu_model, fan, &fan_table, "Fans on the board."),
    BIND_ROW_STRUCT("engines", gpu_model, engines, &engines_table, "Fixed-function engines."),
    BIND_ROW_STRUCT("ecc", gpu_model, ecc, &ecc_table, "Error correction."),
    BIND_ROW_STRUCT("nvlink", gpu_model, nvlink, &nvlink_table, "NVLink."),
    BIND_ROW_BOOL("c2c", gpu_model, c2c, "Whether a chip-to-chip link to the CPU is enabled."),
    BIND_ROW_ARRAY("mig", gpu_model, mig, &mig_item, MODEL_MIG_PROFILES_MAX, 0, "MIG profiles."),
    { 0 },
};
const struct bind_table model_table = { .what = "a model", .fields = model_fields, .check = check_model };

/* clang-format on */

/* --- sets ------------------------------------------------------------------------------------ */

static void model_init(struct gpu_model *m)
{
    memset(m, 0, sizeof(*m));
    strcpy(m->brand, "NVIDIA");
    strcpy(m->addressing_mode, "None");
    m->pci.class = 0x030200;
    m->ecc.on_by_default = 1;
    m->thermal.resistance = 0.1;
    m->fan.max_rpm = 3000;
}

static struct gpu_model *set_slot(struct model_set *set, const char *name)
{
    struct gpu_model *models;

    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->models[i].name, name))
            return &set->models[i];
    models = realloc(set->models, (size_t)(set->count + 1) * sizeof(*models));
    if (!models)
        return NULL;
    set->models = models;
    return &models[set->count++];
}

static int add_model(void *into, struct binder *b, const struct ynode *root)
{
    struct gpu_model model, *slot;
    int r;

    model_init(&model);
    r = bind_read(b, &model_table, root, &model);
    if (r < 0)
        return r;
    slot = set_slot(into, model.name);
    if (!slot)
        return why_set(b->why, ENOMEM, "out of memory");
    *slot = model;
    return 0;
}

int model_set_load(struct model_set *set, const char *directory, struct why *why)
{
    struct arena arena = ARENA_INIT;
    int r;

    *set = (struct model_set){ 0 };
    r = library_load("models", directory, &arena, add_model, set, why);
    arena_release(&arena);
    if (r < 0)
        model_set_release(set);
    return r;
}

void model_set_release(struct model_set *set)
{
    free(set->models);
    *set = (struct model_set){ 0 };
}

static const char *without_maker(const char *name)
{
    static const char *const makers[] = { "nvidia", "tesla", "geforce" };

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        size_t n = strlen(makers[i]);

        if (!strncasecmp(name, makers[i], n) && strchr(" -_", name[n]) && name[n])
            name += n + 1;
    }
    return name;
}

static bool names_equal(const char *a, const char *b)
{
    a = without_maker(a);
    b = without_maker(b);
    for (; *a && *b; a++, b++) {
        bool blank_a = strchr(" -_", *a), blank_b = strchr(" -_", *b);

        if (blank_a != blank_b ||
            (!blank_a && tolower((unsigned char)*a) != tolower((unsigned char)*b)))
            return false;
    }
    return *a == *b;
}

const struct gpu_model *model_find(const struct model_set *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (names_equal(set->models[i].name, name) || names_equal(set->models[i].product, name))
            return &set->models[i];
    return NULL;
}

const char *model_name_at(const void *set, int i)
{
    const struct model_set *s = set;

    return i < s->count ? s->models[i].name : NULL;
}

/* --- derived numbers ------------------------------------------------------------------------- */

double model_capability(const struct gpu_model *m)
{
    return (double)m->cuda_cores * (double)m->clocks.sm.max_khz;
}

int64_t model_nvlink_bytes_per_second(const struct gpu_model *m)
{
    return m->nvlink.links * m->nvlink.link_bytes_per_second;
}

int64_t pcie_bytes_per_second(int64_t generation, int64_t width)
{
    /* Per lane after line coding: 8b/10b for 1 and 2, 128b/130b for 3 to 5, FLIT for 6 and 7. */
    static const int64_t lane[] = { 0,          250000000,  500000000,  984615384,
                                    1969230769, 3938461538, 7563000000, 15126000000 };

    return lane[generation] * width;
}
