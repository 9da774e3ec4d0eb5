"""Every field of --query-gpu against the mount's files.

    fields.py MOUNT PROGRAM

Prints what differs, a line each, and fields that no rule here is about. A file that has no value (ENODATA) stands
for [N/A], one that cannot be read (EIO) for [Unknown Error].

SPDX-License-Identifier: Apache-2.0
"""
import errno
import re
import subprocess
import sys

root, program = sys.argv[1:3]
NA, UNKNOWN = "[N/A]", "[Unknown Error]"


def run(*arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout


class Gpu:
    def __init__(self, index):
        self.index = index
        self.board = dict(line.split(None, 1) for line in self.text("board").splitlines())
        self.architecture = self.text("identity/architecture")
        self.model = self.text("identity/name").split()[-1]
        self.older_than_hopper = self.architecture not in ("Hopper", "Blackwell")

    def text(self, path):
        with open(f"{root}/gpus/{self.index}/{path}", encoding="utf-8") as file:
            return file.read().rstrip("\n")

    def value(self, path, show=str):
        try:
            return show(self.text(path))
        except OSError as e:
            return {errno.ENODATA: NA, errno.EIO: UNKNOWN, errno.ENOENT: NA}[e.errno]


def metric(name, show=str):
    return lambda g: g.value(f"metrics/{name}", show)


def identity(name, show=str):
    return lambda g: g.value(f"identity/{name}", show)


def board(name, show=str):
    return lambda g: show(g.board[name])


def mib(text):
    return str(int(text) >> 20)


def watts(text):
    return f"{int(text) / 1000:.2f}"


def us(text):
    return str(int(text) // 1000)


def enabled(text):
    return "Enabled" if int(text) else "Disabled"


def yes(text):
    return "Yes" if int(text) else "No"


def bit(number):
    return metric("throttle_reasons", lambda t: "Active" if int(t) >> number & 1 else "Not Active")


def pci(cut):
    return identity("bus_id", lambda t: cut(t.upper()))


def if_ecc(name):
    """Errors are counted while they are corrected."""
    return lambda g: g.value(f"metrics/{name}") if g.value("metrics/ecc_mode") == "1" else NA


def averaged(name):
    """Of power, up to the first chip of Ampere, only what it is at the moment is known."""
    older = ("Volta", "Turing")
    return lambda g: NA if g.architecture in older or g.model.startswith("A100") else g.value(f"metrics/{name}", watts)


ANY, VOLTA, SINCE_TURING = (lambda a: True), (lambda a: a == "Volta"), (lambda a: a != "Volta")


def ecc_zero(where, zero="0"):
    """Places at which nothing goes wrong here, on boards that count errors there, while they are counted."""
    return lambda g: zero if where(g.architecture) and g.value("metrics/ecc_mode") == "1" else NA


rules = {
    r"timestamp": None,  # looked at below
    r"driver_version|kmd_version": identity("driver_version"),
    r"count": lambda _: str(count),
    r"name": identity("name"),
    r"serial": identity("serial"),
    r"uuid": identity("uuid"),
    r"index": lambda g: str(g.index),
    r"pci\.bus_id": pci(lambda t: "0000" + t if len(t) == 12 else t),
    r"pci\.domain": pci(lambda t: "0x" + t.split(":")[0][-4:]),
    r"pci\.bus": pci(lambda t: "0x" + t.split(":")[1]),
    r"pci\.device": pci(lambda t: "0x" + t.split(":")[2][:2]),
    r"pci\.baseClass": board("pci_class", lambda t: f"0x{int(t) >> 16:X}"),
    r"pci\.subClass": board("pci_class", lambda t: f"0x{int(t) >> 8 & 255:X}"),
    r"pci\.device_id": identity("pci_device_id", lambda t: "0x" + re.sub("^0x", "", t).upper().zfill(8)),
    r"pci\.sub_device_id": identity("pci_subsystem_id", lambda t: "0x" + re.sub("^0x", "", t).upper().zfill(8)),
    r"pcie\.link\.gen\.(gpu)?current": metric("pcie_link_generation"),
    r"pcie\.link\.gen\.max": metric("pcie_link_generation_max"),
    r"pcie\.link\.gen\.gpumax": board("pcie_generation_device"),
    r"pcie\.link\.width\.current": metric("pcie_link_width"),
    r"pcie\.link\.width\.max": metric("pcie_link_width_max"),
    r"persistence_mode": metric("persistence_mode", enabled),
    r"addressing_mode": board("addressing_mode", str.strip),
    r"vbios_version": identity("vbios_version"),
    r"inforom\.img": identity("inforom_image_version"),
    r"inforom\.oem": identity("inforom_oem_version"),
    r"inforom\.ecc": identity("inforom_ecc_version"),
    r"inforom\.pwr": identity("inforom_power_version"),
    r"gpu_recovery_action": metric("recovery_action", lambda t: ["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"][int(t)]),
    r"fan\.speed": metric("fan_speed_percent"),
    r"pstate": metric("pstate", "P{}".format),
    r"clocks_event_reasons\.active": metric("throttle_reasons", lambda t: f"0x{int(t):016X}"),
    r"clocks_event_reasons\.gpu_idle": bit(0),
    r"clocks_event_reasons\.applications_clocks_setting": bit(1),
    r"clocks_event_reasons\.sw_power_cap": bit(2),
    r"clocks_event_reasons\.hw_slowdown": bit(3),
    r"clocks_event_reasons\.sync_boost": bit(4),
    r"clocks_event_reasons\.sw_thermal_slowdown": bit(5),
    r"clocks_event_reasons\.hw_thermal_slowdown": bit(6),
    r"clocks_event_reasons\.hw_power_brake_slowdown": bit(7),
    r"clocks_event_reasons\.supported": lambda g: None,  # the library's to say
    r"clocks_event_reasons_counters\.sw_power_cap": metric("violation_power_ns", us),
    r"clocks_event_reasons_counters\.sync_boost": metric("violation_sync_boost_ns", us),
    r"clocks_event_reasons_counters\.sw_thermal_slowdown": metric("throttle_sw_thermal_ns", us),
    r"clocks_event_reasons_counters\.hw_thermal_slowdown": metric("throttle_hw_thermal_ns", us),
    r"clocks_event_reasons_counters\.hw_power_brake_slowdown": metric("throttle_power_brake_ns", us),
    r"memory\.total": metric("memory_total_bytes", mib),
    r"memory\.reserved": metric("memory_reserved_bytes", mib),
    r"memory\.used": metric("memory_used_bytes", mib),
    r"memory\.free": metric("memory_free_bytes", mib),
    r"compute_mode": metric("compute_mode", lambda t: ["Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"][int(t)]),
    r"compute_cap": identity("compute_capability"),
    r"utilization\.(gpu|memory|encoder|decoder|jpeg|ofa)": lambda g, name: g.value(f"metrics/utilization_{name}_percent"),
    r"ecc\.mode\.current": metric("ecc_mode", enabled),
    r"ecc\.mode\.pending": metric("ecc_mode_pending", enabled),
    r"ecc\.errors\.corrected\.(volatile|aggregate)\.(?:device_memory|dram|total)": lambda g, when: if_ecc(f"ecc_sbe_{when}_total")(g),
    r"ecc\.errors\.uncorrected\.(volatile|aggregate)\.(?:device_memory|dram|total)": lambda g, when: if_ecc(f"ecc_dbe_{when}_total")(g),
    r"retired_pages\.single_bit_ecc\.count": metric("retired_pages_sbe_total"),
    r"retired_pages\.double_bit\.count": metric("retired_pages_dbe_total"),
    r"retired_pages\.pending": metric("retired_pages_pending", yes),
    r"remapped_rows\.correctable": metric("remapped_rows_correctable_total"),
    r"remapped_rows\.uncorrectable": metric("remapped_rows_uncorrectable_total"),
    r"remapped_rows\.(pending|failure)": lambda g, name: g.value(f"metrics/remapped_rows_{name}", yes),
    r"remapped_rows\.histogram\.(max|high|partial|low|none)": lambda g, name: g.value(f"metrics/remap_banks_{name}_count"),
    r"temperature\.gpu": metric("temperature_gpu_c"),
    r"temperature\.gpu\.tlimit": metric("temperature_margin_c"),
    r"temperature\.memory": lambda g: g.value("metrics/temperature_memory_c").strip("[]"),
    r"power\.management": metric("power_limit_mw", lambda t: "Supported"),
    r"power\.draw": metric("power_usage_mw", watts),
    r"edpp_multiplier": lambda g: NA if g.older_than_hopper else "100.00",
    r"power\.draw\.average": averaged("power_usage_mw"),
    r"power\.draw\.instant": metric("power_usage_instant_mw", watts),
    r"power\.limit": metric("power_limit_mw", watts),
    r"enforced\.power\.limit": metric("power_limit_enforced_mw", watts),
    r"power\.(default|min|max)_limit": lambda g, name: g.value(f"metrics/power_limit_{name}_mw", watts),
    r"clocks\.current\.(graphics|sm|memory|video)": lambda g, name: g.value(f"metrics/clock_{name}_mhz"),
    r"clocks\.applications\.graphics": metric("clock_sm_application_mhz"),
    r"clocks\.applications\.memory": metric("clock_memory_application_mhz"),
    r"clocks\.max\.(graphics|sm|memory)": lambda g, name: g.value(f"metrics/clock_{name}_max_mhz"),
    r"mig\.mode\.(?:current|pending)": metric("mig_mode", enabled),
    r"module\.power\.(min|max)_limit": lambda g, name: watts(g.board[f"module_power_{name}_mw"]) if int(g.board[f"module_power_{name}_mw"]) else NA,
    r"module\..*": lambda g: NA,
    r"ecc\.errors\.corrected\.[a-z]+\.cbu": lambda g: NA,
    r"ecc\.errors\.(?:un)?corrected\.[a-z]+\.(?:register_file|l1_cache|l2_cache|texture_memory|cbu)": ecc_zero(VOLTA),
    r"ecc\.errors\.(?:un)?corrected\.[a-z]+\.sram": ecc_zero(SINCE_TURING),
    r"ecc\.errors\.uncorrected\.aggregate\.sram\.thresholdExceeded": ecc_zero(ANY, "No"),
    r"ecc\.errors\.uncorrected\.[a-z]+\.sram\.[a-z0-9]+": ecc_zero(ANY),
    r"accounting\.mode": lambda g: g.value("control/accounting_mode", enabled),
    r"accounting\.buffer_size": lambda g: "4000",
    r"encoder\.stats\..*|protected_memory\..*|remapped_rows\..*_inactive": lambda g: "0",
    r"display_mode": lambda g: "Enabled",
    r"display_attached": lambda g: "Yes",
    r"display_active": lambda g: "Disabled",
    r"inforom\.checksum_validation": lambda g: "valid",
    r"platform\.module_id": board("module_id", str.strip),
    r"c2c\.mode": lambda g: {"GB200": "Enabled"}.get(g.model, NA if g.older_than_hopper else "Disabled"),
    r"gsp\.mode\..*": lambda g: NA if g.architecture == "Volta" else "Enabled",
    r"power_smoothing\..*|hostname|vgpu_.*|driver_model\..*|gom\..*|dramEncryption\..*": lambda g: NA,
    r"pcie\.link\.gen\.hostmax": lambda g: NA,
    # What no file tells: the library has an answer for every kind of board.
    r"clocks\.default_applications\..*|fabric\..*|platform\..*": lambda g: None,
}

help_text = run("--help-query-gpu")
# Programs find them so: a name in quotes, after an empty line.
fields = re.findall(r'\n\s*\n"([^"]+)"', help_text)
aliases = re.findall(r' or "([^"]+)"', help_text)
count = len(run("-L").splitlines())
gpus = [Gpu(i) for i in range(count)]
lines = run("--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits").splitlines()

if len(fields) < 212:
    print(f"only {len(fields)} fields")
compared = 0
for gpu, line in zip(gpus, lines):
    got = line.split(", ")
    if len(got) != len(fields):
        print(f"GPU {gpu.index}: {len(got)} values of {len(fields)} fields")
    for field, value in zip(fields, got):
        if field == "timestamp":
            if not re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", value):
                print(f"timestamp is {value}")
            continue
        match = [(m, rule) for p, rule in rules.items() if (m := re.fullmatch(p, field))]
        if not match:
            print(f"{field}: no rule")
            continue
        found, rule = match[0]
        want = rule(gpu, *found.groups()) if found.groups() and rule.__code__.co_argcount > 1 else rule(gpu)
        if want is None:
            if (not value and field != "platform.chassis_serial_number") or re.search(r"Unknown|Error|lost", value):
                print(f"GPU {gpu.index}: {field} is '{value}'")
            continue
        compared += 1
        if value != want:
            print(f"GPU {gpu.index}: {field} is '{value}', the file says '{want}'")
print(f"compared {compared // max(count, 1)} of {len(fields)}", file=sys.stderr)

# Other names are the same columns.
one = run("-i", "0", "--query-gpu=" + ",".join(aliases), "--format=csv").splitlines()
if len(one) != 2 or len(one[0].split(", ")) != len(aliases):
    print("aliases:", one[0])
