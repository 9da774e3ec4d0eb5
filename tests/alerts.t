#!/usr/bin/env bash
#
# The alert rules of k8s/observability: each has its cases for promtool, and a scenario that makes it fire in a real
# Prometheus, for the GPU that it is about, until the scenario is over.
#
# Every scenario is played on a mount of its own, all at the same time, with a clock that is 60 times as fast. Prometheus has
# a copy of the rules in which a minute is a second (at_speed.py); thresholds and expressions are as shipped.
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

speed=60
scenarios=$observability/scenarios

# header SCENARIO KEY: the alerts that its head names.
header() {
    sed -n "s/^# $2: //p" "$scenarios/$1.yaml"
}

# file_name ALERT: GPUsHot is gpus-hot.
file_name() {
    sed -E 's/^GPU/Gpu/; s/([a-z])([A-Z])/\1-\2/g' <<<"$1" | tr '[:upper:]' '[:lower:]'
}

played=
for alert in $names; do
    [[ $alert == GPUMetricsDown ]] && continue # a scenario cannot take its own mount away
    name=$(file_name "$alert")
    played+=" $name"
    [[ -e $scenarios/$name.yaml ]] || { ok 1 "$alert has a scenario"; continue; }
    is "$(header "$name" Fires)" "$alert" "$name.yaml is for $alert"
    is "$(sed -nE "s/^\\| \`$alert\` .*\\| ([^|]*) \\|\$/\\1/p" "$tests/../docs/observability.md")" \
        "[\`$name\`](../k8s/observability/scenarios/$name.yaml)" 'docs/observability.md names it'
done
is "$(ls "$scenarios")" "$(printf '%s.yaml\n' $played | sort)" 'there are no others'

# A rate of seconds is 60 times as high then, and is divided; what cannot be divided is refused.
at_speed() {
    printf 'groups: [{name: g, rules: [{alert: A, for: %s, expr: "%s"}]}]' "$1" "$2" >"$dir/one.yaml"
    bounded "$PYTHON" "$tests/at_speed.py" $speed "$dir/one.yaml" 2>&1 | grep -E 'expr|for:|not|cannot' | xargs
}
is "$(at_speed 1h30m 'rate(a[5m]) > avg_over_time(b[90s])')" \
    'expr: (rate(a[5000ms]) / 60) > avg_over_time(b[1500ms]) for: 90000ms' 'times and rates are divided by the speed'
is "$(at_speed 1m 'avg_over_time(sum(a)[10m:])')" 'expr: avg_over_time(sum(a)[10000ms:]) for: 1000ms' 'those of a subquery, too'
like "$(at_speed 1m 'avg_over_time(sum(a)[10m:15s])')" 'what becomes of' 'but not of one that looks when it likes'
like "$(at_speed 1m 'deriv(a[5m]) > 1')" "what becomes of deriv" 'a function that is not known to work is refused'
like "$(at_speed 10ms 'a')" 'cannot be divided' 'and so is a time too short'

# node_up NAME: a mount and its exporter, for Prometheus the instance of that name.
node_up() {
    mkdir -p "$dir/$1/mnt"
    mnt=$dir/$1/mnt exporter_log=$dir/$1/exporter.log NODE_NAME=$1
    bounded "$fakegpufs" mount --pid-file "$dir/$1/pid" --log "$dir/$1/log" --gpus 3 --speed $speed "$mnt" ||
        bail "cannot mount: $(cat "$dir/$1/log")"
    mount_owned+=("$(cat "$dir/$1/pid")")
    exporter_up -f "$observability/counters.csv"
    exporters[$1]=$exporter_pid
    printf -- '      - {targets: ["%s"], labels: {instance: %s}}\n' "${url#http://}" "$1" >>"$dir/targets"
}

declare -A exporters runs
for name in idle spare $played; do
    node_up "$name"
done
bounded "$PYTHON" "$tests/at_speed.py" $speed "$rules" >"$dir/rules.yaml"
sed -E "s/_interval: .*/_interval: 1s/; /targets:/{r $dir/targets
d}" "$observability/prometheus.yml" >"$dir/prometheus.yml"
prometheus_up "$dir/prometheus.yml"

# fired INSTANCE: alerts that have, since the start; with a GPU each where it is about one.
fired() {
    bounded curl -s -G --data-urlencode "query=max_over_time(ALERTS{alertstate=\"firing\", instance=\"$1\"}[1h])" \
        "http://127.0.0.1:$port/api/v1/query" | "$PYTHON" -c '
import json, sys
found = {(r["metric"]["alertname"], r["metric"].get("gpu", "-")) for r in json.load(sys.stdin)["data"]["result"]}
for alert, gpu in sorted(found): print(alert, gpu)'
}

# firing ALERT INSTANCE: now.
firing() {
    [[ $(query "ALERTS{alertname=\"$1\", instance=\"$2\", alertstate=\"firing\"}") ]]
}

# over INSTANCE: nothing is the matter there, and it is known.
over() {
    [[ $(query "up{instance=\"$1\"}") == 1 && -z $(query "ALERTS{instance=\"$1\"}") ]]
}

# beyond INSTANCE: what has fired there that the head of the scenario does not name, or for a GPU that it leaves alone.
beyond() {
    local alert gpu known
    known=" $(header "$1" Fires) $(header "$1" Besides) "
    while read -r alert gpu; do
        [[ $known == *" $alert "* && ($gpu == [0-] || ($1 == gpus-hot && $gpu == 1)) ]] || echo "$alert $gpu"
    done < <(fired "$1")
}

count=$(($(wc -w <<<"$played") + 2))
# A mean needs something before the spike.
wait_for eval '[[ $(query "count(count_over_time(up{job=\"gpus\"}[1h]) > 3)") == $count ]]'
ok $? "Prometheus knows $count nodes" || diag "$(cat "$dir/prometheus.log")"
is "$(query 'count(DCGM_FI_DEV_GPU_TEMP)')" $((3 * count)) 'and every GPU'

for name in $played; do
    bounded "$fakegpufs" scenario --mount "$dir/$name/mnt" --speed $speed "$scenarios/$name.yaml" >"$dir/$name/said" 2>&1 &
    runs[$name]=$!
    mount_owned+=($!)
done
for name in $played; do
    alert=$(header "$name" Fires)
    wait "${runs[$name]}"
    ok $? "$name is played" || diag "$(cat "$dir/$name/said")"
    gpu=0
    [[ $name != gpus-hot ]] || gpu=-
    # Those that look back fire when it is over.
    wait_for eval 'grep -q "^$alert $gpu$" < <(fired "$name")'
    ok $? "$alert fires" || diag "fired: $(fired "$name")"
    wait_for over "$name"
    ok $? '… until it is over' || diag "still: $(query "ALERTS{instance=\"$name\"}" alertname)"
    is "$(beyond "$name")" '' '… and nothing else does that is not foreseen'
done
is "$(query 'max_over_time(ALERTS{instance=~"idle|spare"}[1h])' alertname)" '' 'all the time nothing is the matter with idle nodes'

# --- without metrics ------------------------------------------------------------------------------

mnt=$dir/idle/mnt
bounded "$fakegpufs" umount "$mnt"
kill -TERM "${exporters[spare]}"
wait_for firing GPUMetricsDown idle
ok $? 'without a mount: GPUMetricsDown' || diag "$(cat "$dir/idle/exporter.log")"
wait_for firing GPUMetricsDown spare
ok $? 'without an exporter, too'
bounded "$fakegpufs" mount --pid-file "$dir/idle/again" --log "$dir/idle/log" --gpus 3 "$mnt"
mount_owned+=("$(cat "$dir/idle/again")")
wait_for over idle
ok $? 'a mount in its place ends it'
is "$(query "ALERTS{alertname=\"GPUMetricsDown\"}" instance)" spare 'for its node alone'

kill -TERM "$server"
wait_gone "$server"
for name in idle $played; do
    exporter_log=$dir/$name/exporter.log exporter_pid=${exporters[$name]}
    exporter_down
    bounded "$fakegpufs" umount "$dir/$name/mnt"
done
is "$(grep -hE 'the worker|ERROR: |WARNING: |runtime error' "$dir"/*/log)$exporter_deaths" '' 'nothing died on the way'
tap_done
