#!/usr/bin/env bash
#
# Programs that people run, unmodified, against a live mount: what they show is compared with the files.
#
# Run by `make check-clients`, which sets CLIENTS to a directory where nvidia-ml-py, gpustat and nvitop
# are installed.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

[[ -x $CLIENTS/bin/python ]] || skip_all 'the clients are not installed: run `make check-clients`'
need_mounts
mount_up --gpus 3
export FAKEGPUFS_ROOT=$mnt LD_LIBRARY_PATH=$mnt/usr/lib64
unset NVIDIA_VISIBLE_DEVICES

mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 1
put "$mnt/workloads/train/memory" 5GiB
put "$mnt/workloads/train/pid" $$
put "$mnt/workloads/train/activity" '[{utilization: 80}]'
wait_for grep -q "^$$ " "$mnt/gpus/1/processes"
put "$mnt/control/clock" pause

metric() {
    cat "$mnt/gpus/$1/metrics/$2"
}

# --- nvidia-ml-py: every metric that a function gives ---------------------------------------

cat >"$dir/values.py" <<'END'
import sys
from pynvml import *
root = sys.argv[1]
nvmlInit()


def file(gpu, name):
    try:
        return open(f"{root}/gpus/{gpu}/{name}", encoding="utf-8").read().rstrip("\n")
    except OSError as e:
        return f"errno {e.errno}"


def call(function, *arguments):
    try:
        return function(*arguments)
    except NVMLError_NotSupported:
        return "errno 61"


scalars = {
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
identities = {
    "name": nvmlDeviceGetName, "uuid": nvmlDeviceGetUUID, "serial": nvmlDeviceGetSerial,
    "vbios_version": nvmlDeviceGetVbiosVersion, "minor_number": nvmlDeviceGetMinorNumber,
    "index": nvmlDeviceGetIndex, "bus_id": lambda h: nvmlDeviceGetPciInfo(h).busId,
    "cuda_cores": nvmlDeviceGetNumGpuCores, "board_part_number": nvmlDeviceGetBoardPartNumber,
    "inforom_image_version": nvmlDeviceGetInforomImageVersion,
    "compute_capability": lambda h: "%d.%d" % nvmlDeviceGetCudaComputeCapability(h),
}


def field(h, number):
    value = nvmlDeviceGetFieldValues(h, [number])[0]
    if value.nvmlReturn:
        raise NVMLError(value.nvmlReturn)
    return value.value.uiVal


for gpu in range(nvmlDeviceGetCount()):
    handle = nvmlDeviceGetHandleByIndex(gpu)
    for folder, rows in (("metrics", scalars), ("identity", identities)):
        for name, function in rows.items():
            got, want = call(function, handle), file(gpu, f"{folder}/{name}")
            if str(got) != want:
                print(f"gpu {gpu} {name}: {got} instead of {want}")
END
is "$(bounded "$CLIENTS/bin/python" "$dir/values.py" "$mnt" 2>&1)" '' 'nvidia-ml-py sees what the files say, of every GPU'

# --- gpustat ---------------------------------------------------------------------------------

bounded "$CLIENTS/bin/gpustat" --json >"$dir/gpustat" 2>"$dir/said"
shown() {
    "$CLIENTS/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["gpus"][int(sys.argv[2])][sys.argv[3]])' \
        "$dir/gpustat" "$@"
}
is "$(shown 1 utilization.gpu)" "$(metric 1 utilization_gpu_percent)" 'gpustat shows utilization'
is "$(shown 1 temperature.gpu)" "$(metric 1 temperature_gpu_c)" 'gpustat shows the temperature'
is "$(shown 1 memory.used)" "$(($(metric 1 memory_used_bytes) / 1048576))" 'gpustat shows used memory'
is "$(shown 1 power.draw)" "$((($(metric 1 power_usage_mw)) / 1000))" 'gpustat shows power'
is "$(shown 2 uuid)" "$(cat "$mnt/gpus/2/identity/uuid")" 'gpustat shows UUIDs'
like "$(shown 1 processes)" "'pid': $$" 'gpustat shows the process'

# --- nvitop ----------------------------------------------------------------------------------

said=$(COLUMNS=120 bounded "$CLIENTS/bin/nvitop" --once --ascii 2>&1)
like "$said" "Driver Version: $(cat "$mnt/gpus/0/identity/driver_version")" 'nvitop shows the driver version'
like "$said" "$(metric 1 temperature_gpu_c)C .* $(metric 1 utilization_gpu_percent)%" 'nvitop shows a busy GPU'
like "$said" "$(cat "$mnt/gpus/1/identity/bus_id")" 'nvitop shows the bus id'
like "$said" " $$ .*5120MiB" 'nvitop shows the process and its memory'

mount_down
tap_done
