#!/usr/bin/env bash
#
# Makes the chart's templates from the manifests: make-chart.sh [DIRECTORY]
#
# A template is a manifest in which what values.yaml has is filled in. tests/manifests.t sees that what is committed is what
# this makes, tests/clients/manifests.t that Helm and kustomize come to the same objects.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

here=$(cd "${0%/*}" && pwd)
out=${1:-$here}
mkdir -p "$out/templates" "$out/files"

# with_values [IMAGE]: standard input with values in their places. IMAGE is the value of images that are not ours.
with_values() {
    awk -v others="${1:-}" '
        function indent() { match($0, /^ */); return substr($0, 1, RLENGTH) }
        /^ +image: / {
            name = $2
            sub(/:.*/, "", name)
            value = name == "fakegpufs" ? "images.driver" : name == "fakegpu-pods" ? "images.pods" : \
                name == "fakegpu-exporter" ? "images.exporter" : name == "fakegpu-labels" ? "images.labeller" : others
            print indent() "image: {{ .Values." value " }}"
            if (value != others)
                print indent() "{{- with .Values.pullPolicy }}\n" indent() "imagePullPolicy: {{ . }}\n" indent() "{{- end }}"
            next
        }
        /^ +nodeSelector: / {
            print indent() "nodeSelector: {{ toJson .Values.nodeSelector }}"
            print indent() "{{- with .Values.tolerations }}\n" indent() "tolerations: {{ toJson . }}\n" indent() "{{- end }}"
            next
        }
        /^ +args: \[--activity,/ {
            print indent() "args: [--activity, {{ toJson (toString .Values.pods.activity) }}, --memory, {{ toJson (toString .Values.pods.memory) }}]"
            next
        }
        /name: DEVICE_LIST_STRATEGY,/ {
            print indent() "- {name: DEVICE_LIST_STRATEGY, value: {{ toJson .Values.devicePlugin.deviceListStrategy }}}"
            next
        }
        /^  node.yaml: / { print "  node.yaml: {{ toJson .Values.node }}"; exit }
        { print }'
}

for manifest in "$here"/../base/*.yaml; do
    [[ $manifest == */kustomization.yaml ]] || with_values <"$manifest" >"$out/templates/${manifest##*/}"
done

# component NAME VALUE [IMAGE]: what there is when VALUE is true.
component() {
    {
        echo "{{- if .Values.$2 }}"
        with_values "${3:-}" <"$here/../components/$1/$1.yaml"
        echo '{{- end }}'
    } >"$out/templates/$1.yaml"
}
component service-monitor serviceMonitor
component device-plugin devicePlugin.enabled devicePlugin.image
component gpu-feature-discovery featureDiscovery.enabled featureDiscovery.image
cp "$here/../observability/counters.csv" "$out/files/"
cat >"$out/templates/counters.yaml" <<'END'
# The counters that alerts and dashboards need, for the exporters.
#
# SPDX-License-Identifier: Apache-2.0

apiVersion: v1
kind: ConfigMap
metadata:
  name: fakegpu-counters
  namespace: gpu-monitoring
data:
  counters.csv: {{ toJson (.Files.Get "files/counters.csv") }}
END
