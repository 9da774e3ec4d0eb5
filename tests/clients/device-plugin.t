#!/usr/bin/env bash
#
# NVIDIA's device plugin for Kubernetes against a live mount, with a stand-in for the kubelet: it registers, lists the
# GPUs of the mount, allocates them, and a GPU that fails is unhealthy at once.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/kubelet.sh"

need_client go
need_mounts
echo '{gpus: {count: 8}, numa: {nodes: 2}}' >"$dir/config.yaml"
mount_up -c "$dir/config.yaml"
use_mount

# plugin_up PROGRAM...: starts a plugin that hands out the device nodes of the mount. What it takes for the kubelet's
# directory is ours, and only it sees that.
plugin_up() {
    output=$dir/plugin.log background "$fakegpufs" exec --mount "$mnt" -- sh -c '
        mount -t tmpfs none /var/lib && mkdir -p /var/lib/kubelet/device-plugins &&
            mount --bind "$0" /var/lib/kubelet/device-plugins && exec "$@"' "$plugins" "$@" \
        --pass-device-specs --nvidia-driver-root "$mnt" --nvidia-dev-root "$mnt"
}

all_down() {
    exec 9>&-
    stop_background
}

# gpus INDEX...: what the plugin should list, from the files of the mount.
gpus() {
    local i bus
    for i in "$@"; do
        bus=$(identity "$i" bus_id)
        bus=${bus,,}
        echo "$(identity "$i" uuid) Healthy $(cat "$mnt/sys/bus/pci/devices/${bus#0000}/numa_node")"
    done | sort
}

# --- whole GPUs -----------------------------------------------------------------------------------

kubelet_up
# It finds the library in its driver root.
plugin_up env -u LD_LIBRARY_PATH -u FAKEGPUFS_ROOT "$bin/nvidia-device-plugin" --driver-root-ctr-path "$mnt"
wait_for listed nvidia.com/gpu 8
ok $? 'the plugin registers nvidia.com/gpu and lists 8 devices' || diag "$(tail -n 20 "$dir/plugin.log")"
is "$(devices nvidia.com/gpu)" "$(gpus {0..7})" 'they are the GPUs of the mount, healthy, each with its NUMA node'
is "$(gpus {0..7} | awk '{ print $3 }' | sort -u | wc -l)" 2 'of which there are two'

first=$(identity 2 uuid) second=$(identity 5 uuid)
tell "allocate nvidia.com/gpu $first $second" >"$dir/allocated"
is "$(sed -n 's/^env NVIDIA_VISIBLE_DEVICES=//p' "$dir/allocated")" "$first,$second" \
    'an allocation names them to the container'
is "$(awk '$1 == "node" { print $2, $3, $4 }' "$dir/allocated" | sort)" \
    "$(for node in nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia2 nvidia5 nvidiactl; do
        echo "$mnt/dev/$node /dev/$node rw"
    done)" 'and gives it their device nodes and those of all'
is "$(awk '$1 == "node" { print $2 }' "$dir/allocated" | xargs stat -c %F | sort -u)" 'character special file' \
    'which are there'
is "$(NVIDIA_VISIBLE_DEVICES=$first,$second client walk | sed -n 's/^gpus\/.\/identity\/uuid=//p')" \
    "$first"$'\n'"$second" 'a program with that environment sees just these'
like "$(tell 'allocate nvidia.com/gpu GPU-none')" '^refused ' 'a device that is not there is refused'
is "$(tell 'prefer nvidia.com/gpu 4' | wc -w)" 5 'it has a preference for four of them'

# --- a GPU that fails -----------------------------------------------------------------------------

# An Xid that is an application's own fault does no harm, and shows that the plugin listens.
listening() {
    put "$mnt/gpus/0/control/fault" 'xid 13'
    grep -q 'Skipping event.*EventData:13' "$dir/plugin.log"
}
wait_for listening
ok $? "the plugin sees an application's fault"
is "$(unhealthy nvidia.com/gpu)" '' 'which makes no GPU unhealthy'
failed() {
    [[ $(unhealthy nvidia.com/gpu | wc -l) == "$1" ]]
}
best=
bad=
for i in 3 6 1; do
    start=${EPOCHREALTIME/./}
    put "$mnt/gpus/$i/control/fault" 'xid 79'
    bad+=$(identity "$i" uuid)$'\n'
    wait_for failed "$(printf %s "$bad" | wc -l)"
    took=$(((${EPOCHREALTIME/./} - start) / 1000))
    [[ $best ]] && ((best < took)) || best=$took
    is "$(unhealthy nvidia.com/gpu)" "$(printf %s "$bad" | sort)" "xid 79 on GPU $i makes that one unhealthy, and no other"
done
diag "an Xid is the kubelet's after $best ms, at best"
((best < 3000))
ok $? 'at once: the plugin looks every five seconds, and is woken before'
# The plugin asks the GPU of an event for its UUID. One that is lost does not answer.
put "$mnt/gpus/0/control/fault" fallen_off_bus
wait_for failed 8
ok $? 'a GPU that is lost makes all unhealthy: the plugin cannot tell which one it was'
all_down

# --- MIG ------------------------------------------------------------------------------------------

for i in 0 1 3 6; do
    put "$mnt/gpus/$i/control/fault" recover
done
put "$mnt/gpus/7/control/mig_mode" on
put "$mnt/gpus/7/mig/instances" 'create 1g.5gb'
put "$mnt/gpus/7/mig/instances" 'create 3g.20gb'
kubelet_up
# Without a driver root it finds the library as every program does.
plugin_up "$bin/nvidia-device-plugin" --mig-strategy mixed
for resource in gpu:7 mig-1g.5gb:1 mig-3g.20gb:1; do
    wait_for listed "nvidia.com/${resource%:*}" "${resource#*:}"
    ok $? "with MIG, mixed: nvidia.com/${resource%:*} has ${resource#*:}" || diag "$(tail -n 20 "$dir/plugin.log")"
done
is "$(devices nvidia.com/gpu)" "$(gpus {0..6})" 'the GPU in MIG mode is not listed as a whole'
uuid=$(awk '$2 == 0 && $3 == "3g.20gb" { print $8 }' "$mnt/gpus/7/mig/instances")
is "$(devices nvidia.com/mig-3g.20gb)" "$uuid Healthy $(gpus 7 | awk '{ print $3 }')" 'the MIG device is'
tell "allocate nvidia.com/mig-3g.20gb $uuid" >"$dir/allocated"
is "$(awk '$1 == "node" && /caps/ { print $2 }' "$dir/allocated" | xargs stat -c %F | sort | uniq -c | xargs)" \
    '2 character special file' 'and is allocated with its two capabilities'
# One health check for each resource, and no telling when this one listens: so it may take more than one.
mig_failed() {
    put "$mnt/gpus/7/control/fault" 'xid 79'
    [[ $(unhealthy nvidia.com/mig-3g.20gb) == "$uuid" ]]
}
wait_for mig_failed
ok $? 'when its GPU fails it is unhealthy'
is "$(unhealthy nvidia.com/gpu)" '' 'and no other GPU'
all_down

mount_down
is "$mount_deaths" '' 'no worker died'
tap_done
