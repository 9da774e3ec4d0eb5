#!/usr/bin/env bash
#
# Identities: what the built-in ones say, that their files are what the schema allows, what is refused, and
# that the pages about them are true.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
need_mounts

"$PYTHON" -c 'import yaml, jsonschema; jsonschema.Draft202012Validator' 2>/dev/null ||
    skip_all "$PYTHON has no yaml, or no jsonschema that knows draft 2020-12"
command -v promtool >/dev/null || skip_all 'there is no promtool'

cat >"$dir/node.yaml" <<'END'
node: golden
speed: 0
gpus: {count: 2, model: A100-SXM4-40GB}
workloads:
  - {name: train, devices: 0, memory: 10GiB, activity: 40, namespace: default, pod: train-0, container: trainer}
END
mount_up -c "$dir/node.yaml"
put "$mnt/gpus/0/control/temperature_gpu_c" 50

# looks_like IDENTITY: starts it; its page is good, and has so many families.
looks_like() {
    exporter_up -i "$1"
    is "$(page | promtool check metrics 2>&1 | grep -v ' should ')" '' "promtool reads the page of $1"
}

looks_like dcgm-legacy-fake
is "$(page | grep -c '^# TYPE dcgm_.* gauge$')" 9 'the older fake has nine gauges'
is "$(series '^dcgm_gpu_temp\{gpu="1"')" 'dcgm_gpu_temp{gpu="1",device="nvidia1"} 50.0' 'with GPUs from 1, and one decimal'
put "$mnt/gpus/0/control/fault" 'sensor temperature_gpu_c'
is "$(series '^dcgm_gpu_temp\{gpu="1"')" 'dcgm_gpu_temp{gpu="1",device="nvidia1"} NaN' 'a reading that fails is NaN there'
exporter_down
exporter_up -i dcgm-legacy-fake --faulty-values absent
is "$(series '^dcgm_gpu_temp\{gpu="1"')" '' 'unless told otherwise'
put "$mnt/gpus/0/control/fault" recover
exporter_down

looks_like run-ai
is "$(page | sed -nE 's/^# TYPE (\w+) gauge$/\1/p' | xargs)" 'DCGM_FI_DEV_FB_FREE DCGM_FI_DEV_FB_USED DCGM_FI_DEV_GPU_UTIL' 'Run:ai has three gauges'
like "$(series '^DCGM_FI_DEV_FB_USED.*gpu="0"')" '^DCGM_FI_DEV_FB_USED\{Hostname="golden",UUID="GPU-[^"]*",container="trainer",device="nvidia0",gpu="0",modelName="NVIDIA A100-SXM4-40GB",namespace="default",pod="train-0"\} 10240$' \
    'with the labels of its exporter'
like "$(series '^DCGM_FI_DEV_FB_USED.*gpu="1"')" 'container="",.*namespace="",pod=""' 'which are empty where nobody uses the GPU'
exporter_down

looks_like nvidia-smi-exporter
uuid=$(cat "$mnt/gpus/0/identity/uuid")
is "$(series "^nvidia_smi_memory_used_bytes.*${uuid#GPU-}")" "nvidia_smi_memory_used_bytes{uuid=\"${uuid#GPU-}\"} 1.073741824e+10" 'bytes as Go writes them, and the UUID without GPU-'
like "$(series '^nvidia_smi_gpu_info')" 'name="NVIDIA A100-SXM4-40GB".*driver_version="550.163.01".*index="0".*} 1' 'what does not change is in labels'
like "$(series "^nvidia_smi_clocks_max_sm_clock_hz.*${uuid#GPU-}")" ' 1.41e\+09$' 'clocks are in Hz'
(($(page | grep -c '^# TYPE nvidia_smi_') > 60))
ok $? 'it has what nvidia-smi can be asked for'
exporter_down

looks_like collectd
like "$(series '^collectd_gpu_sysman_frequency_mhz')" '\{dev_file="card0",pci_bdf="0000:06:00.0",pci_dev="0x20b0",location="gpu",type="actual",function="max"\} [0-9]' 'one family with a series for each place'
is "$(series '^collectd_gpu_sysman_temperature_celsius' | grep -oE 'location="[^"]*"' | sort -u | xargs)" 'location=gpu-max location=memory-max' 'told apart by labels'
exporter_down

looks_like xpumanager
like "$(series '^xpum_power_watts')" 'vendor="NVIDIA Corporation",pci_bdf="0000:06:00.0",dev_file="card0",node="golden",kube_pod="train-0",kube_namespace="default",kube_container="trainer",src="direct"\} ' 'labels as Intel has them'
like "$(series '^xpum_memory_used_bytes.*card0')" ' 1.073741824e\+010$' 'numbers as its Python writes them'
exporter_down

is "$("$exporter" --list-identities | awk '{ print $1 }' | sort | xargs)" \
    'collectd dcgm dcgm-legacy-fake nvidia-smi-exporter run-ai xpumanager' 'all of them are listed'
is "$("$exporter" --list-identities | awk '$1 == "nvidia-smi-exporter" { print $2 }')" :9835 'with the port that each has by itself'

# --- The schema -------------------------------------------------------------

"$exporter" --identity-schema | diff -u schemas/identity.schema.json - >&2
ok $? "schemas/identity.schema.json is what --identity-schema prints"
for file in schemas/identities/*.yaml; do
    "$PYTHON" -c '
import json, sys, yaml
from jsonschema import Draft202012Validator as V
schema = json.load(open("schemas/identity.schema.json"))
V.check_schema(schema)
V(schema).validate(yaml.safe_load(open(sys.argv[1])))' "$file" >&2
    ok $? "$file is what it allows"
done

# --- A user's own -----------------------------------------------------------

# The files of the page, as it says to write them.
mkdir "$dir/docs"
awk -v dir="$dir/docs" '
    /^```yaml$/ { inside = 1; name = ""; next }
    /^```$/ { inside = 0 }
    inside && name == "" && /^# [a-z-]+\.yaml/ { name = $2; sub(/[:,]$/, "", name) }
    inside && name != "" { print >(dir "/" name) }' docs/identities.md
[[ -s $dir/docs/acme.yaml ]]
ok $? 'docs/identities.md has an example'
exporter_up -i "$dir/docs/acme.yaml"
expected=$(awk '/^```text$/ { inside = 1; next } /^```$/ { inside = 0 } inside' docs/identities.md)
is "$(page | sed -E "s/$uuid/GPU-…/; s/$(cat "$mnt/gpus/1/identity/uuid")/GPU-…/")" "$expected" 'which prints what the page says'
exporter_down

# refused REGEX: the identity on standard input is refused, with a sentence like that.
refused() {
    cat >"$dir/own.yaml"
    local said
    said=$(bounded "$exporter" --root "$mnt" -a 127.0.0.1:0 -i "$dir/own.yaml" 2>&1)
    is $? 1 "refused: $1"
    like "$said" "own.yaml:[0-9]+:[0-9]+: .*$1" 'with its place'
}
refused "needs the key 'name'" <<<'metrics: [{name: a, help: b, constant: 1}]'
refused "needs either 'counters' or 'metrics'" <<<'name: x'
refused "metrics\[0\].value: 'temperature_gpu' is not known; did you mean 'temperature_gpu_c'" <<<'{name: x, metrics: [{name: a, help: b, value: temperature_gpu}]}'
refused "metrics\[0\].*unknown key 'vale' in a metric; did you mean 'value'" <<<'{name: x, metrics: [{name: a, help: b, vale: pstate}]}'
refused "needs one of the keys 'value', 'identity', 'constant'" <<<'{name: x, metrics: [{name: a, help: b}]}'
refused "has 'samples', so it cannot have a value itself" <<<'{name: x, metrics: [{name: a, help: b, value: pstate, samples: [{constant: 1}]}]}'
refused "metrics\[0\].name: found 'a-b'; allowed: letters, digits" <<<'{name: x, metrics: [{name: a-b, help: b, constant: 1}]}'
refused "labels.gpu: 'indx' is not a variable; did you mean 'index'" <<<'{name: x, labels: {gpu: "{indx}"}, metrics: [{name: a, help: b, constant: 1}]}'
refused "labels.gpu: a '\{' is not closed" <<<'{name: x, labels: {gpu: "{index"}, metrics: [{name: a, help: b, constant: 1}]}'
refused "labels.1st: is no name for a label" <<<'{name: x, labels: {1st: a}, metrics: [{name: a, help: b, constant: 1}]}'

# A directory of one's own adds to the built-in ones, and replaces those of the same name.
mkdir -p "$dir/schemas/identities"
cat >"$dir/schemas/identities/run-ai.yaml" <<'END'
name: run-ai
labels: {brace: "{{{index}}}"}
metrics: [{name: mine, help: "a \\ in it", type: counter, constant: 2.5}]
END
exporter_up --schemas "$dir/schemas" -i run-ai
is "$(page)" '# HELP mine a \\ in it
# TYPE mine counter
mine{brace="{0}"} 2.5
mine{brace="{1}"} 2.5' 'a directory of identities replaces the built-in one'
exporter_down

mount_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
