#!/usr/bin/env bash
#
# NVIDIA's device plugin and its feature discovery as k8s/components run them: in containers with the command, environment,
# volumes and privileges of the manifests, on a node whose driver comes late, is replaced and is away; and a pod with what
# the plugin gives to it. What is found here is what docs/kubernetes.md says.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/kubelet.sh"
. "${0%/*}/../container.sh"
need_client go
need_mounts
need_containers
cd "$tests/.." || bail 'no top directory'

manifests() {
    bounded "$PYTHON" tests/manifests.py "$@"
}

# --- a node ---------------------------------------------------------------------------------------

# Its root; what is mounted in it comes to containers, as on a node. Nothing in /run can be executed on many of them.
node=$dir/node
features=$node/etc/kubernetes/node-feature-discovery/features.d
mkdir -p "$node/run" "$node/var/lib/kubelet" "$node/var/run/cdi" "$node/volumes/"{script,unused} "$features"
manifests text nvidia-device-plugin start >"$node/volumes/script/start"
mount --bind "$node" "$node" && mount --make-rprivate "$node" &&
    mount -t tmpfs -o mode=755,nosuid,nodev,noexec node "$node/run" && mount --make-rshared "$node" ||
    bail 'cannot make a shared mount'
mkdir -p "$node/run/fakegpufs/driver"
mnt=$node/run/fakegpufs/driver
plugins=$node/var/lib/kubelet/device-plugins
echo '{gpus: {count: 4}}' >"$dir/config.yaml"

driver_up() {
    mount_up -c "$dir/config.yaml"
}

# driver_killed: as by a node that is short of memory.
driver_killed() {
    local worker
    worker=$(worker_of)
    mount_deaths+=$(grep -E 'the worker|ERROR: |WARNING: |runtime error' "$dir/log")
    kill -KILL "$mount_pid" "$worker"
    wait_gone "$mount_pid"
    wait_gone "$worker"
    mount_pid=
}

# The image: the two programs, a shell with its tools, and the libraries that they load.
image=$dir/image
mkdir -p "$image/"{bin,usr/bin,dev,proc,sys,node/cdi,run/fakegpufs,var/run/cdi,var/lib/kubelet/device-plugins} \
    "$image/etc/"{nvidia-device-plugin,kubernetes/node-feature-discovery/features.d}
cp "$bin/nvidia-device-plugin" "$bin/gpu-feature-discovery" "$image/usr/bin/"
cp "$dir/busybox/bin/busybox" "$image/bin/"
for tool in sh cat cp ln mkdir mv sleep uname; do
    ln -s busybox "$image/bin/$tool"
done
ldd "$image"/usr/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*[^:]$/ { print $1 }' | sort -u |
    while read -r library; do
        install -D "$library" "$image$library"
    done

# describe WORKLOAD CONTAINER [JSON]: a container of the manifests, with more environment, mounts, or other values.
describe() {
    manifests container "$1" "$2" "$node" | bounded "$PYTHON" -c '
import json, sys
described = json.load(sys.stdin)
for key, value in json.loads(sys.argv[1]).items():
    described[key] = described[key] + value if isinstance(described.get(key), list) and key != "args" else value
print(json.dumps(described))' "${3:-{\}}"
}

serial=0
# plugin_up [JSON]: starts the plugin as a kubelet does; sets $plugin. The log is $dir/plugin.log.
plugin_up() {
    plugin=plugin-$$-$((++serial))
    container_write "$dir/$plugin" "$image" "$(describe nvidia-device-plugin plugin "$@")"
    : >"$said"
    output=$dir/plugin.log container_start "$dir/$plugin" "$plugin"
}

# probe NAME: whether the plugin passes it.
probe() {
    local words
    mapfile -t words < <(manifests probe nvidia-device-plugin plugin "$1")
    container_exec "$plugin" "${words[@]}" >/dev/null 2>&1
}

# uuids INDEX...: sorted, as in a list.
uuids() {
    local i
    for i in "$@"; do
        identity "$i" uuid
    done | sort
}

healthy() {
    devices nvidia.com/gpu | awk '$2 == "Healthy" { print $1 }'
}

all_healthy() {
    [[ $(healthy) == "$(uuids 0 1 2 3)" ]]
}

unhealthy_are() {
    [[ $(unhealthy nvidia.com/gpu) == "$1" ]]
}

# --- it comes before its driver -------------------------------------------------------------------

kubelet_up
plugin_up
probe startupProbe
is $? 1 'without a driver the plugin has not started'
is "$(cat "$dir/plugin.log" "$said")" '' 'and waits, without a word'
driver_up
wait_for listed nvidia.com/gpu 4
ok $? 'with the driver it registers nvidia.com/gpu' || diag "$(cat "$dir/plugin.log")"
is "$(healthy)" "$(uuids 0 1 2 3)" 'and lists the GPUs of the mount, healthy'
is "$(devices nvidia.com/gpu | awk '{ print $3 }' | sort -u)" - 'without NUMA nodes: a container has the /sys of its node'
for name in startupProbe readinessProbe livenessProbe; do
    wait_for probe "$name"
    ok $? "it passes its $name"
done

# --- what a pod gets ------------------------------------------------------------------------------

first=$(identity 1 uuid) second=$(identity 3 uuid)
tell "allocate nvidia.com/gpu $first $second" | sort >"$dir/allocated"
is "$(cat "$dir/allocated")" "$(printf 'cdi k8s.device-plugin.nvidia.com/gpu=%s\n' "$first" "$second" | sort)
env NVIDIA_VISIBLE_DEVICES=$first,$second
$(for name in nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia1 nvidia3 nvidiactl; do
    echo "node /run/fakegpufs/driver/dev/$name /dev/$name rw"
done)" 'an allocation is the UUIDs, CDI devices, the device nodes of the GPUs and those that all share'

# given JSON: what was allocated, for a container; paths on the node are those of this one.
given() {
    bounded "$PYTHON" -c '
import json, sys
words = [line.split() for line in open(sys.argv[1])]
more = json.loads(sys.argv[3])
more["env"] = [word[1] for word in words if word[0] == "env"]
more["devices"] = {word[2]: sys.argv[2] + word[1] for word in words if word[0] == "node"}
print(json.dumps(more))' "$dir/allocated" "$node" "$1"
}

# A runtime that does not know CDI: the pod has the volume that the example Job has.
pod() {
    container_write "$dir/pod" "$image" "$(describe train trainer "$(given "{\"args\": $1}")")"
    container_run "$dir/pod" "pod-$$-$((++serial))" 2>&1
}
list='"--query-gpu=uuid", "--format=csv,noheader"'
is "$(pod "[\"/run/fakegpufs/driver/usr/bin/nvidia-smi\", $list]")" "$first"$'\n'"$second" \
    'a pod with the volume of the examples: nvidia-smi of the mount shows it these GPUs'
nodes='["/bin/busybox", "sh", "-c", "cd /dev; busybox ls -1 | busybox grep nvidia | busybox xargs"]'
is "$(pod "$nodes")" 'nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia1 nvidia3 nvidiactl' 'it has their device nodes'

# A runtime that does: a pod of any image, without a volume.
mkdir "$dir/cdi"
sed "s|\"hostPath\": \"|&$node|" "$node/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json" >"$dir/cdi/gpu.json"
is "$(ls "$node/var/run/cdi")" k8s.device-plugin.nvidia.com-gpu.json 'there is one CDI specification, called as the plugin would'
cp -a "$image" "$dir/any"
rm -r "$dir/any/run/fakegpufs" "$dir/any/usr/bin/"*
cp "$bin/walk" "$dir/any/usr/bin/"
# cdi_pod NAME ARGS: describes it in $dir/NAME.
cdi_pod() {
    local devices
    container_write "$dir/$1" "$dir/any" "$(given "{\"args\": $2, \"uid\": 12345}")"
    mapfile -t devices < <(sed -n 's/^cdi //p' "$dir/allocated")
    client cdi "$dir/cdi" "$dir/$1" "${devices[@]}"
}
cdi_pod pod "[\"/usr/bin/nvidia-smi\", $list]"
ok $? 'it is one for the package that runtimes use'
is "$(container_run "$dir/pod" "pod-$$-$((++serial))" 2>&1)" "$first"$'\n'"$second" \
    'a pod without a volume: nvidia-smi shows it these GPUs'
cdi_pod pod '["/usr/bin/walk"]'
is "$(container_run "$dir/pod" "pod-$$-$((++serial))" 2>&1 | sed -n 's/^gpus\/.\/identity\/uuid=//p')" \
    "$first"$'\n'"$second" 'so does the library to a program that looks where libraries are'
cdi_pod pod "$nodes"
is "$(container_run "$dir/pod" "pod-$$-$((++serial))" 2>&1)" \
    'nvidia-modeset nvidia-uvm nvidia-uvm-tools nvidia1 nvidia3 nvidiactl' 'it has the device nodes'
# As the strategy cdi-cri alone has it.
cp "$dir/allocated" "$dir/kept"
grep '^cdi ' "$dir/kept" >"$dir/allocated"
cdi_pod pod "[\"/usr/bin/nvidia-smi\", $list]"
is "$(container_run "$dir/pod" "pod-$$-$((++serial))" 2>&1)" "$first"$'\n'"$second" \
    'without NVIDIA_VISIBLE_DEVICES it sees them, too, by these nodes'
cp "$dir/kept" "$dir/allocated"
cdi_pod lasting '["/bin/busybox", "sleep", "100000"]'
output=$dir/lasting.log container_start "$dir/lasting" "lasting-$$"
# lasting_sees: what a pod sees that is there all the time.
lasting_sees() {
    container_exec "lasting-$$" /usr/bin/nvidia-smi --query-gpu=uuid --format=csv,noheader
}
is "$(lasting_sees)" "$first"$'\n'"$second" 'one that lasts sees them'

# --- a GPU that fails -----------------------------------------------------------------------------

# fails GPU: whether the plugin knows it; more than one Xid, for who listens only now.
fails() {
    put "$mnt/gpus/$1/control/fault" 'xid 79'
    unhealthy_are "$(identity "$1" uuid)"
}
wait_for fails 2
ok $? 'an Xid makes its GPU unhealthy'
put "$mnt/gpus/2/control/fault" recover
container_kill "$plugin" TERM
plugin_up
wait_for all_healthy
ok $? 'a plugin that is started anew finds all healthy'

# --- the driver is replaced -----------------------------------------------------------------------

# It has looked at the mount's events before the driver goes.
listens() {
    put "$mnt/gpus/0/control/fault" 'xid 13'
    grep -q 'Skipping event.*EventData:13' "$dir/plugin.log"
}
wait_for listens
cp "$said" "$dir/before"
driver_killed
probe livenessProbe
is $? 1 'a driver that is killed fails the livenessProbe'
driver_up
probe livenessProbe
is $? 0 'its successor passes it'
is "$(healthy)" "$(uuids 0 1 2 3)" 'the plugin has the GPUs of the next one, which are called the same'
is "$(diff "$dir/before" "$said")" '' 'and told the kubelet nothing'
is "$(lasting_sees)" "$first"$'\n'"$second" 'a pod that was there before sees those of the next driver'
wait_for fails 3
ok $? 'an Xid of the next driver makes its GPU unhealthy, and only that one'
put "$mnt/gpus/3/control/fault" recover

# --- the driver is away ---------------------------------------------------------------------------

driver_killed
wait_for eval '[[ $(unhealthy nvidia.com/gpu | wc -l) == 4 ]]'
ok $? 'after some seconds without a driver all GPUs are unhealthy'
lists=$(grep -c ^listed "$said")
probe livenessProbe
is $? 1 'which the livenessProbe has seen'
container_kill "$plugin" TERM
((lists < 20))
ok $? "until then the kubelet got $lists lists, and no flood" || diag "$(tail -n 5 "$dir/plugin.log")"
plugin_up
probe startupProbe
is $? 1 'the plugin that is started for it waits'
driver_up
wait_for all_healthy
ok $? 'and has all GPUs when the driver is back' || diag "$(cat "$dir/plugin.log")"
container_kill "$plugin" TERM

# --- other ways to tell a pod ---------------------------------------------------------------------

# allocated_with STRATEGY: what a pod gets then, sorted; nodes by name.
allocated_with() {
    plugin_up "{\"env\": [\"DEVICE_LIST_STRATEGY=$1\"]}"
    wait_for listed nvidia.com/gpu 4 || diag "$(tail -n 3 "$dir/plugin.log")"
    tell "allocate nvidia.com/gpu $first" | sed "s|nvidia-device-plugin_[-0-9a-f]*|ID|; s|$first|UUID|" | sort >"$dir/allocated"
    container_kill "$plugin" TERM
    grep -v '^node ' "$dir/allocated"
}
is "$(allocated_with envvar)" 'env NVIDIA_VISIBLE_DEVICES=UUID' 'envvar: the name of the GPU'
is "$(allocated_with volume-mounts)" 'env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices
mount /dev/null /var/run/nvidia-container-devices/UUID' 'volume-mounts: a file with the name of the GPU'
is "$(allocated_with cdi-annotations)" 'annotation cdi.k8s.io/ID=k8s.device-plugin.nvidia.com/gpu=UUID' \
    'cdi-annotations: an annotation'
is "$(allocated_with cdi-cri)" 'cdi k8s.device-plugin.nvidia.com/gpu=UUID' 'cdi-cri: a CDI device'
is "$(grep -c ^node "$dir/allocated")" 0 'and no device nodes'
# The plugin's own specification, which ours stands in for.
bounded "$PYTHON" - "$node/volumes/unused/k8s.device-plugin.nvidia.com-gpu.json" >"$dir/spec" <<'PYTHON'
import json, sys
edits = json.load(open(sys.argv[1]))["containerEdits"]
for mount in edits["mounts"]:
    print("mount", mount["hostPath"], mount["containerPath"])
for hook in edits["hooks"]:
    print("hook", hook["path"], hook["args"][1])
PYTHON
version=$(identity 0 driver_version)
is "$(grep ^mount "$dir/spec" | grep -E 'libnvidia-ml|nvidia-smi' | sort)" \
    "mount /run/fakegpufs/driver/usr/bin/nvidia-smi /usr/bin/nvidia-smi
mount /run/fakegpufs/driver/usr/lib64/libnvidia-ml.so.$version /usr/lib64/libnvidia-ml.so.$version" \
    'its own specification mounts the library and nvidia-smi'
is "$(grep -c 'mount [^ ]* /run/fakegpufs' "$dir/spec")" 0 'but not what they read'
is "$(awk '$1 == "hook" { print $2 }' "$dir/spec" | sort -u)" /usr/bin/nvidia-ctk "and runs a program of NVIDIA's on the node"

# --- MIG ------------------------------------------------------------------------------------------

put "$mnt/gpus/0/control/mig_mode" on
put "$mnt/gpus/0/mig/instances" 'create 3g.20gb'
plugin_up
wait_for listed nvidia.com/gpu 4
ok $? 'a GPU in MIG mode is listed as a whole' || diag "$(tail -n 3 "$dir/plugin.log")"
is "$(tell "allocate nvidia.com/gpu $first" | grep -c ^cdi)" 0 'and there are no CDI devices'
container_kill "$plugin" TERM
plugin_up '{"env": ["MIG_STRATEGY=mixed"]}'
wait_for container_is_gone "$plugin"
like "$(cat "$dir/plugin.log")" 'missing MIG GPU instance capability path' \
    'its devices need the /proc/driver of the node, which the mount cannot give'

# --- feature discovery ----------------------------------------------------------------------------

# discovery_up [VALUE]: starts it, as $discovery. As every container it has the /sys of its node.
discovery_up() {
    discovery=discovery-$$-$((++serial))
    container_write "$dir/$discovery" "$image" "$(describe gpu-feature-discovery discovery "{
        \"env\": [${1-}], \"mounts\": [[\"/sys\", \"/sys\", \"rbind\", \"rprivate\", \"ro\"]]}")"
    output=$dir/discovery.log container_start "$dir/$discovery" "$discovery"
}
driver_killed
discovery_up
driver_up
wait_for test -s "$features/gfd"
ok $? 'the feature discovery waits for the driver and writes its file' || diag "$(tail -n 5 "$dir/discovery.log")"
mapfile -t words < <(manifests probe gpu-feature-discovery discovery readinessProbe)
container_exec "$discovery" "${words[@]}" >/dev/null
is $? 0 'then it is ready'
# What it has besides, and what it cannot know in a container, is in the manual.
is "$(grep -vE '^nvidia.com/(gfd.timestamp|gpu.machine)=' "$features/gfd" | sort)" \
    "$(grep -vxE 'nvidia.com/(gpu.present=true|mig.strategy=none)' "$mnt/k8s/labels" |
        sed 's/^nvidia.com\/gpu.mode=.*/nvidia.com\/gpu.mode=unknown/' | sort)" \
    'with the labels of the mount, all but the mode'
container_kill "$discovery" TERM
is "$(ls "$features")" '' 'its file goes with it'
discovery_up '"GFD_SLEEP_INTERVAL=1s"'
wait_for test -s "$features/gfd"
driver_killed
wait_for container_is_gone "$discovery"
ok $? 'without a driver it ends' || diag "$(tail -n 5 "$dir/discovery.log")"
is "$(ls "$features")" '' 'without its file, too'

exec 9>&-
stop_background
is "$mount_deaths" '' 'no worker died by itself'
tap_done
