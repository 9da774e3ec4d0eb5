#!/usr/bin/env bash
#
# A mount with the GPUs of several nodes: which are where, what they are called, what is refused.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts

# identity GPU NAME...: these, in one line.
identity() {
    local gpu=$1 name
    shift
    for name in "$@"; do
        cat "$mnt/gpus/$gpu/identity/$name" 2>/dev/null || echo -
    done | xargs
}

# --- names ----------------------------------------------------------------------------------------

cat >"$dir/fleet.yaml" <<'END'
gpus:
  - {count: 8, model: H100-80GB-HBM3, node: "kwok-[08-10]"}
  - {count: 20, model: V100-SXM2-16GB, node: big}
  - {model: T4, node: mixed}
  - {model: L4, node: mixed}
numa: {nodes: 2}
workloads:
  - {name: train, devices: [kwok-09/3, big/19], activity: 90, memory: 8GiB, namespace: default, pod: train-0, container: c}
faults:
  - {gpu: kwok-10/7, fault: xid 31}
END
like "$(bounded "$fakegpufs" config check "$dir/fleet.yaml" | head -n 1)" ': 5 nodes with 46 GPUs$' 'a file may have several nodes'
like "$(bounded "$fakegpufs" config check "$dir/fleet.yaml" | grep ' 45 ')" '0005:17:00.0 L4 mixed$' 'and says which GPU is where'
mount_up -c "$dir/fleet.yaml"
is "$(identity 0 node node_index node_bus_id bus_id)" 'kwok-08 0 00000000:06:00.0 00000000:06:00.0' 'the first GPU of the first node'
is "$(identity 11 node node_index node_bus_id bus_id index minor_number)" \
    'kwok-09 3 00000000:39:00.0 00000001:39:00.0 11 11' 'GPUs of others have their own place in the mount, and one on their node'
is "$(identity 40 node node_index node_bus_id bus_id)" 'big 16 00000001:17:00.0 00000004:17:00.0' 'a node may need two domains'
is "$(identity 45 node node_index node_bus_id name)" 'mixed 1 00000000:17:00.0 NVIDIA L4' 'GPUs of a node may differ'
is "$(grep -c ' node_index ' "$mnt/gpus/inventory")" 46 'the inventory has it of all'
is "$(cat "$mnt"/gpus/by-uuid/*/identity/uuid | sort -u | wc -l)" 46 'every UUID is one'
is "$(for i in 0 3 4 7 8 12 24 33 34 43; do bdf=$(cat "$mnt/gpus/$i/identity/bus_id"); bdf=${bdf,,}
    cat "$mnt/sys/bus/pci/devices/${bdf:4}/numa_node"; done | xargs)" '0 0 1 1 0 1 0 0 1 1' 'NUMA nodes are dealt out on each node'
is "$(cat "$mnt/gpus/11/metrics/utilization_gpu_percent" "$mnt/gpus/43/metrics/utilization_gpu_percent" | xargs)" '90 90' \
    'a workload names its GPUs by node and index'
is "$(cat "$mnt/gpus/23/metrics/xid_last")" 31 'and so does a fault'
is "$(bounded "$fakegpufs" fault --mount "$mnt" mixed/1 'xid 43' 2>&1; cat "$mnt/gpus/45/metrics/xid_last")" 43 'and a command'

# --- links ----------------------------------------------------------------------------------------

is "$(awk '!/^#/ {print $5}' "$mnt/gpus/0/nvlinks" | sort -nu | xargs)" '0 1 2 3' 'a node has its switches'
is "$(awk '!/^#/ {print $5}' "$mnt/gpus/15/nvlinks" | sort -nu | xargs)" '6 7 8 9' 'and another one has others'
is "$(for i in {24..43}; do awk '!/^#/ && $4 == "gpu" {print ($5 >= 24 && $5 <= 43)}' "$mnt/gpus/$i/nvlinks"; done | sort -u)" 1 \
    'direct links stay on a node'
is "$(ls "$mnt/gpus/by-node" | xargs)" 'big kwok-08 kwok-09 kwok-10 mixed' 'nodes are directories of GPUs'
is "$(ls "$mnt/gpus/by-node/kwok-09" | xargs) $(readlink "$mnt/gpus/by-node/kwok-09/7")" '0 1 2 3 4 5 6 7 ../../15' 'that lead to them'
is "$(cat "$mnt/gpus/by-node/big/19/identity/node_index"; cat "$mnt/gpus/by-node/mixed/2/identity/uuid" 2>&1 | grep -o 'No such.*')" \
    $'19\nNo such file or directory' 'by their position there'

# --- Kubernetes -----------------------------------------------------------------------------------

is "$(awk '!/^#/ {print $1}' "$mnt/k8s/nodes" | uniq | xargs)" 'kwok-08 kwok-09 kwok-10 big mixed' 'every node has labels'
is "$(grep -E '^(kwok-09|big) .*gpu.(count|product)=' "$mnt/k8s/nodes" | xargs)" \
    'kwok-09 nvidia.com/gpu.count=8 kwok-09 nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 big nvidia.com/gpu.count=20 big nvidia.com/gpu.product=Tesla-V100-SXM2-16GB' \
    'of its own GPUs'
put "$mnt/gpus/8/control/fault" fallen_off_bus
is "$(grep -E '^kwok-0. .*gpu.count=' "$mnt/k8s/nodes" | xargs)" 'kwok-08 nvidia.com/gpu.count=8 kwok-09 nvidia.com/gpu.count=7' \
    'a GPU that is lost is missing on its node alone'
put "$mnt/gpus/8/control/fault" recover
cat "$mnt/k8s/topology.yaml" >"$dir/topology.yaml"
cat "$mnt/gpus/inventory" >"$dir/inventory"
cat "$mnt/control/config" >"$dir/effective.yaml"
mount_down

# --- the same nodes by other ways -----------------------------------------------------------------

# places FILE: what must not change: who is where.
places() {
    grep -E '^[0-9]+ (uuid|node|node_index|bus_id|name) ' "$1"
}
mount_up -c "$dir/effective.yaml"
is "$(places "$mnt/gpus/inventory")" "$(places "$dir/inventory")" 'the effective configuration is the same fleet'
mount_down
# The form has one product for a node, so without the mixed one.
sed '/^  mixed:/,$d' "$dir/topology.yaml" >"$dir/nodes.yaml"
mount_up --all-nodes -c "$dir/nodes.yaml"
is "$(places "$mnt/gpus/inventory" | grep -v ' name ')" "$(places "$dir/inventory" | grep -vE '^4[45] | name ')" \
    'so are all nodes of the topology'
is "$(grep -c 'pod: train-0' "$mnt/k8s/topology.yaml")" 2 'with its pods'
mount_down
mount_up --node kwok-09 -c "$dir/nodes.yaml"
is "$(identity 3 uuid node) $(ls "$mnt/gpus" | grep -c '^[0-9]')" "$(awk '$1 == 11 && $2 == "uuid" {print $3}' "$dir/inventory") - 8" \
    'a node alone has the same GPUs, and no other node to tell of'
is "$(awk '!/^#/ {print $1}' "$mnt/k8s/nodes" | uniq) $(ls "$mnt/gpus/by-node")" 'kwok-09 kwok-09' 'its labels are its own'
mount_down
cat >"$dir/short.yaml" <<'END'
nodes:
  a: {gpu-product: Tesla-T4, gpu-count: 2}
  b: {gpu-product: Tesla-K80, gpu-count: 1}
END
is "$(bounded "$fakegpufs" simulate --all-nodes -c "$dir/short.yaml" --for 1s 2>/dev/null | tail -n +2 | cut -d, -f2 | sort -u | xargs)" \
    '0 1 2' 'simulate takes all nodes, too'

# --- a second configuration -----------------------------------------------------------------------

cp "$dir/fleet.yaml" "$dir/live.yaml"
mount_up -c "$dir/live.yaml"
energy=$(cat "$mnt/gpus/8/metrics/energy_total_mj")
sed -e 's/kwok-\[08-10\]/kwok-[09-11]/' -e '/^faults/,$d' "$dir/fleet.yaml" >"$dir/next.yaml"
mv "$dir/next.yaml" "$dir/live.yaml"
wait_for eval '[[ $(identity 0 node) == kwok-09 ]]'
ok $? 'nodes come and go with the configuration'
is "$(identity 3 uuid)" "$(awk '$1 == 11 && $2 == "uuid" {print $3}' "$dir/inventory")" 'a GPU stays itself on its node'
(($(cat "$mnt/gpus/0/metrics/energy_total_mj") >= energy))
ok $? 'and goes on' || diag "$(cat "$mnt/gpus/0/metrics/energy_total_mj") after $energy"
is "$(identity 16 node)" kwok-11 'and a new node is there'
mount_down

# --- refusals -------------------------------------------------------------------------------------

# refused YAML: what is said of it, without the file.
refused() {
    echo "$1" >"$dir/bad.yaml"
    bounded "$fakegpufs" config check "$dir/bad.yaml" 2>&1 | sed 's/.*bad.yaml//'
}
shape='allowed: a host name, or several as node-\[0-511\]: at most 4096, the smaller number first$'
for bad in 'a b' 'kwok-[3-1]' 'kwok-[0-4096]' 'kwok-[1]' 'kwok-[0-1' 'kwok-[a-b]' '-[0-1]' 'a[0-1][0-1]' 'a/b' 'a"b' 'x[0-1]!' \
    'x[0000000000-1]'; do
    like "$(refused "gpus: {node: '$bad'}")" "^:1:14: gpus.node: found .*; $shape" "no node is called '$bad'"
done
like "$(refused 'gpus: [{node: a}, {count: 2}]')" \
    "^:1:19: gpus\[1\].node: GPU 1 has none, those before it have one; allowed: a node for all GPUs, or for none$" \
    'all GPUs have a node, or none has'
like "$(refused 'gpus: [{node: a}, {node: b}, {node: a}]')" \
    "^:1:37: gpus\[2\].node: 'a' is a duplicate: GPU 0 is on it, and the GPUs of a node follow each other$" 'a node is in one piece'
like "$(refused 'gpus: {node: "a[0-1]", uuid: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1}')" '2 GPUs cannot share one uuid$' \
    'one UUID is not for two nodes'
like "$(refused 'gpus: {node: "a[0-1]", count: 4000}')" ': gpus: 8000 GPUs; allowed: at most 4096$' 'there are not more GPUs than fit'
like "$(refused 'gpus: {node: a, count: 2}
overrides: {1: {node: b}}')" 'an override cannot move a GPU to another node$' 'a GPU stays where it is'
like "$(refused 'gpus: {node: a, count: 2}
workloads: [{devices: a/2}]')" "there is no GPU 'a/2'" 'a GPU that the node does not have is none'
like "$(NUM_FAKE_GPUS=3 bounded "$fakegpufs" config check "$dir/fleet.yaml" 2>&1)" \
    'environment: NUM_FAKE_GPUS: the configuration says which GPUs are on which node; allowed: to leave it empty$' \
    'NUM_FAKE_GPUS is not for several nodes'
like "$(bounded "$fakegpufs" mount --all-nodes -c "$dir/fleet.yaml" "$mnt" 2>&1)" "has no 'nodes' to take all of$" \
    '--all-nodes is for the form with nodes'
like "$(bounded "$fakegpufs" mount --all-nodes --node a -c "$dir/nodes.yaml" "$mnt" 2>&1)" \
    '\-\-all-nodes is for use with --config and without --node' 'and not for one of them'
is "$mount_deaths" '' 'no worker died on the way'
tap_done
