#!/usr/bin/env bash
#
# nvidia-smi's XML is valid by the DTD that it prints, whatever GPUs there are, and the DTD declares what the XML has.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
need_mounts
command -v xmllint >/dev/null || skip_all 'xmllint is not installed (libxml2-utils)'
. tests/smi/smi.sh

# valid NAME: the XML of all GPUs, by the DTD in it and by the one that is printed alone.
valid() {
    shows -q -x --dtd >"$dir/with.xml"
    is "$?:$(xmllint --valid --noout "$dir/with.xml" 2>&1)" 0: "$1: valid by the DTD in it"
    shows -q -x >"$dir/without.xml"
    is "$?:$(xmllint --valid --noout "$dir/without.xml" 2>&1)" 0: "$1: and by the DTD beside it"
}

# --- what it prints ------------------------------------------------------------------------------

mount_up --gpus 2
put "$mnt/control/clock" pause
shows --dtd >"$dir/nvsmi_device_v13.dtd"; is $? 0 '--dtd alone prints it'
is "$(head -n 2 "$dir/nvsmi_device_v13.dtd")" '<!-- nvsmi_device_v13.dtd -->
<!ELEMENT nvidia_smi_log        (timestamp, driver_version, cuda_version, attached_gpus, gpu*)>' 'its name, and the elements from the first'
is "$(sed -nE 's/^<!ELEMENT ([^ ]+) .*/\1/p' "$dir/nvsmi_device_v13.dtd" | sort | uniq -d)" '' 'each is declared once'
is "$(shows -q -x --dtd | sed -n 1,3p)" '<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log [
<!-- nvsmi_device_v13.dtd -->' '-q -x --dtd has it inside'
is "$(shows -q -x --dtd | sed '/^<!DOCTYPE/,/^\]>/d; /timestamp>/d')" "$(shows -q -x | sed '/^<!DOCTYPE/d; /timestamp>/d')" 'and the XML is the same'
shows --dtd -f "$dir/file" >"$dir/said"
is "$(wc -c <"$dir/said"):$(cat "$dir/file")" "0:$(cat "$dir/nvsmi_device_v13.dtd")" '-f writes it to a file'
is "$(env LD_LIBRARY_PATH=/nonexistent "$BUILD/nvidia-smi" --dtd)" "$(cat "$dir/nvsmi_device_v13.dtd")" 'it needs no GPU'
shows -q -u -x --dtd >"$dir/units.xml"
is "$(xmllint --valid --noout "$dir/units.xml" 2>&1)" '' 'that of units is valid'
is "$(shows --dtd -u | head -n 1)" '<!-- nvsmi_unit_v4.dtd -->' 'by a DTD of its own'
for bad in '-q --dtd' '-L --dtd' '--dtd -l 1' '--dtd=1' '--dtd -d MEMORY' '-L -u'; do
    bounded "$smi" $bad >"$dir/said" 2>&1; is $? 2 "refused: $bad"
done

# A validator that takes everything would prove nothing.
shows -q -x --dtd | sed '0,/<serial>/s/<serial>.*/<bogus>1<\/bogus>/' >"$dir/bad.xml"
like "$(xmllint --valid --noout "$dir/bad.xml" 2>&1)" 'validity error : No declaration for element bogus' 'an element that is not declared is not valid'
shows -q -x --dtd | sed '0,/\t\t<uuid>/{/\t\t<uuid>/d}' >"$dir/bad.xml"
like "$(xmllint --valid --noout "$dir/bad.xml" 2>&1)" 'validity error : Element gpu content' 'and neither is one that is missing'

# --- lists that hold something --------------------------------------------------------------------

put "$mnt/control/clock" resume
put "$mnt/gpus/0/control/accounting_mode" 1
for job in one two; do
    mkdir "$mnt/workloads/$job"
    put "$mnt/workloads/$job/devices" 0
    put "$mnt/workloads/$job/activity" '[{utilization: 40}]'
done
wait_for grep -q two "$mnt/gpus/0/processes"
put "$mnt/gpus/1/control/mig_mode" on
put "$mnt/gpus/1/mig/instances" 'create 1g.5gb'
put "$mnt/gpus/1/mig/instances" 'create 2g.10gb'
valid 'processes, accounts and MIG devices'
is "$(for e in process_info accounted_process_info mig_device supported_mem_clock; do grep -c "<$e>" "$dir/with.xml"; done | grep -c '^[12]$')" 4 \
    'they are there'
put "$mnt/gpus/0/control/fault" fallen_off_bus
bounded "$smi" -q -x -i 1 --dtd >"$dir/with.xml"
is "$(xmllint --valid --noout "$dir/with.xml" 2>&1)" '' 'beside a lost GPU'
mount_down

# --- every model ---------------------------------------------------------------------------------

for model in $("$BUILD/fakegpufs" models | awk 'NR > 1 { print $1 }'); do
    mount_up --gpus 1 --model "$model"
    valid "$model"
    mount_down
done

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
