#!/usr/bin/env bash
#
# Telegraf, whose input reads `nvidia-smi -q -x`. What it says is what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/smi.sh"

need_client telegraf
need_mounts
mount_up --gpus 2
use_smi
trained

cat >"$dir/telegraf.conf" <<END
[[inputs.nvidia_smi]]
  bin_path = "$mnt/usr/bin/nvidia-smi"
[[outputs.file]]
  files = ["$dir/metrics"]
  data_format = "json"
END
cat >"$dir/lines.py" <<'END'
import json, sys
plain = {
    "clocks_current_graphics": "clock_graphics_mhz", "clocks_current_sm": "clock_sm_mhz",
    "clocks_current_memory": "clock_memory_mhz", "clocks_current_video": "clock_video_mhz",
    "temperature_gpu": "temperature_gpu_c", "utilization_gpu": "utilization_gpu_percent",
    "utilization_memory": "utilization_memory_percent", "utilization_encoder": "utilization_encoder_percent",
    "utilization_decoder": "utilization_decoder_percent", "pcie_link_gen_current": "pcie_link_generation",
    "pcie_link_width_current": "pcie_link_width", "remapped_rows_correctable": "remapped_rows_correctable_total",
    "remapped_rows_uncorrectable": "remapped_rows_uncorrectable_total",
    "memory_total": "memory_total_bytes 1/1048576", "memory_used": "memory_used_bytes 1/1048576",
    "memory_free": "memory_free_bytes 1/1048576", "memory_reserved": "memory_reserved_bytes 1/1048576",
    "power_draw": "power_usage_mw 1/1000",
}
for line in open(sys.argv[1], encoding="utf-8"):
    m = json.loads(line)
    fields, tags = m["fields"], m["tags"]
    if m["name"] == "nvidia_smi_process":
        print(f"gpus/1/processes {fields['pid']} memory_bytes={fields['used_memory'] << 20}")
        continue
    at = f"gpus/{tags['index']}"
    print(f"{at}/identity/uuid={tags['uuid']}")
    print(f"{at}/identity/name={tags['name']}")
    print(f"{at}/identity/serial={fields['serial']}")
    print(f"{at}/identity/vbios_version={fields['vbios_version']}")
    print(f"{at}/metrics/pstate={tags['pstate'][1:]}")
    for name, path in plain.items():
        print(f"{at}/metrics/{path}={int(fields[name])}")
END
client telegraf --config "$dir/telegraf.conf" --once 2>"$dir/said"
ok $? 'it runs'
is "$(bounded "$PYTHON" "$dir/lines.py" "$dir/metrics" | compare 47)" '' 'its metrics say what the files say'

mount_down
is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
