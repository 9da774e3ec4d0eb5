#!/usr/bin/env bash
#
# What stays the same when there are many GPUs and workloads: what status reads, and what exec leaves of a
# machine's own files.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

gpus=256 workloads=100

# reads COMMAND...: how many reads of files it makes. Those of a child are added to its parent's when it has ended.
reads() (
    self=$BASHPID
    so_far() { sed -n 's/^syscr: //p' "/proc/$self/io"; }
    first=$(so_far)
    second=$(so_far) # what a look costs
    bounded "$@" >"$dir/out" || exit
    echo $(($(so_far) - second - (second - first)))
)

# files NAME...: these of each of the $directories, as the tables have them.
files() {
    local directory file line
    for directory in "${directories[@]}"; do
        for file in "$@"; do
            while read -r line; do
                echo "${directory##*/} ${file##*/} $line"
            done <"$directory/$file"
        done
    done | sort
}

mount_up --gpus $gpus --profile cycle --speed 0
for ((i = 0; i < workloads; i++)); do
    mkdir "$mnt/workloads/w$i"
done
echo 'fallen_off_bus' >"$mnt/gpus/7/control/fault"
echo 'sensor power_usage_mw' >"$mnt/gpus/9/control/fault"
echo 'xid 31' >"$mnt/gpus/9/control/fault"

# --- tables -----------------------------------------------------------------------------------------

directories=("$mnt"/gpus/[0-9]*)
is "$(tail -n +2 "$mnt/gpus/conditions" | sort)" "$(files control/profile control/fault)" 'gpus/conditions has what the files have'
directories=("$mnt"/workloads/*)
is "$(tail -n +2 "$mnt/gpus/workloads" | sort)" "$(files state devices progress namespace pod container pid activity)" \
    'and so has gpus/workloads'

# --- status -----------------------------------------------------------------------------------------

if [[ -r /proc/self/io ]]; then
    start=$(reads "$fakegpufs" --version) # a sanitizer reads, too
    for option in '' --json; do
        n=$(($(reads "$fakegpufs" status --mount "$mnt" $option) - start))
        ok $((n >= gpus && n < gpus + 64 ? 0 : 1)) "status $option reads a page for each GPU and some files, not files for each: $n reads"
    done
else
    skip 2 'this kernel does not count reads'
fi
is "$(bounded "$fakegpufs" status --mount "$mnt" | grep -c '^ *[0-9]* *NVIDIA')" $gpus 'it shows all GPUs'
is "$(bounded "$fakegpufs" status --mount "$mnt" | grep -c '^w[0-9]* .* running$')" $workloads 'and all workloads'
like "$(bounded "$fakegpufs" status --mount "$mnt")" $'\n  9 [^\n]*  xid 31,sensor power_usage_mw\n' 'several faults are on one line'

# --- exec -------------------------------------------------------------------------------------------

notes=/var/cache/ldconfig/aux-cache
if [[ -e $notes ]]; then
    before=$(stat -c '%i %Y %s' "$notes")
    is "$(bounded "$fakegpufs" exec --mount "$mnt" -- sh -c 'ls -d /dev/nvidia[0-9]* | wc -l; ls /sys/bus/pci/devices | wc -l')" \
        $'255\n255' 'exec has all GPUs but the one that is lost'
    is "$(bounded "$fakegpufs" exec --mount "$mnt" -- stat -c '%i %Y %s' "$notes")" "$before" 'inside, the notes of ldconfig are those of the system'
    is "$(stat -c '%i %Y %s' "$notes")" "$before" 'and stay what they were'
else
    skip 3 "this system has no $notes"
fi
mount_down
ok $? 'the mount ends'
is "$mount_deaths" '' 'and no worker died'
tap_done
