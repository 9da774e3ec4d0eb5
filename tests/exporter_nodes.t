#!/usr/bin/env bash
#
# One exporter that serves many nodes: of one mount, of a directory of mounts; by label, by path, to a real Prometheus.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
need_mounts

# labels_of: the series of a page, without their values.
labels_of() {
    grep -v '^#' | sed -E 's/ [^ ]+$//' | sort
}
# targets: what /nodes says, a line for each: target, path, node.
targets() {
    get /nodes "$@" | "$PYTHON" -c '
import json, sys
for group in json.load(sys.stdin):
    labels = group["labels"]
    assert set(group) == {"targets", "labels"} and set(labels) == {"__metrics_path__", "node"}, group
    print(*group["targets"], labels["__metrics_path__"], labels["node"])'
}
# names: the names of the nodes, in one line.
names() {
    targets "$@" | sed 's|.*/metrics ||' | paste -sd' '
}

# --- one mount with several nodes -----------------------------------------------------------------

cat >"$dir/fleet.yaml" <<'END'
gpus:
  - {count: 8, model: H100-80GB-HBM3, node: "kwok-[0-2]"}
  - {count: 2, model: T4, node: small}
speed: 0
workloads:
  - {name: train, devices: [kwok-1/3], activity: 90, memory: 8GiB, namespace: default, pod: train-0, container: c}
  - {name: other, devices: [kwok-1/3], activity: 5, memory: 1GiB, namespace: default, pod: train-1, container: c}
END
mount_up -c "$dir/fleet.yaml"
exporter_up
is "$(targets)" "${url#http://} /nodes/kwok-0/metrics kwok-0
${url#http://} /nodes/kwok-1/metrics kwok-1
${url#http://} /nodes/kwok-2/metrics kwok-2
${url#http://} /nodes/small/metrics small" '/nodes has a target for each node'
is "$(get /nodes -o /dev/null -w '%{content_type}')" application/json 'as JSON'
is "$(targets -H 'Host: gpus.example:80' | head -n 1)" 'gpus.example:80 /nodes/kwok-0/metrics kwok-0' 'at the address that was asked'
is "$(page | grep -c '^# TYPE DCGM_FI_DEV_GPU_UTIL gauge')" 1 'the page of all has each family once'
is "$(series '^DCGM_FI_DEV_GPU_TEMP' | sed -E 's/.*gpu="([0-9]+)".*device="([^"]+)".*Hostname="([^"]+)".*/\3 \1 \2/' | uniq | xargs)" \
    "$(for n in 0 1 2; do for i in {0..7}; do echo "kwok-$n $i nvidia$i"; done; done | xargs) small 0 nvidia0 small 1 nvidia1" \
    'with GPUs as each node numbers them' # GPU kwok-1/3 has two series: uniq
is "$(page | labels_of | grep 'Hostname="kwok-1"')" "$(get /nodes/kwok-1/metrics | labels_of)" 'the page of a node has its series of the whole'
is "$(page | labels_of)" "$(for n in kwok-0 kwok-1 kwok-2 small; do get "/nodes/$n/metrics"; done | labels_of)" 'and all pages together are the whole'
is "$(page | grep -v '^#' | grep 'Hostname="small"')" "$(get /nodes/small/metrics | grep -v '^#')" 'with the same values, while time stands still'
is "$(get /nodes/kwok-1/metrics | grep GPU_UTIL | grep 'gpu="3"' | sed -E 's/.*pod="([^"]+)".* /\1 /' | xargs)" 'train-0 90 train-1 5' \
    'pods are on their GPUs'
is "$(get /nodes/kwok-1/metrics | grep -c 'pod=')" "$(page | grep -c 'pod=')" 'and on no others'
wrong=0
for position in 8 15 24; do
    at=$mnt/gpus/$position
    line=$(page | grep '^DCGM_FI_DEV_GPU_TEMP{' | grep "$(cat "$at/identity/uuid")" | head -n 1)
    [[ $line == *"gpu=\"$(cat "$at/identity/node_index")\""*"pci_bus_id=\"$(cat "$at/identity/node_bus_id")\""*"Hostname=\"$(cat "$at/identity/node")\""*" $(cat "$at/metrics/temperature_gpu_c")" ]] ||
        { wrong=1; diag "$line"; }
done
ok $wrong 'labels and values are those of the files'
is "$(get /nodes/small/metrics -H 'Accept: application/openmetrics-text' | tail -n 1)" '# EOF' 'a node in OpenMetrics'
is "$(get /nodes/small/metrics -H 'Accept-Encoding: gzip' | gunzip | labels_of)" "$(get /nodes/small/metrics | labels_of)" 'and compressed'
is "$(status /nodes/kwok-9/metrics) $(get /nodes/kwok-9/metrics)" "404 there is no node 'kwok-9'; /nodes has those that there are" \
    'a node that there is not is named'
for path in /nodes/kwok-1 /nodes/ /nodes//metrics /nodes/kwok-1/nodes /nodes/kwok-1/x "/nodes/$(printf 'x%.0s' {1..300})/metrics"; do
    is "$(status "$path")" 404 "${path:0:40} is no page"
done
is "$(status /nodes/small/) $(status /nodes/small/page.js) $(status /nodes/small/healthz) $(status /nodes -X POST)" '200 200 200 405' \
    'a node has a live page, too'
is "$(get /nodes/small/page.json | "$PYTHON" -c 'import json, sys; print([(g["node"], g["index"]) for g in json.load(sys.stdin)["gpus"]])')" \
    "[('small', 0), ('small', 1)]" 'of its own GPUs'
like "$(get /health)" '^\{"status": "healthy", "mount": \{"path": "[^"]+", "gpus": 26, "generation": [0-9]+\}\}$' 'health is that of the mount'

# What happens to one GPU is on the page of its node.
put "$mnt/gpus/8/control/fault" fallen_off_bus
is "$(get /nodes/kwok-1/metrics | grep XID_ERRORS | grep -c 'gpu="0".* 79$')$(get /nodes/kwok-0/metrics | grep XID_ERRORS | grep -c ' 79$')" 10 \
    'an error is on its node and on no other'
is "$(get /nodes/kwok-1/metrics | grep -c '^DCGM_FI_DEV_GPU_TEMP{.*gpu="0"')" 0 'where the GPU is lost'
put "$mnt/gpus/8/control/fault" recover

# Another configuration: other nodes.
sed -i 's/kwok-\[0-2\]/kwok-[1-3]/' "$dir/fleet.yaml"
wait_for eval '[[ $(names) == "kwok-1 kwok-2 kwok-3 small" ]]'
ok $? 'nodes come and go with the configuration'
is "$(status /nodes/kwok-0/metrics) $(status /nodes/kwok-3/metrics)" '404 200' 'and so do their pages'
mount_down
is "$(status /nodes) $(names)" '200 kwok-1 kwok-2 kwok-3 small' 'nodes stay known while the mount is away'
is "$(status /nodes/small/metrics) $(get /nodes/small/metrics)" "503 there is no mount at '$mnt'" 'and do not answer'
exporter_down
exporter_up
is "$(status /nodes) $(status /nodes/small/metrics)" '503 503' 'before there was a mount nobody knows of nodes'
exporter_down

# --- as if it were alone --------------------------------------------------------------------------

cat >"$dir/counters.csv" <<'END'
DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).
DCGM_FI_DEV_PCI_BUSID, label, where
DCGM_FI_DEV_NVML_INDEX, label, which
DCGM_EXP_P2P_STATUS, gauge, Peers.
DCGM_EXP_XID_ERRORS_COUNT, gauge, Xids.
DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, Clocks.
DCGM_EXP_GPU_HEALTH_STATUS, gauge, Health.
END
cat >"$dir/fleet.yaml" <<'END'
gpus:
  - {count: 2, model: T4, node: first}
  - {count: 4, model: A100-SXM4-40GB, node: "alone"}
  - {count: 4, model: A100-SXM4-40GB, node: "last"}
speed: 0
END
for identity in $(bounded "$exporter" --list-identities | awk '{print $1}') counters; do
    if [[ $identity == counters ]]; then
        options=(-f "$dir/counters.csv")
    else
        options=(-i "$identity")
    fi
    mount_up -c "$dir/fleet.yaml"
    put "$mnt/gpus/3/control/fault" 'xid 31'
    exporter_up "${options[@]}"
    get /nodes/alone/metrics >"$dir/part"
    exporter_down
    mount_down
    echo 'gpus: {count: 4, model: A100-SXM4-40GB}
speed: 0' >"$dir/alone.yaml"
    NODE_NAME=alone mount_up -c "$dir/alone.yaml"
    put "$mnt/gpus/1/control/fault" 'xid 31'
    NODE_NAME=alone exporter_up "${options[@]}"
    is "$(cat "$dir/part")" "$(page)" "$identity: a node among others has the page that it has alone"
    is "$(get /nodes/alone/metrics)" "$(page)" 'which is that of the only node, too'
    exporter_down
    mount_down
done
[[ $(grep -c P2P_STATUS "$dir/part") == 14 ]]
ok $? 'and knows its own peers alone' || diag "$(grep P2P_STATUS "$dir/part")"

# --- every so often -------------------------------------------------------------------------------

mount_up -c "$dir/fleet.yaml"
exporter_up -c 3600000
before=$(get /nodes/alone/metrics)
put "$mnt/gpus/2/control/temperature_gpu_c" 77
is "$(get /nodes/alone/metrics)" "$before" 'within the interval the page of a node stays as it is'
exporter_down
exporter_up
like "$(get /nodes/alone/metrics)" 'GPU_TEMP\{gpu="0"[^}]*\} 77' 'otherwise a write is on the next'
exporter_down
mount_down

# --- a directory of mounts ------------------------------------------------------------------------

roots=$dir/roots
mkdir "$roots"
# node_up NAME OPTION...: a mount in the directory.
node_up() {
    local at=$roots/$1
    shift
    mkdir -p "$at"
    bounded "$fakegpufs" mount --pid-file "$dir/pid-node" "$@" "$at" 2>"$dir/log-node" || bail "cannot mount: $(cat "$dir/log-node")"
    mount_owned+=("$(cat "$dir/pid-node")")
}
node_down() {
    bounded "$fakegpufs" umount "$roots/$1" && wait_for not_mounted "$roots/$1"
}
weird='we"ird \ %2F?näme'
at_exit 'umount -l "$roots/$weird" 2>/dev/null' # what is mounted there the others do not find
exporter_up --roots "$roots"
is "$(status /metrics) $(get /metrics)" "503 there is no mount in '$roots'" 'a directory without mounts'
like "$(get /health)" '^\{"status": "unhealthy", "error": "there is no mount in .*", "mounts": \[\]\}$' 'is not healthy'
mkdir "$roots/empty" "$roots/.hidden"
touch "$roots/file"
is "$(status /metrics)" 503 'nor is one of a directory that is none'
node_up b --gpus 2 --model T4
is "$(names)" b 'a mount is a node by the name of its directory'
is "$(get /nodes/b/metrics | labels_of | grep GPU_TEMP | grep -c 'Hostname="b"')" 2 'which is its hostname'
node_up "$weird" --gpus 1 --model L4
node_up a -c "$dir/fleet.yaml"
is "$(names)" "first alone last b $weird" 'all nodes of all mounts, those in one mount by their own names'
is "$(page | grep -c '^# TYPE DCGM_FI_DEV_GPU_TEMP ')$(page | grep -c '^DCGM_FI_DEV_GPU_TEMP{')" 113 'the page of all has a family once, of 13 GPUs'
path=/nodes/we%22ird%20%5C%20%252F%3Fn%C3%A4me/metrics
is "$(page | labels_of)" "$(for path in /nodes/{first,alone,last,b}/metrics "$path"; do get "$path"; done | labels_of)" 'as all pages together'
like "$(page)" 'Hostname="we\\"ird \\\\ %2F\?näme"' 'names are escaped in labels'
like "$(get /nodes)" '"/nodes/we\\"ird \\\\ %2F\?näme/metrics", "node": "we\\"ird \\\\ %2F\?näme"' 'and in JSON'
is "$(get "$path" | grep -c '^DCGM_FI_DEV_GPU_TEMP{.*L4')" 1 'and are found in a URL'
like "$(get /health)" '"status": "healthy", "mounts": \[.*/a", "gpus": 10, .*/b", "gpus": 2, .*/empty", "error": "there is no mount' \
    'health tells of each'
is "$(get /page.json | "$PYTHON" -c 'import json, sys; print(len({(g["node"], g["index"]) for g in json.load(sys.stdin)["gpus"]}))')" 13 \
    'the live page shows all GPUs'
node_down b
is "$(status /nodes/b/metrics) $(status /metrics) $(page | grep -c '^DCGM_FI_DEV_GPU_TEMP{')" '503 200 11' 'a mount that goes is missed; the others are served'
rmdir "$roots/b"
is "$(status /nodes/b/metrics) $(names)" "404 first alone last $weird" 'and with its directory it is no node any more'
node_up zz -c "$dir/fleet.yaml"
is "$(names)" "first alone last $weird" 'of nodes with the same name one counts'
is "$(page | labels_of | uniq -d)" '' 'no series is there twice'
like "$(cat "$exporter_log")" "'$roots/a' and '$roots/zz' both have a node 'alone': the first counts" 'the log says so'
node_down a
rmdir "$roots/a"
is "$(get /nodes/alone/metrics | grep -c '^DCGM_FI_DEV_GPU_TEMP{')" 4 'when the first goes, the other has the name'
exporter_down
exporter_up --roots "$dir/nowhere"
is "$(get /metrics)" "cannot read '$dir/nowhere': No such file or directory" 'a directory that is not there is named'
exporter_down

# --- Prometheus -----------------------------------------------------------------------------------

if ! command -v prometheus >/dev/null; then
    skip 6 'there is no prometheus'
else
    . "${0%/*}/prometheus.sh"
    exporter_up --roots "$roots"
    # The scrape config of k8s/kwok, with this exporter and less patience.
    sed -e "s|http://kwok-gpus.gpu-monitoring.svc:9400|$url|" -e 's/30s/1s/' "$tests/../k8s/kwok/prometheus.yml" >"$dir/prometheus.yml"
    prometheus_up "$dir/prometheus.yml"
    wait_for eval '[[ $(query "count(up == 1)") == 4 ]]'
    ok $? 'Prometheus finds a target for each node' || diag "$(query up) $(cat "$dir/prometheus.log")"
    is "$(query up node)" "alone first last $weird" 'by name'
    wait_for eval '[[ $(query "count(DCGM_FI_DEV_GPU_TEMP)") == 11 ]]'
    ok $? 'with their GPUs'
    is "$(query 'count(DCGM_FI_DEV_GPU_TEMP{Hostname="alone",node="alone",instance="alone"})')" 4 'each under its own node'
    node_up new --gpus 3
    wait_for eval '[[ $(query "count(DCGM_FI_DEV_GPU_TEMP{node=\"new\"})") == 3 ]]'
    ok $? 'one that comes is found'
    node_down new
    wait_for eval '[[ $(query "up{node=\"new\"}") == 0 ]]'
    ok $? 'and is down when its mount goes'
    rmdir "$roots/new"
    kill -TERM "$server"
    wait_gone "$server"
    exporter_down
fi
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
