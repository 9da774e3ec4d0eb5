#!/usr/bin/env bash
#
# The receiver of the OpenTelemetry collector takes what the exporter sends, and finds in it what is scraped.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client go
need_mounts
need_command curl
mount_up --gpus 4
mkdir "$mnt/workloads/train"
put "$mnt/workloads/train/devices" 1
put "$mnt/workloads/train/pod" trainer-0
put "$mnt/workloads/train/namespace" default
put "$mnt/workloads/train/activity" 80:20:1h
put "$mnt/control/clock" pause
put "$mnt/control/clock" 'step 7s'

# Labels in another order, numbers as they are read: the rest is the same text.
normal() {
    "$PYTHON" -c '
import re, sys
for line in sys.stdin:
    m = re.fullmatch(r"(\w+)\{(.*)\} (\S+)\n", line)
    if m:
        print(m[1], sorted(re.findall(r"(\w+)=\"([^\"]*)\"", m[2])), float(m[3]))
' | sort
}

for compression in none gzip; do
    port=$(free_port)
    output=$dir/received
    background "$bin/otlp" "127.0.0.1:$port"
    receiver=$started
    wait_for grep -q listening "$output" || bail "the receiver does not start: $(cat "$output")"
    output=$dir/exporter.log
    background env NODE_NAME=node-7 "$BUILD/fakegpu-exporter" --root "$mnt" --address 127.0.0.1:0 \
        --otlp-endpoint "http://127.0.0.1:$port" --otlp-interval 200ms --otlp-compression $compression
    wait_for grep -qx end "$dir/received"; ok $? "a request is taken, compression: $compression"
    url=$(sed -n 's/.*listening on //p' "$output")
    sed '/^end$/q' "$dir/received" | normal >"$dir/sent"
    curl -s "$url/metrics" | normal >"$dir/scraped"
    is "$(diff "$dir/sent" "$dir/scraped" | head -n 5)" '' 'it has what is scraped: names, labels and values'
    ok $(($(wc -l <"$dir/sent") < 80)) 'and that is not nothing'
    kill "$started" "$receiver"
    wait_gone "$started" && wait_gone "$receiver"
done
like "$(grep -m 1 '^resource' "$dir/received")" 'host.name="node-7".*service.name="fakegpu-exporter"' \
    'the resource says who'
like "$(grep 'type DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION' "$dir/received")" 'counter monotonic=true Cumulative' \
    'a counter is a cumulative sum'
like "$(grep 'type DCGM_FI_DEV_POWER_USAGE' "$dir/received")" 'gauge' 'the others are gauges'
is "$(grep -c trainer-0 "$dir/sent")" "$(grep -c trainer-0 "$dir/scraped")" 'the pod is among them'
is "$(awk '$1 ~ /otlpreceiver$/ { print $2; exit }' "$tests/clients/otlp/go.mod")" \
    "$(awk '$2 ~ /otlpreceiver$/ { print $3 }' "$tests/clients/versions")" 'versions has the version of go.mod'
mount_down
is "$mount_deaths" '' 'no worker died'
tap_done
