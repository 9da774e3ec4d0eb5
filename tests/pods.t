#!/usr/bin/env bash
#
# fakegpu-pods against a kubelet of gRPC's own library, and a mount: who was given a GPU is seen on it.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

pods=$(cd "$BUILD" && pwd)/fakegpu-pods
[[ -x $pods ]] || skip_all 'fakegpu-pods was not built: its libraries are not here'
"$PYTHON" -c 'import grpc, google.protobuf' 2>/dev/null || skip_all "$PYTHON has no grpc or no protobuf"
need_mounts

# Of a pod that the tests run in.
unset POD_NAMESPACE POD_NAME
kubelet_dir=$dir/pod-resources
socket=$kubelet_dir/kubelet.sock
state=$dir/state
mkdir "$kubelet_dir"

# --- a kubelet -----------------------------------------------------------------

kubelet_pid=
kubelet_start() {
    rm -f "$socket" "$dir/kubelet.out"
    output=$dir/kubelet.out background "$PYTHON" "$tests/kubelet.py" "$socket" "$state"
    kubelet_pid=$started
    wait_for grep -q ready "$dir/kubelet.out" || bail "no kubelet: $(cat "$dir/kubelet.out")"
}

kubelet_stop() {
    kill -KILL "$kubelet_pid"
    wait_gone "$kubelet_pid"
    rm -f "$socket"
}

# kubelet_says JSON: in one step, so that nobody reads half of it.
kubelet_says() {
    echo "$1" >"$state.new"
    mv "$state.new" "$state"
}

# pod NAME CONTAINER=ID[,ID]...: a pod in the namespace `default`, as JSON; the resource is $resource.
resource=nvidia.com/gpu
pod() {
    local name=$1 containers= one ids
    shift
    for one in "$@"; do
        ids=${one#*=}
        containers+=",{\"name\": \"${one%%=*}\", \"devices\": {\"$resource\": [\"${ids//,/\", \"}\"]}}"
    done
    echo "{\"namespace\": \"default\", \"name\": \"$name\", \"containers\": [${containers#,}]}"
}

# pods_are POD...: what the kubelet answers from now on.
pods_are() {
    local IFS=,
    kubelet_says "{\"pods\": [$*]}"
}

# --- the program ---------------------------------------------------------------

look() {
    bounded "$pods" --root "$mnt" --socket "$socket" --once "$@" 2>&1
}

follower=
follow() {
    rm -f "$dir/follow.log"
    output=$dir/follow.log background "$pods" --root "$mnt" --socket "$socket" --interval 100ms "$@"
    follower=$started
}

follow_end() {
    kill -TERM "$follower"
    wait_gone "$follower"
}

# on GPU: who is on it, as namespace/pod/container=percent, in order.
on() {
    awk '!/^#/ { print $5 "/" $6 "/" $7 "=" $3 }' "$mnt/gpus/$1/processes" | sort | tr '\n' ' '
}

is_on() {
    [[ $(on "$1") == "$2" ]]
}

uuid() {
    cat "$mnt/gpus/$1/identity/uuid"
}

# was_said COUNT TEXT: at least so often.
was_said() {
    (($(grep -c "$2" "$dir/follow.log") >= $1))
}

# --- one look after the other --------------------------------------------------

mount_up --gpus 4
pods_are
kubelet_start
is "$(look)" '' 'no pods, nothing to say'
is "$(ls "$mnt/workloads")" '' 'and nothing to do'

pods_are "$(pod train-0 "main=$(uuid 0),$(uuid 1)" "side=2")" '{"namespace": "default", "name": "web"}' \
    '{"namespace": "default", "name": "nic", "containers": [{"name": "main", "devices": {"example.com/nic": ["0"]}}]}'
is "$(look --dry-run | sed 's/-[0-9a-f]*:/:/')" "create pod-default-train-0-main: default/train-0/main on GPU 0,1
create pod-default-train-0-side: default/train-0/side on GPU 2" 'a dry run says what would be done'
is "$(ls "$mnt/workloads")" '' 'and does nothing'
look >/dev/null; ok $? 'a look'
is "$(on 0)$(on 1)$(on 2)$(on 3)" \
    'default/train-0/main=100 default/train-0/main=100 default/train-0/side=100 ' \
    'each container is on its GPUs, at 100 % at once'
is "$(cat "$mnt/gpus/"{0,1,2,3}/metrics/memory_used_bytes | tr '\n' ' ')" \
    '1073741824 1073741824 1073741824 0 ' 'with memory'
before=$(ls -i "$mnt/workloads")
is "$(look)" '' 'the next look has nothing to say'
is "$(ls -i "$mnt/workloads")" "$before" 'and makes nothing anew'
main=$(echo "$mnt/workloads/pod-default-train-0-main-"*)
is "$(cat "$main/"{namespace,pod,container,devices} | tr '\n' ' ')" 'default train-0 main 0,1 ' 'its files tell'

# What the library tells programs: the processes of GPU 2, with their memory.
processes() {
    bounded "$PYTHON" - "$BUILD/libnvidia-ml.so.1" "$1" <<'END'
import ctypes, sys
class Info(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
nvml = ctypes.CDLL(sys.argv[1])
device, count, infos = ctypes.c_void_p(), ctypes.c_uint(8), (Info * 8)()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[2]), ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), infos) == 0
print(*["%d %d" % (i.pid, i.memory) for i in infos[:count.value]])
END
}
# (A sanitized library would need its runtime in Python.)
sanitized || is "$(FAKEGPUFS_ROOT=$mnt processes 2)" \
    "$(cat "$mnt/workloads/pod-default-train-0-side-"*/pid) 1073741824" 'NVML lists it'

# --- changes, and whose they are -----------------------------------------------

echo 30:0:1h >"$main/activity"
echo 5GiB >"$main/memory"
echo 3 >"$main/devices"
look >/dev/null
is "$(on 0)$(on 3)" 'default/train-0/main=30 ' 'what somebody changed stays as he made it'
mkdir "$mnt/workloads/mine"
echo default >"$mnt/workloads/mine/namespace"
echo train-0 >"$mnt/workloads/mine/pod"
echo side >"$mnt/workloads/mine/container"
echo 2 >"$mnt/workloads/mine/devices"
echo 40:0:1h >"$mnt/workloads/mine/activity"
like "$(look)" 'pod-default-train-0-side-.* is removed: the pod has its own' 'a pod with a workload of its own'
is "$(on 2)" 'default/train-0/side=40 ' 'has nothing else'
rmdir "$mnt/workloads/mine"
look >/dev/null
is "$(on 2)" 'default/train-0/side=100 ' 'until it removes it'
mkdir "$mnt/workloads/"{other,pod-x,pod-default-train-0-side}
pods_are "$(pod train-0 "main=$(uuid 3)")"
look >/dev/null
is "$(on 3)$(on 2)" 'default/train-0/main=100 ' 'other devices are another allocation'
pods_are
look >/dev/null
is "$(ls "$mnt/workloads" | tr '\n' ' ')" 'other pod-default-train-0-side pod-x ' \
    'pods that are gone have no workloads, and nobody else has lost one'
rmdir "$mnt/workloads/"*

# --- kinds of ids --------------------------------------------------------------

pods_are "$(pod a "main=$(uuid 0)::0")" "$(pod b "main=$(uuid 0)::1")" "$(pod c 'main=nvidia1/vgpu2')"
look --activity 30 --memory 2GiB >/dev/null
is "$(on 0)$(on 1)" 'default/a/main=30 default/b/main=30 default/c/main=30 ' 'pods share a GPU'
is "$(cat "$mnt/gpus/0/metrics/"{utilization_gpu_percent,memory_used_bytes} | tr '\n' ' ')" '60 4294967296 ' \
    'and add up'
pods_are
look >/dev/null
echo on >"$mnt/gpus/3/control/mig_mode"
echo create 3g.20gb >"$mnt/gpus/3/mig/instances"
echo create 1g.5gb >"$mnt/gpus/3/mig/instances"
mapfile -t migs < <(awk '$8 ~ /^MIG-/ { print $8 }' "$mnt/gpus/3/mig/instances")
resource=nvidia.com/mig-3g.20gb
large=$(pod large "main=${migs[0]}")
resource=nvidia.com/mig-1g.5gb
pods_are "$large" "$(pod small "main=${migs[1]}")"
look >/dev/null
is "$(on 3)" 'default/large/main=39 default/small/main=13 ' 'MIG devices are parts of a GPU'
is "$(awk '!/^#/ { print $6, $8, $9 }' "$mnt/gpus/3/processes" | sort | tr '\n' ' ')" \
    "large $(awk '$8 == id { print $1, $2 }' id="${migs[0]}" "$mnt/gpus/3/mig/instances") small $(
        awk '$8 == id { print $1, $2 }' id="${migs[1]}" "$mnt/gpus/3/mig/instances") " 'and each pod is on its own'
resource=example.com/gpu
pods_are "$(pod e main=0)"
look >/dev/null
is "$(on 0)$(on 3)" '' 'another resource is not looked at'
look --resource 'example.com/*' --activity '[{time: 1h, utilization: 20}]' --memory '' >/dev/null
is "$(on 0)$(cat "$mnt/gpus/0/metrics/memory_used_bytes")" 'default/e/main=20 0' 'unless it is asked for'
resource=nvidia.com/gpu
echo off >"$mnt/gpus/3/mig/instances" 2>/dev/null
pods_are "$(pod x 'main=GPU-nowhere')"
said=$(look --activity '')
is $? 1 'what cannot be done'
like "$said" "default/x/main: there is no GPU 'GPU-nowhere' in the mount" 'is said'
pods_are "$(pod x main=0)"
said=$(look --activity nonsense --memory 1000GiB)
is $? 0 'defaults that the mount refuses'
like "$said" "activity 'nonsense' is refused: .+" 'are told'
like "$said" "memory '1000GiB' is refused: .*needs 1024000 MiB" 'each'
is "$(on 0)" 'default/x/main=0 ' 'and left out'
pods_are "$(pod "$(printf 'p%.0s' {1..253})" "$(printf 'c%.0s' {1..63})=0")"
look >/dev/null
is "$(on 0 | tr -d pc/)" 'default=100 ' 'the longest names'
pods_are
look >/dev/null
is "$(ls "$mnt/workloads")" '' 'come and go'

# --- a kubelet with troubles ---------------------------------------------------

pods_are "$(pod train main=0)"
look >/dev/null
kubelet_says '{"status": "UNIMPLEMENTED", "details": "Method not found!"}'
said=$(look)
is $? 1 'a kubelet that refuses'
like "$said" 'refuses: UNIMPLEMENTED: Method not found!' 'with its words'
kubelet_says '{"status": "UNAVAILABLE", "details": "50 % there: é\n"}'
like "$(look)" 'refuses: UNAVAILABLE: 50 % there: é' 'whatever is in them'
kubelet_says '{"raw": "0a05ffffff"}'
like "$(look)" "answer is not a list of pods" 'one that talks nonsense'
kubelet_stop
like "$(look)" "nobody answers on $socket: No such file or directory" 'one that is not there'
# What is no gRPC: closes at once, speaks another protocol, answers HTTP/2 without a status.
serve() {
    rm -f "$socket" "$dir/serve.out"
    output=$dir/serve.out background "$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    if sys.argv[2]:
        c.recv(10000)
        c.sendall(bytes.fromhex(sys.argv[2]))
        c.settimeout(1)
        try:
            while c.recv(10000):
                pass
        except OSError:
            pass
    c.close()' "$socket" "$1"
    wait_for grep -q ready "$dir/serve.out"
}
settings=000000040000000000
for bytes in '' "$(printf 'HTTP/1.1 400 Bad Request\r\n\r\n' | od -An -tx1 | tr -d ' \n')" ffffffffffffffffffffffffffff \
    "${settings}000001010500000001""88" "${settings}000001010400000001""88"000005000100000001"0000000000" \
    "${settings}000001010400000001""88"000003000100000001"ff0000"; do
    serve "$bytes"
    said=$(look)
    is $? 1 "what is no gRPC: '${bytes:0:40}'"
    like "$said" 'does not speak gRPC|connections are closed at once' 'is told'
    kill -KILL "$started"
done
is "$(on 0)" 'default/train/main=100 ' 'meanwhile everything stays'

# --- for a long time -----------------------------------------------------------

rm -f "$socket"
follow
wait_for grep -q 'nobody answers' "$dir/follow.log"; ok $? 'it waits for the kubelet'
pods_are "$(pod train main=0)" "$(pod next main=1)"
kubelet_start
wait_for is_on 1 'default/next/main=100 '; ok $? 'it goes on when that comes'
pods_are "$(pod next main=1)"
wait_for is_on 0 ''; ok $? 'a pod that is gone'
kubelet_stop
wait_for was_said 2 'nobody answers'; ok $? 'the kubelet goes'
is "$(on 1)" 'default/next/main=100 ' 'a kubelet that is gone takes nobody away'
pods_are "$(pod next main=1)" "$(pod third main=2)"
kubelet_start
wait_for is_on 2 'default/third/main=100 '; ok $? 'and when it is back there is more'
is "$(uniq -d "$dir/follow.log")" '' 'what lasts is said once'

# A kubelet that was just started lists no pod, or only those that it has from files, until the API server answers.
follow_end
driver='{"namespace": "gpus", "name": "driver-0"}'
from_files='{"namespace": "kube-system", "name": "etcd"}'
pods_are "$driver" "$(pod next main=1)" "$(pod third main=2)"
POD_NAMESPACE=gpus POD_NAME=driver-0 follow
before=$(ls -i "$mnt/workloads")
restarts=0
for known in '' "$from_files"; do
    ((++restarts))
    kubelet_stop
    wait_for was_said $restarts 'nobody answers'
    pods_are "$known"
    kubelet_start
    wait_for was_said $restarts 'does not list gpus/driver-0'
    ok $? "a kubelet that lists '$known' and not who asks does not know its pods yet"
    is "$(ls -i "$mnt/workloads")" "$before" 'and takes nobody away'
    pods_are "$driver" "$(pod next main=1)" "$(pod third main=2)"
    wait_for was_said $restarts 'the kubelet answers'
    ok $? 'it goes on when that does'
    is "$(ls -i "$mnt/workloads")" "$before" 'with what there was'
done
pods_are "$driver" "$(pod next main=1)"
wait_for is_on 2 ''; ok $? 'a pod that is gone then is gone'
follow_end
pods_are "$(pod next main=1)" "$(pod third main=2)"
follow
wait_for is_on 2 'default/third/main=100 '

kill -KILL "$mount_pid" $(worker_of)
wait_for grep -q 'is gone\|no mount' "$dir/follow.log"; ok $? 'the daemon is killed'
mount_up --gpus 4
wait_for is_on 2 'default/third/main=100 '; ok $? 'in the next mount they are again'
is "$(on 1)" 'default/next/main=100 ' 'all of them'
echo fallen_off_bus >"$mnt/gpus/2/control/fault"
wait_for grep -q '^ended 1 GPU 2 is lost' "$mnt/workloads/pod-default-third-"*/state; ok $? 'a GPU is lost'
echo recover >"$mnt/gpus/2/control/fault"
wait_for is_on 2 'default/third/main=100 '; ok $? 'its pod is there again when it is back'
kill -KILL "$follower"
wait_gone "$follower"
before=$(ls -i "$mnt/workloads")
follow
pods_are "$(pod next main=1)" "$(pod third main=2)" "$(pod fourth main=3)"
wait_for is_on 3 'default/fourth/main=100 '; ok $? 'another one takes over'
is "$(ls -i "$mnt/workloads" | grep -v fourth)" "$before" 'and finds what the killed one made'
kubelet_says '{"wait": 600}'
follow_end; ok $? 'it ends, though the kubelet does not answer'
is "$(ls "$mnt/workloads" | wc -l)" 3 'and leaves them'
pods_are "$(pod next main=1)"
kubelet_stop
kubelet_start
follow --on-exit remove
wait_for is_on 2 ''
mkdir "$mnt/workloads/other"
follow_end
is "$(ls "$mnt/workloads")" other 'or takes them along'

# --- usage ---------------------------------------------------------------------

for wrong in '--interval 5' '--interval 1ms' '--interval 2h' '--on-exit maybe' '--log-level loud' '--resource=' extra '--nonsense'; do
    said=$(bounded "$pods" $wrong 2>&1)
    is $? 64 "usage: $wrong"
    like "$said" 'fakegpu-pods: .+' 'with a sentence'
done
like "$(bounded "$pods" --help)" '^usage: fakegpu-pods' 'help'
is "$(bounded "$pods" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--.*' | while read -r option; do
    grep -q "^| .*\`$option[ \`]" docs/kubernetes.md || echo "$option"; done)" '' 'every option is in docs/kubernetes.md'
is "$(bounded "$pods" --version)" "fakegpu-pods $("$fakegpufs" --version | cut -d ' ' -f 2)" 'version'
said=$(bounded "$pods" --once --root "$dir" --socket "$socket" 2>&1)
is "$? $said" "1 fakegpu-pods: warning: no mount of fakegpufs on $dir" 'no mount'

mount_down; ok $? 'the mount goes'
is "$mount_deaths" '' 'no worker died'
stop_background
tap_done
