#!/usr/bin/env bash
#
# The mock NVML as a file: what it exports, what it needs, and that its page is true.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

cd "${0%/*}/.." || bail 'no top directory'
library=$BUILD/libnvidia-ml.so.1
[[ -e $library ]] || bail "there is no '$library': run make"

table=$(sed -nE 's/^FUNCTION\((\w+),.*/\1/p' mocknvml/functions.def | LC_ALL=C sort)
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^__' | LC_ALL=C sort)

is "$(uniq -d <<<"$table")" '' 'each function is in one row'
is "$(wc -l <<<"$table")" 418 'all functions are in the table'
is "$exported" "$table" 'what is exported is what the table says, and nothing else'
for name in nvmlInit nvmlInit_v2 nvmlInitWithFlags nvmlDeviceGetCount nvmlDeviceGetHandleByIndex; do
    is "$(grep -cx "$name" <<<"$exported")" 1 "the old name $name is there"
done
is "$(readelf -d "$library" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p')" libnvidia-ml.so.1 'it has the name programs look for'
is "$(readelf -d "$library" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -vE '^(libc\.so|libasan|libubsan|libtsan|libm\.so|libgcc|libpthread|ld-linux)')" '' \
    'it needs nothing beyond the C library'
is "$(readlink "$BUILD/libnvidia-ml.so")" libnvidia-ml.so.1 'the other file name leads to it'
is "$(sh docs/nvml.sh mocknvml/functions.def)" "$(cat docs/nvml.md)" 'docs/nvml.md is what docs/nvml.sh prints'
is "$(sed -nE 's/.*(nvml[A-Z]\w+)\(.*\);/\1/p' mocknvml/nvml.h | while read -r name; do
    grep -q "FUNCTION($name, unsupported" mocknvml/functions.def && echo "$name"
done)" '' 'what the header declares is implemented'

tap_done
