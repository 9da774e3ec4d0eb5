# What the tests of nvidia-smi share; sourced after mount.sh.
#
# SPDX-License-Identifier: Apache-2.0

# Nothing in the environment says which library or mount is meant.
unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES LD_LIBRARY_PATH
smi=$mnt/usr/bin/nvidia-smi

# shows ARGUMENT...: what nvidia-smi prints.
shows() {
    bounded "$smi" "$@" 2>&1
}

metric() {
    cat "$mnt/gpus/$1/metrics/$2"
}

identity() {
    cat "$mnt/gpus/$1/identity/$2"
}

# says STATUS TEXT ARGUMENT...: what nvidia-smi prints, and how it ends.
says() {
    local status=$1 text=$2 got
    shift 2
    got=$(bounded "$smi" "$@" 2>&1)
    is "$?:$got" "$status:$text" "nvidia-smi $*"
}
