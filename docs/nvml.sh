#!/bin/sh
#
# Writes docs/nvml.md from mocknvml/functions.def: sh docs/nvml.sh mocknvml/functions.def >docs/nvml.md
#
# SPDX-License-Identifier: Apache-2.0

cat <<'EOF'
# The mock NVML

`libnvidia-ml.so.1` answers from a mount. Programs find it as they find the real one: in
`<mount>/usr/lib64`, or where `make install` puts it (`PREFIX/lib/fakegpufs`):

    LD_LIBRARY_PATH=/usr/local/lib/fakegpufs nvtop

- **Which mount**: `FAKEGPUFS_ROOT`, else the mount that the library itself was loaded from, else `/run/fakegpufs`.
- **Which GPUs**: `NVIDIA_VISIBLE_DEVICES` (`all`, `none`, `void`, indices, UUIDs or their beginnings), numbered
  anew. It is read by the first init.
- **Setters** write the GPU's control files: what they set lasts and every other process sees it. Who may,
  the files' permissions say (`NVML_ERROR_NO_PERMISSION`).
- **Threads and forks**: any number of threads; a child process goes on with its parent's handles.

| what is wrong | answer |
| --- | --- |
| no mount, or its daemon is gone | `DRIVER_NOT_LOADED`; noticed within half a second, and over when it is back |
| the mount is of another version | `LIB_RM_VERSION_MISMATCH` |
| the GPU fell off the bus, or is no longer configured | `GPU_IS_LOST`, for this GPU only |
| the GPU has no such value | `NOT_SUPPORTED` |
| a sensor does not answer | `UNKNOWN` |
| the control file refuses the value | `INVALID_ARGUMENT`; the reason is in `gpus/<i>/control/last_error` |
| not initialized | `UNINITIALIZED`, before any argument is looked at |

A MIG device answers for its name, memory, attributes, identity and processes; `NOT_SUPPORTED` for readings that only a whole
GPU has. Its memory is that of its GPU instance, its processes are those on its compute instance. In MIG mode the GPU itself
has no utilization, no process utilization and no accounting, as the driver documents.

**Samples and time stamps.** `nvmlDeviceGetSamples` gives the last 12 s, a sample for every 100 ms, the same to every process.
`nvmlDeviceGetProcessUtilization` gives one sample of each process that keeps something busy. Time stamps are microseconds since
the epoch on the *simulated* clock, which began when the node was mounted: a clock that is paused makes no new samples
(`NOT_FOUND` for whoever has seen the last one), and one that was paused is behind the real one. So ask with a time stamp that
you were given, or 0, rather than with the time of day.

EOF

awk '
    /^\/\* .*\. \*\/$/ { area = $0; gsub(/^\/\* |\. \*\/$/, "", area); next }
    /^FUNCTION\(/ {
        row = $0
        sub(/^FUNCTION\(/, "", row)
        name = row; sub(/,.*/, "", name)
        status = row; sub(/^[^,]*, /, "", status); sub(/,.*/, "", status)
        files = row; sub(/^[^"]*"/, "", files); sub(/"\)$/, "", files)
        count[status]++
        if (area != shown) {
            text = text "\n## " area "\n\n| function | status | files |\n| --- | --- | --- |\n"
            shown = area
        }
        text = text "| `" name "` | " status " | " (files == "" ? "" : "`" files "`") " |\n"
    }
    END {
        printf "Of %d functions %d are implemented (they answer from files of the mount, or write them),\n", \
            NR ? count["implemented"] + count["constant"] + count["unsupported"] : 0, count["implemented"]
        printf "%d are constant (every simulated host says the same) and %d are not supported (`NOT_SUPPORTED`).\n", \
            count["constant"], count["unsupported"]
        print "Files are those below `gpus/<i>/`, or from the root of the mount."
        printf "%s", text
    }' "$1"
