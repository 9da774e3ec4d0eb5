# A cluster with one node, worker-1, for tests of what gives it labels; sourced after mount.sh. See apiserver.py.
#
#     api_up
#     fakegpu_labels --once
#     node_has nvidia.com/gpu=present; ok $? 'it is labelled'
#
# Sets $labels, the program; $api, the directory of what the server has; $api_url.
#
# SPDX-License-Identifier: Apache-2.0

labels=$(cd "$BUILD" && pwd)/fakegpu-labels
api=$dir/api
api_url=:0 # of any port, until it is up
api_pid=

# need_api: leaves the script out where there can be none.
need_api() {
    [[ -x $labels ]] || skip_all 'fakegpu-labels was not built: its libraries are not here'
    command -v openssl >/dev/null || skip_all 'there is no openssl'
}

# make_ca NAME: who certifies, as $api/NAME.crt and $api/NAME.key.
make_ca() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$api/$1.key" -out "$api/$1.crt" -days 2 -subj "/CN=$1" 2>/dev/null
}

# certify: a CA, and a certificate for the server.
certify() {
    make_ca ca && openssl req -newkey rsa:2048 -nodes -keyout "$api/server.key" -out "$api/server.csr" \
        -subj /CN=kube-apiserver 2>/dev/null &&
        openssl x509 -req -in "$api/server.csr" -CA "$api/ca.crt" -CAkey "$api/ca.key" -CAcreateserial -days 2 \
            -extfile <(echo 'subjectAltName=IP:127.0.0.1') -out "$api/server.crt" 2>/dev/null || bail 'no certificates'
}

# api_setup: certificates, a token and a node with a label of its own.
api_setup() {
    mkdir "$api"
    certify
    echo first-secret-token >"$api/token"
    node_is '{"kubernetes.io/os": "linux"}'
    : >"$api/requests"
    api_does
}

# node_is LABELS [ANNOTATIONS]: what it has, as JSON.
node_is() {
    echo '{"kind": "Node", "metadata": {"name": "worker-1", "resourceVersion": "1", "labels": '"$1"',
        "annotations": '"${2:-"{}"}"'}, "status": {"images": [{"names": ["a"], "sizeBytes": 12345678901}]}}' >"$api/node.json"
}

# api_up: on the port that it had before, when it had one.
api_up() {
    [[ -d $api ]] || api_setup
    rm -f "$api/out"
    output=$api/out background "$PYTHON" "$tests/apiserver.py" serve "$api" "${api_url##*:}" "$api/server.crt" "$api/server.key"
    api_pid=$started
    wait_for test -s "$api/out" || bail 'no API server'
    api_url=https://127.0.0.1:$(head -n 1 "$api/out")
}

api_down() {
    kill -KILL "$api_pid"
    wait_gone "$api_pid"
}

# api_does [JSON]: from now on; as it should without one.
api_does() {
    echo "${1:-"{}"}" >"$api/behave.new"
    mv "$api/behave.new" "$api/behave"
}

# somebody CHANGE...: sets or removes labels of the node.
somebody() {
    bounded "$PYTHON" "$tests/apiserver.py" label "$api" "$@"
}

node_labels() {
    bounded "$PYTHON" "$tests/apiserver.py" labels "$api"
}

# node_has LABEL...: whether it has all of these.
node_has() {
    local have label
    have=$'\n'$(node_labels)$'\n'
    for label in "$@"; do
        [[ $have == *$'\n'"$label"$'\n'* ]] || return 1
    done
}

# node_lacks KEY: whether it has no label of that key.
node_lacks() {
    ! node_labels | grep -q "^$1="
}

# What a pod has of its service account, but elsewhere.
account=(--token-file "$dir/account/token" --ca-file "$api/ca.crt")

# fakegpu_labels OPTION...: one that ends by itself.
fakegpu_labels() {
    bounded "$labels" --root "$mnt" --node worker-1 --server "$api_url" "${account[@]}" "$@" 2>&1
}

# token_is TEXT: that we have.
token_is() {
    mkdir -p "$dir/account"
    echo "$1" >"$dir/account/token.new"
    mv "$dir/account/token.new" "$dir/account/token"
}

# requests [METHOD]: how many there were.
requests() {
    grep -c "^${1:-}" "$api/requests"
}
