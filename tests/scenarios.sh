# What tests of scenarios share; sourced after mount.sh.
#
# SPDX-License-Identifier: Apache-2.0

need_mounts
unset FAKEGPUFS_ROOT
touch "$dir/begin"
export TMPDIR=$dir/tmp # where a scenario mounts its own
mkdir "$TMPDIR"

# scenario ARGUMENT...: runs it; sets $said (both streams) and $code.
scenario() {
    said=$(timeout -k 5 300 "$fakegpufs" scenario "$@" 2>&1)
    code=$?
}

leftovers() {
    find "$TMPDIR" -maxdepth 1 -name 'fakegpufs-*' -newer "$dir/begin" 2>/dev/null
}
