# Containers for tests, by runc or crun; sourced after mount.sh.
#
#     need_containers
#     busybox_root "$dir/root"
#     container_write "$dir/one" "$dir/root" '{"args": ["/bin/busybox", "id"]}'
#     container_run "$dir/one" one-$$
#
# What was started ends with the script, before mounts go.
#
# SPDX-License-Identifier: Apache-2.0

engine=         # runc or crun, as need_containers found it
engine_alone=   # whether it must not see the machine's cgroups
containers=()   # ids that were started in the background

at_exit containers_cleanup

containers_cleanup() {
    local id
    for id in "${containers[@]}"; do
        in_engine delete --force "$id" >/dev/null 2>&1
    done
}

# busybox_root DIRECTORY: a root with busybox and nothing else.
busybox_root() {
    local busybox
    busybox=$(command -v busybox) || skip_all 'there is no busybox'
    ! file -L "$busybox" 2>/dev/null | grep -q 'dynamically linked' || skip_all 'busybox is not static'
    mkdir -p "$1/"{bin,dev,proc,tmp}
    cp "$busybox" "$1/bin/busybox"
    "$1/bin/busybox" --help >/dev/null 2>&1 || skip_all 'busybox does not run'
}

# container_write BUNDLE ROOT OPTIONS: the description of a container. OPTIONS is a JSON object:
#     args          the command (needed)
#     uid           who runs it (0)
#     env           more environment
#     mounts        [[source, destination, option, …], …], all of them binds
#     propagation   of the root: rslave, rshared, rprivate (runc's default)
#     capabilities  ["CAP_SYS_ADMIN", …] (none)
#     devices       {"/dev/nvidia0": FILE}: made anew with FILE's numbers, and allowed
#     readonly      the root
container_write() {
    mkdir -p "$1"
    bounded "$PYTHON" - "$1" "$2" "$3" <<'END'
import json, os, sys
bundle, root, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
uid, caps = options.get("uid", 0), options.get("capabilities", [])
devices = []
for path, source in options.get("devices", {}).items():
    node = os.stat(source).st_rdev
    devices.append({"type": "c", "major": os.major(node), "minor": os.minor(node), "path": path,
                    "fileMode": 0o666, "uid": 0, "gid": 0})
allowed = [{"allow": True, "type": "c", "major": d["major"], "minor": d["minor"], "access": "rw"} for d in devices]
linux = {"namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "network")], "devices": devices,
         "resources": {"devices": [{"allow": False, "access": "rwm"}] + allowed}}
if "propagation" in options:
    linux["rootfsPropagation"] = options["propagation"]
json.dump({
    "ociVersion": "1.0.0",
    "process": {"user": {"uid": uid, "gid": uid}, "cwd": "/", "env": ["PATH=/bin:/usr/bin"] + options.get("env", []),
                "args": options["args"], "noNewPrivileges": True,
                "capabilities": {s: caps for s in ("bounding", "effective", "permitted")}},
    "root": {"path": root, "readonly": options.get("readonly", False)},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}] +
              [{"destination": m[1], "type": "bind", "source": m[0], "options": m[2:]}
               for m in options.get("mounts", [])],
    "linux": linux,
}, open(bundle + "/config.json", "w"))
END
}

# in_engine ARGUMENT...: newer ones want cgroups of version 2 and nothing else; where they are not, they get them
# in a mount namespace, which still takes part in what is mounted elsewhere.
in_engine() {
    if [[ $engine_alone ]]; then
        unshare --mount --propagation unchanged bash -c '
            mount --make-rprivate /sys; umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup &&
            exec "$0" --cgroup-manager=disabled "$@"' "$engine" --root "$dir/$engine" "$@"
    else
        "$engine" --root "$dir/$engine" "$@"
    fi
}

# container_run BUNDLE ID: to its end.
container_run() {
    bounded "$BASH" -c "$(declare -f in_engine)"'; dir=$1 engine=$2 engine_alone=$3; in_engine run --bundle "$4" "$5"' \
        - "$dir" "$engine" "$engine_alone" "$1" "$2"
}

# container_start BUNDLE ID: in the background; what it writes goes to the file $output.
container_start() {
    containers+=("$2")
    in_engine run --bundle "$1" "$2" </dev/null >"$output" 2>&1 &
    disown $!
    wait_for container_is_running "$2"
}

container_is_running() {
    [[ $(in_engine state "$1" 2>/dev/null) == *'"status": "running"'* ]]
}

container_is_gone() {
    ! container_is_running "$1"
}

# container_kill ID SIGNAL: sends it to the first process, and waits for the end.
container_kill() {
    in_engine kill "$1" "$2"
    wait_for container_is_gone "$1" && in_engine delete --force "$1" >/dev/null 2>&1
    return 0
}

# container_exec ID COMMAND...: in a container that runs.
container_exec() {
    in_engine exec "$@" 2>&1
}

# need_containers: leaves the script out where no container can be made.
need_containers() {
    local candidate said='neither runc nor crun is here'
    busybox_root "$dir/busybox"
    container_write "$dir/try" "$dir/busybox" '{"args": ["/bin/busybox", "echo", "hello from inside"]}'
    for candidate in runc crun crun:alone; do
        engine=${candidate%:*} engine_alone=${candidate#"$engine"}
        command -v "$engine" >/dev/null || continue
        said=$(container_run "$dir/try" "try-$$" 2>&1)
        [[ $said == *'hello from inside'* ]] && { diag "containers by $candidate"; return; }
        diag "$candidate: $said"
    done
    skip_all "no container can be made here: ${said//$'\n'/ }"
}
