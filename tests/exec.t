#!/usr/bin/env bash
#
# fakegpufs exec: what a shell, a static program and a Python program see, and that nobody outside sees
# anything of it.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

unset FAKEGPUFS_ROOT NODE_NAME LD_LIBRARY_PATH
[[ $(bounded unshare -m echo yes 2>/dev/null) == yes ]] || skip_all 'no mount namespace can be made'

# inside OPTION... -- COMMAND...: sets $status, $out and $err.
inside() {
    bounded "$fakegpufs" exec "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}

# outside: what is to be seen of mounts, devices and directories by everybody.
outside() {
    cat /proc/self/mountinfo
    ls -la /dev /run /mnt /proc/driver /sys/bus/pci/devices /sys/devices /sys/module 2>/dev/null | grep -v ' \.\.*$'
    cat /proc/devices /proc/modules 2>/dev/null
    stat -c '%n %i %Y' /etc/ld.so.cache 2>/dev/null
    ls -d /tmp/fakegpufs-exec* 2>/dev/null
}

# Others mount and unmount while this runs: only what has to do with us is looked at, and our own mounts are below $dir.
ours() {
    grep -E "fakegpufs|nvidia|tmpfs fakegpufs| $dir" | grep -vE ' /tmp/fakegpufs-| /tmp/.*fuse[.]fakegpufs'
}

# --- A shell -----------------------------------------------------------------

before=$(outside | ours)
inside --gpus 2 --model T4 -- sh -c '
    ls -d /dev/nvidia[0-9]* /dev/nvidiactl /dev/null
    ls /proc/driver/nvidia/gpus /sys/bus/pci/devices
    cat /sys/bus/pci/devices/*/vendor
    grep -c nvidia /proc/devices
    cat /sys/module/nvidia/version
    cat /run/fakegpufs/gpus/1/identity/name
    ls -L /sys/bus/pci/devices/0000:06:00.0/driver/module/version'
is "$status $err" '0 ' 'a shell'
is "$out" "/dev/null
/dev/nvidia0
/dev/nvidia1
/dev/nvidiactl
/proc/driver/nvidia/gpus:
0000:06:00.0
0000:17:00.0

/sys/bus/pci/devices:
0000:06:00.0
0000:17:00.0
0x10de
0x10de
8
550.163.01
Tesla T4
/sys/bus/pci/devices/0000:06:00.0/driver/module/version" 'sees the devices, /proc, /sys and the mount'
is "$(outside | ours)" "$before" 'and nothing is left outside'

inside --gpus 1 -- sh -c 'echo x >/dev/null && head -c 1 /dev/zero | wc -c && ls /dev/pts >/dev/null && test -e /sys/class/net/lo/mtu && test -e /proc/self/status && echo works'
is "$out" $'1\nworks' 'the rest of the machine is there'
inside --gpus 1 -- sh -c 'echo 80 >/run/fakegpufs/gpus/0/control/utilization_gpu_percent; cat /run/fakegpufs/gpus/0/metrics/utilization_gpu_percent; echo "$FAKEGPUFS_ROOT $LD_LIBRARY_PATH"'
is "$out" $'80\n/run/fakegpufs /run/fakegpufs/usr/lib64' 'the mount can be written, and is named in the environment'
inside -- sh -c 'exit 7'
is "$status" 7 'its exit code is that of the program'
inside -- sh -c 'kill -TERM $$'
is "$status" 143 'also when a signal ended it'
inside -- "$dir/nothing"
is "$status" 127 'no such program: 127'
inside -- sh -c 'echo "$#"' - --gpus 9
is "$out" 2 "options behind the program are the program's"
inside --gpus many -- true
is "$status" 1 'a mount that cannot be made: 1'
like "$err" "found 'many'; allowed: a whole number" 'and why'
inside --gpus 1
is "$status" 64 'no program: 64'
echo 'gpus: {count: 3, model: L4}' >"$dir/node.yaml"
inside -c "$dir/node.yaml" --speed 0 -- sh -c 'ls -d /dev/nvidia[0-9]* | wc -l; sed -n 2p /run/fakegpufs/control/clock'
is "$out" $'3\nspeed 0' 'a configuration'
inside --dev null --gpus 1 -- sh -c 'cat /dev/nvidia0 && echo opened'
is "$out" opened '--dev'

# While it runs nobody outside sees it either.
bounded "$fakegpufs" exec --gpus 1 -- sh -c "ls /dev/nvidia0 >'$dir/sees'; while [ ! -e '$dir/go' ]; do sleep 0.02; done" 2>/dev/null &
pid=$!
wait_for test -s "$dir/sees"
is "$(outside | ours)" "$before" 'nothing is visible outside while it runs'
touch "$dir/go"
wait $pid

# The client is killed: the daemon goes, too.
"$fakegpufs" exec --gpus 1 -- sh -c "cat /proc/self/mountinfo >'$dir/mounts'; while :; do sleep 0.05; done" 2>/dev/null &
pid=$!
disown $pid
mount_owned+=($pid)
wait_for test -s "$dir/mounts"
children=$(cat "/proc/$pid/task/$pid/children")
kill -KILL $pid
all_gone() {
    local child
    for child in $children; do
        is_gone "$child" || return 1
    done
}
wait_for all_gone; ok $? 'killed, it takes its daemon and its program along'

bounded "$fakegpufs" exec --gpus 1 -- sh -c "trap 'exit 9' TERM; touch '$dir/trapped'; while :; do sleep 0.02; done" 2>/dev/null &
pid=$!
wait_for test -e "$dir/trapped"
kill -TERM "$(cat "/proc/$pid/task/$pid/children" | tr -d ' ')"
wait $pid
is $? 9 'signals are passed on'

# --- A static program --------------------------------------------------------

busybox=$(command -v busybox)
if [[ ! $busybox ]] || ldd "$busybox" >/dev/null 2>&1; then
    skip 2 'there is no static busybox'
else
    inside --gpus 2 -- "$busybox" ls -d /dev/nvidia0 /dev/nvidia1 /proc/driver/nvidia/gpus/0000:17:00.0 /sys/bus/pci/devices/0000:06:00.0
    is "$status $(wc -l <<<"$out")" '0 4' 'a static program sees the devices, /proc and /sys'
    inside --gpus 2 -- "$busybox" stat -c '%F %t:%T' /dev/nvidia1
    is "$out" 'character special file c3:1' 'with the numbers of the driver'
fi

# --- A Python program --------------------------------------------------------

cat >"$dir/nvml.py" <<'END'
import ctypes, os
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
count = ctypes.c_uint()
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
name = ctypes.create_string_buffer(96)
device = ctypes.c_void_p()
assert nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetName(device, name, 96) == 0
print(count.value, name.value.decode())
END
# With a sanitizer in it the library could not be loaded by a program without: then there is nothing to try.
if ! sanitized; then
    inside --gpus 3 --model L40S -- "$PYTHON" "$dir/nvml.py"
    is "$status $out $err" '0 3 NVIDIA L40S ' 'a Python program finds the mock NVML'
    inside --gpus 3 --model L40S -- env -u LD_LIBRARY_PATH -u FAKEGPUFS_ROOT "$PYTHON" "$dir/nvml.py"
    if [[ -x /sbin/ldconfig && -e /etc/ld.so.cache ]]; then
        is "$status $out $err" '0 3 NVIDIA L40S ' "also by the loader's cache alone"
    else
        skip 1 'there is no ldconfig'
    fi
    "$PYTHON" -c 'import ctypes; ctypes.CDLL("libnvidia-ml.so.1")' 2>/dev/null && has=1 || has=0
    is "$has" "$(/sbin/ldconfig -p 2>/dev/null | grep -c 'libnvidia-ml[.]so[.]1 ')" 'which outside is as it was'
fi

# --- A mount that is there ---------------------------------------------------

mount_up --gpus 2 --model A10
inside --mount "$mnt" -- sh -c 'ls -d /dev/nvidia[0-9]*; cat /run/fakegpufs/gpus/0/identity/name; echo 40 >/run/fakegpufs/gpus/1/control/utilization_gpu_percent'
is "$status $out" $'0 /dev/nvidia0\n/dev/nvidia1\nNVIDIA A10' 'a mount that was given'
is "$(cat "$mnt/gpus/1/metrics/utilization_gpu_percent")" 40 'is the one that was changed'
FAKEGPUFS_ROOT=$mnt inside -- cat /run/fakegpufs/gpus/0/identity/name
is "$out" 'NVIDIA A10' 'by the environment, too'
is_mounted; ok $? 'and stays'
inside --mount "$mnt" --gpus 3 -- true
is "$status" 64 'a mount and GPUs: 64'
like "$err" "there is a mount, $mnt" 'and why'
inside --mount "$mnt" -- "$fakegpufs" run -q --name in --activity 50 -- cat "/run/fakegpufs/workloads/in/devices"
is "$out" 0,1 'run inside takes the GPUs whose nodes are in /dev'
# What the kernel remembers of a file it does not ask for again at once.
inside --mount "$mnt" -- sh -c '
    echo fallen_off_bus >/run/fakegpufs/gpus/1/control/fault
    while test -e /dev/nvidia1; do sleep 0.05; done; echo gone
    echo recover >/run/fakegpufs/gpus/1/control/fault
    until test -e /dev/nvidia1; do sleep 0.05; done; echo back'
is "$out" $'gone\nback' 'a GPU that is lost has no device node, and has it again'
mount_down

# A PCI root that the machine has as well keeps its own devices.
own=(/sys/devices/pci????:??)
if [[ -d ${own[0]} ]]; then
    root=${own[0]##*/pci}
    printf 'gpus: [{model: T4, bus_id: "%s:1f.7"}]\n' "$root" >"$dir/node.yaml"
    inside -c "$dir/node.yaml" -- sh -c "ls /sys/devices/pci$root"
    like "$out" "(^|"$'\n'")$root:1f[.]7($|"$'\n'")" 'a PCI root that is there already has the GPU'
    is "$(grep -v 1f.7 <<<"$out")" "$(ls "${own[0]}")" 'and what it had'
else
    skip 2 'this machine has no PCI root'
fi

# --- --explain ---------------------------------------------------------------

probe='ls -d /dev/nvidia* /proc/driver/nvidia*/* /sys/bus/pci/devices/* /sys/module/nvidia*; cat /proc/devices /sys/bus/pci/devices/*/device; echo "$LD_LIBRARY_PATH"; head -n 1 /run/fakegpufs/gpus/0/board; exit 6'
inside --gpus 2 --speed 0 -- sh -c "$probe"
itself="$status $out"
lines=$(PATH=${fakegpufs%/*}:$PATH bounded sh -c "$(bounded "$fakegpufs" exec --gpus 2 --speed 0 --explain -- sh -c "$probe")" 2>"$dir/err")
is "$? $lines" "$itself" 'the lines of --explain do the same'
is "$(outside | ours)" "$before" 'and leave nothing outside either'
wait_for eval '! pgrep -f "^fakegpufs mount --gpus 2 --speed 0 .* --pid-file /mnt/pid" >/dev/null'
ok $? 'and no daemon'

# --- Without privileges ------------------------------------------------------

# unprivileged COMMAND...: as somebody else, with a /dev/fuse of mode $fuse_mode.
unprivileged() {
    bounded unshare -m bash -c '
        mount -t tmpfs none "$1" && mknod -m "$2" "$1/fuse" c 10 229 && mount --bind "$1/fuse" /dev/fuse || exit 99
        shift 2
        exec setpriv --reuid 12345 --regid 12345 --clear-groups "$@"' - "$dir/fuse" "$fuse_mode" "$@" 2>&1
}
mkdir "$dir/fuse"
fuse_mode=666
if [[ $(unprivileged unshare -Um echo yes) != yes ]]; then
    skip 8 'there are no user namespaces for everybody'
else
    said=$(unprivileged "$fakegpufs" exec --gpus 2 -- sh -c 'id -u; ls -d /dev/nvidia[0-9]* /sys/bus/pci/devices/*; cat /dev/nvidia0 && echo opened; mkdir /run/fakegpufs/workloads/mine && cat /run/fakegpufs/workloads/mine/state; exit 5')
    is "$?" 5 'without privileges'
    is "$said" $'12345\n/dev/nvidia0\n/dev/nvidia1\n/sys/bus/pci/devices/0000:06:00.0\n/sys/bus/pci/devices/0000:17:00.0\nopened\nrunning' 'in a user namespace the same is there, and he is who he is'
    fuse_mode=600
    said=$(unprivileged "$fakegpufs" exec --gpus 2 -- true)
    is "$? $said" '1 fakegpufs: /dev/fuse cannot be opened (Permission denied), so no mount can be made; --mount names one that is' 'no /dev/fuse: says that it is missing'
    mount_up --gpus 2
    said=$(unprivileged "$fakegpufs" exec --mount "$mnt" -- ls -d /dev/nvidia0 /proc/driver/nvidia/gpus/0000:17:00.0)
    is "$? $said" $'0 /dev/nvidia0\n/proc/driver/nvidia/gpus/0000:17:00.0' 'but with a mount that is there it works'
    # As in a container: no privilege, and a namespace whose limit of user namespaces is none.
    said=$(unprivileged unshare -U --map-current-user --keep-caps bash -c '
        echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"' - \
        "$fakegpufs" exec --mount "$mnt" -- true)
    code=$?
    if [[ $said == *'Permission denied'* || $said == *'Read-only'* ]]; then
        skip 2 'user namespaces cannot be switched off here'
    else
        is "$code" 1 'no user namespaces: 1'
        is "$said" 'fakegpufs: a mount namespace is needed: CAP_SYS_ADMIN is missing, and so is a user namespace: user.max_user_namespaces is 0' 'and says what is missing'
    fi
    mount_down; ok $? 'the mount goes on'
    is "$(outside | ours)" "$before" 'and nothing is left outside'
fi

is "$mount_deaths" '' 'no worker died'
tap_done
