#!/usr/bin/env bash
#
# The live page of the exporter, as a browser shows it. See exporter_page.py.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
need_mounts
[[ -x /usr/bin/chromium && -x /usr/bin/chromedriver ]] || skip_all 'there is no chromium with its driver'
"$PYTHON" -c 'import selenium' 2>/dev/null || skip_all 'python3-selenium is not there'

mount_up --profile idle
output=$dir/exporter.log
background "$BUILD/fakegpu-exporter" --root "$mnt" --address 127.0.0.1:0
wait_for grep -q 'listening on' "$output" || bail "the exporter does not start: $(cat "$output")"
url=$(sed -n 's/.*listening on //p' "$output")/

mkdir "$mnt/workloads/train"
for pair in devices=1 memory=20GiB activity=90:40:10h namespace=default pod=trainer-0 container=main; do
    put "$mnt/workloads/train/${pair%%=*}" "${pair#*=}" || bail "cannot set $pair"
done
put "$mnt/gpus/3/control/fault" 'xid 31'
put "$mnt/gpus/5/control/fault" fallen_off_bus

# The browser's own checks are counted there.
exec_tests() {
    tap_open=0
    HOME=$dir timeout -k 10 240 "$PYTHON" -B "$tests/exporter_page.py" "$url" "$mnt"
}
exec_tests
