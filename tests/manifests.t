#!/usr/bin/env bash
#
# The manifests of k8s/: they fit together and ask for no more than they need, the chart is the one that is made from them, and
# what they run does what it should on a live mount: probes, the labeller, the examples.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
. "${0%/*}/apiserver.sh"
need_api
need_mounts
cd "$tests/.." || bail 'no top directory'

manifests() {
    bounded "$PYTHON" tests/manifests.py "$@"
}

is "$(manifests faults 2>&1)" '' 'the manifests fit together, with the least privileges'
k8s/chart/make-chart.sh "$dir/chart"
is "$(diff -r "$dir/chart/templates" k8s/chart/templates; diff -r "$dir/chart/files" k8s/chart/files)" '' \
    'the chart is the one that make-chart.sh makes'
manifests text fakegpufs node.yaml >"$dir/node.yaml"
[[ -s $dir/node.yaml ]] && bounded "$fakegpufs" config check "$dir/node.yaml" >/dev/null
ok $? 'the configuration of a node is one'

# --- probes ---------------------------------------------------------------------------------------

# here: a command of a container, a word in a line, for the programs and the mount of this test.
here() {
    sed "s|^/usr/bin/|${fakegpufs%/*}/|; s|^/run/fakegpufs/driver\$|$mnt|"
}
# run_here: runs it.
run_here() {
    mapfile -t words < <(here)
    FAKEGPUFS_ROOT=$mnt bounded "${words[@]}"
}
for probe in startupProbe readinessProbe livenessProbe; do
    manifests probe fakegpufs driver "$probe" | run_here >/dev/null 2>&1
    is $? 1 "without a mount the driver fails its $probe"
done
manifests probe fakegpufs pods readinessProbe | run_here >/dev/null 2>&1
is $? 1 'without a kubelet what shows pods is not ready'
mapfile -t words < <(manifests args fakegpufs pods)
bounded "${fakegpufs%/*}/fakegpu-pods" "${words[@]}" --version >/dev/null
ok $? 'and its options are known'
NODE_NAME=worker-1 mount_up -c "$dir/node.yaml"
for probe in startupProbe readinessProbe livenessProbe; do
    manifests probe fakegpufs driver "$probe" | run_here >/dev/null 2>&1
    is $? 0 "with one it passes its $probe"
done
exporter_up --collectors k8s/observability/counters.csv
ready=$(manifests probe dcgm-exporter exporter readinessProbe)
live=$(manifests probe dcgm-exporter exporter livenessProbe)
is "$(status "$ready") $(status "$live")" '200 200' 'an exporter with a mount is ready and alive'

# --- the labeller ---------------------------------------------------------------------------------

token_is first-secret-token
api_up
# is_ready: the labeller's probe, in the environment that a pod has; its service account is elsewhere here.
is_ready() {
    local words
    mapfile -t words < <(manifests probe gpu-labeller labeller readinessProbe | here)
    NODE_NAME=worker-1 KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=${api_url##*:} FAKEGPUFS_ROOT=$mnt \
        bounded "${words[@]}" "${account[@]}" >/dev/null 2>&1
}
is_ready; is $? 1 'a labeller whose node is without labels is not ready'
api_does '{"status": 403, "message": "no", "verb": "PATCH"}'
output=$dir/labeller.log background env NODE_NAME=worker-1 KUBERNETES_SERVICE_HOST=127.0.0.1 \
    KUBERNETES_SERVICE_PORT="${api_url##*:}" FAKEGPUFS_ROOT="$mnt" "$labels" "${account[@]}" --interval 100ms
wait_for grep -q 'refuses to patch' "$dir/labeller.log"
is_ready; is $? 1 'nor is one that is refused'
api_does
wait_for is_ready; ok $? 'and asks again until it is not'
is "$(node_labels)" "$( (cat "$mnt/k8s/labels"; echo nvidia.com/gpu=present; echo kubernetes.io/os=linux) | LC_ALL=C sort)" \
    'the node has the labels of the mount'
like "$(node_labels | xargs)" 'gpu.count=8 .*gpu.memory=40960 .*gpu.product=NVIDIA-A100-SXM4-40GB .*mig.strategy=' \
    'count, memory, product and MIG strategy'
put "$mnt/gpus/3/control/fault" fallen_off_bus
wait_for node_has nvidia.com/gpu.count=7; ok $? 'a GPU that is lost is taken off'
verbs=$(manifests verbs nodes)
is "$(cut -d ' ' -f 1 "$api/requests" | sort -u | tr 'A-Z\n' 'a-z ')" "$verbs " 'it needs what it may, and no more'

# --- the examples ---------------------------------------------------------------------------------

manifests command k8s/examples/job.yaml Job | sed 's/:30s/:1s/; s/:5m/:1s/; s/:20s/:1s/; s/[$](POD_NAMESPACE)/team/' | here >"$dir/job"
mapfile -t words <"$dir/job"
output=$dir/job.log background env FAKEGPUFS_ROOT="$mnt" JOB_COMPLETION_INDEX=2 POD_NAME=train-2-abcde POD_NAMESPACE=team \
    CONTAINER_NAME=trainer "${words[@]}"
wait_for eval 'series "^DCGM_FI_DEV_FB_USED\{.*container=\"trainer\"" | grep -q "pod=\"train-2-abcde\".* 20480$"'
ok $? 'a part of the Job is on a GPU with its pod' || diag "$(cat "$dir/job.log")"
like "$(cat "$mnt/gpus/processes")" ' team-train-2 team train-2-abcde trainer ' 'its workload has its namespace and its number'
wait_gone "$started"
ok $? 'and ends by itself'

manifests command k8s/examples/inference.yaml Deployment | here >"$dir/server"
mapfile -t words <"$dir/server"
background env FAKEGPUFS_ROOT="$mnt" POD_NAME=inference-1 POD_NAMESPACE=team CONTAINER_NAME=server "${words[@]}"
server=$started
wait_for eval 'series "^DCGM_FI_DEV_GPU_UTIL\{.*pod=\"inference-1\"" | grep -qE " [1-9][0-9]*$"'
ok $? 'a server of the Deployment is what the autoscaler looks at'
is "$(awk '/seriesQuery/' k8s/examples/adapter-values.yaml | grep -oE 'DCGM_\w+' | while read -r family; do
    series "^$family\{.*pod=\"inference-1\",namespace=\"team\"|^$family\{.*namespace=\"team\",pod=\"inference-1\"" |
        wc -l
done | xargs)" '1 1' 'the rules of the adapter find its series'
is "$(grep -oE 'metric: \{name: \w+' k8s/examples/inference.yaml | cut -d ' ' -f 3)" \
    "$(sed -nE 's/.*name: \{as: (\w+)\}/\1/p' k8s/examples/adapter-values.yaml | head -n 1)" 'by the name that it asks for'
kill -TERM "$server"
wait_gone "$server"

put "$mnt/gpus/3/control/fault" recover
manifests text gpu-off-the-bus scenario.yaml >"$dir/scenario.yaml"
manifests command k8s/examples/fault-cronjob.yaml CronJob | sed "s|^/etc/scenario/|$dir/|; s/^1\$/600/" | run_here >"$dir/said" 2>&1
ok $? 'the scenario of the CronJob comes as it expects' || diag "$(cat "$dir/said")"
like "$(head -n 1 "$dir/said")" " GPUs of $mnt\$" "on the node's mount, not on one of its own"
like "$(cat "$mnt/gpus/0/metrics/utilization_gpu_percent")" '^[0-9]+$' 'and GPU 0 is back'

# --- nodes that are only simulated ------------------------------------------------------------------

for fleet in k8s/kwok/fleet-?.yaml; do
    like "$(bounded "$fakegpufs" config check "$fleet" | head -n 1)" ': 500 nodes with 4000 GPUs$' "$fleet is half a thousand nodes"
done
# nodes OPTION...: nodes.sh in the smallest of shells, as one line of what matters for each node.
nodes() {
    bounded busybox sh k8s/kwok/nodes.sh "$@" | "$PYTHON" -c '
import sys, yaml
for node in yaml.safe_load_all(sys.stdin):
    meta, status, labels = node["metadata"], node["status"], node["metadata"]["labels"]
    assert (node["apiVersion"], node["kind"], labels["type"]) == ("v1", "Node", "kwok")
    assert meta["annotations"]["kwok.x-k8s.io/node"] == "fake" and labels["kubernetes.io/hostname"] == meta["name"]
    assert node["spec"]["taints"] == [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    assert status["capacity"] == status["allocatable"] and all(type(v) is str for v in [*labels.values(), *status["capacity"].values()])
    rest = " ".join(f"{key}={value}" for key, value in sorted(status["capacity"].items()))
    assert (labels.get("nvidia.com/gpu") == "present") == (labels["nvidia.com/gpu.present"] == "true")
    print(meta["name"], labels.get("nvidia.com/gpu.product", "-"), labels.get("zone", "-"), rest)'
}
mkdir "$dir/a" "$dir/b"
cat >"$dir/a.yaml" <<'END'
gpus: [{count: 8, model: H100-80GB-HBM3, node: "kwok-[0-1]"}, {model: T4, node: edge}]
END
echo 'gpus: {count: 2, model: A100-SXM4-40GB, mig_mode: true, node: cut}
mig_strategy: mixed' >"$dir/b.yaml"
for x in a b; do
    bounded "$fakegpufs" mount --pid-file "$dir/$x.pid" -c "$dir/$x.yaml" "$dir/$x" 2>/dev/null
    mount_owned+=("$(cat "$dir/$x.pid")")
done
put "$dir/b/gpus/0/mig/instances" 'create 3g.20gb'
put "$dir/b/gpus/0/mig/instances" 'create 3g.20gb'
is "$(nodes --cpu 64 --memory 512Gi --pods 30 --label zone=b "$dir/a")" \
    'kwok-0 NVIDIA-H100-80GB-HBM3 b cpu=64 memory=512Gi nvidia.com/gpu=8 pods=30
kwok-1 NVIDIA-H100-80GB-HBM3 b cpu=64 memory=512Gi nvidia.com/gpu=8 pods=30
edge Tesla-T4 b cpu=64 memory=512Gi nvidia.com/gpu=1 pods=30' 'nodes.sh prints the nodes of a mount for KWOK'
is "$(nodes "$dir/b" "$dir/a" | cut -d' ' -f1 | xargs)" 'cut kwok-0 kwok-1 edge' 'and of several'
like "$(nodes "$dir/b")" 'nvidia.com/gpu=0 nvidia.com/mig-3g.20gb=2 ' 'MIG devices are resources of their own'
put "$dir/a/gpus/16/control/fault" fallen_off_bus
is "$(nodes "$dir/a" | sed -n '/^edge/p')" 'edge - - cpu=96 memory=1Ti nvidia.com/gpu=0 pods=110' 'a node that has lost its GPUs has none'
put "$dir/a/gpus/16/control/fault" recover
is "$(FAKEGPUFS_ROOT=$mnt nodes | cut -d' ' -f1,2,6)" 'worker-1 NVIDIA-A100-SXM4-40GB nvidia.com/gpu=8' 'a mount with one node has one'
for wrong in '--cpu many' '--memory 1TB' '--pods -1' '--label a' '--label a=b"c' --nonsense --cpu; do
    read -ra words <<<"$wrong"
    said=$(bounded busybox sh k8s/kwok/nodes.sh "${words[@]}" 2>&1)
    is "$? $(wc -l <<<"$said")" '64 1' "nodes.sh $wrong is refused with a sentence"
done
is "$(bounded busybox sh k8s/kwok/nodes.sh "$dir" 2>&1)" "nodes.sh: there is no mount at '$dir'" 'and so is what is no mount'
# What the pod runs, with these mounts: the exporter serves the directory that both are in.
manifests probes kwok-gpus | sed "s|/run/fakegpufs/|$dir/|" | while read -r probe; do
    read -ra words <<<"$probe"
    bounded "${fakegpufs%/*}/${words[0]##*/}" "${words[@]:1}" >/dev/null 2>&1 || echo "$probe"
done >"$dir/probes"
is "$(cat "$dir/probes")" '' 'its probes pass'
for x in a b; do
    bounded "$fakegpufs" umount "$dir/$x"
done
manifests probes kwok-gpus | sed "s|/run/fakegpufs/|$dir/|" | while read -r probe; do
    read -ra words <<<"$probe"
    bounded "${fakegpufs%/*}/${words[0]##*/}" "${words[@]:1}" >/dev/null 2>&1 && echo "$probe"
done >"$dir/probes"
is "$(cat "$dir/probes")" '' 'and fail without a mount'

# --- the driver goes ------------------------------------------------------------------------------

wait_for is_ready
mount_down
is_ready; is $? 1 'without a mount the labeller is not ready'
is "$(status "$ready") $(status "$live")" '503 200' 'and the exporter is not, but alive'
mount_up --gpus 2
wait_for node_has nvidia.com/gpu.count=2; ok $? 'the next mount is labelled again'
mount_down
exporter_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
