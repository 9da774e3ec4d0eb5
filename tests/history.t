#!/usr/bin/env bash
#
# What a GPU did, as files: samples of the last seconds, what each process keeps busy, accounts of
# processes, MIG instances with their workloads.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

mount_up --gpus 2 --model A100-SXM4-40GB --speed 0
gpu=$mnt/gpus/0

# rows FILE: without the line that names the columns.
rows() {
    grep -v '^#' "$1"
}

# column NUMBER FILE: of the rows.
column() {
    rows "$2" | awk -v n="$1" '{ print $n }'
}

step() {
    put "$mnt/control/clock" "step $1"
}

# refused ERROR TEXT SENTENCE FILE: writing it fails so, and last_error says why.
refused() {
    is "$(put "$4" "$2")" "$1" "'$2' is refused"
    like "$(cat "$gpu/control/last_error")" "$3" 'and the sentence says why'
}

kill_worker() {
    local worker
    worker=$(worker_of)
    kill -KILL "$worker"
    wait_for other_worker "$worker"
}

other_worker() {
    [[ $(worker_of) && $(worker_of) != "$1" ]]
}

# --- Samples -------------------------------------------------------------------

is "$(head -n 1 "$gpu/samples")" "# time_us power_usage_mw utilization_gpu_percent utilization_memory_percent utilization_encoder_percent utilization_decoder_percent clock_sm_mhz clock_memory_mhz module_power_usage_mw utilization_jpeg_percent utilization_ofa_percent" \
    'samples say what their columns are'
is "$(rows "$gpu/samples" | wc -l)" 1 'there is one of the beginning'
mkdir "$mnt/workloads/job"
put "$mnt/workloads/job/devices" 0
put "$mnt/workloads/job/activity" '[{time: 2s, utilization: 75}, {time: 2s, utilization: 25}]'
put "$mnt/workloads/job/repeat" 0
step 60s
is "$(rows "$gpu/samples" | wc -l)" 120 'and 120 of a minute'
is "$(column 1 "$gpu/samples" | awk 'NR > 1 { print $1 - before } { before = $1 }' | sort -u)" 100000 '100 ms apart'
is "$(column 3 "$gpu/samples" | sort -n | uniq -c | tr -s ' ' | tr '\n' ';')" ' 60 25; 60 75;' 'with the load as it was'
is "$(column 2 "$gpu/samples" | tail -n 1)" "$(cat "$gpu/metrics/power_usage_mw")" 'the last one is now'
is "$(column 9 "$gpu/samples" | sort -u)" - 'what the board lacks is a dash'
energy=$(cat "$gpu/metrics/energy_total_mj")
step 12s
energy=$(($(cat "$gpu/metrics/energy_total_mj") - energy))
power=$(column 2 "$gpu/samples" | awk '{ sum += $1 } END { print int(sum / 10) }')
((power - energy <= 2 && energy - power <= 2)); ok $? "12 s of power ($power mJ) are the energy that was counted ($energy mJ)"

before=$(cat "$gpu/samples")
kill_worker; ok $? 'the worker is killed'
is "$(cat "$gpu/samples")" "$before" 'and the samples are those of before'
step 100ms
is "$(cat "$gpu/samples" | sed 1d | head -n 119)" "$(sed 1,2d <<<"$before")" 'a step later they moved on by one'
put "$gpu/control/fault" 'sensor power_usage_mw'
step 100ms
is "$(column 2 "$gpu/samples" | tail -n 1)" NaN 'a sensor that fails is NaN'
put "$gpu/control/fault" fallen_off_bus
like "$(cat "$gpu/samples" 2>&1)" 'No such device' 'a lost GPU has none to show'
put "$gpu/control/fault" recover
rmdir "$mnt/workloads/job"
is "$(stat -c %s "$mnt/history")" $((2 * (32 + 120 * 48))) 'the binary form has a block for each GPU'
is "$(bounded cat "$mnt/history" | wc -c)" "$(stat -c %s "$mnt/history")" 'and can be read to its end'
is "$(bounded tail -c +101 "$mnt/history" | wc -c)" $(($(stat -c %s "$mnt/history") - 100)) 'from anywhere'

# --- Processes -----------------------------------------------------------------

for name in one two; do
    mkdir "$mnt/workloads/$name"
    put "$mnt/workloads/$name/devices" 0
    put "$mnt/workloads/$name/activity" '[{utilization: 80, memory_utilization: 30, encoder: 10}]'
done
put "$mnt/workloads/one/pid" 4001
put "$mnt/workloads/two/pid" 4002
step 1s
is "$(head -n 1 "$gpu/process_utilization")" \
    '# time_us pid gi ci sm_percent memory_percent encoder_percent decoder_percent jpeg_percent ofa_percent' \
    'process_utilization says what its columns are'
is "$(rows "$gpu/process_utilization" | cut -d ' ' -f 2-)" \
    $'4001 - - 50 30 10 0 0 0\n4002 - - 50 30 10 0 0 0' 'who asks together for more than there is gets his part'
is "$(column 1 "$gpu/process_utilization" | sort -u)" "$(column 1 "$gpu/samples" | tail -n 1)" 'at the time of the last sample'

# --- Accounting ----------------------------------------------------------------

is "$(cat "$gpu/control/accounting_mode")" 0 'accounting is off at first'
like "$(cat "$gpu/accounting" 2>&1)" 'No data available' 'and has nothing to show'
refused 'Operation not supported' clear 'accounting of GPU 0 is off' "$gpu/accounting"
refused 'Invalid argument' maybe "'maybe' is neither on nor off" "$gpu/control/accounting_mode"
like "$(as 65534 sh -c "echo 1 >'$gpu/control/accounting_mode'" 2>&1)" 'Permission denied' 'only its owner may switch it on'
like "$(as 65534 sh -c "echo clear >'$gpu/accounting'" 2>&1)" 'Permission denied' 'or clear it'
is "$(put "$gpu/control/accounting_mode" on)" '' 'on'
is "$(rows "$gpu/accounting")" '' 'what ran already has no account'
mkdir "$mnt/workloads/short"
put "$mnt/workloads/short/devices" 0
put "$mnt/workloads/short/pid" 4003
put "$mnt/workloads/short/memory" 1GiB
put "$mnt/workloads/short/activity" '[{time: 2s, encoder: 5}]'
start=$(column 1 "$gpu/process_utilization" | head -n 1)
step 1s
is "$(rows "$gpu/accounting")" "4003 1 0.00 0.00 1073741824 1000 $start" 'what begins then has one'
step 5s
rmdir "$mnt/workloads/short"
kill_worker; ok $? 'the worker is killed'
is "$(rows "$gpu/accounting")" "4003 0 0.00 0.00 1073741824 2000 $start" 'which outlives the process, its workload and the worker'
refused 'Invalid argument' wipe "'wipe' is no command for accounts; allowed: clear" "$gpu/accounting"
is "$(put "$gpu/accounting" clear)" '' 'clear'
is "$(rows "$gpu/accounting")" '' 'forgets it'

# --- MIG -----------------------------------------------------------------------

gpu=$mnt/gpus/1
put "$gpu/control/mig_mode" 1
put "$gpu/mig/instances" 'create 1g.5gb at 0'
gi=$(rows "$gpu/mig/instances" | awk 'NR == 1 { print $1 }')
uuid=$(cat "$gpu/mig/gi$gi/ci0/uuid")
mkdir "$mnt/workloads/slice"
is "$(put "$mnt/workloads/slice/devices" "1:$gi")" '' 'a workload on a GPU instance'
is "$(cat "$mnt/workloads/slice/devices")" "1:$gi:0" 'is on its first compute instance'
is "$(put "$mnt/workloads/slice/devices" "$uuid")" '' 'or by UUID'
is "$(cat "$mnt/workloads/slice/devices")" "1:$gi:0" 'on the same'
put "$mnt/workloads/slice/pid" 4004
is "$(put "$mnt/workloads/slice/memory" 3GiB)" '' 'has memory'
put "$mnt/workloads/slice/activity" '[{utilization: 100}]'
step 1s
is "$(rows "$gpu/processes")" "4004 3221225472 13 slice - - - $gi 0" 'the table of processes says where'
is "$(cat "$gpu/mig/gi$gi/memory_used_bytes" "$gpu/metrics/memory_used_bytes" | tr '\n' ' ')" '3221225472 3221225472 ' 'it counts for the instance and the GPU'
is "$(put "$mnt/workloads/slice/memory" 6GiB)" 'No space left on device' 'more than the instance has is refused'
like "$(cat "$mnt/workloads/slice/last_error")" "needs 6144 MiB on GPU instance $gi of GPU 1" 'and the sentence says where'
refused 'Device or resource busy' "destroy $gi" "GPU instance $gi is in use by workload 'slice'" "$gpu/mig/instances"
refused 'Operation not supported' 1 'GPU 1 is in MIG mode, which has no accounting' "$gpu/control/accounting_mode"
is "$(column 3 "$gpu/samples" | tail -n 1)" - 'a GPU in MIG mode has no utilization to sample'
kill_worker; ok $? 'the worker is killed'
is "$(rows "$gpu/processes")" "4004 3221225472 13 slice - - - $gi 0" 'and the workload is where it was'
rmdir "$mnt/workloads/slice"
is "$(put "$gpu/mig/instances" "destroy $gi")" '' 'an instance that nobody uses can go'

mount_down; ok $? 'unmounted'
tap_done
