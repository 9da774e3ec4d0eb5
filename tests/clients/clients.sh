# What the tests of clients share; sourced first, and brings tap.sh and mount.sh.
#
#     . "${0%/*}/clients.sh"
#     need_client go
#     need_mounts
#     mount_up --gpus 3
#     use_mount
#     is "$(client walk | compare 100)" '' 'the client says what the files say'
#
# `make check-clients` installs the clients below $CLIENTS, one directory for each kind.
#
# SPDX-License-Identifier: Apache-2.0

. "${BASH_SOURCE[0]%/*}/../tap.sh"
. "${BASH_SOURCE[0]%/*}/../mount.sh"

: "${CLIENTS:=$BUILD/clients}"
bin=

# need_client KIND: leaves the script out where the clients of this kind are not installed; sets $bin.
need_client() {
    local why='run `make check-clients`'
    [[ ! -e $CLIENTS/$1/missing ]] || why=$(cat "$CLIENTS/$1/missing")
    [[ -e $CLIENTS/$1/installed ]] || skip_all "the $1 clients are not installed: $why"
    bin=$CLIENTS/$1/bin
}

# need_command NAME...: the same for other commands.
need_command() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || skip_all "there is no $name here"
    done
}

# use_mount: clients find the library as they find a driver's, and it finds the mount it was loaded from.
use_mount() {
    unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES
    export LD_LIBRARY_PATH=$mnt/usr/lib64
}

client() {
    local name=$1
    shift
    bounded "$bin/$name" "$@"
}

# on_node PROGRAM...: for those that look for GPUs in /sys, /dev and /proc/driver, whatever they are told.
on_node() {
    bounded "$fakegpufs" exec --mount "$mnt" -- "$@"
}

# compare [LEAST]: reads a client's `file=value` lines and prints those that the mount's files contradict.
compare() {
    bounded "$PYTHON" "$tests/clients/compare.py" "$mnt" "$@"
}

metric() {
    cat "$mnt/gpus/$1/metrics/$2"
}

identity() {
    cat "$mnt/gpus/$1/identity/$2"
}

# train: a process with 5 GiB on GPU 1.
train() {
    mkdir "$mnt/workloads/train"
    put "$mnt/workloads/train/devices" 1
    put "$mnt/workloads/train/memory" 5GiB
    put "$mnt/workloads/train/pid" $$
    put "$mnt/workloads/train/activity" '[{utilization: 80}]'
    wait_for grep -q "^$$ " "$mnt/gpus/1/processes"
}

# busy_node: a node with one of each: an idle GPU 0, a busy GPU 1 with a process, GPU 2 with a failing sensor and a link
# that is down, GPU 3 lost, GPU 4 in MIG mode; and the clock stands still, so that nothing changes while it is read.
busy_node() {
    train
    put "$mnt/gpus/2/control/fault" 'sensor temperature_gpu_c'
    put "$mnt/gpus/2/control/fault" 'nvlink 3 down'
    put "$mnt/gpus/2/control/fault" 'ecc sbe 3'
    put "$mnt/gpus/3/control/fault" fallen_off_bus
    put "$mnt/gpus/4/control/mig_mode" on
    put "$mnt/gpus/4/mig/instances" 'create 1g.5gb'
    put "$mnt/gpus/4/mig/instances" 'create 3g.20gb'
    put "$mnt/control/clock" pause
    put "$mnt/control/clock" 'step 7s'
}
