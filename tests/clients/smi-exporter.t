#!/usr/bin/env bash
#
# nvidia_gpu_exporter, which finds the fields that nvidia-smi has by itself. Its metrics say what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/smi.sh"

need_client gpu-exporter
need_mounts
mount_up --gpus 2
use_smi
trained

port=$((20000 + $$ % 20000))
output=$dir/log background "$bin/nvidia_gpu_exporter" --web.listen-address "127.0.0.1:$port" \
    --nvidia-smi-command "$mnt/usr/bin/nvidia-smi"
scrape() {
    bounded "$PYTHON" -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' \
        "http://127.0.0.1:$port/metrics" >"$dir/metrics" && grep -q '^nvidia_smi_temperature_gpu{' "$dir/metrics"
}
wait_for scrape
ok $? 'it serves metrics'

cat >"$dir/lines.py" <<'END'
import re, sys
names = {
    "temperature_gpu": ("temperature_gpu_c", 1), "temperature_memory": ("temperature_memory_c", 1),
    "memory_used_bytes": ("memory_used_bytes 1/1048576", 2**-20),
    "memory_total_bytes": ("memory_total_bytes 1/1048576", 2**-20),
    "utilization_gpu_ratio": ("utilization_gpu_percent", 100), "power_draw_watts": ("power_usage_mw 1/1000", 1),
    "clocks_current_sm_clock_hz": ("clock_sm_mhz", 1e-6), "clocks_current_memory_clock_hz": ("clock_memory_mhz", 1e-6),
}
for line in open(sys.argv[1], encoding="utf-8"):
    m = re.match(r'nvidia_smi_(\w+)\{.*?uuid="([^"]+)".*\} (\S+)$', line)
    if m and m[1] in names:
        path, factor = names[m[1]]
        uuid = m[2] if m[2].startswith("GPU-") else "GPU-" + m[2]
        print(f"gpus/by-uuid/{uuid}/metrics/{path}={int(float(m[3]) * factor + 1e-6)}")
END
is "$(bounded "$PYTHON" "$dir/lines.py" "$dir/metrics" | compare 16)" '' 'its metrics say what the files say'
is "$(sed -n 's/^nvidia_smi_failed_scrapes_total //p' "$dir/metrics")" 0 'no scrape failed'
(($(grep -c '^nvidia_smi_' "$dir/metrics") > 150))
ok $? 'it has found most of the fields'

stop_background
mount_down
is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
