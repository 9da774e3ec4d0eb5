#!/usr/bin/env bash
#
# CDI with a real engine: podman starts containers with GPUs of a mount, by the specification that `nvidia-ctk cdi
# generate` makes of it, with NVIDIA's hooks, and by that of `fakegpufs cdi`. A container has the device nodes, sees the
# GPUs of these and no other, and reads what the files of the mount say.
#
# podman has storage, configuration and a /run of its own; nothing is pulled, and containers have no network.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"
. "${0%/*}/../container.sh"
need_command podman unshare nsenter ldd
need_client go
need_mounts
bin=$(cd "$bin" && pwd) # a runtime starts hooks elsewhere

# --- a node with podman ---------------------------------------------------------------------------

# What is mounted in it later on is seen in the engine's namespace, too.
node=$dir/node
mkdir -p "$node/driver" "$dir/cdi" "$dir/tmp"
mount --bind "$node" "$node" && mount --make-rprivate "$node" && mount --make-rshared "$node" ||
    bail 'cannot make a shared mount'
mnt=$node/driver

# podman looks for specifications in /etc/cdi and /run/cdi.
output=$dir/world.log background unshare --mount --propagation slave "$BASH" -c '
    mount -t tmpfs -o mode=755 run /run && mkdir /run/cdi /run/lock && mount --bind "$1/cdi" /run/cdi || exit
    [[ ! -d /etc/cdi ]] || mount -t tmpfs none /etc/cdi || exit
    echo ready; exec sleep 100000' - "$dir"
world=$started
wait_for grep -q ready "$dir/world.log" || skip_all "there can be no /run of its own here: $(cat "$dir/world.log")"

cat >"$dir/containers.conf" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
pids_limit = 0
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
END
in_world() {
    bounded nsenter --mount="/proc/$world/ns/mnt" env -u DOCKER_CONFIG -u CONTAINER_HOST \
        CONTAINERS_CONF="$dir/containers.conf" TMPDIR="$dir/tmp" "$@"
}
runtime=
podman() {
    in_world podman --root "$dir/storage" --runroot "$dir/runroot" --tmpdir "$dir/libpod" --storage-driver vfs \
        --runtime "$runtime" "$@"
}
group=fakegpufs-$$
contained() {
    podman run --rm --network none --cgroup-parent "/$group" "$@" 2>&1
}

at_exit podman_cleanup
podman_cleanup() {
    [[ ! $runtime ]] || podman rm --all --force --time 0 >/dev/null 2>&1
    find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
}

# An image with a shell, a client of NVML and the C library, and nothing of ours.
image=$dir/image
busybox_root "$image"
mkdir -p "$image/"{etc,usr/bin,sys,run}
for tool in sh cat ls sleep stat sha256sum; do
    ln -s busybox "$image/bin/$tool"
done
cp "$bin/walk" "$image/usr/bin/"
ldd "$image/usr/bin/walk" "$BUILD/nvidia-smi" "$BUILD/libnvidia-ml.so.1" |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*[^:]$/ { print $1 }' | sort -u |
    while read -r library; do
        install -D "$library" "$image$library"
    done
said='neither runc nor crun is here'
for runtime in runc crun ''; do
    [[ $runtime ]] || skip_all "podman starts no container here: ${said//$'\n'/ }"
    command -v "$runtime" >/dev/null || continue
    tar -C "$image" -c . | podman import --quiet - any:1 >"$dir/said" 2>&1
    said=$(contained any:1 /bin/sh -c 'echo hello from inside'; cat "$dir/said")
    [[ $said != *'hello from inside'* ]] || break
done
diag "$(podman --version) with $runtime"

# --- by NVIDIA's specification --------------------------------------------------------------------

mount_up --gpus 3
put "$mnt/gpus/1/control/utilization_gpu_percent" 73
put "$mnt/control/clock" pause
put "$mnt/control/clock" 'step 7s'

generate() {
    rm -f "$dir/cdi/"*
    on_node env -u LD_LIBRARY_PATH -u FAKEGPUFS_ROOT "$bin/nvidia-ctk" --quiet cdi generate --driver-root "$mnt" \
        --nvidia-cdi-hook-path "$bin/nvidia-cdi-hook" --output "$dir/cdi/nvidia.yaml" >"$dir/said" 2>&1
}
generate
ok $? 'nvidia-ctk makes a specification of the mount' || diag "$(tail "$dir/said")"

# listed GPU...: what nvidia-smi -L says of them, numbered anew.
listed() {
    local gpu i=0
    for gpu in "$@"; do
        echo "GPU $((i++)): $(identity "$gpu" name) (UUID: $(identity "$gpu" uuid))"
    done
}
shared='nvidia-modeset nvidia-uvm nvidia-uvm-tools'
nodes='busybox ls -1 /dev | busybox grep ^nvidia | busybox xargs'
gpu=nvidia.com/gpu
volume=$mnt:/run/fakegpufs

is "$(contained --device $gpu=0 any:1 sh -c "$nodes")" "$shared nvidia0 nvidiactl" \
    'a container with one GPU has its device node, those that all share, and no other'
is "$(contained --device $gpu=0 any:1 stat -c '%F %t:%T' /dev/nvidia0 /dev/nvidiactl)" 'character special file c3:0
character special file c3:ff' "with the driver's numbers"
like "$(contained --device $gpu=0 any:1 sh -c ': </dev/nvidia0')" 'No such device or address' \
    'which nobody can open: there is no driver in the kernel'
version=$(identity 0 driver_version)
is "$(contained --device $gpu=0 any:1 sha256sum /usr/bin/nvidia-smi "/usr/lib64/libnvidia-ml.so.$version" | cut -d ' ' -f 1)" \
    "$(sha256sum "$mnt/usr/bin/nvidia-smi" "$mnt/usr/lib64/libnvidia-ml.so.$version" | cut -d ' ' -f 1)" \
    'nvidia-smi and the library are those of the mount'
is "$(contained --device $gpu=0 any:1 busybox readlink /usr/lib64/libnvidia-ml.so.1)" "libnvidia-ml.so.$version" \
    "which NVIDIA's hooks have made its links to"
like "$(contained --device $gpu=0 any:1 nvidia-smi -L)" "couldn't communicate with the NVIDIA driver" \
    'but not what they read'
is "$(contained --device $gpu=0 -v "$volume" any:1 nvidia-smi -L)" "$(listed 0)" \
    'with the mount as a volume nvidia-smi shows that GPU and no other'
is "$(contained --device "$gpu=$(identity 2 uuid)" -v "$volume" any:1 nvidia-smi -L)" "$(listed 2)" 'a GPU by its UUID'
is "$(contained --device $gpu=2 --device $gpu=1 -v "$volume" any:1 nvidia-smi -L)" "$(listed 1 2)" 'two of them'
is "$(contained --device $gpu=all -v "$volume" any:1 nvidia-smi -L)" "$(listed 0 1 2)" 'all'
is "$(contained -e NVIDIA_VISIBLE_DEVICES=void -v "$volume" -v "$mnt/usr:/usr/local:ro" -e PATH=/bin:/usr/local/bin \
    any:1 nvidia-smi -L)" 'No devices were found' 'void without a device is no GPU'
like "$(contained --device $gpu=3 any:1 sh)" 'unresolvable CDI devices nvidia.com/gpu=3' 'a GPU that is not there is refused'

# values GPU: as files have them, in the words of nvidia-smi.
fields=temperature.gpu,utilization.gpu,memory.used,clocks.sm,power.draw
values() {
    printf '%d, %d, %d, %d, %s\n' "$(metric "$1" temperature_gpu_c)" "$(metric "$1" utilization_gpu_percent)" \
        $(($(metric "$1" memory_used_bytes) >> 20)) "$(metric "$1" clock_sm_mhz)" \
        "$(metric "$1" power_usage_mw | awk '{ printf "%.2f", $1 / 1000 }')"
}
is "$(contained --device $gpu=1 -v "$volume" any:1 nvidia-smi --query-gpu=$fields --format=csv,noheader,nounits)" \
    "$(values 1)" 'its values are those of the files, of GPU 1'
is "$(contained --device $gpu=all -v "$volume" any:1 walk | compare 100)" '' \
    'what a client of NVML says in a container with all GPUs is what the files say'

put "$mnt/gpus/2/control/mig_mode" on
put "$mnt/gpus/2/mig/instances" 'create 3g.20gb'
put "$mnt/gpus/2/mig/instances" 'create 3g.20gb'
mapfile -t parts < <(cat "$mnt"/gpus/2/mig/gi*/ci0/uuid)
generate
is "$(contained --device "$gpu=2:1" -v "$volume" any:1 nvidia-smi -L)" "$(listed 2)
  MIG 3g.20gb     Device  0: (UUID: ${parts[1]})" 'a MIG device, and not its neighbour'

# --- by ours --------------------------------------------------------------------------------------

# write_spec OPTION...: as a user does, in place of the other.
write_spec() {
    rm -f "$dir/cdi/"*
    bounded "$fakegpufs" cdi --mount "$mnt" "$@" >"$dir/cdi/fakegpufs.json" 2>"$dir/said"
}
write_spec
ok $? 'fakegpufs cdi makes a specification' || diag "$(cat "$dir/said")"
is "$(contained --device $gpu=0 any:1 sh -c "$nodes")" "$shared nvidia0 nvidiactl" 'the device nodes are the same'
is "$(contained --device $gpu=0 any:1 nvidia-smi -L)" "$(listed 0)" 'nvidia-smi shows that GPU, without a volume'
is "$(contained --device "$gpu=$(identity 1 uuid)" --user 12345 any:1 nvidia-smi -L)" "$(listed 1)" \
    'one by its UUID, to a user who is not root'
is "$(contained --device $gpu=1 --device $gpu=0 any:1 nvidia-smi -L)" "$(listed 0 1)" 'two of them'
is "$(contained --device $gpu=all any:1 nvidia-smi -L)" "$(listed 0 1 2)
  MIG 3g.20gb     Device  0: (UUID: ${parts[0]})
  MIG 3g.20gb     Device  1: (UUID: ${parts[1]})" 'all'
is "$(contained --device "$gpu=${parts[1]}" any:1 nvidia-smi -L)" "$(listed 2)
  MIG 3g.20gb     Device  0: (UUID: ${parts[1]})" 'a MIG device, and not its neighbour'
is "$(contained --device "$gpu=2:0" any:1 nvidia-smi -L | sed 1d)" "  MIG 3g.20gb     Device  0: (UUID: ${parts[0]})" \
    'which is there by number as well'
is "$(contained --device $gpu=1 any:1 nvidia-smi --query-gpu=$fields --format=csv,noheader,nounits)" "$(values 1)" \
    'values are those of the files'
is "$(contained --device $gpu=0 --device $gpu=1 --read-only any:1 walk | grep -c '/identity/uuid=')" 2 \
    'a client of NVML finds the library, in a container that is read-only'

# The image of the daemon itself, as `make image` makes it.
if [[ -e $BUILD/images.tar ]]; then
    podman load --quiet --input "$BUILD/images.tar" >"$dir/said" 2>&1
    is "$(podman images --format '{{.Repository}}' | grep -o 'fakegpu.*' | sort | xargs)" \
        'fakegpu-exporter fakegpu-labels fakegpu-pods fakegpufs' 'podman loads the images of make image' || diag "$(cat "$dir/said")"
    ours=fakegpufs:$("$fakegpufs" --version | sed -nE '1s/.* ([0-9.]+).*/\1/p')
    is "$(contained --device $gpu=1 --entrypoint nvidia-smi "$ours" -L)" "$(listed 1)" 'so it is in one of them'
else
    skip 2 'there is no image: run make image'
fi

# --- the driver is replaced -----------------------------------------------------------------------

write_spec --share "$node"
ok $? 'a specification with the directory that the mount is in' || diag "$(cat "$dir/said")"
lasting=$(podman run --detach --network none --cgroup-parent "/$group" --device $gpu=1 any:1 sleep 100000 2>"$dir/said")
sees() {
    podman exec "$lasting" nvidia-smi -L 2>&1
}
is "$(sees)" "$(listed 1)" 'a container that lasts sees its GPU' || diag "$(cat "$dir/said")"
expected=$(listed 1)
worker=$(worker_of)
mount_deaths+=$(grep -E 'the worker|ERROR: |WARNING: |runtime error' "$dir/log")
kill -KILL "$mount_pid" "$worker"
wait_gone "$mount_pid"
wait_gone "$worker"
mount_pid=
like "$(sees)" "couldn't communicate with the NVIDIA driver" 'without a driver it does not'
mount_up --gpus 3
is "$(sees)" "$expected" 'it sees that of the next one'
podman rm --force --time 0 "$lasting" >/dev/null 2>&1
mount_down
ok $? 'and is not in the way when that is unmounted'

# --- other device nodes ---------------------------------------------------------------------------

mount_up --gpus 2 --dev null
write_spec
is "$(contained --device $gpu=1 any:1 sh -c ': </dev/nvidia1 && nvidia-smi -L')" "$(listed 1)" \
    'device nodes of mode null can be opened in a container'
mount_down
mount_up --gpus 2 --dev file
write_spec
is "$(contained --device $gpu=1 any:1 sh -c ': </dev/nvidia1 && nvidia-smi -L')" "$(listed 1)" 'and so can those of mode file'
mount_down

is "$mount_deaths" '' 'no worker died by itself'
tap_done
