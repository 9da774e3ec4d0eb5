#!/usr/bin/env bash
#
# systeminformation, which asks lspci for GPUs and nvidia-smi for what they do. What it says is what the files say.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/smi.sh"

need_client node
need_command node lspci
need_mounts
mount_up --gpus 2
use_smi
trained

# It asks for the PCI devices of this machine: those of the mount.
mkdir "$dir/bin"
cat >"$dir/bin/lspci" <<END
#!/bin/sh
exec $(command -v lspci) -A linux-sysfs -O sysfs.path=$mnt/sys/bus/pci "\$@"
END
chmod +x "$dir/bin/lspci"
PATH=$dir/bin:$PATH

cat >"$dir/graphics.js" <<'END'
require("systeminformation").graphics().then(({ controllers }) => controllers.forEach((c, i) => {
  const at = `gpus/${i}/metrics`, zero = (number) => number === undefined ? 0 : number;
  console.log(`gpus/${i}/identity/name=${c.name}`);
  console.log(`gpus/${i}/identity/driver_version=${c.driverVersion}`);
  console.log(`${at}/memory_total_bytes 1/1048576=${c.memoryTotal}`);
  console.log(`${at}/memory_free_bytes 1/1048576=${c.memoryFree}`);
  console.log(`${at}/memory_used_bytes 1/1048576=${zero(c.memoryUsed)}`);
  console.log(`${at}/utilization_gpu_percent=${zero(c.utilizationGpu)}`);
  console.log(`${at}/utilization_memory_percent=${zero(c.utilizationMemory)}`);
  console.log(`${at}/temperature_gpu_c=${c.temperatureGpu}`);
  console.log(`${at}/temperature_memory_c=${c.temperatureMemory}`);
  console.log(`${at}/power_usage_mw 1/1000=${Math.floor(c.powerDraw)}`);
  console.log(`${at}/power_limit_mw 1/1000=${c.powerLimit}`);
  console.log(`${at}/clock_graphics_mhz=${c.clockCore}`);
  console.log(`${at}/clock_memory_mhz=${c.clockMemory}`);
}));
END
is "$(NODE_PATH=$CLIENTS/node/node_modules bounded node "$dir/graphics.js" | compare 26)" '' 'graphics() says what the files say'

mount_down
is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
