#!/usr/bin/env bash
#
# fakegpufs mount and umount: options, readiness, signals, reload, and what must not stay behind.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

gpu_count() {
    local gpus=("${1:-$mnt}"/gpus/[0-9]*)
    [[ -e ${gpus[0]} ]] && echo ${#gpus[@]} || echo 0
}

has_gpus() {
    [[ $(gpu_count "$2") == "$1" ]]
}

# refused STATUS REGEX NAME ARGUMENT...: the program ends so, says so, and nothing is mounted.
refused() {
    local want=$1 regex=$2 name=$3 said status
    shift 3
    said=$(bounded "$fakegpufs" "$@" 2>&1)
    status=$?
    is "$status" "$want" "$name: exit code $want"
    like "$said" "$regex" "$name: says why"
    not_mounted; ok $? "$name: nothing is mounted"
}

# --- Defaults and options ----------------------------------------------------

said=$(bounded "$fakegpufs" mount "$mnt" 2>&1)
ok $? 'mount returns 0'
is "$(cat "$mnt/gpus/7/identity/name")" 'NVIDIA A100-SXM4-40GB' 'it serves when mount has returned'
is "$(gpu_count)" 8 'eight GPUs by default'
like "$said" 'serves 8 GPUs' 'it says what it serves'
is "$(stat -c '%F %t:%T' "$mnt/dev/nvidia3")" 'character special file c3:3' 'root gets character devices'
bounded "$fakegpufs" umount "$mnt"; ok $? 'umount returns 0'
not_mounted; ok $? 'and the mount is gone'

mount_up --gpus 3 --model T4 --profile wave --speed 60
is "$(gpu_count)" 3 '--gpus'
is "$(cat "$mnt/gpus/2/identity/name")" 'Tesla T4' '--model'
is "$(cat "$mnt/gpus/0/control/profile")" wave '--profile'
like "$(cat "$mnt/control/clock")" $'\nspeed 60\n' '--speed'
is "$(cat "$dir/pid")" "$mount_pid" 'the pid file has a number'
like "$(tr '\0' ' ' <"/proc/$mount_pid/cmdline")" 'fakegpufs mount' 'which is the daemon'
is "$(cat "$dir/log")" "fakegpufs: $mnt serves 3 GPUs" '--log has what would be on standard error'
worker=$(worker_of)
mount_down
wait_gone "$worker"; ok $? 'the daemon ends with its mount'
[[ ! -e $dir/pid ]]; ok $? 'and takes its pid file along'

# A round of such a clock has 100,000 steps to make.
mount_up --gpus 64 --speed 1000000
bounded sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat "$1/control/clock" || exit; done >/dev/null' sh "$mnt"
ok $? 'a clock faster than the machine keeps nobody waiting'
put "$mnt/control/clock" pause
is "$(cat "$mnt/control/clock"; sleep 0.3)" "$(cat "$mnt/control/clock")" 'and stops when it is told to'

# Two million steps of a GPU, and of whoever reads meanwhile none waits for all of them.
# The clock shows the largest unit that leaves no fraction.
declare -A ns=([ns]=1 [us]=1000 [ms]=1000000 [s]=1000000000 [m]=60000000000 [h]=3600000000000)
now_of() {
    local now
    now=$(sed -n 's/^now //p' "$mnt/control/clock")
    echo $((${now%%[a-z]*} * ${ns[${now##*[0-9]}]}))
}
before=$(now_of)
background sh -c 'echo step 1h >"$1"' sh "$mnt/control/clock"
moments=
until is_gone "$started"; do
    moments+=" $(now_of)"
done
(($(printf '%s\n' $moments | sort -u | wc -l) >= 5))
ok $? 'a long step goes on while others read' || diag "$moments"
is $(($(now_of) - before)) 3600000000000 'and is answered when it is made'
mount_down

for mode in char:'character special file':c3 null:'character special file':1 file:'regular file':0; do
    IFS=: read -r name type major <<<"$mode"
    mount_up --gpus 1 --dev "$name"
    is "$(stat -c '%F %t' "$mnt/dev/nvidia0")" "$type $major" "--dev $name"
    head -c 1 "$mnt/dev/nvidia0" >/dev/null 2>&1
    is $? "$([[ $name == char ]] && echo 1 || echo 0)" "--dev $name: whether it can be opened"
    mount_down
done

mkdir "$dir/second"
mount_up --gpus 1
bounded "$fakegpufs" mount --gpus 2 "$dir/second" 2>/dev/null
is "$(gpu_count) $(gpu_count "$dir/second")" '1 2' 'two mounts at a time'
echo 55 >"$mnt/gpus/0/control/utilization_gpu_percent"
is "$(cat "$mnt/gpus/0/metrics/utilization_gpu_percent")" 55 'what is written to one'
is "$(cat "$dir/second/gpus/0/metrics/utilization_gpu_percent")" 0 'is not in the other'
bounded "$fakegpufs" umount "$dir/second"
is "$(gpu_count)" 1 'which stays when the other goes'
mount_down

# Programs run from the mount while what is installed is replaced: not half of one version and half of another.
mkdir "$dir/installed"
cp "$BUILD"/{fakegpufs,nvidia-smi,libnvidia-ml.so.1} "$dir/installed"
ours=$fakegpufs deaths=$mount_deaths
fakegpufs=$dir/installed/fakegpufs
mount_up --gpus 1
list() { FAKEGPUFS_ROOT=$mnt bounded "$mnt/usr/bin/nvidia-smi" -L | cut -d ' ' -f 1,2; }
is "$(list)" 'GPU 0:' 'nvidia-smi runs from the mount'
for file in nvidia-smi libnvidia-ml.so.1; do
    head -c 10000 /dev/zero >"$dir/new"
    mv -f "$dir/new" "$dir/installed/$file"
done
is "$(list)" 'GPU 0:' 'also when another version is installed'
cmp "$mnt/usr/bin/nvidia-smi" "$BUILD/nvidia-smi" && cmp "$mnt/usr/lib64/libnvidia-ml.so.1" "$BUILD/libnvidia-ml.so.1"
ok $? 'which is for the next mount'
kill -KILL "$(worker_of)"
is "$(stat -c %s "$mnt/usr/bin/nvidia-smi")" "$(stat -c %s "$BUILD/nvidia-smi")" 'not for the next worker'
rm "$dir/installed/nvidia-smi"
[[ -x $mnt/usr/bin/nvidia-smi ]]; ok $? 'nor does it go when that goes'
mount_down
mount_deaths=$deaths # without the one that was killed
fakegpufs=$ours

# The default place is somebody else's here: look at it in a mount namespace of our own.
said=$(bounded unshare -m bash -c '
    mount -t tmpfs none /run && "$1" mount --gpus 1 2>/dev/null && cat /run/fakegpufs/gpus/0/identity/index
    "$1" umount; grep -c " /run/fakegpufs " /proc/self/mounts' - "$fakegpufs")
is "$said" $'0\n0' 'without a mount point it is /run/fakegpufs, which is made'

# --- What is wrong -----------------------------------------------------------

refused 64 "'--nope' is not an option" 'an unknown option' mount --nope "$mnt"
refused 64 "'extra' is not expected" 'two mount points' mount "$mnt" extra
refused 64 'char, file, null' 'an unknown device mode' mount --dev block "$mnt"
refused 64 'error, warn, info, debug' 'an unknown log level' mount --log-level loud "$mnt"
refused 64 'without --config' 'GPUs twice' mount -c /dev/null --gpus 1 "$mnt"
refused 64 'is not expected' 'umount of two' umount "$mnt" "$mnt"
refused 1 'nothing[.]yaml: No such file' 'a missing configuration' mount -c "$dir/nothing.yaml" "$mnt"
refused 1 "cannot mount on ${fakegpufs%/*}: the program's own files in .* would be hidden" 'its own directory' mount "${fakegpufs%/*}"
refused 1 "found 'many'; allowed: a whole number" 'a count that is none' mount --gpus many "$mnt"
refused 1 "'A1000' is not a model; .*A100-SXM4-40GB" 'an unknown model' mount --model A1000 "$mnt"
refused 1 "'fast' is not a speed" 'a speed that is none' mount --speed fast "$mnt"
echo 'gpus: {count: 2, modell: T4}' >"$dir/bad.yaml"
refused 1 "bad[.]yaml:1:18: .*unknown key 'modell'" 'a wrong configuration' mount -c "$dir/bad.yaml" "$mnt"
refused 1 'is not a directory' 'a file to mount on' mount "$dir/bad.yaml"
refused 1 'cannot make .*: No such file' 'a mount point that cannot be made' mount "$dir/no/such"
refused 1 'cannot write' 'a log that cannot be written' mount --log "$dir/no/such" "$mnt"
refused 1 'cannot write' 'a pid file that cannot be written' mount --pid-file "$dir/no/such" "$mnt"
refused 1 'cannot unmount' 'umount of what is not mounted' umount "$mnt"

# --- Foreground, readiness, the end ------------------------------------------

"$fakegpufs" mount --foreground --gpus 1 "$mnt" 2>"$dir/foreground" &
pid=$!
mount_owned+=($pid)
wait_for test -e "$mnt/control/clock"; ok $? '--foreground mounts'
kill -0 $pid; ok $? 'and stays'
worker=$(worker_of $pid)
kill -TERM $pid
wait $pid; is $? 0 'SIGTERM: exit code 0'
not_mounted; ok $? 'SIGTERM: unmounted'
is_gone "$worker"; ok $? 'SIGTERM: the worker is gone'
like "$(cat "$dir/foreground")" "serves 1 GPU\$" 'the log goes to standard error'

"$fakegpufs" mount --foreground --gpus 1 "$mnt" 2>/dev/null &
pid=$!
mount_owned+=($pid)
wait_for is_mounted
kill -INT $pid
wait $pid; is $? 0 'SIGINT, even before it serves: exit code 0'
not_mounted; ok $? 'SIGINT: unmounted'

# notified SOCKET: starts it with a socket to notify, as systemd would; prints what came, in order.
notified() {
    bounded "$PYTHON" - "$fakegpufs" "$mnt" "$1" <<'END'
import os, socket, subprocess, sys
program, mnt, name = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0" + name[1:] if name[0] == "@" else name)
s.settimeout(30)
daemon = subprocess.Popen([program, "mount", "--foreground", "--gpus", "1", mnt],
                          env=dict(os.environ, NOTIFY_SOCKET=name), stderr=subprocess.DEVNULL)
try:
    print(s.recv(100).decode(), os.path.exists(mnt + "/gpus/0"))
    daemon.terminate()
    print(s.recv(100).decode(), daemon.wait(30))
finally:
    daemon.kill()
END
}
is "$(notified "$dir/notify")" $'READY=1 True\nSTOPPING=1 0' 'systemd is told'
is "$(notified "@fakegpufs-test-$$")" $'READY=1 True\nSTOPPING=1 0' 'by an abstract socket, too'

# --- Reload ------------------------------------------------------------------

# Where only root may look: the worker that serves is nobody.
mkdir -m 700 "$dir/private"
config=$dir/private/node.yaml
echo 'gpus: {count: 2, model: T4}' >"$config"
mount_up -c "$config" --speed 7
is "$(gpu_count)" 2 'a configuration file'
uuid=$(cat "$mnt/gpus/1/identity/uuid")
echo 'gpus: {count: 4, model: T4}' >"$config"
wait_for has_gpus 4; ok $? 'a changed file is read again'
is "$(cat "$mnt/gpus/1/identity/uuid")" "$uuid" 'GPUs that stay are the same'
like "$(cat "$mnt/control/clock")" $'\nspeed 7\n' 'what the command line said stays'
like "$(cat "$mnt/control/config")" 'count: 4' 'control/config shows the new one'
echo 'gpus: {count: 1, modell: T4}' >"$config"
wait_for grep -q modell "$mnt/control/last_error"; ok $? 'a wrong file: last_error says why'
like "$(cat "$dir/log")" "error: configuration not applied: .*node[.]yaml:1:18: .*unknown key 'modell'" 'and the log'
is "$(gpu_count)" 4 'and all stays as it was'
echo 'gpus: {count: 1, model: T4}' >"$config"
wait_for has_gpus 1; ok $? 'the next right one counts'

# A signal says read it now, though the file has not changed.
echo 'gpus: {count: 3, model: T4}' >"$mnt/control/config"
is "$(gpu_count)" 3 'a configuration by control/config'
kill -HUP "$mount_pid"
wait_for has_gpus 1; ok $? 'SIGHUP reads the file again'
mount_down

# As the kubelet does it: FILE -> ..data/FILE, ..data -> ..TIMESTAMP, and ..data is renamed over.
map=$dir/private/map
mkdir -p "$map/..1" "$map/..2"
echo 'gpus: {count: 1, model: L4}' >"$map/..1/node.yaml"
echo 'gpus: {count: 2, model: L4}' >"$map/..2/node.yaml"
ln -s ..1 "$map/..data"
ln -s ..data/node.yaml "$map/node.yaml"
cd "$map" || bail "no directory '$map'"
mount_up -c node.yaml
cd / || bail 'no root'
is "$(gpu_count)" 1 "a ConfigMap's file, named from where it is"
ln -s ..2 "$map/..data_tmp"
mv -T "$map/..data_tmp" "$map/..data"
rm -r "$map/..1"
wait_for has_gpus 2; ok $? 'its symbolic link is swapped: read again'
mount_down

mount_up --gpus 1
kill -HUP "$mount_pid"
is "$(gpu_count)" 1 'SIGHUP without a configuration file does no harm'
is "$(cat "$mnt/control/last_error")" none 'and is no error'
mount_down

# --- The mount before, and users that stay -----------------------------------

mount_up --gpus 1
worker=$(worker_of)
kill -KILL "$mount_pid" "$worker"
wait_gone "$mount_pid"
wait_gone "$worker"
is_mounted && ! stat "$mnt/gpus" >/dev/null 2>&1; ok $? 'kill -9 of both leaves a dead mount'
mount_up --gpus 2
is "$(gpu_count)" 2 'which the next one replaces'
is "$(grep -c " $mnt " /proc/self/mounts)" 1 'rather than to cover it'
like "$(cat "$dir/log")" 'removing the dead mount' 'and says so'
mount_down

mount_up --gpus 1
worker=$(worker_of)
kill -KILL "$mount_pid"
wait_gone "$worker"; ok $? 'a worker without its supervisor ends'
mount_pid=
umount -l "$mnt"

mount_up --gpus 1
exec 7<"$mnt/gpus/0/metrics/memory_total_bytes"
bounded "$fakegpufs" umount "$mnt"; ok $? 'umount while a file is open'
not_mounted; ok $? 'the mount is gone at once'
is "$(head -c 3 <&7)" 429 'the open file goes on'
is_gone "$mount_pid"; is $? 1 'and so does its daemon'
exec 7<&-
wait_gone "$mount_pid"; ok $? 'until the file is closed'
mount_pid=

mount_up --gpus 1
exec 7<"$mnt/events"
kill -TERM "$mount_pid"
wait_gone "$mount_pid"; ok $? 'SIGTERM while a file is open: it ends'
not_mounted; ok $? 'and is unmounted'
said=$(bounded head -c 1 <&7 2>&1)
like "$said" 'not connected|abort' 'whoever has it open gets an error and does not hang'
exec 7<&-
mount_pid=

mount_up --gpus 1
said=$(as 12345 "$fakegpufs" umount "$mnt" 2>&1)
is $? 1 'another user cannot unmount it'
like "$said" 'cannot unmount' 'and is told so'
is_mounted; ok $? 'it stays'
mount_down

# --- Without privileges ------------------------------------------------------

# unprivileged COMMAND: as a normal user (fusermount3 asks for one with a name), in a mount namespace
# where /dev/fuse is for everybody as on any desktop. Others do not see what is mounted there, so
# everything is done inside.
unprivileged() {
    bounded unshare -m bash -c '
        mknod -m 666 "$2/fuse" c 10 229 && mount --bind "$2/fuse" /dev/fuse && rm -f "$2/fuse" || exit
        exec setpriv --reuid 1 --regid 1 --clear-groups bash -c "$4" - "$1" "$3"' \
        - "$fakegpufs" "$dir" "$dir/user/mnt" "$1" 2>&1
}

mkdir -p "$dir/user/mnt"
chown -R 1:1 "$dir/user"
if ! command -v fusermount3 >/dev/null || [[ ! -u $(command -v fusermount3) ]]; then
    skip 8 'there is no fusermount3 that may mount'
elif ! getent passwd 1 >/dev/null || [[ $(unprivileged 'echo $UID') != 1 ]]; then
    skip 8 'no mount namespace with a /dev/fuse of its own can be made'
else
    said=$(unprivileged '
        $1 mount --gpus 2 --pid-file $2.pid $2 2>$2.log
        sed "s,$2,HERE," $2.log
        stat -c "%F %u" $2/dev/nvidia1 $2/gpus/0/control/fault
        echo 44 >$2/gpus/1/control/utilization_gpu_percent && cat $2/gpus/1/metrics/utilization_gpu_percent
        mkdir $2/workloads/mine && cat $2/workloads/mine/state
        read -r worker _ </proc/$(cat $2.pid)/task/$(cat $2.pid)/children
        grep -E "^(Uid|NoNewPrivs)" /proc/$worker/status | tr "\t" " "
        kill -KILL $worker; cat $2/workloads/mine/state
        $1 umount $2; grep -c " $2 " /proc/self/mounts')
    is "$(sed -n 1p <<<"$said")" 'fakegpufs: HERE serves 2 GPUs' 'a user mounts, and nothing complains'
    is "$(sed -n 2,3p <<<"$said")" $'regular file 1\nregular file 1' 'devices are files, and all is his'
    is "$(sed -n 4p <<<"$said")" 44 'he controls his GPUs'
    is "$(sed -n 5p <<<"$said")" running 'and has workloads'
    is "$(sed -n 6p <<<"$said")" 'Uid: 1 1 1 1' 'the worker is he'
    is "$(sed -n 7p <<<"$said")" 'NoNewPrivs: 1' 'and can become nobody else'
    is "$(sed -n 8p <<<"$said")" running 'the mount outlives its worker'
    is "$(sed -n 9p <<<"$said")" 0 'he unmounts'
fi

is "$mount_deaths" '' 'no worker died'
tap_done
