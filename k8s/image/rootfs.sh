#!/usr/bin/env bash
#
# rootfs.sh STAGE ROOT: makes the layers of the container images from what `make install` has put into STAGE.
#
# A layer is a directory ROOT/LAYER: stripped programs and exactly the shared libraries that they load, with
# their licenses; no shell, no package manager. The same input gives the same files, wherever it was built.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
stage=$(cd "$1" && pwd)
root=$2

# Where a build was done is in the build id: it goes, too.
strip_file() {
    strip --strip-all --remove-section=.note.gnu.build-id --remove-section=.comment "$1"
}

is_elf() {
    [[ -f $1 && ! -L $1 && $(head -c 4 "$1" | tr -d '\0') == $'\x7fELF' ]]
}

# libraries FILE...: the paths of all they load, the loader's own among them.
libraries() {
    local file
    for file in "$@"; do
        # A line is "name => path (address)" or "path (address)"; what is not found has neither.
        ldd "$file" | awk -v file="$file" '
            / => not found/ { print file ": " $1 " is not found" >"/dev/stderr"; exit 1 }
            $2 == "=>" && $3 ~ /^\// { print $3 }
            $1 ~ /^\// { print $1 }'
    done | LC_ALL=C sort -u
}

# add_license LAYER LIBRARY: of the package that it comes from, where there is one.
add_license() {
    local real package
    command -v dpkg-query >/dev/null || return 0
    real=$(readlink -f "$2")
    # The package knows the file by the path it was installed with, which may be older than the merged /usr.
    package=$({ dpkg-query -S "$real" || dpkg-query -S "${real#/usr}"; } 2>/dev/null | sed 's/:.*//; q')
    [[ ! $package || ! -f /usr/share/doc/$package/copyright ]] ||
        install -D -m 0644 "/usr/share/doc/$package/copyright" "$1/usr/share/doc/$package/copyright"
}

# add_libraries LAYER LOWER FILE...: what the files need and neither layer has.
add_libraries() {
    local layer=$1 lower=$2 library
    shift 2
    for library in $(libraries "$@"); do
        [[ ! -e $lower$library && ! -e $layer$library ]] || continue
        install -D -m 0755 "$(readlink -f "$library")" "$layer$library"
        strip_file "$layer$library"
        add_license "$layer" "$library"
    done
}

# Who there is, and where things are mounted.
add_system() {
    mkdir -p "$1/"{etc,dev,proc,sys,tmp,run/fakegpufs,var/lib/kubelet/pod-resources}
    chmod 1777 "$1/tmp"
    printf '%s\n' 'root:x:0:0:root:/:/nonexistent' 'nobody:x:65534:65534:nobody:/:/nonexistent' \
        'fakegpu:x:65532:65532:fakegpu:/:/nonexistent' >"$1/etc/passwd"
    printf '%s\n' root:x:0: nogroup:x:65534: fakegpu:x:65532: >"$1/etc/group"
    install -D -m 0644 "$here/../../LICENSE" "$1/usr/share/doc/fakegpufs/copyright"
}

# in_stage FILE...: those that there are, as paths from $stage.
in_stage() {
    local file
    for file in "$@"; do
        [[ ! -e $stage/$file ]] || echo "$file"
    done
}

# copy LAYER FILE...: stripped, with its links; then the libraries, found while the programs are whole.
copy() {
    local layer=$1 lower=$2 file elves=()
    shift 2
    for file in "$@"; do
        mkdir -p "$layer/${file%/*}"
        cp -P "$stage/$file" "$layer/$file"
        is_elf "$layer/$file" || continue
        strip_file "$layer/$file"
        elves+=("$stage/$file")
    done
    ((${#elves[@]} == 0)) || add_libraries "$layer" "$lower" "${elves[@]}"
}

rm -rf "$root"
mkdir -p "$root/base"
apart=()
while read -r word _ program; do
    [[ $word != layer ]] || apart+=("$program")
done <"$here/images"

# Pages for people are left out: there is nobody to read them.
mapfile -t files < <(cd "$stage" && find . \( -type f -o -type l \) ! -path './usr/share/man/*' \
    ! -path '*/completions/*' ! -path '*/vendor_completions.d/*' ! -path '*/site-functions/*' -printf '%P\n' |
    LC_ALL=C sort | grep -vxF "$(printf '%s\n' "${apart[@]}")")
add_system "$root/base"
copy "$root/base" /nonexistent "${files[@]}"
while read -r word name program; do
    [[ $word == layer ]] || continue
    mapfile -t files < <(in_stage "$program")
    ((${#files[@]} == 0)) || copy "$root/$name" "$root/base" "${files[@]}"
done <"$here/images"
find "$root" -type d ! -name tmp -exec chmod 0755 {} +
