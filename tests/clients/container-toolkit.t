#!/usr/bin/env bash
#
# `nvidia-ctk cdi generate` with a live mount as its driver root: the specification names the GPUs of the mount, its
# device nodes and its library.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client go
need_mounts
mount_up --gpus 3
put "$mnt/gpus/2/control/mig_mode" on
put "$mnt/gpus/2/mig/instances" 'create 3g.20gb'

# generate FILE OPTION...: a specification, by a program that is told nothing but the driver root.
generate() {
    local file=$1
    shift
    on_node env -u LD_LIBRARY_PATH -u FAKEGPUFS_ROOT \
        "$bin/nvidia-ctk" --quiet cdi generate --driver-root "$mnt" --output "$file" "$@" >"$dir/said" 2>&1
}

generate "$dir/spec.yaml"
ok $? 'a specification is made' || diag "$(tail "$dir/said")"

# The specification as lines: `kind K`, `device NAME PATH HOST MAJOR:MINOR`, and the same for all containers as NAME *.
cat >"$dir/flat.py" <<'END'
import sys
import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    spec = yaml.safe_load(file)
print("kind", spec["kind"])


def show(name, edits):
    for node in edits.get("deviceNodes", []):
        numbers = f"{node.get('major', 0)}:{node.get('minor', 0)}"
        print("device", name, node["path"], node.get("hostPath"), numbers)
    for mount in edits.get("mounts", []):
        print("mount", name, mount["hostPath"], mount["containerPath"])
    for variable in edits.get("env", []):
        print("env", name, variable)


for device in spec["devices"]:
    show(device["name"], device["containerEdits"])
show("*", spec["containerEdits"])
END
bounded "$PYTHON" "$dir/flat.py" "$dir/spec.yaml" >"$dir/flat"
ok $? 'it is YAML'
is "$(awk '$1 == "kind" { print $2 }' "$dir/flat")" nvidia.com/gpu 'of nvidia.com/gpu'

# device NAME NODE...: the lines for these nodes, with the numbers that the files have.
device() {
    local name=$1 node
    shift
    for node in "$@"; do
        echo "device $name /dev/$node $mnt/dev/$node $(stat -c '%Hr:%Lr' "$mnt/dev/$node")"
    done
}
capabilities=$(cd "$mnt/proc/driver/nvidia/capabilities/gpu2/mig" &&
    sed -n 's/^DeviceFileMinor: /nvidia-caps\/nvidia-cap/p' gi*/access gi*/ci*/access)
uuid=$(cat "$mnt"/gpus/2/mig/gi*/ci0/uuid)
# shellcheck disable=SC2086
is "$(grep '^device' "$dir/flat" | grep -v '^device all ' | LC_ALL=C sort)" "$({
    for i in 0 1; do
        device "$i" "nvidia$i"
        device "$(identity "$i" uuid)" "nvidia$i"
    done
    device 2:0 nvidia2 $capabilities
    device "$uuid" nvidia2 $capabilities
    device '*' nvidiactl nvidia-modeset nvidia-uvm nvidia-uvm-tools
} | LC_ALL=C sort)" 'each GPU by index and UUID, and the MIG device, with the device nodes of the mount and their numbers'
is "$(awk '$1 == "device" && $2 == "all" { print $3 }' "$dir/flat" | LC_ALL=C sort | xargs)" \
    "$(for node in nvidia0 nvidia1 nvidia2 $capabilities; do echo "/dev/$node"; done | LC_ALL=C sort | xargs)" 'all has all'
library=/usr/lib64/libnvidia-ml.so.$(identity 0 driver_version)
is "$(awk '$1 == "mount" && /libnvidia-ml/ { print $3, $4 }' "$dir/flat")" "$mnt$library $library" 'the library is mounted'
is "$(awk '$1 == "mount" { print $3 }' "$dir/flat" | xargs stat -c %F | sort -u)" 'regular file' \
    'all that is mounted is there'

# --- a lost GPU -----------------------------------------------------------------------------------

put "$mnt/gpus/1/control/fault" fallen_off_bus
generate "$dir/one.yaml" --device-id 0
is "$(bounded "$PYTHON" "$dir/flat.py" "$dir/one.yaml" | awk '$1 == "device" && $2 == 0 { print $3 }')" /dev/nvidia0 \
    'with one GPU lost another can be asked for'
is "$(grep -c /dev/nvidia1 "$dir/one.yaml")" 0 'one that is lost is in no specification'

mount_down
is "$mount_deaths" '' 'no worker died'
tap_done
