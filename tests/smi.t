#!/usr/bin/env bash
#
# nvidia-smi as people see it: the table, -L, -q, XML, dmon, pmon, topo, nvlink; and that it is linked
# with nothing of the library (layers.t: what it includes).
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'

# --- the program ---------------------------------------------------------------------------------

is "$(readelf -d "$BUILD/nvidia-smi" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(libc\.so|libdl|libasan|libubsan|libtsan|libm\.so|libgcc|libpthread|ld-linux)')" '' \
    'it is linked with the C library alone'

need_mounts
. tests/smi/smi.sh

# not_wide TEXT: its lines that are not as wide as the table.
not_wide() {
    awk 'NR > 1 && length && length != 91' <<<"$1"
}

# --- the table -----------------------------------------------------------------------------------

# The lines that never change, with the others as the letter that says what they are.
shape() {
    sed -E -e '1s/^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4} {7}$/DATE/' \
        -e 's/^\| NVIDIA-SMI [0-9.]+ +Driver Version: [0-9.]+ +CUDA Version: [0-9.]+ +\|$/VERSIONS/' \
        -e 's/^\| +[0-9]+  [^|]{27}    (On |Off) \|   [0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0 (Off| On) \| +([0-9]+|N\/A|On) \|$/GPU/' \
        -e 's/^\|( N\/A| +[0-9]+%) +[0-9]+C +P[0-9]+ +[0-9]+W \/ +[0-9]+W \| +[0-9]+MiB \/ +[0-9]+MiB \| +([0-9]+%|N\/A) +(Default|E. Process|Prohibited) \|$/STATE/' \
        -e 's/^\| {41}\| {24}\| +(Disabled|Enabled|N\/A) \|$/MIG/' \
        -e 's/^\| +[0-9]+ +(N\/A|[0-9]+) +(N\/A|[0-9]+) +[0-9]+ +C   [^ ].{36} +[0-9]+MiB \|$/PROCESS/'
}

bar='+-----------------------------------------------------------------------------------------+'
gpu_bar='+-----------------------------------------+------------------------+----------------------+'
head="DATE
$bar
VERSIONS
$gpu_bar
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"
processes="
$bar
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|"
nobody='|  No running processes found                                                             |'

for count in 1 8 16; do
    mount_up --gpus $count
    said=$(shows)
    ok $? "the table of $count GPUs is shown, with nothing set in the environment"
    is "$(shape <<<"$said")" "$head
$(for ((i = 0; i < count; i++)); do printf 'GPU\nSTATE\nMIG\n%s\n' "$gpu_bar"; done)
$processes
$nobody
$bar" "it has the lines of the table for $count GPUs"
    is "$(not_wide "$said")" '' 'all of them 91 columns wide'
    is "$(shows -L | wc -l)" "$count" "-L has $count lines"
    mount_down
done

mount_up --gpus 2
long=$(printf 'a%.0s' {1..60})
mkdir "$mnt/workloads/$long" "$mnt/workloads/short"
for job in "$long" short; do
    put "$mnt/workloads/$job/devices" 1
    put "$mnt/workloads/$job/memory" 5GiB
    put "$mnt/workloads/$job/activity" '[{utilization: 40}]'
done
wait_for grep -q short "$mnt/gpus/1/processes"
put "$mnt/control/clock" 'step 30s'
put "$mnt/control/clock" pause
said=$(shows)
is "$(not_wide "$said")" '' 'a long name of a process does not make the table wider'
is "$(shape <<<"$said" | grep -c PROCESS)" 2 'both processes are there'
like "$said" "\| +1 +N/A +N/A +[0-9]+ +C   \.\.\.a{29} {5} +5120MiB \|" 'of the long one the end, after three dots'
like "$said" "\| +1 +N/A +N/A +[0-9]+ +C   short {32} +5120MiB \|" 'and the short one whole'
odd=/opt/модель/$'\x01<\xff>'/очень-длинное-имя-программы
output=$dir/odd background bash -c 'exec -a "$1" sleep 60' - "$odd"
mkdir "$mnt/workloads/odd"
put "$mnt/workloads/odd/pid" $started
put "$mnt/workloads/odd/devices" 0
put "$mnt/workloads/odd/memory" 1GiB
wait_for grep -q "^$started " "$mnt/gpus/0/processes"
wait_for eval "[[ \$(tr -d '\\0' </proc/$started/cmdline) == /opt* ]]"
is "$(shows | "$PYTHON" -c '
import sys
lines = sys.stdin.buffer.read().decode().splitlines()
print({len(line) for line in lines[1:] if line}, [line[43:80] for line in lines if "..." in line and " 1024MiB" in line])')" \
    "{91} ['...>/очень-длинное-имя-программы     ']" 'the table stays as wide for letters of more than a byte'
is "$(shows -q -x -i 0 | "$PYTHON" -c '
import sys, xml.etree.ElementTree as tree
print(tree.fromstring(sys.stdin.buffer.read()).find("gpu/processes/process_info/process_name").text)')" \
    "${odd//[$'\x01\xff']/?}" 'and XML can be read, whatever bytes a program is called by'
rmdir "$mnt/workloads/odd"
stop_background
like "$said" "\| N/A +$(metric 1 temperature_gpu_c)C +P$(metric 1 pstate) +$(($(metric 1 power_usage_mw) / 1000))W / +400W \| +10240MiB / +40960MiB \| +$(metric 1 utilization_gpu_percent)% +Default \|" \
    'the values are those of the files'
is "$(shows -i 1 | grep -c 'NVIDIA A100')" 1 '-i shows one GPU'
is "$(shows -i "$(identity 1 uuid)" -L)" "GPU 1: $(identity 1 name) (UUID: $(identity 1 uuid))" '-i takes a UUID'
is "$(shows -i "$(identity 1 bus_id),0" -L | cut -c1-6)" $'GPU 1:\nGPU 0:' '-i takes a list, and bus ids, in its order'
shows -f "$dir/table" >"$dir/said"
is "$(wc -c <"$dir/said"):$(sed 1d "$dir/table")" "0:$(sed 1d <<<"$said")" '-f writes to a file and nowhere else'

# --- again and again -----------------------------------------------------------------------------

output=$dir/loop background "$smi" --query-gpu=index --format=csv -lms 20
wait_for eval '(($(wc -l <"$dir/loop") > 8))'
ok $? '-lms goes on'
stop_background
is "$(sort -u "$dir/loop" | head -n 3)" $'0\n1\nindex' 'with the same columns'
is "$(grep -c index "$dir/loop")" 1 'and their heads once'
output=$dir/loop background "$smi" -l 1
wait_for eval '(($(grep -c Driver "$dir/loop") > 1))'
ok $? '-l does so with the table'
stop_background
for command in '' -L '-q -i 0' '-l 1' '--query-gpu=index --format=csv -lms 20' 'dmon -c 2' 'pmon -c 1' 'topo -m' 'nvlink -s' 'mig -lgip'; do
    bounded "$smi" $command >/dev/full; is $? 255 "what cannot be written is a failure: nvidia-smi $command"
done

# --- -q ------------------------------------------------------------------------------------------

said=$(shows -q)
is "$(head -n 3 <<<"$said")" $'\n==============NVSMI LOG==============' '-q begins with its title'
is "$(grep -c '^GPU 0000' <<<"$said")" 2 'and tells of every GPU'
is "$(grep -vE '^(GPU [0-9A-F:.]+|==+NVSMI LOG=+| {4,16}[A-Za-z].*)?$|^[A-Z].{54}: ' <<<"$said")" '' 'in its layout'
is "$(awk 'index($0, " : ") && index($0, ":") != 56 && index($0, ":") != 43' <<<"$said")" '' 'with the values below each other'

# sections DISPLAY: the titles at the first level.
sections() {
    shows -q -i 0 -d "$1" | sed -nE 's/^    ([A-Za-z].*[^ ]) *$/\1/p' | sed -E 's/ +:.*//'
}
while IFS='|' read -r display titles; do
    is "$(sections "$display" | paste -sd,)" "$titles" "-d $display"
done <<'END'
MEMORY|FB Memory Usage,BAR1 Memory Usage,Conf Compute Protected Memory Usage
UTILIZATION|Utilization,GPU Utilization Samples,Memory Utilization Samples,ENC Utilization Samples,DEC Utilization Samples
ECC|ECC Mode,ECC Errors
TEMPERATURE|Temperature
POWER|GPU Power Readings,Power Samples,GPU Memory Power Readings,Module Power Readings,EDPp Multiplier
CLOCK|Clocks,Applications Clocks,Default Applications Clocks,Deferred Clocks,Max Clocks,Max Customer Boost Clocks,SM Clock Samples,Memory Clock Samples,Clock Policy
COMPUTE|Compute Mode
PIDS|Processes
PERFORMANCE|Performance State,Clocks Event Reasons,Clocks Event Reasons Counters,Sparse Operation Mode
SUPPORTED_CLOCKS|Supported Clocks
PAGE_RETIREMENT|Retired Pages
ACCOUNTING|Accounting Mode,Accounting Mode Buffer Size,Accounted Processes
ENCODER_STATS|Encoder Stats
SUPPORTED_GPU_TARGET_TEMP|Supported GPU Target Temp
VOLTAGE|Voltage
FBC_STATS|FBC Stats
ROW_REMAPPER|Remapped Rows
RESET_STATUS|GPU Recovery Action
GSP_FIRMWARE_VERSION|GSP Firmware Version
POWER_SMOOTHING|Power Smoothing
POWER_PROFILES|Workload Power Profiles
ECC,compute|Compute Mode,ECC Mode,ECC Errors
END

# --- dmon and pmon -------------------------------------------------------------------------------

said=$(shows dmon -c 2 -i 0)
is "$(head -n 2 <<<"$said")" "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk 
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz " 'dmon has the columns that it has by default'
is "$(sed 1,2d <<<"$said" | wc -l)" 2 'and as many lines as -c says'
is "$(shows dmon -c 1 -s um -i 1 | sed -n 3p | tr -s ' ')" " 1 $(metric 1 utilization_gpu_percent) $(metric 1 utilization_memory_percent) 0 0 0 0 10240 $(($(metric 1 bar1_used_bytes) >> 20)) 0 " \
    'dmon -s chooses columns, with the values of the files'
is "$(shows dmon -c 1 -s mcm -i 0 | head -n 1)" '# gpu     fb   bar1   ccpm   mclk   pclk ' 'in the order of its letters, each once'
is "$(shows dmon -c 1 -s pucvmet -o DT -i 0 | head -n 2)" \
    "#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci 
#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s " 'all of them, with date and time'
is "$(shows dmon -c 1 -o T -s p -i 0 | head -n 1)" '#Time         gpu    pwr  gtemp  mtemp ' 'or the time alone'
like "$(shows dmon -c 1 -o T -i 0 | tail -n 1)" '^ [0-9]{2}:[0-9]{2}:[0-9]{2}       0 ' 'below it'
is "$(shows dmon -c 1 -s c -i 0 --format csv,noheader)" "0, $(metric 0 clock_memory_mhz), $(metric 0 clock_graphics_mhz)" 'or as CSV'
shows dmon -s x >"$dir/said"; is $? 2 'dmon does not take a letter that means nothing'
said=$(shows pmon -c 1 -s um)
is "$(head -n 2 <<<"$said")" "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command 
# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name " 'pmon has its columns'
is "$(sed -n 3p <<<"$said")" '    0          -     -      -      -      -      -      -      -      -      -    -              ' 'a GPU without processes has a line of dashes'
like "$(grep short <<<"$said")" '^    1 +[0-9]+     C +[0-9]+ +[0-9]+      -      -      -      -   5120      0    short +$' 'a process has its use and its memory'
is "$(sed -n '/aaa/s/.* //p' <<<"$said")" aaaaaaaaaaaaaaa 'a long name is cut to 15 letters'

# --- topology ------------------------------------------------------------------------------------

is "$(shows topo -m | sed -n 2,3p | cut -f1-3)" $'GPU0\t X \tNV12\nGPU1\tNV12\t X ' 'topo -m shows bonded NVLinks'
like "$(shows topo -m | head -n 1)" $'^\t.\\[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID.\\[0m$' 'below its heads'
is "$(shows topo -p2p r | head -n 3)" $' \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t' 'topo -p2p shows who reaches whom'
shows topo -p2p z >"$dir/said"; is $? 2 'and nothing for a letter that means nothing'
is "$(shows nvlink -s -i 0 | sed -n 2p)" $'\t Link 0: 25 GB/s' 'nvlink -s shows the speed of links'
is "$(shows nvlink -s -i 0 | grep -c Link)" 12 'of all of them'
is "$(shows nvlink -e -i 0 -l 1 | sed 1d)" $'\t Link 1: Replay Errors: 0\n\t Link 1: Recovery Errors: 0\n\t Link 1: CRC Errors: 0' 'nvlink -e shows errors'
is "$(shows nvlink -c -i 0 -l 1 | sed -n 2p)" $'\t Link 1, P2P is supported: true' 'nvlink -c shows what a link can do'
put "$mnt/control/clock" resume
put "$mnt/gpus/0/control/fault" 'nvlink 3 down'
is "$(shows nvlink -s -i 0 -l 3 | sed 1d)" $'\t Link 3: <inactive>' 'a link that is down is inactive'
for ((link = 0; link < 12; link++)); do put "$mnt/gpus/1/control/fault" "nvlink $link down"; done
is "$(shows nvlink -s -i 1 | sed 1d)" 'NVML: Unable to retrieve Nvlink information as all links are inActive' 'when all are down, it says so'

# --- MIG -----------------------------------------------------------------------------------------

put "$mnt/gpus/0/control/mig_mode" on
put "$mnt/gpus/0/mig/instances" 'create 1g.5gb'
put "$mnt/gpus/0/mig/instances" 'create 3g.20gb'
said=$(shows)
is "$(not_wide "$said")" '' 'the table of MIG devices is as wide'
is "$(sed -n '/MIG devices/,/^$/p' <<<"$said" | grep -cE '^\|  0 +[0-9]+ +0 +[0-9]  \| +[0-9]+MiB / +[0-9]+MiB    \| [0-9]+ +(0|N/A) \|( +[0-9]){5} \|$')" 2 'each MIG device has a line'
is "$(shows -L | sed -n '2,3s/UUID: MIG-[0-9a-f-]*/UUID/p')" $'  MIG 3g.20gb     Device  0: (UUID)\n  MIG 1g.5gb      Device  1: (UUID)' '-L lists them below their GPU'
is "$(shows -q -i 0 | grep -c '^    MIG Device$')" 2 '-q tells of them'
is "$(shows -q -x -i 0 | grep -c '<mig_device>')" 2 'and so does the XML'
mkdir "$mnt/workloads/part"
put "$mnt/workloads/part/devices" "$(shows -L | sed -n '3s/.*UUID: \(MIG[^)]*\).*/\1/p')"
put "$mnt/workloads/part/memory" 1GiB
wait_for grep -q part "$mnt/gpus/0/processes"
like "$(shows)" '\|    0    [0-9]    0          4[0-9]{6}      C   part {33} +1024MiB \|' 'a process has the numbers of its instances below their heads'
rmdir "$mnt/workloads/part"
is "$(shows nvlink -s -i 0 | tail -n 1)" 'Nvlink queries are not supported for Devices in MIG mode' 'it has no NVLinks to show'
mount_down

# --- XML -----------------------------------------------------------------------------------------

# Paths of all elements, each once.
cat >"$dir/elements.py" <<'END'
import sys, xml.etree.ElementTree as tree
seen = []
def walk(element, path):
    if path and path not in seen:
        seen.append(path)
    for child in element:
        walk(child, f"{path}/{child.tag}" if path else child.tag)
text = sys.stdin.read()
assert text.startswith('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'), text[:100]
walk(tree.fromstring(text), "")
print("\n".join(seen))
END

# What the lists have and we have not (-), and the other way round (+), and why.
same_reason='The list is of an older driver: '
declare -A differs=(
    [T4]=''
    [H100-80GB-HBM3]=''
    [A100-SXM4-40GB]="\
+gpu/display_attached                     ${same_reason}580 brought it
+gpu/pdi                                  ${same_reason}580 brought it
-gpu/gpu_reset_status                     ${same_reason}580 has gpu_recovery_action alone
-gpu/gpu_reset_status/reset_required      ${same_reason}580 has gpu_recovery_action alone
-gpu/gpu_reset_status/drain_and_reset_recommended ${same_reason}580 has gpu_recovery_action alone
+gpu/clocks_event_reasons_counters        ${same_reason}580 brought it
+gpu/clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap       ${same_reason}580 brought it
+gpu/clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost         ${same_reason}580 brought it
+gpu/clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown  ${same_reason}580 brought it
+gpu/clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown  ${same_reason}580 brought it
+gpu/clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake     ${same_reason}580 brought it
+gpu/ecc_errors/channel_repair_pending    ${same_reason}580 brought it
+gpu/ecc_errors/tpc_repair_pending        ${same_reason}580 brought it
-gpu/voltage                              ${same_reason}580 dropped it
-gpu/voltage/graphics_volt                ${same_reason}580 dropped it
+gpu/fabric/health/summary                ${same_reason}580 brought it
+gpu/fabric/health/incorrect_configuration ${same_reason}580 brought it"
)
declare -A links=([T4]='Device does not have or support Nvlink' [A100-SXM4-40GB]='Link 0: 25 GB/s' [H100-80GB-HBM3]='Link 0: 26.562 GB/s')
for model in T4 A100-SXM4-40GB H100-80GB-HBM3; do
    list=${model%%-*}
    mount_up --gpus 1 --model "$model"
    is "$(shows nvlink -s | sed -n '2s/^\t //;2p')" "${links[$model]}" "nvlink -s of $model"
    shows -q -x >"$dir/xml"
    "$PYTHON" "$dir/elements.py" <"$dir/xml" >"$dir/ours" || bail 'the XML cannot be read'
    is "$(diff <(grep -v '^#' "tests/smi/${list,,}.elements") "$dir/ours" | sed -nE 's/^< /-/p; s/^> /+/p')" \
        "$(sed 's/ .*//' <<<"${differs[$model]}")" "the elements of $model are those of the real tool, in its order"
    sed 's/ \{2,\}/: /' <<<"${differs[$model]}" | grep . | while read -r line; do diag "$list: $line"; done
    mount_down
done

# --- how often it reads --------------------------------------------------------------------------

# reads ARGUMENT...: how many read and pread calls it made for its answer; those of starting are left out.
reads() {
    "$PYTHON" -c '
import os, re, sys

def calls(arguments):
    pid = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{pid}/io") as file:
        made = int(re.search(r"syscr: (\d+)", file.read())[1])
    return made if os.waitpid(pid, 0)[1] == 0 else 10 ** 9

print(calls(sys.argv[1:]) - calls([sys.argv[1], "--query-gpu=count", "--format=csv"]))
' "$smi" "$@"
}

for model in A100-SXM4-40GB H100-80GB-HBM3; do
    mount_up --gpus 8 --model "$model"
    sections=$(shows -q -x -i 0 | grep -cE $'^\t\t<[^/]*>$')
    (($(reads -q -x) <= 8 * sections))
    ok $? "-q -x of $model reads at most once for each of 8 GPUs and $sections sections"
    (($(reads --query-gpu=utilization.gpu,memory.used,power.draw,temperature.gpu,clocks.sm --format=csv) <= 8))
    ok $? 'five values of a GPU are one reading'
    mount_down
done

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
