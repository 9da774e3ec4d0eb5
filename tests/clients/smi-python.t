#!/usr/bin/env bash
#
# Python's readers of nvidia-smi's CSV: nvsmi and GPUtil. What they say is what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/smi.sh"

need_client python
need_mounts
mount_up --gpus 2
use_smi
trained

cat >"$dir/walk_nvsmi.py" <<'END'
import nvsmi
for g in nvsmi.get_gpus():
    at = f"gpus/{g.id}"
    print(f"{at}/identity/uuid={g.uuid}")
    print(f"{at}/identity/name={g.name}")
    print(f"{at}/identity/serial={g.serial}")
    print(f"{at}/identity/driver_version={g.driver}")
    print(f"{at}/metrics/utilization_gpu_percent={g.gpu_util:.0f}")
    print(f"{at}/metrics/temperature_gpu_c={g.temperature:.0f}")
    for name in "total", "used", "free":
        print(f"{at}/metrics/memory_{name}_bytes 1/1048576={getattr(g, 'mem_' + name):.0f}")
for p in nvsmi.get_gpu_processes():
    print(f"gpus/{p.gpu_id}/processes {p.pid} memory_bytes={p.used_memory * 2**20:.0f}")
END
cat >"$dir/walk_gputil.py" <<'END'
import GPUtil
for g in GPUtil.getGPUs():
    at = f"gpus/{g.id}"
    print(f"{at}/identity/uuid={g.uuid}")
    print(f"{at}/identity/serial={g.serial}")
    print(f"{at}/metrics/utilization_gpu_percent={g.load * 100:.0f}")
    print(f"{at}/metrics/temperature_gpu_c={g.temperature:.0f}")
    print(f"{at}/metrics/memory_used_bytes 1/1048576={g.memoryUsed:.0f}")
    print(f"{at}/metrics/memory_total_bytes 1/1048576={g.memoryTotal:.0f}")
END
is "$(client python "$dir/walk_nvsmi.py" | compare 19)" '' 'nvsmi says what the files say'
is "$(client python "$dir/walk_gputil.py" | compare 12)" '' 'GPUtil says what the files say'

mount_down
is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
