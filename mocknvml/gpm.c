/*
 * GPM: the profiling metrics between two samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "mocknvml/handles.h"
#include "mocknvml/library.h"
#include "mocknvml/mig.h"

struct nvmlGpmSample_st {
    struct handle handle;
    bool taken;
    int64_t time_ns; /* simulated */
    struct reader_gpu gpu;
};

static struct handle *samples; /* all there are */

/* What a number means. Activities are those of the second sample; counters become rates between the two. */
enum gpm_kind { GPM_RATIO, GPM_PERCENT, GPM_RATE, GPM_COUNTER };

static const struct {
    unsigned int id;
    enum metric metric;
    enum gpm_kind kind;
    const char *short_name, *long_name, *unit;
} gpm_metrics[] = {
    { 1, METRIC_GR_ENGINE_ACTIVE, GPM_RATIO, "graphics_util", "Graphics Utilization", "%" },
    { 2, METRIC_SM_ACTIVE, GPM_RATIO, "sm_util", "SM Utilization", "%" },
    { 3, METRIC_SM_OCCUPANCY, GPM_RATIO, "sm_occupancy", "SM Occupancy", "%" },
    { 4, METRIC_INTEGER_ACTIVE, GPM_RATIO, "integer_util", "Integer Utilization", "%" },
    { 5, METRIC_TENSOR_ACTIVE, GPM_RATIO, "any_tensor_util", "Tensor Utilization", "%" },
    { 6, METRIC_TENSOR_DFMA_ACTIVE, GPM_RATIO, "dfma_tensor_util", "DFMA Tensor Utilization", "%" },
    { 7, METRIC_TENSOR_HMMA_ACTIVE, GPM_RATIO, "hmma_tensor_util", "HMMA Tensor Utilization", "%" },
    { 9, METRIC_TENSOR_IMMA_ACTIVE, GPM_RATIO, "imma_tensor_util", "IMMA Tensor Utilization", "%" },
    { 10, METRIC_DRAM_ACTIVE, GPM_RATIO, "dram_bw_util", "DRAM Bandwidth Utilization", "%" },
    { 11, METRIC_FP64_ACTIVE, GPM_RATIO, "fp64_util", "FP64 Utilization", "%" },
    { 12, METRIC_FP32_ACTIVE, GPM_RATIO, "fp32_util", "FP32 Utilization", "%" },
    { 13, METRIC_FP16_ACTIVE, GPM_RATIO, "fp16_util", "FP16 Utilization", "%" },
    { 20, METRIC_PCIE_TX, GPM_RATE, "pcie_tx_per_sec", "PCIe TX", "MiB/s" },
    { 21, METRIC_PCIE_RX, GPM_RATE, "pcie_rx_per_sec", "PCIe RX", "MiB/s" },
    { 30, METRIC_UTILIZATION_DECODER, GPM_PERCENT, "nvdec_0_util", "Decoder 0 Utilization", "%" },
    { 40, METRIC_UTILIZATION_JPEG, GPM_PERCENT, "nvjpg_0_util", "JPEG Decoder 0 Utilization", "%" },
    { 50, METRIC_UTILIZATION_OFA, GPM_PERCENT, "nvofa_0_util", "Optical Flow Utilization", "%" },
    { 60, METRIC_NVLINK_RX_BYTES_TOTAL, GPM_COUNTER, "nvlink_total_rx_per_sec", "NVLink RX",
      "MiB/s" },
    { 61, METRIC_NVLINK_TX_BYTES_TOTAL, GPM_COUNTER, "nvlink_total_tx_per_sec", "NVLink TX",
      "MiB/s" },
};

/* Hopper and newer, where the board can be profiled at all. */
static nvmlReturn_t has_gpm(nvmlDevice_t device, unsigned int *has)
{
    int64_t profiling;
    int major, minor;
    nvmlReturn_t result = device_fact(device, "profiling", &profiling);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
    if (result == NVML_SUCCESS)
        *has = profiling && major >= 9;
    return result;
}

/* --- samples --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    unsigned int has;
    nvmlReturn_t result = struct_check(support, NVML_GPM_SUPPORT_VERSION);

    if (result == NVML_SUCCESS)
        result = has_gpm(device, &has);
    if (result == NVML_SUCCESS)
        support->isSupportedDevice = has;
    return result;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    nvmlReturn_t result = answer_check(sample);

    if (result != NVML_SUCCESS)
        return result;
    *sample = calloc(1, sizeof(**sample));
    if (!*sample)
        return NVML_ERROR_MEMORY;
    handle_add(&samples, &(*sample)->handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (library_check() != NVML_SUCCESS || !handle_remove(&samples, sample))
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    free(sample);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct reader_node node;
    unsigned int has;
    nvmlReturn_t result = handle_check(&samples, sample);

    if (result == NVML_SUCCESS)
        result = has_gpm(device, &has);
    if (result == NVML_SUCCESS && !has)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = device_read(device, &sample->gpu);
    if (result == NVML_SUCCESS)
        result = node_read(&node);
    if (result != NVML_SUCCESS)
        return result;
    sample->taken = true;
    sample->time_ns = node.now_ns;
    return NVML_SUCCESS;
}

/* The simulation does not tell instances apart: one's activity is that of its GPU. */
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample)
{
    struct mig_instance instance;
    nvmlReturn_t result = nvmlGpmSampleGet(device, sample);

    return result == NVML_SUCCESS ? mig_find_instance(device, (int)gi, -1, &instance) : result;
}

/* --- metrics --------------------------------------------------------------------------------- */

/* Bytes between two samples as MiB/s; nothing when they are of one generation. */
static double rate(const struct nvmlGpmSample_st *a, const struct nvmlGpmSample_st *b,
                   enum metric id)
{
    double seconds = (double)(b->time_ns - a->time_ns) / 1e9;
    int64_t before = 0, after = 0;

    sample_value(&a->gpu.sample, id, &before);
    sample_value(&b->gpu.sample, id, &after);
    return seconds > 0 ? (double)(after - before) / 1048576 / seconds : 0;
}

static nvmlReturn_t gpm_value(const struct nvmlGpmSample_st *a, const struct nvmlGpmSample_st *b,
                              nvmlGpmMetric_t *metric)
{
    for (size_t i = 0; i < sizeof(gpm_metrics) / sizeof(gpm_metrics[0]); i++) {
        int64_t stored;
        nvmlReturn_t result;

        if (gpm_metrics[i].id != metric->metricId)
            continue;
        metric->metricInfo.shortName = gpm_metrics[i].short_name;
        metric->metricInfo.longName = gpm_metrics[i].long_name;
        metric->metricInfo.unit = gpm_metrics[i].unit;
        result = nvml_error(metric_read(&b->gpu.sample, gpm_metrics[i].metric, &stored));
        if (result != NVML_SUCCESS)
            return result;
        switch (gpm_metrics[i].kind) {
        case GPM_RATIO:
            metric->value = (double)stored / (double)unit_parts(UNIT_RATIO) * 100;
            break;
        case GPM_PERCENT:
            metric->value = (double)stored / (double)unit_parts(UNIT_PERCENT);
            break;
        case GPM_RATE:
            metric->value = (double)stored / 1048576;
            break;
        case GPM_COUNTER:
            metric->value = rate(a, b, gpm_metrics[i].metric);
            break;
        }
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

/* The array behind the structure grew from release to release: only what the caller counts is touched. */
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    nvmlReturn_t result = struct_check(get, NVML_GPM_METRICS_GET_VERSION);

    if (result == NVML_SUCCESS)
        result = handle_check(&samples, get->sample1);
    if (result == NVML_SUCCESS)
        result = handle_check(&samples, get->sample2);
    if (result != NVML_SUCCESS)
        return result;
    if (!get->sample1->taken || !get->sample2->taken)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < get->numMetrics; i++)
        get->metrics[i].nvmlReturn = gpm_value(get->sample1, get->sample2, &get->metrics[i]);
    return NVML_SUCCESS;
}
