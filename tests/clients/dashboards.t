#!/usr/bin/env bash
#
# The Grafana dashboards of k8s/observability, by Grafana's own description of what a dashboard is.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
need_client dashboards

grafana=$tests/../k8s/observability/grafana/dashboards

# read_strictly FILE...: what is wrong.
read_strictly() {
    client python "$tests/clients/dashboard.py" "$@" 2>&1
}

for name in overview profiles; do
    is "$(read_strictly "$grafana/$name.json")" '' "$name.json is a dashboard"
done
is "$(client python -c 'import importlib.metadata as m; print(m.version("grafana-foundation-sdk").split("!")[1])')" \
    "$(sed -nE 's/.*grafana\/grafana:(.*)/\1/p' "$tests/../k8s/observability/compose.yaml")" \
    'of the Grafana that the compose project runs'

# What is wrong does not pass: each line is a change of the overview, and what is said of it.
while IFS='|' read -r wrong expected; do
    sed -E "$wrong" "$grafana/overview.json" >"$dir/wrong.json"
    like "$(read_strictly "$dir/wrong.json")" "$expected" "with $wrong it is none"
done <<'END'
0,/"graphTooltip"/s//"graphTooltips"/|'graphTooltips' is not known
s/"schemaVersion": 39/"schemaVersion": "39"/|schemaVersion: '39' is no int
s/"editable": true/"editable": "yes"/|editable: 'yes' is no bool
0,/"type": "timeseries"/s//"type": "timeserie"/|'timeserie' is no kind of panel
0,/"colorMode": "value"/s//"colorMode": "valu"/|options.colorMode: 'valu' is none of
0,/"displayMode": "list"/s//"displayMod": "list"/|legend: 'displayMod' is not known
0,/"legendFormat"/s//"legend"/|targets\[0\]: 'legend' is not known
0,/"refId": "A"/s//"refId": 1/|refId: 1 is no str
0,/"expr": "count/s//"query": "count/|targets\[0\]: there is no expr
0,/"mode": "absolute"/s//"mode": "abs"/|thresholds.mode: 'abs' is none of
0,/"w": 4/s//"w": 4.5/|gridPos.w: 4.5 is no int
0,/"type": "query"/s//"type": "queries"/|type: 'queries' is none of
0,/"iconColor"/s//"icon"/|list\[0\]: there is no iconColor
END
tap_done
