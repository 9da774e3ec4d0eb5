#!/usr/bin/env bash
#
# A mount in a container: bind mounted with runc or crun, read and written, with a device node of it.
#
# The container's root is busybox and nothing else. It may run as root on a host that lets it.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

busybox=$(command -v busybox) || skip_all 'there is no busybox'
bundle=$dir/bundle
mkdir -p "$bundle/rootfs/"{bin,dev,proc,gpus,tmp}
cp "$busybox" "$bundle/rootfs/bin/busybox"
"$bundle/rootfs/bin/busybox" --help >/dev/null 2>&1 || skip_all 'busybox does not run'
! file -L "$busybox" 2>/dev/null | grep -q 'dynamically linked' || skip_all 'busybox is not static'

# write_bundle UID SCRIPT: what to run in the container. As a runtime does it, dev/nvidia0 is made anew
# with the numbers that the mount's has; dev/nvidiactl is the mount's own, bound there.
write_bundle() {
    bounded "$PYTHON" - "$bundle" "$mnt" "$1" "$2" <<'END'
import json, os, stat, sys
bundle, mnt, uid, script = sys.argv[1:]
node = os.stat(mnt + "/dev/nvidia0")
device = {"type": "c", "major": os.major(node.st_rdev), "minor": os.minor(node.st_rdev), "path": "/dev/nvidia0",
          "fileMode": 0o666, "uid": 0, "gid": 0}
json.dump({
    "ociVersion": "1.0.0",
    "process": {"user": {"uid": int(uid), "gid": int(uid)}, "cwd": "/", "env": ["PATH=/bin"],
                "args": ["/bin/busybox", "sh", "-c", script], "noNewPrivileges": True},
    "root": {"path": "rootfs"},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
               {"destination": "/gpus", "type": "bind", "source": mnt, "options": ["rbind", "rw"]},
               {"destination": "/dev/nvidiactl", "type": "bind", "source": mnt + "/dev/nvidiactl",
                "options": ["bind", "rw"]}],
    "linux": {"namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "network")],
              "devices": [device],
              "resources": {"devices": [{"allow": False, "access": "rwm"},
                                        {"allow": True, "type": "c", "major": device["major"],
                                         "minor": device["minor"], "access": "rw"}]}},
}, open(bundle + "/config.json", "w"))
END
}

# Newer ones want cgroups of version 2 and nothing else: they get them in a mount namespace.
with_runc() {
    bounded runc --root "$dir/runc" run --bundle "$bundle" "$1"
}

with_crun() {
    bounded crun --root "$dir/crun" run --bundle "$bundle" "$1"
}

with_crun_alone() {
    bounded unshare -m bash -c '
        umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup &&
        exec crun --root "$1/crun" --cgroup-manager=disabled run --bundle "$2" "$3"' \
        - "$dir" "$bundle" "$1" 2>&1
}

serial=0
# contained UID SCRIPT: runs it in a container.
contained() {
    write_bundle "$1" "$2"
    "$runtime" "fakegpufs-$$-$((++serial))" 2>&1
}

mount_up --gpus 2 --dev null
runtime=
for candidate in with_runc with_crun with_crun_alone; do
    runtime=$candidate
    said=$(contained 0 'echo hello from inside')
    [[ $said == *'hello from inside'* ]] && break
    diag "$candidate: $said"
    runtime=
done
[[ $runtime ]] || { mount_down; skip_all "no container can be made here: ${said//$'\n'/ }"; }
diag "containers by ${runtime#with_}"

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
"$runtime" "fakegpufs-$$-last" <"$dir/in" >"$dir/out" 2>&1 &
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
