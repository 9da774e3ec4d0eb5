//! Everything that nvml-wrapper tells of the node, as `file=value` lines for tests/clients/compare.py, which says what
//! a line is. With the argument `set` some settings are changed first, and the control files follow.
//!
//! SPDX-License-Identifier: Apache-2.0

use std::fmt::Display;

use nvml_wrapper::enum_wrappers::device::{
    Clock, ComputeMode, EccCounter, InfoRom, MemoryError, PcieUtilCounter, PerformancePolicy, TemperatureSensor,
    TemperatureThreshold,
};
use nvml_wrapper::enum_wrappers::nv_link::ErrorCounter;
use nvml_wrapper::enums::device::{GpuLockedClocksSetting, SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, Nvml};

const FIELD_MEMORY_TEMPERATURE: FieldId = FieldId(82);
const FIELD_TOTAL_ENERGY: FieldId = FieldId(83);

type Answer = Result<String, NvmlError>;
type Row = (&'static str, fn(&Device) -> Answer);

/// A row of one call that gives something to show.
macro_rules! row {
    ($file:literal, $d:ident => $value:expr) => {
        ($file, |$d| Ok($value.to_string()))
    };
}

const ROWS: &[Row] = &[
    row!("identity/name", d => d.name()?),
    row!("identity/uuid", d => d.uuid()?),
    row!("identity/serial", d => d.serial()?),
    row!("identity/index", d => d.index()?),
    row!("identity/minor_number", d => d.minor_number()?),
    row!("identity/vbios_version", d => d.vbios_version()?),
    row!("identity/board_part_number", d => d.board_part_number()?),
    row!("identity/inforom_image_version", d => d.info_rom_image_version()?),
    row!("identity/inforom_oem_version", d => d.info_rom_version(InfoRom::OEM)?),
    row!("identity/inforom_ecc_version", d => d.info_rom_version(InfoRom::ECC)?),
    row!("identity/cuda_cores", d => d.num_cores()?),
    row!("identity/memory_bus_width_bits", d => d.memory_bus_width()?),
    row!("identity/gsp_firmware_version", d => d.gsp_firmware_version()?),
    row!("identity/architecture", d => d.architecture()?),
    row!("identity/bus_id", d => d.pci_info()?.bus_id),
    row!("identity/pci_device_id", d => format!("0x{:08X}", d.pci_info()?.pci_device_id)),
    row!("identity/pci_subsystem_id", d => format!("0x{:08X}", d.pci_info()?.pci_sub_system_id.unwrap_or(0))),
    row!("identity/compute_capability", d => {
        let c = d.cuda_compute_capability()?;
        format!("{}.{}", c.major, c.minor)
    }),
    row!("board irq", d => d.irq_num()?),
    row!("board fans", d => d.num_fans()?),
    row!("metrics/utilization_gpu_percent", d => d.utilization_rates()?.gpu),
    row!("metrics/utilization_memory_percent", d => d.utilization_rates()?.memory),
    row!("metrics/utilization_encoder_percent", d => d.encoder_utilization()?.utilization),
    row!("metrics/utilization_decoder_percent", d => d.decoder_utilization()?.utilization),
    row!("metrics/memory_total_bytes", d => d.memory_info()?.total),
    row!("metrics/memory_used_bytes", d => d.memory_info()?.used),
    row!("metrics/memory_free_bytes", d => d.memory_info()?.free),
    row!("metrics/memory_reserved_bytes", d => d.memory_info()?.reserved),
    row!("metrics/bar1_total_bytes", d => d.bar1_memory_info()?.total),
    row!("metrics/bar1_used_bytes", d => d.bar1_memory_info()?.used),
    row!("metrics/bar1_free_bytes", d => d.bar1_memory_info()?.free),
    row!("metrics/power_usage_mw", d => d.power_usage()?),
    row!("metrics/power_limit_mw", d => d.power_management_limit()?),
    row!("metrics/power_limit_default_mw", d => d.power_management_limit_default()?),
    row!("metrics/power_limit_enforced_mw", d => d.enforced_power_limit()?),
    row!("metrics/power_limit_min_mw", d => d.power_management_limit_constraints()?.min_limit),
    row!("metrics/power_limit_max_mw", d => d.power_management_limit_constraints()?.max_limit),
    row!("metrics/energy_total_mj", d => d.total_energy_consumption()?),
    row!("metrics/energy_total_mj", d => field(d, FIELD_TOTAL_ENERGY)?),
    row!("metrics/temperature_gpu_c", d => d.temperature(TemperatureSensor::Gpu)?),
    row!("metrics/temperature_memory_c", d => field(d, FIELD_MEMORY_TEMPERATURE)?),
    row!("metrics/temperature_slowdown_c", d => d.temperature_threshold(TemperatureThreshold::Slowdown)?),
    row!("metrics/temperature_shutdown_c", d => d.temperature_threshold(TemperatureThreshold::Shutdown)?),
    row!("metrics/temperature_max_operating_c", d => d.temperature_threshold(TemperatureThreshold::GpuMax)?),
    row!("metrics/temperature_memory_max_c", d => d.temperature_threshold(TemperatureThreshold::MemoryMax)?),
    row!("metrics/clock_sm_mhz", d => d.clock_info(Clock::SM)?),
    row!("metrics/clock_graphics_mhz", d => d.clock_info(Clock::Graphics)?),
    row!("metrics/clock_memory_mhz", d => d.clock_info(Clock::Memory)?),
    row!("metrics/clock_video_mhz", d => d.clock_info(Clock::Video)?),
    row!("metrics/clock_sm_max_mhz", d => d.max_clock_info(Clock::SM)?),
    row!("metrics/clock_graphics_max_mhz", d => d.max_clock_info(Clock::Graphics)?),
    row!("metrics/clock_memory_max_mhz", d => d.max_clock_info(Clock::Memory)?),
    row!("metrics/clock_video_max_mhz", d => d.max_clock_info(Clock::Video)?),
    row!("metrics/clock_sm_application_mhz", d => d.applications_clock(Clock::SM)?),
    row!("metrics/clock_memory_application_mhz", d => d.applications_clock(Clock::Memory)?),
    row!("metrics/throttle_reasons", d => d.current_throttle_reasons_strict()?.bits()),
    row!("metrics/fan_speed_percent", d => d.fan_speed(0)?),
    row!("metrics/pstate", d => d.performance_state()?.as_c()),
    row!("metrics/violation_power_ns", d => d.violation_status(PerformancePolicy::Power)?.violation_time),
    row!("metrics/violation_thermal_ns", d => d.violation_status(PerformancePolicy::Thermal)?.violation_time),
    row!("metrics/violation_low_utilization_ns",
        d => d.violation_status(PerformancePolicy::LowUtilization)?.violation_time),
    row!("metrics/pcie_link_generation", d => d.current_pcie_link_gen()?),
    row!("metrics/pcie_link_generation_max", d => d.max_pcie_link_gen()?),
    row!("metrics/pcie_link_width", d => d.current_pcie_link_width()?),
    row!("metrics/pcie_link_width_max", d => d.max_pcie_link_width()?),
    row!("metrics/pcie_replay_total", d => d.pcie_replay_counter()?),
    row!("metrics/pcie_tx_bytes_per_second 1/1000", d => d.pcie_throughput(PcieUtilCounter::Send)?),
    row!("metrics/pcie_rx_bytes_per_second 1/1000", d => d.pcie_throughput(PcieUtilCounter::Receive)?),
    row!("metrics/ecc_sbe_volatile_total", d => d.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile)?),
    row!("metrics/ecc_dbe_volatile_total", d => d.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)?),
    row!("metrics/ecc_sbe_aggregate_total", d => d.total_ecc_errors(MemoryError::Corrected, EccCounter::Aggregate)?),
    row!("metrics/ecc_dbe_aggregate_total", d => d.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Aggregate)?),
    row!("metrics/ecc_mode", d => u8::from(d.is_ecc_enabled()?.currently_enabled)),
    row!("metrics/ecc_mode_pending", d => u8::from(d.is_ecc_enabled()?.pending_enabled)),
    row!("metrics/mig_mode", d => d.mig_mode()?.current),
    row!("metrics/persistence_mode", d => u8::from(d.is_in_persistent_mode()?)),
    row!("metrics/compute_mode", d => d.compute_mode()?.as_c()),
];

fn field(d: &Device, id: FieldId) -> Answer {
    let sample = d.field_values_for(&[id])?.remove(0)?;

    Ok(match sample.value? {
        SampleValue::F64(v) => v.to_string(),
        SampleValue::U32(v) => v.to_string(),
        SampleValue::U64(v) => v.to_string(),
        SampleValue::I64(v) => v.to_string(),
    })
}

/// Prints a line; an error is the one that the file gives.
fn say<T: Display>(file: String, answer: Result<T, NvmlError>) {
    let value = match answer {
        Ok(v) => v.to_string(),
        Err(NvmlError::NotSupported) => "ENODATA".to_string(),
        Err(NvmlError::GpuLost) => "ENODEV".to_string(),
        Err(NvmlError::Unknown) => "EIO".to_string(),
        Err(e) => e.to_string(),
    };

    println!("{file}={value}");
}

fn walk_links(gpu: u32, d: &Device) {
    let counters = [
        ("crc_flit", ErrorCounter::DlCrcFlit),
        ("crc_data", ErrorCounter::DlCrcData),
        ("replay", ErrorCounter::DlReplay),
        ("recovery", ErrorCounter::DlRecovery),
    ];
    let mut count = 0;

    while let Ok(up) = d.link_wrapper_for(count).is_active() {
        let link = d.link_wrapper_for(count);

        say(format!("gpus/{gpu}/nvlinks {count} up"), Ok(u8::from(up)));
        if up {
            for (name, counter) in &counters {
                say(
                    format!("gpus/{gpu}/nvlinks {count} {name}"),
                    link.error_counter(counter.clone()),
                );
            }
        }
        count += 1;
    }
    say(format!("gpus/{gpu}/board nvlink_links"), Ok(count));
}

fn walk_processes(gpu: u32, d: &Device) {
    let at = format!("gpus/{gpu}/processes");
    let processes = match d.running_compute_processes() {
        Ok(processes) => processes,
        Err(e) => return say::<usize>(format!("{at} *"), Err(e)),
    };

    say(format!("{at} *"), Ok(processes.len()));
    for p in processes {
        let memory = match p.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Ok(bytes),
            UsedGpuMemory::Unavailable => Err(NvmlError::NotSupported),
        };

        say(format!("{at} {} memory_bytes", p.pid), memory);
    }
}

/// Handles by their other names lead to the same GPU. The serial number is deprecated, and still asked for.
#[allow(deprecated)]
fn walk_names(nvml: &Nvml, d: &Device) -> Result<(), NvmlError> {
    let (uuid, serial, bus) = (d.uuid()?, d.serial()?, d.pci_info()?.bus_id);
    let at = format!("gpus/by-uuid/{uuid}/identity/index");

    say(at.clone(), nvml.device_by_uuid(uuid).and_then(|d| d.index()));
    say(at.clone(), nvml.device_by_serial(serial).and_then(|d| d.index()));
    say(at, nvml.device_by_pci_bus_id(bus).and_then(|d| d.index()));
    Ok(())
}

fn walk(nvml: &Nvml) -> Result<(), NvmlError> {
    let count = nvml.device_count()?;

    say("sys/module/nvidia/version".to_string(), nvml.sys_driver_version());
    say("gpus/0/identity/nvml_version".to_string(), nvml.sys_nvml_version());
    say(
        "gpus/0/identity/cuda_version".to_string(),
        nvml.sys_cuda_driver_version()
            .map(|v| format!("{}.{}", v / 1000, v % 1000 / 10)),
    );
    say("gpus *".to_string(), Ok(count));
    for gpu in 0..count {
        let d = match nvml.device_by_index(gpu) {
            Ok(d) => d,
            Err(e) => {
                say::<u32>(format!("gpus/{gpu}/sample"), Err(e));
                continue;
            }
        };

        for (file, get) in ROWS {
            say(format!("gpus/{gpu}/{file}"), get(&d));
        }
        walk_names(nvml, &d)?;
        walk_links(gpu, &d);
        walk_processes(gpu, &d);
    }
    Ok(())
}

/// The setters of the first GPU; what they set is what the control files must show.
fn set(nvml: &Nvml) -> Result<(), NvmlError> {
    let mut d = nvml.device_by_index(0)?;

    d.set_power_management_limit(225_000)?;
    d.set_persistent(false)?;
    d.set_compute_mode(ComputeMode::Prohibited)?;
    d.set_gpu_locked_clocks(GpuLockedClocksSetting::Numeric {
        min_clock_mhz: 600,
        max_clock_mhz: 1005,
    })?;
    println!("gpus/0/control/power_limit_mw=225000\ngpus/0/control/persistence_mode=0");
    println!("gpus/0/control/compute_mode=prohibited\ngpus/0/control/clock_lock=600 1005");
    Ok(())
}

fn main() -> Result<(), NvmlError> {
    let nvml = Nvml::init()?;

    if std::env::args().nth(1).as_deref() == Some("set") {
        set(&nvml)?;
    }
    walk(&nvml)?;
    nvml.shutdown()
}
