#!/usr/bin/env bash
#
# The compose project of k8s/observability, as compose's own loader reads it: strictly and without a warning. What it
# makes of the file is what was meant.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
need_client manifests

observability=$(cd "$tests/../k8s/observability" && pwd)

client compose "$observability/compose.yaml" >"$dir/project.json" 2>"$dir/log"
is "$?/$(cat "$dir/log")" 0/ 'compose loads the project, and warns of nothing'

# about PYTHON: prints what an expression over `services` says.
about() {
    "$PYTHON" -c '
import json, os, sys
services = json.load(open(sys.argv[1]))["services"]
'"$1" "$dir/project.json"
}

is "$(about 'print(*sorted(services))')" 'exporter gpus grafana prometheus' 'it has four services'
is "$(about '
for name in sorted(services): print(services[name]["image"])')" "fakegpu-exporter:0.1.0
fakegpufs:0.1.0
grafana/grafana:11.4.0
prom/prometheus:v2.53.4" 'each of an image with a version'
is "$(about 'print(services["gpus"]["image"])')" \
    "$("$fakegpufs" --version | sed -nE '1s/.* ([0-9.]+).*/fakegpufs:\1/p')" 'ours is of this version'
is "$(client compose "$observability/compose.yaml" FAKEGPUFS_IMAGE=mine/gpus:2 |
    "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["services"]["gpus"]["image"])')" mine/gpus:2 \
    'or of another, by a variable'

is "$(about '
for name, service in services.items():
    for volume in service["volumes"]:
        if volume["type"] != "bind": print(name, "has a", volume["type"])
        elif volume["source"] != "/run/fakegpufs" and not os.path.exists(volume["source"]): print(name, "lacks", volume["source"])
        elif not volume.get("read_only") and (name, volume["source"]) != ("gpus", "/run/fakegpufs"):
            print(name, "may write to", volume["source"])')" '' 'what is mounted is in the repository, and only the driver may write'
is "$(about '
for name in ("gpus", "exporter"):
    for volume in services[name]["volumes"]:
        if volume["source"] == "/run/fakegpufs": print(name, volume["target"], volume["bind"]["propagation"])')" \
    "gpus /run/fakegpufs rshared
exporter /run/fakegpufs rslave" 'a mount of the driver comes to the machine, and from there to the exporter'
is "$(about '
for name in sorted(services):
    for port in services[name].get("ports", []): print(name, port["host_ip"], port["published"], port["target"])')" \
    "exporter 127.0.0.1 9400 9400
grafana 127.0.0.1 3000 3000
prometheus 127.0.0.1 9090 9090" 'ports are of the loopback'
is "$(about '
for name in sorted(services):
    for other, how in services[name].get("depends_on", {}).items(): print(name, other, how["condition"])')" \
    "exporter gpus service_healthy
grafana prometheus service_healthy
prometheus exporter service_started" 'who needs whom waits for it'
is "$(about '
for name in sorted(services):
    test = services[name].get("healthcheck", {}).get("test")
    if test: print(name, test[0], test[1])')" "gpus CMD /usr/bin/fakegpufs
prometheus CMD wget" 'who is waited for can be asked, without a shell'
is "$(about '
driver = services["gpus"]
print(*driver["cap_drop"], *driver["cap_add"], driver["read_only"], driver["devices"][0]["source"], *driver["security_opt"])
exporter = services["exporter"]
print(*exporter["cap_drop"], exporter.get("cap_add"), exporter["read_only"], exporter["user"], *exporter["security_opt"])')" \
    "ALL SYS_ADMIN SETUID SETGID True /dev/fuse apparmor=unconfined no-new-privileges=true
ALL None True 65532:65532 no-new-privileges=true" 'privileges are those that are needed'

# What is wrong does not pass.
for wrong in 's/propagation: rshared/propogation: rshared/' 's/gpus: [{]condition/gpu: {condition/' \
    's/service_healthy/service_well/' 's/read_only: true/read_only: maybe/' 's/FAKEGPUFS_IMAGE:-[^}]*/FAKEGPUFS_IMAGE/' \
    's/^name:/version: "3"\nname:/' 's/127.0.0.1:9400:9400/127.0.0.1:9400:94000/'; do
    sed -E "$wrong" "$observability/compose.yaml" >"$dir/wrong.yaml"
    ! cmp -s "$observability/compose.yaml" "$dir/wrong.yaml" && ! client compose "$dir/wrong.yaml" >/dev/null 2>"$dir/log"
    ok $? "one with $wrong is refused: $(head -c 100 "$dir/log" | tr '\n' ' ')"
done
tap_done
