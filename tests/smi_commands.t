#!/usr/bin/env bash
#
# nvidia-smi's smaller commands: topo's single answers, nvlink's ends, drain, c2c, pci, conf-compute. What they say is
# what the files say, in the words of the driver's tool.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
need_mounts
. tests/smi/smi.sh

# title GPU: the line above what is said about one.
title() {
    echo "GPU $1: $(identity "$1" name) (UUID: $(identity "$1" uuid))"
}

# refused ARGUMENT...: says why not, and does nothing.
refused() {
    local got
    got=$(bounded "$smi" "$@" 2>&1)
    is "$?:$([[ $got ]] && echo sentence)" 2:sentence "says what is wrong: $*"
}

mount_up --gpus 3
bus=$(identity 1 bus_id)
sys=$mnt/sys/bus/pci/devices/${bus,,}
sys=${sys/devices\/00000000/devices\/0000}

# --- topo ----------------------------------------------------------------------------------------

node=$(cat "$sys/numa_node")
((node >= 0)) || node=0
cpu=$(sed 's/[-,].*//' "$sys/local_cpulist")
says 0 "NUMA IDs of closest CPU: $node" topo -C -i 1
says 0 "NUMA IDs of closest CPU: $node
NUMA IDs of closest memory: $node" topo -C -M -i 1
says 0 'GPU NUMA ID: N/A' topo -gnid -i 1
says 0 "The GPUs that have an affinity with CPU $cpu are:
0, 1, 2" topo -c "$cpu"
says 0 'The GPUs that have an affinity with CPU 65535 are:' topo -c 65535
is "$(shows topo -mp | sed -n 2p | cut -f3)" NODE 'the matrix says NODE'
says 0 'Device 0 is connected to device 1 by way of an on-CPU interconnect link between PCIe host bridges.' topo -p -i 0,1
says 0 "Device 2 is connected to device 1 by way of an on-CPU interconnect link between PCIe host bridges." topo --gpu_path -i "2,$bus"
says 0 'Device 1 is connected by way of an on-CPU interconnect link between PCIe host bridges to device(s):
0, 2' topo -n 4 -i 1
says 0 'Device 1 is connected by way of a single PCIe switch to device(s):' topo --nearest_gpus=1 -i 1
refused topo -p -i 0
refused topo -n 4
refused topo -n 6 -i 0
refused topo -c x
refused topo -c 0 -C
refused topo -m -p -i 0,1

# --- nvlink --------------------------------------------------------------------------------------

says 0 "$(title 0)
$(shows nvlink -R -i 0 -l 3 | sed -n '2s/Remote Device \(.*\): Link.*/\1/p')" nvlink -p -i 0 -l 3
like "$(shows nvlink -p -i 0 -l 3)" $'\n\t Link 3: 00000000:[0-9A-F]{2}:00\\.0$' 'it is an address'
is "$(shows nvlink -p -i 0 | grep -c 'Link .*: 0000')" 12 'of each link'
put "$mnt/gpus/0/control/fault" 'nvlink 3 down'
says 0 "$(title 0)"$'\n\t Link 3: <inactive>' nvlink -p -i 0 -l 3
mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 0,1
put "$mnt/workloads/train/activity" '[{utilization: 90}]'
put "$mnt/control/clock" 'step 60s'
put "$mnt/control/clock" pause
rmdir "$mnt/workloads/train"
like "$(shows nvlink -gt r -i 0 -l 0)" $'\n\t Link 0: Raw Tx: [1-9][0-9]* KiB\n\t Link 0: Raw Rx: [1-9][0-9]* KiB$' \
    'nvlink -gt r counts what the links add, too'
data=$(shows nvlink -gt d -i 0 -l 0 | sed -n '2s/.*: \([0-9]*\) KiB/\1/p')
raw=$(shows nvlink -gt r -i 0 -l 0 | sed -n '2s/.*: \([0-9]*\) KiB/\1/p')
ok $((raw < data)) 'which is not less than the data'
put "$mnt/control/clock" resume
refused nvlink -gt x

# --- drain ---------------------------------------------------------------------------------------

drain() {
    cat "$mnt/gpus/1/control/drain"
}

says 0 "The current drain state of GPU $bus is: not draining." drain -p "${bus#0000}" -q
says 0 "Successfully set GPU $bus drain state to: draining." drain -p "${bus,,}" -m 1
is "$(drain)" 1 'the file says so'
says 0 "The current drain state of GPU $bus is: draining." drain --pciid "$bus" --query
says 0 "Successfully removed GPU $bus." drain -p "$bus" -r
ok $(($(ls "$mnt/dev" | grep -c '^nvidia[0-9]') != 2)) 'it is off the bus'
says 0 'Discovery completed successfully. Any discovered GPUs will now appear in the enumeration list and device count.' drain -d
is "$(shows -L | wc -l)" 3 'and back'
says 0 "Successfully set GPU $bus drain state to: not draining." drain -p "$bus" --modify=0
is "$(drain)" 0 'it takes work again'
says 0 "Successfully removed GPU $bus." drain -p "$bus" -r
says 0 'Discovery completed successfully. Any discovered GPUs will now appear in the enumeration list and device count.' drain -p "$bus" -d
is "$(shows -L | wc -l)" 3 'one alone comes back as well'
put "$mnt/gpus/2/control/fault" 'thermal 2 for 10m'
shows drain -d >"$dir/said"
like "$(cat "$mnt/gpus/2/control/fault")" thermal 'one that is not away is left as it is'
says 2 'Failed to query the drain state of GPU 00000000:99:00.0: Invalid Argument' drain -p 0000:99:00.0 -q
got=$(as 1000 "$smi" drain -p "$bus" -m 1)
is "$?:$got" "4:Failed to set the drain state of GPU $bus: Insufficient Permissions" 'who may not write the file may not'
refused drain -m 1
refused drain -p "$bus"
refused drain -p "$bus" -m 2
refused drain -p 17 -q
refused drain -p "$bus" -q -r

# --- pci -----------------------------------------------------------------------------------------

says 0 "$(title 0)" pci -i 0
put "$mnt/gpus/0/control/pcie_replay_total" 7
is "$(shows pci -gErrCnt -i 0 | sed -n '2s/ \+/ /gp')" " REPLAY_COUNTER: $(metric 0 pcie_replay_total)" 'pci -gErrCnt counts replays'
ok $(($(metric 0 pcie_replay_total) != 7)) 'of which there were some'
is "$(shows pci -gErrCnt -i 0 | grep -c '^    [A-Z0-9_]*: *[0-9]*$')" 14 'and 13 other errors'
is "$(shows pci -gCnt -i 0 | tr -s ' ')" "$(title 0)
 TX_BYTES: N/A
 RX_BYTES: N/A" 'pci -gCnt has nothing to tell'
is "$(shows pci -gErrCnt | grep -c UUID)" 3 'without -i it is about all GPUs'
refused pci -gErrCnt=1

# --- conf-compute --------------------------------------------------------------------------------

says 0 'CC status: OFF' conf-compute -f
says 0 'DevTools Mode: OFF' conf-compute -d
says 0 'CC Environment: UNAVAILABLE' conf-compute -e
says 3 'Failed to get Confidential Compute GPUs Ready state: Not Supported' conf-compute -grs
refused conf-compute
refused conf-compute -f -d

# --- vgpu ----------------------------------------------------------------------------------------

says 6 'No supported devices in vGPU mode' vgpu
says 6 'No supported devices in vGPU mode' vgpu -q -i 0
says 6 'No devices were found' vgpu -i 9

# --- c2c -----------------------------------------------------------------------------------------

says 3 'No Devices support C2C.' c2c -s
mount_down
mount_up --gpus 1 --model GB200
says 0 "$(title 0)"$'\n\t C2C Link 0: 44.712 GB/s' c2c -s
is "$(shows c2c -e -i 0 | tail -n 1)" $'\t C2C Link 0: Error Back-to-Back Replay Count: 0' 'c2c -e counts errors'
refused c2c
refused c2c -s -e
mount_down

# --- dmon's performance monitoring -----------------------------------------------------------------

mount_up --gpus 2 --model H100-80GB-HBM3
put "$mnt/gpus/0/control/utilization_gpu_percent" 80
put "$mnt/control/clock" 'step 30s'
said=$(shows dmon -c 2 -s t --gpm-metrics 2,3,5,10,60,166 -i 0)
is "$(head -n 3 <<<"$said")" '# gpu  rxpci  txpci smutil  smocc mmaact   dram  nvlrx    gpm 
# Idx   MB/s   MB/s  GPM:%  GPM:%  GPM:%  GPM:% GPM:MB    GPM 
    0'"$(sed -n '3s/^    0//p' <<<"$said")" 'dmon --gpm-metrics has columns of its own behind the others'
like "$(sed -n 3p <<<"$said")" '^    0 +[0-9]+ +[0-9]+      -      -      -      -      -      - $' 'of which the first line has nothing to tell'
# percent METRIC: a ratio of GPU 0 as dmon shows it.
percent() {
    awk '{ printf "%.0f", $1 * 100 }' "$mnt/gpus/0/metrics/$1"
}
like "$(sed -n 4p <<<"$said")" "^    0 +[0-9]+ +[0-9]+ +$(percent sm_active_ratio) +$(percent sm_occupancy_ratio) +$(percent tensor_active_ratio) +$(percent dram_active_ratio) +[0-9]+      - \$" \
    'and the second what the files say; what is no metric has no value'
ok $(($(percent sm_active_ratio) < 50)) 'while it works'
like "$(shows dmon -c 2 -i 0 -s c --gpm-metrics=2 --gpm-options=d --format=csv,noheader,nounit | tail -n 1)" "^0, [0-9]+, [0-9]+, $(percent sm_active_ratio)\$" 'also as CSV'
for bad in '--gpm-metrics x' '--gpm-metrics 2,' '--gpm-metrics 0' '--gpm-options m'; do
    refused dmon $bad
done
mount_down
mount_up --gpus 1
is "$(shows dmon -c 2 -s c --gpm-metrics 2 | tail -n 1 | awk '{ print $4 }')" - 'GPUs before Hopper have none'
mount_down

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
