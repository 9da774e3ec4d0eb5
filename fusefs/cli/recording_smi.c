/*
 * Recording: the columns of `nvidia-smi --query-gpu=… --format=csv`. See recording.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "fusefs/cli/recording.h"

/* Names as --help-query-gpu has them, short forms too; the unit of a number without one. */
static const struct {
    const char *name;
    int metric;
    const char *unit;
} fields[] = {
    { "utilization.gpu", METRIC_UTILIZATION_GPU, "%" },
    { "utilization.memory", METRIC_UTILIZATION_MEMORY, "%" },
    { "utilization.encoder", METRIC_UTILIZATION_ENCODER, "%" },
    { "utilization.decoder", METRIC_UTILIZATION_DECODER, "%" },
    { "utilization.jpeg", METRIC_UTILIZATION_JPEG, "%" },
    { "utilization.ofa", METRIC_UTILIZATION_OFA, "%" },
    { "memory.used", METRIC_MEMORY_USED, "MiB" },
    { "power.draw", METRIC_POWER_USAGE, "W" },
    { "power.draw.average", METRIC_POWER_USAGE, "W" },
    { "power.draw.instant", METRIC_POWER_USAGE, "W" },
    { "temperature.gpu", METRIC_TEMPERATURE_GPU, "C" },
    { "temperature.memory", METRIC_TEMPERATURE_MEMORY, "C" },
    { "clocks.sm", METRIC_CLOCK_SM, "MHz" },
    { "clocks.current.sm", METRIC_CLOCK_SM, "MHz" },
    { "clocks.gr", METRIC_CLOCK_SM, "MHz" },
    { "clocks.current.graphics", METRIC_CLOCK_SM, "MHz" },
    { "clocks.mem", METRIC_CLOCK_MEMORY, "MHz" },
    { "clocks.current.memory", METRIC_CLOCK_MEMORY, "MHz" },
    { "ecc.errors.corrected.volatile.total", METRIC_ECC_SBE_VOLATILE_TOTAL, "" },
    { "ecc.errors.uncorrected.volatile.total", METRIC_ECC_DBE_VOLATILE_TOTAL, "" },
    { "remapped_rows.correctable", METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL, "" },
    { "remapped_rows.uncorrectable", METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL, "" },
    { "remapped_rows.pending", METRIC_REMAPPED_ROWS_PENDING, "" },
    { "remapped_rows.failure", METRIC_REMAPPED_ROWS_FAILURE, "" },
    { "retired_pages.single_bit_ecc.count", METRIC_RETIRED_PAGES_SBE_TOTAL, "" },
    { "retired_pages.sbe", METRIC_RETIRED_PAGES_SBE_TOTAL, "" },
    { "retired_pages.double_bit.count", METRIC_RETIRED_PAGES_DBE_TOTAL, "" },
    { "retired_pages.dbe", METRIC_RETIRED_PAGES_DBE_TOTAL, "" },
    { "retired_pages.pending", METRIC_RETIRED_PAGES_PENDING, "" },
};

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

struct recording_column smi_column(const char *name)
{
    static const char *const of_gpu[] = { "index",      "uuid",       "gpu_uuid",
                                          "pci.bus_id", "gpu_bus_id", NULL };

    if (!strcmp(name, "timestamp"))
        return (struct recording_column){ .kind = COLUMN_TIMESTAMP };
    if (is_one_of(name, of_gpu))
        return (struct recording_column){ .kind = COLUMN_GPU };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!strcmp(name, fields[i].name))
            return (struct recording_column){ COLUMN_METRIC, fields[i].metric, fields[i].unit };
    return (struct recording_column){ .kind = COLUMN_OTHER };
}

int smi_timestamp(const char *text, int64_t *ns)
{
    struct tm tm = { 0 };
    const char *rest = strptime(text, "%Y/%m/%d %H:%M:%S", &tm);
    int64_t fraction = 0, part = NS_PER_S / 10;

    if (!rest || (*rest && *rest != '.'))
        return -EINVAL;
    for (rest += *rest == '.'; *rest >= '0' && *rest <= '9'; rest++, part /= 10)
        fraction += (*rest - '0') * part;
    if (*rest)
        return -EINVAL;
    *ns = (int64_t)timegm(&tm) * NS_PER_S + fraction;
    return 0;
}

bool smi_is_nothing(const char *text)
{
    return !*text || *text == '[' || !strcasecmp(text, "N/A");
}
