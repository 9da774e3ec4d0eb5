#!/usr/bin/env bash
#
# The manifests of k8s/: every overlay and every example decodes strictly into the types of Kubernetes and of the Prometheus
# operator, and what the Helm chart renders is what kustomize builds.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
need_client manifests

k8s=$tests/../k8s

# kinds FILE: how many of each; nothing and what is wrong on stderr when something is.
kinds() {
    client manifests check <"$1" | sort | uniq -c | xargs
}

# against_helm NAME VALUES: how $dir/NAME.yaml, by kustomize, differs from the chart with these values.
against_helm() {
    echo "$2" >"$dir/values.yaml"
    client manifests helm "$k8s/chart" "$dir/values.yaml" >"$dir/chart.yaml"
    client manifests same "$dir/$1.yaml" "$dir/chart.yaml" 2>&1
}

common='1 ClusterRole 1 ClusterRoleBinding 3 ConfigMap 4 DaemonSet 1 Namespace 4 NetworkPolicy 1 Service 1 ServiceAccount'
for overlay in generic kind k3s; do
    client manifests kustomize "$k8s/overlays/$overlay" >"$dir/$overlay.yaml" 2>"$dir/log"
    ok $? "kustomize builds $overlay" || diag "$(cat "$dir/log")"
    is "$(kinds "$dir/$overlay.yaml" 2>&1)" "$common" 'and its objects are of Kubernetes'"'"' types'
    values=$k8s/chart/values-$overlay.yaml
    [[ $overlay != generic ]] || values=$k8s/chart/values.yaml
    client manifests helm "$k8s/chart" "$values" >"$dir/chart.yaml" 2>"$dir/log"
    ok $? 'Helm renders the chart' || diag "$(cat "$dir/log")"
    is "$(client manifests same "$dir/$overlay.yaml" "$dir/chart.yaml" 2>&1)" '' 'with the same objects'
done
is "$(client manifests same "$dir/generic.yaml" "$dir/kind.yaml" 2>&1 | tail -n 1)" '16 objects' \
    'overlays differ, and that would be seen'

# What is not there by itself: a component for kustomize, a value for Helm.
mkdir "$dir/operator"
cp -r "$k8s" "$dir/operator/k8s"
cat >"$dir/operator/kustomization.yaml" <<'END'
resources: [k8s/overlays/generic]
components: [k8s/components/service-monitor, k8s/components/gpu-feature-discovery]
END
client manifests kustomize "$dir/operator" >"$dir/operator.yaml" 2>"$dir/log"
is "$(kinds "$dir/operator.yaml" 2>&1)" "${common/4 DaemonSet 1 Namespace 4/5 DaemonSet 1 Namespace 5} 1 ServiceMonitor" \
    'a ServiceMonitor is one for the operator; the feature discovery is a DaemonSet' || diag "$(cat "$dir/log")"
is "$(against_helm operator '{serviceMonitor: true, featureDiscovery: {enabled: true}}')" '' 'from Helm, too'

# An image that is elsewhere, and pods that are given less: for kustomize, and for Helm.
cat >"$dir/operator/kustomization.yaml" <<'END'
resources: [k8s/overlays/generic]
images: [{name: nvidia/k8s-device-plugin, newName: elsewhere/nvidia/plugin, newTag: v9.9.9}]
patches:
  - patch: |
      apiVersion: apps/v1
      kind: DaemonSet
      metadata: {name: nvidia-device-plugin, namespace: gpu-monitoring}
      spec:
        template:
          spec:
            containers: [{name: plugin, env: [{name: DEVICE_LIST_STRATEGY, value: envvar}]}]
END
client manifests kustomize "$dir/operator" >"$dir/elsewhere.yaml" 2>"$dir/log"
is "$(grep -c 'image: elsewhere/nvidia/plugin:v9.9.9$' "$dir/elsewhere.yaml")" 1 'its image can be elsewhere'
is "$(grep -A 1 'DEVICE_LIST_STRATEGY$' "$dir/elsewhere.yaml" | tail -n 1 | xargs)" 'value: envvar' 'and its strategy another'
is "$(against_helm elsewhere '{devicePlugin: {image: "elsewhere/nvidia/plugin:v9.9.9", deviceListStrategy: envvar}}')" '' 'from Helm, too'
is "$(against_helm generic '{devicePlugin: {enabled: false}}' | grep -c "is not in $dir/chart.yaml")" 3 \
    'without the device plugin the chart has three objects less'

# What pods do: by what docs/kubernetes.md says, and for Helm.
sed -n '/path: .*containers\/1\/args/{s/^ *//; p}' "$tests/../docs/kubernetes.md" >"$dir/patch"
cat >"$dir/operator/kustomization.yaml" <<END
resources: [k8s/overlays/generic]
patches: [{target: {kind: DaemonSet, name: fakegpufs}, path: patch.yaml}]
END
cp "$dir/patch" "$dir/operator/patch.yaml"
client manifests kustomize "$dir/operator" >"$dir/idle.yaml" 2>"$dir/log"
is "$(grep -A 4 -- '- --activity$' "$dir/idle.yaml" | xargs | cut -d ' ' -f 1-8)" '- --activity - 30 - --memory - 4GiB' \
    'pods can be given another activity' || diag "$(cat "$dir/log")"
is "$(against_helm idle '{pods: {activity: 30, memory: 4GiB}}')" '' 'from Helm, too'

# Nodes of a pool, with a taint: by what docs/kubernetes.md says, and for Helm.
sed -n '/^resources: \[k8s\/overlays\/generic\]/,/^```/{/^```/!p}' "$tests/../docs/kubernetes.md" >"$dir/operator/kustomization.yaml"
client manifests kustomize "$dir/operator" >"$dir/pool.yaml" 2>"$dir/log"
is "$(grep -c '^        pool: gpus$' "$dir/pool.yaml")" 4 'everything can be kept to some nodes' || diag "$(cat "$dir/log")"
is "$(against_helm pool '{nodeSelector: {pool: gpus}, tolerations: [{key: nvidia.com/gpu, operator: Exists}]}')" '' 'from Helm, too'

# The rules as an object for the operator: by what docs/observability.md says, with somebody else for kubectl.
sed -n '/^    { printf/,/kubectl apply/{s/^    //; s/ | kubectl .*//; p}' "$tests/../docs/observability.md" >"$dir/wrap"
(cd "$tests/.." && . "$dir/wrap") >"$dir/rules.yaml"
is "$(kinds "$dir/rules.yaml" 2>&1)" '1 PrometheusRule' 'the alert rules are an object of the operator'
is "$(grep -c '^ *- alert: ' "$dir/rules.yaml")" "$(grep -c '^ *- alert: ' "$k8s/observability/rules.yaml")" 'with all of them'

# What is deployed is what the tests run.
version=$(awk -F '\t' '$2 == "github.com/NVIDIA/k8s-device-plugin" { print $3 }' "$tests/clients/versions")
is "$(grep -rhoE 'image: nvidia/k8s-device-plugin:.*' "$k8s" | sort -u)" "image: nvidia/k8s-device-plugin:$version" \
    "NVIDIA's image has the version that is tested"

for example in "$k8s"/examples/*.yaml; do
    [[ $example == */adapter-values.yaml ]] && continue
    said=$(client manifests check <"$example" 2>&1 >/dev/null)
    ok $? "examples/${example##*/} is of Kubernetes' types" || diag "$said"
done

# Nodes that are only simulated: what is applied, and what the script prints of a mount.
client manifests kustomize "$k8s/kwok" >"$dir/kwok.yaml" 2>"$dir/log"
ok $? 'kustomize builds kwok' || diag "$(cat "$dir/log")"
is "$(kinds "$dir/kwok.yaml" 2>&1)" '1 ConfigMap 1 Deployment 1 Namespace 1 NetworkPolicy 1 Service' 'of Kubernetes'"'"' types'
is "$(kinds "$k8s/kwok/scrape-config.yaml" 2>&1)$(kinds "$k8s/kwok/job.yaml" 2>&1)" '1 ScrapeConfig1 Job' 'and so are a ScrapeConfig and a Job'
mount_up -c "$k8s/kwok/fleet-b.yaml"
"$k8s/kwok/nodes.sh" --label zone=a "$mnt" >"$dir/nodes.yaml"
mount_down
is "$(kinds "$dir/nodes.yaml" 2>&1)" '500 Node' 'nodes.sh prints nodes'
sed 's/^  taints:/  taint:/' "$dir/nodes.yaml" >"$dir/wrong.yaml"
! client manifests check <"$dir/wrong.yaml" >/dev/null 2>&1
ok $? 'that are read strictly'

# What is wrong does not pass.
for wrong in 's/mountPropagation: Bi/mountPropogation: Bi/' 's/containerPort: 9400/containerPort: nine/' \
    's/^kind: DaemonSet/kind: DemonSet/' 's/honorLabels: true/honourLabels: true/'; do
    sed -E "$wrong" "$dir/operator.yaml" >"$dir/wrong.yaml"
    ! cmp -s "$dir/operator.yaml" "$dir/wrong.yaml" && ! client manifests check <"$dir/wrong.yaml" >/dev/null 2>&1
    ok $? "a manifest with $wrong is refused"
done
tap_done
