/*
 * Metric: the registry as tables. See metric.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/metric.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
const struct metric_info metric_infos[METRIC_COUNT] = {
#define METRIC(id, file, kind, unit, flags, dcgm, dcgm_name, dcgm_46, type, scale, help)        \
    [METRIC_##id] = { file,        METRIC_KIND_##kind, UNIT_##unit, METRIC_FLAG_##flags, dcgm, \
                      dcgm_name,   dcgm_46,            DCGM_TYPE_##type, scale, help },
#include "sim/metrics.def"
};

const struct identity_info identity_infos[IDENTITY_COUNT] = {
#define IDENTITY(id, file, dcgm, dcgm_name, dcgm_46, help) \
    [IDENTITY_##id] = { file, dcgm, dcgm_name, dcgm_46, help },
#include "sim/metrics.def"
};

const struct derived_info derived_infos[] = {
#define DERIVED(id, number, name, type, help) { number, name, DCGM_TYPE_##type, help },
#include "sim/metrics.def"
    { 0 },
};

const struct sampling_info sampling_infos[SAMPLINGS] = {
#define SAMPLING(id, column, metric) [SAMPLING_##id] = { column, METRIC_##metric },
    SAMPLING_TABLE(SAMPLING)
#undef SAMPLING
};
/* clang-format on */

int metric_find(const char *name)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (!strcmp(metric_infos[i].name, name))
            return i;
    return -1;
}

const char *metric_name_at(const void *names, int i)
{
    for (int id = 0; id < METRIC_COUNT; id++)
        if (!names || metric_infos[id].flags & METRIC_FLAG_PIN)
            if (i-- == 0)
                return metric_infos[id].name;
    return NULL;
}

int metric_read(const struct metric_sample *sample, enum metric id, int64_t *value)
{
    if (!metric_mask_has(&sample->valid, id))
        return -ENODATA;
    if (metric_mask_has(&sample->failed, id))
        return -EIO;
    *value = sample->value[id];
    return 0;
}

int metric_read_shown(const struct metric_sample *sample, enum metric id, int64_t *value)
{
    int64_t parts = unit_parts(metric_infos[id].unit), stored;
    int r = metric_read(sample, id, &stored);

    if (r == 0)
        *value = (stored < 0 ? stored - parts / 2 : stored + parts / 2) / parts;
    return r;
}
