#!/bin/sh
#
# Prints the nodes of mounts as objects for KWOK: Nodes that exist for the API server alone, a document each.
#
#     fakegpufs mount --config k8s/kwok/fleet-a.yaml /run/nodes/a
#     k8s/kwok/nodes.sh /run/nodes/a | kubectl apply -f -
#     k8s/kwok/nodes.sh --cpu 192 --memory 2Ti /run/nodes/a /run/nodes/b >nodes.yaml
#
# Names and labels are those of k8s/nodes of each mount, nvidia.com resources what the labels say. Of several
# mounts the nodes stand one behind the other.
#
# SPDX-License-Identifier: Apache-2.0

usage() {
    cat <<END
usage: nodes.sh [OPTION ...] [MOUNT ...]

  --cpu N          processors of each node (96)
  --memory SIZE    its memory, as Kubernetes writes it (1Ti)
  --pods N         pods that it may have (110)
  --label K=V      a label more on each; may be repeated
  --help           this

MOUNT is \$FAKEGPUFS_ROOT unless given, or else /run/fakegpufs.
END
}

# refuse WORD...: wrong usage.
refuse() {
    echo "nodes.sh: $*; see nodes.sh --help" >&2
    exit 64
}

# need NAME VALUE PATTERN WHAT: the value looks like the extended regular expression.
need() {
    printf '%s\n' "$2" | grep -qxE "$3" || refuse "$1: '$2' is not $4"
}

cpu=96 memory=1Ti pods=110 labels=
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage; exit 0 ;;
    --cpu | --memory | --pods | --label) [ $# -gt 1 ] || refuse "$1 needs a value" ;;
    --) shift; break ;;
    -*) refuse "there is no option $1" ;;
    *) break ;;
    esac
    case $1 in
    --cpu) need "$1" "$2" '[0-9]+m?' 'a number of processors, as 96 or 500m'; cpu=$2 ;;
    --memory) need "$1" "$2" '[0-9]+(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?' 'a size, as 1Ti'; memory=$2 ;;
    --pods) need "$1" "$2" '[0-9]+' 'a number of pods'; pods=$2 ;;
    --label)
        need "$1" "$2" '([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?=([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?' \
            'a label, as zone=a'
        labels="$labels $2"
        ;;
    esac
    shift 2
done
[ $# -gt 0 ] || set -- "${FAKEGPUFS_ROOT:-/run/fakegpufs}"
for mount in "$@"; do
    [ -r "$mount/k8s/nodes" ] || { echo "nodes.sh: there is no mount at '$mount'" >&2; exit 1; }
done

for mount in "$@"; do
    cat "$mount/k8s/nodes" || exit 1
done | awk -v cpu="$cpu" -v memory="$memory" -v pods="$pods" -v labels="$labels" '
    function resources(key,   name) {
        printf "  %s:\n    cpu: \"%s\"\n    memory: %s\n    pods: \"%s\"\n", key, cpu, memory, pods
        for (name in count)
            printf "    nvidia.com/%s: \"%d\"\n", name, count[name] * (name in replicas ? replicas[name] : 1)
    }
    function label(text,   at) {
        at = index(text, "=")
        printf "    %s: \"%s\"\n", substr(text, 1, at - 1), substr(text, at + 1)
    }
    function finish(   name) {
        if (node == "")
            return
        print "spec:\n  taints:\n    - {key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}\nstatus:"
        resources("capacity")
        resources("allocatable")
        print "  phase: Running"
        print "  nodeInfo: {architecture: amd64, operatingSystem: linux, kubeletVersion: fake, kubeProxyVersion: fake,"
        print "             bootID: \"\", containerRuntimeVersion: \"\", kernelVersion: \"\", machineID: \"\","
        print "             osImage: \"\", systemUUID: \"\"}"
        for (name in count)
            delete count[name]
        for (name in replicas)
            delete replicas[name]
    }
    function begin(name,   i, n, more) {
        node = name
        print "---\napiVersion: v1\nkind: Node\nmetadata:"
        printf "  name: %s\n", name
        print "  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: \"0\"}\n  labels:"
        label("kubernetes.io/hostname=" name)
        label("kubernetes.io/arch=amd64")
        label("kubernetes.io/os=linux")
        label("type=kwok")
        n = split(labels, more, " ")
        for (i = 1; i <= n; i++)
            label(more[i])
    }
    /^#/ { next }
    {
        if ($1 != node) {
            finish()
            begin($1)
        }
        label($2)
        if ($2 == "nvidia.com/gpu.present=true")
            label("nvidia.com/gpu=present")
        # nvidia.com/gpu.count=8, nvidia.com/mig-1g.5gb.count=7: what the node has of a resource.
        if ($2 ~ /^nvidia.com\/[^=]*\.(count|replicas)=/) {
            value = $2
            sub(/^[^=]*=/, "", value)
            name = $2
            sub(/^nvidia.com\//, "", name)
            sub(/=.*/, "", name)
            if (sub(/\.count$/, "", name))
                count[name] = value
            else if (sub(/\.replicas$/, "", name))
                replicas[name] = value
        }
    }
    END { finish() }'
