#!/usr/bin/env bash
#
# The manifests of k8s/: they fit together and ask for no more than they need, the chart is the one that is made from them, and
# what they run does what it should on a live mount: probes, the labeller, the examples.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
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

manifests text gpu-labeller label-node >"$dir/label-node"
mkdir "$dir/bin"
cat >"$dir/bin/kubectl" <<'END'
#!/bin/sh
echo "$@" >>"$KUBECTL_LOG"
[ ! -e "$KUBECTL_LOG.refuse" ]
END
chmod +x "$dir/bin/kubectl"
# labeller: starts it in the smallest of shells, with a kubectl that only notes what it is told.
labeller() {
    background env PATH="$dir/bin:$PATH" KUBECTL_LOG="$dir/kubectl.log" NODE_NAME=worker-1 FAKEGPUFS_ROOT="$mnt" \
        DONE="$dir/labelled" INTERVAL=0.1 busybox sh "$dir/label-node"
}
: >"$dir/kubectl.log"
touch "$dir/kubectl.log.refuse"
labeller
wait_for test -s "$dir/kubectl.log"
is "$([[ -e $dir/labelled ]] && echo ready)" '' 'a labeller that is refused is not ready'
rm "$dir/kubectl.log.refuse"
wait_for test -e "$dir/labelled"
ok $? 'and asks again until it is not'
is "$(tail -n 1 "$dir/kubectl.log")" \
    "label --overwrite node worker-1 nvidia.com/gpu=present $(xargs <"$mnt/k8s/labels")" 'the node has the labels of the mount'
like "$(tail -n 1 "$dir/kubectl.log")" 'gpu.count=8 .*gpu.product=NVIDIA-A100-SXM4-40GB .*gpu.memory=40960 .*mig.strategy=' \
    'count, product, memory and MIG strategy'
put "$mnt/gpus/3/control/fault" fallen_off_bus
wait_for eval 'tail -n 1 "$dir/kubectl.log" | grep -q gpu.count=7'
ok $? 'a GPU that is lost is taken off'

# --- the examples ---------------------------------------------------------------------------------

manifests command k8s/examples/job.yaml Job | sed 's/:30s/:1s/; s/:5m/:1s/; s/:20s/:1s/' | here >"$dir/job"
mapfile -t words <"$dir/job"
output=$dir/job.log background env FAKEGPUFS_ROOT="$mnt" JOB_COMPLETION_INDEX=2 POD_NAME=train-2-abcde POD_NAMESPACE=team \
    CONTAINER_NAME=trainer "${words[@]}"
wait_for eval 'series "^DCGM_FI_DEV_FB_USED\{.*container=\"trainer\"" | grep -q "pod=\"train-2-abcde\".* 20480$"'
ok $? 'a part of the Job is on a GPU with its pod' || diag "$(cat "$dir/job.log")"
like "$(cat "$mnt/gpus/processes")" ' train-2 team train-2-abcde trainer ' 'its workload has its number'
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
like "$(cat "$mnt/gpus/0/metrics/utilization_gpu_percent")" '^[0-9]+$' 'and GPU 0 is back'

# --- the driver goes ------------------------------------------------------------------------------

wait_for test -e "$dir/labelled"
mount_down
wait_for eval '[[ ! -e $dir/labelled ]]'
ok $? 'without a mount the labeller is not ready'
is "$(status "$ready") $(status "$live")" '503 200' 'and the exporter is not, but alive'
mount_up --gpus 2
wait_for eval '[[ $(tail -n 1 "$dir/kubectl.log") == *gpu.count=2* ]]'
ok $? 'the next mount is labelled again'
mount_down
exporter_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
