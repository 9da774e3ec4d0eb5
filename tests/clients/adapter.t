#!/usr/bin/env bash
#
# prometheus-adapter, with the rules of k8s/examples/adapter-values.yaml, serves what an autoscaler asks for: what each pod
# does with its GPUs, as a real Prometheus has scraped it. And what an autoscaler makes of that scales inference.yaml.
#
# The API server that it asks for pods, and for who may ask, is pods_api.py.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "$tests/exporter.sh"
. "$tests/prometheus.sh"
need_client adapter
need_mounts
cd "$tests/.." || bail 'no top directory'
example=k8s/examples/inference.yaml

# has EXPRESSION: Prometheus has an answer.
has() {
    [[ $(query "$1") ]]
}

# --- a node with pods -------------------------------------------------------------------------------

# web-1 has two GPUs, with loads of their own; another namespace has a pod of the same name as one here; three GPUs are idle.
cat >"$dir/node.yaml" <<'END'
gpus: {count: 8, model: A100-SXM4-40GB}
workloads:
  - {devices: 0, activity: '60:9:10h', memory: 3GiB, namespace: team, pod: web-0, container: server}
  - {devices: 1, activity: '80:9:10h', memory: 5GiB, namespace: team, pod: web-1, container: server}
  - {devices: 2, activity: '20:9:10h', memory: 20000MiB, namespace: team, pod: web-1, container: server}
  - {devices: 3, activity: '40:9:10h', memory: 7GiB, namespace: team, pod: batch-0, container: main}
  - {devices: 4, activity: '95:4:10h', memory: 9GiB, namespace: other, pod: web-0, container: server}
END
mount_up -c "$dir/node.yaml"
put "$mnt/control/clock" pause
put "$mnt/control/clock" 'step 7s'
exporter_up --collectors k8s/observability/counters.csv

# The target's labels are those that a cluster gives it: where the exporter runs.
sed -E "/^rule_files/d; s/_interval: .*/_interval: 1s/
    s|- targets: .*|- {targets: ['${url#http://}'], labels: {namespace: gpu-monitoring, pod: dcgm-exporter-x}}|" \
    k8s/observability/prometheus.yml >"$dir/prometheus.yml"
prometheus_up "$dir/prometheus.yml"
wait_for has 'count(DCGM_FI_DEV_GPU_UTIL) == 8'
ok $? 'Prometheus has every GPU' || diag "$(cat "$dir/prometheus.log")"

# --- the adapter ------------------------------------------------------------------------------------

mkdir "$dir/api"
echo secret-of-the-autoscaler >"$dir/api/token"
cat >"$dir/api/pods" <<'END'
team web-0 app=web
team web-1 app=web
team batch-0 app=batch
other web-0 app=web
gpu-monitoring dcgm-exporter-x app=dcgm-exporter
END
output=$dir/api/port
background "$PYTHON" "$tests/clients/pods_api.py" "$dir/api"
output=/dev/null
wait_for test -s "$dir/api/port" || bail "no API server: $(cat "$dir/api/port")"
cat >"$dir/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:$(cat "$dir/api/port")'}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
END
# The adapter's chart makes such a file of its values.
"$PYTHON" -c '
import sys, yaml
yaml.safe_dump({"rules": yaml.safe_load(open(sys.argv[1]))["rules"]["custom"]}, sys.stdout)' \
    k8s/examples/adapter-values.yaml >"$dir/rules.yaml"

# It looks for series as often as Prometheus scrapes; as its chart runs it, every minute.
adapter_port=$(free_port)
output=$dir/adapter.log
background "$bin/adapter" --config "$dir/rules.yaml" --prometheus-url "http://127.0.0.1:$port" \
    --lister-kubeconfig "$dir/kubeconfig" --authentication-kubeconfig "$dir/kubeconfig" \
    --authorization-kubeconfig "$dir/kubeconfig" --authentication-skip-lookup \
    --bind-address 127.0.0.1 --secure-port "$adapter_port" --cert-dir "$dir/certs" \
    --metrics-relist-interval 1s --metrics-max-age 1m
adapter=$started
output=/dev/null

# ask PATH CURL-OPTION...: what the autoscaler gets of the custom metrics.
ask() {
    local path=$1
    shift
    bounded curl -s --cacert "$dir/certs/apiserver.crt" --oauth2-bearer "$(cat "$dir/api/token")" "$@" \
        "https://localhost:$adapter_port/apis/custom.metrics.k8s.io/v1beta2$path"
}

# code PATH CURL-OPTION...: the number of the answer.
code() {
    ask "$@" -o /dev/null -w '%{http_code}'
}

# values NAMESPACE METRIC SELECTOR: of its pods, as an autoscaler asks for them: `pod=value …`, in order.
values() {
    ask "/namespaces/$1/pods/*/$2" -G --data-urlencode "labelSelector=$3" | "$PYTHON" -c '
import json, sys
from decimal import Decimal
text = sys.stdin.read()
if "\"MetricValueList\"" not in text:
    sys.exit("no list: " + text)
units = {"m": Decimal("0.001"), "k": 1000}
for item in sorted(json.loads(text)["items"], key=lambda item: item["describedObject"]["name"]):
    pod, value = item["describedObject"], item["value"]
    assert (pod["kind"], pod["namespace"], item["metric"]["name"]) == ("Pod", *sys.argv[1:]), item
    value = Decimal(value.rstrip("mk")) * units.get(value[-1], 1)
    print(pod["name"], format(value.normalize(), "f"), sep="=")' "$1" "$2" 2>&1 | xargs
}

# scraped: until Prometheus has looked at the mount as it is now.
scraped() {
    wait_for has "up == 1 and timestamp(up) > $(date +%s.%N)" || diag 'Prometheus does not scrape any more'
}

# of_files METRIC GPU...: what the mount says, a line each.
of_files() {
    local gpu metric=$1
    shift
    for gpu in "$@"; do
        metric "$gpu" "$metric"
    done
}

# busy GPU...: the mean, in percent.
busy() {
    of_files utilization_gpu_percent "$@" | awk '{ sum += $1 } END { print sum / NR }'
}

# memory GPU...: the sum, in MiB.
memory() {
    of_files memory_used_bytes "$@" | awk '{ sum += $1 } END { print sum / 1048576 }'
}

wait_for eval '[[ $(ask "") == *gpu_utilization* ]]'
ok $? 'the adapter finds series by its rules' || diag "$(tail -n 5 "$dir/adapter.log")"
is "$(ask '' | "$PYTHON" -c '
import json, sys
print(*sorted(resource["name"] for resource in json.load(sys.stdin)["resources"]))')" \
    'namespaces/gpu_memory_used_mib namespaces/gpu_utilization pods/gpu_memory_used_mib pods/gpu_utilization' \
    'it has both metrics, of pods and of namespaces, and no others'
is "$(code '/namespaces/team/pods/*/gpu_utilization' --oauth2-bearer somebody)" 401 'but not for everybody'

# --- what an autoscaler asks ------------------------------------------------------------------------

is "$(values team gpu_utilization app=web)" "web-0=$(busy 0) web-1=$(busy 1 2)" 'the pods of a selector: of two GPUs the mean'
is "$(values team gpu_memory_used_mib app=web)" "web-0=$(memory 0) web-1=$(memory 1 2)" 'their memory: the sum'
is "$(memory 0) $(memory 1 2)" '3072 25120' 'which is what they have taken'
is "$(values team gpu_utilization app=batch)" "batch-0=$(busy 3)" 'another selector: another pod'
is "$(values other gpu_utilization app=web)" "web-0=$(busy 4)" 'another namespace: its own pod of that name'
is "$(values gpu-monitoring gpu_utilization app=dcgm-exporter)" "dcgm-exporter-x=$(busy 5 6 7)" "GPUs of nobody are the exporter's"
is "$(code '/namespaces/team/pods/*/gpu_temperature')" 404 'a metric without a rule is not found'
is "$(ask /namespaces/other/metrics/gpu_memory_used_mib | "$PYTHON" -c '
import json, sys
item, = json.load(sys.stdin)["items"]
print(item["describedObject"]["kind"], item["describedObject"]["name"], item["value"])')" "Namespace other $(memory 4)" \
    'a namespace has what its pods have'

put "$mnt/control/clock" 'step 1h'
scraped
is "$(values team gpu_utilization app=web)" "web-0=$(busy 0) web-1=$(busy 1 2)" 'an hour later: what it is then'
put "$mnt/gpus/3/control/fault" fallen_off_bus
rmdir "$mnt/workloads/$(awk '!/^#/ { print $4 }' "$mnt/gpus/0/processes")"
scraped
is "$(values team gpu_utilization app=web)" "web-1=$(busy 1 2)" 'a pod that is on no GPU any more has no value'
is "$(values team gpu_utilization app=batch)" '' 'nor has one whose GPU is lost'
sed -i '/^team web-1/d' "$dir/api/pods"
is "$(values team gpu_utilization app=web)" '' 'and neither has one that the cluster does not know'

# --- the example ------------------------------------------------------------------------------------

# of_example EXPRESSION: of the Deployment d, of the autoscaler h and its only metric; calm and rush are the least and the
# most that a server does.
of_example() {
    "$PYTHON" -c '
import math, sys, yaml
things = {thing["kind"]: thing["spec"] for thing in yaml.safe_load_all(open(sys.argv[1]))}
d, h = things["Deployment"], things["HorizontalPodAutoscaler"]
metric = h["metrics"][0]["pods"]
text = lambda labels: ",".join("%s=%s" % item for item in labels.items())
def wanted(value, replicas):
    """As Kubernetes documents it; a tenth too much or too little is left alone."""
    ratio = value / float(metric["target"]["averageValue"])
    count = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
    return min(h["maxReplicas"], max(h["minReplicas"], count))
command = d["template"]["spec"]["containers"][0]["command"]
calm, rush = ([int(load) - int(spread), int(load) + int(spread)] for load, spread, _ in
              (phase.split(":") for phase in command[command.index("--activity") + 1].split(",")))
print(eval(sys.argv[2]))' $example "$1"
}
asked=(team "$(of_example 'metric["metric"]["name"]')" "$(of_example 'text(d["selector"]["matchLabels"])')")

"$PYTHON" tests/manifests.py command $example Deployment | sed "s|^/usr/bin/|${fakegpufs%/*}/|" >"$dir/command"
mapfile -t words <"$dir/command"
put "$mnt/control/clock" resume
background env FAKEGPUFS_ROOT="$mnt" POD_NAME=inference-1 POD_NAMESPACE=team CONTAINER_NAME=server "${words[@]}"
inference=$started
echo "team inference-1 $(of_example 'text(d["template"]["metadata"]["labels"])')" >>"$dir/api/pods"
wait_for grep -q ' inference-1 ' "$mnt/gpus/processes"
ok $? 'a server of inference.yaml is on a GPU'
put "$mnt/control/clock" pause
for gpu in 0 1 2 3 4 5 6 7; do
    ! grep -q ' inference-1 ' "$mnt/gpus/$gpu/processes" || break
done

# phase NAME TIME: so much later; the autoscaler sees what the GPU does.
phase() {
    put "$mnt/control/clock" "step $2"
    scraped
    is "$(values "${asked[@]}")" "inference-1=$(busy "$gpu")" "$1: what its GPU does"
}

# scaled: how many servers are wanted where there are 1, 2, 4 and 8, all of them as busy as this one.
scaled() {
    of_example "[wanted($(busy "$gpu"), n) for n in (1, 2, 4, 8)]"
}
is "$(of_example '[wanted(value, n) for value in calm for n in (1, 2)]')" '[1, 1, 1, 1]' 'calm: whatever is read, one is enough'
is "$(of_example '[wanted(value, n) for value in rush for n in (1, 2)]')" '[2, 3, 2, 3]' 'rush: whatever is read, one more is wanted'
# Each has ten minutes.
phase calm 5m
like "$(scaled)" '^\[1, 1, 2, [34]\]$' 'one is enough, and with more there are less'
phase rush 10m
like "$(scaled)" '^\[2, 3, 6, 8\]$' 'more are wanted, and no more than there may be'
phase 'calm again' 10m
like "$(scaled)" '^\[1, 1, 2, [34]\]$' 'less again'
kill -TERM "$inference"
wait_gone "$inference"
scraped
is "$(values "${asked[@]}")" '' 'a server that ended has no value'

kill -TERM "$adapter" "$server"
wait_gone "$adapter" && wait_gone "$server"
ok $? 'adapter and Prometheus end'
exporter_down
mount_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
