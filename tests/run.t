#!/usr/bin/env bash
#
# fakegpufs run: exit codes and messages, which GPUs it takes, who ends it and what then is left, and
# what a terminal shows.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

unset POD_NAMESPACE POD_NAME CONTAINER_NAME NVIDIA_VISIBLE_DEVICES JOB_COMPLETION_INDEX FAKEGPUFS_ROOT NODE_NAME

# run ARGUMENT...: sets $status, $out and $err.
run() {
    bounded "$fakegpufs" run --mount "$mnt" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}

# ends STATUS STREAM REGEX NAME ARGUMENT...: run ends so and says so, and nothing of it is left.
ends() {
    local want=$1 stream=$2 regex=$3 name=$4
    shift 4
    run "$@"
    is "$status" "$want" "$name: exit code $want"
    like "${!stream}" "$regex" "$name: says so"
    is "$(ls "$mnt/workloads")" '' "$name: nothing is left"
}

# started NAME ARGUMENT...: one with an activity, which is written last, that goes on in the background;
# its output is in $dir/NAME. Sets $started.
started() {
    local name=$1
    shift
    output=$dir/$name
    background "$fakegpufs" run --mount "$mnt" --name "$name" "$@"
    output=/dev/null
    wait_for grep -qs % "$mnt/workloads/$name/activity" || diag "$name does not run: $(cat "$dir/$name")"
}

has_gone() {
    [[ ! -e $mnt/workloads/$1 ]]
}

has() {
    [[ $(cat "$1") == "$2" ]]
}

# stop_all: ends all that go on in the background, and waits for their workloads to go.
stop_all() {
    stop_background
    wait_for none_left
}

none_left() {
    [[ ! $(ls "$mnt/workloads") ]]
}

# --- How it ends -------------------------------------------------------------

mount_up --gpus 4 --speed 100

ends 0 out 'train: Finished$' 'the end of its activity' --name train --activity 80:10:5s
ends 0 out '^train: Finished$' 'without progress' -q --name train --activity 80:10:5s
ends 1 err '^train: Limit time reached, terminated$' 'a limit' --name train --activity 80:10:1h --limit time=10s
ends 1 err '^train: Limit memory reached, terminated$' 'a limit of memory' --name train --activity 50:0:1h \
    --memory '{ramp: {from: 1GiB, to: 10GiB, over: 60s}}' --limit memory=5GiB
ends 1 err '^train: Limit energy reached, terminated$' 'a limit of energy' --name train --activity 90:0:24h --limit energy=1kJ
ends 1 err '^train: Out of memory on GPU 1, terminated$' 'memory that grows too far' --name train --devices 1 \
    --activity 50:0:1h --memory '{ramp: {from: 1GiB, to: 80GiB, over: 60s}}'
ends 1 err "workload 'train' needs 102400 MiB on GPU 0, which has 40442 MiB free" 'memory that does not fit' \
    --name train --devices 0 --memory 100GiB --activity 80:10:5s
ends 1 err "there is no GPU '9'" 'a GPU that is not there' --devices 9 --activity 80:10:5s
ends 1 err '5 GPUs are asked for, and 4 can be seen' 'more GPUs than there are' --gpus 5
ends 1 err "no device node of a GPU matches '$dir/nvidia[*]'" 'device nodes that are not there' --devices-glob "$dir/nvidia*"
ends 1 err 'nothing[.]yaml: No such file' 'an activity file that is not there' --activity-file "$dir/nothing.yaml"
ends 64 err "--activity:.*'fast'" 'an activity that is none' --activity fast:10:5s
ends 64 err "--activity:.*allowed" 'an activity out of range' --activity 180:10:5s
ends 64 err "--memory:.*'much'" 'a memory that is none' --memory much
ends 64 err "'often' is neither a number nor 'forever'" 'a repeat that is none' --repeat often
ends 64 err "'a/b' is not a name for a workload" 'a name that is none' --name a/b
ends 64 err 'one at a time' 'GPUs twice' --gpus 1 --devices 0
ends 64 err 'one at a time' 'two activities' --activity 80 --activity-file "$dir/x"
ends 1 err 'limits|limit' 'a limit that is none' --limit soon=1
is "$(wc -l <"$dir/err")" 1 'a refusal is one sentence'

said=$(bounded "$fakegpufs" run --mount "$dir/nothing" 2>&1)
is $? 1 'no mount: exit code 1'
like "$said" "there is no mount on $dir/nothing; .*fakegpufs mount" 'no mount: says so'

started shown --activity 80:0:24h --memory 3GiB
wait_for test -s "$dir/shown"
like "$(<"$dir/shown")" '^shown: 0%, [0-9]+m[0-9]+s left, 80%  3[.]0 GiB  [0-9]+ W$' 'a line of progress where there is no terminal'
stop_all

# --- What it says of itself --------------------------------------------------

started identity --activity 50 --memory 2GiB --repeat 3 --namespace team --pod pod-1 --container main --limit time=9h
w=$mnt/workloads/identity
is "$(cat "$w"/{namespace,pod,container,pid,attach})" $'team\npod-1\nmain\n'"$started"$'\n1' 'names, process id and a holder'
is "$(cat "$w"/{memory,repeat,limits})" $'2GiB\n3\n{time: 9h}' 'memory, repeat and limits'
like "$(cat "$mnt"/gpus/*/processes)" "$started 2147483648 [0-9]+ identity team pod-1 main" 'it is a process of its GPU'
said=$(bounded "$fakegpufs" run --mount "$mnt" --name identity 2>&1)
is "$? $said" "1 fakegpufs: there is a workload 'identity' already" 'its name is taken'
has "$w/attach" 1; ok $? 'and it goes on'
stop_all

POD_NAMESPACE=ns POD_NAME=trainer-0 CONTAINER_NAME=app started downward --activity 50
is "$(cat "$mnt"/workloads/downward/{namespace,pod,container})" $'ns\ntrainer-0\napp' 'the downward API'
POD_NAME=trainer-0 background "$fakegpufs" run --mount "$mnt" --activity 50
wait_for test -e "$mnt/workloads/trainer-0-$started"; ok $? 'without a name it has that of its pod'
stop_all

JOB_COMPLETION_INDEX=6 background "$fakegpufs" run --mount "$mnt" --name job-INDEX --pod p-INDEX --devices INDEX --max-index 4
wait_for grep -qs p-2 "$mnt/workloads/job-2/pod"; ok $? 'INDEX, modulo the highest'
is "$(cat "$mnt/workloads/job-2/devices")" 2 'also for devices'
JOB_COMPLETION_INDEX=6 background "$fakegpufs" run --mount "$mnt" --name plain-INDEX
wait_for test -e "$mnt/workloads/plain-6"; ok $? 'INDEX without a highest'
stop_all
ends 64 err 'JOB_COMPLETION_INDEX' 'INDEX outside of a Job' --name job-INDEX

printf '%s\n' '- {time: 3s, utilization: 40}' '- {time: 3s, utilization: 60}' >"$dir/activity.yaml"
ends 0 out 'Finished' 'an activity from a file' --activity-file "$dir/activity.yaml"

# --- Which GPUs --------------------------------------------------------------

# devices_of ARGUMENT...: which GPUs it takes.
# With an activity, which is written last: when it is there, so is everything else.
devices_of() {
    local pid
    "$fakegpufs" run -q --mount "$mnt" --name which --activity 33 "$@" >/dev/null 2>&1 &
    pid=$!
    disown $pid
    wait_for grep -qs 33 "$mnt/workloads/which/activity"
    cat "$mnt/workloads/which/devices"
    kill -KILL $pid
    wait_for has_gone which
}

uuid=$(cat "$mnt/gpus/3/identity/uuid")
bus=$(cat "$mnt/gpus/2/identity/bus_id")
is "$(devices_of --devices 1,3)" 1,3 'by index'
is "$(devices_of --devices "$uuid")" 3 'by UUID'
is "$(devices_of --devices "$bus")" 2 'by bus id'
is "$(devices_of --devices all)" 0,1,2,3 'all of them'
is "$(devices_of --devices-glob "$mnt/dev/nvidia*")" 0,1,2,3 'by device nodes'
is "$(devices_of --devices-glob "$mnt/dev/nvidia[13]")" 1,3 'by some device nodes'
is "$(NVIDIA_VISIBLE_DEVICES=2,0 devices_of)" 2,0 'those of NVIDIA_VISIBLE_DEVICES'
is "$(NVIDIA_VISIBLE_DEVICES=$uuid devices_of)" 3 'by UUID there, too'
is "$(NVIDIA_VISIBLE_DEVICES=all devices_of)" 0,1,2,3 'all'
is "$(NVIDIA_VISIBLE_DEVICES=all devices_of --gpus 1)" 0 'one of them'
like "$(devices_of)" '^[0-3]$' 'one where nobody says'
is "$(devices_of --gpus all)" 0,1,2,3 '--gpus all'
NVIDIA_VISIBLE_DEVICES=none run
is "$status" 1 'NVIDIA_VISIBLE_DEVICES=none: exit code 1'
like "$err" "NVIDIA_VISIBLE_DEVICES is 'none': no GPU can be seen" 'and says so'

started busy --devices 0,1 --activity 50
is "$(devices_of --gpus 2)" 2,3 'the least busy are taken'
is "$(NVIDIA_VISIBLE_DEVICES=1,2 devices_of --gpus 1)" 2 'also of those that can be seen'

# In a mount namespace whose /dev has two of the nodes.
said=$(bounded unshare -m bash -c '
    mount -t tmpfs none /dev && touch /dev/nvidia1 /dev/nvidia3 /dev/nvidiactl && mknod /dev/null c 1 3
    "$1" run -q --mount "$2" --name seen --activity 50:0:10m & pid=$!
    for ((i = 0; i < 1500; i++)); do grep -qs 50 "$2/workloads/seen/activity" && break; sleep 0.02; done
    cat "$2/workloads/seen/devices"; kill -KILL $pid' - "$fakegpufs" "$mnt" 2>/dev/null)
is "$said" 1,3 'those whose device nodes are in /dev'
stop_all

# --- Two on one GPU ----------------------------------------------------------

started first --devices 0 --activity 40 --memory 10GiB
started second --devices 0 --activity 30 --memory 5GiB
wait_for has "$mnt/gpus/0/metrics/memory_used_bytes" 16106127360; ok $? 'two share a GPU: their memory adds up'
wait_for has "$mnt/gpus/0/metrics/utilization_gpu_percent" 70; ok $? 'and so does what they do'
is "$(grep -cE ' (first|second) ' "$mnt/gpus/0/processes")" 2 'both are its processes'
run --name third --devices 0 --memory 30GiB
like "$err" "'third' needs 30720 MiB on GPU 0, which has 25082 MiB free" 'what is left does not fit a third'
stop_all

# --- Who ends it -------------------------------------------------------------

# ended_by SIGNAL STATUS: a signal to the client, which then ends so.
ended_by() {
    "$fakegpufs" run --mount "$mnt" --name signalled --activity 50 >"$dir/out" 2>&1 &
    local pid=$!
    mount_owned+=($pid)
    wait_for grep -qs 50 "$mnt/workloads/signalled/activity"
    kill "-$1" $pid
    wait $pid
    is $? "$2" "SIG$1: exit code $2"
    has_gone signalled; ok $? "SIG$1: the workload is gone when it ends"
    like "$(<"$dir/out")" 'signalled: Stopped$' "SIG$1: says so"
}
ended_by INT 130
ended_by TERM 143

started killed --activity 50
kill -KILL $started
wait_for has_gone killed; ok $? 'SIGKILL: the workload is gone'

"$fakegpufs" run -q --mount "$mnt" --name removed --activity 50 >"$dir/out" 2>&1 &
pid=$!
mount_owned+=($pid)
wait_for grep -qs 50 "$mnt/workloads/removed/activity"
rmdir "$mnt/workloads/removed"
wait $pid
is "$? $(<"$dir/out")" "1 fakegpufs: workload 'removed' was removed" 'rmdir by somebody else ends it'

"$fakegpufs" run -q --mount "$mnt" --name fallen --devices 3 --activity 50 >"$dir/out" 2>&1 &
pid=$!
mount_owned+=($pid)
wait_for grep -qs 50 "$mnt/workloads/fallen/activity"
echo fallen_off_bus >"$mnt/gpus/3/control/fault"
wait $pid
is "$? $(<"$dir/out")" '1 fallen: GPU 3 is lost, terminated' 'a GPU that falls off the bus ends it'
echo recover >"$mnt/gpus/3/control/fault"

# --- COMMAND -----------------------------------------------------------------

run --name cmd --activity 50 -- sh -c 'cat "$FAKEGPUFS_ROOT"/workloads/cmd/pid; echo $$; exit 7'
is "$status" 7 "COMMAND's exit code"
is "$(sed -n 1p <<<"$out")" "$(sed -n 2p <<<"$out")" "its process id is the workload's"
is "$(wc -l <<<"$out")" 2 'and nothing is printed but its output'
has_gone cmd; ok $? 'the workload ends with it'
run --name cmd -- "$dir/nothing"
is "$status" 127 'no such COMMAND: 127'
has_gone cmd; ok $? 'no such COMMAND: nothing is left'
touch "$dir/plain"
run --name cmd -- "$dir/plain"
is "$status" 126 'a COMMAND that cannot be run: 126'
run --name cmd -- sh -c 'kill -KILL $$'
is "$status" 137 'a COMMAND that was killed'
run --name cmd --activity 80:0:1s -- sh -c 'until grep -q ended "$FAKEGPUFS_ROOT"/workloads/cmd/state; do sleep 0.02; done; exit 3'
is "$status" 3 'an activity that ends before COMMAND does not end it'
run -q -- sh -c 'echo --name $#' - --mount x
is "$out" '--name 2' "options behind COMMAND are COMMAND's"

"$fakegpufs" run -q --mount "$mnt" --name passing -- sh -c "trap 'exit 9' TERM; touch '$dir/trapped'; while :; do sleep 0.02; done" &
pid=$!
mount_owned+=($pid)
wait_for test -e "$dir/trapped"
kill -TERM $pid
wait $pid
is $? 9 'signals are passed on to COMMAND'

# --- Many at once ------------------------------------------------------------

pids=()
for ((i = 0; i < 60; i++)); do
    "$fakegpufs" run -q --mount "$mnt" --name "many-$i" --activity 10 --memory 100MiB >/dev/null 2>"$dir/many-$i" &
    pids+=($!)
    mount_owned+=($!)
    disown $! # its end is no news
done
all_there() {
    [[ $(cat "$mnt"/workloads/many-*/activity 2>/dev/null | grep -c 10) == 60 ]]
}
wait_for all_there; ok $? 'sixty at once are all there'
is "$(cat "$mnt"/workloads/many-*/devices | sort -n | uniq -c | awk '{ print ($1 > 5) }' | sort -u)" 1 'spread over the GPUs'
kill -KILL "${pids[@]}"
wait_for none_left; ok $? 'and killed at once all gone'
stop_all

# --- The daemon --------------------------------------------------------------

"$fakegpufs" run -q --mount "$mnt" --name survivor --activity 50:0:1h >"$dir/out" 2>&1 &
pid=$!
mount_owned+=($pid)
wait_for grep -qs 50 "$mnt/workloads/survivor/activity"
worker=$(worker_of)
kill -KILL "$worker"
has "$mnt/workloads/survivor/attach" 1; ok $? 'a worker that is killed and started again: the workload is still held'
is_gone $pid; is $? 1 'and its client goes on'
echo 'step 1h' >"$mnt/control/clock"
wait $pid
is "$? $(<"$dir/out")" '0 survivor: Finished' 'to the end'

"$fakegpufs" run -q --mount "$mnt" --name orphan --activity 50 >"$dir/out" 2>&1 &
pid=$!
mount_owned+=($pid)
wait_for grep -qs 50 "$mnt/workloads/orphan/activity"
kill -KILL "$mount_pid"
wait $pid
is $? 2 'a daemon that is lost: exit code 2'
is "$(<"$dir/out")" "fakegpufs: the daemon of $mnt is gone, and workload 'orphan' with it" 'and a sentence'
run --name orphan
is "$status" 2 'on a dead mount: exit code 2'
like "$err" "the daemon of $mnt is gone" 'on a dead mount: a sentence'
umount -l "$mnt"
mount_pid=

# --- --explain ---------------------------------------------------------------

mount_up --gpus 2 --speed 100
explained=(--name same --devices 1 --memory 3GiB --activity '80:0:10s, 20:0:20s' --repeat 2 --limit time=1h --pod "it's" --namespace n)
bounded "$fakegpufs" run --mount "$mnt" --explain "${explained[@]}" >"$dir/script" 2>&1
is $? 0 '--explain'
is "$(ls "$mnt/workloads")" '' 'does nothing itself'
is "$(head -n 1 "$dir/script") $(grep -c mkdir "$dir/script")" "exec 9> $mnt/workloads/.same 0" 'its workload is held as soon as it is there'

# described: what the workload `same` is, once its activity is there.
described() {
    wait_for grep -qs 20s "$mnt/workloads/same/activity"
    grep . "$mnt"/workloads/same/{devices,memory,activity,repeat,limits,pod,namespace,attach} | sed 's/.*same.//'
}
echo pause >"$mnt/control/clock"
bounded sh "$dir/script" >"$dir/out.lines" 2>&1 &
pid=$!
lines=$(described)
echo resume >"$mnt/control/clock"
wait $pid
lines_status=$?
echo pause >"$mnt/control/clock"
bounded "$fakegpufs" run -q --mount "$mnt" "${explained[@]}" >"$dir/out.run" 2>&1 &
pid=$!
itself=$(described)
echo resume >"$mnt/control/clock"
wait $pid
itself_status=$?
like "$itself" 'devices:1' 'run made a workload'
is "$lines" "$itself" 'the lines make the same'
is "$lines_status $(tail -n 1 "$dir/out.lines")" "$itself_status Finished" 'and end the same'
is "$(<"$dir/out.run")" 'same: Finished' 'which run says, too'
wait_for has_gone same; ok $? 'the lines leave nothing'
bounded "$fakegpufs" run --mount "$mnt" --explain --name same -- sh -c 'ls "$1"; exit 4' - "$mnt/workloads" >"$dir/script"
said=$(bounded sh "$dir/script")
is "$? $said" '4 same' 'lines with a COMMAND end as it does'

# --- A terminal --------------------------------------------------------------

# In a pseudo-terminal of 90 columns: what came, and how it ended.
cat >"$dir/terminal.py" <<'END'
import fcntl, os, pty, signal, struct, sys, termios, time
columns, wanted, *command = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    os.environ["TERM"] = "xterm"
    os.execv(command[0], command)
got, end, sent = b"", time.monotonic() + 50, False
while time.monotonic() < end:
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    got += piece
    if wanted == "^C" and not sent and got.count(b"\r") > 2:
        os.write(fd, b"\x03")
        sent = True
_, status = os.waitpid(pid, 0)
sys.stdout.write(got.decode().replace("\r", "<CR>").replace("\033[K", "<EL>"))
print("exit", os.waitstatus_to_exitcode(status))
END
in_terminal() {
    bounded "$PYTHON" "$dir/terminal.py" "$@"
}
echo 'speed 10' >"$mnt/control/clock"
said=$(in_terminal 90 - "$fakegpufs" run --mount "$mnt" --name bar --gpus 2 --memory 4GiB --activity 80:0:40s)
like "$said" '<CR>bar  \[#*[.]+\]  +[0-9]+%  [0-9]+s left  80%  8[.]0 GiB  [0-9]+ W<EL>' 'a terminal shows a bar, time left, utilization, memory, power'
like "$said" '\[#########' 'which grows'
is "$(tr '<' '\n' <<<"$said" | sed -n 's/^CR>//p' | awk '{ if (length > most) most = length } END { print (most > 40 && most < 90) }')" 1 'and never fills the line'
like "$said" $'<CR><EL>bar: Finished<CR>\nexit 0$' 'is wiped at the end, and the last word stands there'
said=$(in_terminal 40 ^C "$fakegpufs" run --mount "$mnt" --name bar --activity 80:0:24h)
is "$(tr '<' '\n' <<<"$said" | sed -n 's/^CR>//p' | awk '{ if (length > most) most = length } END { print (most > 10 && most < 40) }')" 1 'a narrow terminal has a short line'
said=$(in_terminal 90 ^C "$fakegpufs" run --mount "$mnt" --name bar --activity 80)
like "$said" 'bar  [0-9]+s so far  ' 'without an end it says how long'
like "$said" $'bar: Stopped<CR>\nexit 130$' 'Control-C ends it'
wait_for has_gone bar; ok $? 'and nothing is left'
said=$(in_terminal 90 - /usr/bin/env TERM=dumb "$fakegpufs" run --mount "$mnt" --name bar --activity 80:0:5s)
[[ $said != *'<EL>'* && $said == *'bar: Finished'* ]]; ok $? 'a dumb terminal gets lines'
mount_down

is "$mount_deaths" "$(grep -o 'fakegpufs: warning: the worker was killed by signal 9 .*' <<<"$mount_deaths")" 'no worker died but those that were killed'
tap_done
