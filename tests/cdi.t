#!/usr/bin/env bash
#
# `fakegpufs cdi`: what its specification says of a mount; and which GPUs a process sees by its device nodes, which is
# what containers with it have. tests/clients/cdi.t starts some.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts
unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES

node=$dir/node
mnt=$node/driver
mkdir -p "$mnt"
mount_up --gpus 3
put "$mnt/gpus/1/control/mig_mode" on
put "$mnt/gpus/1/mig/instances" 'create 3g.20gb'

# --- the specification ----------------------------------------------------------------------------

# flat OPTION...: the specification as lines: `NAME device PATH HOST`, `NAME mount HOST PATH OPTIONS`, `NAME env VALUE`;
# what all containers get has the NAME *.
cat >"$dir/flat.py" <<'END'
import json
import sys

spec = json.load(sys.stdin)
print("kind", spec["kind"], spec["cdiVersion"])


def show(name, edits):
    for one in edits.pop("deviceNodes", []):
        print(name, "device", one["path"], one["hostPath"])
    for one in edits.pop("mounts", []):
        print(name, "mount", one["hostPath"], one["containerPath"], ",".join(one["options"]))
    for one in edits.pop("env", []):
        print(name, "env", one)
    for one in edits:
        print(name, "has", one)


show("*", spec["containerEdits"])
for device in spec["devices"]:
    show(device["name"], device["containerEdits"])
END
flat() {
    bounded "$fakegpufs" cdi --mount "$mnt" "$@" 2>"$dir/err" | bounded "$PYTHON" "$dir/flat.py"
}
identity() {
    cat "$mnt/gpus/$1/identity/$2"
}
# nodes DEVICE NODE...: lines of them.
nodes() {
    local name=$1 one
    shift
    for one in "$@"; do
        echo "$name device /dev/$one $mnt/dev/$one"
    done
}
files=ro,exec,nosuid,nodev
library=libnvidia-ml.so.1
mapfile -t caps < <(sed -n 's/^DeviceFileMinor: /nvidia-caps\/nvidia-cap/p' \
    "$mnt"/proc/driver/nvidia/capabilities/gpu1/mig/gi*/access "$mnt"/proc/driver/nvidia/capabilities/gpu1/mig/gi*/ci0/access)
is "${#caps[@]} $(cd "$mnt/dev" && stat -c %F "${caps[@]}" | sort -u)" '2 character special file' 'a MIG device has two capabilities'
is "$(flat)" "kind nvidia.com/gpu 0.5.0
$(nodes '*' nvidiactl nvidia-modeset nvidia-uvm nvidia-uvm-tools)
* mount $mnt /run/fakegpufs rbind,rslave,nosuid,nodev
* mount $mnt/usr/bin/nvidia-smi /usr/bin/nvidia-smi bind,$files
* mount $mnt/usr/lib64/$library /usr/lib/$(uname -m)-linux-gnu/$library bind,$files
* mount $mnt/usr/lib64/$library /usr/lib64/$library bind,$files
* env NVIDIA_VISIBLE_DEVICES=void
* env FAKEGPUFS_ROOT=/run/fakegpufs
$(nodes 0 nvidia0)
$(nodes "$(identity 0 uuid)" nvidia0)
$(nodes 1:0 nvidia1 "${caps[@]}")
$(nodes "$(cat "$mnt"/gpus/1/mig/gi*/ci0/uuid)" nvidia1 "${caps[@]}")
$(nodes 2 nvidia2)
$(nodes "$(identity 2 uuid)" nvidia2)
$(nodes all nvidia0 nvidia1 "${caps[@]}" nvidia2)" \
    'GPUs by index and UUID, MIG devices, all; their device nodes, the files and the mount; no hooks'
is "$(FAKEGPUFS_ROOT=$mnt bounded "$fakegpufs" cdi)" "$(bounded "$fakegpufs" cdi --mount "$mnt")" 'the mount of the environment'
is "$(cd "$node" && bounded "$fakegpufs" cdi --mount driver)" "$(bounded "$fakegpufs" cdi --mount "$mnt")" \
    'a path need not be whole'
is "$(flat --kind example.com/fake | sed -n 1p)" 'kind example.com/fake 0.5.0' 'of another kind, when asked for'

put "$mnt/gpus/0/control/fault" fallen_off_bus
is "$(flat | grep -c /dev/nvidia0)" 0 'a GPU that is lost is not in it'
put "$mnt/gpus/0/control/fault" recover

# --- the directory that the mount is in -----------------------------------------------------------

is "$(flat --share "$node" | grep -E '^. (mount|env)')" "* mount $node /run/fakegpufs rbind,rslave,nosuid,nodev
* mount $node/files/nvidia-smi /usr/bin/nvidia-smi bind,$files
* mount $node/files/$library /usr/lib/$(uname -m)-linux-gnu/$library bind,$files
* mount $node/files/$library /usr/lib64/$library bind,$files
* env NVIDIA_VISIBLE_DEVICES=void
* env FAKEGPUFS_ROOT=/run/fakegpufs/driver" '--share: containers get the directory, and files that are copies'
cmp "$node/files/nvidia-smi" "$mnt/usr/bin/nvidia-smi" && cmp "$node/files/$library" "$mnt/usr/lib64/$library"
ok $? 'the copies are the same'
is "$(stat -c %a "$node"/files/* | sort -u)" 755 'can be executed by everybody'
is "$(ls "$node/files")" "$library"$'\n'nvidia-smi 'and there is nothing else'

# --- what is wrong --------------------------------------------------------------------------------

# refused CODE PATTERN OPTION...: the sentence is on standard error, and no specification anywhere.
refused() {
    local code=$1 pattern=$2 out status
    shift 2
    out=$(bounded "$fakegpufs" cdi "$@" 2>"$dir/err")
    status=$?
    is "$status/$out" "$code/" "cdi $*: exit code $code, and nothing is written"
    like "$(cat "$dir/err")" "$pattern" 'with a sentence'
}
mkdir "$dir/other"
refused 1 "--share: $mnt is not in $dir/other" --mount "$mnt" --share "$dir/other"
refused 1 "--share: $mnt is not in $mnt" --mount "$mnt" --share "$mnt"
refused 1 "cannot find $dir/nowhere: No such file" --mount "$mnt" --share "$dir/nowhere"
refused 1 "$dir/other" --mount "$dir/other"
refused 64 "--kind: 'gpu' is not VENDOR/CLASS" --mount "$mnt" --kind gpu
refused 64 'is not VENDOR/CLASS' --mount "$mnt" --kind 'a/b"'
bounded "$fakegpufs" cdi --mount "$mnt" >/dev/full 2>"$dir/err"
is "$? $(cat "$dir/err")" '1 fakegpufs: cannot write: No space left on device' 'a disk that is full is a failure'
for i in 0 1 2; do
    put "$mnt/gpus/$i/control/fault" fallen_off_bus
done
refused 1 "$mnt has no GPU that is on its bus" --mount "$mnt"
mount_down

mkdir "$dir/a\"b"
mnt=$dir/a\"b
mount_up --gpus 1
refused 1 'cannot be shared: the name has a character that is not allowed' --mount "$mnt"
mount_down
mnt=$node/driver

# Nodes that are files cannot be made anew by a runtime.
mount_up --gpus 1 --dev file
is "$(flat | grep /dev/ | awk '{ print $1, $2, $4, $5 }')" "* mount /dev/nvidiactl bind,rw,nosuid
* mount /dev/nvidia-modeset bind,rw,nosuid
* mount /dev/nvidia-uvm bind,rw,nosuid
* mount /dev/nvidia-uvm-tools bind,rw,nosuid
0 mount /dev/nvidia0 bind,rw,nosuid
$(identity 0 uuid) mount /dev/nvidia0 bind,rw,nosuid
all mount /dev/nvidia0 bind,rw,nosuid" 'device nodes of mode file are mounted'
mount_down

# --- what a process with such nodes sees ----------------------------------------------------------

# seen COMMAND [VARIABLE]: the GPUs and MIG devices that nvidia-smi lists after COMMAND, by number and slot, where /dev
# has the nodes of four GPUs and /proc/driver/nvidia is there: in a namespace that ends with it.
cat >"$dir/seen" <<'END'
cd /run/fakegpufs || exit
echo on >gpus/2/control/mig_mode
echo 'create 3g.20gb' >gpus/2/mig/instances
echo 'create 3g.20gb' >gpus/2/mig/instances
without() {
    umount "$1" && rm "$1"
}
eval "$1"
# A new mount over it hides what `exec` has put there.
[ "$2" = exec ] || mount -t tmpfs none /proc/driver
nvidia-smi -L | sed -nE 's/^GPU [0-9]+: .*UUID: (.*)\)$/\1/p; s/.*(MIG) .*/  \1/p' | while read -r uuid; do
    [ "$uuid" = MIG ] && echo MIG || readlink "gpus/by-uuid/$uuid"
done | tr -d ./ | xargs
END
seen() {
    bounded "$fakegpufs" exec --gpus 4 -- env ${3+"NVIDIA_VISIBLE_DEVICES=$3"} "$BASH" "$dir/seen" "$1" "$2" 2>&1
}
is "$(seen : exec)" '0 1 2 MIG MIG 3' 'on a machine a process sees all GPUs'
is "$(seen 'without /dev/nvidia1' exec)" '0 1 2 MIG MIG 3' 'whatever nodes there are'
is "$(seen 'without /dev/nvidia1' exec void)" '0 2 MIG MIG 3' 'with void those that have a node in /dev'
is "$(seen 'without /dev/nvidia1' container void)" '0 2 MIG MIG 3' 'so it does in a container, which has no /proc/driver/nvidia'
is "$(seen 'without /dev/nvidia1' container)" '0 2 MIG MIG 3' 'there also without the variable'
is "$(seen 'without /dev/nvidia1' container 1,0)" '0 1' 'but with a list those that it names'
is "$(seen 'without /dev/nvidia1' container all)" '0 1 2 MIG MIG 3' 'with all, all'
is "$(seen 'umount /dev/nvidia-caps' container void)" '0 1 2 3' 'a MIG device without its capabilities is not seen'
is "$(seen 'for i in 0 1 2 3; do without /dev/nvidia$i; done' container void)" '' 'without nodes void is no GPU'
is "$(seen 'for i in 0 1 2 3; do without /dev/nvidia$i; done' container)" '0 1 2 MIG MIG 3' 'and without the variable all of them'
like "$(bounded "$fakegpufs" exec --gpus 2 -- "$BASH" -c 'umount /dev/nvidia[01]; rm /dev/nvidia[01]
    NVIDIA_VISIBLE_DEVICES=void "$0" run --activity 1:1:1s' "$fakegpufs" 2>&1)" \
    "NVIDIA_VISIBLE_DEVICES is 'void', and no GPU has a node in /dev" 'fakegpufs run with void and without nodes says so'
is "$(bounded "$fakegpufs" exec --gpus 2 -- "$BASH" -c 'umount /dev/nvidia0; rm /dev/nvidia0
    NVIDIA_VISIBLE_DEVICES=void "$0" run --explain --activity 1:1:1s' "$fakegpufs" 2>&1 | sed -n 's/.*echo \(.*\) >.*devices$/\1/p')" \
    1 'and with one it takes that GPU'

is "$mount_deaths" '' 'no worker died'
tap_done
