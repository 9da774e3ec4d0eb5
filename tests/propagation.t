#!/usr/bin/env bash
#
# The daemon in a container, and its mount in others: what they see when it comes, is killed and is replaced.
#
# The host is a directory that is mounted shared, as /run is on a node. The daemon's container is the image that
# `make image` built. What is found here is what docs/kubernetes.md says.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/container.sh"
need_mounts
need_containers

roots=$(cd "$BUILD" && pwd)/image.root
[[ -d $roots/base ]] || bail 'there is no image: run make image'
mkdir "$dir/image"
cp -a "$roots/base/." "$dir/image"
[[ ! -d $roots/curl ]] || cp -a "$roots/curl/." "$dir/image"
mkdir "$dir/image/gpus" "$dir/busybox/gpus"

# The directory that pods share with their node, and the mount point in it.
host=$dir/host
mkdir "$host"
mount --bind "$host" "$host" && mount --make-rprivate "$host" && mount --make-rshared "$host" ||
    bail 'cannot make a shared mount'
driver=$host/driver

# --- the parts -----------------------------------------------------------------

# daemon_start ID [OPTION...]: what a DaemonSet's pod does, with the privileges it needs and no more.
daemon_start() {
    local id=$1 args=
    shift
    printf -v args ', "%s"' "$@" /gpus/driver
    container_write "$dir/$id" "$dir/image" "{
        \"args\": [\"/usr/bin/fakegpufs\", \"mount\", \"--foreground\"$args],
        \"mounts\": [[\"$host\", \"/gpus\", \"rbind\", \"rshared\", \"rw\"]], \"propagation\": \"rshared\",
        \"capabilities\": [\"CAP_SYS_ADMIN\", \"CAP_SETUID\", \"CAP_SETGID\"],
        \"devices\": {\"/dev/fuse\": \"/dev/fuse\"}, \"readonly\": true}"
    output=$dir/$id.log container_start "$dir/$id" "$id"
    wait_for grep -q 'serves' "$dir/$id.log" || bail "the daemon does not serve: $(cat "$dir/$id.log")"
}

# consumer_start ID SOURCE PROPAGATION: a pod that has SOURCE of the node as /gpus.
consumer_start() {
    container_write "$dir/$1" "$dir/busybox" "{
        \"args\": [\"/bin/busybox\", \"sleep\", \"100000\"], \"uid\": 12345,
        \"mounts\": [[\"$2\", \"/gpus\", \"rbind\", \"$3\", \"rw\"]], \"propagation\": \"rslave\"}"
    output=$dir/$1.log container_start "$dir/$1" "$1"
}

# sees ID [PATH]: how many GPUs a consumer sees, or what it is told instead.
sees() {
    container_exec "$1" /bin/busybox cat "/gpus/${2-driver/}gpus/1/identity/index" | sed 's/.*: //'
}

host_sees() {
    cat "$driver/gpus/1/identity/index" 2>&1 | sed 's/.*: //'
}

# mirror_start ID: fakegpu-pods, with no privileges but to be root, for the kubelet's socket.
mirror_start() {
    container_write "$dir/$1" "$dir/image" "{
        \"args\": [\"/usr/bin/fakegpu-pods\", \"--root\", \"/gpus/driver\", \"--interval\", \"100ms\"],
        \"mounts\": [[\"$host\", \"/gpus\", \"rbind\", \"rslave\", \"rw\"],
                     [\"$dir/kubelet\", \"/var/lib/kubelet/pod-resources\", \"bind\", \"ro\"]],
        \"propagation\": \"rslave\", \"readonly\": true}"
    output=$dir/$1.log container_start "$dir/$1" "$1"
}

# exporter_start ID: the exporter's image, as its user and with no privileges; it listens on $dir/web/exporter.sock.
exporter_start() {
    mkdir -p -m 777 "$dir/web"
    container_write "$dir/$1" "$dir/image" "{
        \"args\": [\"/usr/bin/fakegpu-exporter\", \"--root\", \"/gpus/driver\", \"--unix-socket\", \"/tmp/exporter.sock\",
                   \"--unix-socket-mode\", \"0666\"], \"uid\": 65532,
        \"mounts\": [[\"$host\", \"/gpus\", \"rbind\", \"rslave\", \"ro\"], [\"$dir/web\", \"/tmp\", \"bind\", \"rw\"]],
        \"env\": [\"FAKEGPUFS_ROOT=/gpus/driver\"], \"propagation\": \"rslave\", \"readonly\": true}"
    output=$dir/$1.log container_start "$dir/$1" "$1"
}

# scrape: the labels of GPU 1's utilization, as exported, and its value.
scrape() {
    bounded curl -s --unix-socket "$dir/web/exporter.sock" http://localhost/metrics |
        grep '^DCGM_FI_DEV_GPU_UTIL{gpu="1"' | grep -oE '(namespace|pod|container)="[^"]*"|[0-9]+$' | sort | tr '\n' ' '
}

is_scraped() {
    [[ $(scrape) == "$1" ]]
}

# smi ID: what nvidia-smi says of the GPUs there, from the mount's own library.
smi() {
    container_exec "$1" /gpus/driver/usr/bin/nvidia-smi --query-gpu=index,name --format=csv,noheader | tr '\n' ' '
}

# pod_is_on GPU: whether the pod of the kubelet below is seen there.
pod_is_on() {
    grep -q ' default train-0 main ' "$driver/gpus/$1/processes"
}

# expect WHAT ID=SEEN...: one test for each consumer.
expect() {
    local what=$1 one id
    shift
    for one in "$@"; do
        id=${one%%=*}
        case $id in
            host) is "$(host_sees)" "${one#*=}" "$what: the host" ;;
            itself) is "$(sees "$id-$$" '')" "${one#*=}" "$what: who has the mount itself" ;;
            *) is "$(sees "$id-$$")" "${one#*=}" "$what: who has the directory, $id" ;;
        esac
    done
}

dead='Transport endpoint is not connected'
none='No such file or directory'

# --- it comes ------------------------------------------------------------------

consumer_start early-$$ "$host" rslave
consumer_start apart-$$ "$host" rprivate
expect 'before the daemon' host="$none" early="$none" apart="$none"
daemon_start daemon1-$$ --gpus 2
consumer_start late-$$ "$host" rslave
consumer_start private-$$ "$host" rprivate
consumer_start itself-$$ "$driver" rslave
expect 'with the daemon' host=1 early=1 late=1 private=1 itself=1 apart="$none"
is "$(container_exec early-$$ /bin/busybox sh -c 'busybox mkdir /gpus/driver/workloads/job && busybox cat /gpus/driver/workloads/job/state')" \
    running 'a pod makes a workload'
is "$(cat "$driver/workloads/job/state")" running 'which the host sees'

# --- pods ----------------------------------------------------------------------

mirror=
if [[ -x $dir/image/usr/bin/fakegpu-pods ]] && "$PYTHON" -c 'import grpc, google.protobuf' 2>/dev/null; then
    mirror=yes
    mkdir -m 700 "$dir/kubelet"
    echo '{"pods": [{"namespace": "default", "name": "train-0", "containers": [
        {"name": "main", "devices": {"nvidia.com/gpu": ["1"]}}]}]}' >"$dir/state"
    output=$dir/kubelet.log background "$PYTHON" "$tests/kubelet.py" "$dir/kubelet/kubelet.sock" "$dir/state"
    mirror_start mirror-$$
    wait_for pod_is_on 1; ok $? 'a pod with a GPU is seen on it' || diag "$(cat "$dir/mirror-$$.log")"
else
    skip 1 'fakegpu-pods was not built, or there is no gRPC for the kubelet'
fi

# --- who looks at GPUs ---------------------------------------------------------

exporter=
if [[ -x $dir/image/usr/bin/fakegpu-exporter && -x $dir/image/usr/bin/nvidia-smi ]] && command -v curl >/dev/null; then
    exporter=yes
    seen='0 '
    [[ ! $mirror ]] || seen='100 container="main" namespace="default" pod="train-0" '
    exporter_start exporter-$$
    wait_for is_scraped "$seen"
    is "$(scrape)" "$seen" 'the exporter has its pod and what it does' || diag "$(cat "$dir/exporter-$$.log")"
    is "$(smi exporter-$$)" '0, NVIDIA A100-SXM4-40GB 1, NVIDIA A100-SXM4-40GB ' 'nvidia-smi sees the GPUs'
else
    skip 2 'the exporter or nvidia-smi was not built, or there is no curl'
fi

# --- a worker dies -------------------------------------------------------------

supervisor=$(pgrep -f "^/usr/bin/fakegpufs mount --foreground --gpus 2 /gpus/driver" | head -n 1)
before=$(worker_of "$supervisor")
kill -KILL "$before"
expect 'a worker was killed' host=1 early=1 late=1 private=1 itself=1
[[ $(worker_of "$supervisor") != "$before" ]]; ok $? 'another one serves'

# --- its pod is killed, and replaced -------------------------------------------

container_kill daemon1-$$ KILL
expect 'the pod was killed' host="$dead" early="$dead" late="$dead" private="$dead" itself="$dead"
daemon_start daemon2-$$ --gpus 2
like "$(cat "$dir/daemon2-$$.log")" 'removing the dead mount' 'the next one removes the dead mount'
is "$(grep -c " $driver " /proc/self/mountinfo)" 1 'and leaves one in its place'
expect 'it was replaced' host=1 early=1 late=1 private="$dead" itself="$dead"
[[ ! -e $driver/workloads/job ]]; ok $? 'it is another node: the workloads of the first are gone'
if [[ $mirror ]]; then
    wait_for pod_is_on 1; ok $? 'but pods with GPUs are there again'
else
    skip 1 'fakegpu-pods does not run'
fi
if [[ $exporter ]]; then
    wait_for is_scraped "$seen"; ok $? 'the exporter that ran all the time has them' || diag "$(scrape)"
    is "$(smi exporter-$$)" '0, NVIDIA A100-SXM4-40GB 1, NVIDIA A100-SXM4-40GB ' 'nvidia-smi sees the new ones'
else
    skip 2 'the exporter does not run'
fi

# --- it is updated: told to end, and replaced ----------------------------------

consumer_start itself2-$$ "$driver" rslave
consumer_start private2-$$ "$host" rprivate
is "$(sees itself2-$$ '')" 1 'who had the mount itself needs a new container'
container_kill daemon2-$$ TERM
expect 'it was told to end' host="$none" early="$none" late="$none" private2="$dead"
is "$(sees itself2-$$ '')" "$dead" 'it was told to end: who has the mount itself'
daemon_start daemon3-$$ --gpus 3
expect 'it was updated' host=1 early=1 late=1 private2="$dead"
is "$(sees itself2-$$ '')" "$dead" 'it was updated: who has the mount itself'

# --- two at a time -------------------------------------------------------------

# A rolling update with a surge, or a mistake: the second covers the first.
daemon_start daemon4-$$ --gpus 4
is "$(ls "$driver/dev" | grep -c '^nvidia[0-9]')" 4 'a second daemon covers the first'
is "$(container_exec early-$$ /bin/busybox ls /gpus/driver/dev | grep -c '^nvidia[0-9]')" 4 'everywhere'
container_kill daemon3-$$ TERM
is "$(ls "$driver/dev" 2>&1 | grep -c '^nvidia[0-9]')" 4 'the first ends: the second is still there'
container_kill daemon4-$$ TERM
expect 'all are gone' host="$none" early="$none" late="$none"
is "$(grep -c " $driver " /proc/self/mountinfo)" 0 'nothing is left'
tap_done
