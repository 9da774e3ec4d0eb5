#!/usr/bin/env bash
#
# nvidia-smi mig: GPU instances and compute instances, made, shown and destroyed as the real tool does, and what the
# files say of them.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
need_mounts
. tests/smi/smi.sh
mount_up --gpus 2 --model A100-SXM4-40GB

# says STATUS TEXT ARGUMENT...: what `nvidia-smi mig` prints, and how it ends.
says() {
    local status=$1 text=$2 got
    shift 2
    got=$(bounded "$smi" mig "$@" 2>&1)
    is "$?:$got" "$status:$text" "nvidia-smi mig $*"
}

# created GI PROFILE ID [COMPUTE-PROFILE-ID]: the sentences for one on GPU 0.
created() {
    printf 'Successfully created GPU instance ID %2d on GPU  0 using profile MIG %s (ID %2d)\n' "$1" "$2" "$3"
    [[ ! $4 ]] || printf 'Successfully created compute instance ID  0 on GPU  0 GPU instance ID %2d using profile MIG %s (ID %2d)\n' \
        "$1" "$2" "$4"
}

# --- without MIG mode -----------------------------------------------------------------------------

for command in -lgi -lcip -lci -dgi -dci -cci '-cgi 19'; do
    says 6 'No MIG-enabled devices found.' $command
done

# --- profiles -------------------------------------------------------------------------------------

bounded "$smi" -mig 1 >"$dir/said"
ok $? 'MIG mode is on'
for command in -lgi -lcip -lci -dgi -dci -cci; do
    says 6 'No GPU instances found: Not Found' $command
done
is "$(shows mig -i 0 -lgip | head -n 8)" '+-------------------------------------------------------------------------------+
| GPU instance profiles:                                                        |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                                Free/Total   GiB              CE    JPEG  OFA  |
|===============================================================================|
|   0  MIG 1g.5gb          19     7/7        4.75       No     14     0     0   |
|                                                               1     0     0   |
+-------------------------------------------------------------------------------+' 'profiles have their table'
is "$(shows mig -i 1 -lgip | tail -n 3)" \
    '|   1  MIG 7g.40gb          0     1/1        39.25      No     98     5     0   |
|                                                               7     1     1   |
+-------------------------------------------------------------------------------+' 'up to the largest'
is "$(shows mig -lgip | awk 'length != 81')" '' 'all lines as wide as the real ones'
is "$(shows mig -lgip | sed -nE 's/^\|   [01]  MIG ([^ ]+) .*/\1/p' | sort)" \
    "$(awk '!/^#/ { print $2; print $2 }' "$mnt/gpus/0/mig/profiles" | sort)" 'those of the files, for both GPUs'
says 0 'GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 15 Placements: {0,2,4,6}:2
GPU  0 Profile ID 14 Placements: {0,2,4}:2
GPU  0 Profile ID  9 Placements: {0,4}:4
GPU  0 Profile ID  5 Placement : {0}:4
GPU  0 Profile ID  0 Placement : {0}:8' -i 0 -lgipp

# --- made and shown -------------------------------------------------------------------------------

says 0 "$(created 1 3g.20gb 9 2; created 7 1g.5gb 19 0)" -i 0 -cgi 9:0,1g.5gb:6 -C
says 0 "$(created 3 2g.10gb 14)" -i 0 -cgi 'MIG 2g.10gb:4'
says 0 '+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 1g.5gb            19        7          6:1     |
+---------------------------------------------------------+
|   0  MIG 2g.10gb           14        3          4:2     |
+---------------------------------------------------------+
|   0  MIG 3g.20gb            9        1          0:4     |
+---------------------------------------------------------+' -lgi
is "$(shows mig -i 0 -lgip | grep -oE 'MIG (1g.5gb|3g.20gb) .*/[27]')" 'MIG 1g.5gb          19     0/7
MIG 3g.20gb          9     0/2' 'there is less room now'
says 0 '+--------------------------------------------------------------------------------------+
| Compute instance profiles:                                                           |
| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |
|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |
|         ID                                                          CE    JPEG       |
|======================================================================================|
|   0      3       MIG 1c.2g.10gb       0      2/2           14        1     0     0   |
|                                                                      2     0         |
+--------------------------------------------------------------------------------------+
|   0      3       MIG 2g.10gb          1*     1/1           28        1     0     0   |
|                                                                      2     0         |
+--------------------------------------------------------------------------------------+' -lcip -gi 3
says 0 'Successfully created compute instance ID  0 on GPU  0 GPU instance ID  3 using profile MIG 1c.2g.10gb (ID  0)
Successfully created compute instance ID  1 on GPU  0 GPU instance ID  3 using profile MIG 1c.2g.10gb (ID  0)' \
    -gi 3 -cci 0,1c.2g.10gb
says 0 '+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0      7       MIG 1g.5gb           0         0          0:1     |
+--------------------------------------------------------------------+
|   0      3       MIG 1c.2g.10gb       0         0          0:1     |
+--------------------------------------------------------------------+
|   0      3       MIG 1c.2g.10gb       0         1          1:1     |
+--------------------------------------------------------------------+
|   0      1       MIG 3g.20gb          2         0          0:3     |
+--------------------------------------------------------------------+' -lci
says 0 'GPU  0 GPU instance ID  1 Profile ID  0 Placements: {0,1,2}:1
GPU  0 GPU instance ID  1 Profile ID  1 Placements: {0,1}:2
GPU  0 GPU instance ID  1 Profile ID  2 Placement : {0}:3' -lcipp -gi 1
is "$(shows mig --list-compute-instance-possible-placements | cut -d' ' -f3-8 | uniq -c | tr -s ' ')" ' 1 0 GPU instance ID 7
 2 0 GPU instance ID 3
 3 0 GPU instance ID 1' '-lcipp tells of all GPU instances'
is "$(shows -L | grep -c MIG-)" 4 'four devices are there for everybody'
is "$(grep -vc '^#' "$mnt/gpus/0/mig/instances")" 7 'and seven instances in the files'

# --- refused --------------------------------------------------------------------------------------

says 23 'Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources
Failed to create GPU instances: Insufficient Resources' -i 0 -cgi 9
says 2 'Unable to create a GPU instance on GPU  0 using profile 2g.10gb: Invalid Argument
Failed to create GPU instances: Invalid Argument' -cgi 2g.10gb:6
says 2 'Unable to create a GPU instance on GPU  0 using profile 9g.90gb: Invalid Argument
Failed to create GPU instances: Invalid Argument' -cgi 9g.90gb
says 23 'Unable to create a compute instance on GPU  0 GPU instance ID  3 using profile 2g.10gb: Insufficient Resources
Failed to create compute instances: Insufficient Resources' -gi 3 -cci 2g.10gb
says 19 'Unable to destroy GPU instance ID  7 from GPU  0: In use by another client
Failed to destroy GPU instances: In use by another client' -dgi
got=$(bounded "$smi" -i 0 -mig 0)
is "$?:$got" '19:Unable to disable MIG Mode for GPU 00000000:06:00.0: In use by another client
Terminating early due to previous errors.' 'MIG mode stays while there are instances'
got=$(as 1000 "$smi" mig -dci)
is "$?:${got##*$'\n'}" '4:Failed to destroy compute instances: Insufficient Permissions' 'who may not write the files may not'
says 6 'No compute instances found: Not Found' -lci -ci 5
for bad in '' '-lgi -lci' '-C -lgi' '-cgi' '-bogus' '-lgi=1' '-i'; do
    got=$(bounded "$smi" mig $bad 2>&1)
    is "$?:$([[ $got ]] && echo sentence)" 2:sentence "says what is wrong: mig $bad"
done
bounded "$smi" mig -h >"$dir/said"; is "$?:$(grep -c -- '-lgipp' "$dir/said")" 0:1 'mig -h'

# --- a place of its own ----------------------------------------------------------------------------

says 0 'Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1' -dci -gi 1
says 0 'Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using profile MIG 1c.3g.20gb (ID  0)' -gi 1 -cci 0:1
is "$(cat "$mnt/gpus/0/mig/gi1/ci0/placement")" 1:1 'it is where it was wanted'
is "$(shows mig -lcip -gi 1 | grep -oE 'MIG [^ ]*3g.20gb .*/[0-9]' | tr -s ' ')" 'MIG 1c.3g.20gb 0 2/3
MIG 2c.3g.20gb 1 0/1
MIG 3g.20gb 2* 0/1' 'no two slices are left beside each other'
says 23 'Unable to create a compute instance on GPU  0 GPU instance ID  1 using profile 2c.3g.20gb: Insufficient Resources
Failed to create compute instances: Insufficient Resources' -gi 1 -cci 2c.3g.20gb
says 23 'Unable to create a compute instance on GPU  0 GPU instance ID  1 using profile 0: Insufficient Resources
Failed to create compute instances: Insufficient Resources' -gi 1 -cci 0:1
says 2 'Unable to create a compute instance on GPU  0 GPU instance ID  1 using profile 0: Invalid Argument
Failed to create compute instances: Invalid Argument' -gi 1 -cci 0:3
says 0 'Successfully created compute instance ID  1 on GPU  0 GPU instance ID  1 using profile MIG 1c.3g.20gb (ID  0)
Successfully created compute instance ID  2 on GPU  0 GPU instance ID  1 using profile MIG 1c.3g.20gb (ID  0)' -gi 1 -cci 0:2,1c.3g.20gb
is "$(shows mig -lci -gi 1 | grep -oE '[0-9] +[0-9]:1' | tr -s ' ')" '0 1:1
1 2:1
2 0:1' 'and the others are where there is room'
says 0 'Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1' -dci -gi 1 -ci 0
is "$(shows mig -lci -gi 1 | grep -oE '[0-9] +[0-9]:1' | tr -s ' ')" '1 2:1
2 0:1' 'and stay there when one goes'
says 0 'Successfully destroyed compute instance ID  1 from GPU  0 GPU instance ID  1
Successfully destroyed compute instance ID  2 from GPU  0 GPU instance ID  1' -dci -gi 1
says 0 'Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using profile MIG 3g.20gb (ID  2)' -gi 1 -cci

# --- destroyed ------------------------------------------------------------------------------------

says 0 'Successfully destroyed compute instance ID  1 from GPU  0 GPU instance ID  3' -dci -gi 3 -ci 1
says 0 'Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  7
Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  3
Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1' -dci
says 6 'No compute instances found: Not Found' -lci
says 0 'Successfully destroyed GPU instance ID  3 from GPU  0' -dgi -gi 3
says 0 'Successfully destroyed GPU instance ID  7 from GPU  0
Successfully destroyed GPU instance ID  1 from GPU  0' -dgi
is "$(grep -vc '^#' "$mnt/gpus/0/mig/instances")" 0 'nothing is left of them'
bounded "$smi" -mig 0 >"$dir/said"
is "$?:$(tail -n 1 "$dir/said")" '0:All done.' 'and MIG mode goes off'
mount_down

mount_up --gpus 1 --model T4
says 6 'No MIG-supported devices found.' -lgip
says 6 'No MIG-enabled devices found.' -lgi
is "$(shows -mig 1)" "Unable to enable MIG Mode for GPU 00000000:06:00.0: Not Supported
Treating as warning and moving on.
All done." 'a board without MIG'
mount_down

# --- as recorded on an H100 -----------------------------------------------------------------------

mount_up --gpus 1 --model H100-80GB-HBM3
bounded "$smi" -mig 1 >"$dir/said"
bounded "$smi" mig -cgi 9,14,19,19 -C >"$dir/said"
is "$?:$(shows mig -lgi | sed -nE 's/^\|   0  MIG ([^ ]+) .* ([0-9]:[0-9]) +\|$/\1 \2/p' | paste -sd,)" \
    '0:1g.10gb 2:1,1g.10gb 3:1,2g.20gb 0:2,3g.40gb 4:4' '3g, 2g, 1g and 1g have room'
said=$(shows)
is "$(awk 'NR > 1 && length && length != 91' <<<"$said")" '' 'the table is as wide'
is "$(grep -oE '[0-9]+MiB / [0-9]+MiB    \|           \|' <<<"$said" | sort -u)" '0MiB / 16383MiB    |           |
0MiB / 32767MiB    |           |
0MiB / 65535MiB    |           |' 'an instance has its part of the BAR1'
is "$(sed -nE 's/^\|  0 +[0-9]+ +0 +[0-9]  \|.{34}\| *([0-9]+) +([^ ]+) \|.*/\1 \2/p' <<<"$said" | paste -sd,)" '60 0,32 0,16 0,16 0' 'and errors of its own'
is "$(shows -q -d ROW_REMAPPER | sed -n '/^GPU/,$p' | sed 1d)" '    Remapped Rows                                      : N/A' 'rows are not told of'
is "$(shows --query-gpu=remapped_rows.correctable,remapped_rows.pending,remapped_rows.histogram.max --format=csv,noheader)" \
    "[N/A], [N/A], $(metric 0 remap_banks_max_count)" 'but for the spare ones'
bounded "$smi" mig -dci >"$dir/said"
bounded "$smi" mig -dgi >"$dir/said"
is "$(shows --query-gpu=remapped_rows.correctable,remapped_rows.pending --format=csv,noheader)" '0, No' 'until nobody has the memory'
bounded "$smi" mig -cgi 9:0,20:4,19:6 -C >"$dir/said"
is "$(shows mig -lgi | sed -nE 's/^\|   0  MIG ([^ ]+) .*/\1/p' | paste -sd,)" '1g.10gb,3g.40gb,1g.10gb+me' '-lgi goes by the numbers of profiles'
is "$(shows mig -lci | sed -nE 's/^\|   0 .*MIG ([^ ]+) .*/\1/p' | paste -sd,)" '1g.10gb,3g.40gb,1g.10gb' 'a compute instance is called without +me'
is "$(shows -L | sed -nE 's/^  MIG ([^ ]+) .*/\1/p' | sort | paste -sd,)" '1g.10gb,1g.10gb,3g.40gb' 'in -L, too'
is "$(shows mig -lgip | grep -oE '[0-7]/[0-9] ' | paste -sd,)" '1/7 ,0/1 ,0/4 ,0/3 ,0/2 ,0/1 ,0/1 ' 'and nothing but a small one has room'
mount_down

is "$mount_deaths" '' 'the daemon did not die on the way'
tap_done
