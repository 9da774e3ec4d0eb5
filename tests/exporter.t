#!/usr/bin/env bash
#
# The exporter's pages: that they are what dcgm-exporter would print of these GPUs, byte for byte, and what
# options, pods, faults, MIG and counters files change.
#
# tests/golden/N.prom was compared with the real exporter's format when it was made. After a change to the
# simulation that moves its numbers, GOLDEN=update tests/exporter.t writes them anew: look at the difference.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
need_mounts

command -v promtool >/dev/null || skip_all 'there is no promtool'
"$PYTHON" -c 'import prometheus_client' 2>/dev/null || skip_all "$PYTHON has no prometheus_client"

# lint NAME: what promtool has against /metrics, but for what is wrong with the names that exporters chose.
lint() {
    page | promtool check metrics 2>&1 |
        grep -vE 'snake_case|camelCase|"_total" suffix|should not (include|contain|have)'
}

# --- Golden pages -----------------------------------------------------------

for gpus in 1 8 64; do
    golden=$tests/golden/$gpus.prom
    mount_up -c "$tests/golden/$gpus.yaml"
    put "$mnt/control/clock" 'step 60s'
    exporter_up
    page >"$dir/page"
    [[ ${GOLDEN:-} == update ]] && cp "$dir/page" "$golden"
    diff -u "$golden" "$dir/page" >"$dir/difference"
    ok $? "the page of $gpus GPUs is the golden one" || diag "$(head -n 20 "$dir/difference" | cut -c 1-300)"
    page | cmp -s - "$dir/page"
    ok $? "asked again, the page of $gpus GPUs has the same bytes"
    is "$(lint)" '' "promtool finds nothing wrong with the page of $gpus GPUs"
    exporter_down
    if [[ $gpus == 8 ]]; then
        exporter_up -f schemas/counters/default-counters.csv
        page | cmp -s - "$dir/page"
        ok $? 'the default counters given as a file are the same bytes, from another process'
        exporter_down
    fi
    mount_down
done

# --- Formats ----------------------------------------------------------------

mount_up -c "$tests/golden/8.yaml"
put "$mnt/control/clock" 'step 60s'
exporter_up

openmetrics='application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
like "$(get /metrics -D - -o /dev/null)" 'Content-Type: text/plain; version=0.0.4; charset=utf-8' 'the page is Prometheus text'
like "$(get /metrics -D - -o /dev/null)" 'X-Content-Type-Options: nosniff' 'nobody is to guess what it is'
like "$(get /metrics -D - -o /dev/null -H "Accept: $openmetrics")" 'Content-Type: application/openmetrics-text; version=1.0.0' \
    'who prefers OpenMetrics gets it'
like "$(get /metrics -D - -o /dev/null -H 'Accept: application/openmetrics-text;q=0.1, text/plain;q=0.9')" 'text/plain; version' \
    'who prefers text gets text'
like "$(get /metrics -D - -o /dev/null -H 'Accept: application/openmetrics-text;version=9.9.9')" 'text/plain; version' \
    'a version of OpenMetrics that is not known is not sent'
is "$(page -H "Accept: $openmetrics" | tail -n 1)" '# EOF' 'OpenMetrics ends with # EOF'
is "$(page -H "Accept: $openmetrics" | grep -v '^#')" "$(page | grep -v '^#')" 'samples are called the same in both'
page -H "Accept: $openmetrics" | "$PYTHON" -c '
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
assert len(list(parse(sys.stdin.read()))) == 25'
ok $? 'somebody else reads it as OpenMetrics'
page >"$dir/plain"
page -H 'Accept-Encoding: gzip' >"$dir/packed"
gunzip -c <"$dir/packed" 2>/dev/null | cmp -s - "$dir/plain"
ok $? 'gzip holds the same bytes'
(($(wc -c <"$dir/packed") * 4 < $(wc -c <"$dir/plain")))
ok $? 'and is much smaller'
like "$(get /metrics -D - -o /dev/null -H 'Accept-Encoding: gzip')" 'Content-Encoding: gzip' 'gzip says that it is'
like "$(get /metrics -D - -o /dev/null -H 'Accept-Encoding: gzip')" 'Vary: Accept, Accept-Encoding' 'caches are told what it depends on'
page -H 'Accept-Encoding: gzip;q=0, identity' | cmp -s - "$dir/plain"
ok $? 'who refuses gzip does not get it'
get /metrics -I | grep -qi "^Content-Length: $(wc -c <"$dir/plain")"
ok $? 'HEAD says how long the page is'

# --- Pods -------------------------------------------------------------------

is "$(series '^DCGM_FI_DEV_GPU_UTIL\{.*namespace="default"' | wc -l)" 3 'an autoscaler finds the GPUs of its namespace'
is "$(series '^DCGM_FI_DEV_GPU_UTIL\{gpu="2"' | sed -E 's/.*(container.*)/\1/' | sort)" \
    'container="main",namespace="jobs",pod="batch-7"} 20
container="server",namespace="default",pod="serve-0"} 30' 'two containers on one GPU have their own utilization'
is "$(series '^DCGM_FI_DEV_FB_USED\{gpu="2"' | sed 's/.* //' | sort | xargs)" '10240 20480' 'and their own memory'
is "$(series '^DCGM_FI_DEV_GPU_TEMP\{gpu="2"' | sed 's/.* //' | uniq | wc -l)" 1 'and the temperature of the same GPU'
is "$(series '^DCGM_FI_DEV_GPU_UTIL\{gpu="5"' | grep -cE 'namespace|pod=|container')" 0 'a GPU that nobody uses has no pod labels'
exporter_down

exporter_up -k=false
is "$(series 'namespace=|pod=')" '' 'without pods when told so'
exporter_down
DCGM_EXPORTER_KUBERNETES=false exporter_up
is "$(series 'namespace=')" '' 'also by the environment'
exporter_down

# --- Options that change labels ---------------------------------------------

exporter_up -o
like "$(series '^DCGM_FI_DEV_GPU_UTIL\{gpu="0"')" \
    ',uuid="GPU-.*container_name="trainer",pod_name="train-0",pod_namespace="default"' 'the old names of labels'
exporter_down
exporter_up -n
is "$(series 'Hostname=')" '' 'no hostname when told so'
exporter_down
exporter_up --hostname-label hostname --replace-blanks-in-model-name
like "$(series '^DCGM_FI_DEV_GPU_UTIL\{gpu="0"')" 'modelName="NVIDIA-H100-80GB-HBM3",hostname="golden"' \
    'the hostname called hostname, and a model without blanks'
exporter_down
exporter_up -d g:1,3-4
is "$(series '^DCGM_FI_DEV_GPU_UTIL' | sed -E 's/.*gpu="([0-9]+)".*/\1/' | xargs)" '1 3 4' 'only the GPUs that were chosen'
exporter_down

# --- Readings that fail -----------------------------------------------------

exporter_up
is "$(series '^DCGM_FI_DEV_GPU_TEMP\{gpu="4"')" '' 'a sensor that fails is a sample that is not there'
exporter_down
exporter_up --faulty-values nan
like "$(series '^DCGM_FI_DEV_GPU_TEMP\{gpu="4"')" '} NaN$' 'or NaN, when told so'
is "$(lint)" '' 'which promtool takes'
exporter_down
mount_down

mount_up --gpus 1 --model L4
exporter_up
is "$(series 'NVLINK|MEMORY_TEMP')" '' 'a family without samples is not there'
like "$(series '^DCGM_FI_DEV_GPU_UTIL')" 'modelName="NVIDIA L4"' 'the others are'
exporter_down
mount_down

# --- Faults, health, peers --------------------------------------------------

cat >"$dir/errors.csv" <<'END'
# field, type, help
DCGM_FI_DEV_XID_ERROR, gauge, by its newer name
  DCGM_EXP_XID_ERRORS_COUNT, gauge, "Xids, counted"
DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, clock events
DCGM_EXP_GPU_HEALTH_STATUS, gauge, health
DCGM_EXP_P2P_STATUS, gauge, peers
DCGM_FI_DEV_ECC_CURRENT, gauge, before the others of the file
DCGM_FI_DEV_SERIAL, label, serial
DCGM_FI_DEV_CUDA_VISIBLE_DEVICES_STR, gauge, DCGM knows it but this driver does not
END
cat >"$dir/faults.yaml" <<'END'
speed: 0
gpus: {count: 3, model: A100-SXM4-40GB}
END
mount_up -c "$dir/faults.yaml"
put "$mnt/control/clock" 'step 100s'
put "$mnt/gpus/0/control/fault" 'xid 31'
put "$mnt/gpus/0/control/fault" 'xid 31'
put "$mnt/gpus/0/control/fault" 'xid 43'
put "$mnt/gpus/1/control/fault" fallen_off_bus
exporter_up -f "$dir/errors.csv" -x 60000

is "$(page | sed -nE 's/^# TYPE (\w+).*/\1/p' | xargs)" \
    'DCGM_FI_DEV_XID_ERROR DCGM_FI_DEV_ECC_CURRENT DCGM_EXP_XID_ERRORS_COUNT DCGM_EXP_CLOCK_EVENTS_COUNT DCGM_EXP_GPU_HEALTH_STATUS DCGM_EXP_P2P_STATUS' \
    'families come in the order of their numbers, with the names of the file'
like "$(page)" '# HELP DCGM_EXP_XID_ERRORS_COUNT Xids, counted' 'quotes keep a comma'
like "$(series '^DCGM_FI_DEV_XID_ERROR\{gpu="0"')" 'DCGM_FI_DEV_SERIAL="[0-9]+",err_code="43",err_msg="GPU stopped processing"\} 43' \
    'the last Xid with its meaning'
like "$(series '^DCGM_FI_DEV_XID_ERROR\{gpu="1"')" 'err_msg="GPU has fallen off the bus"\} 79' 'a lost GPU leaves its Xid'
is "$(series '^DCGM_FI_DEV_ECC_CURRENT\{gpu="1"')" '' 'and nothing else'
is "$(series '^DCGM_EXP_XID_ERRORS_COUNT\{gpu="0"' | sed -E 's/.*(window.*)/\1/')" 'window_size_in_ms="60000",xid="31"} 2
window_size_in_ms="60000",xid="43"} 1' 'Xids are counted by number'
like "$(series '^DCGM_EXP_XID_ERRORS_COUNT\{gpu="2"')" 'window_size_in_ms="60000"\} 0' 'none is a zero without a number'
like "$(series '^DCGM_EXP_CLOCK_EVENTS_COUNT\{gpu="2"')" 'clock_event="gpu_idle",window_size_in_ms="300000"\} 4' \
    'an idle GPU was so each time DCGM looked'
like "$(series '^DCGM_EXP_GPU_HEALTH_STATUS\{gpu="1".*health_watch="ALL"')" 'health_error_code="DCGM_FR_FALLEN_OFF_BUS",health_watch="ALL"\} 20' \
    'a lost GPU fails its health check'
is "$(series '^DCGM_EXP_GPU_HEALTH_STATUS\{gpu="2"' | grep -c '"DCGM_FR_OK".*} 0$')" 11 'a sound one passes all eleven'
is "$(series '^DCGM_EXP_P2P_STATUS\{gpu="2"' | sed -E 's/.*(link_status.*)/\1/' | xargs)" \
    'link_status=OK,peer_gpu=0} 0 link_status=NotSupported,peer_gpu=1} 5' 'peers are reached over NVLink, lost ones not'
put "$mnt/control/clock" 'step 61s'
like "$(series '^DCGM_EXP_XID_ERRORS_COUNT\{gpu="0"')" 'window_size_in_ms="60000"\} 0' 'what is older than the window is forgotten'

# --- The counters file is followed ------------------------------------------

echo 'DCGM_FI_DEV_GPU_UTIL, gauge, only this' >"$dir/new.csv"
mv "$dir/new.csv" "$dir/errors.csv"
has_one_family() { [[ $(page | grep -c '^# TYPE') == 1 ]]; }
wait_for has_one_family
ok $? 'a counters file that changes is read again'
echo 'DCGM_FI_DEV_GPU_UTILL, gauge, a slip' >"$dir/errors.csv"
wait_for eval 'page >/dev/null; grep -q "GPU_UTILL" "$exporter_log"'
ok $? 'one that is wrong is complained about'
like "$(cat "$exporter_log")" "errors.csv:1: DCGM has no field 'DCGM_FI_DEV_GPU_UTILL'; did you mean 'DCGM_FI_DEV_GPU_UTIL'\?" 'by place, with a guess'
has_one_family
ok $? 'and changes nothing'
exporter_down
mount_down

# --- MIG --------------------------------------------------------------------

mount_up --gpus 2 --speed 0
put "$mnt/gpus/1/control/mig_mode" on
exporter_up
like "$(series '^DCGM_FI_DEV_SM_CLOCK\{gpu="1"')" 'Hostname=' 'a GPU with MIG and no instance has a clock'
is "$(series '^DCGM_FI_DEV_(FB_USED|GPU_UTIL|CORRECTABLE_REMAPPED_ROWS)\{gpu="1"')" '' 'and no memory, utilization, remapped rows'
put "$mnt/gpus/1/mig/instances" 'create 3g.20gb'
put "$mnt/gpus/1/mig/instances" 'create 1g.5gb'
is "$(series '^DCGM_FI_DEV_FB_FREE\{gpu="1"' | sed -E 's/.*(GPU_I_PROFILE="[^"]*",GPU_I_ID="[0-9]+"),Hostname.* ([0-9]+)$/\1 \2/' | sort)" \
    'GPU_I_PROFILE="1g.5gb",GPU_I_ID="7" 4864
GPU_I_PROFILE="3g.20gb",GPU_I_ID="1" 19968' 'each instance has its memory' ||
    diag "$(series '^DCGM_FI_DEV_FB_FREE\{gpu="1"')"
mkdir "$mnt/workloads/sliced"
put "$mnt/workloads/sliced/devices" 1:1
put "$mnt/workloads/sliced/memory" 2GiB
put "$mnt/workloads/sliced/namespace" default
put "$mnt/workloads/sliced/pod" sliced-0
like "$(series '^DCGM_FI_DEV_FB_USED\{gpu="1".*GPU_I_ID="1"')" 'namespace="default",pod="sliced-0"\} 2048$' 'a pod on an instance has it, with its memory'
is "$(series '^DCGM_FI_DEV_FB_USED\{gpu="1".*GPU_I_ID="7"' | grep -c namespace)" 0 'and not the other one'
mkdir "$mnt/workloads/another"
put "$mnt/workloads/another/devices" 1:1
put "$mnt/workloads/another/memory" 3GiB
put "$mnt/workloads/another/pod" another-0
is "$(series '^DCGM_FI_DEV_FB_(USED|FREE)\{gpu="1".*GPU_I_ID="1"' | sed -E 's/\{.*pod="([^"]*)"\}/ \1/; s/^DCGM_FI_DEV_FB_//' | sort | xargs)" \
    'FREE another-0 14848 FREE sliced-0 14848 USED another-0 3072 USED sliced-0 2048' \
    'pods that share an instance have their own memory, and what is free is what both leave'
rmdir "$mnt/workloads/another"
is "$(series '^DCGM_FI_DEV_POWER_USAGE\{gpu="1"' | sed 's/.* //' | uniq | wc -l)" 1 'instances show the power of their GPU'
is "$(series '^DCGM_FI_DEV_GPU_UTIL' | wc -l)" 1 'and no utilization'
is "$(lint)" '' 'promtool finds nothing wrong with it'
exporter_down
exporter_up -d g
is "$(series 'GPU_I_ID')" '' 'GPUs alone when told so'
exporter_down
exporter_up -d i
is "$(series '^DCGM_FI_DEV_SM_CLOCK' | grep -vc GPU_I_ID)" 0 'instances alone when told so'
exporter_down
mount_down

# --- Intervals --------------------------------------------------------------

mount_up --gpus 1 --speed 0
exporter_up -c 600000
before=$(series '^DCGM_FI_DEV_GPU_UTIL')
put "$mnt/gpus/0/control/utilization_gpu_percent" 77
is "$(series '^DCGM_FI_DEV_GPU_UTIL')" "$before" 'within the interval the page stays'
exporter_down
exporter_up
put "$mnt/gpus/0/control/utilization_gpu_percent" 78
like "$(series '^DCGM_FI_DEV_GPU_UTIL')" '} 78$' 'without one, a write is seen by the next request'
exporter_down
mount_down

is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
