#!/usr/bin/env bash
#
# fakegpufs record and replay from the command line: no generation twice, none lost where the reader can
# keep up, a clean end whatever ends it; values that come at their times and are given back.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts
export FAKEGPUFS_ROOT=$mnt

# tool COMMAND ARGUMENT...: runs it; sets $said (both streams) and $code.
tool() {
    said=$(bounded "$fakegpufs" "$@" 2>&1)
    code=$?
}

# column FILE NAME GPU: the values of a column, one in a line, equal ones that follow each other once.
column() {
    awk -F, -v name="$2" -v gpu="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $(at["gpu"]) == gpu { print $(at[name]) }' "$1" | uniq
}

# --- recording ---------------------------------------------------------------------------------

mount_up --gpus 2 --speed 1
mkdir "$mnt/workloads/w"
put "$mnt/workloads/w/devices" 0
put "$mnt/workloads/w/activity" '[{time: 200ms, utilization: 10}, {time: 200ms, utilization: 90}], repeat: 0, memory: 1GiB'

tool record --count 20 --metrics utilization_gpu_percent,memory_used_bytes,fan_speed_percent "$dir/a.csv"
is "$code" 0 'a recording of 20 samples'
like "$said" '^fakegpufs record: 20 samples of 2 GPUs' 'it says what was recorded'
is "$(head -n 1 "$dir/a.csv")" generation,time_s,gpu,utilization_gpu_percent,memory_used_bytes,fan_speed_percent 'the heading'
is "$(wc -l <"$dir/a.csv")" 41 'a line for each sample and GPU'
is "$(tail -n +2 "$dir/a.csv" | cut -d, -f1,3 | sort | uniq -d)" '' 'no generation comes twice'
is "$(tail -n +2 "$dir/a.csv" | cut -d, -f1 | uniq -c | awk '$1 != 2')" '' 'all GPUs of one generation stand together'
is "$(tail -n +2 "$dir/a.csv" | cut -d, -f6 | sort -u)" '' 'what a GPU does not have is empty'
is "$(column "$dir/a.csv" utilization_gpu_percent 0 | sort -u | tr '\n' ' ')" '10 90 ' 'values are those of the mount'

# The steps that lie between the first sample and the last were seen, or are counted as missed.
"$PYTHON" - "$dir/a.csv" "$said" <<'END'
import csv, re, sys
times = [round(float(r["time_s"]) * 10) for r in csv.DictReader(open(sys.argv[1])) if r["gpu"] == "0"]
missed = re.search(r"; (\d+) step", sys.argv[2])
unseen = (times[-1] - times[0] + 1) - len(set(times))
sys.exit(unseen != (int(missed[1]) if missed else 0))
END
ok $? 'no step is lost without a word'

tool record --interval 500ms --count 4 --gpus 1 "$dir/b.jsonl"
is "$("$PYTHON" - "$dir/b.jsonl" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(len(rows), {r["gpu"] for r in rows}, "fan_speed_percent" in rows[0], rows[0]["memory_used_bytes"],
      all(0.4 < b["time_s"] - a["time_s"] for a, b in zip(rows, rows[1:])))
END
)" '4 {1} False 0 True' 'JSON lines, at an interval, of one GPU'

put "$mnt/gpus/0/control/fault" 'sensor temperature_gpu_c'
put "$mnt/gpus/1/control/fault" fallen_off_bus
is "$("$fakegpufs" record --count 1 --metrics temperature_gpu_c - 2>/dev/null | cut -d, -f3-)" 'gpu,temperature_gpu_c
0,NaN
1,' 'a failing sensor is NaN, a lost GPU has no values'
is "$("$fakegpufs" record --count 1 --format jsonl --metrics temperature_gpu_c - 2>/dev/null | sed 's/.*"gpu"/"gpu"/')" '"gpu":0,"temperature_gpu_c":null}
"gpu":1}' 'in JSON null, and nothing'
put "$mnt/gpus/0/control/fault" recover
put "$mnt/gpus/1/control/fault" recover

"$fakegpufs" clock pause
"$fakegpufs" record "$dir/c.csv" 2>"$dir/said" &
recorder=$!
has_lines() { (($(wc -l <"$dir/c.csv") >= $1)); }
wait_for has_lines 3
ok $? 'lines are flushed as they come'
"$fakegpufs" clock step 10s
wait_for has_lines 5
kill -INT $recorder
wait $recorder
is "$?" 0 'an interrupted recorder ends well'
is "$(cat "$dir/said")" 'fakegpufs record: 2 samples of 2 GPUs; 99 steps of the simulation went by too fast and were missed' 'what went by too fast is counted'

tool record --metrics temperature "$dir/x.csv"
is "$code" 64 'an unknown metric is bad usage'
like "$said" "'temperature' is not a metric; did you mean" 'with a sentence'
tool record "$dir/x.txt"
is "$code" 64 'so is a file of which nobody knows the format'
tool record --gpus 7 "$dir/x.csv"
is "$code" 1 'no such GPU'
[[ ! -e $dir/x.csv ]]
ok $? 'and no file is made'
tool record /dev/full --format csv --count 5
is "$code" 1 'a full disk is said'

# --- replaying ---------------------------------------------------------------------------------

cat >"$dir/r.csv" <<'END'
time_s,gpu,utilization_gpu_percent,memory_used_bytes,power_usage_mw,temperature_gpu_c
100,0,10,1073741824,101000,41
100,1,11,0,61000,31
102,0,20,2147483648,202000,42
102,1,11,0,62000,NaN
104,0,30,2147483648,303000,43
104,1,12,0,63000,33
106,0,40,4294967296,333000,44
END
rmdir "$mnt/workloads/w"
tool replay "$dir/r.csv"
is "$code" 1 'a clock that stands still is said'
like "$said" 'stands still' 'in a sentence'

# A clock that runs, and a recorder beside it: each value comes, in its order.
"$fakegpufs" clock resume
"$fakegpufs" record --metrics utilization_gpu_percent,memory_used_bytes,power_usage_mw,temperature_gpu_c "$dir/again.csv" 2>/dev/null &
recorder=$!
wait_for test -s "$dir/again.csv"
tool replay "$dir/r.csv"
is "$code/$said" 0/ 'a recording is replayed'
kill -INT $recorder
wait $recorder
for name in utilization_gpu_percent memory_used_bytes power_usage_mw temperature_gpu_c; do
    want=$(column "$dir/r.csv" "$name" 0)
    got=$(column "$dir/again.csv" "$name" 0)
    like "$got" "(^|"$'\n'")${want//$'\n'/$'\n'}(\$|"$'\n'")" "$name: recorded again, the same values in the same order"
done
like "$(column "$dir/again.csv" temperature_gpu_c 1 | tr '\n' ' ')" '31 NaN (31 )?33 ' 'a failed reading is one again'
is "$(cat "$mnt/gpus/0/control/"{utilization_gpu_percent,memory_used_bytes,power_usage_mw,temperature_gpu_c} | sort -u)" auto 'in the end all is given back'

# As fast as it goes.
"$fakegpufs" clock speed 0
now() { sed -n 's/^now //p' "$mnt/control/clock"; }
before=$(sed -n 's/^time_ns //p' "$mnt/gpus/0/sample")
tool replay --step --hold --speed 0.5 "$dir/r.csv"
after=$(sed -n 's/^time_ns //p' "$mnt/gpus/0/sample")
is "$code/$(((after - before) / 100000000))" 0/160 'with --step the clock is moved on, here at half speed'
is "$(cat "$mnt/gpus/0/control/"{utilization_gpu_percent,memory_used_bytes,power_usage_mw,temperature_gpu_c} | tr '\n' ' ')" '40 4294967296 333000 44 ' 'with --hold the last values stay'
is "$(cat "$mnt/gpus/1/metrics/temperature_gpu_c")" 33 'of each GPU'

tool replay --step --map 0=1 --map 1=0 --hold "$dir/r.csv"
is "$code/$(cat "$mnt/gpus/1/metrics/power_usage_mw") $(cat "$mnt/gpus/0/metrics/power_usage_mw")" '0/333000 63000' '--map changes them over'

# A file that is wrong at its end changes nothing.
state=$(cat "$mnt"/gpus/*/control/power_usage_mw)
echo '108,0,50,x,1,1' >>"$dir/r.csv"
tool replay --step "$dir/r.csv"
is "$code/$said" "65/fakegpufs: $dir/r.csv:9:10: memory_used_bytes: 'x' is not a value in bytes" 'a wrong value: exit code 65, line and column'
sed -i '$s/x,1,1/1,999999,1/' "$dir/r.csv"
tool replay --step "$dir/r.csv"
is "$code/$said" "1/fakegpufs: $dir/r.csv:9:12: power_usage_mw: 999999mW is more than GPU 0 can have; allowed: 0 to 400W, or --clamp" 'one that does not fit'
is "$(cat "$mnt"/gpus/*/control/power_usage_mw)" "$state" 'and nothing was done'
tool replay --step --clamp --hold "$dir/r.csv"
is "$code/$(cat "$mnt/gpus/0/metrics/power_usage_mw")" 0/400000 '--clamp brings it into range'

# A log of a real machine.
cat >"$dir/smi.log" <<'END'
timestamp, uuid, name, pstate, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu, clocks.current.sm [MHz]
2024/01/31 12:34:56.100, GPU-11111111-2222-3333-4444-555555555555, NVIDIA A100-SXM4-40GB, P0, 45 %, 12345 MiB, 275.32 W, 52, 1395 MHz
2024/01/31 12:34:56.103, GPU-66666666-2222-3333-4444-555555555555, NVIDIA A100-SXM4-40GB, P0, 0 %, 4 MiB, 52.10 W, 31, 210 MHz
2024/01/31 12:34:57.100, GPU-11111111-2222-3333-4444-555555555555, NVIDIA A100-SXM4-40GB, P0, 99 %, 12345 MiB, [N/A], 60, 1380 MHz
END
tool replay --step --hold "$dir/smi.log"
is "$code/$said" '0/fakegpufs replay: not played: pstate' 'a log of nvidia-smi; what cannot be played is said'
is "$(cd "$mnt/gpus/0/metrics" && cat utilization_gpu_percent memory_used_bytes temperature_gpu_c clock_sm_mhz | tr '\n' ' ')" '99 12944670720 60 1380 ' 'its last values'
is "$(cat "$mnt/gpus/0/control/power_usage_mw") $(cat "$mnt/gpus/1/control/power_usage_mw")" 'auto 52100' '[N/A] gives a value back'

is "$("$fakegpufs" replay --step --explain "$dir/smi.log" | grep -c '^echo .* > gpus/[01]/control/[a-z_]*$')" 24 'the shell lines that do the same'
tail -n +2 "$dir/smi.log" | cut -d, -f1,5- >"$dir/one.log"
tool replay --step --hold --gpu 1 --fields timestamp,utilization.gpu,memory.used,power.draw,temperature.gpu,clocks.sm "$dir/one.log"
is "$code/$(cat "$mnt/gpus/1/metrics/clock_sm_mhz")" 0/1380 'without heading, all of one GPU'
tool replay "$dir/one.log"
is "$code" 65 'without heading and --fields it is not known'

# Again and again, until interrupted.
"$fakegpufs" clock speed 1000
"$fakegpufs" clock resume
printf 'time_s,gpu,utilization_gpu_percent\n0,0,1\n1,0,2\n' >"$dir/loop.csv"
"$fakegpufs" replay --loop "$dir/loop.csv" &
player=$!
shows() { [[ $(cat "$mnt/gpus/0/metrics/utilization_gpu_percent") == "$1" ]]; }
for value in 1 2 1 2; do
    wait_for shows $value || break
done
ok $? '--loop plays it again'
kill -INT $player
wait $player
is "$?" 130 'until it is interrupted'
is "$(cat "$mnt/gpus/0/control/utilization_gpu_percent")" 99 'and then what was there before is there again'

# The daemon goes.
"$fakegpufs" record "$dir/lost.csv" 2>"$dir/said" &
recorder=$!
wait_for test -s "$dir/lost.csv"
kill -KILL "$mount_pid"
worker=$(worker_of)
[[ ! $worker ]] || kill -KILL "$worker"
wait $recorder
is "$?" 2 'a lost daemon: exit code 2'
like "$(cat "$dir/said")" "the daemon of $mnt is gone" 'and a sentence'
umount -l "$mnt"
mount_pid=

tap_done
