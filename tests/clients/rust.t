#!/usr/bin/env bash
#
# nvml-wrapper, the binding for Rust, against a live mount: every value that it gives is what a file says.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client rust
need_mounts
mount_up --gpus 5
use_mount
put "$mnt/control/clock" pause

is "$(client walk | compare 500)" '' 'an idle node: all values are those of the files'
busy_node
is "$(client walk | compare 400)" '' 'a busy one, with a lost GPU, a failing sensor and MIG: the same'
is "$(client walk set | compare 400)" '' 'setters set what the control files show'

mount_down
is "$mount_deaths" '' 'no worker died'
is "$(sed -n 's/^nvml-wrapper = "=\(.*\)"$/\1/p' "$tests/clients/rust/Cargo.toml")" \
    "$(awk '$2 == "nvml-wrapper" { print $3 }' "$tests/clients/versions")" 'versions has the version of Cargo.toml'
tap_done
