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

common='1 ClusterRole 1 ClusterRoleBinding 2 ConfigMap 3 DaemonSet 1 Namespace 3 NetworkPolicy 1 Service 1 ServiceAccount'
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
is "$(client manifests same "$dir/generic.yaml" "$dir/kind.yaml" 2>&1 | tail -n 1)" '13 objects' \
    'overlays differ, and that would be seen'

# With the operator: a component for kustomize, a value for Helm.
mkdir "$dir/operator"
cp -r "$k8s" "$dir/operator/k8s"
cat >"$dir/operator/kustomization.yaml" <<'END'
resources: [k8s/overlays/generic]
components: [k8s/components/service-monitor]
END
client manifests kustomize "$dir/operator" >"$dir/operator.yaml" 2>"$dir/log"
is "$(kinds "$dir/operator.yaml" 2>&1)" "$common 1 ServiceMonitor" 'a ServiceMonitor is one for the operator' ||
    diag "$(cat "$dir/log")"
echo 'serviceMonitor: true' >"$dir/values.yaml"
client manifests helm "$k8s/chart" "$dir/values.yaml" >"$dir/chart.yaml"
is "$(client manifests same "$dir/operator.yaml" "$dir/chart.yaml" 2>&1)" '' 'from Helm, too'

for example in "$k8s"/examples/*.yaml; do
    [[ $example == */adapter-values.yaml ]] && continue
    said=$(client manifests check <"$example" 2>&1 >/dev/null)
    ok $? "examples/${example##*/} is of Kubernetes' types" || diag "$said"
done

# What is wrong does not pass.
for wrong in 's/mountPropagation: Bi/mountPropogation: Bi/' 's/containerPort: 9400/containerPort: nine/' \
    's/^kind: DaemonSet/kind: DemonSet/' 's/honorLabels: true/honourLabels: true/'; do
    sed -E "$wrong" "$dir/operator.yaml" >"$dir/wrong.yaml"
    ! cmp -s "$dir/operator.yaml" "$dir/wrong.yaml" && ! client manifests check <"$dir/wrong.yaml" >/dev/null 2>&1
    ok $? "a manifest with $wrong is refused"
done
tap_done
