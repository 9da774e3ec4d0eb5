#!/usr/bin/env bash
#
# The compose project of k8s/observability: its files fit together, and its containers do what it is for.
#
# There is no engine here. Driver and exporter are started as an engine would, by runc or crun, with the images that
# `make image` built and what compose.yaml says of user, capabilities, devices, mounts and commands; Prometheus is
# that of the system, in the exporter's network. Only /run/fakegpufs of the machine is another directory.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/prometheus.sh"
. "${0%/*}/container.sh"
need_mounts
need_containers
command -v nsenter >/dev/null || skip_all 'there is no nsenter'

observability=$(cd "$tests/../k8s/observability" && pwd)

is "$("$PYTHON" - "$observability" <<'PY'
import os, sys, yaml
top = sys.argv[1]
load = lambda name: yaml.safe_load(open(os.path.join(top, name)))
services = load("compose.yaml")["services"]
for name, service in services.items():
    for volume in service.get("volumes", []):
        source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
        if source.startswith(".") and not os.path.exists(os.path.join(top, source)): print(name, "has no", source)
        if isinstance(volume, str) and not volume.endswith(":ro"): print(name, "may write to", source)
    for other, how in service.get("depends_on", {}).items():
        if other not in services: print(name, "depends on", other)
        elif (how["condition"] == "service_healthy") != ("healthcheck" in services[other]):
            print(name, "waits for", other, "to be", how["condition"])
    for port in service.get("ports", []):
        if not port.startswith("127.0.0.1:"): print(name, "listens everywhere on", port)
    if service.get("privileged"): print(name, "is privileged")
target = load("prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"][0]
if target.split(":")[0] not in services: print("prometheus scrapes", target)
source = load("grafana/provisioning/datasources/prometheus.yaml")["datasources"][0]
if source["url"].split("/")[2].split(":")[0] not in services: print("grafana asks", source["url"])
path = load("grafana/provisioning/dashboards/fakegpufs.yaml")["providers"][0]["options"]["path"]
if not any(v.split(":")[1] == path for v in services["grafana"]["volumes"]): print("no dashboards in", path)
PY
)" '' 'its files, names, ports and conditions fit together'

# --- the containers -------------------------------------------------------------------------------

roots=$(cd "$BUILD" && pwd)/image.root
[[ -d $roots/base ]] || bail 'there is no image: run make image'
cp -a "$roots/base" "$dir/image"

# The machine's /run is a shared mount; so is this.
host=$dir/host
mkdir "$host"
mount --bind "$host" "$host" && mount --make-rprivate "$host" && mount --make-rshared "$host" ||
    bail 'cannot make a shared mount'

# options SERVICE: what container_write is to be told, from compose.yaml and what is known of the image.
options() {
    bounded "$PYTHON" - "$observability" "$1" "$host" "$tests/../k8s/image/images" <<'PY'
import json, os, sys, yaml
top, name, host, images = sys.argv[1:]
service = yaml.safe_load(open(top + "/compose.yaml"))["services"][name]
known = {"image", "command", "environment", "user", "cap_drop", "cap_add", "security_opt", "read_only", "devices",
         "volumes", "ports", "healthcheck", "depends_on", "restart"}
if service.keys() - known: sys.exit(f"{name} has {service.keys() - known}, which is not imitated here")
image = service["image"].split(":-")[-1].split(":")[0]
rows = [line.split() for line in open(images) if line.startswith("image ")]
_, _, user, _, *entry = next(row for row in rows if row[1] == image)
mounts, propagation = [], "rprivate"
for volume in service["volumes"]:
    if isinstance(volume, str):
        source, target, *mode = volume.split(":")
        volume = {"source": os.path.join(top, source), "target": target, "read_only": mode == ["ro"]}
    how = volume.get("bind", {}).get("propagation", "rprivate")
    propagation = how if how != "rprivate" else propagation
    source = host if volume["source"] == "/run/fakegpufs" else volume["source"]
    mounts.append([source, volume["target"], "rbind", how, "ro" if volume.get("read_only") else "rw"])
if service["cap_drop"] != ["ALL"] or "no-new-privileges=true" not in service["security_opt"]:
    sys.exit(f"{name} has more than it is given here")
print(json.dumps({
    "args": entry + service["command"], "uid": int(str(service.get("user", user)).split(":")[0]),
    "env": [f"{key}={value}" for key, value in service.get("environment", {}).items()],
    "capabilities": ["CAP_" + one for one in service.get("cap_add", [])],
    "devices": {one: one for one in service.get("devices", [])},
    "mounts": mounts, "propagation": propagation, "readonly": service.get("read_only", False)}))
PY
}

# health SERVICE: the command that says how it is.
health() {
    "$PYTHON" -c '
import sys, yaml
kind, *command = yaml.safe_load(open(sys.argv[1]))["services"][sys.argv[2]]["healthcheck"]["test"]
assert kind == "CMD", kind
print(*command)' "$observability/compose.yaml" "$1"
}

# up SERVICE: its container, called SERVICE-$$.
up() {
    local said
    said=$(options "$1") || bail "$1: $said"
    container_write "$dir/$1" "$dir/image" "$said"
    output=$dir/$1.log container_start "$dir/$1" "$1-$$"
}

# with_exporter COMMAND...: in the network of its container.
with_exporter() {
    bounded nsenter --net="/proc/$exporter/ns/net" "$@"
}

page() {
    with_exporter curl -s --max-time 5 http://127.0.0.1:9400/metrics | grep -c '^DCGM_FI_DEV_GPU_TEMP{'
}

has_page() {
    [[ $(page) == "$1" ]]
}

is_healthy() {
    # shellcheck disable=SC2046
    container_exec "$1-$$" $(health gpus) >/dev/null
}

# The exporter first: compose makes it wait for a healthy driver, which must not be so before there is one.
up exporter
exporter=$(in_engine state "exporter-$$" | sed -nE 's/.*"pid": ([0-9]+).*/\1/p')
! is_healthy exporter
ok $? 'without a driver nobody is healthy'
up gpus
wait_for is_healthy gpus
ok $? 'the driver is, when it serves' || diag "$(cat "$dir/gpus.log")"
is "$(ls "$host/driver/gpus" | grep -c '^[0-9]')" 7 'the machine has the mount'
# One of seven GPUs is faulty: its sensor fails now and then.
wait_for eval 'has_page 7 || has_page 6'
ok $? 'the exporter shows its GPUs' || diag "$(cat "$dir/exporter.log")"
is "$(container_exec "exporter-$$" /usr/bin/fakegpufs status --mount /run/fakegpufs/driver >/dev/null && echo yes)" yes \
    'which its container sees'
like "$(with_exporter curl -s http://127.0.0.1:9400/metrics)" 'DCGM_FI_DEV_POWER_MGMT_LIMIT\{.*Hostname="compose"' \
    'with the counters and the name that it is given'
is "$(awk '/^Cap(Eff|Prm|Bnd|Inh|Amb)/ { print $2 }' "/proc/$exporter/status" | sort -u)" 0000000000000000 \
    'it has no capabilities'

# --- Prometheus -----------------------------------------------------------------------------------

mkdir "$dir/etc"
cp "$observability/rules.yaml" "$dir/etc"
sed -E 's/exporter:9400/127.0.0.1:9400/; s/_interval: .*/_interval: 1s/' "$observability/prometheus.yml" >"$dir/etc/prometheus.yml"
is "$(diff "$observability/prometheus.yml" "$dir/etc/prometheus.yml" | grep -c '^<')" 3 \
    'Prometheus has its configuration, but for a name and two times'
output=$dir/prometheus.log background nsenter --net="/proc/$exporter/ns/net" "$prometheus" \
    --config.file "$dir/etc/prometheus.yml" --storage.tsdb.path "$dir/data" --log.level warn
server=$started

# asked EXPRESSION: the values that it has now.
asked() {
    with_exporter curl -s -G --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query |
        "$PYTHON" -c 'import json, sys; print(*sorted(r["value"][1] for r in json.load(sys.stdin)["data"]["result"]))'
}

# The image's wget is busybox', too.
is_ready() {
    # shellcheck disable=SC2046
    with_exporter busybox $(health prometheus)
}
wait_for is_ready
ok $? 'it is healthy, by the command of compose.yaml' || diag "$(cat "$dir/prometheus.log")"
wait_for eval '[[ $(asked "up{job=\"gpus\"}") == 1 ]]'
ok $? 'and scrapes the exporter' || diag "$(asked up) $(cat "$dir/prometheus.log")"

# --- a scenario -----------------------------------------------------------------------------------

alert='ALERTS{alertname="GPUXidError", gpu="0", alertstate="firing"}'
is "$(asked "$alert")" '' 'nothing is wrong with GPU 0'
bounded "$BASH" -c "$(declare -f in_engine)"'; dir=$1 engine=$2 engine_alone=$3; shift 3; in_engine exec "$@"' - \
    "$dir" "$engine" "$engine_alone" "gpus-$$" /usr/bin/fakegpufs scenario --mount /run/fakegpufs/driver --speed 60 \
    /scenarios/gpu-xid-error.yaml >"$dir/scenario.log" 2>&1 &
run=$!
mount_owned+=($run)
wait_for eval '[[ $(asked "$alert") == 1 ]]'
ok $? 'a scenario that is played in the container makes its alert fire' || diag "$(cat "$dir/scenario.log")"
wait $run
ok $? 'and passes there, on a GPU with a profile' || diag "$(cat "$dir/scenario.log")"
is "$(cat "$host/driver/gpus/0/control/profile")" static 'which it then has again'
wait_for eval '[[ -z $(asked "$alert") ]]'
ok $? 'the alert is over'

# --- the driver is replaced -----------------------------------------------------------------------

container_kill "gpus-$$" KILL
! is_healthy exporter
ok $? 'a driver that was killed is not healthy'
rm -rf "$dir/gpus"
up gpus
wait_for eval 'has_page 7 || has_page 6'
ok $? 'one that is restarted is seen by the same exporter' || diag "$(cat "$dir/gpus.log")"
kill -TERM "$server"
wait_gone "$server"
container_kill "exporter-$$" TERM
container_kill "gpus-$$" TERM
is "$(grep -c " $host/driver " /proc/self/mountinfo)" 0 'when it is stopped, nothing is left mounted'
tap_done
