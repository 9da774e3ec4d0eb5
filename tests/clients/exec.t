#!/usr/bin/env bash
#
# fakegpufs exec with programs that know nothing of it: a static one in Go, and one in Python with nvidia-ml-py.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client go
machine=$bin/machine
need_client python
need_mounts
unset FAKEGPUFS_ROOT NVIDIA_VISIBLE_DEVICES LD_LIBRARY_PATH

LC_ALL=C grep -q ld-linux "$machine"; is $? 1 'the Go program is static'
said=$(bounded "$fakegpufs" exec --gpus 2 --model H100-80GB-HBM3 -- "$machine" 2>&1)
is "$? $said" '0 /dev/nvidia0 true
/dev/nvidia1 true
550.163.01 true
0000:06:00.0 0x10de 0x2330
0000:17:00.0 0x10de 0x2330' 'it sees device nodes, the driver and PCI devices'
[[ $(bounded "$machine" 2>&1) != *550.163.01* ]]; ok $? 'which it does not see outside'

said=$(bounded "$fakegpufs" exec --gpus 3 --model L40S -- "$bin/python3" -c '
import pynvml
pynvml.nvmlInit()
print(pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(2)))' 2>&1)
is "$? $said" '0 3 NVIDIA L40S' 'nvidia-ml-py finds the mock NVML'

tap_done
