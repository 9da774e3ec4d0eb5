#!/usr/bin/env bash
#
# nvidia-smi's fields: every one of --query-gpu against the files, the other queries, formats and units.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
need_mounts
. tests/smi/smi.sh

# --- every field of GPUs of every kind ------------------------------------------------------------

cat >"$dir/node.yaml" <<'END'
gpus:
  - {model: A100-SXM4-40GB, count: 2}
  - {model: H100-80GB-HBM3, count: 1}
  - {model: T4, count: 1}
  - {model: V100-SXM2-16GB, count: 1}
  - {model: RTX-4090, count: 1}
  - {model: GB200, count: 1}
END
mount_up --config "$dir/node.yaml"
mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 0,2
put "$mnt/workloads/train/memory" 5GiB
put "$mnt/workloads/train/pid" $$
put "$mnt/workloads/train/activity" '[{utilization: 80}]'
put "$mnt/gpus/0/control/fault" 'ecc sbe 3'
put "$mnt/gpus/2/control/power_limit_mw" 500000
put "$mnt/gpus/1/control/fault" 'sensor temperature_gpu_c'
put "$mnt/control/clock" pause
put "$mnt/control/clock" 'step 60s'
is "$(bounded "$PYTHON" tests/smi/fields.py "$mnt" "$smi" 2>"$dir/compared")" '' 'every field of --query-gpu says what the files say'
diag "$(cat "$dir/compared")"
is "$(shows -i 1 --query-gpu=temperature.gpu --format=csv,noheader)" '[Unknown Error]' 'a sensor that fails is an unknown error'
is "$(shows -i 3 --query-gpu=fan.speed,temperature.memory,mig.mode.current --format=csv,noheader)" '[N/A], N/A, [N/A]' \
    'what a GPU has not is not available, in brackets except for the heat of memory'
is "$(shows -i 3 --query-gpu=fabric.state,fabric.cliqueId,fabric.health.summary --format=csv,noheader)" 'N/A, N/A, N/A' 'and the fabric'
is "$(shows -q -i 3 | grep -E 'Memory (Current|Max Operating)' | sed 's/.*: //' | sort -u)" 'N/A' 'as in -q'
is "$(shows -q -i 5 | grep -E 'Unrepairable|Memory Max Operating|EDPp' | sed 's/.*: //' | sort -u)" 'N/A' 'boards without stacked memory know less of it'
is "$(shows -q -i 2 | grep -E 'Unrepairable|Memory Max Operating|EDPp' | sed 's/.*: //' | paste -sd,)" 'No,0 C,100.00%' 'than those that have it'
is "$(shows -i 1 -q -d TEMPERATURE | grep 'GPU Current')" '        GPU Current Temp                               : Unknown Error' 'in -q the same without brackets'
like "$(shows -i 1)" '\| N/A  ERR!    P0' 'in the table there is an error'

# --- formats -------------------------------------------------------------------------------------

is "$(shows -i 0 --query-gpu=index,memory.total,power.limit,temperature.gpu --format=csv)" "index, memory.total [MiB], power.limit [W], temperature.gpu
0, 40960 MiB, 400.00 W, $(metric 0 temperature_gpu_c)" 'units are in the heads and with the values'
is "$(shows -i 0 --query-gpu=index,memory.total,power.limit --format=csv,nounits)" $'index, memory.total, power.limit\n0, 40960, 400.00' 'nounits leaves them out'
is "$(shows -i 0 --query-gpu=index,gpu_name --format=csv,noheader)" '0, NVIDIA A100-SXM4-40GB' 'noheader leaves the heads out'
is "$(shows -i 0 --query-gpu=gpu_uuid,clocks.gr --format=csv | head -n 1)" 'uuid, clocks.current.graphics [MHz]' 'a column is headed by its first name'
is "$(shows -i 0 --query-gpu="index, name" --format=csv,noheader)" '0, NVIDIA A100-SXM4-40GB' 'blanks after commas do not matter'
is "$(shows -i 0 --query-gpu=index,memory.total "--format=csv, noheader , nounits")" '0, 40960' 'nor in the format'

# --- what drivers no longer tell ------------------------------------------------------------------

is "$(shows --query-gpu=power.draw.average --format=csv,noheader,nounits | sed 's/^[0-9.]*$/number/' | paste -sd,)" \
    '[N/A],[N/A],number,[N/A],[N/A],number,number' 'the average of power is known of later boards'
is "$(shows dmon -s u -c 1 -i 3,4 | sed 1,2d | awk '{ print $6, $7 }')" $'0 0\n- -' 'the JPEG and optical flow engines since Turing'
is "$(shows -i 0 --query-gpu=display_mode,display_attached,power.management,clocks.applications.gr --format=csv,noheader)" \
    "Enabled, Yes, Supported, $(metric 0 clock_sm_application_mhz) MHz" 'an older driver tells'

# --- the other queries ----------------------------------------------------------------------------

wait_for grep -q "^$$ " "$mnt/gpus/0/processes"
is "$(shows --query-compute-apps=gpu_uuid,pid,used_memory --format=csv)" "gpu_uuid, pid, used_gpu_memory [MiB]
$(cat "$mnt/gpus/0/identity/uuid"), $$, 5120 MiB
$(cat "$mnt/gpus/2/identity/uuid"), $$, 5120 MiB" 'processes'
is "$(shows -i 0 --query-supported-clocks=mem,gr --format=csv | sed -n '1,2p;$p')" $'memory [MHz], graphics [MHz]\n1215 MHz, 1410 MHz\n1215 MHz, 210 MHz' 'clocks that can be set'
is "$(shows -i 0 --query-retired-pages=retired_pages.address,retired_pages.cause --format=csv,noheader)" $'[N/A], Single Bit ECC\n[N/A], Double Bit ECC' 'pages of a GPU that retires none'
is "$(shows -i 0 --query-remapped-rows=remapped_rows.correctable,remapped_rows.histogram.max --format=csv,noheader)" \
    "$(metric 0 remapped_rows_correctable_total), $(metric 0 remap_banks_max_count)" 'rows'
is "$(shows --query-accounted-apps=pid,gpu_util,mem_util,max_memory_usage,time --format=csv | head -n 1)" \
    'pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]' 'accounted processes'
for query in gpu compute-apps accounted-apps supported-clocks retired-pages remapped-rows; do
    fields=$(shows "--help-query-$query" | sed -nE 's/^"([^"]+)".*/\1/p' | paste -sd,)
    shows -i 0 "--query-$query=$fields" --format=csv >"$dir/said"
    ok $? "--help-query-$query lists what --query-$query takes"
done

# --- the table in the documentation --------------------------------------------------------------

is "$(sed -n '/^<!-- fields -->$/,/^<!-- end -->$/p' docs/nvidia-smi.md)" "<!-- fields -->
$(shows --help-query-gpu | sh docs/smi-fields.sh)
<!-- end -->" 'docs/nvidia-smi.md has the table of fields'

mount_down

printf 'driver: {version: 590.48.01}\ngpus: {model: H100-80GB-HBM3, count: 1}\n' >"$dir/node.yaml"
mount_up --config "$dir/node.yaml"
gone='[Requested functionality has been deprecated]'
is "$(shows --query-gpu=display_mode,display_attached,power.management,clocks.applications.gr,clocks.default_applications.mem --format=csv,noheader)" \
    "$gone, Yes, $gone, $gone, $gone" 'a newer one tells less'
for change in '-ac 2619,1980' -rac; do says 0 $'The requested functionality has been deprecated.\nAll done.' $change; done
mount_down

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
