#!/bin/sh
#
# Writes docs/nvml.md from mocknvml/functions.def and tests/clients/versions:
# sh docs/nvml.sh mocknvml/functions.def >docs/nvml.md
#
# SPDX-License-Identifier: Apache-2.0

cat <<'EOF'
# The mock NVML

`libnvidia-ml.so.1` answers from a mount. Programs find it as they find the real one: in
`<mount>/usr/lib64`, or where `make install` puts it (`PREFIX/lib/fakegpufs`):

    LD_LIBRARY_PATH=/usr/local/lib/fakegpufs nvtop

- **Which mount**: `FAKEGPUFS_ROOT`, else the mount that the library itself was loaded from, else `/run/fakegpufs`, or
  `/run/fakegpufs/driver` where only that is one.
- **Which GPUs**: `NVIDIA_VISIBLE_DEVICES`: `all`, `none`, `void`, or a list of GPUs (`2`, `GPU-5af2…`) and MIG devices (`2:1` for
  MIG device 1 of GPU 2, `MIG-7c11…`, `MIG-GPU-5af2…/1/0` by GPU, GPU instance and compute instance). UUIDs may be cut short, to
  8 characters or more. What is named is numbered anew; of a GPU of which only MIG devices are named only those are there. The
  list is read by the first init.
- **Which GPUs in a container**: `void`, which CDI specifications set, means those whose device nodes are in `/dev`, and MIG devices
  whose capabilities are in `/dev/nvidia-caps`, as for a real driver. The same goes without the variable where `/dev` has nodes
  of GPUs and there is no `/proc/driver/nvidia`; otherwise it is all GPUs.
- **Setters** write the GPU's control files: what they set lasts and every other process sees it. Who may,
  the files' permissions say (`NVML_ERROR_NO_PERMISSION`).
- **Threads and forks**: any number of threads, which do not wait for each other to read. A child process goes on with its
  parent's handles and event sets, whatever other threads were doing; each of the two sees every event.

| what is wrong | answer |
| --- | --- |
| no mount, or its daemon is gone | `DRIVER_NOT_LOADED`; noticed within half a second, and over when it is back: handles and event sets stay good. Who waits for events waits for the daemon, too, and is told only when none was there in all its time |
| a worker of the daemon dies | nothing: its successor answers |
| the mount is of another version | `LIB_RM_VERSION_MISMATCH` |
| the GPU fell off the bus, or is no longer configured | `GPU_IS_LOST`, for this GPU only |
| the GPU has no such value | `NOT_SUPPORTED` |
| a sensor does not answer | `UNKNOWN` |
| the control file refuses the value | `INVALID_ARGUMENT`; the reason is in `gpus/<i>/control/last_error` |
| not initialized | `UNINITIALIZED`, before any argument is looked at |
| nothing where an answer should go; a handle that was never given out, was freed, or is of another kind | `INVALID_ARGUMENT`, whatever the GPU has |
| a structure of another version | `ARGUMENT_VERSION_MISMATCH`, whatever the GPU has |
| too little room | `INSUFFICIENT_SIZE`, and how much there must be |

Some answers are simpler than a real board's: NVLink utilization counters work on every board with NVLink and count bytes, though
drivers since Ampere give them up; `nvmlDeviceRemoveGpu` takes a GPU off the bus as the fault `fallen_off_bus` does, and
`nvmlDeviceDiscoverGpus` brings it back; the GPM sample of a MIG instance is that of its GPU; who may set application clocks, the
permissions of their control file say (`nvmlDeviceSetAPIRestriction` is not supported).

A MIG device answers for its name, memory, attributes, identity and processes; `NOT_SUPPORTED` for readings that only a whole
GPU has. Its memory is that of its GPU instance, its processes are those on its compute instance. In MIG mode the GPU itself
has no utilization, no process utilization and no accounting, as the driver documents.

**Samples and time stamps.** `nvmlDeviceGetSamples` gives the last 12 s, a sample for every 100 ms, the same to every process.
`nvmlDeviceGetProcessUtilization` gives one sample of each process that keeps something busy. Time stamps are microseconds since
the epoch on the *simulated* clock, which began when the node was mounted: a clock that is paused makes no new samples
(`NOT_FOUND` for whoever has seen the last one), and one that was paused is behind the real one. So ask with a time stamp that
you were given, or 0, rather than with the time of day.

## Clients

`make check-clients` installs these programs at these versions, unmodified, and runs them against a live mount. What they
say is compared, value by value, with the files of the mount: idle and busy, with a failing sensor, a lost GPU and MIG
devices, and on boards of every model. Go 1.25 and Rust's cargo must be there; where a toolchain or a registry is
missing the tests skip and say so. `make check-clients TESTS="go-nvml rust"` runs some of them.

| client | version | test | what is compared |
| --- | --- | --- | --- |
EOF

awk -F '\t' '/^[^#]/ && $1 != "dashboards" { gsub(/, /, "`, `", $4); print "| `" $2 "` | " $3 " | `" $4 "` | " $5 " |" }' \
    "$(dirname "$0")/../tests/clients/versions"

cat <<'EOF'

## Kubernetes' programs on a mount

A mount is a driver root, so that is what NVIDIA's programs are told. Some of them also look into `/sys` (NUMA nodes, PCI
classes), `/dev` and `/proc/driver` (MIG) of the machine they run on, whatever they are told: `fakegpufs exec` runs a
program where these are the mount's, and changes nothing for others.

    root=/run/fakegpufs
    sudo fakegpufs mount $root

    # labels of the node, those of k8s/labels
    sudo fakegpufs exec --mount $root -- gpu-feature-discovery --oneshot --use-node-feature-api=false --output-file labels

    # a CDI specification: containers get the mount's device nodes and library
    sudo fakegpufs exec --mount $root -- nvidia-ctk cdi generate --driver-root $root --output /etc/cdi/nvidia.yaml
    podman run --device nvidia.com/gpu=0 -v $root:/run/fakegpufs debian:12 nvidia-smi

    # the device plugin, beside a kubelet
    sudo fakegpufs exec --mount $root -- nvidia-device-plugin --driver-root-ctr-path $root \
        --nvidia-driver-root $root --nvidia-dev-root $root --pass-device-specs

    # that GPU is unhealthy for the kubelet at once
    echo xid 79 | sudo tee $root/gpus/3/control/fault

The plugin opens the library in its driver root; without `--driver-root-ctr-path` it is the one that `LD_LIBRARY_PATH`
leads to, which `fakegpufs exec` sets. Without `fakegpufs exec` all of this works as well, with `LD_LIBRARY_PATH` for the
discovery, but there are no NUMA nodes and no MIG devices, and the plugin hands out the nodes of GPUs only. Device nodes
of mode `null` (`fakegpufs mount --dev null`) can be opened in a container. [`fakegpufs cdi`](kubernetes.md#container-engines) makes
a specification that needs neither NVIDIA's programs nor the volume.

## Functions

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
