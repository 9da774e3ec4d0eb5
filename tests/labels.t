#!/usr/bin/env bash
#
# fakegpu-labels against a stand-in for the API server, and a mount: a node has the labels of its GPUs, and nobody's labels go.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/apiserver.sh"
need_api
need_mounts

gpu=nvidia.com/gpu
note=fakegpufs.io/labels

# everything_said keeps what any of them wrote, to look for secrets at the end.
everything_said=$dir/said
look() {
    fakegpu_labels --once "$@" | tee -a "$everything_said"
    return "${PIPESTATUS[0]}"
}

follower=
follow() {
    rm -f "$dir/follow.log"
    output=$dir/follow.log background "$labels" --root "$mnt" --node worker-1 --server "$api_url" "${account[@]}" \
        --interval 100ms --log-level debug "$@"
    follower=$started
}
follow_end() {
    kill -TERM "$follower"
    wait_gone "$follower"
    local status=$?
    cat "$dir/follow.log" >>"$everything_said"
    return $status
}
was_said() {
    grep -qE "$1" "$dir/follow.log"
}
# wanted: the labels that the node is to have for the mount, a line each, in order; with its own one.
wanted() {
    (cat "$mnt/k8s/labels"; echo "$gpu=present"; echo kubernetes.io/os=linux) | LC_ALL=C sort
}
# noted: our note on the node.
noted() {
    "$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["metadata"].get("annotations", {}).get(sys.argv[2], ""))' \
        "$api/node.json" $note
}

# --- one look after the other --------------------------------------------------

mount_up --gpus 4
token_is first-secret-token
api_up
said=$(look --check)
is $? 1 'a node without the labels is not as it should be'
like "$said" "node worker-1: to be done: set $gpu.count=4" 'and what is missing is said'
said=$(look --dry-run)
is $? 0 'a dry run'
is "$(sed 's/^set //' <<<"$said" | LC_ALL=C sort)" "$(wanted | grep -v ^kubernetes)" 'says what would be done'
is "$(node_labels) $(requests PATCH)" 'kubernetes.io/os=linux 0' 'and does nothing'
said=$(look)
is $? 0 'a look'
is "$(node_labels)" "$(wanted)" 'the node has the labels of the mount, and its own'
like "$said" "fakegpu-labels: node worker-1: set $gpu=present" 'what was done is said'
is "$(requests PATCH)" 1 'by one request'
is "$(noted | tr , '\n' | LC_ALL=C sort)" "$(wanted | grep -v ^kubernetes)" 'the node knows which are ours'
is "$(look)" '' 'the next look has nothing to say'
is "$(requests PATCH)" 1 'and nothing to do'
is "$(look --check; echo $?)" 0 'the node is as it should be'
like "$(tail -n 1 "$api/requests")" '^GET - -$' 'a request to read has no body'

# --- whose labels --------------------------------------------------------------

somebody "$gpu.count=99" team=blue "$gpu.product-" nvidia.com/mine=1
is "$(look --dry-run)" "set $gpu.count=4 (was 99)
set $gpu.product=NVIDIA-A100-SXM4-40GB" 'what somebody changed or removed'
look >/dev/null
is "$(node_labels)" "$( (wanted; echo team=blue; echo nvidia.com/mine=1) | LC_ALL=C sort)" \
    'is set again, and what is not ours stays'
printf '%s\n' "$gpu.old=1" "$gpu.changed=ours" >"$dir/old"
somebody "$gpu.old=1" "$gpu.changed=theirs" "$gpu.other=1"
note_now=$(noted),$(paste -sd , "$dir/old"),,nonsense,=x,$gpu.gone=1
"$PYTHON" - "$api/node.json" $note "$note_now" <<'PY'
import json, sys
node = json.load(open(sys.argv[1]))
node["metadata"]["annotations"][sys.argv[2]] = sys.argv[3]
json.dump(node, open(sys.argv[1], "w"))
PY
is "$(look)" "fakegpu-labels: node worker-1: remove $gpu.old=1" 'one of ours that the mount has not goes'
node_has "$gpu.changed=theirs" "$gpu.other=1"; ok $? 'but not when somebody has changed it since'
like ",$(noted)," ",$gpu=present," 'the note is right again'
is "$(noted | grep -oE 'old|changed|nonsense|gone')" '' 'without what is ours no more'
is "$(look --remove --dry-run | head -n 1)" "remove $(sed -n 1p "$mnt/k8s/labels")" 'a dry run of a removal'
node_has "$gpu.count=4"; ok $? 'removes nothing'
look --remove >/dev/null; ok $? 'our labels are taken off'
is "$(node_labels)" "$(printf '%s\n' kubernetes.io/os=linux nvidia.com/gpu.changed=theirs nvidia.com/gpu.other=1 nvidia.com/mine=1 team=blue)" \
    'ours and no others'
is "$(noted)" '' 'and the note'
is "$(look --remove; echo $?)" 0 'once more is nothing to do'
node_is "{\"$gpu\": \"present\", \"$gpu.count\": \"3\"}"
look >/dev/null
is "$(noted | grep -oE "(^|,)$gpu=present")" '' 'a label that was there as it should be is not ours'
look --remove >/dev/null
is "$(node_labels)" "$gpu=present" 'and stays'
echo '{"metadata": {"name": "worker-1", "resourceVersion": "7"}}' >"$api/node.json"
look >/dev/null; node_has "$gpu.count=4"; ok $? 'a node without any labels gets them'
node_is '{"kubernetes.io/os": "linux"}'

# --- a server with troubles ----------------------------------------------------

# refused BEHAVIOUR SENTENCE NAME: exit code 1 and the sentence; nothing changes.
refused() {
    local said status before
    before=$(node_labels)
    api_does "$1"
    said=$(look)
    status=$?
    is "$status $(node_labels)" "1 $before" "$3"
    like "$said" "^fakegpu-labels: warning: $2\$" 'is told'
    api_does
}
refused '{"status": 403, "verb": "PATCH", "message": "nodes \"worker-1\" is forbidden: User \"x\" cannot patch resource \"nodes\""}' \
    "$api_url refuses to patch node worker-1: nodes \"worker-1\" is forbidden: User \"x\" cannot patch resource \"nodes\" \(HTTP status 403\)" \
    'who may not change the node'
refused '{"status": 403, "message": "cannot get"}' "$api_url refuses to get node worker-1: cannot get \(HTTP status 403\)" \
    'who may not even read it'
refused '{"status": 500, "message": "two\nlines, TOKEN and \u001b[31m"}' \
    "$api_url refuses to get node worker-1: two lines, \(token\) and  \[31m \(HTTP status 500\)" \
    'a server that says what it should not'
refused "{\"status\": 500, \"message\": \"$(printf 'x%.0s' {1..5000})\"}" '.*x{1000}… \(HTTP status 500\)' 'one that says a lot'
refused '{"raw": "<html>no</html>"}' "$api_url: the answer is not JSON: line 1: .*" 'one that talks nonsense'
refused '{"raw": "<html>no</html>", "status": 502}' "$api_url refuses to get node worker-1: HTTP status 502" 'and refuses with it'
refused '{"raw": "{\"kind\": \"Node\"}"}' "$api_url: the answer is not the node 'worker-1'" 'something else'
refused '{"raw": "{\"metadata\": {\"name\": \"worker-2\"}}"}' "$api_url: the answer is not the node 'worker-1'" 'another node'
refused '{"raw": "{\"metadata\": {\"name\": \"worker-1\", \"labels\": {\"a\": 1}}}"}' \
    "$api_url: the answer is not the node 'worker-1'" 'labels that are none'
refused '{"raw": "{\"metadata\": {\"name\": \"worker-1\", \"labels\": {\"a\": \"b\\nc\"}}}"}' \
    "$api_url: the answer is not the node 'worker-1'" 'or would be two lines'
refused '{"raw": "", "status": 302}' "$api_url refuses to get node worker-1: HTTP status 302" 'one that sends us elsewhere'
refused '{"close": true}' "$api_url does not answer: .+" 'one that closes connections'
api_does '{"meanwhile": 100}'
said=$(look)
is "$?$(node_has "$gpu.count=4" && echo labelled)" 1 'a node that somebody changes all the time'
like "$said" "$api_url refuses to patch node worker-1: Operation cannot be fulfilled .*HTTP status 409\)" 'is told'
somebody disturbed-
api_does '{"meanwhile": 2}'
look >/dev/null; ok $? 'one that somebody changes now and then'
node_has "$gpu.count=4" disturbed=2; ok $? 'has what both have set'
api_does
said=$(look --node worker-2)
is $? 1 'a node that there is not'
like "$said" 'refuses to get node worker-2: nodes "worker-2" not found \(HTTP status 404\)' 'is told'
make_ca stranger
said=$(look --ca-file "$api/stranger.crt")
is $? 1 'a server that somebody else has certified'
like "$said" "who answers on $api_url is not certified by '$api/stranger.crt': " 'is not trusted'
before=$(requests)
look --ca-file "$api/stranger.crt" >/dev/null
is "$(requests)" "$before" 'and is told nothing'
like "$(SSL_CERT_FILE=$api/ca.crt CURL_CA_BUNDLE=$api/ca.crt look --ca-file "$api/stranger.crt")" 'is not certified by' \
    'whatever the environment says'
said=$(look --server "https://localhost:${api_url##*:}")
is $? 1 'one that is certified for another name'
like "$said" 'who answers on .* is not certified' 'neither'
said=$(look --ca-file "$dir/nowhere")
is $? 1 'without a certificate there is nothing to trust'
like "$said" "'$dir/nowhere' has no certificates" 'that is told, too'
is "$(https_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 look --check; echo $?)" 0 'no proxy is asked'

# --- tokens --------------------------------------------------------------------

token_is another-secret-token
said=$(look)
is $? 1 'a token that is not taken'
like "$said" "refuses to get node worker-1: Unauthorized \(HTTP status 401\)" 'is told'
rm "$dir/account/token"
like "$(look)" "cannot read the token '$dir/account/token': No such file" 'one that is not there'
for wrong in '' 'two words' $'line\r\nHost: elsewhere' $'caf\xc3\xa9'; do
    token_is "$wrong"
    like "$(look)" "'$dir/account/token' has no token: one word is expected" "one that is none: '${wrong@Q}'"
done
head -c 100000 /dev/zero | tr '\0' x >"$dir/account/token"
like "$(look)" "cannot read the token .*: Argument list too long" 'one that is too long'
token_is first-secret-token

# --- for a long time -----------------------------------------------------------

follow --resync 1h
wait_for was_said .
before=$(requests)
put "$mnt/gpus/3/control/fault" fallen_off_bus
wait_for node_has "$gpu.count=3"; ok $? 'a GPU that is lost is taken off'
is "$(($(requests) - before))" 2 'by reading the node once and changing it once'
put "$mnt/gpus/3/control/fault" recover
wait_for node_has "$gpu.count=4"; ok $? 'and comes back'
somebody "$gpu.count-"
before=$(requests)
kill -HUP "$follower"
wait_for node_has "$gpu.count=4"; ok $? 'SIGHUP has it look at the node at once'
api_does '{"wait": 1.5}'
before=$(requests GET)
kill -HUP "$follower"
wait_for eval '(($(requests GET) == before + 1))'
kill -HUP "$follower"
wait_for eval '(($(requests GET) == before + 2))'; ok $? 'also when it comes in the middle of a look'
api_does

token_is second-secret-token
cp "$dir/account/token" "$api/token"
put "$mnt/gpus/2/control/fault" fallen_off_bus
wait_for node_has "$gpu.count=3"; ok $? 'a token that was replaced'
put "$mnt/gpus/2/control/fault" recover
wait_for node_has "$gpu.count=4"

api_down
certify
api_up
put "$mnt/gpus/2/control/fault" fallen_off_bus
wait_for node_has "$gpu.count=3"; ok $? 'a cluster with another certificate' || diag "$(tail -n 3 "$dir/follow.log")"
put "$mnt/gpus/2/control/fault" recover
wait_for node_has "$gpu.count=4"

api_down
put "$mnt/gpus/2/control/fault" fallen_off_bus
wait_for was_said "nobody answers on $api_url: Connection refused"; ok $? 'the server goes'
is "$(look --check >/dev/null; echo $?)" 1 'and nobody says that all is well'
api_does '{"status": 503, "message": "starting"}'
rm -f "$api/times"
api_up
wait_for was_said 'refuses to get node worker-1: starting'; ok $? 'one that starts'
wait_for eval '(($(wc -l <"$api/times") >= 4))'; ok $? 'is asked again'
awk '{ gap = $1 - last; last = $1 } END { exit !(gap >= 1.9) }' "$api/times"; ok $? 'after longer and longer' || diag "$(cat "$api/times")"
is "$(grep -c 'starting' "$dir/follow.log") $(grep -c 'nobody answers' "$dir/follow.log")" '1 1' 'what lasts is said once'
api_does
# The longer the server was away, which a busy machine decides, the longer until it is asked again.
wait_for node_has "$gpu.count=3" || wait_for node_has "$gpu.count=3"
ok $? 'when it is back what happened meanwhile is done'
wait_for was_said 'the API server answers'; ok $? 'and said'
put "$mnt/gpus/2/control/fault" recover
wait_for node_has "$gpu.count=4"

# Behind the same connection sits somebody who never answers.
api_does '{"wait": 600}'
kill -HUP "$follower"
wait_for eval '(($(tail -n 1 "$api/requests" | grep -c GET) == 1))'
follow_end; ok $? 'it ends, though the server does not answer'
node_has "$gpu.count=4"; ok $? 'and leaves the labels'
api_down
api_does
api_up

kill -KILL "$mount_pid" $(worker_of)
follow --resync 300ms
wait_for was_said 'is gone|no mount'; ok $? 'the mount is dead'
before=$(node_labels)
somebody "$gpu.count=77"
is "$(look --check >/dev/null; echo $?)" 1 'without a mount nobody says that all is well'
node_has "$gpu.count=77"; ok $? 'and the node keeps what it has'
mount_up --gpus 2 --model T4
wait_for node_has "$gpu.count=2" "$gpu.product=Tesla-T4"; ok $? 'the next mount is another node' || diag "$(node_labels)"
is "$(node_labels)" "$( (wanted; echo disturbed=2) | LC_ALL=C sort)" 'with its labels, and none of the last one'
somebody "$gpu.product-" "$gpu.memory=1" team=red
wait_for eval 'node_has "$gpu.product=Tesla-T4" && ! node_has "$gpu.memory=1"'; ok $? 'after some time the node is looked at, too'
is "$(node_labels)" "$( (wanted; echo disturbed=2; echo team=red) | LC_ALL=C sort)" 'and is as it should be'
follow_end

# One that is killed, and another one that knows of the labels only what the node has.
mig=nvidia.com/mig-1g.5gb
put "$mnt/control/config" $'mig_strategy: mixed\ngpus: {count: 2, model: A100-SXM4-40GB}\n'
echo on >"$mnt/gpus/1/control/mig_mode"
echo create 1g.5gb >"$mnt/gpus/1/mig/instances"
follow
wait_for node_has "$mig.count=1"; ok $? 'MIG devices are labelled' || diag "$(node_labels)"
kill -KILL "$follower"
wait_gone "$follower"
somebody "$mig.note=1"
echo 'gpus: {count: 2, model: A100-SXM4-40GB}' >"$mnt/control/config"
follow --on-exit remove
wait_for node_lacks "$mig.count"; ok $? 'those that went while nobody looked are taken off'
node_has "$mig.note=1"; ok $? 'and nothing that somebody has set'
somebody "$mig.note-"
echo 'gpus: {count: 1, model: H100-80GB-HBM3}' >"$mnt/control/config"
wait_for node_has "$gpu.count=1" "$gpu.product=NVIDIA-H100-80GB-HBM3"; ok $? 'a configuration that is loaded'
is "$(node_labels)" "$( (wanted; echo disturbed=2; echo team=red) | LC_ALL=C sort)" 'takes what it has not off'
follow_end; ok $? 'at its end'
is "$(node_labels)" $'disturbed=2\nkubernetes.io/os=linux\nteam=red' 'it takes its labels along when it is to'

# A model of somebody's own: the server takes no label that Kubernetes would not take, and none of the others with it.
mkdir -p "$dir/schemas/models"
sed 's/^name: .*/name: odd/; s/^product: .*/product: "-NVIDIA A100+ (ES), 1st engineering sample of no 0123456789 ."/' \
    schemas/models/a100-sxm4-40gb.yaml >"$dir/schemas/models/odd.yaml"
mount_down
mount_up --gpus 1 --model odd --schemas "$dir/schemas"
look >/dev/null; ok $? 'a product with a name that is no label'
node_has "$gpu.product=NVIDIA-A100-ES-1st-engineering-sample-of-no-0123456789"; ok $? 'is called by what can be one' || diag "$(node_labels)"
put "$mnt/control/config" $'mig_strategy: single\ngpus: {count: 1, model: odd, mig_mode: true}\n'
put "$mnt/gpus/0/mig/instances" 'create 1g.5gb'
look >/dev/null; ok $? 'one that is too long with its MIG devices'
node_has "$gpu.product=NVIDIA-A100-ES-1st-engineering-sample-of-no-01234567-MIG-1g.5gb"; ok $? 'is cut before them' || diag "$(node_labels)"
put "$mnt/gpus/0/control/fault" fallen_off_bus
look >/dev/null
node_has "$gpu.present=false" && node_lacks $gpu; ok $? 'a node whose last GPU is lost has none' || diag "$(node_labels)"
put "$mnt/gpus/0/control/fault" recover
look >/dev/null
node_has $gpu=present; ok $? 'until it is back'
look --remove >/dev/null
mount_down
mount_up --gpus 1 --model H100-80GB-HBM3

# --- usage ---------------------------------------------------------------------

for wrong in '--interval 5' '--interval 1ms' '--resync 2h' '--on-exit maybe' '--log-level loud' extra '--nonsense' \
    '--server http://127.0.0.1:1' '--server https://' '--server https://me:secret@host' '--server 127.0.0.1' '--node a/b' '--node ..' \
    '--node A' '--check --remove'; do
    said=$(fakegpu_labels $wrong)
    is $? 64 "usage: $wrong"
    like "$said" 'fakegpu-labels: .+' 'with a sentence'
done
like "$(env -u NODE_NAME "$BUILD/fakegpu-labels" 2>&1)" '--node is not given' 'there must be a node'
like "$(env -u KUBERNETES_SERVICE_HOST NODE_NAME=a "$BUILD/fakegpu-labels" 2>&1)" '--server is not given' 'and a server'
is "$(NODE_NAME=worker-1 KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=${api_url##*:} FAKEGPUFS_ROOT=$mnt \
    bounded "$labels" "${account[@]}" --dry-run | grep -c "^set $gpu.count=1")" 1 'a pod finds both in its environment'
like "$(NODE_NAME=worker-1 KUBERNETES_SERVICE_HOST=::1 KUBERNETES_SERVICE_PORT=1 bounded "$labels" --root "$mnt" "${account[@]}" --once 2>&1)" \
    'nobody answers on https://\[::1\]:1' 'addresses of IPv6, too'
like "$(bounded "$labels" --help)" '^usage: fakegpu-labels' 'help'
is "$(bounded "$labels" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--.*' | while read -r option; do
    sed -n '/^## Labels/,$p' docs/kubernetes.md | grep -q "^| .*\`$option[ \`]" || echo "$option"; done)" '' \
    'every option is in docs/kubernetes.md'
is "$(bounded "$labels" --version)" "fakegpu-labels $("$fakegpufs" --version | cut -d ' ' -f 2)" 'version'
said=$(look --root "$dir")
is "$? $said" "1 fakegpu-labels: warning: no mount of fakegpufs on $dir" 'no mount'

is "$(grep -c 'secret-token' "$everything_said")" 0 'no token was ever written'
[[ $(wc -l <"$everything_said") -gt 100 ]]; ok $? 'of all that was'
mount_down; ok $? 'the mount goes'
is "$mount_deaths" '' 'no worker died'
stop_background
tap_done
