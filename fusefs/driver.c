/*
 * Driver: the kernel driver as it is loaded. See driver.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/driver.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/config.h"
#include "sim/rng.h"
#include "sim/text.h"
#include "sim/world.h"

enum { HOLDERS_MAX = 3 };

/* Sizes are those of a 550 driver on x86_64: they say which flavour it is, and not much else. */
static const struct driver_module_info {
    const char *name;
    int64_t bytes[2];         /* by enum kernel_module */
    int holders[HOLDERS_MAX]; /* ends with -1 */
} modules[DRIVER_MODULES] = {
    [DRIVER_UVM] = { "nvidia_uvm", { 2076672, 4956160 }, { -1 } },
    [DRIVER_DRM] = { "nvidia_drm", { 122880, 122880 }, { -1 } },
    [DRIVER_MODESET] = { "nvidia_modeset", { 1601536, 1355776 }, { DRIVER_DRM, -1 } },
    [DRIVER_NVIDIA] = { "nvidia", { 9703424, 54386688 }, { DRIVER_UVM, DRIVER_MODESET, -1 } },
};

int driver_branch(const struct world *w)
{
    return atoi(w->node_plan.driver_version);
}

const char *driver_module_name(enum driver_module module)
{
    return modules[module].name;
}

int64_t driver_module_bytes(const struct world *w, enum driver_module module)
{
    return modules[module].bytes[w->node_plan.kernel_module == MODULE_PROPRIETARY];
}

const int *driver_module_holders(enum driver_module module)
{
    return modules[module].holders;
}

static int persistent_gpus(const struct world *w)
{
    const struct gpu *gpus = world_gpus(w);
    int n = 0;

    for (uint32_t i = 0; i < w->used[SECTION_GPUS]; i++)
        n += gpus[i].settings.persistence_mode != 0;
    return n;
}

/* A workload holds the device of each of its GPUs open. */
static int open_devices(const struct world *w)
{
    const struct share *shares = world_shares(w);
    int n = 0;

    for (uint32_t i = 0; i < w->used[SECTION_SHARES]; i++)
        n += world_share_runs(w, &shares[i]);
    return n;
}

int driver_module_users(const struct world *w, enum driver_module module)
{
    int n = 0;

    for (const int *holder = modules[module].holders; *holder >= 0; holder++)
        n++;
    if (module == DRIVER_NVIDIA)
        n += persistent_gpus(w);
    if (module == DRIVER_NVIDIA || module == DRIVER_UVM)
        n += open_devices(w);
    return n;
}

const char *driver_taint(const struct world *w)
{
    return w->node_plan.kernel_module == MODULE_PROPRIETARY ? "POE" : "OE";
}

void driver_module_srcversion(struct text *out, const struct world *w, enum driver_module module)
{
    const struct node_plan *n = &w->node_plan;
    struct rng rng = rng_seeded(rng_hash((uint64_t)n->kernel_module, modules[module].name),
                                n->driver_version);
    uint64_t high = rng_next(&rng), low = rng_next(&rng);

    text_addf(out, "%016" PRIX64 "%08" PRIX64, high, low >> 32);
}
