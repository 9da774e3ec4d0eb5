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

# with_values: standard input with values in their places.
with_values() {
    awk '
        function indent() { match($0, /^ */); return substr($0, 1, RLENGTH) }
        /^ +image: / {
            name = $2
            sub(/:.*/, "", name)
            value = name == "fakegpufs" ? "driver" : name == "fakegpu-pods" ? "pods" : \
                name == "fakegpu-exporter" ? "exporter" : "labeller"
            print indent() "image: {{ .Values.images." value " }}"
            print indent() "{{- with .Values.pullPolicy }}\n" indent() "imagePullPolicy: {{ . }}\n" indent() "{{- end }}"
            next
        }
        /^ +nodeSelector: / {
            print
            print indent() "{{- with .Values.tolerations }}\n" indent() "tolerations: {{ toJson . }}\n" indent() "{{- end }}"
            next
        }
        /^  node.yaml: / { print "  node.yaml: {{ toJson .Values.node }}"; exit }
        { print }'
}

for manifest in "$here"/../base/*.yaml; do
    [[ $manifest == */kustomization.yaml ]] || with_values <"$manifest" >"$out/templates/${manifest##*/}"
done
{
    echo '{{- if .Values.serviceMonitor }}'
    cat "$here/../components/service-monitor/service-monitor.yaml"
    echo '{{- end }}'
} >"$out/templates/service-monitor.yaml"
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
