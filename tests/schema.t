#!/usr/bin/env bash
#
# schemas/config.schema.json is what the program prints, is a JSON Schema, takes every example and
# refuses what it can know to be wrong.
#
# The documents are read by somebody else's YAML reader (PyYAML: YAML 1.1) and judged by somebody
# else's validator.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

schema=schemas/config.schema.json

"$PYTHON" -c 'import yaml, jsonschema; jsonschema.Draft202012Validator' 2>/dev/null ||
    skip_all "$PYTHON has no yaml, or no jsonschema that knows draft 2020-12"

# judge: reads documents from stdin, each behind a line `=== NAME`; prints `NAME: valid`, or
# `NAME: ` and what is wrong, for each.
judge() {
    "$PYTHON" -c '
import json, sys, yaml
from jsonschema import Draft202012Validator

validator = Draft202012Validator(json.load(open(sys.argv[1])))
for part in ("\n" + sys.stdin.read()).split("\n=== ")[1:]:
    name, _, text = part.partition("\n")
    errors = sorted(validator.iter_errors(yaml.safe_load(text)), key=lambda e: len(e.path))
    print(name + ": " + (errors[0].message.replace("\n", " ") if errors else "valid"))
' "$schema"
}

# all_valid / none_valid VERDICTS NAME...: checks the verdict on each document of that name.
all_valid() {
    local verdicts=$1 name
    shift
    for name in "$@"; do
        is "$(grep -F "$name: " <<<"$verdicts")" "$name: valid" "$name is valid"
    done
}

none_valid() {
    local verdicts=$1 name line
    shift
    for name in "$@"; do
        line=$(grep -F "$name: " <<<"$verdicts")
        [[ $line == "$name: "* && $line != *': valid' ]]
        ok $? "not valid: $name" || diag "$line"
    done
}

"$BUILD/fakegpufs" config schema | diff -u "$schema" - >&2
ok $? "$schema is what 'fakegpufs config schema' prints"

"$PYTHON" -c '
import json, sys
from jsonschema import Draft202012Validator

Draft202012Validator.check_schema(json.load(open(sys.argv[1])))' "$schema"
ok $? 'it is a JSON Schema of draft 2020-12'

examples=(schemas/examples/*.yaml)
((${#examples[@]} >= 8))
ok $? 'there are examples'
all_valid "$(for file in "${examples[@]}"; do
    echo "=== $file"
    cat "$file"
done | judge)" "${examples[@]}"

# Forms that no example has. YAML 1.1 makes numbers of 12.4, 0000:06:00.0 and 0644, and booleans
# of on and off.
good=$(
    cat <<'END'
=== nothing at all
=== the form with nodes
mig-strategy: mixed
nodes:
  node-a:
    gpu-memory: 11441
    gpu-product: Tesla-K80
    gpus:
      - id: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1
        metrics:
          metadata: {namespace: project-a, pod: pod, container: container}
          utilization: 10
          fb-used: 5000
=== what other readers take for numbers and booleans
driver: {version: 550.163, cuda: 12.4}
gpus: [{bus_id: 0000:06:00.0, serial: 1320000000000, ecc_mode: on, mig_mode: no}]
access: {dev: null, dev_mode: 0644, control_mode: "0644"}
pci: {domain: 0x10}
workloads: [{devices: [0, 0000:06:00.0], activity: 80}, {devices: 1, activity: 80:10}]
=== empty sections
driver:
numa:
=== every function
gpus:
  - metrics:
      temperature_gpu_c: {constant: {value: 50}}
      power_usage_mw: {drift: {from: 10%, rate: 1%, until: 90%}}
      fan_speed_percent: {wave: {mean: 50, amplitude: 10, per_radian: 1m30s}}
      clock_sm_mhz: {spike: {base: 500MHz, peak: 1.41GHz, probability: 0.5}}
END
)
mapfile -t names < <(sed -n 's/^=== //p' <<<"$good")
all_valid "$(judge <<<"$good")" "${names[@]}"

bad=$(
    cat <<'END'
=== an unknown key
gpu: {count: 1}
=== an unknown key of a GPU
gpus: [{modle: T4}]
=== an unknown metric
gpus: [{metrics: {temperature: 5}}]
=== an unknown function
gpus: [{metrics: {temperature_gpu_c: {wavy: {mean: 5}}}}]
=== a wave without period
gpus: [{metrics: {temperature_gpu_c: {wave: {mean: 5, amplitude: 1}}}}]
=== a time without unit
step: 100
=== a wrong unit
gpus: {memory: 10GHz}
=== a number out of range
gpus: {count: 5000}
=== a text for a number
seed: many
=== an unknown choice
nvlink: {topology: star}
=== a malformed UUID
gpus: [{uuid: GPU-1}]
=== gpus and nodes
gpus: {count: 1}
nodes: {a: {gpu-product: T4, gpu-count: 1}}
=== a node without product
nodes: {a: {gpu-count: 1}}
=== a link without count
nvlink: {links: [{from: 0, to: 1}]}
=== a fault without GPU
faults: [{fault: xid 79}]
=== an unknown fault
faults: [{gpu: 0, fault: explode}]
=== an unknown limit
workloads: [{limits: {memroy: 1GiB}}]
=== a phase with an unknown key
workloads: [{activity: [{time: 1h, utilisation: 80}]}]
=== a phase whose time has no unit
workloads: [{activity: [{time: 3600, utilization: 80}]}]
=== a list for a mapping
physics: [1]
=== a list at the top
[1]
END
)
mapfile -t names < <(sed -n 's/^=== //p' <<<"$bad")
none_valid "$(judge <<<"$bad")" "${names[@]}"

tap_done
