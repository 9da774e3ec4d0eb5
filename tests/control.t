#!/usr/bin/env bash
#
# status, fault, profile, clock and config diff: each does what its --explain says, and what is wrong is
# said in the mount's own words.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

unset FAKEGPUFS_ROOT NODE_NAME
export FAKEGPUFS_ROOT=$mnt

# gpufs ARGUMENT...: sets $status, $out and $err.
gpufs() {
    bounded "$fakegpufs" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}

# refused STATUS REGEX NAME ARGUMENT...: it ends so and says so, in one line.
refused() {
    local want=$1 regex=$2 name=$3
    shift 3
    gpufs "$@"
    is "$status" "$want" "$name: exit code $want"
    like "$err" "$regex" "$name: says why"
    is "$(wc -l <"$dir/err")" 1 "$name: in one line"
}

# same_effect NAME PROBE ARGUMENT...: the command, and the lines that it explains itself by, do the same:
# PROBE prints it. Before each the node is put back by `reset`.
same_effect() {
    local name=$1 probe=$2 script itself lines
    shift 2
    reset
    script=$(bounded "$fakegpufs" "$@" --explain)
    is "$($probe)" "$(reset && $probe)" "$name --explain does nothing itself"
    gpufs "$@"
    is "$status $err" '0 ' "$name"
    itself=$($probe)
    reset
    bounded sh -e <<<"$script"
    lines=$($probe)
    is "$lines" "$itself" "$name: its lines do the same"
    reset
    [[ $itself != "$($probe)" ]]; ok $? "$name: which is something"
}

reset() {
    local gpu
    for gpu in "$mnt"/gpus/[0-9]*; do
        echo recover >"$gpu/control/fault"
        echo idle >"$gpu/control/profile"
    done
    echo 'speed 0' >"$mnt/control/clock"
    echo resume >"$mnt/control/clock"
}

faults() {
    cat "$mnt"/gpus/*/control/fault "$mnt"/gpus/*/metrics/xid_last
}

profiles() {
    cat "$mnt"/gpus/[0-9]*/control/profile
}

clock_runs() {
    head -n 2 "$mnt/control/clock"
}

mount_up --gpus 3 --model A100-SXM4-40GB --speed 0

# --- fault -------------------------------------------------------------------

uuid=$(cat "$mnt/gpus/2/identity/uuid")
same_effect 'fault by index' faults fault 1 'xid 31'
same_effect 'fault in several words' faults fault 1 thermal 2.5
same_effect 'fault by UUID' faults fault "$uuid" hang
same_effect 'fault by bus id' faults fault "$(cat "$mnt/gpus/0/identity/bus_id")" power_brake
same_effect 'fault by short bus id' faults fault 06:00.0 power_brake
same_effect 'fault for all' faults fault all xid 13
same_effect 'fault with a duration' faults fault 0 'xid 79' --for 30s

reset
gpufs fault 0 'xid 79' --after 10m --for 30s
is "$status $(cat "$mnt/gpus/0/metrics/xid_last")" '0 0' '--after: not yet'
gpufs clock step 9m
is "$(cat "$mnt/gpus/0/metrics/xid_last")" 0 'nor before its time'
gpufs clock step 61s
is "$(cat "$mnt/gpus/0/metrics/xid_last")" 79 'then it happens'
like "$(tail -n 1 "$mnt/kmsg")" 'Xid .*: 79,' 'and is in the kernel log'
gpufs clock step 30s
is "$(cat "$mnt/gpus/0/metrics/xid_last")" 0 'for 30s'
gpufs fault 1 'xid 94' --after 5m
kill -KILL "$(worker_of)"
gpufs clock step 301s
is "$(cat "$mnt/gpus/1/metrics/xid_last")" 94 'one that waits outlives the worker'
refused 1 "there is no GPU '7' in $mnt; it has 3" 'a GPU that is not there' fault 7 hang
refused 1 "there is no GPU 'GPU-no'" 'a UUID that is not there' fault GPU-no hang
refused 1 "there is no GPU '../0'" 'a path for a GPU' fault ../0 hang
refused 1 "'hangs' is not a fault; did you mean 'hang'[?]" 'a fault that is none' fault 0 hangs
refused 1 "'soon' is not" '--after that is no time' fault 0 hang --after soon
refused 1 'happens at once and has no duration' '--for what does not last' fault 0 'ecc dbe' --for 3s
refused 64 'FAULT is missing' 'no fault' fault 0

faults_later() {
    echo 'step 11s' >"$mnt/control/clock"
    faults
}
same_effect 'fault with --after' faults_later fault 0 'xid 48' --after 10s

# --- profile, clock ----------------------------------------------------------

same_effect 'profile' profiles profile 1 wave
same_effect 'profile of all' profiles profile all chaos
refused 1 "'wav' is not a profile; did you mean 'wave'[?]" 'a profile that is none' profile 0 wav
same_effect 'clock speed' clock_runs clock speed 60
same_effect 'clock pause' clock_runs clock pause
reset
before=$(sed -n 's/^now //p' "$mnt/control/clock")
gpufs clock step 90s
is "$status" 0 'clock step'
[[ $(sed -n 's/^now //p' "$mnt/control/clock") != "$before" ]]; ok $? 'lets time pass'
gpufs clock pause
gpufs clock resume
is "$(head -n 1 "$mnt/control/clock")" running 'clock resume'
gpufs clock show
is "$out" "$(cat "$mnt/control/clock")" 'clock show'
is "$(bounded "$fakegpufs" clock show --explain | sh)" "$out" 'clock show: its line shows the same'
refused 1 "'fast' is not a speed" 'a speed that is none' clock speed fast
refused 1 "'5' needs a unit" 'a step without a unit' clock step 5
refused 64 "'spedd' is not known; did you mean 'speed'[?]" 'a word that is none' clock spedd 4

# --- status ------------------------------------------------------------------

reset
mkdir "$mnt/workloads/job"
echo 1 >"$mnt/workloads/job/devices"
echo 3GiB >"$mnt/workloads/job/memory"
echo 'say "hi"' >"$mnt/workloads/job/pod"
echo 80:0:100s >"$mnt/workloads/job/activity"
echo 'sensor temperature_gpu_c' >"$mnt/gpus/1/control/fault"
echo fallen_off_bus >"$mnt/gpus/2/control/fault"
echo 'step 25s' >"$mnt/control/clock"
gpufs status
is "$status" 0 'status'
like "$out" $'^GPU  NAME +UTIL +TEMP' 'has a heading'
like "$out" $'\n  0  NVIDIA A100-SXM4-40GB +0% +[0-9]+C +[0-9]+ +0/40960 MiB +[0-9]+/400 W' 'a GPU'
like "$out" $'\n  1  NVIDIA A100-SXM4-40GB +80% +error +0 +3072/40960 MiB +[0-9]+/400 W +sensor temperature_gpu_c' 'one that is busy and has a fault'
like "$out" $'\n  2  NVIDIA A100-SXM4-40GB +- .* lost' 'one that is lost'
like "$out" $'\njob +1 +25% +80% +3072 MiB +say "hi" +running' 'and a workload'
gpufs status --json
cat >"$dir/check.py" <<'END'
import json, sys
root = sys.argv[1]
status = json.load(sys.stdin)
def read(path):
    with open(root + "/" + path) as f:
        return f.read().strip()
assert [g["index"] for g in status["gpus"]] == [0, 1, 2]
for g in status["gpus"]:
    for key in ("uuid", "name", "bus_id"):
        assert g[key] == read("gpus/%d/identity/%s" % (g["index"], key)), key
assert [g["lost"] for g in status["gpus"]] == [False, False, True]
assert status["gpus"][2]["metrics"] == {}
assert status["gpus"][1]["faults"] == ["sensor temperature_gpu_c"] and status["gpus"][0]["faults"] == []
sample = dict(line.split() for line in read("gpus/1/sample").splitlines())
assert status["time_ns"] == int(sample.pop("time_ns")) and status["generation"] == int(sample.pop("generation"))
metrics = status["gpus"][1]["metrics"]
assert metrics["temperature_gpu_c"] is None and sample.pop("temperature_gpu_c") == "NaN"
assert {k: float(v) for k, v in metrics.items() if v is not None} == {k: float(v) for k, v in sample.items()}
(job,) = status["workloads"]
assert (job["name"], job["devices"], job["state"], job["pod"]) == ("job", [1], "running", 'say "hi"'), job
assert (job["progress_ns"], job["total_ns"], job["memory_bytes"]) == (25 * 10**9, 100 * 10**9, 3 << 30), job
assert job["namespace"] is None
print("good")
END
is "$(bounded "$PYTHON" "$dir/check.py" "$mnt" <"$dir/out" 2>&1 | tail -n 1)" good 'status --json has all of it'
is "$(wc -l <"$dir/out")" 1 'in one line'
echo 'step 100s' >"$mnt/control/clock"
is "$(bounded "$fakegpufs" status --json | "$PYTHON" -c 'import json, sys
job = json.load(sys.stdin)["workloads"][0]
print(job["state"], job["exit_code"], job["message"])')" 'ended 0 Finished' 'how a workload ended'
is "$(bounded "$fakegpufs" status --json --watch --every 10ms | head -n 3 | "$PYTHON" -c 'import json, sys
print(sum(len(json.loads(l)["gpus"]) for l in sys.stdin))')" 9 'status --watch --json: a line each time'
like "$(bounded "$fakegpufs" status --watch --every 10ms | head -n 12)" 'GPU  NAME.*GPU  NAME' 'status --watch: a table each time'
said=$(bounded "$PYTHON" -c '
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "status", "--watch", "--every", "50ms"])
got = b""
while got.count(b"\033[H\033[2J") < 3:
    got += os.read(fd, 4096)
os.write(fd, b"\x03")
os.close(fd)
os.waitpid(pid, 0)
print("cleared")' "$fakegpufs")
is "$said" cleared 'status --watch: a terminal is cleared each time'
is "$(bounded "$fakegpufs" status --explain | sh 2>/dev/null | grep -c '^utilization_gpu_percent ')" 2 'status: its lines show the same GPUs'
is "$(bounded "$fakegpufs" status --explain | sh 2>/dev/null | tail -n 1)" 'ended 0 Finished' 'and workloads'
rmdir "$mnt/workloads/job"
reset

# --- config diff -------------------------------------------------------------

cat "$mnt/control/config" >"$dir/same.yaml"
sed 's/count: 3/count: 5/' "$dir/same.yaml" >"$dir/other.yaml"
gpufs config diff "$dir/same.yaml"
is "$status $out" '0 ' 'config diff of the same'
gpufs config diff "$dir/other.yaml"
is "$status" 1 'config diff of another: exit code 1'
is "$(grep '^[-+]  ' <<<"$out")" $'-  - count: 3\n+  - count: 5' 'and what is another'
cp "$mnt/control/config" "$dir/patched"
patch -s "$dir/patched" "$dir/out" && cmp -s "$dir/patched" <(bounded "$fakegpufs" config show "$dir/other.yaml"); ok $? 'it is a patch'
is "$(PATH=${fakegpufs%/*}:$PATH sh -c "$(bounded "$fakegpufs" config diff "$dir/other.yaml" --explain)" | grep -c '^[-+]  ')" 2 'its line shows the same'
echo 'gpus: {cound: 3}' >"$dir/bad.yaml"
refused 2 "bad.yaml:1:8: .*unknown key 'cound'" 'config diff of a wrong one' config diff "$dir/bad.yaml"
refused 2 "there is no mount on $dir/nothing" 'config diff without a mount' config diff "$dir/same.yaml" --mount "$dir/nothing"

# --- No mount, and a dead one ------------------------------------------------

for command in 'status' 'fault 0 hang' 'profile 0 wave' 'clock pause' 'clock show' 'run' 'exec true'; do
    FAKEGPUFS_ROOT=$dir/nothing refused 1 \
        "there is no mount on $dir/nothing; 'fakegpufs mount' makes one, --mount names another" \
        "no mount: $command" $command
done
kill -KILL "$mount_pid"
wait_gone "$mount_pid"
for command in 'status' 'fault 0 hang' 'profile 0 wave' 'clock pause' 'clock show' 'run'; do
    refused 2 "the daemon of $mnt is gone" "a dead mount: $command" $command
done
umount -l "$mnt"
mount_pid=

tap_done
