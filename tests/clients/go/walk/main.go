// Everything that go-nvml tells of the node, as `file=value` lines: which file of the mount must say the same.
//
// A key is a file from the root of the mount and, of a table, a row and a column, with blanks between them; or a file
// and 1/N, when the library rounds down to N of its units. An error is written as the one that reading the file gives.
// Nothing is compared here: tests/clients/compare.py does that. With the argument `set` some settings are changed
// first, and the control files follow at the end.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

type getter func(nvml.Device) (string, nvml.Return)

// of makes a getter of a method that gives one value.
func of[T any](get func(nvml.Device) (T, nvml.Return)) getter {
	return func(d nvml.Device) (string, nvml.Return) {
		v, ret := get(d)
		return text(v), ret
	}
}

// with is of for a method that takes an argument.
func with[A, T any](get func(nvml.Device, A) (T, nvml.Return), a A) getter {
	return of(func(d nvml.Device) (T, nvml.Return) { return get(d, a) })
}

// part takes one value out of a structure.
func part[S, T any](get func(nvml.Device) (S, nvml.Return), pick func(S) T) getter {
	return of(func(d nvml.Device) (T, nvml.Return) {
		s, ret := get(d)
		return pick(s), ret
	})
}

// first and second are of methods that give two values.
func first[T, U any](get func(nvml.Device) (T, U, nvml.Return)) getter {
	return of(func(d nvml.Device) (T, nvml.Return) {
		v, _, ret := get(d)
		return v, ret
	})
}

func second[T, U any](get func(nvml.Device) (T, U, nvml.Return)) getter {
	return of(func(d nvml.Device) (U, nvml.Return) {
		_, v, ret := get(d)
		return v, ret
	})
}

func ecc(kind nvml.MemoryErrorType, since nvml.EccCounterType) getter {
	return of(func(d nvml.Device) (uint64, nvml.Return) { return d.GetTotalEccErrors(kind, since) })
}

func field(id uint32) getter {
	return of(func(d nvml.Device) (uint32, nvml.Return) {
		values := []nvml.FieldValue{{FieldId: id}}
		if ret := d.GetFieldValues(values); ret != nvml.SUCCESS {
			return 0, ret
		}
		v := values[0].Value
		return uint32(v[0]) | uint32(v[1])<<8 | uint32(v[2])<<16 | uint32(v[3])<<24,
			nvml.Return(values[0].NvmlReturn)
	})
}

func violation(policy nvml.PerfPolicyType) getter {
	return part(func(d nvml.Device) (nvml.ViolationTime, nvml.Return) { return d.GetViolationStatus(policy) },
		func(v nvml.ViolationTime) uint64 { return v.ViolationTime })
}

var rows = []struct {
	key string
	get getter
}{
	{"identity/name", of(nvml.Device.GetName)},
	{"identity/uuid", of(nvml.Device.GetUUID)},
	{"identity/serial", of(nvml.Device.GetSerial)},
	{"identity/index", of(nvml.Device.GetIndex)},
	{"identity/minor_number", of(nvml.Device.GetMinorNumber)},
	{"identity/vbios_version", of(nvml.Device.GetVbiosVersion)},
	{"identity/board_part_number", of(nvml.Device.GetBoardPartNumber)},
	{"identity/inforom_image_version", of(nvml.Device.GetInforomImageVersion)},
	{"identity/inforom_oem_version", with(nvml.Device.GetInforomVersion, nvml.INFOROM_OEM)},
	{"identity/inforom_ecc_version", with(nvml.Device.GetInforomVersion, nvml.INFOROM_ECC)},
	{"identity/inforom_power_version", with(nvml.Device.GetInforomVersion, nvml.INFOROM_POWER)},
	{"identity/cuda_cores", of(nvml.Device.GetNumGpuCores)},
	{"identity/memory_bus_width_bits", of(nvml.Device.GetMemoryBusWidth)},
	{"identity/gsp_firmware_version", of(nvml.Device.GetGspFirmwareVersion)},
	{"identity/compute_capability", of(func(d nvml.Device) (string, nvml.Return) {
		major, minor, ret := d.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	})},
	{"identity/architecture", part(nvml.Device.GetArchitecture, architecture)},
	{"identity/bus_id", part(nvml.Device.GetPciInfo, func(p nvml.PciInfo) string { return chars(p.BusId[:]) })},
	{"identity/pci_device_id", part(nvml.Device.GetPciInfo, func(p nvml.PciInfo) string {
		return fmt.Sprintf("0x%08X", p.PciDeviceId)
	})},
	{"identity/pci_subsystem_id", part(nvml.Device.GetPciInfo, func(p nvml.PciInfo) string {
		return fmt.Sprintf("0x%08X", p.PciSubSystemId)
	})},
	{"board irq", of(nvml.Device.GetIrqNum)},
	{"board module_id", of(nvml.Device.GetModuleId)},
	{"board fans", of(nvml.Device.GetNumFans)},
	{"board pcie_generation_device", of(nvml.Device.GetGpuMaxPcieLinkGeneration)},

	{"metrics/utilization_gpu_percent", rates(func(u nvml.Utilization) uint32 { return u.Gpu })},
	{"metrics/utilization_memory_percent", rates(func(u nvml.Utilization) uint32 { return u.Memory })},
	{"metrics/utilization_encoder_percent", first(nvml.Device.GetEncoderUtilization)},
	{"metrics/utilization_decoder_percent", first(nvml.Device.GetDecoderUtilization)},
	{"metrics/utilization_jpeg_percent", first(nvml.Device.GetJpgUtilization)},
	{"metrics/utilization_ofa_percent", first(nvml.Device.GetOfaUtilization)},
	{"metrics/memory_total_bytes", part(nvml.Device.GetMemoryInfo, func(m nvml.Memory) uint64 { return m.Total })},
	{"metrics/memory_free_bytes", part(nvml.Device.GetMemoryInfo, func(m nvml.Memory) uint64 { return m.Free })},
	{"metrics/memory_used_bytes", part(nvml.Device.GetMemoryInfo_v2, func(m nvml.Memory_v2) uint64 { return m.Used })},
	{"metrics/memory_reserved_bytes", part(nvml.Device.GetMemoryInfo_v2, func(m nvml.Memory_v2) uint64 { return m.Reserved })},
	{"metrics/bar1_total_bytes", part(nvml.Device.GetBAR1MemoryInfo, func(b nvml.BAR1Memory) uint64 { return b.Bar1Total })},
	{"metrics/bar1_used_bytes", part(nvml.Device.GetBAR1MemoryInfo, func(b nvml.BAR1Memory) uint64 { return b.Bar1Used })},
	{"metrics/bar1_free_bytes", part(nvml.Device.GetBAR1MemoryInfo, func(b nvml.BAR1Memory) uint64 { return b.Bar1Free })},
	{"metrics/power_usage_mw", of(nvml.Device.GetPowerUsage)},
	{"metrics/power_usage_instant_mw", field(nvml.FI_DEV_POWER_INSTANT)},
	{"metrics/power_limit_mw", of(nvml.Device.GetPowerManagementLimit)},
	{"metrics/power_limit_default_mw", of(nvml.Device.GetPowerManagementDefaultLimit)},
	{"metrics/power_limit_enforced_mw", of(nvml.Device.GetEnforcedPowerLimit)},
	{"metrics/power_limit_min_mw", first(nvml.Device.GetPowerManagementLimitConstraints)},
	{"metrics/power_limit_max_mw", second(nvml.Device.GetPowerManagementLimitConstraints)},
	{"metrics/energy_total_mj", of(nvml.Device.GetTotalEnergyConsumption)},
	{"metrics/temperature_gpu_c", with(nvml.Device.GetTemperature, nvml.TEMPERATURE_GPU)},
	{"metrics/temperature_gpu_c", of(func(d nvml.Device) (int32, nvml.Return) {
		t, ret := d.GetTemperatureV().V1()
		return t.Temperature, ret
	})},
	{"metrics/temperature_memory_c", field(nvml.FI_DEV_MEMORY_TEMP)},
	{"metrics/temperature_slowdown_c", with(nvml.Device.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)},
	{"metrics/temperature_shutdown_c", with(nvml.Device.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN)},
	{"metrics/temperature_max_operating_c", with(nvml.Device.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_GPU_MAX)},
	{"metrics/temperature_memory_max_c", with(nvml.Device.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_MEM_MAX)},
	{"metrics/temperature_margin_c", part(nvml.Device.GetMarginTemperature, func(m nvml.MarginTemperature) int32 {
		return m.MarginTemperature
	})},
	{"metrics/clock_sm_mhz", with(nvml.Device.GetClockInfo, nvml.CLOCK_SM)},
	{"metrics/clock_graphics_mhz", with(nvml.Device.GetClockInfo, nvml.CLOCK_GRAPHICS)},
	{"metrics/clock_memory_mhz", with(nvml.Device.GetClockInfo, nvml.CLOCK_MEM)},
	{"metrics/clock_video_mhz", with(nvml.Device.GetClockInfo, nvml.CLOCK_VIDEO)},
	{"metrics/clock_sm_max_mhz", with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_SM)},
	{"metrics/clock_graphics_max_mhz", with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_GRAPHICS)},
	{"metrics/clock_memory_max_mhz", with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_MEM)},
	{"metrics/clock_video_max_mhz", with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_VIDEO)},
	{"metrics/clock_sm_application_mhz", with(nvml.Device.GetApplicationsClock, nvml.CLOCK_SM)},
	{"metrics/clock_memory_application_mhz", with(nvml.Device.GetApplicationsClock, nvml.CLOCK_MEM)},
	{"metrics/throttle_reasons", of(nvml.Device.GetCurrentClocksEventReasons)},
	{"metrics/fan_speed_percent", of(nvml.Device.GetFanSpeed)},
	{"metrics/pstate", of(nvml.Device.GetPerformanceState)},
	{"metrics/violation_power_ns", violation(nvml.PERF_POLICY_POWER)},
	{"metrics/violation_thermal_ns", violation(nvml.PERF_POLICY_THERMAL)},
	{"metrics/violation_sync_boost_ns", violation(nvml.PERF_POLICY_SYNC_BOOST)},
	{"metrics/violation_board_limit_ns", violation(nvml.PERF_POLICY_BOARD_LIMIT)},
	{"metrics/violation_low_utilization_ns", violation(nvml.PERF_POLICY_LOW_UTILIZATION)},
	{"metrics/violation_reliability_ns", violation(nvml.PERF_POLICY_RELIABILITY)},
	{"metrics/violation_application_clocks_ns", violation(nvml.PERF_POLICY_TOTAL_APP_CLOCKS)},
	{"metrics/violation_base_clocks_ns", violation(nvml.PERF_POLICY_TOTAL_BASE_CLOCKS)},
	{"metrics/pcie_link_generation", of(nvml.Device.GetCurrPcieLinkGeneration)},
	{"metrics/pcie_link_generation_max", of(nvml.Device.GetMaxPcieLinkGeneration)},
	{"metrics/pcie_link_width", of(nvml.Device.GetCurrPcieLinkWidth)},
	{"metrics/pcie_link_width_max", of(nvml.Device.GetMaxPcieLinkWidth)},
	{"metrics/pcie_replay_total", of(nvml.Device.GetPcieReplayCounter)},
	{"metrics/pcie_tx_bytes_per_second 1/1000", with(nvml.Device.GetPcieThroughput, nvml.PCIE_UTIL_TX_BYTES)},
	{"metrics/pcie_rx_bytes_per_second 1/1000", with(nvml.Device.GetPcieThroughput, nvml.PCIE_UTIL_RX_BYTES)},
	{"metrics/ecc_sbe_volatile_total", ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)},
	{"metrics/ecc_dbe_volatile_total", ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)},
	{"metrics/ecc_sbe_aggregate_total", ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC)},
	{"metrics/ecc_dbe_aggregate_total", ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)},
	{"metrics/ecc_mode", first(nvml.Device.GetEccMode)},
	{"metrics/ecc_mode_pending", second(nvml.Device.GetEccMode)},
	{"metrics/remapped_rows_correctable_total", remapped(func(r rows4) any { return r.corrected })},
	{"metrics/remapped_rows_uncorrectable_total", remapped(func(r rows4) any { return r.uncorrected })},
	{"metrics/remapped_rows_pending", remapped(func(r rows4) any { return r.pending })},
	{"metrics/remapped_rows_failure", remapped(func(r rows4) any { return r.failed })},
	{"metrics/remap_banks_max_count", histogram(func(h nvml.RowRemapperHistogramValues) uint32 { return h.Max })},
	{"metrics/remap_banks_none_count", histogram(func(h nvml.RowRemapperHistogramValues) uint32 { return h.None })},
	{"metrics/mig_mode", first(nvml.Device.GetMigMode)},
	{"metrics/persistence_mode", of(nvml.Device.GetPersistenceMode)},
	{"metrics/compute_mode", of(nvml.Device.GetComputeMode)},
}

type rows4 struct {
	corrected, uncorrected int
	pending, failed        bool
}

func remapped(pick func(rows4) any) getter {
	return of(func(d nvml.Device) (any, nvml.Return) {
		var r rows4
		var ret nvml.Return
		r.corrected, r.uncorrected, r.pending, r.failed, ret = d.GetRemappedRows()
		return pick(r), ret
	})
}

func rates(pick func(nvml.Utilization) uint32) getter {
	return part(nvml.Device.GetUtilizationRates, pick)
}

func histogram(pick func(nvml.RowRemapperHistogramValues) uint32) getter {
	return part(nvml.Device.GetRowRemapperHistogram, pick)
}

func architecture(a nvml.DeviceArchitecture) string {
	names := map[nvml.DeviceArchitecture]string{
		nvml.DEVICE_ARCH_KEPLER: "Kepler", nvml.DEVICE_ARCH_MAXWELL: "Maxwell", nvml.DEVICE_ARCH_PASCAL: "Pascal",
		nvml.DEVICE_ARCH_VOLTA: "Volta", nvml.DEVICE_ARCH_TURING: "Turing", nvml.DEVICE_ARCH_AMPERE: "Ampere",
		nvml.DEVICE_ARCH_ADA: "Ada Lovelace", nvml.DEVICE_ARCH_HOPPER: "Hopper", nvml.DEVICE_ARCH_BLACKWELL: "Blackwell",
	}
	return names[a]
}

func text(v any) string {
	if b, ok := v.(bool); ok {
		if b {
			return "1"
		}
		return "0"
	}
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprint(v)
}

// chars is a C string in an array.
func chars[T int8 | uint8](array []T) string {
	var s strings.Builder
	for _, c := range array {
		if c == 0 {
			break
		}
		s.WriteByte(byte(c))
	}
	return s.String()
}

// say prints a line; an error is the one that the file gives.
func say(value any, ret nvml.Return, format string, args ...any) {
	errors := map[nvml.Return]string{
		nvml.ERROR_NOT_SUPPORTED: "ENODATA", nvml.ERROR_GPU_IS_LOST: "ENODEV", nvml.ERROR_UNKNOWN: "EIO",
	}
	shown := text(value)
	if ret != nvml.SUCCESS {
		var known bool
		if shown, known = errors[ret]; !known {
			shown = nvml.ErrorString(ret)
		}
	}
	fmt.Printf(format+"=%s\n", append(args, shown)...)
}

func walkLinks(gpu int, d nvml.Device) {
	columns := []struct {
		name    string
		counter nvml.NvLinkErrorCounter
	}{
		{"crc_flit", nvml.NVLINK_ERROR_DL_CRC_FLIT}, {"crc_data", nvml.NVLINK_ERROR_DL_CRC_DATA},
		{"replay", nvml.NVLINK_ERROR_DL_REPLAY}, {"recovery", nvml.NVLINK_ERROR_DL_RECOVERY},
	}
	generations := map[uint32]int{2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5} // 2.2 and 3.1 have numbers of their own
	kinds := map[nvml.IntNvLinkDeviceType]string{0: "gpu", 1: "npu", 2: "switch"}
	links := 0
	for ; links < nvml.NVLINK_MAX_LINKS; links++ {
		state, ret := d.GetNvLinkState(links)
		if ret != nvml.SUCCESS {
			break
		}
		say(state, ret, "gpus/%d/nvlinks %d up", gpu, links)
		version, ret := d.GetNvLinkVersion(links)
		say(generations[version], ret, "gpus/%d/board nvlink_version", gpu)
		if state != nvml.FEATURE_ENABLED {
			continue // one that is down has no peer and counts nothing
		}
		kind, ret := d.GetNvLinkRemoteDeviceType(links)
		say(kinds[kind], ret, "gpus/%d/nvlinks %d peer", gpu, links)
		for _, c := range columns {
			count, ret := d.GetNvLinkErrorCounter(links, c.counter)
			say(count, ret, "gpus/%d/nvlinks %d %s", gpu, links, c.name)
		}
	}
	say(links, nvml.SUCCESS, "gpus/%d/board nvlink_links", gpu)
}

func walkProcesses(gpu int, d nvml.Device) {
	processes, ret := d.GetComputeRunningProcesses()
	say(len(processes), ret, "gpus/%d/processes *", gpu)
	for _, p := range processes {
		say(p.UsedGpuMemory, nvml.SUCCESS, "gpus/%d/processes %d memory_bytes", gpu, p.Pid)
	}
}

func walkMig(gpu int, d nvml.Device) {
	count, _ := d.GetMaxMigDeviceCount()
	for i := range count {
		mig, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		gi, _ := mig.GetGpuInstanceId()
		ci, _ := mig.GetComputeInstanceId()
		at := fmt.Sprintf("gpus/%d/mig/gi%d", gpu, gi)
		uuid, ret := mig.GetUUID()
		say(uuid, ret, "%s/ci%d/uuid", at, ci)
		memory, ret := mig.GetMemoryInfo()
		say(memory.Total, ret, "%s/memory_total_bytes", at)
		attributes, ret := mig.GetAttributes()
		say(attributes.MultiprocessorCount, ret, "%s/multiprocessors", at)
		say(attributes.ComputeInstanceSliceCount, ret, "%s/ci%d/slices", at, ci)
	}
}

// cpus writes a mask as a list of ranges.
func cpus(mask []uint) string {
	var list []string
	is := func(i int) bool { return i < 64*len(mask) && mask[i/64]>>(i%64)&1 == 1 }
	for i := 0; i < 64*len(mask); i++ {
		if !is(i) {
			continue
		}
		from := i
		for is(i + 1) {
			i++
		}
		if from == i {
			list = append(list, fmt.Sprint(i))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", from, i))
		}
	}
	return strings.Join(list, ",")
}

// Handles by their other names lead to the same GPU, and to its PCI device.
func walkNames(d nvml.Device) {
	if uuid, ret := d.GetUUID(); ret == nvml.SUCCESS {
		again, ret := nvml.DeviceGetHandleByUUID(uuid)
		if ret == nvml.SUCCESS {
			var index int
			index, ret = again.GetIndex()
			say(index, ret, "gpus/by-uuid/%s/identity/index", uuid)
		}
	}
	pci, ret := d.GetPciInfo()
	if ret != nvml.SUCCESS {
		return
	}
	bus := strings.ToLower(chars(pci.BusIdLegacy[:]))
	again, ret := nvml.DeviceGetHandleByPciBusId(chars(pci.BusId[:]))
	if ret == nvml.SUCCESS {
		index, ret := again.GetIndex()
		say(index, ret, "gpus/by-bus-id/%s/identity/index", bus)
	}
	mask, ret := d.GetCpuAffinity(1024)
	say(cpus(mask), ret, "sys/bus/pci/devices/%s/local_cpulist", bus)
}

func walk() {
	driver, ret := nvml.SystemGetDriverVersion()
	say(driver, ret, "sys/module/nvidia/version")
	version, ret := nvml.SystemGetNVMLVersion()
	say(version, ret, "gpus/0/identity/nvml_version")
	cuda, ret := nvml.SystemGetCudaDriverVersion_v2()
	say(fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10), ret, "gpus/0/identity/cuda_version")

	count, ret := nvml.DeviceGetCount()
	say(count, ret, "gpus *")
	for gpu := range count {
		d, ret := nvml.DeviceGetHandleByIndex(gpu)
		if ret != nvml.SUCCESS {
			say("", ret, "gpus/%d/sample", gpu)
			continue
		}
		for _, row := range rows {
			value, ret := row.get(d)
			say(value, ret, "gpus/%d/%s", gpu, row.key)
		}
		walkNames(d)
		walkLinks(gpu, d)
		walkProcesses(gpu, d)
		walkMig(gpu, d)
	}
}

// The setters of the first GPU; what they set is what the control files must show.
func set() {
	d, ret := nvml.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		fail("no GPU 0", ret)
	}
	steps := []struct {
		name string
		ret  nvml.Return
	}{
		{"SetPowerManagementLimit", d.SetPowerManagementLimit(250000)},
		{"SetPersistenceMode", d.SetPersistenceMode(nvml.FEATURE_ENABLED)},
		{"SetComputeMode", d.SetComputeMode(nvml.COMPUTEMODE_EXCLUSIVE_PROCESS)},
		{"SetGpuLockedClocks", d.SetGpuLockedClocks(900, 1200)},
	}
	for _, step := range steps {
		if step.ret != nvml.SUCCESS {
			fail(step.name, step.ret)
		}
	}
	fmt.Print("gpus/0/control/power_limit_mw=250000\ngpus/0/control/persistence_mode=1\n",
		"gpus/0/control/compute_mode=exclusive_process\ngpus/0/control/clock_lock=900 1200\n")
}

func fail(what string, ret nvml.Return) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(ret))
	os.Exit(1)
}

func main() {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		fail("Init", ret)
	}
	if len(os.Args) > 1 && os.Args[1] == "set" {
		set()
	}
	walk()
	if ret := nvml.Shutdown(); ret != nvml.SUCCESS {
		fail("Shutdown", ret)
	}
}
