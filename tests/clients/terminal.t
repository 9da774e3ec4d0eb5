#!/usr/bin/env bash
#
# nvtop and btop against a live mount, in a terminal: what is on the screen is what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client debian
need_command tmux
need_mounts
mount_up --gpus 2
use_mount
mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 1
put "$mnt/workloads/train/memory" 5GiB
put "$mnt/workloads/train/pid" $$
put "$mnt/workloads/train/activity" '[{utilization: 80}]'
put "$mnt/control/clock" pause
put "$mnt/control/clock" 'step 10s'

export HOME=$dir XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 TERM=xterm-256color
terminal=(tmux -S "$dir/terminal" -f /dev/null)
at_exit '"${terminal[@]}" kill-server 2>/dev/null'

# on_screen PROGRAM...: runs it in a terminal until the screen has what $want matches; the screen is $screen.
on_screen() {
    "${terminal[@]}" new-session -d -x 160 -y 50 "$*" || bail 'tmux does not start'
    wait_for shown
    "${terminal[@]}" kill-server
}

shown() {
    screen=$("${terminal[@]}" capture-pane -p) && [[ $screen =~ $want ]]
}

watts() {
    echo $((($(metric "$1" power_usage_mw) + ${2:-0}) / 1000))
}

name=$(identity 1 name)
temperature=$(metric 1 temperature_gpu_c)
utilization=$(metric 1 utilization_gpu_percent)
clock=$(metric 1 clock_sm_mhz)

# --- nvtop ----------------------------------------------------------------------------------------

want="\[\|+ *$utilization%\]"
on_screen "$bin/nvtop"
like "$screen" "Device 0 \[$name\].*Device 1 \[$name\]" 'nvtop shows both GPUs by name'
like "$screen" "GPU ${clock}MHz +MEM $(metric 1 clock_memory_mhz)MHz +TEMP +$temperature.C FAN N/A%" \
    'clocks, temperature, no fan'
like "$screen" "POW +$(watts 1) / $(($(metric 1 power_limit_mw) / 1000)) W" 'power and its limit'
like "$screen" "$want" 'utilization'
like "$screen" "PCIe GEN $(metric 1 pcie_link_generation)@$(metric 1 pcie_link_width)x" 'the PCIe link'
like "$screen" "$$ .* 1 +Compute +$utilization% +5120MiB" 'and the process, with its load and memory'

# --- btop -----------------------------------------------------------------------------------------

mkdir -p "$dir/config/btop"
echo 'shown_boxes = "gpu0 gpu1"' >"$dir/config/btop/btop.conf"
want="GPU [^%]*$utilization%"
on_screen "$bin/btop"
like "$screen" "${name#NVIDIA }.*${name#NVIDIA }" 'btop shows both GPUs by name'
like "$screen" "$want.* $temperature.C" 'utilization and temperature'
like "$screen" "$clock Mhz" 'the clock'
like "$screen" "PWR [^W]* ($(watts 1)|$(watts 1 500))W P-state: +P$(metric 1 pstate)" 'power and performance state'
like "$screen" 'Total: +40.0 GiB' 'and memory'

mount_down
is "$mount_deaths" '' 'no worker died'
tap_done
