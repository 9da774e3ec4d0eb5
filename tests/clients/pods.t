#!/usr/bin/env bash
#
# fakegpu-pods against a kubelet made from Kubernetes' own package of the pod-resources interface, on gRPC for Go.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

pods=$(cd "$BUILD" && pwd)/fakegpu-pods
[[ -x $pods ]] || skip_all 'fakegpu-pods was not built: its libraries are not here'
need_client go
need_mounts
mount_up --gpus 3
unset POD_NAMESPACE POD_NAME
socket=$dir/kubelet.sock
said=$dir/kubelet.out

mkfifo "$dir/kubelet.in"
: >"$said"
"$bin/podresources" "$socket" <"$dir/kubelet.in" >"$said" 2>"$dir/kubelet.log" &
mount_owned+=($!)
disown $!
exec 9>"$dir/kubelet.in"
wait_for test -S "$socket" || bail "no kubelet: $(cat "$dir/kubelet.log")"

heard=0
# kubelet_says JSON: on one line; returns when it is in force.
kubelet_says() {
    echo "${1//$'\n'/ }" >&9
    ((++heard))
    wait_for has_lines "$heard" && [[ $(tail -n 1 "$said") == ok ]]
}

has_lines() {
    (($(wc -l <"$said") >= $1))
}

look() {
    bounded "$pods" --root "$mnt" --socket "$socket" --once 2>&1
}

on() {
    awk '!/^#/ { print $5 "/" $6 "/" $7 "=" $3 }' "$mnt/gpus/$1/processes" | tr '\n' ' '
}

is "$(look)" '' 'a node without pods'
kubelet_says '{"pod_resources": [
  {"name": "web", "namespace": "default", "containers": [{"name": "nginx", "cpu_ids": [0, 1]}]},
  {"name": "train-0", "namespace": "ml", "containers": [
    {"name": "main", "cpu_ids": [2, 3, 4], "memory": [{"memory_type": "memory", "size": 1073741824}],
     "devices": [
      {"resource_name": "nvidia.com/gpu", "device_ids": ["'"$(cat "$mnt/gpus/0/identity/uuid")"'"],
       "topology": {"nodes": [{"ID": 0}]}},
      {"resource_name": "nvidia.com/gpu", "device_ids": ["'"$(cat "$mnt/gpus/1/identity/uuid")"'"],
       "topology": {"nodes": [{"ID": 1}]}}],
     "dynamic_resources": [{"claim_name": "claim", "claim_namespace": "ml",
       "claim_resources": [{"driver_name": "example.com", "pool_name": "p", "device_name": "d"}]}]},
    {"name": "claims", "dynamic_resources": [{"claim_name": "gpu", "claim_namespace": "ml",
       "claim_resources": [{"driver_name": "gpu.nvidia.com", "pool_name": "node", "device_name": "gpu-2",
         "cdi_devices": [{"name": "k8s.gpu.nvidia.com/device=gpu-2"}]}]}]},
    {"name": "side", "devices": [{"resource_name": "nvidia.com/gpu", "device_ids": ["2"]}]}]}]}'
ok $? 'a node with pods' || diag "$(cat "$said")"
told=$(look); ok $? 'is understood' || diag "$told"
is "$(on 0)$(on 1)$(on 2)" 'ml/train-0/main=100 ml/train-0/main=100 ml/train-0/claims=50 ml/train-0/side=50 ' \
    'each container on its GPUs, by device plugin or by claim'

# More than one frame and more than a window of HTTP/2.
kubelet_says "$("$PYTHON" -c '
import json
print(json.dumps({"pod_resources": [
    {"name": "pod-%d" % i, "namespace": "n" * 60, "containers": [{"name": "c", "cpu_ids": list(range(2000))}]}
    for i in range(500)] + [{"name": "last", "namespace": "ml", "containers": [
        {"name": "main", "devices": [{"resource_name": "nvidia.com/gpu", "device_ids": ["1"]}]}]}]}))')"
ok $? 'a node with very many'
look >/dev/null; ok $? 'is understood, too'
is "$(on 0)$(on 1)$(on 2)" 'ml/last/main=100 ' 'and those of before are gone'
exec 9>&-
stop_background
mount_down; ok $? 'the mount goes'
tap_done
