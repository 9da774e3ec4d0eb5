# What the tests of programs that read nvidia-smi share; sourced after clients.sh.
#
# SPDX-License-Identifier: Apache-2.0

# use_smi: the mount's nvidia-smi is the first one, and finds the library beside it.
use_smi() {
    unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES LD_LIBRARY_PATH
    PATH=$mnt/usr/bin:$PATH
}

# train: a process with 5 GiB on GPU 1 of two, some seconds ago, and a clock that stands still.
train() {
    mkdir "$mnt/workloads/train"
    put "$mnt/workloads/train/devices" 1
    put "$mnt/workloads/train/memory" 5GiB
    put "$mnt/workloads/train/pid" $$
    put "$mnt/workloads/train/activity" '[{utilization: 80}]'
    wait_for grep -q "^$$ " "$mnt/gpus/1/processes"
    put "$mnt/control/clock" pause
    put "$mnt/control/clock" 'step 20s'
}
