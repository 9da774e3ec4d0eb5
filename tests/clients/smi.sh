# What the tests of programs that read nvidia-smi share; sourced after clients.sh.
#
# SPDX-License-Identifier: Apache-2.0

# use_smi: the mount's nvidia-smi is the first one, and finds the library beside it.
use_smi() {
    unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES LD_LIBRARY_PATH
    PATH=$mnt/usr/bin:$PATH
}

# trained: a process on GPU 1 of two, some seconds ago, and a clock that stands still.
trained() {
    train
    put "$mnt/control/clock" pause
    put "$mnt/control/clock" 'step 20s'
}
