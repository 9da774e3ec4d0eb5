#!/usr/bin/env bash
#
# The tree as shell tools see it: every file by every tool, what stat says, links, and a GPU that goes.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

busybox=$(command -v busybox)

# walk PROGRAM: the program sees every (path, lstat) of the mount and prints what is wrong.
walk() {
    bounded "$PYTHON" - "$mnt" <<END 2>&1
import errno, os, stat, sys
mnt = sys.argv[1]
def walk(at):
    for e in os.scandir(at):
        yield e, e.stat(follow_symlinks=False)
        if e.is_dir(follow_symlinks=False):
            yield from walk(e.path)
$1
END
}

mount_up --gpus 2
gpu=$mnt/gpus/0
total=$gpu/metrics/memory_total_bytes

# --- Every tool reads a file ---------------------------------------------------

# reads COMMAND...: its output is the file, a value and a newline.
reads() {
    is "$(bounded "$@" 2>/dev/null; echo .)" $'42949672960\n.' "$(basename "$1") ${*:2:1} reads a file"
}

reads cat "$total"
reads head -c 100 "$total"
reads tail "$total"
reads sed '' "$total"
reads dd "if=$total" bs=1 status=none
reads dd "if=$total" bs=7 status=none
if [[ $busybox ]]; then
    reads "$busybox" cat "$total"
    reads "$busybox" head "$total"
    reads "$busybox" tail "$total"
    reads "$busybox" dd "if=$total" bs=1
else
    skip 4 'there is no busybox'
fi
cp "$total" "$dir/copy"
is "$(cat "$dir/copy")" 42949672960 'cp copies it'
[[ ! $busybox ]] || "$busybox" cp "$total" "$dir/copy"
is "$(wc -c <"$dir/copy")" 12 'and so does that of busybox'
is "$(wc -c <"$total")" 12 'wc -c counts what can be read'
is "$(dd if="$total" bs=1 skip=3 count=4 status=none)" 4967 'dd begins where it is told'
read -r value <"$total"
is "$value" 42949672960 'the shell reads it'
is "$(grep -c . "$gpu/sample")" "$(wc -l <"$gpu/sample")" 'no line of a sample is empty'
is "$(awk '$1 == "memory_total_bytes" { print $2 }' "$gpu/sample")" 42949672960 'a sample has the same value'

# --- Every file can be read, and all say what they are -------------------------

mkdir "$mnt/workloads/job"
errors=$(bounded find "$mnt" -type f ! -path "$mnt/events" ! -path "$mnt/kmsg" -exec cat {} + 2>&1 >/dev/null)
is "$(grep -v ': No data available$' <<<"$errors")" '' 'every file can be read; what a GPU lacks is ENODATA'
like "$errors" 'fan_speed_percent: No data available' 'a board without fans has no speed of them'
is "$(cat "$mnt/workloads/job/state")" running 'reading everything changes nothing'
is "$(walk '
for e, st in walk(mnt):
    installed = e.path.startswith(mnt + "/usr/")
    if e.is_file(follow_symlinks=False) and e.name not in ("events", "kmsg", "snapshot", "history", "config") and not installed:
        try:
            with open(e.path, "rb") as f: text = f.read()
        except OSError as error:
            if error.errno != errno.ENODATA: print(e.path, error)
            continue
        if not text.endswith(b"\n") or b"\0" in text: print(e.path, text[:50])
')" '' 'every file is text that ends with a newline; none is empty'

is "$(walk '
seen = {}
for e, st in walk(mnt):
    if e.inode() != st.st_ino: print(e.path, "is listed with another inode")
    if e.is_dir(follow_symlinks=False) != stat.S_ISDIR(st.st_mode) or \
       e.is_symlink() != stat.S_ISLNK(st.st_mode): print(e.path, "is listed as something else")
    if st.st_ino in seen: print(e.path, "has the inode of", seen[st.st_ino])
    seen[st.st_ino] = e.path
    if e.is_dir(follow_symlinks=False):
        for name, other in ((".", e.path), ("..", os.path.dirname(e.path))):
            if os.stat(e.path + "/" + name).st_ino != os.stat(other).st_ino: print(e.path, name)
')" '' 'what is listed is what is found; every inode is one thing'

is "$(walk '
for e, st in walk(mnt):
    if stat.S_ISDIR(st.st_mode):
        names = os.listdir(e.path)
        if len(set(names)) != len(names) or names != os.listdir(e.path): print(e.path, names)
        if st.st_nlink != 2 + sum(os.path.isdir(e.path + "/" + n) and not os.path.islink(e.path + "/" + n)
                                  for n in names): print(e.path, "has", st.st_nlink, "links")
        if not names and e.name not in ("workloads", "usr"): print(e.path, "is empty")
')" '' 'a directory lists each name once, counts its directories and is not empty'

is "$(walk '
for e, st in walk(mnt):
    if stat.S_ISLNK(st.st_mode):
        real = os.path.realpath(e.path)
        if not os.path.exists(real) or not real.startswith(mnt + "/"): print(e.path, os.readlink(e.path))
        if os.readlink(e.path).startswith("/"): print(e.path, "is absolute")
        if st.st_size != len(os.readlink(e.path)): print(e.path, st.st_size)
')" '' 'every symbolic link stays inside the mount'

is "$(walk '
for e, st in walk(mnt):
    kind, mode = stat.S_IFMT(st.st_mode), st.st_mode & 0o7777
    path = e.path[len(mnt) + 1:]
    if st.st_uid or st.st_gid: print(path, st.st_uid)
    if kind == stat.S_IFREG and st.st_size != 4096 and e.name not in ("events", "kmsg", "snapshot", "history", "config") and \
       not path.startswith("usr/"): print(path, st.st_size)
    if kind == stat.S_IFREG and mode not in (0o444, 0o644) and not path.startswith("usr/"): print(path, oct(mode))
    if kind == stat.S_IFDIR and mode != (0o1777 if path == "workloads" else 0o755): print(path, oct(mode))
    if (kind == stat.S_IFCHR) != path.startswith("dev/") and kind != stat.S_IFDIR: print(path, oct(st.st_mode))
')" '' 'owner, mode, size and kind of everything'

# shows FORMAT PATH WANT: what stat says.
shows() {
    is "$(stat -c "$1" "$mnt/$2")" "$3" "stat $1 $2"
}

shows '%F %a %t:%T %u:%g %s' dev/nvidia0 'character special file 666 c3:0 0:0 0'
shows '%F %t:%T' dev/nvidia1 'character special file c3:1'
shows '%F %t:%T' dev/nvidiactl 'character special file c3:ff'
shows '%F %t:%T' dev/nvidia-modeset 'character special file c3:fe'
shows '%F %a' gpus/0/metrics/power_usage_mw 'regular file 444'
shows '%F %a %s' gpus/0/control/power_limit_mw 'regular file 644 4096'
shows '%F %a' workloads 'directory 1777'
shows '%s' sys/devices/pci0000:06/0000:06:00.0/config 256
shows '%s' snapshot 12288
shows '%F %a' control/last_error 'regular file 444'
cat "$mnt/dev/nvidia0" 2>/dev/null; is $? 1 'a character device of nobody cannot be opened'
[[ -e $mnt/gpus/9 || -e $mnt/nothing || -e $mnt/gpus/00 || -e $mnt/dev/nvidia01 || -e $mnt/gpus/-1 ]]
is $? 1 'there are no other names for things'

# --- What some of them say -----------------------------------------------------

uuid=$(cat "$gpu/identity/uuid")
is "$(readlink "$mnt/gpus/by-uuid/$uuid")" ../0 'by-uuid'
is "$(cat "$mnt/gpus/by-uuid/$uuid/identity/index")" 0 'leads to the GPU'
is "$(readlink "$mnt/gpus/by-bus-id/0000:17:00.0")" ../1 'by-bus-id'
is "$(cat "$gpu/identity/bus_id")" 00000000:06:00.0 'the bus id as NVML has it'
information=$mnt/proc/driver/nvidia/gpus/0000:06:00.0/information
like "$(cat "$information")" $'^Model: \t\t NVIDIA A100-SXM4-40GB\n' 'proc: information'
like "$(cat "$information")" $'\nGPU UUID: \t '"$uuid"$'\n' 'proc: the same UUID'
like "$(cat "$information")" $'\nDevice Minor: \t 0\n' 'proc: the minor number'
version=$(cat "$gpu/identity/driver_version")
like "$(cat "$mnt/proc/driver/nvidia/version")" "^NVRM version: NVIDIA UNIX .* x86_64 +$version " 'proc: version'
like "$(cat "$mnt/proc/devices")" $'\n195 nvidia\n' 'proc: devices'
like "$(cat "$mnt/proc/modules")" 'nvidia [0-9]+ [0-9]+ nvidia_uvm,nvidia_modeset, Live' 'proc: modules'
device=$mnt/sys/bus/pci/devices/0000:06:00.0
is "$(cat "$device"/{vendor,device,class})" $'0x10de\n0x20b0\n0x030200' 'sys: what it is'
is "$(od -An -tx2 -N4 "$device/config" | tr -d ' ')" 10de20b0 'sys: the same in its configuration space'
is "$(wc -c <"$device/config")" 256 'sys: which has 256 bytes'
is "$(readlink -f "$device/driver")" "$mnt/sys/bus/pci/drivers/nvidia" 'sys: its driver'
is "$(cat "$mnt/sys/module/nvidia/version")" "$version" 'sys: the version of the module'
like "$(cat "$mnt/k8s/labels")" $'nvidia.com/gpu.count=2\n.*gpu.product=NVIDIA-A100-SXM4-40GB\n' 'k8s: labels'
bounded "$fakegpufs" config check "$mnt/k8s/topology.yaml" >/dev/null
ok $? 'k8s: the topology is a configuration'
bounded "$fakegpufs" config check "$mnt/control/config" >/dev/null
ok $? 'and so is control/config'

# --- Streams -------------------------------------------------------------------

output=$dir/tail background tail -f "$mnt/events"
wait_for grep -q 'workload_started.*"job"' "$dir/tail"; ok $? 'tail -f shows what was'
echo 'xid 31' >"$mnt/gpus/1/control/fault"
wait_for grep -qE '^[0-9]+ [0-9.]+ xid gpu=1 pci=0000:17:00.0 xid=31 ' "$dir/tail"
ok $? 'and what happens'
output=$dir/kmsg background cat "$mnt/kmsg"
wait_for grep -q 'NVRM: Xid (PCI:0000:17:00): 31, ' "$dir/kmsg"; ok $? 'the kernel log has it, too'
if [[ $busybox ]]; then
    output=$dir/busybox background "$busybox" cat "$mnt/events"
    wait_for grep -q xid=31 "$dir/busybox"; ok $? 'busybox cat follows it'
else
    skip 1 'there is no busybox'
fi
is "$(head -n 1 "$mnt/events" | cut -d ' ' -f 1)" 1 'events are numbered'
is "$(grep -cE '^[0-9]+ [0-9]+[.][0-9]{3} [a-z_]+( [a-z_]+=("[^"]*"|[^ "]+))*$' "$dir/tail")" \
    "$(wc -l <"$dir/tail")" 'and have one form'

# --- A GPU falls off the bus ---------------------------------------------------

there() {
    local path found=
    for path in dev/nvidia1 proc/driver/nvidia/gpus/0000:17:00.0 sys/bus/pci/devices/0000:17:00.0 \
        sys/bus/pci/drivers/nvidia/0000:17:00.0 sys/devices/pci0000:17/0000:17:00.0; do
        [[ -e $mnt/$path || -L $mnt/$path ]] && found+=x
        ls "$mnt/${path%/*}" 2>/dev/null | grep -qx "${path##*/}" && found+=x
    done
    echo "$found"
}

is "$(there)" xxxxxxxxxx 'a GPU is in dev, proc and sys'
temperature=$mnt/gpus/1/metrics/temperature_gpu_c
exec 5<"$temperature"
echo fallen_off_bus >"$mnt/gpus/1/control/fault"
is "$(there)" '' 'fallen off the bus, it is in none of them'
like "$(cat "$temperature" 2>&1)" 'No such device' 'its metrics are ENODEV'
like "$(head -c 9 <&5 2>&1)" 'No such device' 'for whoever had them open as well'
like "$(cat "$mnt/gpus/1/sample" 2>&1)" 'No such device' 'and so is its sample'
is "$(cat "$mnt/gpus/1/identity/index")" 1 'who it was can still be read'
is "$(cat "$mnt/gpus/1/control/fault" | head -n 1)" fallen_off_bus 'and what is wrong with it'
is "$(cat "$mnt/dev/nvidia0" 2>&1 >/dev/null | grep -c 'No such file')" 0 'its neighbour stays'
like "$(cat "$mnt/k8s/labels")" 'gpu.count=1' 'and is alone'
is "$(cat "$mnt/workloads/job/state")" running 'what runs elsewhere runs on'
wait_for grep -q ' lost gpu=1 ' "$dir/tail"; ok $? 'events tell'
wait_for grep -q '0000:17:00): 79, .*GPU has fallen off the bus' "$dir/kmsg"; ok $? 'and so does the kernel log'
errors=$(bounded find "$mnt" -type f ! -path "$mnt/events" ! -path "$mnt/kmsg" -exec cat {} + 2>&1 >/dev/null)
is "$(grep -vE ': No data available$|/gpus/1/.*: No such device$' <<<"$errors")" '' 'everything else can be read'
is "$(walk '
for e, st in walk(mnt):
    if stat.S_ISLNK(st.st_mode) and not os.path.exists(e.path): print(e.path)
')" '' 'and no link leads nowhere'
echo recover >"$mnt/gpus/1/control/fault"
is "$(there)" xxxxxxxxxx 'recovered, it is back'
like "$(cat "$temperature")" '^[0-9]+$' 'and can be read'
like "$(head -c 9 <&5)" '^[0-9]+$' 'by whoever had it open all the time'
exec 5<&-
stop_background
mount_down

# --- Devices as files ----------------------------------------------------------

mount_up --gpus 1 --dev file
shows '%F %a %s' dev/nvidia0 'regular file 666 4096'
is "$(cat "$mnt"/dev/nvidia{0,ctl,-uvm} 2>&1)" '' 'they can be opened, and there is nothing to read'
mount_down
mount_up --gpus 1 --dev null
shows '%F %t:%T' dev/nvidiactl 'character special file 1:3'
echo text >"$mnt/dev/nvidia0"; ok $? 'null devices swallow what is written'
mount_down

is "$mount_deaths" '' 'no worker died'
tap_done
