# The stand-in for a kubelet that device plugins register with; sourced after clients.sh.
#
#     plugins=$dir/plugins
#     kubelet_up
#     wait_for listed nvidia.com/gpu 8
#     tell "allocate nvidia.com/gpu $uuid"
#
# $plugins is its directory, $said the file with what it says.
#
# SPDX-License-Identifier: Apache-2.0

plugins=$dir/plugins
said=$dir/kubelet.out

# kubelet_up: starts it; `tell` talks to it.
kubelet_up() {
    rm -rf "$plugins" "$dir/kubelet.in"
    mkdir "$plugins"
    mkfifo "$dir/kubelet.in"
    : >"$said"
    "$bin/kubelet" "$plugins" <"$dir/kubelet.in" >"$said" 2>"$dir/kubelet.log" &
    mount_owned+=($!)
    disown $!
    exec 9>"$dir/kubelet.in"
    wait_for test -S "$plugins/kubelet.sock" || bail "no kubelet: $(cat "$dir/kubelet.log")"
}

# tell COMMAND: what the kubelet answers to it, without the word at its end.
tell() {
    local before
    before=$(wc -l <"$said")
    echo "$1" >&9
    wait_for answered "$before" || { echo 'no answer'; return 1; }
    tail -n +$((before + 1)) "$said" | grep -vx done
}

answered() {
    tail -n +$(($1 + 1)) "$said" | grep -qE '^(done|refused)'
}

# listed RESOURCE COUNT: there was such a list.
listed() {
    grep -q "^listed $1 $2$" "$said"
}

# devices RESOURCE: its last list, as `ID health nodes` lines.
devices() {
    awk -v resource="$1" '$2 == resource && $1 == "device" { now = now $3 " " $4 " " $5 "\n" }
        $2 == resource && $1 == "listed" { last = now; now = "" }
        END { printf "%s", last }' "$said"
}

# unhealthy RESOURCE: who of its last list is not healthy.
unhealthy() {
    devices "$1" | awk '$2 != "Healthy" { print $1 }'
}
