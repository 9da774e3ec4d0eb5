# What tests of the exporter share; sourced after tap.sh and mount.sh.
#
#     exporter_up -i run-ai
#     like "$(page)" 'DCGM_FI_DEV_GPU_UTIL' 'it has the utilization'
#     exporter_down
#
# exporter_up starts one for $mnt on a free port of the loopback; $url is where, $exporter_pid who.
#
# SPDX-License-Identifier: Apache-2.0

exporter=$(cd "$BUILD" && pwd)/fakegpu-exporter
exporter_log=$dir/exporter.log
exporter_pid=
exporter_deaths=
export NODE_NAME=golden

command -v curl >/dev/null || skip_all 'there is no curl'

# exporter_start OPTION...: starts it, and does not wait.
exporter_start() {
    : >"$exporter_log"
    output=$exporter_log
    background "$exporter" --root "$mnt" "$@"
    output=/dev/null
    exporter_pid=$started
}

# exporter_up OPTION...: on a port of its own, until it listens.
exporter_up() {
    exporter_start -a 127.0.0.1:0 "$@"
    wait_for grep -q 'listening on http' "$exporter_log" || bail "no exporter: $(cat "$exporter_log")"
    url=$(sed -nE 's/.*listening on (https?:[^ ]+)$/\1/p' "$exporter_log" | head -n 1)
}

# exporter_down: asks it to end and waits. What a sanitizer said is not forgotten.
exporter_down() {
    kill -TERM "$exporter_pid" && wait_gone "$exporter_pid"
    local status=$?
    exporter_deaths+=$(grep -E 'ERROR: |WARNING: |runtime error' "$exporter_log")
    return $status
}

# get PATH CURL-OPTION...: the body.
get() {
    local path=$1
    shift
    bounded curl -s --max-time 30 "$@" "$url$path"
}

page() {
    get /metrics "$@"
}

# status PATH CURL-OPTION...: the number of the answer.
status() {
    local path=$1
    shift
    get "$path" -o /dev/null -w '%{http_code}' "$@"
}

# series REGEX: the lines of /metrics that match and are no comments.
series() {
    page | grep -v '^#' | grep -E "$1"
}
