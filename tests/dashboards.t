#!/usr/bin/env bash
#
# The Grafana dashboards of k8s/observability: they have the shape that Grafana loads, every metric and label that they
# ask for is on the page of a live mount, and a Prometheus that scrapes it has an answer to every query.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
. "${0%/*}/prometheus.sh"
need_mounts

observability=$tests/../k8s/observability
overview=$observability/grafana/dashboards/overview.json
profiles=$observability/grafana/dashboards/profiles.json

cat >"$dir/node.yaml" <<'END'
node: golden
gpus: {count: 7, model: H100-80GB-HBM3}
profile: cycle
workloads:
  - {name: train, devices: [0], activity: 60, memory: 10GiB, namespace: default, pod: train-0, container: trainer}
  - {name: serve, devices: [0], activity: 25, memory: 5GiB, namespace: default, pod: serve-0, container: server}
END
mount_up -c "$dir/node.yaml"
exporter_up -f "$observability/counters.csv"
put "$mnt/gpus/1/control/fault" 'xid 31'
# A faulty GPU has gaps; the page is to have everything at least once.
page >"$dir/page"

is "$(bounded "$PYTHON" "$tests/dashboards.py" "$dir/page" "$overview" "$profiles" 2>&1)" '' \
    'the dashboards have their shape, and what they ask for is on the page'

# wrong SED-COMMAND: what is said of the overview with this change.
wrong() {
    sed -E "$1" "$overview" >"$dir/wrong.json"
    bounded "$PYTHON" "$tests/dashboards.py" "$dir/page" "$dir/wrong.json" 2>&1
}
like "$(wrong 's/DCGM_FI_DEV_GPU_TEMP/DCGM_FI_DEV_GPU_TEMPERATURE/')" 'DCGM_FI_DEV_GPU_TEMPERATURE is not on the page' \
    'the check knows a metric that is not there'
like "$(wrong 's/by \(namespace, pod\)/by (namespace, pod_name)/')" 'has a label pod_name' 'a label that is not there'
like "$(wrong 's/gpu=~/gpus=~/')" 'has no label gpus' 'a matcher of one'
like "$(wrong 's/"schemaVersion": 39/"schemaVersion": "39"/')" 'schemaVersion' 'a wrong shape'
like "$(wrong '0,/"x": 4/s/"x": 4/"x": 3/')" 'on each other' 'panels on each other'

# --- the answers ----------------------------------------------------------------------------------

sed -E "s/exporter:9400/${url#http://}/; s/_interval: .*/_interval: 1s/; s/rules.yaml//" \
    "$observability/prometheus.yml" >"$dir/prometheus.yml"
prometheus_up "$dir/prometheus.yml"
wait_for eval '[[ $(query "count_over_time(up{job=\"gpus\"}[1h]) > 3") ]]'
ok $? 'Prometheus has some samples' || diag "$(cat "$dir/prometheus.log")"

# unanswered FILE: the queries that have no answer, or one without a label of the legend.
unanswered() {
    bounded "$PYTHON" "$tests/dashboards.py" --ask "http://127.0.0.1:$port" "$@" 2>&1
}
is "$(unanswered "$overview")" '' 'every query of the overview has an answer'
sed 's/DCGM_FI_DEV_GPU_TEMP/DCGM_FI_DEV_GPU_TEMPERATURE/; s/{{pod}}/{{pods}}/' "$overview" >"$dir/wrong.json"
is "$(unanswered "$dir/wrong.json" | grep -oE 'no answer|no label [a-z]+' | sort -u)" $'no answer\nno label pods' \
    'and one that has none would be seen'
# shown FILE TITLE: what Prometheus says to the first such panel with a line for each GPU, for GPU 0.
shown() {
    query "$("$PYTHON" -c '
import json, re, sys
print([target["expr"] for panel in json.load(open(sys.argv[1]))["panels"] if panel["title"] == sys.argv[2]
       for target in panel["targets"] if "by (Hostname, gpu)" in target["expr"]][0]
      .replace("$node", ".*").replace("$gpu", "0").replace("$static", "0"))' "$1" "$2")"
}
is "$(shown "$overview" Utilization) $(shown "$profiles" Utilization) $(shown "$overview" 'Memory in use')" '85 85 15360' \
    'a GPU is as busy as the pods that share it together'
# Of a GPU that is faulty there is now and then none, and then there is one again.
answered() {
    [[ -z $(unanswered "$profiles") ]]
}
put "$mnt/control/clock" 'speed 300'
wait_for answered
ok $? 'and every query of the profiles' || diag "$(unanswered "$profiles")"

is "$("$PYTHON" -c '
import json, sys
for v in json.load(open(sys.argv[1]))["templating"]["list"]:
    if v["type"] == "textbox": print(v["query"], v["name"])' "$profiles")" \
    "$(for i in {0..6}; do echo "$i $(cat "$mnt/gpus/$i/control/profile")"; done)" 'GPUs have the profiles that it says'

kill -TERM "$server"
wait_gone "$server"

# --- in a cluster ---------------------------------------------------------------------------------

# What Kubernetes would tell of the exporter is told here: by the operator and the ServiceMonitor, and by docs/observability.md.
(cd "$tests/.." && bounded "$PYTHON" tests/manifests.py scrape "${url#http://}" worker-1) >"$dir/operator.yml"
target="{targets: ['${url#http://}'], labels: {__meta_kubernetes_service_annotation_prometheus_io_scrape: 'true', __meta_kubernetes_pod_node_name: worker-1}}"
sed -n '/^```yaml/,/^```/{/^```/d; s|kubernetes_sd_configs: .*|scrape_interval: 1s\n    static_configs: ['"$target"']|; p}' \
    "$tests/../docs/observability.md" >"$dir/docs.yml"
for how in operator docs; do
    rm -r "$dir/data"
    prometheus_up "$dir/$how.yml"
    wait_for eval '[[ $(query "count(DCGM_FI_DEV_SM_CLOCK)") == 8 ]]'
    ok $? "in a cluster, $how: Prometheus knows all GPUs" || diag "$(cat "$dir/prometheus.log")"
    is "$(query 'DCGM_FI_DEV_SM_CLOCK{pod!=""}' namespace) $(query 'DCGM_FI_DEV_SM_CLOCK{pod!=""}' pod) $(
        query 'count(DCGM_FI_DEV_SM_CLOCK{namespace="",pod="",container=""})')" \
        'default serve-0 train-0 6' "one is its pods', the others nobody's: not the exporter's own pod's"
    is "$(query up job) $(query up instance)" 'gpus worker-1' 'and targets are called as the alerts need it, by their nodes'
    kill -TERM "$server"
    wait_gone "$server"
done

mount_down
exporter_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
