"""Every metric and identity that nvidia-ml-py gives, as `file=value` lines for tests/clients/compare.py.

SPDX-License-Identifier: Apache-2.0
"""
from pynvml import *


def field(handle, number):
    value = nvmlDeviceGetFieldValues(handle, [number])[0]
    if value.nvmlReturn:
        raise NVMLError(value.nvmlReturn)
    return value.value.uiVal


METRICS = {
    "power_usage_mw": nvmlDeviceGetPowerUsage,
    "power_limit_mw": nvmlDeviceGetPowerManagementLimit,
    "power_limit_default_mw": nvmlDeviceGetPowerManagementDefaultLimit,
    "power_limit_enforced_mw": nvmlDeviceGetEnforcedPowerLimit,
    "energy_total_mj": nvmlDeviceGetTotalEnergyConsumption,
    "temperature_gpu_c": lambda h: nvmlDeviceGetTemperature(h, NVML_TEMPERATURE_GPU),
    "temperature_slowdown_c": lambda h: nvmlDeviceGetTemperatureThreshold(h, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
    "temperature_shutdown_c": lambda h: nvmlDeviceGetTemperatureThreshold(h, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
    "temperature_margin_c": nvmlDeviceGetMarginTemperature,
    "clock_sm_mhz": lambda h: nvmlDeviceGetClockInfo(h, NVML_CLOCK_SM),
    "clock_graphics_mhz": lambda h: nvmlDeviceGetClockInfo(h, NVML_CLOCK_GRAPHICS),
    "clock_memory_mhz": lambda h: nvmlDeviceGetClockInfo(h, NVML_CLOCK_MEM),
    "clock_video_mhz": lambda h: nvmlDeviceGetClockInfo(h, NVML_CLOCK_VIDEO),
    "clock_sm_max_mhz": lambda h: nvmlDeviceGetMaxClockInfo(h, NVML_CLOCK_SM),
    "clock_sm_application_mhz": lambda h: nvmlDeviceGetApplicationsClock(h, NVML_CLOCK_SM),
    "fan_speed_percent": nvmlDeviceGetFanSpeed,
    "pstate": nvmlDeviceGetPerformanceState,
    "throttle_reasons": nvmlDeviceGetCurrentClocksEventReasons,
    "utilization_gpu_percent": lambda h: nvmlDeviceGetUtilizationRates(h).gpu,
    "utilization_memory_percent": lambda h: nvmlDeviceGetUtilizationRates(h).memory,
    "utilization_encoder_percent": lambda h: nvmlDeviceGetEncoderUtilization(h)[0],
    "utilization_decoder_percent": lambda h: nvmlDeviceGetDecoderUtilization(h)[0],
    "utilization_jpeg_percent": lambda h: nvmlDeviceGetJpgUtilization(h)[0],
    "utilization_ofa_percent": lambda h: nvmlDeviceGetOfaUtilization(h)[0],
    "memory_total_bytes": lambda h: nvmlDeviceGetMemoryInfo(h).total,
    "memory_free_bytes": lambda h: nvmlDeviceGetMemoryInfo(h).free,
    "memory_used_bytes": lambda h: nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).used,
    "memory_reserved_bytes": lambda h: nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).reserved,
    "bar1_used_bytes": lambda h: nvmlDeviceGetBAR1MemoryInfo(h).bar1Used,
    "pcie_link_generation": nvmlDeviceGetCurrPcieLinkGeneration,
    "pcie_link_width": nvmlDeviceGetCurrPcieLinkWidth,
    "pcie_replay_total": nvmlDeviceGetPcieReplayCounter,
    "ecc_sbe_volatile_total": lambda h: nvmlDeviceGetTotalEccErrors(h, 0, 0),
    "ecc_dbe_volatile_total": lambda h: nvmlDeviceGetTotalEccErrors(h, 1, 0),
    "ecc_sbe_aggregate_total": lambda h: nvmlDeviceGetTotalEccErrors(h, 0, 1),
    "ecc_dbe_aggregate_total": lambda h: nvmlDeviceGetTotalEccErrors(h, 1, 1),
    "ecc_mode": nvmlDeviceGetCurrentEccMode,
    "mig_mode": lambda h: nvmlDeviceGetMigMode(h)[0],
    "persistence_mode": nvmlDeviceGetPersistenceMode,
    "compute_mode": nvmlDeviceGetComputeMode,
    "remapped_rows_correctable_total": lambda h: nvmlDeviceGetRemappedRows(h)[0],
    "violation_power_ns": lambda h: nvmlDeviceGetViolationStatus(h, NVML_PERF_POLICY_POWER).violationTime,
    "temperature_memory_c": lambda h: field(h, NVML_FI_DEV_MEMORY_TEMP),
    "power_usage_instant_mw": lambda h: field(h, NVML_FI_DEV_POWER_INSTANT),
}
IDENTITIES = {
    "name": nvmlDeviceGetName,
    "uuid": nvmlDeviceGetUUID,
    "serial": nvmlDeviceGetSerial,
    "vbios_version": nvmlDeviceGetVbiosVersion,
    "minor_number": nvmlDeviceGetMinorNumber,
    "index": nvmlDeviceGetIndex,
    "bus_id": lambda h: nvmlDeviceGetPciInfo(h).busId,
    "cuda_cores": nvmlDeviceGetNumGpuCores,
    "board_part_number": nvmlDeviceGetBoardPartNumber,
    "inforom_image_version": nvmlDeviceGetInforomImageVersion,
    "compute_capability": lambda h: "%d.%d" % nvmlDeviceGetCudaComputeCapability(h),
}
ERRORS = {
    NVML_ERROR_NOT_SUPPORTED: "ENODATA",
    NVML_ERROR_GPU_IS_LOST: "ENODEV",
    NVML_ERROR_UNKNOWN: "EIO",
}


def answer(function, *arguments):
    """The value, or the error that reading the file gives."""
    try:
        return function(*arguments)
    except NVMLError as error:
        return ERRORS.get(error.value, error)


def walk(gpu):
    handle = answer(nvmlDeviceGetHandleByIndex, gpu)
    if isinstance(handle, str):
        print(f"gpus/{gpu}/sample={handle}")
        return
    for folder, functions in (("metrics", METRICS), ("identity", IDENTITIES)):
        for name, function in functions.items():
            print(f"gpus/{gpu}/{folder}/{name}={answer(function, handle)}")
    processes = answer(nvmlDeviceGetComputeRunningProcesses, handle)
    print(f"gpus/{gpu}/processes *={len(processes)}")
    for process in processes:
        print(f"gpus/{gpu}/processes {process.pid} memory_bytes={process.usedGpuMemory}")


nvmlInit()
print(f"sys/module/nvidia/version={nvmlSystemGetDriverVersion()}")
print(f"gpus *={nvmlDeviceGetCount()}")
for index in range(nvmlDeviceGetCount()):
    walk(index)
nvmlShutdown()
