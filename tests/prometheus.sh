# What tests with a Prometheus share; sourced after tap.sh, mount.sh and exporter.sh.
#
#     prometheus_up "$dir/prometheus.yml"
#     is "$(query 'count(up)')" 1 'it has one target'
#
# SPDX-License-Identifier: Apache-2.0

prometheus=$(command -v prometheus) || skip_all 'there is no prometheus'

# prometheus_up CONFIG: on a port that is free now; should somebody take it meanwhile, it ends and the test fails.
prometheus_up() {
    port=$(free_port)
    output=$dir/prometheus.log
    background "$prometheus" --config.file "$1" --storage.tsdb.path "$dir/data" \
        --web.listen-address "127.0.0.1:$port" --log.level warn
    output=/dev/null
    server=$started
}

# query EXPRESSION [LABEL]: the values that it has now, or those of a label, sorted; nothing when there are none.
query() {
    bounded curl -s -G --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" |
        "$PYTHON" -c '
import json, sys
answer = json.load(sys.stdin)
assert answer["status"] == "success", answer
label = sys.argv[1] if len(sys.argv) > 1 else None
print(" ".join(sorted({r["metric"].get(label, "") for r in answer["data"]["result"]} if label else
    [r["value"][1] for r in answer["data"]["result"]])))' ${2:+"$2"}
}
