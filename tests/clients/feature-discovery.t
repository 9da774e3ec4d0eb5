#!/usr/bin/env bash
#
# NVIDIA's GPU feature discovery against a live mount: its labels are those in k8s/labels.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client go
need_mounts

# discover STRATEGY: the labels it writes, sorted. What machine it runs on it knows better than the mount.
discover() {
    : >"$dir/labels"
    on_node "$bin/gpu-feature-discovery" --oneshot --use-node-feature-api=false --no-timestamp \
        --mig-strategy "$1" --output-file "$dir/labels" >"$dir/log.txt" 2>&1 || tail -n 3 "$dir/log.txt"
    grep -v '^nvidia.com/gpu.machine=' "$dir/labels" | sort
}

# Two of the mount's are the GPU operator's: the discovery leaves out the first, and the second where it is `none`.
labels() {
    grep -vxE 'nvidia.com/(gpu.present=true|mig.strategy=none)' "$mnt/k8s/labels" | sort
}

# with_config YAML: mounts it.
with_config() {
    echo "$1" >"$dir/config.yaml"
    mount_up -c "$dir/config.yaml"
    use_mount
}

# in_mig_mode GPU PROFILE...
in_mig_mode() {
    local gpu=$1 profile
    shift
    put "$mnt/gpus/$gpu/control/mig_mode" on
    for profile in "$@"; do
        put "$mnt/gpus/$gpu/mig/instances" "create $profile"
    done
}

for model in $("$fakegpufs" models | awk 'NR > 1 { print $1 }'); do
    mount_up --gpus 2 --model "$model"
    use_mount
    is "$(discover none)" "$(labels)" "$model: the labels are those of the mount"
    mount_down
done

with_config '{gpus: {count: 2}, mig_strategy: mixed}'
is "$(discover mixed)" "$(labels)" 'mixed, without a MIG device'
in_mig_mode 0 1g.5gb 1g.5gb 3g.20gb
is "$(discover mixed)" "$(labels)" 'mixed, with MIG devices of two kinds'
like "$(labels)" 'mig-1g.5gb.count=2' 'each kind is counted'
in_mig_mode 0 1g.5gb+me
is "$(discover mixed)" "$(labels)" 'mixed, with the media engines'
in_mig_mode 1
put "$mnt/gpus/1/mig/instances" 'create-gi 4g.20gb'
gi=$(awk '$3 == "4g.20gb" { print $1 }' "$mnt/gpus/1/mig/instances")
put "$mnt/gpus/1/mig/instances" "create-ci $gi 1"
put "$mnt/gpus/1/mig/instances" "create-ci $gi 2"
is "$(discover mixed)" "$(labels)" 'mixed, with MIG devices on all GPUs, and two in one instance'
like "$(labels)" 'mig-1c.4g.20gb.multiprocessors=14' 'each with its part'
mount_down

with_config '{gpus: {count: 2}, mig_strategy: single}'
is "$(discover single)" "$(labels)" 'single, without MIG'
in_mig_mode 0
is "$(discover single)" "$(labels)" 'single, with a GPU that has no instance'
in_mig_mode 0 2g.10gb 2g.10gb
is "$(discover single)" "$(labels)" 'single, with a GPU that is not in MIG mode'
in_mig_mode 1 2g.10gb
is "$(discover single)" "$(labels)" 'single, as it should be'
like "$(labels)" 'gpu.product=NVIDIA-A100-SXM4-40GB-MIG-2g.10gb' 'its MIG devices are the GPUs of the node'
like "$(labels)" 'gpu.count=3' 'and counted as such'
in_mig_mode 1 1g.5gb
is "$(discover single)" "$(labels)" 'single, with two kinds'
mount_down

is "$mount_deaths" '' 'no worker died'
tap_done
