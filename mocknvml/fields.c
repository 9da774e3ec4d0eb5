/*
 * Fields: values by number, each the same as the function that gives it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "mocknvml/library.h"
#include "mocknvml/nvlink.h"

/* --- fields that are metrics ------------------------------------------------------------------ */

struct field {
    unsigned int id;
    enum metric metric;
    nvmlValueType_t type;
    int64_t divisor; /* from the metric's unit to the field's */
};

#define U32 NVML_VALUE_TYPE_UNSIGNED_INT
#define U64 NVML_VALUE_TYPE_UNSIGNED_LONG_LONG

static const struct field fields[] = {
    { 1, METRIC_ECC_MODE, U32, 1 },
    { 2, METRIC_ECC_MODE_PENDING, U32, 1 },
    { 3, METRIC_ECC_SBE_VOLATILE_TOTAL, U64, 1 },
    { 4, METRIC_ECC_DBE_VOLATILE_TOTAL, U64, 1 },
    { 5, METRIC_ECC_SBE_AGGREGATE_TOTAL, U64, 1 },
    { 6, METRIC_ECC_DBE_AGGREGATE_TOTAL, U64, 1 },
    { 11, METRIC_ECC_SBE_VOLATILE_TOTAL, U64, 1 }, /* in the device memory: all of them */
    { 12, METRIC_ECC_DBE_VOLATILE_TOTAL, U64, 1 },
    { 22, METRIC_ECC_SBE_AGGREGATE_TOTAL, U64, 1 },
    { 23, METRIC_ECC_DBE_AGGREGATE_TOTAL, U64, 1 },
    { 29, METRIC_RETIRED_PAGES_SBE_TOTAL, U64, 1 },
    { 30, METRIC_RETIRED_PAGES_DBE_TOTAL, U64, 1 },
    { 31, METRIC_RETIRED_PAGES_PENDING, U32, 1 },
    { 38, METRIC_NVLINK_CRC_FLIT_ERROR_TOTAL, U64, 1 },
    { 45, METRIC_NVLINK_CRC_DATA_ERROR_TOTAL, U64, 1 },
    { 52, METRIC_NVLINK_REPLAY_ERROR_TOTAL, U64, 1 },
    { 59, METRIC_NVLINK_RECOVERY_ERROR_TOTAL, U64, 1 },
    { 74, METRIC_VIOLATION_POWER, U64, 1 },
    { 75, METRIC_VIOLATION_THERMAL, U64, 1 },
    { 76, METRIC_VIOLATION_SYNC_BOOST, U64, 1 },
    { 77, METRIC_VIOLATION_BOARD_LIMIT, U64, 1 },
    { 78, METRIC_VIOLATION_LOW_UTILIZATION, U64, 1 },
    { 79, METRIC_VIOLATION_RELIABILITY, U64, 1 },
    { 80, METRIC_VIOLATION_APPLICATION_CLOCKS, U64, 1 },
    { 81, METRIC_VIOLATION_BASE_CLOCKS, U64, 1 },
    { 82, METRIC_TEMPERATURE_MEMORY, U32, 1 },
    { 83, METRIC_ENERGY_TOTAL, U64, 1 },
    { 94, METRIC_PCIE_REPLAY_TOTAL, U32, 1 },
    { 142, METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL, U32, 1 },
    { 143, METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL, U32, 1 },
    { 144, METRIC_REMAPPED_ROWS_PENDING, U32, 1 },
    { 145, METRIC_REMAPPED_ROWS_FAILURE, U32, 1 },
    { 185, METRIC_POWER_USAGE, U32, 1 },
    { 186, METRIC_POWER_USAGE_INSTANT, U32, 1 },
    { 187, METRIC_POWER_LIMIT_MIN, U32, 1 },
    { 188, METRIC_POWER_LIMIT_MAX, U32, 1 },
    { 189, METRIC_POWER_LIMIT_DEFAULT, U32, 1 },
    { 190, METRIC_POWER_LIMIT_ENFORCED, U32, 1 },
    { 191, METRIC_ENERGY_TOTAL, U64, 1 },
    { 192, METRIC_POWER_LIMIT, U32, 1 },
    { 230, METRIC_RECOVERY_ACTION, U32, 1 },
    { 269, METRIC_THROTTLE_SW_THERMAL, U64, 1 },
    { 270, METRIC_THROTTLE_HW_THERMAL, U64, 1 },
    { 271, METRIC_THROTTLE_POWER_BRAKE, U64, 1 },
};

/* Errors of caches and registers: counted, and none there. */
static bool is_zero_field(unsigned int id)
{
    return (id >= 7 && id <= 28) || id == 95 || (id >= 148 && id <= 160) || id == 301 || id == 302;
}

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

static nvmlReturn_t metric_field(const struct metric_sample *sample, const struct field *row,
                                 nvmlFieldValue_t *field)
{
    int64_t value;
    nvmlReturn_t result = nvml_error(sample_value(sample, row->metric, &value));

    if (result == NVML_SUCCESS)
        set_value(field, row->type, value / row->divisor);
    return result;
}

/* --- distances to limits ----------------------------------------------------------------------- */

/* A limit as the margin at which it is reached: that of slowdown is below 0. */
static nvmlReturn_t margin_field(const struct metric_sample *sample, nvmlFieldValue_t *field)
{
    static const enum metric limits[] = { METRIC_TEMPERATURE_SHUTDOWN, METRIC_TEMPERATURE_SLOWDOWN,
                                          METRIC_TEMPERATURE_MEMORY_MAX,
                                          METRIC_TEMPERATURE_MAX_OPERATING };
    int64_t margin, max, limit;

    if (sample_value(sample, METRIC_TEMPERATURE_MARGIN, &margin) < 0)
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
    { 138, LINK_TX_KIB },     { 139, LINK_RX_KIB }, { 140, LINK_TX_KIB },   { 141, LINK_RX_KIB },
    { 146, LINK_REMOTE_ID },  { 161, LINK_REPLAY }, { 162, LINK_RECOVERY }, { 163, LINK_CRC },
    { 164, LINK_SPEED_MBPS }, { 165, LINK_STATE },  { 166, LINK_VERSION },  { 202, LINK_TX_BYTES },
    { 204, LINK_RX_BYTES },
};

static nvmlReturn_t link_value(nvmlDevice_t device, unsigned int number, enum link_value what,
                               int64_t *value)
{
    struct nvlink link;
    unsigned int version = 0;
    nvmlReturn_t result = nvlink_read(device, number, &link);

    if (result == NVML_SUCCESS && what == LINK_VERSION)
        result = nvlink_version(device, &version);
    if (result != NVML_SUCCESS)
        return result;
    switch (what) {
    case LINK_CRC_FLIT:
        *value = link.crc_flit;
        break;
    case LINK_CRC_DATA:
        *value = link.crc_data;
        break;
    case LINK_CRC:
        *value = (int64_t)link.crc_flit + link.crc_data;
        break;
    case LINK_REPLAY:
        *value = link.replay;
        break;
    case LINK_RECOVERY:
        *value = link.recovery;
        break;
    case LINK_SPEED_MBPS:
        *value = link.up ? (int64_t)(link.bytes_per_second / 1000000) : 0;
        break;
    case LINK_STATE:
        *value = link.up;
        break;
    case LINK_VERSION:
        *value = version;
        break;
    case LINK_TX_KIB:
        *value = (int64_t)(link.tx_bytes / 1024);
        break;
    case LINK_RX_KIB:
        *value = (int64_t)(link.rx_bytes / 1024);
        break;
    case LINK_TX_BYTES:
        *value = (int64_t)link.tx_bytes;
        break;
    case LINK_RX_BYTES:
        *value = (int64_t)link.rx_bytes;
        break;
    case LINK_REMOTE_ID:
        *value = link.peer_link;
        break;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t link_sum(nvmlDevice_t device, enum link_value what, int64_t *sum)
{
    nvmlReturn_t result = link_value(device, 0, what, sum);

    for (unsigned int l = 1; result == NVML_SUCCESS && l < NVML_NVLINK_MAX_LINKS; l++) {
        int64_t value;

        if (link_value(device, l, what, &value) != NVML_SUCCESS)
            break;
        *sum += value;
    }
    return result;
}

static nvmlReturn_t link_field(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    unsigned int id = field->fieldId;
    int64_t value = 0;
    nvmlReturn_t result = NVML_ERROR_NOT_SUPPORTED;

    for (size_t i = 0; i < sizeof(link_runs) / sizeof(link_runs[0]); i++)
        if (id >= link_runs[i].id && id < link_runs[i].id + link_runs[i].count)
            result = link_value(device, id - link_runs[i].id + link_runs[i].first,
                                link_runs[i].value, &value);
    for (size_t i = 0; i < sizeof(scoped) / sizeof(scoped[0]); i++)
        if (id == scoped[i].id)
            result = field->scopeId == ~0u
                         ? link_sum(device, scoped[i].value, &value)
                         : link_value(device, field->scopeId, scoped[i].value, &value);
    if (result == NVML_SUCCESS)
        set_value(field, U64, value);
    return result;
}

/* --- the rest --------------------------------------------------------------------------------- */

static nvmlReturn_t fact_field(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    static const struct {
        unsigned int id;
        const char *name;
    } facts[] = { { 91, "nvlink_links" }, { 170, "c2c" } };
    int64_t value;

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        if (facts[i].id == field->fieldId &&
            device_fact(device, facts[i].name, &value) == NVML_SUCCESS) {
            set_value(field, U32, value);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t switch_field(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    nvmlIntNvLinkDeviceType_t type;
    unsigned int count = 0;

    for (unsigned int l = 0; nvmlDeviceGetNvLinkRemoteDeviceType(device, l, &type) == NVML_SUCCESS;
         l++)
        count += type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    set_value(field, U32, count);
    return NVML_SUCCESS;
}

static nvmlReturn_t read_field(nvmlDevice_t device, const struct metric_sample *sample,
                               nvmlFieldValue_t *field)
{
    unsigned int id = field->fieldId;
    int64_t ecc;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].id == id)
            return metric_field(sample, &fields[i], field);
    if (is_zero_field(id)) {
        nvmlReturn_t result = nvml_error(id <= 28 ? sample_value(sample, METRIC_ECC_MODE, &ecc)
                                                  : 0);

        if (result == NVML_SUCCESS)
            set_value(field, U64, 0);
        return result;
    }
    if (id >= 193 && id <= 196)
        return margin_field(sample, field);
    if (id == 147)
        return switch_field(device, field);
    if (id == 91 || id == 170)
        return fact_field(device, field);
    return link_field(device, field);
}

/* Each field carries its own result; the call fails only when nothing could be asked. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);

    if (result != NVML_SUCCESS)
        return result;
    if (!values || count <= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        int64_t start = now_us();

        values[i].nvmlReturn = read_field(device, &gpu.sample, &values[i]);
        values[i].timestamp = now_us();
        values[i].latencyUsec = values[i].timestamp - start;
    }
    return NVML_SUCCESS;
}
