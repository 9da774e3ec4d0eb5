/*
 * Physics: the coefficients, their names, ranges and defaults. See physics.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/physics.h"

/* clang-format off */
#define SHARE(k, h) BIND_ROW_REAL(#k, physics, k, 0, 1, h)
#define REAL(k, lo, hi, h) BIND_ROW_REAL(#k, physics, k, lo, hi, h)

static const struct bind_field physics_fields[] = {
    SHARE(sm_active_per_utilization, "SM activity per utilization."),
    SHARE(occupancy_per_sm_active, "Occupancy per SM activity."),
    SHARE(tensor_per_sm_active, "Tensor pipe per SM activity, on GPUs that have one."),
    SHARE(fp32_per_sm_active, "FP32 pipe per SM activity."),
    SHARE(fp16_per_sm_active, "FP16 pipe per SM activity."),
    SHARE(fp64_per_sm_active, "FP64 pipe per SM activity."),
    SHARE(integer_per_sm_active, "Integer pipe per SM activity."),
    SHARE(memory_per_utilization, "Memory bandwidth per utilization."),
    SHARE(pcie_tx_per_utilization, "Share of the PCIe link sent per utilization."),
    SHARE(pcie_rx_per_utilization, "Share of the PCIe link received per utilization."),
    SHARE(nvlink_per_utilization, "Share of NVLink per utilization, for workloads on several GPUs."),
    BIND_ROW_QUANTITY("pcie_idle", physics, pcie_idle_bytes_per_second, UNIT_BYTES_PER_SECOND, 0, 1e9, 0,
                      "PCIe traffic without load, per direction."),
    REAL(clock_slew_per_s, 0.01, 1000, "Share of the highest clock that the clock may rise in a second."),
    BIND_ROW_QUANTITY("idle_delay", physics, idle_delay_ns, UNIT_NANOSECOND, 0, 3.6e12, 0,
                      "Time without load before clocks and P-state go down."),
    SHARE(power_weight_active, "Part of the dynamic power for clocks that run."),
    SHARE(power_weight_sm, "Part of the dynamic power at full SM activity."),
    SHARE(power_weight_tensor, "Part of the dynamic power at full tensor activity."),
    SHARE(power_weight_memory, "Part of the dynamic power at full memory bandwidth."),
    SHARE(power_weight_video, "Part of the dynamic power with encoder and decoder busy."),
    REAL(power_clock_exponent, 1, 4, "Exponent of the clock in the dynamic power."),
    REAL(power_noise, 0, 0.2, "Relative amplitude of the power's noise."),
    BIND_ROW_QUANTITY("ambient", physics, ambient_mc, UNIT_CELSIUS, -40000, 80000, 0, "Inlet air."),
    REAL(memory_heat_offset_c, 0, 50, "Memory above die temperature, in C."),
    REAL(memory_heat_load_c, 0, 50, "More of it at full bandwidth, in C."),
    BIND_ROW_QUANTITY("memory_time_constant", physics, memory_time_constant_ns, UNIT_NANOSECOND, 1e8, 3.6e12, 0,
                      "Lag of the memory's temperature."),
    REAL(thermal_hysteresis_c, 0, 30, "Software slowdown ends so many C below its limit."),
    REAL(slowdown_hysteresis_c, 0, 30, "Hardware slowdown ends so many C below its limit."),
    REAL(thermal_gain_per_c, 0, 1, "Share of the highest clock taken off per C above the limit."),
    REAL(thermal_gain_per_c_s, 0, 1, "The same, per C and second."),
    REAL(slowdown_clock_share, 0.05, 1, "Share of the highest clock in hardware slowdown."),
    REAL(fan_slew_percent_per_s, 0.1, 1000, "How fast fans change, in percent a second."),
    REAL(fan_stopped_resistance, 0, 10, "Thermal resistance is higher by this share with fans at rest."),
    { 0 },
};

/* clang-format on */

const struct bind_table physics_table = { .what = "physics", .fields = physics_fields };

void physics_init(struct physics *p)
{
    *p = (struct physics){
        .sm_active_per_utilization = 0.92,
        .occupancy_per_sm_active = 0.55,
        .tensor_per_sm_active = 0.45,
        .fp32_per_sm_active = 0.25,
        .fp16_per_sm_active = 0.10,
        .fp64_per_sm_active = 0.02,
        .integer_per_sm_active = 0.20,
        .memory_per_utilization = 0.50,
        .pcie_tx_per_utilization = 0.02,
        .pcie_rx_per_utilization = 0.05,
        .nvlink_per_utilization = 0.20,
        .pcie_idle_bytes_per_second = 350000,
        .clock_slew_per_s = 3,
        .idle_delay_ns = 1000 * NS_PER_MS,
        .power_weight_active = 0.10,
        .power_weight_sm = 0.47,
        .power_weight_tensor = 0.38,
        .power_weight_memory = 0.35,
        .power_weight_video = 0.06,
        .power_clock_exponent = 2.4,
        .power_noise = 0.01,
        .ambient_mc = 25000,
        .memory_heat_offset_c = 1,
        .memory_heat_load_c = 10,
        .memory_time_constant_ns = 15 * NS_PER_S,
        .thermal_hysteresis_c = 4,
        .slowdown_hysteresis_c = 6,
        .thermal_gain_per_c = 0.04,
        .thermal_gain_per_c_s = 0.015,
        .slowdown_clock_share = 0.5,
        .fan_slew_percent_per_s = 5,
        .fan_stopped_resistance = 0.6,
    };
}
