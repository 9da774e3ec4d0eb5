#!/usr/bin/env bash
#
# nvidia-smi's setters, messages and exit statuses: what it sets is what the files say afterwards.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
need_mounts
. tests/smi/smi.sh
mount_up --gpus 3
bus=00000000:17:00.0

control() {
    cat "$mnt/gpus/1/control/$1"
}

done=$'\nAll done.'
early=$'\nTerminating early due to previous errors.'

# --- setters, read back from the files ------------------------------------------------------------

says 0 "Disabled persistence mode for GPU $bus.$done" -i 1 -pm 0
is "$(control persistence_mode)" 0 'persistence mode is off'
says 0 "Persistence mode is already Disabled for GPU $bus.$done" -i 1 --persistence-mode=DISABLED
says 0 "Power limit for GPU $bus was set to 350.00 W from 400.00 W.

Warning: persistence mode is disabled on device $bus. See the Known Issues section of the nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more information on how to enable persistence mode.$done" -i 1 -pl 350
says 0 "Enabled persistence mode for GPU $bus.$done" -i 1 -pm ENABLED
says 0 "Power limit for GPU $bus was set to 400.00 W from 350.00 W.$done" -i 1 -pl 400
is "$(control persistence_mode)" 1 'and on again'
says 0 "Power limit for GPU $bus was set to 250.00 W from 400.00 W.$done" -i 1 -pl 250
is "$(control power_limit_mw)" 250000 'the power limit is set'
says 0 "Power limit for GPU $bus was set to 300.50 W from 250.00 W.$done" -pl 300.5 -i "$(cat "$mnt/gpus/1/identity/uuid")"
is "$(control power_limit_mw)" 300500 'also half a watt'
says 0 "GPU clocks set to \"(gpuClkMin 600, gpuClkMax 1200)\" for GPU $bus$done" -i 1 -lgc 600,1200
is "$(control clock_lock)" '600 1200' 'the clock is locked'
says 0 "All done." -i 1 -rgc
unlocked=$(cat "$mnt/gpus/0/control/clock_lock")
is "$(control clock_lock)" "$unlocked" 'and no longer'
says 0 "GPU clocks set to \"(gpuClkMin 900, gpuClkMax 900)\" for GPU $bus$done" -i 1 --lock-gpu-clocks=900
says 0 "GPU clocks set to \"(gpuClkMin tdp, gpuClkMax unlimited)\" for GPU $bus$done" -i 1 -lgc tdp,UNLIMITED
says 0 "Memory clocks set to \"(memClkMin 1215, memClkMax 1215)\" for GPU $bus$done" -i 1 -lmc 1215
is "$(control memory_clock_lock)" '1215 1215' 'the memory clock is locked'
says 0 "All done." -i 1 -rmc
says 0 "Applications clocks set to \"(MEM 1215, SM 1305)\" for GPU $bus$done" -i 1 -ac 1215,1305
is "$(cat "$mnt/gpus/1/metrics/clock_sm_application_mhz")" 1305 'the clock of applications is set'
says 0 "All done." -i 1 -rac
is "$(cat "$mnt/gpus/1/metrics/clock_sm_application_mhz")" "$(cat "$mnt/gpus/0/metrics/clock_sm_application_mhz")" 'and back'
says 0 "Set compute mode to EXCLUSIVE_PROCESS for GPU $bus.$done" -i 1 -c 3
is "$(control compute_mode)" exclusive_process 'the compute mode is set'
says 0 "Compute mode is already set to EXCLUSIVE_PROCESS for GPU $bus.$done" -i 1 -c EXCLUSIVE_PROCESS
says 0 "Disabled ECC support for GPU $bus.$done
Reboot required." -i 1 -e 0
is "$(cat "$mnt/gpus/1/metrics/ecc_mode_pending")" 0 'ECC goes off with the next reset'
says 0 "Enabled MIG Mode for GPU $bus$done" -i 1 -mig 1
is "$(cat "$mnt/gpus/1/metrics/mig_mode")" 1 'MIG is on'
says 0 "GPU $bus was successfully reset.$done" -i 1 -r
is "$(cat "$mnt/gpus/1/metrics/ecc_mode")" 0 'a reset does what was pending'
says 0 "Reset volatile ECC errors to zero for GPU 00000000:06:00.0.$done" -i 0 -p 0
mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 0
put "$mnt/workloads/train/memory" 1GiB
put "$mnt/workloads/train/activity" '[{utilization: 40}]'
wait_for grep -q train "$mnt/gpus/0/processes"
got=$(bounded "$smi" -i 0 -r)
is "$?:${got%% (e.g.*}" $'255:\nThe following GPUs could not be reset:\n  GPU 00000000:06:00.0: In use by another client\n\n1 device is currently being used by one or more other processes' \
    'a GPU that is used is not reset'
says 0 "Enabled Accounting Mode for GPU 00000000:06:00.0.$done" -i 0 -am 1
is "$(cat "$mnt/gpus/0/control/accounting_mode")" 1 'accounting is on'
rmdir "$mnt/workloads/train"
says 0 "Power limit for GPU 00000000:06:00.0 was set to 200.00 W from 400.00 W.
Power limit for GPU $bus was set to 200.00 W from 300.50 W.
Power limit for GPU 00000000:28:00.0 was set to 200.00 W from 400.00 W.$done" -pl 200
is "$(cat "$mnt"/gpus/*/control/power_limit_mw | sort -u)" 200000 'without -i it sets all GPUs'

# --- refusals: nothing is changed ----------------------------------------------------------------

says 2 "Provided power limit 9999.00 W is not a valid power limit which should be between 100.00 W and 400.00 W for GPU $bus$early" -i 1 -pl 9999
says 2 "Provided power limit 0.00 W is not a valid power limit which should be between 100.00 W and 400.00 W for GPU $bus$early" -i 1 -pl 0
says 2 "Provided power limit 99999999999.00 W is not a valid power limit which should be between 100.00 W and 400.00 W for GPU $bus$early" -i 1 -pl 99999999999
is "$(control power_limit_mw)" 200000 'a limit that is too high is not set'
clocks=$(cat "$mnt/gpus/1/metrics/clock_sm_application_mhz")
says 0 "Specified clock combination \"(MEM 1, SM 2)\" is not supported for GPU $bus. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations
Treating as warning and moving on.$done" -i 1 -ac 1,2
is "$(cat "$mnt/gpus/1/metrics/clock_sm_application_mhz")" "$clocks" 'clocks that do not go together are not set'
no_boost="Enabling/disabling default auto boosted clocks is not supported for GPU: $bus."
says 0 "$no_boost
Treating as warning and moving on.$done" -i 1 --auto-boost-default=0
says 3 "$no_boost$early" -i 1 --auto-boost-default=DISABLED -eow
says 0 "Changing auto boosted clocks permission is not supported for GPU: $bus.
Treating as warning and moving on.$done" -i 1 --auto-boost-permission=0
says 0 "Setting GPU target temperature is not supported for GPU $bus.
Treating as warning and moving on.$done" -i 1 -gtt 80
bounded "$smi" -i 1 -pm 0 -c 9 >"$dir/said"; is $? 2 'one bad argument'
is "$(control persistence_mode)" 1 'and nothing of the others is done'
for bad in '-pm 2' '-pl abc' '-pl -5' '-lgc 1200,600' '-lgc x' '-ac 1215' '-ac tdp,tdp' '-e maybe' '-p 3' '-c' '-mig' '-gtt hot' '--auto-boost-default=2' '--auto-boost-permission=no'; do
    bounded "$smi" -i 1 $bad >"$dir/said"; is $? 2 "refused: $bad"
done
got=$(as 1000 "$smi" -i 1 -pm 0)
is "$?:$got" "4:Unable to set persistence mode for GPU $bus: Insufficient Permissions$early" 'who may not write the file may not set it'
while IFS='|' read -r change sentence; do
    got=$(as 1000 "$smi" -i 1 $change)
    is "$?:$got" "4:${sentence/BUS/$bus}$early" "who may not: $change"
done <<'END'
-pl 300|Failed to set power management limit for GPU BUS: Insufficient Permissions
-lgc 600,1200|The current user does not have permission to change clocks for GPU BUS.
-rgc|The current user does not have permission to change clocks for GPU BUS.
-lmc 1215|The current user does not have permission to change clocks for GPU BUS.
-rmc|The current user does not have permission to change clocks for GPU BUS.
-ac 1215,1305|The current user does not have permission to change clocks for GPU BUS.
-rac|The current user does not have permission to change clocks for GPU BUS.
-mig 0|Unable to disable MIG Mode for GPU BUS: Insufficient Permissions
-c 0|Unable to set compute mode for GPU BUS: Insufficient Permissions
-r|Unable to reset GPU BUS: Insufficient Permissions
END

# --- arguments -----------------------------------------------------------------------------------

says 2 'Field "bogus" is not a valid field to query.' --query-gpu=index,bogus --format=csv
says 6 'No devices were found' -i 7
says 6 'No devices were found' -i GPU-00000000-0000-0000-0000-000000000000 -q
for bad in --bogus bogus '-q -d BOGUS' '--query-gpu=index' '--query-gpu=index --format=xml' '-x' '-d MEMORY' '-l 0' '-L --format=csv' \
    'topo' 'topo -m -mp' 'nvlink' 'dmon -d 0' 'dmon -c x' 'pmon -s p' '-pm 1 -l 1'; do
    got=$(bounded "$smi" $bad 2>&1)
    is "$?:$([[ $got ]] && echo sentence)" 2:sentence "says what is wrong: $bad"
done
says 2 "Option -i needs a value. Please run 'nvidia-smi -h' for help." -L -i ''
bounded "$smi" -f /nonexistent/file >"$dir/said"; is $? 2 'a file that cannot be written'
invalid="Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."
says 2 "$invalid

nvidia-smi: there is no command 'bogus'" bogus
says 2 "$invalid

nvidia-smi: there is no option '--bogus'" -L --bogus
is "$(bounded "$smi" stats 2>/dev/null)" "$invalid" 'the driver'\''s sentence is alone on standard output'
bounded "$smi" -h >"$dir/said"; is "$?:$(grep -c -- --query-gpu= "$dir/said")" 0:1 '-h'
is "$(awk 'length > 120' "$dir/said")$(grep ' $' "$dir/said")" '' 'in lines that fit'
is "$(sed -nE 's/^    (-[a-zA-Z]+),? .*/\1/p; s/^ +(-[a-zA-Z]+, +)?(--[a-z-]+)=?( .*)?$/\2/p' "$dir/said" | sort | uniq -d)" '' 'each option once'
like "$(bounded "$smi" --version)" "DRIVER version      : $(cat "$mnt/gpus/0/identity/driver_version")" '--version'
for command in $(sed -n '/COMMANDS/,/EXIT/s/^    \([a-z0-9-]*\) .*/\1/p' "$dir/said"); do
    bounded "$smi" $command -h >"$dir/said"; is $? 0 "$command -h"
done

# --- a lost GPU, no driver, no library ------------------------------------------------------------

output=$dir/loop background "$smi" --query-gpu=index,temperature.gpu --format=csv,noheader -lms 50
wait_for grep -q '^2' "$dir/loop"
output=$dir/tables background "$smi" -lms 50
wait_for grep -q Processes "$dir/tables"
put "$mnt/gpus/2/control/fault" fallen_off_bus
lost="Unable to determine the device handle for GPU2: $(sed 's/^0000//' "$mnt/gpus/2/identity/bus_id"): GPU is lost.  Reboot the system to recover this GPU"
says 15 "$lost" -q -i 2
others=$(ls -d "$mnt"/gpus/[0-9]* | sed 's,.*/,,' | grep -vx 2 | sort -n)
bounded "$smi" --query-gpu=index --format=csv,noheader >"$dir/said"
is "$?:$(cat "$dir/said")" "0:$lost"$'\n'"$others" 'a lost GPU is told of, and the others are shown'
bounded "$smi" >"$dir/said"; is $? 0 'in the table, too'
is "$(head -n 1 "$dir/said")" "$lost" 'where it comes first'
is "$(sed -nE 's/^\| +([0-9]+) +[A-Z].*Off \|.*/\1/p' "$dir/said")" "$others" 'and has no row'
is "$(bounded "$smi" -q -x | sed 1d | "$PYTHON" -c '
import sys, xml.etree.ElementTree as tree
print(*[gpu.find("minor_number").text for gpu in tree.parse(sys.stdin).getroot().iter("gpu")], sep="\n")')" "$others" 'and before the XML'
is "$(bounded "$smi" -L | sed 1d | cut -d: -f1 | cut -d' ' -f2)" "$others" 'and the list'
wait_for grep -q 'GPU is lost' "$dir/loop"
is "$(grep -m 1 'GPU is lost' "$dir/loop")" '[GPU is lost], [GPU is lost]' 'one that gets lost while it is shown is told so'
wait_for grep -q 'ERR!' "$dir/tables"
like "$(grep -m 1 'ERR!' "$dir/tables")" '^\|   2  ERR! {26}ERR! \|   00000000:28:00\.0ERR! \| {17}ERR! \|$' 'and in the table, with its bus id'
is "$(grep '^|.*ERR!.*|$' "$dir/tables" | awk 'length != 91')" '' 'which stays as wide'
stop_background
bounded "$smi" -i 0,1 >"$dir/said"; is $? 0 'the others are shown when they are asked for'
for i in $others; do put "$mnt/gpus/$i/control/fault" fallen_off_bus; done
bounded "$smi" >"$dir/said"; is $? 6 'when all are lost'
is "$(tail -n 1 "$dir/said")" 'No devices were found' 'there is none'
for i in 2 $others; do put "$mnt/gpus/$i/control/fault" recover; done
bounded "$smi" >"$dir/said"; is $? 0 'and all of them when it is back'
is "$(grep -c Unable "$dir/said")" 0 'nothing is said of it'

cp "$BUILD/nvidia-smi" "$dir/alone"
mount_down
no_driver="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."
smi=$BUILD/nvidia-smi
export FAKEGPUFS_ROOT=$mnt
says 9 "$no_driver"
says 9 "$no_driver" -L
says 9 "$no_driver" dmon -c 1
if ldconfig -p | grep -q libnvidia-ml; then
    skip 1 'there is a real libnvidia-ml here'
else
    got=$(bounded "$dir/alone" 2>&1)
    is "$?:${got%%.*}" "12:NVIDIA-SMI couldn't find libnvidia-ml" 'no library'
fi

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
