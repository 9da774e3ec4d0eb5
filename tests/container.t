#!/usr/bin/env bash
#
# A mount in a container: bind mounted with runc or crun, read and written, with a device node of it.
#
# The container's root is busybox and nothing else. It may run as root on a host that lets it.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/container.sh"
need_mounts

need_containers

# write_bundle UID SCRIPT: what to run in the container. As a runtime does it, dev/nvidia0 is made anew
# with the numbers that the mount's has; dev/nvidiactl is the mount's own, bound there.
write_bundle() {
    local script
    script=$("$PYTHON" -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$2")
    container_write "$dir/bundle" "$dir/busybox" "{
        \"uid\": $1, \"args\": [\"/bin/busybox\", \"sh\", \"-c\", $script],
        \"devices\": {\"/dev/nvidia0\": \"$mnt/dev/nvidia0\"},
        \"mounts\": [[\"$mnt\", \"/gpus\", \"rbind\", \"rw\"],
                     [\"$mnt/dev/nvidiactl\", \"/dev/nvidiactl\", \"bind\", \"rw\"]]}"
}

serial=0
# contained UID SCRIPT: runs it in a container.
contained() {
    write_bundle "$1" "$2"
    container_run "$dir/bundle" "fakegpufs-$$-$((++serial))" 2>&1
}

mount_up --gpus 2 --dev null
is "$(contained 0 'busybox cat /gpus/gpus/1/identity/name')" 'NVIDIA A100-SXM4-40GB' 'a container reads'
is "$(contained 0 'busybox find /gpus -type f ! -name events ! -name kmsg | busybox wc -l')" \
    "$(find "$mnt" -type f ! -name events ! -name kmsg | wc -l)" 'and finds every file'
is "$(contained 0 'echo 66 >/gpus/gpus/1/control/utilization_gpu_percent; busybox cat /gpus/gpus/1/metrics/utilization_gpu_percent')" \
    66 'it writes, and reads what it wrote'
is "$(cat "$mnt/gpus/1/metrics/utilization_gpu_percent")" 66 'the host sees it'
said=$(contained 12345 'echo 77 >/gpus/gpus/1/control/utilization_gpu_percent')
like "$said" 'Permission denied' 'a user in a container cannot write what is for root'
is "$(contained 12345 'busybox mkdir /gpus/workloads/pod && busybox cat /gpus/workloads/pod/state')" running \
    'but has workloads'
is "$(cat "$mnt/workloads/pod/state") $(stat -c %u "$mnt/workloads/pod")" 'running 12345' 'which outlive it'
is "$(contained 0 'busybox ls -l /dev/nvidia0 | busybox cut -c 1')" c 'it has a device node'
is "$(contained 0 'echo text >/dev/nvidia0 && busybox wc -c </dev/nvidia0')" 0 'which opens like the null device'
is "$(contained 0 'echo text >/dev/nvidiactl && busybox wc -c </dev/nvidiactl')" 0 'and so does the mount'"'"'s own'
is "$(contained 0 'busybox stat -c "%F %t:%T" /gpus/dev/nvidia0 /dev/nvidia0 /dev/nvidiactl' | sort -u)" \
    'character special file 1:3' 'all are what the mount says'
is "$(contained 0 'busybox readlink /gpus/gpus/by-bus-id/0000:17:00.0')" ../1 'links lead where they should'

# The worker is replaced under a container that reads.
write_bundle 0 'busybox cat /gpus/control/clock >/dev/null; echo ready; read -r line; busybox cat /gpus/gpus/0/identity/index'
mkfifo "$dir/in"
container_run "$dir/bundle" "fakegpufs-$$-last" <"$dir/in" >"$dir/out" 2>&1 &
container=$!
exec 6>"$dir/in"
wait_for grep -q ready "$dir/out"; ok $? 'a container runs'
before=$(worker_of)
kill -KILL "$before"
echo go >&6
exec 6>&-
wait $container; ok $? 'the worker is killed meanwhile'
is "$(tail -n 1 "$dir/out")" 0 'and the container reads on'
[[ $(worker_of) != "$before" ]]; ok $? 'from another worker'
mount_down; ok $? 'the mount can be unmounted'

tap_done
