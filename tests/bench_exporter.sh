#!/usr/bin/env bash
#
# How fast the exporter is, against nginx serving the same bytes as a file, in the same run: requests per
# second and latency under wrk, memory, idle connections, a thousand GPUs, start.
#
#     tests/bench_exporter.sh      (make bench)
#
# SPDX-License-Identifier: Apache-2.0

: "${BUILD:=build}" "${PYTHON:=/usr/bin/python3}"
exporter=$BUILD/fakegpu-exporter fakegpufs=$BUILD/fakegpufs
rounds=3 seconds=3

for program in wrk nginx curl; do
    command -v $program >/dev/null || { echo "bench_exporter: there is no $program: run 'make deps-bench'"; exit 0; }
done

dir=$(mktemp -d /tmp/fakegpufs-bench-XXXXXX)
mnt=$dir/mnt
mkdir "$mnt" "$dir/www"
chmod 755 "$dir" "$dir/www"
exporter_pid= nginx_pid=

clean_up() {
    [[ $exporter_pid ]] && kill "$exporter_pid" 2>/dev/null
    [[ $nginx_pid ]] && kill "$nginx_pid" 2>/dev/null
    "$fakegpufs" umount "$mnt" 2>/dev/null
    rm -rf --one-file-system "$dir"
}
trap clean_up EXIT

# The columns of tests/bench.h. row WHAT VALUE UNIT BOUND AGAINST: BOUND is "most N", "least N" or "".
row() {
    awk -v what="$1" -v value="$2" -v unit="$3" -v bound="$4" -v against="$5" 'BEGIN {
        split(bound, b, " ")
        over = b[1] == "most" && value + 0 > b[2] + 0 || b[1] == "least" && value + 0 < b[2] + 0
        shown = b[1] == "" ? "" : (b[1] == "least" ? ">= " : "") b[2] " " unit
        printf "%-52s %7.4g %-4s %12s  %s%s\n", what, value, unit, shown, against, over ? "  OVER" : "" }'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

free_port() {
    "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_exporter GPUS OPTION...: mounts, starts, and sets $url.
start_exporter() {
    local gpus=$1
    shift
    "$fakegpufs" mount --gpus "$gpus" "$mnt" 2>/dev/null || { echo 'bench_exporter: cannot mount'; exit 1; }
    "$exporter" --root "$mnt" -a 127.0.0.1:0 "$@" 2>"$dir/log" &
    exporter_pid=$!
    until grep -q 'listening on http' "$dir/log"; do sleep 0.01; done
    url=$(sed -nE 's/.*listening on (http:[^ ]+)$/\1/p' "$dir/log")
}

stop_exporter() {
    kill "$exporter_pid"
    wait "$exporter_pid" 2>/dev/null
    exporter_pid=
    "$fakegpufs" umount "$mnt" 2>/dev/null
}

resident_mb() {
    awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$exporter_pid/status"
}

# load URL: "requests-per-second p99-in-ms" with 16 connections.
load() {
    wrk -t 1 -c 16 -d "${seconds}s" --latency "$1" | awk '
        function ms(t) { return t ~ /us$/ ? t / 1000 : t ~ /ms$/ ? t + 0 : t * 1000 }
        $1 == "99%" { p99 = ms($2) }
        $1 == "Requests/sec:" { rate = $2 }
        END { print rate, p99 }'
}

printf '%-52s %12s %12s  %s\n' 'exporter' measured bound 'against, in the same run'

# --- Eight GPUs -------------------------------------------------------------

start_exporter 8 -t 1
curl -s "$url/metrics" >"$dir/www/metrics.txt"
port=$(free_port)
cat >"$dir/nginx.conf" <<END
worker_processes 1; daemon off; pid $dir/nginx.pid; error_log $dir/nginx.log;
events { worker_connections 4096; }
http {
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
    types { text/plain txt; }
    server { listen 127.0.0.1:$port; root $dir/www; }
}
END
nginx -c "$dir/nginx.conf" -p "$dir" 2>/dev/null &
nginx_pid=$!
until curl -s -o /dev/null "http://127.0.0.1:$port/metrics.txt"; do sleep 0.05; done

for ((i = 0; i < rounds; i++)); do
    load "$url/metrics" >>"$dir/ours"
    load "http://127.0.0.1:$port/metrics.txt" >>"$dir/theirs"
done
ours=$(cut -d ' ' -f 1 "$dir/ours" | median)
theirs=$(cut -d ' ' -f 1 "$dir/theirs" | median)
row '8 GPUs, 16 connections, one thread: requests' "$ours" /s '' "nginx: $theirs /s"
row '    as a part of what nginx does' "$(awk "BEGIN { print $ours / $theirs }")" x 'least 0.7' "$(($(wc -c <"$dir/www/metrics.txt") / 1024)) KiB a page, live"
row '    99 of 100 answered within' "$(cut -d ' ' -f 2 "$dir/ours" | median)" ms 'most 2' "nginx: $(cut -d ' ' -f 2 "$dir/theirs" | median) ms"
row '    resident' "$(resident_mb)" MB 'most 10' ''

read -r held resident < <("$PYTHON" - "${url##*:}" "$exporter_pid" <<'END'
import resource, socket, sys

resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

def ask(s):
    s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    while not got.endswith(b"}}\n"):
        chunk = s.recv(4096)
        if not chunk:
            return False
        got += chunk
    return True

connections = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) for _ in range(1000)]
for s in connections:
    ask(s)
held = sum(ask(s) for s in connections)
for line in open("/proc/%s/status" % sys.argv[2]):
    if line.startswith("VmRSS"):
        print(held, int(line.split()[1]) / 1024)
END
)
row 'idle connections held, of 1000' "$held" '' 'least 1000' ''
row '    resident with them' "$resident" MB '' ''
stop_exporter

# --- A thousand GPUs --------------------------------------------------------

# Each page is of another generation: 0.15 s is longer than a step.
start_exporter 1024
curl -s -o /dev/null "$url/metrics"
for coding in identity gzip; do
    for ((i = 0; i < 9; i++)); do
        curl -s -o /dev/null -H "Accept-Encoding: $coding" -w '%{time_total}\n' "$url/metrics"
        sleep 0.15
    done | awk '{ print $1 * 1000 }' | median >"$dir/$coding"
done
row '1024 GPUs: a page that is new' "$(cat "$dir/identity")" ms 'most 60' "$(($(curl -s "$url/metrics" | wc -c) >> 10)) KiB"
row '    with gzip' "$(cat "$dir/gzip")" ms 'most 60' "$(($(curl -s -H 'Accept-Encoding: gzip' "$url/metrics" | wc -c) >> 10)) KiB"
row '    resident' "$(resident_mb)" MB '' ''
stop_exporter

# --- Start ------------------------------------------------------------------

"$fakegpufs" mount --gpus 8 "$mnt" 2>/dev/null
port=$(free_port)
row 'from start to the first answer, 8 GPUs' "$("$PYTHON" - "$exporter" "$mnt" "$port" <<'END' | median
import socket, subprocess, sys, time

for _ in range(9):
    begin = time.monotonic()
    process = subprocess.Popen([sys.argv[1], "--root", sys.argv[2], "-a", "127.0.0.1:" + sys.argv[3]], stderr=subprocess.DEVNULL)
    while True:
        try:
            s = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
            break
        except OSError:
            time.sleep(0.0002)
    s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    s.recv(1)
    print((time.monotonic() - begin) * 1000)
    process.terminate()
    process.wait()
END
)" ms 'most 20' ''
