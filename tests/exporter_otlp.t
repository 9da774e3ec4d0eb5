#!/usr/bin/env bash
#
# What the exporter sends to an OpenTelemetry receiver. See exporter_otlp.py.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts
command -v protoc >/dev/null || skip_all 'there is no protoc'
"$PYTHON" -c 'import google.protobuf' 2>/dev/null || skip_all 'python3-protobuf is not there'

mkdir "$dir/messages"
protoc --python_out="$dir/messages" -I exporter exporter/otlp.proto || bail 'cannot compile the messages'
mount_up --gpus 4
put "$mnt/control/clock" 'pause'

# The rest is counted there.
tap_open=0
timeout -k 10 240 "$PYTHON" -B "$tests/exporter_otlp.py" "$BUILD/fakegpu-exporter" "$mnt" "$dir/messages"
