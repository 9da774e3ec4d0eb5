#!/usr/bin/env bash
#
# The exporter as a server: addresses, sockets, TLS, users, health, methods, clients that mean harm, many that
# do nothing, and the end.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
need_mounts

command -v openssl >/dev/null || skip_all 'there is no openssl'

# --- Usage ------------------------------------------------------------------

# refused STATUS REGEX OPTION...: it ends with that status and one sentence.
refused() {
    local want=$1 regex=$2 said status
    shift 2
    said=$(bounded "$exporter" --root "$mnt" "$@" 2>&1)
    status=$?
    is "$status $(wc -l <<<"$said")" "$want 1" "$* ends with $want and one line"
    like "$said" "$regex" "and says why: ${said:0:80}" || diag "$said"
}

refused 64 "'--adress' is not an option; did you mean --address\?" --adress :1
refused 64 "'x' is not a whole number" -c x
refused 64 "'-1' is not a whole number" -t -1
refused 64 "there is no identity 'dgcm'; did you mean 'dcgm'\?" -i dgcm
refused 64 "allowed: absent, nan" --faulty-values zero
refused 64 "allowed: f, g, i" -d x:1
refused 64 "'nonsense' is not an address" -a nonsense
refused 64 "'::1:9400' is not an address; allowed: :PORT, HOST:PORT, \[IPV6\]:PORT" -a ::1:9400
refused 64 'one argument too many' surplus
refused 64 "needs a value" --address
refused 1 'No such file or directory' -f "$dir/none.csv"
refused 1 'No such file or directory' -i "$dir/none.yaml"
echo 'DCGM_FI_DEV_NONSENSE, gauge, x' >"$dir/bad.csv"
refused 1 "bad.csv:1: DCGM has no field 'DCGM_FI_DEV_NONSENSE'" -f "$dir/bad.csv"
echo 'DCGM_FI_DEV_GPU_UTIL, gauge' >"$dir/bad.csv"
refused 1 'bad.csv:1: has 2 columns; allowed: field, type, help' -f "$dir/bad.csv"
echo 'DCGM_FI_DEV_GPU_UTIL, gage, x' >"$dir/bad.csv"
refused 1 "bad.csv:1: 'gage' is not a type; allowed: gauge, counter" -f "$dir/bad.csv"
is "$("$exporter" --version)" "fakegpu-exporter $("$fakegpufs" --version | sed 's/.* //')" 'it knows its version'
(($("$exporter" --help | wc -l) <= 40 && $("$exporter" --help | wc -L) <= 100))
ok $? 'the help fits a screen'

# --- Health -----------------------------------------------------------------

exporter_up --log-level debug
is "$(status /health)" 503 'without a mount it is not healthy'
like "$(get /health)" '"status": "unhealthy", "mount": \{"path": ".*", "error": "there is no mount at' 'and says so'
is "$(status /metrics)" 503 'and has no page'
like "$(page)" '^there is no mount at ' 'but a sentence'
mount_up --gpus 2
is "$(status /health)" 200 'when the mount comes it is healthy, by itself'
like "$(get /health)" '^\{"status": "healthy", "mount": \{"path": "[^"]*", "gpus": 2, "generation": [0-9]+\}\}$' 'and says what it sees'
get /healthz | "$PYTHON" -c 'import json, sys; assert json.load(sys.stdin)["status"] == "healthy"'
ok $? '/healthz is the same, and JSON'
is "$(status /metrics)" 200 'and has its page'
mount_down
wait_for eval '[[ $(status /health) == 503 ]]'
ok $? 'when the mount goes it is not healthy'
mount_up --gpus 3
like "$(get /health)" '"gpus": 3' 'another mount in its place is found'
is "$(page | grep -c '^DCGM_FI_DEV_GPU_UTIL')" 3 'with its GPUs'
kill -KILL "$(worker_of)"
is "$(status /metrics)" 200 'a worker that dies is not even noticed'
exporter_down
grep -q listening "$exporter_log"
ok $? 'SIGTERM ends it'

# --- Methods and paths ------------------------------------------------------

exporter_up
is "$(status /)" 200 'there is a page at /'
is "$(status /nowhere)" 404 'there is none elsewhere'
is "$(status /metrics/)" 404 'nor below /metrics'
is "$(status '/metrics?a=b')" 200 'a query changes nothing'
for method in POST PUT DELETE OPTIONS PATCH TRACE NONSENSE; do
    is "$(status /metrics -X $method)" 405 "$method is not allowed"
done
like "$(get /metrics -X POST -D - -o /dev/null)" 'Allow: GET, HEAD' 'what is allowed is said'
is "$(status /metrics -d "$(head -c 100000 /dev/zero | tr '\0' x)")" 405 'nor with a body'
is "$(status /metrics -X GET -d body)" 400 'a GET has no body'
is "$(get /metrics -I | head -n 1 | tr -d '\r')" 'HTTP/1.1 200 OK' 'HEAD is answered'
is "$(get /metrics -0 -D - -o /dev/null | head -n 1 | cut -d ' ' -f 2)" 200 'HTTP/1.0 is answered'

# --- Addresses --------------------------------------------------------------

exporter_down
ipv6=
[[ -e /proc/net/if_inet6 ]] && grep -q ' lo$' /proc/net/if_inet6 && ipv6=1
exporter_start -a 127.0.0.1:0 -a 127.0.0.1:0 ${ipv6:+-a '[::1]:0'}
wait_for eval '(($(grep -c "listening on http" "$exporter_log") == 2 + ${ipv6:-0}))'
ok $? 'it listens on every address'
while read -r url; do
    is "$(status /metrics)" 200 "and answers at ${url%:*}"
done < <(sed -nE 's/.*listening on (http:[^ ]+)$/\1/p' "$exporter_log")
if [[ $ipv6 ]]; then
    exporter_down
    exporter_start -a :0
    wait_for grep -q 'listening on' "$exporter_log"
    port=$(sed -nE 's/.*listening on .*:([0-9]+)$/\1/p' "$exporter_log")
    url=http://127.0.0.1:$port
    is "$(status /metrics)" 200 'every address is those of IPv4'
    url="http://[::1]:$port"
    is "$(status /metrics)" 200 'and of IPv6'
else
    skip 2 'there is no IPv6 here'
fi
exporter_down

exporter_up
refused 1 'cannot listen on .*: Address already in use' -a "${url#http://}"
exporter_down

# --- Unix sockets -----------------------------------------------------------

socket=$dir/exporter.sock
exporter_up --unix-socket "$socket" --unix-socket-mode 0640 --unix-socket-owner 65534:65534
wait_for test -S "$socket"
is "$(stat -c '%a %u %g' "$socket")" '640 65534 65534' 'a socket has its mode and owner'
is "$(status /metrics --unix-socket "$socket")" 200 'and serves the same'
refused 1 'cannot listen on .*Address already in use' -a 127.0.0.1:0 --unix-socket "$socket"
is "$(status /metrics --unix-socket "$socket")" 200 'another one does not take it away'
kill -KILL "$exporter_pid"
wait_gone "$exporter_pid"
[[ -S $socket ]]
ok $? 'who is killed leaves it behind'
exporter_up --unix-socket "$socket"
wait_for grep -q "listening on $socket" "$exporter_log"
is "$(status /health --unix-socket "$socket") $(stat -c %a "$socket")" '200 660' 'and the next one replaces it'
exporter_down
[[ ! -e $socket ]]
ok $? 'it is removed at the end'
echo precious >"$dir/file"
refused 1 'something else is there' -a 127.0.0.1:0 --unix-socket "$dir/file"
is "$(cat "$dir/file")" precious 'what is no socket stays'
ENABLE_UDS=true UDS_SOCKET_PATH=$socket exporter_up
wait_for test -S "$socket"
is "$(status /health --unix-socket "$socket")" 200 'also by the environment'
exporter_down
UDS_SOCKET_PATH=$socket exporter_up
[[ ! -e $socket ]]
ok $? 'but not by its path alone'
exporter_down

# --- TLS and users ----------------------------------------------------------

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" -days 2 \
    -subj /CN=localhost -addext 'subjectAltName=IP:127.0.0.1' 2>/dev/null
# The password is "secret", hashed with few rounds for the sake of sanitizers.
hash=$("$PYTHON" -W ignore -c 'import crypt; print(crypt.crypt("secret", "$2b$04$WmZs0HbZ0nJ4xQ5bqzqUxO"))')
cat >"$dir/web.yaml" <<END
tls_server_config:
  cert_file: cert.pem
  key_file: key.pem
  min_version: TLS13
basic_auth_users:
  prometheus: $hash
END
exporter_up --web-config-file "$dir/web.yaml"
like "$url" '^https:' 'with a certificate it speaks TLS'
is "$(status /metrics --cacert "$dir/cert.pem" -u prometheus:secret)" 200 'who knows the password is let in'
is "$(status /metrics --cacert "$dir/cert.pem" -u prometheus:secret)" 200 'and again'
is "$(status /metrics --cacert "$dir/cert.pem" -u prometheus:wrong)" 401 'a wrong password is not'
is "$(status /metrics --cacert "$dir/cert.pem" -u prometheus:secre)" 401 'nor a part of it'
is "$(status /metrics --cacert "$dir/cert.pem" -u nobody:secret)" 401 'nor a wrong name'
is "$(status /health --cacert "$dir/cert.pem")" 401 'nor nobody, also for the health'
like "$(get /metrics -D - -o /dev/null --cacert "$dir/cert.pem")" 'WWW-Authenticate: Basic' 'who is asked how'
get /metrics -o /dev/null
is $? 60 'a client that does not know the certificate goes away'
get /metrics --cacert "$dir/cert.pem" --tls-max 1.2 -u prometheus:secret -o /dev/null
is $? 35 'an older TLS than allowed is refused'
exporter_down

sed -i 's/TLS13/TLS14/' "$dir/web.yaml"
refused 1 "web.yaml:4:16: tls_server_config.min_version: 'TLS14' is not known; did you mean .* allowed: TLS10" --web-config-file "$dir/web.yaml"
echo 'basic_auth_users: {prometheus: secret}' >"$dir/web.yaml"
refused 1 'web.yaml:1:32: basic_auth_users.prometheus: is not a bcrypt hash' --web-config-file "$dir/web.yaml"
echo 'tls_server_config: {cert_file: cert.pem, key_file: none.pem}' >"$dir/web.yaml"
refused 1 'none.pem: No such file' --web-config-file "$dir/web.yaml"
echo 'tls_server_config: {cert_file: cert.pem, key_file: cert.pem}' >"$dir/web.yaml"
refused 1 'certificate' -a 127.0.0.1:0 --web-config-file "$dir/web.yaml"

# --- Clients that mean harm -------------------------------------------------

exporter_up --idle-timeout 2
port=${url##*:}
cat >"$dir/harm.py" <<'END'
import socket, sys, time

address = ("127.0.0.1", int(sys.argv[1]))
END_OF_HEADERS = b"\r\n\r\n"

def connect():
    s = socket.create_connection(address)
    s.settimeout(30)
    return s

def closed(s):
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except socket.timeout:
        return False

def check(what, held):
    print("held" if held else "broken", what, flush=True)

def reply(data):
    s = connect()
    got = b""
    try:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass # what was answered so far can still be read
    try:
        while chunk := s.recv(65536):
            got += chunk
    except ConnectionError:
        pass
    return got

# A request that never ends, a byte now and then: the clock does not start anew with each.
s = connect()
begin = time.monotonic()
try:
    s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    while time.monotonic() - begin < 30:
        s.sendall(b"x")
        time.sleep(0.2)
        s.setblocking(False)
        try:
            if s.recv(1) == b"":
                break
        except BlockingIOError:
            pass
        s.setblocking(True)
except OSError:
    pass
check("a request that trickles in is cut off", time.monotonic() - begin < 25)

# One that says nothing at all.
check("a connection that says nothing is closed", closed(connect()))

# One that asks again and again and reads nothing.
s = connect()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
try:
    s.setblocking(False)
    for _ in range(20000):
        s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
except BlockingIOError:
    pass
except OSError:
    pass
begin = time.monotonic()
gone = False
while time.monotonic() - begin < 30 and not gone:
    time.sleep(0.2)
    try:
        s.send(b"GET")
    except BlockingIOError:
        pass
    except OSError:
        gone = True
check("one that takes no answers is closed", gone)

check("headers beyond measure are refused",
      reply(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 200000 + END_OF_HEADERS)[9:12] in (b"413", b"414", b"431", b""))
check("so is a path beyond measure",
      reply(b"GET /" + b"x" * 200000 + b" HTTP/1.1\r\nHost: x" + END_OF_HEADERS)[9:12] in (b"413", b"414", b"431", b""))
check("noise is refused", reply(b"\x16\x03\x01\x00\x00nonsense\r\n\r\n")[9:12] in (b"400", b"404", b"405", b"505", b""))
check("a body of unknown length is refused",
      reply(b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n")[9:12] in (b"400", b"405", b"413", b""))
check("two requests in one piece get two answers",
      reply(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").count(b'"healthy"') == 2)
END
while read -r held what; do
    [[ $held == held ]]
    ok $? "$what"
done < <(timeout -k 5 240 "$PYTHON" "$dir/harm.py" "$port")
is "$(status /metrics)" 200 'after all that it serves as before'
exporter_down

# --- Clients that do nothing ------------------------------------------------

exporter_up
port=${url##*:}
cat >"$dir/idle.py" <<'END'
import resource, socket, sys

resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

def ask(s):
    s.sendall(request)
    got = b""
    while not got.endswith(b"}}\n"):
        chunk = s.recv(4096)
        if not chunk:
            return False
        got += chunk
    return b"200 OK" in got

held = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) for _ in range(1000)]
first = sum(ask(s) for s in held)
print(first, sum(ask(s) for s in held))
END
is "$(timeout -k 5 120 "$PYTHON" "$dir/idle.py" "$port")" '1000 1000' 'a thousand connections are kept, and all of them answered again'
is "$(status /metrics)" 200 'and others, too'

# --- Clients that take their time -------------------------------------------

# While one takes an answer others get newer ones: the old one stays whole until it is taken. Ten answers of 256 GPUs are
# more than the kernel keeps for a connection, so one of them is always under way.
exporter_down
mount_down
mount_up --gpus 256 --profile chaos --speed 100
exporter_up
said=$(bounded "$PYTHON" - "${url#http://}" <<'END'
import http.client, re, socket, sys
host, port = sys.argv[1].split(":")
slow = socket.socket()
slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
slow.connect((host, int(port)))
slow.settimeout(30)
slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 9 + b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
taken = slow.recv(1000)
pages = set()
while len(pages) < 5:
    other = http.client.HTTPConnection(host, int(port), timeout=30)
    other.request("GET", "/metrics")
    pages.add(other.getresponse().read())
    other.close()
slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # the rest may come as it will
try:
    while more := slow.recv(1 << 20):
        taken += more
except OSError as e:
    print(e)
answers = 0
while taken:
    head, _, rest = taken.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    if not length:
        sys.exit(f"answer {answers + 1} begins with {head[:50]}")
    body, taken = rest[:int(length[1])], rest[int(length[1]):]
    answers += 1
    if len(body) != int(length[1]): print(len(body), "bytes came of", int(length[1]))
    if len(re.findall(rb'^DCGM_FI_DEV_SM_CLOCK\{gpu="\d+"', body, re.M)) != 256: print(answers, "is no page of 256 GPUs")
if answers != 10: print(answers, "answers came")
END
)
is "$?:$said" 0: 'an answer stays whole while newer ones are made' || diag "$(cat "$exporter_log")"

# While the node changes faster than it can be read, what is read is still whole.
said=$(timeout -k 5 120 "$PYTHON" - "$mnt" "${url#http://}" <<'END'
import collections, http.client, os, re, sys, threading, time
mnt, (host, port) = sys.argv[1], sys.argv[2].split(":")
end = time.monotonic() + 8
seen = collections.Counter()

def change():
    fault = os.open(mnt + "/gpus/0/control/fault", os.O_WRONLY)
    while time.monotonic() < end:
        os.write(fault, b"xid 31")
        os.mkdir(mnt + "/workloads/w")
        os.rmdir(mnt + "/workloads/w")
        os.write(fault, b"recover")

def ask():
    while time.monotonic() < end:
        c = http.client.HTTPConnection(host, int(port), timeout=60)
        c.request("GET", "/metrics")
        answer = c.getresponse()
        body = answer.read()
        gpus = len(re.findall(rb'^DCGM_FI_DEV_SM_CLOCK\{gpu="\d+"', body, re.M))
        seen[f"{answer.status} {gpus}" if answer.status == 200 else body.decode()] += 1
        c.close()

threads = [threading.Thread(target=t) for t in [change] + [ask] * 4]
for t in threads: t.start()
for t in threads: t.join()
for what in sorted(seen): print(what)
END
)
is "$?:$said" '0:200 256' 'and so is one of a node that changes all the time' || diag "$(cat "$exporter_log")"

# --- The end ----------------------------------------------------------------

# An answer under way is finished: the client takes it slowly while the exporter is asked to end.
exporter_down
mount_down
mount_up --gpus 256 --speed 0
exporter_up
size=$(page | wc -c)
bounded curl -s --limit-rate 2M -o "$dir/slow" "$url/metrics" &
slow=$!
wait_for test -s "$dir/slow"
kill -TERM "$exporter_pid"
wait_for eval '! status /metrics >/dev/null'
ok $? 'at the end no new connection is taken'
wait $slow
is "$(wc -c <"$dir/slow")" "$size" 'and an answer under way is finished'
wait_gone "$exporter_pid"
ok $? 'and then it ends'
mount_down

is "$(grep -v 'was killed by signal 9' <<<"$mount_deaths")$exporter_deaths" '' 'nothing died on the way'
tap_done
