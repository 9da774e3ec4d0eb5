#!/usr/bin/env bash
#
# Python programs that people run, against a live mount: what they show is what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client python
need_mounts
mount_up --gpus 5
use_mount
busy_node

# --- nvidia-ml-py: every metric that a function gives ---------------------------------------

is "$(client python "$tests/clients/python/walk.py" | compare 200)" '' 'nvidia-ml-py sees what the files say, of every GPU'

# The others give up when a GPU is lost, as they do with the real library.
put "$mnt/gpus/3/control/fault" recover
put "$mnt/gpus/2/control/fault" recover

# --- gpustat ---------------------------------------------------------------------------------

client gpustat --json >"$dir/gpustat" 2>"$dir/said"
shown() {
    client python -c 'import json, sys; print(json.load(open(sys.argv[1]))["gpus"][int(sys.argv[2])][sys.argv[3]])' \
        "$dir/gpustat" "$@"
}
is "$(shown 1 utilization.gpu)" "$(metric 1 utilization_gpu_percent)" 'gpustat shows utilization'
is "$(shown 1 temperature.gpu)" "$(metric 1 temperature_gpu_c)" 'gpustat shows the temperature'
is "$(shown 1 memory.used)" "$(($(metric 1 memory_used_bytes) / 1048576))" 'gpustat shows used memory'
is "$(shown 1 power.draw)" "$((($(metric 1 power_usage_mw)) / 1000))" 'gpustat shows power'
is "$(shown 2 uuid)" "$(identity 2 uuid)" 'gpustat shows UUIDs'
like "$(shown 1 processes)" "'pid': $$" 'gpustat shows the process'

# --- nvitop ----------------------------------------------------------------------------------

said=$(COLUMNS=120 client nvitop --once --ascii 2>&1)
like "$said" "Driver Version: $(identity 0 driver_version)" 'nvitop shows the driver version'
like "$said" "$(metric 1 temperature_gpu_c)C .* $(metric 1 utilization_gpu_percent)%" 'nvitop shows a busy GPU'
like "$said" "$(identity 1 bus_id)" 'nvitop shows the bus id'
like "$said" " $$ .*5120MiB" 'nvitop shows the process and its memory'

mount_down
tap_done
