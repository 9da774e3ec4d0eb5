/*
 * Nodes of dev/: the device nodes that the driver and nvidia-modprobe would make.
 *
 * A row says only which device it is; whether that is a character device, a file or the null device,
 * and its permissions where the row gives none, is the mount's choice (enum dev_mode).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/majors.h"
#include "fusefs/nodes.h"

bool gpu_is_present(const struct node_ctx *cx)
{
    return cx->g && !gpu_has(cx->g, CONDITION_LOST);
}

/* Before MIG is on as well: whoever turns it on and cuts instances needs them. */
static bool any_gpu_has_mig(const struct node_ctx *cx)
{
    const struct gpu_plan *plans = world_gpu_plans(cx->world);
    const struct gpu_model *models = world_models(cx->world);

    for (uint32_t i = 0; i < cx->world->used[SECTION_GPU_PLANS]; i++)
        if (models[plans[i].model].mig.count)
            return true;
    return false;
}

unsigned device_minor(const struct node_ctx *cx)
{
    if (cx->gi >= 0)
        return (unsigned)caps_instance_minor(cx->plan->minor, cx->gi, cx->ci);
    return cx->plan ? (unsigned)cx->plan->minor : (unsigned)(cx->def->arg & 0xfffff);
}

/* clang-format off */
#define DEVICE(name, permissions, major, minor, there) \
    { .path = "dev/" name, .mode = permissions, .arg = (int64_t)(major) << 20 | (minor), \
      .flags = NODE_DEVICE, .exists = there }

const struct node_def dev_nodes[] = {
    DEVICE("nvidia%m",                0,    MAJOR_NVIDIA, 0, gpu_is_present), /* the minor is the plan's */
    DEVICE("nvidiactl",               0,    MAJOR_NVIDIA, MINOR_CONTROL, NULL),
    DEVICE("nvidia-modeset",          0,    MAJOR_NVIDIA, MINOR_MODESET, NULL),
    DEVICE("nvidia-uvm",              0,    MAJOR_UVM,    MINOR_UVM, NULL),
    DEVICE("nvidia-uvm-tools",        0,    MAJOR_UVM,    MINOR_UVM_TOOLS, NULL),
    DEVICE("nvidia-caps/nvidia-cap1", 0400, MAJOR_CAPS,   MINOR_MIG_CONFIG, any_gpu_has_mig),
    DEVICE("nvidia-caps/nvidia-cap2", 0444, MAJOR_CAPS,   MINOR_MIG_MONITOR, any_gpu_has_mig),
    DEVICE("nvidia-caps/nvidia-cap%k", 0444, MAJOR_CAPS,  0, gpu_is_present), /* of a GPU instance */
    DEVICE("nvidia-caps/nvidia-cap%K", 0444, MAJOR_CAPS,  0, gpu_is_present), /* of a compute instance */
    { 0 },
};
/* clang-format on */
