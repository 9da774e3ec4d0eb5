/*
 * The mock NVML on boards that differ: what one has and another has not, and what can be set on each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/nvml_library.h"

/* Positions in tests/nvml_node.yaml. */
enum { A100_MIG, A100, H100, RTX, T4, B200, GB200, V100, BOARDS };

static const char *const names[BOARDS] = { "A100 with MIG", "A100",  "H100", "RTX 3090", "T4",
                                           "B200",          "GB200", "V100" };

/* --- what a board has ------------------------------------------------------------------------ */

enum has {
    HAS_FANS = 1,
    HAS_NVLINK = 2,
    HAS_MIG = 4,
    HAS_GPM = 8,
    HAS_ECC = 16,
    HAS_OFFSETS = 32,
    HAS_FABRIC = 64,
    HAS_PLATFORM = 128,
    HAS_MARGIN = 256,
    HAS_ROWS = 512,
    HAS_C2C = 1024
};

static const struct {
    int has;
    unsigned int links, link_version; /* as NVML counts versions */
} boards[BOARDS] = {
    [A100_MIG] = { HAS_NVLINK | HAS_MIG | HAS_ECC | HAS_ROWS, 12, 4 },
    [A100] = { HAS_NVLINK | HAS_MIG | HAS_ECC | HAS_ROWS, 12, 4 },
    [H100] = { HAS_NVLINK | HAS_MIG | HAS_GPM | HAS_ECC | HAS_FABRIC | HAS_MARGIN | HAS_ROWS |
                   HAS_C2C,
               18, 6 },
    [RTX] = { HAS_FANS | HAS_NVLINK | HAS_OFFSETS, 4, 4 },
    [T4] = { HAS_ECC, 0, 0 },
    [B200] = { HAS_NVLINK | HAS_MIG | HAS_GPM | HAS_ECC | HAS_FABRIC | HAS_MARGIN | HAS_ROWS |
                   HAS_C2C,
               18, 7 },
    [GB200] = { HAS_NVLINK | HAS_MIG | HAS_GPM | HAS_ECC | HAS_FABRIC | HAS_PLATFORM | HAS_MARGIN |
                    HAS_ROWS | HAS_C2C,
                18, 7 },
    [V100] = { HAS_NVLINK | HAS_ECC, 6, 2 },
};

static void answers(int board, enum has what, nvmlReturn_t result, const char *function)
{
    is_int(result, boards[board].has & what ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED, "%s: %s",
           names[board], function);
}

static void what_it_has(int b)
{
    nvmlDevice_t gpu = nvml_gpu((unsigned)b);
    nvmlEnableState_t state;
    nvmlGpmSupport_t gpm = { .version = NVML_GPM_SUPPORT_VERSION };
    nvmlC2cModeInfo_v1_t c2c;
    nvmlMarginTemperature_v1_t margin = { .version = NVML_STRUCT_VERSION(sizeof(margin), 1) };
    nvmlPlatformInfo_v2_t platform = { .version = NVML_STRUCT_VERSION(sizeof(platform), 2) };
    nvmlGpuFabricInfo_v2_t fabric = { .version = NVML_STRUCT_VERSION(sizeof(fabric), 2) };
    nvmlFanSpeedInfo_t rpm = { .version = NVML_STRUCT_VERSION(sizeof(rpm), 1) };
    unsigned int number, other, more, most;
    int low, high;

    is_int(CALL(nvmlDeviceGetNumFans)(gpu, &number), NVML_SUCCESS, "%s: fans", names[b]);
    is_int(number > 0, boards[b].has & HAS_FANS ? 1 : 0, "%s: as many as it has", names[b]);
    answers(b, HAS_FANS, CALL(nvmlDeviceGetFanSpeed)(gpu, &number), "fan speed");
    answers(b, HAS_FANS, CALL(nvmlDeviceGetFanSpeed_v2)(gpu, 0, &number), "of one fan");
    answers(b, HAS_FANS, CALL(nvmlDeviceGetTargetFanSpeed)(gpu, 0, &number), "fan target");
    answers(b, HAS_FANS, CALL(nvmlDeviceGetFanSpeedRPM)(gpu, &rpm), "fan rpm");
    answers(b, HAS_FANS, CALL(nvmlDeviceGetFanControlPolicy_v2)(gpu, 0, &number), "fan policy");
    answers(b, HAS_FANS, CALL(nvmlDeviceSetFanSpeed_v2)(gpu, 0, 60), "fan set");
    answers(b, HAS_NVLINK, CALL(nvmlDeviceGetNvLinkState)(gpu, 0, &state), "NVLink state");
    answers(b, HAS_NVLINK, CALL(nvmlDeviceResetNvLinkErrorCounters)(gpu, 0), "NVLink reset");
    if (boards[b].links) {
        is_int(CALL(nvmlDeviceGetNvLinkState)(gpu, boards[b].links, &state),
               NVML_ERROR_INVALID_ARGUMENT, "%s has %u links", names[b], boards[b].links);
        CALL(nvmlDeviceGetNvLinkVersion)(gpu, 0, &number);
        is_int(number, boards[b].link_version, "%s: their version", names[b]);
    }
    answers(b, HAS_MIG, CALL(nvmlDeviceGetMigMode)(gpu, &number, &other), "MIG mode");
    answers(b, HAS_ECC, CALL(nvmlDeviceGetEccMode)(gpu, &state, &state), "ECC mode");
    answers(b, HAS_ECC, CALL(nvmlDeviceClearEccErrorCounts)(gpu, NVML_VOLATILE_ECC), "ECC clear");
    answers(b, HAS_OFFSETS, CALL(nvmlDeviceGetGpcClkVfOffset)(gpu, &low), "clock offset");
    answers(b, HAS_OFFSETS, CALL(nvmlDeviceGetMemClkMinMaxVfOffset)(gpu, &low, &high), "its range");
    answers(b, HAS_OFFSETS, CALL(nvmlDeviceSetGpcClkVfOffset)(gpu, 0), "clock offset set");
    answers(b, HAS_MARGIN, CALL(nvmlDeviceGetMarginTemperature)(gpu, &margin), "margin");
    answers(b, HAS_C2C, CALL(nvmlDeviceGetC2cModeInfoV)(gpu, &c2c), "C2C mode");
    if (boards[b].has & HAS_C2C)
        is_int(c2c.isC2cEnabled, b == GB200, "%s: is tied to its processor", names[b]);
    answers(b, HAS_PLATFORM, CALL(nvmlDeviceGetPlatformInfo)(gpu, &platform), "platform");
    answers(b, HAS_ROWS, CALL(nvmlDeviceGetRemappedRows)(gpu, &number, &other, &more, &most),
            "remapped rows");
    is_int(CALL(nvmlGpmQueryDeviceSupport)(gpu, &gpm), NVML_SUCCESS, "%s: GPM", names[b]);
    is_int((int)gpm.isSupportedDevice, boards[b].has & HAS_GPM ? 1 : 0, "%s: has it or not",
           names[b]);
    is_int(CALL(nvmlDeviceGetGpuFabricInfoV)(gpu, (nvmlGpuFabricInfo_v3_t *)&fabric), NVML_SUCCESS,
           "%s: fabric", names[b]);
    is_int(fabric.state,
           boards[b].has & HAS_FABRIC ? NVML_GPU_FABRIC_STATE_COMPLETED
                                      : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED,
           "%s: is part of it or not", names[b]);
}

/* --- setting --------------------------------------------------------------------------------- */

static void fans(void)
{
    nvmlDevice_t gpu = nvml_gpu(RTX);
    nvmlFanSpeedInfo_t rpm = { .version = NVML_STRUCT_VERSION(sizeof(rpm), 1), .fan = 1 };
    unsigned int percent, policy, min, max;

    is_int(CALL(nvmlDeviceGetMinMaxFanSpeed)(gpu, &min, &max), NVML_SUCCESS, "a fan's range");
    is_int(min, 30, "from its lowest");
    is_int(max, 100, "to 100 %%");
    is_int(CALL(nvmlDeviceSetFanSpeed_v2)(gpu, 1, 70), NVML_SUCCESS, "a fan is set");
    is_str(file_text("gpus/3/control/fan_speed_percent"), "70", "in its file");
    is_int(CALL(nvmlDeviceGetTargetFanSpeed)(gpu, 0, &percent), NVML_SUCCESS, "its target");
    is_int(percent, 70, "is that");
    CALL(nvmlDeviceGetFanControlPolicy_v2)(gpu, 0, &policy);
    is_int(policy, NVML_FAN_POLICY_MANUAL, "set by hand");
    is_int(file_put("control/clock", "step 60s"), 0, "a minute later");
    CALL(nvmlDeviceGetFanSpeed_v2)(gpu, 1, &percent);
    is_int(percent, 70, "it turns so fast");
    CALL(nvmlDeviceGetFanSpeedRPM)(gpu, &rpm);
    is_int(rpm.speed, 2100, "in turns a minute");
    is_int(CALL(nvmlDeviceSetFanSpeed_v2)(gpu, 2, 70), NVML_ERROR_INVALID_ARGUMENT, "no third fan");
    is_int(CALL(nvmlDeviceSetFanSpeed_v2)(gpu, 0, 5), NVML_ERROR_INVALID_ARGUMENT,
           "5 %% is too slow");
    is_int(CALL(nvmlDeviceSetFanControlPolicy)(gpu, 0, NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW),
           NVML_SUCCESS, "given back");
    is_str(file_text("gpus/3/control/fan_speed_percent"), "auto", "to the temperature");
    is_int(CALL(nvmlDeviceSetFanControlPolicy)(gpu, 0, NVML_FAN_POLICY_MANUAL), NVML_SUCCESS,
           "taken again");
    is_int(CALL(nvmlDeviceSetDefaultFanSpeed_v2)(gpu, 0), NVML_SUCCESS, "and back");
}

static void clock_offsets(void)
{
    nvmlDevice_t gpu = nvml_gpu(RTX);
    nvmlClockOffset_t offset = { .version = NVML_STRUCT_VERSION(sizeof(offset), 1),
                                 .type = NVML_CLOCK_MEM,
                                 .clockOffsetMHz = -500 };
    int mhz;

    is_int(CALL(nvmlDeviceSetGpcClkVfOffset)(gpu, 120), NVML_SUCCESS, "an SM offset");
    is_int(CALL(nvmlDeviceSetClockOffsets)(gpu, &offset), NVML_SUCCESS, "a memory offset");
    is_str(file_text("gpus/3/control/clock_offsets"), "120 -500", "are in the file");
    CALL(nvmlDeviceGetMemClkVfOffset)(gpu, &mhz);
    is_int(mhz, -500, "and are read back");
    offset.type = NVML_CLOCK_GRAPHICS;
    is_int(CALL(nvmlDeviceGetClockOffsets)(gpu, &offset), NVML_SUCCESS, "with their range");
    is_int(offset.clockOffsetMHz, 120, "of the graphics clock");
    is_int(offset.minClockOffsetMHz, -1000, "from");
    is_int(offset.maxClockOffsetMHz, 1000, "to");
    offset.pstate = 8;
    is_int(CALL(nvmlDeviceGetClockOffsets)(gpu, &offset), NVML_ERROR_NOT_SUPPORTED, "in P0 only");
    is_int(CALL(nvmlDeviceSetMemClkVfOffset)(gpu, 99999), NVML_ERROR_INVALID_ARGUMENT, "not any");
    CALL(nvmlDeviceSetGpcClkVfOffset)(gpu, 0);
}

static void ecc(void)
{
    nvmlDevice_t gpu = nvml_gpu(A100);
    unsigned long long count;

    file_put("gpus/1/control/fault", "ecc sbe 3");
    CALL(nvmlDeviceGetTotalEccErrors)
    (gpu, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &count);
    is_int((int64_t)count, 3, "errors are counted");
    is_int(CALL(nvmlDeviceClearEccErrorCounts)(gpu, NVML_VOLATILE_ECC), NVML_SUCCESS, "cleared");
    CALL(nvmlDeviceGetTotalEccErrors)
    (gpu, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &count);
    is_int((int64_t)count, 0, "and gone");
    CALL(nvmlDeviceGetTotalEccErrors)
    (gpu, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC, &count);
    is_int((int64_t)count, 3, "but for the board's life");
}

/* --- who may set ----------------------------------------------------------------------------- */

static nvmlReturn_t set_fan(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetFanSpeed_v2)(gpu, 0, 50);
}

static nvmlReturn_t set_default_fan(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetDefaultFanSpeed_v2)(gpu, 0);
}

static nvmlReturn_t set_offset(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetGpcClkVfOffset)(gpu, 15);
}

static nvmlReturn_t lock_clocks(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetGpuLockedClocks)(gpu, 900, 900);
}

static nvmlReturn_t lock_memory(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceResetMemoryLockedClocks)(gpu);
}

static nvmlReturn_t set_applications_clocks(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceResetApplicationsClocks)(gpu);
}

static nvmlReturn_t set_power(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetPowerManagementLimit)(gpu, 300000);
}

static nvmlReturn_t set_persistence(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetPersistenceMode)(gpu, NVML_FEATURE_ENABLED);
}

static nvmlReturn_t set_compute_mode(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetComputeMode)(gpu, NVML_COMPUTEMODE_PROHIBITED);
}

static nvmlReturn_t set_ecc(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceSetEccMode)(gpu, NVML_FEATURE_DISABLED);
}

static nvmlReturn_t clear_ecc(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceClearEccErrorCounts)(gpu, NVML_AGGREGATE_ECC);
}

static nvmlReturn_t set_mig(nvmlDevice_t gpu)
{
    nvmlReturn_t activation;

    return CALL(nvmlDeviceSetMigMode)(gpu, NVML_DEVICE_MIG_ENABLE, &activation);
}

static nvmlReturn_t reset_link(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceResetNvLinkErrorCounters)(gpu, 0);
}

static nvmlReturn_t freeze_link(nvmlDevice_t gpu)
{
    return CALL(nvmlDeviceFreezeNvLinkUtilizationCounter)(gpu, 0, 0, NVML_FEATURE_ENABLED);
}

static nvmlReturn_t drain(nvmlDevice_t gpu)
{
    nvmlPciInfo_t pci;

    CALL(nvmlDeviceGetPciInfo_v3)(gpu, &pci);
    return CALL(nvmlDeviceModifyDrainState)(&pci, NVML_FEATURE_ENABLED);
}

static nvmlReturn_t remove_gpu(nvmlDevice_t gpu)
{
    nvmlPciInfo_t pci;

    CALL(nvmlDeviceGetPciInfo_v3)(gpu, &pci);
    return CALL(nvmlDeviceRemoveGpu_v2)(&pci, 0, 0);
}

static nvmlReturn_t create_instance(nvmlDevice_t gpu)
{
    nvmlGpuInstance_t instance;

    return CALL(nvmlDeviceCreateGpuInstance)(gpu, 19, &instance);
}

/* Somebody without the permission to write the files may set nothing, and is told so. */
static void setters(void)
{
    static const struct {
        const char *name;
        int board;
        nvmlReturn_t (*set)(nvmlDevice_t gpu);
    } rows[] = {
        { "a fan", RTX, set_fan },
        { "its default", RTX, set_default_fan },
        { "a clock offset", RTX, set_offset },
        { "locked clocks", A100, lock_clocks },
        { "memory clocks", A100, lock_memory },
        { "application clocks", A100, set_applications_clocks },
        { "a power limit", A100, set_power },
        { "persistence", A100, set_persistence },
        { "the compute mode", A100, set_compute_mode },
        { "ECC", A100, set_ecc },
        { "ECC counts", A100, clear_ecc },
        { "MIG", A100, set_mig },
        { "NVLink errors", A100, reset_link },
        { "NVLink counters", A100, freeze_link },
        { "draining", A100, drain },
        { "a GPU", A100, remove_gpu },
        { "an instance", A100_MIG, create_instance },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nvmlDevice_t gpu = nvml_gpu((unsigned)rows[i].board);
        pid_t child = child_start();

        if (child == 0)
            _exit(setuid(65534) == 0 ? (int)rows[i].set(gpu) : 99);
        is_int(child_end(child), NVML_ERROR_NO_PERMISSION, "nobody may not set %s", rows[i].name);
    }
}

/* --- NVLink ---------------------------------------------------------------------------------- */

static uint64_t counted(nvmlDevice_t gpu, unsigned int counter)
{
    unsigned long long rx = 0, tx = 0;

    is_int(CALL(nvmlDeviceGetNvLinkUtilizationCounter)(gpu, 2, counter, &rx, &tx), NVML_SUCCESS,
           "a counter of a link");
    return tx;
}

static void nvlink(void)
{
    nvmlDevice_t gpu = nvml_gpu(V100);
    nvmlNvLinkUtilizationControl_t control = { .units = 2, .pktfilter = 0xff };
    unsigned long long errors;
    nvmlFieldValue_t values[] = { { .fieldId = 91 }, { .fieldId = 147 }, { .fieldId = 166 } };
    uint64_t stood;

    file_put("control/clock", "pause");
    is_int(CALL(nvmlDeviceSetNvLinkUtilizationControl)(gpu, 2, 0, &control, 1), NVML_SUCCESS,
           "what to count");
    control = (nvmlNvLinkUtilizationControl_t){ 0 };
    CALL(nvmlDeviceGetNvLinkUtilizationControl)(gpu, 2, 0, &control);
    is_int(control.pktfilter, 0xff, "is kept");
    stood = counted(gpu, 0);
    is_int((int64_t)stood, 0, "it was set back");
    is_int(CALL(nvmlDeviceFreezeNvLinkUtilizationCounter)(gpu, 2, 0, NVML_FEATURE_ENABLED),
           NVML_SUCCESS, "it is frozen");
    contains(file_text("gpus/7/control/nvlink_counters"), "2 0 0 0 1 2 255", "in the file");
    is_int(CALL(nvmlDeviceFreezeNvLinkUtilizationCounter)(gpu, 2, 0, NVML_FEATURE_DISABLED),
           NVML_SUCCESS, "and not");
    is_int(CALL(nvmlDeviceResetNvLinkUtilizationCounter)(gpu, 99, 0), NVML_ERROR_INVALID_ARGUMENT,
           "no link 99");
    file_put("control/clock", "resume");
    gpu = nvml_gpu(H100);
    file_put("gpus/2/control/fault", "nvlink 4 down");
    CALL(nvmlDeviceGetNvLinkErrorCounter)(gpu, 4, NVML_NVLINK_ERROR_DL_REPLAY, &errors);
    is_int((int64_t)errors, 1, "an error on a link");
    is_int(CALL(nvmlDeviceResetNvLinkErrorCounters)(gpu, 4), NVML_SUCCESS, "is set back");
    CALL(nvmlDeviceGetNvLinkErrorCounter)(gpu, 4, NVML_NVLINK_ERROR_DL_REPLAY, &errors);
    is_int((int64_t)errors, 0, "and gone");
    file_put("gpus/2/control/fault", "recover");
    is_int(CALL(nvmlDeviceGetFieldValues)(gpu, 3, values), NVML_SUCCESS, "fields of links");
    is_int(values[0].value.uiVal, 18, "how many");
    is_int(values[1].value.uiVal, 18, "all on switches");
    is_int((int64_t)values[2].value.ullVal, 6, "their version");
}

/* --- GPM ------------------------------------------------------------------------------------- */

static void gpm(int board)
{
    nvmlDevice_t gpu = nvml_gpu((unsigned)board);
    size_t bytes = sizeof(nvmlGpmMetricsGet_t) + 3 * sizeof(nvmlGpmMetric_t);
    nvmlGpmMetricsGet_t *get = calloc(1, bytes);

    if (!get)
        bail("no memory");
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->numMetrics = 3;
    get->metrics[0].metricId = 2;  /* SM utilization */
    get->metrics[1].metricId = 61; /* NVLink */
    get->metrics[2].metricId = 7777;
    CALL(nvmlGpmSampleAlloc)(&get->sample1);
    CALL(nvmlGpmSampleAlloc)(&get->sample2);
    is_int(CALL(nvmlGpmMetricsGet)(get), NVML_ERROR_INVALID_ARGUMENT, "%s: nothing is taken yet",
           names[board]);
    file_put(file_path("gpus/%d/control/utilization_gpu_percent", board) + strlen(mounted.root) + 1,
             "50");
    file_put("control/clock", "step 2s");
    is_int(CALL(nvmlGpmSampleGet)(gpu, get->sample1), NVML_SUCCESS, "%s: a sample", names[board]);
    file_put("control/clock", "step 2s");
    is_int(CALL(nvmlGpmSampleGet)(gpu, get->sample2), NVML_SUCCESS, "%s: another", names[board]);
    is_int(CALL(nvmlGpmMetricsGet)(get), NVML_SUCCESS, "%s: between them", names[board]);
    ok(get->metrics[0].value > 10 && get->metrics[0].value <= 100, "%s: SMs are busy (%g)",
       names[board], get->metrics[0].value);
    is_int(get->metrics[1].nvmlReturn, NVML_SUCCESS, "%s: NVLink is counted", names[board]);
    is_int(get->metrics[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED, "%s: what is no metric is none",
           names[board]);
    is_int(CALL(nvmlGpmMigSampleGet)(gpu, 3, get->sample1), NVML_ERROR_NOT_FOUND,
           "%s: nor an instance", names[board]);
    CALL(nvmlGpmSampleFree)(get->sample1);
    CALL(nvmlGpmSampleFree)(get->sample2);
    free(get);
}

/* --- topology -------------------------------------------------------------------------------- */

static void topology(void)
{
    nvmlGpuP2PStatus_t status;
    nvmlGpuTopologyLevel_t level;
    nvmlIntNvLinkDeviceType_t type;
    unsigned int count = 0;
    nvmlDevice_t near[BOARDS];

    is_int(CALL(nvmlDeviceGetP2PStatus)(nvml_gpu(A100_MIG), nvml_gpu(A100),
                                        NVML_P2P_CAPS_INDEX_NVLINK, &status),
           NVML_SUCCESS, "two A100");
    is_int(status, NVML_P2P_STATUS_OK, "meet on their switches");
    CALL(nvmlDeviceGetP2PStatus)(nvml_gpu(A100), nvml_gpu(T4), NVML_P2P_CAPS_INDEX_NVLINK, &status);
    is_int(status, NVML_P2P_STATUS_NOT_SUPPORTED, "a T4 has no NVLink");
    CALL(nvmlDeviceGetNvLinkRemoteDeviceType)(nvml_gpu(B200), 0, &type);
    is_int(type, NVML_NVLINK_DEVICE_TYPE_SWITCH, "a B200 is on a switch");
    is_int(CALL(nvmlDeviceGetTopologyCommonAncestor)(nvml_gpu(A100), nvml_gpu(H100), &level),
           NVML_SUCCESS, "where GPUs meet");
    is_int(CALL(nvmlDeviceGetTopologyNearestGpus)(nvml_gpu(A100), level, &count, NULL),
           NVML_SUCCESS, "how many do so");
    ok(count > 0 && count < BOARDS, "some");
    is_int(CALL(nvmlDeviceGetTopologyNearestGpus)(nvml_gpu(A100), level, &count, near),
           NVML_SUCCESS, "which");
}

/* The calling thread only: a child, so that the test goes on as it was. */
static void affinity(void)
{
    pid_t child = child_start();

    if (child == 0)
        _exit(CALL(nvmlDeviceSetCpuAffinity)(nvml_gpu(A100)) == NVML_SUCCESS &&
                      CALL(nvmlDeviceClearCpuAffinity)(nvml_gpu(A100)) == NVML_SUCCESS
                  ? 0
                  : 1);
    is_int(child_end(child), 0, "the caller is bound to processors, and not any more");
}

int main(void)
{
    nvml_mount("tests/nvml_node.yaml");
    is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
    for (int b = 0; b < BOARDS; b++)
        what_it_has(b);
    fans();
    clock_offsets();
    ecc();
    setters();
    nvlink();
    gpm(H100);
    gpm(B200);
    topology();
    affinity();
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "shutdown");
    ok(mounted_down(), "and down again");
    return tap_done();
}
