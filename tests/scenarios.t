#!/usr/bin/env bash
#
# fakegpufs scenario: what a run says, how it ends, and that it leaves a mount as it found it. The ready ones are
# run by ready_scenarios.t.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/scenarios.sh"

# steps TEXT...: a scenario of two GPUs with these steps; sets $file.
steps() {
    file=$dir/steps.yaml
    printf 'name: steps\nmount: {gpus: 2}\nsteps:\n' >"$file"
    printf -- '  - %s\n' "$@" >>"$file"
}

# --- time --------------------------------------------------------------------------------------

# A load of 200 ms between two long pauses: nobody who looks now and then would see it.
steps '{workload: {name: w, devices: 0, activity: "0:0:5m,100:0:200ms,0:0:5m"}}' \
    '{gpu: 0, expect: {metric: utilization_gpu_percent, equals: 100, within: 10m}}' \
    '{expect: {file: control/clock, contains: now 5m}}'
scenario "$file"
is "$code" 0 'nothing is missed between two moments' || diag "$said"

steps '{at: 10m, gpu: 0, fault: xid 13}' \
    '{at: 0s, expect: {event: "xid gpu=0", within: 1h}}' \
    '{after: 1m, gpu: 0, expect: {metric: xid_last, equals: 13}}' \
    '{at: 5m, gpu: 0, expect: {metric: xid_last, equals: 0, for: 4m}}'
scenario "$file"
is "$code" 0 'chains of steps run beside each other' || diag "$said"
like "$said" ' 10m00s  ok    events with' 'an event is seen when it happens'
like "$said" ' 11m00s  ok    GPU 0: xid_last equal to 13' 'after: counts from there'

steps '{gpu: 0, set: {utilization_gpu_percent: 50}}' \
    '{after: 1m, gpu: 0, set: {utilization_gpu_percent: 60}}' \
    '{at: 0s, gpu: 0, expect: {metric: utilization_gpu_percent, equals: 50, for: 2m}}'
scenario "$file"
is "$code" 1 'what must stay true for a time must not end before'
like "$said" 'last seen: GPU 0: 60, at 1m00s' 'and fails at the moment it does'

steps '{gpu: 0, expect: {metric: utilization_gpu_percent, above: 10, within: 90s}}'
scenario "$file"
like "$said" 'FAIL.*GPU 0: utilization_gpu_percent above 10 within 90s' 'what does not come in time has failed'
like "$said" 'last seen: GPU 0: 0, at 1m30s' 'at the end of its time'

for _ in 1 2; do
    scenario thermal-runaway
    runs+=("$(sed '$s/ in [0-9.]* s$//' <<<"$said")")
done
is "${runs[1]}" "${runs[0]}" 'two runs are the same, line by line'

# --- all and any, files, errors ----------------------------------------------------------------

steps '{gpu: 1, set: {temperature_gpu_c: 70}}' \
    '{expect: {gpu: any, metric: temperature_gpu_c, equals: 70}}' \
    '{expect: {gpu: [0, 1], metric: temperature_gpu_c, equals: 70}}' \
    '{expect: {gpu: all, metric: temperature_gpu_c, at_least: 70}}' \
    '{expect: {gpu: any, metric: temperature_gpu_c, above: 70}}'
scenario "$file"
is "$code" 1 'all and any'
is "$(grep -c '  ok  ' <<<"$said")" 1 'any: one is enough'
like "$said" 'expected GPU 0, 1: .* last seen: GPU 0: 31,' 'several: the first that is not so is named'
like "$said" 'expected every GPU: .* last seen: GPU 0: 31,' 'all: likewise'
like "$said" 'expected any GPU: .* last seen: GPU 0: 31, GPU 1: 70,' 'any: all of them are shown'

steps '{write: {file: gpus/0/control/power_limit_mw, text: 250W}}' \
    '{expect: [{file: gpus/0/control/power_limit_mw, equals: 250000}, {file: gpus/0/control/power_limit_mw, above: 249999}]}' \
    '{expect: [{file: gpus/0/identity/name, contains: A100}, {file: gpus/0/identity/name, matches: "40GB$"}]}' \
    '{expect: [{file: gpus/0/metrics/fan_speed_percent, error: ENODATA}, {file: gpus/7, exists: false}, {file: events, contains: driver}]}' \
    '{gpu: 0, fault: "sensor temperature_gpu_c"}' \
    '{expect: {gpu: 0, metric: temperature_gpu_c, error: EIO}}'
scenario "$file"
is "$code" 0 'files and errors' || diag "$said"

# --- what is refused ---------------------------------------------------------------------------

steps '{gpu: 0, set: {power_limit_mw: 9000W}}' '{expect: {gpu: 0, metric: pstate, equals: 0}}'
scenario "$file"
is "$code" 1 'a step that is refused is a failure'
like "$said" 'steps.yaml:4: refused: .*9000000 mW|steps.yaml:4: refused: .*9000W|steps.yaml:4: refused: .*9kW' \
    'with the sentence of the mount'
like "$said" '  ok    GPU 0: pstate' 'and the others go on'

steps '{gpu: 0, falt: xid 79}'
scenario "$file"
is "$code" 65 'a file that is wrong: exit code 65'
is "$said" "fakegpufs: $file:4:14: steps[0]: unknown key 'falt' in a step; did you mean 'fault'? allowed: at, after, note, gpu, workload, end, fault, profile, set, write, speed, expect" 'and one sentence'
scenario "$dir/none.yaml"
is "$code" 65 'no such file'
scenario nvlink-flip
is "$code" 65 'no such name'
like "$said" "did you mean 'nvlink-flap'" '… and what it may be'
scenario
is "$code" 64 'no operand: bad usage'
scenario --speed 0 nvlink-flap
is "$code" 64 'no speed: bad usage'
scenario --check nvlink-flap
is "$said/$code" "nvlink-flap: scenario 'nvlink-flap' with 7 steps/0" 'a file can be checked alone'

# --- reports -----------------------------------------------------------------------------------

steps '{gpu: 0, fault: xid 13, note: "a <bad> & \"quoted\" #1"}' \
    '{expect: [{gpu: 0, metric: xid_last, equals: 13}, {gpu: 1, metric: xid_last, equals: 13}]}'
scenario --tap --junit "$dir/report.xml" "$file"
is "$code" 1 'TAP and JUnit: the exit code is the same'
is "$(grep -E '^(1\.\.|ok|not ok)' <<<"$said")" '1..3
ok 1 - a <bad> & "quoted" \#1
ok 2 - GPU 0: xid_last equal to 13
not ok 3 - GPU 1: xid_last equal to 13' 'TAP'
is "$("$PYTHON" -c '
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
print(suite.tag, suite.get("name"), suite.get("tests"), suite.get("failures"))
for case in suite:
    print(case.get("name"), case.get("line"), len(case), *(c.get("message") for c in case))
' "$dir/report.xml")" "testsuite steps 3 1
a <bad> & \"quoted\" #1 4 0
GPU 0: xid_last equal to 13 5 0
GPU 1: xid_last equal to 13 5 1 $file:5: expected GPU 1: xid_last equal to 13 from 0s on; last seen: GPU 1: 0, at 0s" 'JUnit'

# --- on a mount that is there ------------------------------------------------------------------

state() {
    local file
    for file in gpus/*/control/{profile,power_limit_mw,power_usage_mw,utilization_gpu_percent,compute_mode,fault}; do
        echo "$file $(tr '\n' ' ' <"$mnt/$file")"
    done
    head -n 2 "$mnt/control/clock"
    ls "$mnt/workloads"
}

mount_up --gpus 3 --profile stable --speed 2
put "$mnt/gpus/0/control/power_usage_mw" 123W
put "$mnt/gpus/1/control/power_limit_mw" 300W
mkdir "$mnt/workloads/mine"
before=$(cd "$mnt" && state)
steps '{gpu: all, profile: idle, set: {power_limit_mw: 200W, power_usage_mw: auto, compute_mode: prohibited}}' \
    '{workload: {name: job, devices: all, activity: "80"}}' \
    '{gpu: 0, fault: fallen_off_bus}' '{gpu: 1, fault: thermal 2}' '{speed: 5}' \
    '{after: 1h, gpu: 1, expect: {metric: power_limit_mw, equals: 200W}}'
scenario --mount "$mnt" "$file"
is "$code" 0 'a run on a mount that is there' || diag "$said"
is "$(cd "$mnt" && state)" "$before" 'it is as before: settings, pins, faults, workloads, clock'

steps '{gpu: 2, fault: xid 79}' '{end: mine}' '{expect: {gpu: 2, metric: xid_last, equals: 79, for: 1h}}'
put "$mnt/gpus/2/control/fault" 'xid 13'
sed -i 's/gpus: 2/gpus: 3/' "$file"
scenario --mount "$mnt" "$file"
like "$said" 'workloads/mine was there before and is not restored' 'what cannot be restored is said: a workload'
like "$said" 'gpus/2/control/fault is not restored: it had a fault before' 'a fault'

sed -i 's/gpus: 3/gpus: 9/' "$file"
scenario --mount "$mnt" "$file"
is "$code/$said" "1/fakegpufs: the scenario needs 9 GPUs; $mnt has 3" 'too few GPUs'
sed -i 's/gpus: 9/gpus: 3, model: T4/' "$file"
scenario --mount "$mnt" "$file"
is "$code/$said" "1/fakegpufs: the scenario needs a T4 as GPU 0; $mnt has a NVIDIA A100-SXM4-40GB" 'another model'
scenario --mount "$dir/nowhere" nvlink-flap
is "$code" 1 'no mount there'
like "$said" "there is no mount on $dir/nowhere" 'is said'

# A clock that runs.
steps '{gpu: 0, set: {utilization_gpu_percent: 70}}' \
    '{gpu: 0, expect: {metric: energy_total_mj, above: 10000, within: 1h}}' \
    '{after: 10s, gpu: 0, expect: {metric: utilization_gpu_percent, equals: 70}}'
scenario --mount "$mnt" --speed 100 "$file"
is "$code" 0 'a run with a clock that runs' || diag "$said"
is "$(head -n 2 "$mnt/control/clock" | tr '\n' ' ')" 'running speed 2 ' 'which then runs as before'

# At that speed minutes pass while it is stopped, were the clock to run without it.
steps '{gpu: 0, fault: power_brake for 2m, expect: {metric: throttle_reasons, above: 8, for: 100s}}'
output=$dir/output background "$fakegpufs" scenario --mount "$mnt" --speed 100 "$file"
brakes() { grep -q power_brake "$mnt/gpus/0/control/fault"; }
wait_for brakes
kill -STOP "$started"
sleep 2
kill -CONT "$started"
wait_gone "$started"
like "$(cat "$dir/output")" 'passed, 2 of 2 as expected' 'a run that was stopped misses nothing'

# Interrupted: waits for what never comes.
steps '{gpu: 0, set: {utilization_gpu_percent: 33}}' '{gpu: 0, expect: {metric: xid_last, equals: 5, within: 8000h}}'
output=$dir/output background "$fakegpufs" scenario --mount "$mnt" --junit "$dir/report.xml" "$file"
has_begun() { [[ $(cat "$mnt/gpus/0/control/utilization_gpu_percent") == 33 ]]; }
wait_for has_begun
kill -INT "$started"
wait_gone "$started"
is "$(cat "$mnt/gpus/0/control/utilization_gpu_percent")" auto 'interrupted, it restores what it changed'
is "$(head -n 1 "$mnt/control/clock")" running 'and lets the clock run'
like "$(cat "$dir/output")" 'interrupted, 1 of 2 not done' 'it says what was not done'
like "$(cat "$dir/report.xml")" '<skipped message="interrupted"/>' 'in the report, too'

# The daemon goes in the middle of it.
output=$dir/output background "$fakegpufs" scenario --mount "$mnt" "$file"
scenario_pid=$started
wait_for has_begun
kill -KILL "$mount_pid"
worker=$(worker_of)
[[ ! $worker ]] || kill -KILL "$worker"
wait_gone "$scenario_pid"
like "$(cat "$dir/output")" "the daemon of $mnt is gone" 'a lost daemon is said'
umount -l "$mnt"
mount_pid=

# A private mount goes with its command, however that ends.
steps '{gpu: 0, expect: {metric: xid_last, equals: 5, within: 8000h}}'
background "$fakegpufs" scenario "$file"
private_is_up() { grep -q "$TMPDIR/fakegpufs-.* fuse.fakegpufs" /proc/self/mounts; }
private_is_gone() { ! private_is_up; }
wait_for private_is_up
ok $? 'a private mount is made'
kill -KILL "$started"
wait_for private_is_gone
ok $? 'and goes when its command is killed'
stop_background

# --- explained ---------------------------------------------------------------------------------

steps '{workload: {name: w, devices: 0, activity: "80:0:1m", memory: 2GiB, pod: "o''clock"}}' \
    '{gpu: all, set: {power_limit_mw: 300W}, expect: [{metric: power_limit_mw, equals: 300W}, {gpu: 0, metric: memory_used_ratio, above: 0.01}]}' \
    '{gpu: 1, fault: xid 13, expect: [{kmsg: ": 13, pid="}, {event: xid gpu=1, equals: 1}, {gpu: any, metric: xid_last, equals: 13}]}' \
    '{after: 30s, expect: [{workload: w, state: running}, {gpu: 0, metric: temperature_gpu_c, below: temperature_slowdown_c, for: 500ms}]}' \
    '{gpu: 1, fault: fallen_off_bus, expect: [{metric: pstate, error: ENODEV}, {file: dev/nvidia1, exists: false}]}' \
    '{expect: [{workload: w, exit_code: 0, within: 1m}, {file: gpus/0/identity/name, matches: "40GB$"}]}' \
    '{end: w, expect: {workload: w, state: gone}}'
scenario "$file"
is "$code" 0 'a scenario to be explained passes' || diag "$said"
"$fakegpufs" scenario --explain "$file" >"$dir/script"
said=$(PATH=$(dirname "$fakegpufs"):$PATH timeout -k 5 300 bash "$dir/script" 2>&1)
is "$?/$(grep -c '^ok' <<<"$said")/$(grep -vc '^ok' <<<"$said")" 0/12/0 'and so does its script of cat and echo' || diag "$said"
sed -i 's/equals: 300W/equals: 301W/' "$file"
"$fakegpufs" scenario --explain "$file" >"$dir/script"
said=$(PATH=$(dirname "$fakegpufs"):$PATH timeout -k 5 300 bash "$dir/script" 2>&1)
is "$?/$(grep -c '^FAIL' <<<"$said")" 1/1 'which fails when the scenario does'

# --- the schema --------------------------------------------------------------------------------

"$fakegpufs" scenario --schema | diff -u schemas/scenario.schema.json - >&2
ok $? "schemas/scenario.schema.json is what 'fakegpufs scenario --schema' prints"
if "$PYTHON" -c 'import yaml, jsonschema; jsonschema.Draft202012Validator' 2>/dev/null; then
    said=$("$PYTHON" - schemas/scenario.schema.json \
        schemas/scenarios/*.yaml k8s/observability/scenarios/*.yaml 2>&1 <<'END'
import json, sys, yaml
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
for name in sys.argv[2:]:
    for error in validator.iter_errors(yaml.safe_load(open(name))):
        print(name, error.message)
bad = ["steps: []", "{name: n, steps: [{falt: xid 79}]}", "{name: n, steps: [{at: 5}]}",
       "{name: n, steps: [{expect: {metrics: x}}]}", "{name: n, steps: [{set: {nothing: 5}}]}",
       "{name: n, mount: {gpus: none}, steps: []}"]
for text in bad:
    if validator.is_valid(yaml.safe_load(text)):
        print("valid:", text)
END
    )
    is "$said" '' 'it takes every ready scenario, and not what is wrong'
else
    skip 1 "$PYTHON has no yaml, or no jsonschema that knows draft 2020-12"
fi
known=$("$fakegpufs" paths | sed -n 's|^gpus/<i>/control/\([a-z0-9_]*\) .*|\1|p' | grep -vE '^(fault|profile|last_error)$' | sort)
is "$("$PYTHON" -c '
import json
names = json.load(open("schemas/scenario.schema.json"))["$defs"]["settings"]["propertyNames"]["enum"]
print("\n".join(sorted(names)))')" "$known" 'every control file of a GPU can be set'

# --- the page ----------------------------------------------------------------------------------

page=docs/scenarios.md
is "$(sed -n '/^<!-- generated: fakegpufs scenario --reference/,/^<!-- end/p' $page | sed '1,2d;$d' | sed '$d')" \
    "$("$fakegpufs" scenario --reference)" "$page has the keys as the program prints them"
awk -v dir="$dir" '/^```yaml/ { getline; file = dir "/" $2; next } /^```/ { file = "" } file { print >file }' $page
for name in hot chains drain; do
    scenario "$dir/$name.yaml"
    is "$code" 0 "its $name.yaml passes" || diag "$said"
done
is "$(cd "$dir" && "$fakegpufs" scenario hot.yaml | sed '$s/ in [0-9.]* s$//')" \
    "$(sed -n '/^[$] fakegpufs scenario hot.yaml/,/^```/p' $page | sed '1d;$d' | sed '$s/ in [0-9.]* s$//')" \
    'and says what the page says'

tap_done
