#!/usr/bin/env bash
#
# Workload directories: mkdir starts one, its files say what it does, and whoever holds it keeps it.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

mount_up --gpus 2 --dev file
job=$mnt/workloads/job

state_is() {
    [[ $(cat "$mnt/workloads/$1/state") == "$2" ]]
}

no_processes() {
    [[ $(wc -l <"$mnt/gpus/$1/processes") == 1 ]]
}

is_removed() {
    [[ ! -e $mnt/workloads/$1 ]] && ! ls "$mnt/workloads" | grep -qx "$1"
}

# --- Making and configuring ----------------------------------------------------

mkdir "$job"; ok $? 'mkdir makes a workload'
is "$(cat "$job/state")" running 'which runs at once'
is "$(stat -c '%F %a %u' "$job")" 'directory 755 0' 'it belongs to who made it'
is "$(ls "$job" | tr '\n' ' ')" \
    'activity attach container devices last_error limits memory namespace pid pod progress repeat state ' \
    'these are its files'
is "$(cat "$job"/{activity,devices,memory,limits,namespace,pod,container,repeat,attach,last_error} | tr '\n' ' ')" \
    '[] 0 0 {} - - - 1 0 none ' 'and what they say of a new one'

# sets FILE TEXT SHOWN: what is written is accepted, and shown so.
sets() {
    local said
    said=$(put "$job/$1" "$2"$'\n')
    is "$? $said" '0 ' "$1 accepts $2"
    is "$(cat "$job/$1")" "$3" "and shows $3"
}

sets devices 1 1
sets devices 0,1 0,1
sets devices "$(cat "$mnt/gpus/1/identity/uuid")" 1
sets devices 0000:06:00.0 0
sets devices all 0,1
sets activity '[{time: 1h, utilization: 80}, {time: 10m, utilization: 20}]' \
    '[{time: 1h, utilization: 80%}, {time: 10m, utilization: 20%}]'
sets activity 60:0:2h '[{time: 2h, utilization: 60%}]'
sets repeat 5 5
sets repeat forever 0
sets memory 10GiB 10GiB
sets memory 5000MiB 5000MiB
sets memory 1073741824 1GiB
sets limits '{memory: 30GiB, time: 1h}' '{memory: 30GiB, time: 1h}'
sets limits memory=20GiB,time=90s '{memory: 20GiB, time: 90s}'
sets limits '{}' '{}'
sets namespace team-a team-a
sets pod trainer-0 trainer-0
sets container main main
sets pid 4242 4242

for gpu in 0 1; do
    is "$(cat "$mnt/gpus/$gpu/processes")" \
        $'# pid memory_bytes utilization_percent workload namespace pod container gi ci\n4242 1073741824 60 job team-a trainer-0 main - -' \
        "GPU $gpu shows it among its processes"
    is "$(cat "$mnt/gpus/$gpu/metrics/"{memory_used_bytes,utilization_gpu_percent})" $'1073741824\n60' \
        "GPU $gpu bears its load"
done
like "$(cat "$mnt/k8s/topology.yaml")" 'pod: trainer-0' 'the topology shows its pod'
put "$mnt/control/clock" 'step 5s'
progress=$(cat "$job/progress")
like "$progress" '^progress_ns [0-9]+' 'progress is told'
(($(sed -n 's/^progress_ns //p' <<<"$progress") >= 5000000000)); ok $? 'and is made'
rmdir "$job"; ok $? 'rmdir ends it'
is "$(wc -l <"$mnt/gpus/0/processes") $(cat "$mnt/gpus/0/metrics/"{memory_used_bytes,utilization_gpu_percent} | tr '\n' ' ')" \
    '1 0 0 ' 'and its load is gone'
is_removed job; ok $? 'it is gone altogether'

# Two on one GPU; what is changed must not be taken for another.
mkdir "$mnt/workloads/"{a,b,c}
for name in a b c; do
    echo 0 >"$mnt/workloads/$name/devices"
    echo 10GiB >"$mnt/workloads/$name/memory"
    echo "$name-pod" >"$mnt/workloads/$name/pod"
done
is "$(cat "$mnt/workloads/"{a,b,c}/pod | tr '\n' ' ')" 'a-pod b-pod c-pod ' 'each is what it was called'
is "$(cat "$mnt/gpus/0/metrics/memory_used_bytes")" 32212254720 'their memory adds up'
mkdir "$job"
echo 0 >"$job/devices"
is "$(put "$job/memory" 10GiB)" 'No space left on device' 'what does not fit is refused'
like "$(cat "$job/last_error")" "needs 10240 MiB on GPU 0, which has [0-9]+ MiB free" 'with a sentence'
is "$(put "$job/memory" 100GiB)" 'No space left on device' 'what never fits is refused, too'
is "$(cat "$job/memory" "$job/state")" $'0\nrunning' 'and changes nothing'
rmdir "$mnt/workloads/"{a,b,c}

# --- Direct control ------------------------------------------------------------

control=$mnt/gpus/0/control
metrics=$mnt/gpus/0/metrics
echo 80 >"$control/utilization_gpu_percent"
echo 20GiB >"$control/memory_used_bytes"
is "$(cat "$metrics/"{utilization_gpu_percent,memory_used_bytes})" $'80\n21474836480' 'values can be dictated'
echo auto >"$control/utilization_gpu_percent"
echo auto >"$control/memory_used_bytes"
is "$(cat "$metrics/"{utilization_gpu_percent,memory_used_bytes})" $'0\n0' 'and given back'

# --- How it ends ---------------------------------------------------------------

echo 10GiB >"$job/memory"
echo memory=5GiB >"$job/limits"
put "$mnt/control/clock" 'step 1s'
is "$(cat "$job/state")" 'ended 1 Limit memory reached, terminated' 'a limit that is reached'
is "$(wc -l <"$mnt/gpus/0/processes")" 1 'it uses nothing any more'
rmdir "$job"
mkdir "$job"
echo '[{time: 10s, utilization: 80}]' >"$job/activity"
put "$mnt/control/clock" 'step 9s'
is "$(cat "$job/state")" running 'before the end of its activity'
put "$mnt/control/clock" 'step 2s'
is "$(cat "$job/state")" 'ended 0 Finished' 'at the end'
echo '[{time: 10s, utilization: 80}]' >"$job/activity"
is "$(cat "$job/state")" running 'another activity starts it again'

# A change of state wakes whoever polls; it is read, and then the next one counts.
said=$(bounded "$PYTHON" - "$mnt" <<'END'
import os, select, sys, threading
mnt = sys.argv[1]
def put(path, text):
    fd = os.open(mnt + "/" + path, os.O_WRONLY); os.write(fd, text.encode()); os.close(fd)
fd = os.open(mnt + "/workloads/job/state", os.O_RDONLY)
print(os.pread(fd, 100, 0).decode().strip())
p = select.poll()
p.register(fd, select.POLLIN | select.POLLPRI)
print(len(p.poll(50)))
threading.Timer(0.05, put, ("control/clock", "step 11s")).start()
print(len(p.poll(30000)), os.pread(fd, 100, 0).decode().strip(), len(p.poll(50)))
e = select.epoll()
e.register(fd, select.EPOLLIN)
threading.Timer(0.05, put, ("workloads/job/activity", "50:0:1h")).start()
print(len(e.poll(30)), os.pread(fd, 100, 0).decode().strip(), len(e.poll(0.05)))
threading.Timer(0.05, os.rmdir, (mnt + "/workloads/job",)).start()
print(len(p.poll(30000)))
try:
    os.pread(fd, 100, 0)
except OSError as error:
    print(error.strerror)
END
)
is "$said" $'running\n0\n1 ended 0 Finished 0\n1 running 0\n1\nNo such file or directory' \
    'pollers of its state are woken when it ends, starts again and is removed'

# --- Held by a process ---------------------------------------------------------

# hold NAME: a process that has its attach open; sets $started.
hold() {
    background bash -c 'exec 9>"$1/attach" && exec sleep 600' - "$mnt/workloads/$1"
}

attached() {
    [[ $(cat "$mnt/workloads/$1/attach") == "$2" ]]
}

mkdir "$job"
hold job
wait_for attached job 1; ok $? 'a process holds it'
first=$started
hold job
wait_for attached job 2; ok $? 'and another one'
cat "$job/attach" >/dev/null
is "$(cat "$job/attach")" 2 'to look is not to hold'
kill -KILL "$first"
wait_for attached job 1; ok $? 'kill -9 of one of them'
is "$(cat "$job/state")" running 'leaves it running'
kill -KILL "$started"
wait_for is_removed job; ok $? 'kill -9 of the last removes it'
mkdir "$job"
(exec 9>"$job/attach"; cat "$job/state" >"$dir/state")
is "$(cat "$dir/state")" running 'whoever just closes it'
wait_for is_removed job; ok $? 'lets go as well'
mkdir "$job"
hold job
wait_for attached job 1
rmdir "$job"; ok $? 'rmdir ends what is held'
is_removed job; ok $? 'at once'
mkdir "$job"
kill -KILL "$started"
wait_gone "$started"
cat "$job/attach" >/dev/null
is "$(cat "$job/state")" running 'and its holder does not end the next of that name'
rmdir "$job"

# --- Made by the one who holds it ----------------------------------------------

{ bash -c 'exec 9>"$1/.job"; cat "$1/job/attach"; ls -A "$1"; kill -KILL $$' - "$mnt/workloads" >"$dir/state"; } 2>/dev/null
is "$(cat "$dir/state")" $'1\njob' 'a file with a dot makes a workload that is held from the beginning'
wait_for is_removed job; ok $? 'and goes with its maker, though nobody opened attach'
background bash -c 'exec 9>"$1/.job" && exec sleep 600' - "$mnt/workloads"
wait_for attached job 1
hold job
wait_for attached job 2; ok $? 'others may hold it, too'
is "$(bash -c ': >"$1/.job"' - "$mnt/workloads" 2>&1 | grep -o 'File exists')" 'File exists' 'a name that there is: EEXIST'
stat "$mnt/workloads/.job" 2>/dev/null; is $? 1 'the file itself is not there'
is "$(bash -c ': >"$1/.-x"' - "$mnt/workloads" 2>&1 | grep -o 'Invalid argument') $(cat "$mnt/control/last_error")" \
    "Invalid argument '-x' is not a name for a workload" 'a name that is none: EINVAL, and why'
is "$(bash -c ': >"$1/job2"; : >"$2/.job2"' - "$mnt/workloads" "$mnt/gpus" 2>&1 | grep -c 'Operation not permitted')" 2 \
    'without the dot, or elsewhere: EPERM'
rmdir "$job"; ok $? 'rmdir ends it'

# --- Devices as files: who has one open is a process on that GPU ---------------

background bash -c 'exec 9<>"$1" && exec sleep 600' - "$mnt/dev/nvidia1"
wait_for grep -q "^$started " "$mnt/gpus/1/processes"; ok $? 'who opens a device is a process of its GPU'
grep -q "^$started " "$mnt/gpus/0/processes"; is $? 1 'and of no other'
kill -KILL "$started"
wait_for no_processes 1; ok $? 'until it ends'

# --- Others --------------------------------------------------------------------

as 12345 mkdir "$mnt/workloads/theirs"; ok $? 'anybody may make one'
is "$(stat -c %u "$mnt/workloads/theirs")" 12345 'which is his'
as 12345 bash -c 'echo 1GiB >"$1/memory"' - "$mnt/workloads/theirs"; ok $? 'he configures it'
as 54321 bash -c 'echo 2GiB >"$1/memory"' - "$mnt/workloads/theirs" 2>/dev/null; is $? 1 'nobody else does'
as 54321 bash -c '>"$1/attach"' - "$mnt/workloads/theirs" 2>/dev/null; is $? 1 'or holds it'
as 54321 bash -c 'exec 9<"$1/attach"' - "$mnt/workloads/theirs"
as 54321 rmdir "$mnt/workloads/theirs" 2>/dev/null; is $? 1 'or removes it'
is "$(as 54321 cat "$mnt/workloads/theirs/"{memory,state})" $'1GiB\nrunning' 'all may look'
as 12345 bash -c 'echo 90 >"$1"' - "$control/utilization_gpu_percent" 2>/dev/null
is $? 1 'control files are for root'
echo 2GiB >"$mnt/workloads/theirs/memory"; ok $? 'root may touch everything'
as 12345 rmdir "$mnt/workloads/theirs"; ok $? 'he removes it himself'
mkdir "$job"
as 12345 rmdir "$job" 2>/dev/null; is $? 1 "but not root's"
rmdir "$job"

# --- Very many -----------------------------------------------------------------

count=10000
! sanitized || count=1000
# Each costs as much as there are already, so this takes its time on a machine that has others to serve.
said=$(timeout -k 5 400 "$PYTHON" - "$mnt/workloads" "$count" <<'END'
import os, sys
os.chdir(sys.argv[1])
count = int(sys.argv[2])
for i in range(count):
    os.mkdir("w%d" % i)
names = os.listdir(".")
print(len(names), len(set(names)), open("w%d/state" % (count // 2)).read().strip())
for name in reversed(names):
    os.rmdir(name)
print(len(os.listdir(".")))
END
)
is "$said" "$count $count running"$'\n0' "$count are made and removed"
is "$(cat "$mnt/gpus/0/metrics/utilization_gpu_percent")" 0 'and the mount serves on'
stop_background
mount_down; ok $? 'until it is unmounted'

is "$mount_deaths" '' 'no worker died'
tap_done
