/*
 * Fields: values by number, each the same as the function that gives it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/library.h"
#include "mocknvml/nvlink.h"

/* What the fields of one call are answered from: one generation, and the table of links read once. */
struct asking {
    nvmlDevice_t device;
    const struct metric_sample *sample;
    bool links_read;
    nvmlReturn_t links_result;
    unsigned int link_count;
    struct nvlink links[NVML_NVLINK_MAX_LINKS];
};

#define U32 NVML_VALUE_TYPE_UNSIGNED_INT
#define U64 NVML_VALUE_TYPE_UNSIGNED_LONG_LONG

static void set_value(nvmlFieldValue_t *field, nvmlValueType_t type, int64_t value)
{
    field->valueType = type;
    field->value.ullVal = 0;
    switch (type) {
    case NVML_VALUE_TYPE_UNSIGNED_INT:
        field->value.uiVal = (unsigned int)value;
        break;
    case NVML_VALUE_TYPE_SIGNED_INT:
        field->value.siVal = (int)value;
        break;
    default:
        field->value.ullVal = (unsigned long long)value;
        break;
    }
}

/* --- fields that are metrics ------------------------------------------------------------------ */

struct field {
    unsigned int id;
    enum metric metric;
    nvmlValueType_t type;
};

static const struct field fields[] = {
    { 1, METRIC_ECC_MODE, U32 },
    { 2, METRIC_ECC_MODE_PENDING, U32 },
    { 3, METRIC_ECC_SBE_VOLATILE_TOTAL, U64 },
    { 4, METRIC_ECC_DBE_VOLATILE_TOTAL, U64 },
    { 5, METRIC_ECC_SBE_AGGREGATE_TOTAL, U64 },
    { 6, METRIC_ECC_DBE_AGGREGATE_TOTAL, U64 },
    { 11, METRIC_ECC_SBE_VOLATILE_TOTAL, U64 }, /* in the device memory: all of them */
    { 12, METRIC_ECC_DBE_VOLATILE_TOTAL, U64 },
    { 22, METRIC_ECC_SBE_AGGREGATE_TOTAL, U64 },
    { 23, METRIC_ECC_DBE_AGGREGATE_TOTAL, U64 },
    { 29, METRIC_RETIRED_PAGES_SBE_TOTAL, U64 },
    { 30, METRIC_RETIRED_PAGES_DBE_TOTAL, U64 },
    { 31, METRIC_RETIRED_PAGES_PENDING, U32 },
    { 38, METRIC_NVLINK_CRC_FLIT_ERROR_TOTAL, U64 },
    { 45, METRIC_NVLINK_CRC_DATA_ERROR_TOTAL, U64 },
    { 52, METRIC_NVLINK_REPLAY_ERROR_TOTAL, U64 },
    { 59, METRIC_NVLINK_RECOVERY_ERROR_TOTAL, U64 },
    { 74, METRIC_VIOLATION_POWER, U64 },
    { 75, METRIC_VIOLATION_THERMAL, U64 },
    { 76, METRIC_VIOLATION_SYNC_BOOST, U64 },
    { 77, METRIC_VIOLATION_BOARD_LIMIT, U64 },
    { 78, METRIC_VIOLATION_LOW_UTILIZATION, U64 },
    { 79, METRIC_VIOLATION_RELIABILITY, U64 },
    { 80, METRIC_VIOLATION_APPLICATION_CLOCKS, U64 },
    { 81, METRIC_VIOLATION_BASE_CLOCKS, U64 },
    { 82, METRIC_TEMPERATURE_MEMORY, U32 },
    { 83, METRIC_ENERGY_TOTAL, U64 },
    { 94, METRIC_PCIE_REPLAY_TOTAL, U32 },
    { 142, METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL, U32 },
    { 143, METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL, U32 },
    { 144, METRIC_REMAPPED_ROWS_PENDING, U32 },
    { 145, METRIC_REMAPPED_ROWS_FAILURE, U32 },
    { 185, METRIC_POWER_USAGE, U32 },
    { 186, METRIC_POWER_USAGE_INSTANT, U32 },
    { 187, METRIC_POWER_LIMIT_MIN, U32 },
    { 188, METRIC_POWER_LIMIT_MAX, U32 },
    { 189, METRIC_POWER_LIMIT_DEFAULT, U32 },
    { 190, METRIC_POWER_LIMIT_ENFORCED, U32 },
    { 191, METRIC_ENERGY_TOTAL, U64 },
    { 192, METRIC_POWER_LIMIT, U32 },
    { 230, METRIC_RECOVERY_ACTION, U32 },
    { 269, METRIC_THROTTLE_SW_THERMAL, U64 },
    { 270, METRIC_THROTTLE_HW_THERMAL, U64 },
    { 271, METRIC_THROTTLE_POWER_BRAKE, U64 },
};

/* The scope of a power field: 0 is the GPU, 1 its module, 2 its memory. */
static bool is_power(const nvmlFieldValue_t *field)
{
    return field->fieldId >= 185 && field->fieldId <= 192 && field->fieldId != 191;
}

/* Of a module the limits alone are known, and where there is none they are 0; of the memory nothing is. */
static nvmlReturn_t other_power(struct asking *a, const nvmlFieldValue_t *field, int64_t *mw)
{
    const char *name = field->fieldId == 187   ? "module_power_min_mw"
                       : field->fieldId == 188 ? "module_power_max_mw"
                                               : NULL;
    nvmlReturn_t result;

    if (field->scopeId != 1 || !name)
        return NVML_ERROR_NOT_SUPPORTED;
    result = device_fact(a->device, name, mw);
    return result == NVML_SUCCESS && *mw == 0 ? NVML_ERROR_NOT_SUPPORTED : result;
}

static nvmlReturn_t field_metric(struct asking *a, const struct field *row,
                                 const nvmlFieldValue_t *field, int64_t *value)
{
    enum { POWER_AVERAGE = 185 };
    nvmlReturn_t result = NVML_SUCCESS;

    /* Up to the first chip of Ampere power is what it is at the moment, and nothing tells an average. */
    if (field->fieldId == POWER_AVERAGE)
        result = device_answers_since(a->device, AFTER_A100);
    if (result != NVML_SUCCESS)
        return result;
    return is_power(field) && field->scopeId
               ? other_power(a, field, value)
               : nvml_error(sample_value(a->sample, row->metric, value));
}

static nvmlReturn_t metric_field(struct asking *a, const struct field *row, nvmlFieldValue_t *field)
{
    int64_t value;
    nvmlReturn_t result = field_metric(a, row, field, &value);

    if (result == NVML_SUCCESS)
        set_value(field, row->type, value);
    return result;
}

/* --- fields that are 0: counted, and nothing of that happens here ------------------------------ */

enum need { NEED_NOTHING, NEED_ECC_BY_PLACE, NEED_NVLINK, NEED_NVLINK5, NEED_C2C };

static const struct {
    unsigned int first, last;
    enum need need;
    nvmlValueType_t type;
} zeros[] = {
    { 7, 28, NEED_ECC_BY_PLACE, U64 }, /* errors of caches and registers */
    { 95, 95, NEED_NOTHING, U32 },     /* PCIe replays rolled over */
    { 148, 160, NEED_NVLINK, U64 },    /* ECC errors on links */
    { 169, 169, NEED_NOTHING, U32 },   /* PCIe links that had to recover */
    { 173, 183, NEED_NOTHING, U32 },   /* PCIe errors by kind */
    { 205, 212, NEED_NVLINK5, U64 },   /* packets that went wrong */
    { 214, 214, NEED_NVLINK5, U64 },   /* links that could not recover */
    { 216, 222, NEED_NVLINK5, U64 },   /* bit errors */
    { 231, 233, NEED_C2C, U32 },       /* errors on the way to the processor */
    { 235, 250, NEED_NVLINK5, U64 },   /* blocks that had to be corrected */
    { 301, 302, NEED_NOTHING, U64 },
};

static bool has(struct asking *a, enum need need)
{
    unsigned int architecture;
    int64_t value = 0;

    switch (need) {
    case NEED_ECC_BY_PLACE:
        return sample_value(a->sample, METRIC_ECC_MODE, &value) == 0 && value &&
               nvmlDeviceGetArchitecture(a->device, &architecture) == NVML_SUCCESS &&
               architecture <= NVML_DEVICE_ARCH_VOLTA;
    case NEED_NVLINK:
        return device_fact(a->device, "nvlink_links", &value) == NVML_SUCCESS && value > 0;
    case NEED_NVLINK5:
        return device_fact(a->device, "nvlink_version", &value) == NVML_SUCCESS && value >= 5;
    case NEED_C2C:
        return device_fact(a->device, "c2c", &value) == NVML_SUCCESS && value > 0;
    case NEED_NOTHING:
        break;
    }
    return true;
}

/* --- distances to limits ----------------------------------------------------------------------- */

/* A limit as the margin at which it is reached: that of slowdown is below 0. */
static nvmlReturn_t margin_field(struct asking *a, nvmlFieldValue_t *field)
{
    const struct metric_sample *sample = a->sample;
    static const enum metric limits[] = { METRIC_TEMPERATURE_SHUTDOWN, METRIC_TEMPERATURE_SLOWDOWN,
                                          METRIC_TEMPERATURE_MEMORY_MAX,
                                          METRIC_TEMPERATURE_MAX_OPERATING };
    int64_t margin, max, limit;

    if (sample_value(sample, METRIC_TEMPERATURE_MARGIN, &margin) < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (field->fieldId == 195 && sample_value(sample, METRIC_TEMPERATURE_MEMORY, &limit) < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (field->fieldId == 196 || field->fieldId == 195) {
        set_value(field, NVML_VALUE_TYPE_SIGNED_INT, 0);
        return NVML_SUCCESS;
    }
    if (sample_value(sample, METRIC_TEMPERATURE_MAX_OPERATING, &max) < 0 ||
        sample_value(sample, limits[field->fieldId - 193], &limit) < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    set_value(field, NVML_VALUE_TYPE_SIGNED_INT, max - limit);
    return NVML_SUCCESS;
}

/* --- fields of links --------------------------------------------------------------------------- */

enum link_value {
    LINK_CRC_FLIT,
    LINK_CRC_DATA,
    LINK_REPLAY,
    LINK_RECOVERY,
    LINK_SPEED_MBPS,
    LINK_STATE,
    LINK_VERSION,
    LINK_TX_KIB,
    LINK_RX_KIB,
    LINK_TX_BYTES,
    LINK_RX_BYTES,
    LINK_REMOTE_ID,
    LINK_CRC,
};

/* Runs of fields with one field per link; `first` is the link of the first. */
static const struct {
    unsigned int id, count, first;
    enum link_value value;
} link_runs[] = {
    { 32, 6, 0, LINK_CRC_FLIT },  { 39, 6, 0, LINK_CRC_DATA },    { 46, 6, 0, LINK_REPLAY },
    { 53, 6, 0, LINK_RECOVERY },  { 84, 6, 0, LINK_SPEED_MBPS },  { 90, 1, 0, LINK_SPEED_MBPS },
    { 96, 6, 6, LINK_CRC_FLIT },  { 102, 6, 6, LINK_CRC_DATA },   { 108, 6, 6, LINK_REPLAY },
    { 114, 6, 6, LINK_RECOVERY }, { 132, 6, 6, LINK_SPEED_MBPS },
};

/* Fields whose scope is the link; ~0 asks for the sum over all links. */
static const struct {
    unsigned int id;
    enum link_value value;
} scoped[] = {
    { 138, LINK_TX_KIB },   { 139, LINK_RX_KIB },    { 140, LINK_TX_KIB },
    { 141, LINK_RX_KIB },   { 146, LINK_REMOTE_ID }, { 161, LINK_REPLAY },
    { 162, LINK_RECOVERY }, { 163, LINK_CRC },       { 164, LINK_SPEED_MBPS },
    { 165, LINK_STATE },    { 166, LINK_VERSION },   { 202, LINK_TX_BYTES },
    { 204, LINK_RX_BYTES }, { 213, LINK_RECOVERY },  { 215, LINK_RECOVERY },
};

static nvmlReturn_t read_links(struct asking *a)
{
    if (!a->links_read) {
        a->links_result = nvlink_read_all(a->device, a->links, &a->link_count);
        a->links_read = true;
    }
    return a->links_result;
}

static int64_t value_of(const struct nvlink *link, unsigned int version, enum link_value what)
{
    switch (what) {
    case LINK_CRC_FLIT:
        return link->crc_flit;
    case LINK_CRC_DATA:
        return link->crc_data;
    case LINK_CRC:
        return (int64_t)link->crc_flit + link->crc_data;
    case LINK_REPLAY:
        return link->replay;
    case LINK_RECOVERY:
        return link->recovery;
    case LINK_SPEED_MBPS:
        return link->up ? (int64_t)(link->bytes_per_second / 1000000) : 0;
    case LINK_STATE:
        return link->up;
    case LINK_VERSION:
        return version;
    case LINK_TX_KIB:
        return (int64_t)(link->tx_bytes / 1024);
    case LINK_RX_KIB:
        return (int64_t)(link->rx_bytes / 1024);
    case LINK_TX_BYTES:
        return (int64_t)link->tx_bytes;
    case LINK_RX_BYTES:
        return (int64_t)link->rx_bytes;
    case LINK_REMOTE_ID:
        return link->peer_link;
    }
    return 0;
}

enum { ALL_LINKS = -1 };

static nvmlReturn_t link_value(struct asking *a, unsigned int number, enum link_value what,
                               nvmlFieldValue_t *field)
{
    unsigned int version = 0;
    int64_t sum = 0;
    nvmlReturn_t result = read_links(a);

    if (result == NVML_SUCCESS && what == LINK_VERSION)
        result = nvlink_version(a->device, &version);
    if (result != NVML_SUCCESS)
        return result;
    if (number != (unsigned int)ALL_LINKS && number >= a->link_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int l = 0; l < a->link_count; l++)
        if (number == (unsigned int)ALL_LINKS || number == l)
            sum += value_of(&a->links[l], version, what);
    set_value(field, U64, sum);
    return NVML_SUCCESS;
}

/* The link that a field with one number for each link is about; false: it is none of them. */
static bool in_run(unsigned int id, unsigned int *link, enum link_value *what)
{
    for (size_t i = 0; i < sizeof(link_runs) / sizeof(link_runs[0]); i++)
        if (id >= link_runs[i].id && id < link_runs[i].id + link_runs[i].count) {
            *link = id - link_runs[i].id + link_runs[i].first;
            *what = link_runs[i].value;
            return true;
        }
    return false;
}

static nvmlReturn_t link_field(struct asking *a, nvmlFieldValue_t *field)
{
    enum link_value what;
    unsigned int link;

    if (in_run(field->fieldId, &link, &what))
        return link_value(a, link, what, field);
    for (size_t i = 0; i < sizeof(scoped) / sizeof(scoped[0]); i++)
        if (field->fieldId == scoped[i].id)
            return link_value(a, field->scopeId, scoped[i].value, field);
    return NVML_ERROR_NOT_SUPPORTED;
}

/* --- the rest --------------------------------------------------------------------------------- */

static nvmlReturn_t give(nvmlFieldValue_t *field, int64_t value)
{
    set_value(field, U32, value);
    return NVML_SUCCESS;
}

static nvmlReturn_t fact_field(struct asking *a, nvmlFieldValue_t *field)
{
    int64_t value;
    nvmlReturn_t result = device_fact(a->device, field->fieldId == 91 ? "nvlink_links" : "c2c",
                                      &value);

    return result == NVML_SUCCESS ? give(field, value) : result;
}

/* 171: the one link to the processor is up; 172: how fast it is, in MB/s, as Grace's modules say it. */
static nvmlReturn_t c2c_field(struct asking *a, nvmlFieldValue_t *field)
{
    enum { MBPS = 44712 };

    return has(a, NEED_C2C) ? give(field, field->fieldId == 171 ? 1 : MBPS)
                            : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t switch_field(struct asking *a, nvmlFieldValue_t *field)
{
    unsigned int count = 0;

    if (read_links(a) == NVML_SUCCESS)
        for (unsigned int l = 0; l < a->link_count; l++)
            count += !strcmp(a->links[l].peer, "switch");
    return give(field, count);
}

/* Links never sleep here, on boards whose links could. */
static nvmlReturn_t link_power_field(struct asking *a, nvmlFieldValue_t *field)
{
    int64_t version;
    nvmlReturn_t result = device_fact(a->device, "nvlink_version", &version);

    if (result == NVML_SUCCESS && version < 4)
        result = NVML_ERROR_NOT_SUPPORTED;
    return result == NVML_SUCCESS ? give(field, 0) : result;
}

/* Whether bad pages of that cause wait: the flag is for both, the counts say which there are. */
static nvmlReturn_t pending_field(struct asking *a, nvmlFieldValue_t *field)
{
    const enum metric ids[] = { METRIC_RETIRED_PAGES_PENDING,
                                field->fieldId == 92 ? METRIC_RETIRED_PAGES_SBE_TOTAL
                                                     : METRIC_RETIRED_PAGES_DBE_TOTAL };
    int64_t values[2];
    nvmlReturn_t result = sample_values(a->sample, ids, 2, values);

    return result == NVML_SUCCESS ? give(field, values[0] && values[1]) : result;
}

/* 226: a reset is needed; 227: draining, then a reset. */
static nvmlReturn_t reset_field(struct asking *a, nvmlFieldValue_t *field)
{
    int64_t action;
    nvmlReturn_t result = nvml_error(sample_value(a->sample, METRIC_RECOVERY_ACTION, &action));

    return result == NVML_SUCCESS ? give(field, action == (field->fieldId == 226 ? 1 : 4)) : result;
}

/* 184: MIG goes on without a reset, since Hopper; 199: profiles can be asked for while MIG is off. */
static nvmlReturn_t mig_field(struct asking *a, nvmlFieldValue_t *field)
{
    int64_t mode;
    nvmlReturn_t result = nvml_error(sample_value(a->sample, METRIC_MIG_MODE, &mode));
    nvmlReturn_t hopper = device_answers_since(a->device, HOPPER);

    return result == NVML_SUCCESS ? give(field, field->fieldId == 199 || hopper == NVML_SUCCESS)
                                  : result;
}

/* 274: how far beyond its power the peak current may go, in percent, since Hopper. */
static nvmlReturn_t peak_field(struct asking *a, nvmlFieldValue_t *field)
{
    nvmlReturn_t result = device_answers_since(a->device, HOPPER);

    return result == NVML_SUCCESS ? give(field, 100) : result;
}

static const struct {
    unsigned int first, last;
    nvmlReturn_t (*answer)(struct asking *a, nvmlFieldValue_t *field);
} others[] = {
    { 91, 91, fact_field },         { 92, 93, pending_field },  { 147, 147, switch_field },
    { 167, 167, link_power_field }, { 170, 170, fact_field },   { 171, 172, c2c_field },
    { 184, 184, mig_field },        { 193, 196, margin_field }, { 199, 199, mig_field },
    { 226, 227, reset_field },      { 274, 274, peak_field },
};

static nvmlReturn_t read_field(struct asking *a, nvmlFieldValue_t *field)
{
    unsigned int id = field->fieldId;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].id == id)
            return metric_field(a, &fields[i], field);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (id >= others[i].first && id <= others[i].last)
            return others[i].answer(a, field);
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        if (id >= zeros[i].first && id <= zeros[i].last) {
            if (!has(a, zeros[i].need))
                return NVML_ERROR_NOT_SUPPORTED;
            set_value(field, zeros[i].type, 0);
            return NVML_SUCCESS;
        }
    return link_field(a, field);
}

/* Each field carries its own result; the call fails only when nothing could be asked. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct reader_gpu gpu;
    struct asking a = { .device = device, .sample = &gpu.sample };
    nvmlReturn_t result = arguments_check(count > 0 && values);

    if (result == NVML_SUCCESS)
        result = device_read_gpu(device, &gpu);
    for (int i = 0; result == NVML_SUCCESS && i < count; i++) {
        int64_t start = now_us();

        values[i].nvmlReturn = read_field(&a, &values[i]);
        values[i].timestamp = now_us();
        values[i].latencyUsec = values[i].timestamp - start;
    }
    return result;
}

/* Of what can be asked for, error counts of links can be set back, all of a link at once. */
static nvmlReturn_t clear_field(nvmlDevice_t device, const nvmlFieldValue_t *field)
{
    unsigned int id = field->fieldId, link;
    enum link_value what;

    if (in_run(id, &link, &what))
        return what == LINK_SPEED_MBPS ? NVML_ERROR_NOT_SUPPORTED
                                       : nvmlDeviceResetNvLinkErrorCounters(device, link);
    if (id >= 161 && id <= 163)
        return nvmlDeviceResetNvLinkErrorCounters(device, field->scopeId);
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    nvmlReturn_t result = arguments_check(count > 0 && values);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    for (int i = 0; result == NVML_SUCCESS && i < count; i++)
        values[i].nvmlReturn = clear_field(device, &values[i]);
    return result;
}
