#!/usr/bin/env bash
#
# oci.sh ROOT LAYOUT VERSION: packs the layers that rootfs.sh made into images, as an OCI image layout.
#
# A layout is a directory that skopeo, podman, buildah and registries' tools read. manifest.json is not of it: with that and
# the blobs a tar file is what `docker load` and `ctr images import` take. Times are SOURCE_DATE_EPOCH or 0, so the same
# files give the same digests.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
root=$1 layout=$2 version=$3
epoch=${SOURCE_DATE_EPOCH:-0}
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
type=application/vnd.oci.image

case $(uname -m) in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *) architecture=$(uname -m) ;;
esac

digest_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}

# keep FILE: moves it to where its digest says; prints the digest.
keep() {
    local digest
    digest=$(digest_of "$1")
    mv "$1" "$layout/blobs/sha256/$digest"
    echo "$digest"
}

# descriptor TYPE DIGEST [MORE]: how one blob names another.
descriptor() {
    printf '{"mediaType":"%s.%s","digest":"sha256:%s","size":%d%s}' "$type" "$1" "$2" \
        "$(stat -c %s "$layout/blobs/sha256/$2")" "${3-}"
}

# joined ITEM...: with commas between them.
joined() {
    local IFS=,
    echo "$*"
}

# quoted WORD...: as a JSON array. The words are those of the file `images`: none needs escaping.
quoted() {
    local words=() word
    for word in "$@"; do
        words+=("\"$word\"")
    done
    echo "[$(joined "${words[@]}")]"
}

# pack_layer NAME: sets ${layer_digest[NAME]}, and ${layer_content[NAME]}, the digest of what is unpacked.
declare -A layer_digest layer_content
pack_layer() {
    local tar=$layout/layer.tar
    # Names without a leading dot, in the order of their bytes.
    (cd "$root/$1" && LC_ALL=C tar --create --format=gnu --sort=name --mtime="@$epoch" --owner=0 --group=0 \
        --numeric-owner -- *) >"$tar"
    layer_content[$1]=$(digest_of "$tar")
    gzip -n -9 "$tar"
    layer_digest[$1]=$(keep "$tar.gz")
}

# pack_image NAME USER LAYERS COMMAND...: prints its descriptor for the index; its row of manifest.json goes to `rows`.
pack_image() {
    local name=$1 user=$2 layers=() contents=() files=() layer config manifest
    for layer in ${3//,/ }; do
        layers+=("$(descriptor layer.v1.tar+gzip "${layer_digest[$layer]}")")
        contents+=("\"sha256:${layer_content[$layer]}\"")
        files+=("blobs/sha256/${layer_digest[$layer]}")
    done
    shift 3
    printf '{"created":"%s","architecture":"%s","os":"linux","config":{"User":"%s","Env":["PATH=/usr/bin"],"Entrypoint":%s,"WorkingDir":"/","Labels":{"org.opencontainers.image.title":"%s","org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":[%s]},"history":[%s]}' \
        "$created" "$architecture" "$user:$user" "$(quoted "$@")" "$name" "$version" "$(joined "${contents[@]}")" \
        "$(joined "${contents[@]/*/{\"created\":\"$created\",\"created_by\":\"oci.sh\"\}}")" >"$layout/blob"
    config=$(keep "$layout/blob")
    printf '{"Config":"blobs/sha256/%s","RepoTags":["%s:%s"],"Layers":%s}\n' "$config" "$name" "$version" \
        "$(quoted "${files[@]}")" >>"$layout/rows"
    printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":%s,"layers":[%s]}' "$type" \
        "$(descriptor config.v1+json "$config")" "$(joined "${layers[@]}")" >"$layout/blob"
    manifest=$(keep "$layout/blob")
    descriptor manifest.v1+json "$manifest" \
        ",\"platform\":{\"architecture\":\"$architecture\",\"os\":\"linux\"},\"annotations\":{\"org.opencontainers.image.ref.name\":\"$name:$version\"}"
}

# tell NAME LAYERS: how large it is, as pulled and as unpacked.
tell() {
    local layer packed=0 unpacked=0
    for layer in ${2//,/ }; do
        ((packed += $(stat -c %s "$layout/blobs/sha256/${layer_digest[$layer]}"), 1))
        ((unpacked += $(du -s --apparent-size -B1 "$root/$layer" | cut -f 1), 1))
    done
    awk -v name="$1" -v packed=$packed -v unpacked=$unpacked \
        'BEGIN { printf "%-18s %5.1f MB, %5.1f MB unpacked\n", name, packed / 1e6, unpacked / 1e6 }'
}

rm -rf "$layout"
mkdir -p "$layout/blobs/sha256"
for layer in "$root"/*/; do
    layer=${layer%/}
    pack_layer "${layer##*/}"
done
manifests=()
while read -r word name user layers command; do
    read -r program _ <<<"$command"
    [[ $word == image ]] && [[ -e $root/${layers##*,}$program ]] || continue
    manifests+=("$(pack_image "$name" "$user" "$layers" $command)")
    tell "$name" "$layers"
done <"$here/images"
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
mapfile -t rows <"$layout/rows"
rm "$layout/rows"
printf '[%s]\n' "$(joined "${rows[@]}")" >"$layout/manifest.json"
printf '{"schemaVersion":2,"mediaType":"%s.index.v1+json","manifests":[%s]}\n' "$type" "$(joined "${manifests[@]}")" \
    >"$layout/index.json"
