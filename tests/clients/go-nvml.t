#!/usr/bin/env bash
#
# go-nvml, NVIDIA's binding for Go, against a live mount: every value that it gives is what a file says.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client go
need_mounts
mount_up --gpus 5
use_mount
put "$mnt/control/clock" pause

is "$(client walk | compare 500)" '' 'an idle node: all values are those of the files'
busy_node
client walk >"$dir/said"
is "$(compare 500 <"$dir/said")" '' 'a busy one, with a lost GPU, a failing sensor and MIG: the same'
like "$(cat "$dir/said")" 'gpus/2/metrics/temperature_gpu_c=EIO' 'the failing sensor was asked'
like "$(cat "$dir/said")" 'gpus/3/sample=ENODEV' 'and the lost GPU'
like "$(cat "$dir/said")" "gpus/1/processes $$ memory_bytes=5368709120" 'and the process was listed'
is "$(grep -c 'mig/gi.*/uuid=MIG-' "$dir/said")" 2 'and the MIG devices'
is "$(client walk set | compare 500)" '' 'setters set what the control files show'

mount_down
is "$mount_deaths" '' 'no worker died'

# Other boards have other things: links to each other, fans, no ECC, no row remapping.
for model in $("$fakegpufs" models | awk 'NR > 1 { print $1 }'); do
    mount_up --gpus 2 --model "$model"
    put "$mnt/control/clock" pause
    is "$(client walk | compare 150)" '' "$model: all values are those of the files"
    mount_down
done

is "$(awk '$1 == "github.com/NVIDIA/go-nvml" { print $2 }' "$tests/clients/go/go.mod")" \
    "$(awk '$2 == "github.com/NVIDIA/go-nvml" { print $3 }' "$tests/clients/versions")" 'versions has the version of go.mod'
tap_done
