#!/usr/bin/env bash
#
# A container sees the mount through a bind, as a pod does through a hostPath: it reads, writes, and
# opens a device node, and both sides see the same GPU.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

busybox=$(command -v busybox) || skip_all 'there is no busybox'
runtime=$(command -v runc || command -v crun) || skip_all 'there is neither runc nor crun'
bundle=$dir/bundle
mkdir -p "$bundle/rootfs/bin"
cp "$busybox" "$bundle/rootfs/bin/busybox"
for applet in sh cat ls stat; do
    ln -s busybox "$bundle/rootfs/bin/$applet"
done

# bundle_config MOUNT-OPTION COMMAND: what the runtime would give a container of a pod with a hostPath.
bundle_config() {
    (cd "$bundle" && rm -f config.json && "$runtime" spec) || return
    "$PYTHON" - "$bundle/config.json" "$mnt" "$1" "$2" <<'PY'
import json, sys
path, mnt, option, command = sys.argv[1:]
spec = json.load(open(path))
spec["process"].update(terminal=False, args=["/bin/sh", "-c", command])
spec["process"]["env"] = ["PATH=/bin"]
spec["root"]["readonly"] = True
# Where the runtime may not manage control groups, it needs none for this.
spec["linux"].pop("resources", None)
spec["mounts"] = [m for m in spec["mounts"] if m["type"] != "cgroup"]
spec["mounts"] += [
    {"destination": "/run/fakegpufs", "type": "bind", "source": mnt, "options": ["rbind", option]},
    {"destination": "/dev/nvidia0", "type": "bind", "source": mnt + "/dev/nvidia0", "options": ["bind", "rw"]},
]
json.dump(spec, open(path, "w"))
PY
}

# in_container MOUNT-OPTION COMMAND: what it prints.
in_container() {
    bundle_config "$1" "$2" || return
    (cd "$bundle" && bounded "$runtime" run "fakegpufs-test-$$" 2>&1)
}

mount_up --gpus 2 --dev null
said=$(in_container rw 'echo here')
[[ $said == *here* ]] || skip_all "no container can be started: $said"

is "$(in_container rw 'cat /run/fakegpufs/gpus/0/identity/uuid')" "$(cat "$mnt/gpus/0/identity/uuid")" \
    'it reads the same GPU'
is "$(in_container rw 'echo 42 >/run/fakegpufs/gpus/0/control/utilization_gpu_percent && echo written')" written \
    'it writes'
is "$(cat "$mnt/gpus/0/metrics/utilization_gpu_percent")" 42 'and the host sees it'
is "$(in_container rw 'cat /run/fakegpufs/gpus/0/metrics/utilization_gpu_percent')" 42 'as does the next container'
is "$(in_container rw 'stat -c "%F %t:%T" /dev/nvidia0')" 'character special file 1:3' 'its device node is one'
is "$(in_container rw ': </dev/nvidia0 && echo opened')" opened 'that can be opened'
like "$(in_container ro 'echo 1 >/run/fakegpufs/gpus/0/control/utilization_gpu_percent')" 'Read-only file system' \
    'a read-only mount cannot be written'
is "$(in_container ro 'cat /run/fakegpufs/gpus/0/metrics/utilization_gpu_percent')" 42 'but read'

# A container that was there before goes on when the worker is killed.
kill -KILL "$(worker_of)"
is "$(in_container ro 'cat /run/fakegpufs/gpus/0/metrics/utilization_gpu_percent')" 42 \
    'nor does it notice that the worker was killed'
mount_down
ok $? 'and nothing of it is left'
tap_done
