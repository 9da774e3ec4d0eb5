# What tests of a mounted filesystem share; sourced after tap.sh.
#
#     . "${0%/*}/tap.sh"
#     . "${0%/*}/mount.sh"
#     need_mounts
#     mount_up --gpus 2
#     is "$(cat "$mnt/gpus/0/identity/index")" 0 'GPU 0 knows its index'
#     mount_down
#
# Sets $fakegpufs, and $dir: a directory of the script's own that everybody may enter. $mnt in it is
# where mount_up mounts. When the script ends, what it started ends, what is mounted below $dir goes,
# and then $dir does.
#
# SPDX-License-Identifier: Apache-2.0

fakegpufs=$(cd "$BUILD" && pwd)/fakegpufs
tests=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
dir=$(mktemp -d /tmp/fakegpufs-XXXXXX)
chmod 755 "$dir"
mnt=$dir/mnt
mkdir "$mnt"
mount_pid=  # of the supervisor that mount_up started
mount_owned=() # other processes to end
output=/dev/null
mount_deaths=

at_exit mount_cleanup

mount_cleanup() {
    local pid at
    for pid in "${mount_owned[@]}" $mount_pid; do
        kill -KILL "$pid" 2>/dev/null
    done
    # The last one mounted comes first.
    while read -r _ at _; do
        [[ $at == "$dir"/* ]] && echo "$at"
    done </proc/self/mounts | tac | while read -r at; do
        umount -l "$at"
    done
    rm -rf --one-file-system "$dir"
}

# background COMMAND...: starts it, to be ended by stop_background or with the script; sets $started.
# What it writes goes to the file $output.
background() {
    "$@" >"$output" 2>&1 &
    started=$!
    disown $started # its end is no news
    mount_owned+=($started)
}

stop_background() {
    local pid
    for pid in "${mount_owned[@]}"; do
        kill -KILL "$pid" 2>/dev/null
        wait_gone "$pid"
    done
    mount_owned=()
}

# need_mounts: leaves the script out where nothing can be mounted.
need_mounts() {
    local said
    [[ -e /dev/fuse ]] || skip_all 'there is no /dev/fuse'
    ((EUID == 0)) || skip_all 'only root can mount in these tests'
    said=$(bounded "$fakegpufs" mount --gpus 1 "$mnt" 2>&1) ||
        { [[ $said == *'Operation not permitted'* ]] && skip_all "nothing can be mounted: $said"; }
    bounded "$fakegpufs" umount "$mnt" 2>/dev/null
}

# bounded COMMAND...: no single command may take a test down with it.
bounded() {
    timeout -k 5 60 "$@"
}

# wait_for COMMAND...: until it succeeds; fails when that takes too long.
wait_for() {
    local end=$((SECONDS + 30))
    until "$@" 2>/dev/null; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

# wait_gone PID: until there is no such process (one that nobody has waited for yet is none).
wait_gone() {
    wait_for is_gone "$1"
}

is_gone() {
    [[ ! -e /proc/$1/stat ]] || [[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) == [ZX]* ]]
}

is_mounted() {
    grep -q " ${1:-$mnt} fuse.fakegpufs " /proc/self/mounts
}

not_mounted() {
    ! is_mounted "$@"
}

# mount_up OPTION...: mounts on $mnt in the background; its log is $dir/log.
mount_up() {
    rm -f "$dir/pid"
    : >"$dir/log"
    bounded "$fakegpufs" mount --pid-file "$dir/pid" --log "$dir/log" "$@" "$mnt" ||
        bail "cannot mount: $(cat "$dir/log")"
    mount_pid=$(cat "$dir/pid")
}

# mount_down: unmounts $mnt and waits for its daemon. A worker that died on the way is not forgotten:
# the mount hides it well, but $mount_deaths has what the log says of it.
mount_down() {
    # A test beside this one may have a mount namespace with a copy of the mount in it: until that is gone, too,
    # the daemon serves.
    bounded "$fakegpufs" umount "$mnt" &&
        { wait_gone "$mount_pid" || wait_gone "$mount_pid" || wait_gone "$mount_pid"; } && mount_pid=
    local status=$?
    mount_deaths+=$(grep -E 'the worker|ERROR: |WARNING: |runtime error' "$dir/log")
    return $status
}

# worker_of [PID]: the worker of a supervisor.
worker_of() {
    local supervisor=${1:-$mount_pid} worker=
    read -r worker _ <"/proc/$supervisor/task/$supervisor/children" # which ends without a newline
    [[ $worker ]] && echo "$worker"
}

# as UID COMMAND...: as somebody else, without groups or capabilities.
as() {
    local uid=$1
    shift
    bounded setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# put FILE TEXT: one write(2), whatever is in the text; says why when it fails.
put() {
    local said
    said=$(bounded "$PYTHON" -c '
import os, sys
try:
    fd = os.open(sys.argv[1], os.O_WRONLY)
    os.write(fd, os.fsencode(sys.argv[2]))
except OSError as e:
    sys.exit(e.strerror)' "$1" "$2" 2>&1) || { echo "$said"; return 1; }
}

# free_port: one that nobody listens on now.
free_port() {
    "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# sanitized: whether the programs were built with a sanitizer.
sanitized() {
    grep -qE '__(asan|tsan)_init' "$fakegpufs"
}
