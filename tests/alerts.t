#!/usr/bin/env bash
#
# The alert rules of k8s/observability: each has its cases for promtool, and each of them fires in a real Prometheus that
# scrapes a live mount, for the GPU that it is about.
#
# The rules wait for minutes. Here a copy of them is loaded in which they wait for seconds, and the clock of the mount
# goes 30 times as fast; expressions and thresholds are as shipped.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
. "${0%/*}/prometheus.sh"
need_mounts

observability=$tests/../k8s/observability
rules=$observability/rules.yaml

# --- as shipped -----------------------------------------------------------------------------------

said=$(bounded promtool check rules "$rules" 2>&1)
ok $? 'promtool takes the rules' || diag "$said"
said=$(bounded promtool check config "$observability/prometheus.yml" 2>&1)
ok $? 'and the configuration' || diag "$said"
said=$(bounded promtool test rules "$observability/rules_test.yaml" 2>&1)
ok $? 'the cases of the rules hold' || diag "$said"
said=$(bounded "$PYTHON" - "$rules" "$observability/rules_test.yaml" "$observability/counters.csv" <<'PY'
import re, sys, yaml
rules, cases = (yaml.safe_load(open(name)) for name in sys.argv[1:3])
counters = {line.split(",")[0] for line in open(sys.argv[3])}
rules = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
cases = [case for test in cases["tests"] for case in test["alert_rule_test"]]
quiet = {case["alertname"] for case in cases if not case.get("exp_alerts")}
fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
for name, rule in rules.items():
    if name not in quiet: print(name, "has no case where it does not fire")
    if name not in fires: print(name, "has no case where it fires")
    if rule["labels"].get("severity") not in ("info", "warning", "critical"): print(name, "has no severity")
    if not {"summary", "description"} <= rule["annotations"].keys(): print(name, "says nothing")
    for field in re.findall(r"\bDCGM_\w+", rule["expr"]):
        if field not in counters: print(name, "needs", field, "which is not in counters.csv")
PY
)
is "$said" '' 'every alert has a case where it fires and one where it does not, and its counters are there'
names=$(sed -nE 's/^ +- alert: //p' "$rules")
(($(wc -w <<<"$names") >= 12))
ok $? "there are $(wc -w <<<"$names") alerts"

is "$(sed -nE 's/^\| `(GPU\w+)` \| [^|]+ \| ([^|]+) \| (\w+) \|.*/\1 \2 \3/p' "$tests/../docs/observability.md" | sort)" \
    "$("$PYTHON" -c '
import sys, yaml
for group in yaml.safe_load(open(sys.argv[1]))["groups"]:
    for rule in group["rules"]: print(rule["alert"], rule.get("for", "at once"), rule["labels"]["severity"])' "$rules" | sort)" \
    'docs/observability.md has them'

# --- live -----------------------------------------------------------------------------------------

mount_up --gpus 12 --model A100-SXM4-40GB --speed 30
exporter_up -f "$observability/counters.csv"
sed -E 's/^( +for:) .*/\1 2s/; s/\[[0-9]+m\]/[30s]/' "$rules" >"$dir/rules.yaml"
sed -E "s/exporter:9400/${url#http://}/; s/_interval: .*/_interval: 1s/" "$observability/prometheus.yml" >"$dir/prometheus.yml"
prometheus_up "$dir/prometheus.yml"

# fired ALERT: for which GPUs it has, since the start.
fired() {
    query "max_over_time(ALERTS{alertname=\"$1\", alertstate=\"firing\"}[1h])" gpu
}

has_fired() {
    [[ " $(fired "$1") " == *" $2 "* ]]
}

# firing ALERT: now, whatever it is about.
firing() {
    [[ $(query "ALERTS{alertname=\"$1\", alertstate=\"firing\"}") ]]
}

wait_for eval '[[ $(query "count(DCGM_FI_DEV_GPU_TEMP)") == 12 ]]'
ok $? 'Prometheus has every GPU' || diag "$(cat "$dir/prometheus.log")"
# Ten more scrapes: longer than any alert waits now.
wait_for eval '[[ $(query "count_over_time(up{job=\"gpus\"}[1h]) > 10") ]]'
is "$(query 'max_over_time(ALERTS[1h])' alertname)" '' 'nothing is the matter with an idle node'

# GPU, file in its control/, what is written there, the alerts that follow.
covered='GPUsHot GPUMetricsDown'
while IFS='|' read -r gpu file text alerts; do
    said=$(put "$mnt/gpus/$gpu/control/$file" "$text") || diag "$text: $said"
    for alert in $alerts; do
        wait_for has_fired "$alert" "$gpu"
        ok $? "$file '$text' on GPU $gpu: $alert" || diag "it has fired for GPUs: $(fired "$alert")"
        covered+=" $alert"
    done
done <<'END'
0|utilization_gpu_percent|100|GPUUtilizationSpike GPUHighUtilization
1|memory_used_bytes|39GiB|GPUHighMemory
2|power_usage_mw|395W|GPUHighPower
3|temperature_gpu_c|85|GPUHighTemperature
4|fault|xid 31|GPUXidError
5|fault|fallen_off_bus|GPULost
6|fault|ecc dbe 2|GPUDoubleBitError
7|fault|rows failure|GPURowRemapFailure
8|fault|power_brake|GPUPowerBrake
9|profile|degrading|GPUCriticalTemperature GPUThermalThrottling GPUDegradedPerformance
END
is "$(tr ' ' '\n' <<<"$covered" | sort)" "$(sort <<<"$names")" 'this list has all alerts'
wait_for firing GPUsHot
ok $? 'with GPUs 3 and 9 several are hot: GPUsHot'
is "$(fired GPULost)|$(fired GPUDoubleBitError)|$(fired GPURowRemapFailure)" '5|6|7' 'no other GPU is blamed'

put "$mnt/gpus/3/control/temperature_gpu_c" auto
put "$mnt/gpus/9/control/profile" idle
for gpu in {0..11}; do
    put "$mnt/gpus/$gpu/control/fault" recover
done
over() {
    [[ $(query 'up{job="gpus"}') == 1 && -z $(query "ALERTS{alertname=\"$1\"}") ]]
}
for alert in GPULost GPUXidError GPUDoubleBitError GPURowRemapFailure GPUsHot; do
    wait_for over "$alert"
    ok $? "$alert is over when the GPUs are reset" || diag "$(query "ALERTS{alertname=\"$alert\"}" gpu): $(series XID)"
done
mount_down
wait_for firing GPUMetricsDown
ok $? 'without a mount: GPUMetricsDown'

kill -TERM "$server"
wait_gone "$server"
exporter_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
