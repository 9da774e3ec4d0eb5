#!/usr/bin/env bash
#
# The container images that `make image` builds: whole, small, the same every time, and able to run.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh" # for $dir and `sanitized`
. "${0%/*}/apiserver.sh"

build=$(cd "$BUILD" && pwd)
layout=$build/image
roots=$build/image.root
images=k8s/image/images
[[ -e $layout/index.json ]] || bail 'there is no image: run make image'

# --- the layout ----------------------------------------------------------------

# Prints what is wrong with it, then a line `image NAME USER COMMAND BYTES` for each image.
report=$(bounded "$PYTHON" - "$layout" <<'END'
import gzip, hashlib, json, os, sys
layout = sys.argv[1]
seen = set()
archived = []

def wrong(text):
    print("wrong:", text)

def path_of(d):
    return "blobs/" + d["digest"].replace(":", "/")

def blob(d):
    kind, digest = d["digest"].split(":")
    path = os.path.join(layout, "blobs", kind, digest)
    data = open(path, "rb").read()
    seen.add(digest)
    if hashlib.sha256(data).hexdigest() != digest:
        wrong("digest of " + digest)
    if len(data) != d["size"]:
        wrong("size of " + digest)
    return data

if json.load(open(layout + "/oci-layout")) != {"imageLayoutVersion": "1.0.0"}:
    wrong("oci-layout")
for d in json.load(open(layout + "/index.json"))["manifests"]:
    manifest = json.loads(blob(d))
    config = json.loads(blob(manifest["config"]))
    layers = [blob(l) for l in manifest["layers"]]
    unpacked = ["sha256:" + hashlib.sha256(gzip.decompress(l)).hexdigest() for l in layers]
    if unpacked != config["rootfs"]["diff_ids"]:
        wrong("diff_ids of " + d["digest"])
    if len(config["history"]) != len(layers):
        wrong("history of " + d["digest"])
    name = d["annotations"]["org.opencontainers.image.ref.name"].split(":")[0]
    c = config["config"]
    print("image", name, c["User"], sum(map(len, layers)), *c["Entrypoint"])
    archived.append({"Config": path_of(manifest["config"]), "Layers": [path_of(l) for l in manifest["layers"]],
                     "RepoTags": [d["annotations"]["org.opencontainers.image.ref.name"]]})
if json.load(open(layout + "/manifest.json")) != archived:
    wrong("manifest.json, for docker load")
left = set(os.listdir(layout + "/blobs/sha256")) - seen
if left:
    wrong("blobs that nobody names: " + " ".join(left))
print("left:", *sorted(set(os.listdir(layout)) - {"blobs", "index.json", "manifest.json", "oci-layout"}))
END
)
is "$(grep -c wrong: <<<"$report")" 0 'every blob is what its name and its user say' || diag "$report"
like "$report" $'\nleft: ?$' 'and there is nothing else'
is "$(tar -tf "$build/images.tar" | grep -v /$ | sort)" "$(cd "$layout" && find blobs manifest.json -type f | sort)" \
    'images.tar has the blobs, and no names but those that engines complete'

# as_said FILE: `image NAME USER COMMAND` of the file `images`, as far as it was built.
as_said() {
    awk '$1 == "image" { printf "%s %s:%s", $2, $3, $3; for (i = 5; i <= NF; i++) printf " %s", $i; print "" }' "$1"
}
is "$(awk '$1 == "image" { $1 = ""; $4 = ""; print }' <<<"$report" | sed 's/^ //; s/  / /g')" \
    "$(as_said $images | while read -r name rest; do [[ ! -x $build/$name ]] || echo "$name $rest"; done)" \
    'the images are those that are wanted'
is "$(awk '/^FROM scratch AS/ { name = $4 } name && $1 == "USER" { user = $2 }
           name && $1 == "ENTRYPOINT" { gsub(/[],"[]/, ""); $1 = ""; print name " " user $0 }' k8s/Dockerfile | sort)" \
    "$(as_said $images | sort)" 'the Dockerfile makes the same'
is "$(awk '$2 ~ /^fakegpu-(exporter|labels)$/ { print $3 }' $images | xargs)" '65532 65532' 'who only reads the mount is not root'

# --- how large -----------------------------------------------------------------

unpacked=$(du -s --apparent-size -B1 "$roots/base" | cut -f 1)
diag "the layer base has $((unpacked / 1000)) kB unpacked"
if ! sanitized; then
    ((unpacked < 15000000)); ok $? "the daemon's image has less than 15 MB, unpacked"
    while read -r _ name _ bytes _; do
        diag "$name has $((bytes / 1000)) kB as it is pulled"
        ((bytes < 15000000)); ok $? "$name has less than 15 MB, as it is pulled"
    done < <(grep '^image ' <<<"$report")
fi

# --- the same every time -------------------------------------------------------

k8s/image/oci.sh "$roots" "$dir/layout" "$("$fakegpufs" --version | cut -d ' ' -f 2)" >/dev/null
is "$(cat "$dir/layout/index.json")" "$(cat "$layout/index.json")" 'packed again it has the same digests'
cp -a "$build/image.stage" "$dir/stage"
find "$dir/stage" -exec touch -h {} +
k8s/image/rootfs.sh "$dir/stage" "$dir/roots"
k8s/image/oci.sh "$dir/roots" "$dir/layout" "$("$fakegpufs" --version | cut -d ' ' -f 2)" >/dev/null
is "$(cat "$dir/layout/index.json")" "$(cat "$layout/index.json")" 'and made again elsewhere, at another time'
is "$(grep -aohE '[[:print:]]*[.]pb-c[.]c' "$roots"/*/usr/bin/* | sort -u)" "exporter/otlp.pb-c.c
k8s/pods/podresources.pb-c.c" 'no program says where it was built'
SOURCE_DATE_EPOCH=1700000000 k8s/image/oci.sh "$dir/roots" "$dir/layout" 1 >/dev/null
is "$(tar -tzvf "$(ls -S "$dir/layout/blobs/sha256/"* | head -n 1)" --utc | awk '{ print $4 }' | sort -u)" 2023-11-14 \
    'times are those that are asked for'

# --- what is in it -------------------------------------------------------------

is "$(find "$roots" -type f \( -perm /6000 -o -perm -o+w \))" '' 'no file gives privileges or is for all to write'
is "$(find "$roots" -name sh -o -name bash -o -name 'dpkg*' -o -name 'apt*')" '' 'there is no shell'
is "$(find "$roots" -name '*.so*' -o -path '*/bin/*' | xargs -r file 2>/dev/null | grep -c 'not stripped')" 0 'all is stripped'
mkdir "$dir/root"
for layer in base curl; do
    [[ ! -d $roots/$layer ]] || cp -a "$roots/$layer/." "$dir/root"
done
is "$(ls "$dir/root/usr/bin" | tr '\n' ' ')" \
    "$(cd "$build" && ls -d fakegpufs fakegpu-exporter fakegpu-labels fakegpu-pods nvidia-smi 2>/dev/null | sort | tr '\n' ' ')" \
    'every program that was built is there'
if ((EUID == 0)); then
    mount --bind /proc "$dir/root/proc"
    for program in "$dir/root/usr/bin/"*; do
        program=${program#"$dir/root"}
        bounded env -i "$(command -v chroot)" "$dir/root" "$program" --help >/dev/null 2>"$dir/said"
        ok $? "$program runs with nothing but the image" || diag "$(cat "$dir/said")"
    done
else
    skip 1 'only root can change the root'
fi
# TLS asks for more than libraries in some places: the labeller is to do its work with nothing but the image.
if ((EUID == 0)) && [[ -x $build/fakegpu-labels ]]; then
    api_up
    node_is '{"a": "1", "b": "2"}' '{"fakegpufs.io/labels": "a=1"}'
    cp "$api/ca.crt" "$api/token" "$dir/root/tmp"
    bounded env -i "$(command -v chroot)" --userspec=65532:65532 "$dir/root" /usr/bin/fakegpu-labels --node worker-1 \
        --server "$api_url" --token-file /tmp/token --ca-file /tmp/ca.crt --remove >"$dir/said" 2>&1
    is "$? $(node_labels)" '0 b=2' 'the labeller takes its label off a node' || diag "$(cat "$dir/said")"
else
    skip 1 'only root can change the root, and fakegpu-labels must be there'
fi
[[ -e $dir/root/usr/lib/fakegpufs/libnvidia-ml.so.1 ]]; ok $? 'the library is there'
[[ -s $dir/root/usr/share/doc/fakegpufs/copyright ]]; ok $? 'with the license'

tap_done
