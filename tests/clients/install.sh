#!/usr/bin/env bash
#
# Installs clients of one kind, at the versions in tests/clients/versions: install.sh KIND DIRECTORY
#
# KIND is python, go, rust, debian, node, telegraf, gpu-exporter, adapter, manifests or dashboards. What can be run is in
# DIRECTORY/bin then, and DIRECTORY/installed is there. Where a
# toolchain or a registry is missing that is no failure: DIRECTORY/missing says what, the tests skip with this sentence,
# and the next run tries again. Programs of our own that do not compile are a failure.
# Downloads are kept where pip, go and cargo keep them always. Nothing is written outside of those and DIRECTORY.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

kind=$1
here=$(cd "${0%/*}" && pwd)
rm -rf "$2"
mkdir -p "$2/bin"
out=$(cd "$2" && pwd)

# missing WHAT: gives up, without a failure; the reason is the log's first error, if there is one.
missing() {
    local why=
    [[ ! -s $out/log ]] || why=": $(grep -iE -m 1 '^(error|go|e):' "$out/log" || tail -n 1 "$out/log")"
    echo "$1$why" >"$out/missing"
    echo "$kind clients are left out: $1$why" >&2
    exit 0
}

# broken WHAT: what should have compiled did not.
broken() {
    tail -n 40 "$out/log" >&2
    echo "$1 cannot be built" >&2
    exit 1
}

# versions: `name<TAB>version` of each client of this kind.
versions() {
    awk -F '\t' -v kind="$kind" '$1 == kind { print $2 "\t" $3 }' "$here/versions"
}

version_of() {
    versions | awk -F '\t' -v name="$1" '$1 == name { print $2 }'
}

install_python() {
    local python=${PYTHON:-/usr/bin/python3}
    "$python" -m venv "$out" >"$out/log" 2>&1 || missing 'there is no venv for Python'
    mapfile -t packages < <(versions | sed 's/\t/==/')
    "$out/bin/pip" -q install "${packages[@]}" >"$out/log" 2>&1 || missing 'pip cannot install them'
}

# The toolchain that is here, whatever a module would like best; and a module is built as it is.
go_prepare() {
    export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false GOWORK=off
    command -v go >/dev/null || missing 'there is no go here'
}

# go_source MODULE: downloads it; sets $at to its name and version, $source to where it is.
go_source() {
    at=$1@$(version_of "$1")
    source=$(go mod download -json "$at" 2>"$out/log" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || true
    [[ $source ]] || missing "go cannot download $at"
}

# go_build MODULE PACKAGE...: programs of a module as it was published, with the dependencies it was published with.
go_build() {
    local at source
    go_source "$1"
    shift
    cp -r --no-preserve=mode "$source" "$out/src"
    (cd "$out/src" && go mod download) >"$out/log" 2>&1 || missing "go cannot download what $at needs"
    (cd "$out/src" && go build -ldflags "$flags" -o "$out/bin/" "$@") >"$out/log" 2>&1 || missing "$at cannot be built"
    rm -rf "$out/src"
}

install_go() {
    go_prepare
    # The library is loaded at run time: what it has not is found out by calling it.
    local flags='-s -w -extldflags=-Wl,-z,lazy'
    local ours
    for ours in go otlp; do
        (cd "$here/$ours" && go mod download) >"$out/log" 2>&1 || missing 'go cannot download what our programs need'
    done
    go_build github.com/NVIDIA/nvidia-container-toolkit ./cmd/nvidia-ctk ./cmd/nvidia-cdi-hook
    go_build github.com/NVIDIA/k8s-device-plugin ./cmd/nvidia-device-plugin ./cmd/gpu-feature-discovery
    for ours in go otlp; do
        (cd "$here/$ours" && go build -ldflags "$flags" -o "$out/bin/" ./...) >"$out/log" 2>&1 ||
            broken "a program in tests/clients/$ours"
    done
}

# Versions are those of their go.mod: nothing of it is a program of its own.
install_manifests() {
    local ours
    go_prepare
    for ours in manifests compose; do
        (cd "$here/$ours" && go mod download) >"$out/log" 2>&1 || missing "go cannot download what reads $ours"
        (cd "$here/$ours" && go build -ldflags '-s -w' -o "$out/bin/$ours" .) >"$out/log" 2>&1 ||
            broken "the program in tests/clients/$ours"
    done
}

install_dashboards() {
    install_python
}

# Of telegraf only the plugins that the test needs, and what they need.
install_telegraf() {
    local at source
    go_prepare
    go_source github.com/influxdata/telegraf
    (cd "$source" && go build -ldflags '-s -w' -tags custom,inputs.nvidia_smi,outputs.file,serializers.json \
        -o "$out/bin/telegraf" ./cmd/telegraf) >"$out/log" 2>&1 || missing "$at cannot be built"
}

install_gpu-exporter() {
    local flags='-s -w'
    go_prepare
    go_build github.com/utkuozdemir/nvidia_gpu_exporter ./cmd/nvidia_gpu_exporter
}

install_adapter() {
    local flags='-s -w'
    go_prepare
    go_build sigs.k8s.io/prometheus-adapter ./cmd/adapter
}

install_node() {
    command -v npm >/dev/null || missing 'there is no npm here'
    mapfile -t packages < <(versions | sed 's/\t/@/')
    (cd "$out" && npm install --silent --no-fund --no-audit --ignore-scripts "${packages[@]}") >"$out/log" 2>&1 ||
        missing 'npm cannot install them'
}

# In a copy: cargo writes down beside the sources what it chose.
install_rust() {
    command -v cargo >/dev/null || missing 'there is no cargo here'
    cp -r "$here/rust" "$out/src"
    (cd "$out/src" && cargo fetch) >"$out/log" 2>&1 || missing 'cargo cannot download'
    (cd "$out/src" && cargo build --offline) >"$out/log" 2>&1 || broken 'the program in tests/clients/rust'
    mv "$out/src/target/debug/walk" "$out/bin/"
    rm -rf "$out/src"
}

# unpack SUITE COMPONENT PACKAGE...: packages of a Debian that need not be this one, with lists of its own.
unpack() {
    local suite=$1 component=$2 site package
    shift 2
    mkdir -p "$out/apt/lists/partial" "$out/apt/archives/partial" "$out/root"
    # shellcheck disable=SC2016
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' 2>"$out/log" | head -n 1)
    [[ $site ]] || missing 'apt knows no archive of Debian'
    echo "deb $site $suite $component" >"$out/apt/sources.list"
    local apt=(apt-get -qq -o Dir::Etc::sourcelist="$out/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$out/apt/lists" -o Dir::Cache="$out/apt" -o Acquire::Languages=none
        -o APT::Sandbox::User=root)
    "${apt[@]}" update >"$out/log" 2>&1 || missing "apt cannot read $suite"
    (cd "$out/apt" && "${apt[@]}" download "$@") >"$out/log" 2>&1 || missing "apt cannot download $*"
    for package in "$out"/apt/*.deb; do
        dpkg-deb -x "$package" "$out/root"
    done
    rm -rf "$out/apt"
}

# The second is for a newer Debian, and comes with the C library that it wants.
install_debian() {
    local name version suite component
    command -v apt-get >/dev/null || missing 'there is no apt-get here'
    while read -r name version suite component; do
        [[ $name == btop ]] && set -- libc6 libstdc++6 libgcc-s1 || set --
        unpack "$suite" "$component" "$name=$version" "$@"
    done < <(versions)
    cp "$out/root/usr/bin/nvtop" "$out/bin/"
    cat >"$out/bin/btop" <<END
#!/bin/sh
exec '$out/root/usr/lib64/ld-linux-x86-64.so.2' \\
    --library-path '$out/root/usr/lib/x86_64-linux-gnu'":\$LD_LIBRARY_PATH" '$out/root/usr/bin/btop' "\$@"
END
    chmod +x "$out/bin/btop"
}

"install_$kind"
rm -f "$out/log"
touch "$out/installed"
