#!/usr/bin/env bash
#
# Every structure of mocknvml/nvml.h against an independent description: the ctypes classes of nvidia-ml-py.
#
# The sizes and offsets on our side are the compiler's.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/clients.sh"

need_client python
cd "$tests/.." || bail 'no top directory'

# Prints `structure field offset size` lines for every structure of the header, through the compiler.
cat >"$dir/ours.py" <<'END'
import re
text = open("mocknvml/nvml.h", encoding="utf-8").read()
text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
print('#include <stddef.h>\n#include <stdio.h>\n#include "mocknvml/nvml.h"\nint main(void)\n{')
for kind, body, name in re.findall(r"typedef (struct|union) \{\n(.*?)\n\} (nvml\w+_t);", text, flags=re.S):
    body = re.sub(r"struct \{.*?\} (\w+);", r"struct x \1;", body, flags=re.S)
    print(f'    printf("{name} - 0 %zu\\n", sizeof({name}));')
    for field, array, bits in re.findall(r"\b\**(\w+)((?:\[\w*\])*)( : \d+)?;", body):
        if array != "[]" and not bits:
            print(f'    printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
print("    return 0;\n}")
END

# The same of the package. Its arrays that grew since are cut as ours are.
cat >"$dir/theirs.py" <<'END'
import ctypes, inspect, re, sys
import pynvml
known = {}
for cls in vars(pynvml).values():
    if inspect.isclass(cls) and issubclass(cls, (ctypes.Structure, ctypes.Union)) and hasattr(cls, "_fields_"):
        name = "nvml" + re.sub(r"^(c_)?nvml|_t$", "", cls.__name__) + "_t"
        known.setdefault(name, cls)
for line in open(sys.argv[1], encoding="utf-8"):
    name, field, offset, size = line.split()
    cls = known.get(name)
    if cls is None:
        continue
    if field == "-":
        print(name, "-", 0, size if name == "nvmlGpmMetricsGet_t" else ctypes.sizeof(cls))
    else:
        entry = getattr(cls, field, None)
        print(name, field, *((entry.offset, entry.size) if entry else ("missing", "missing")))
    if field == "-":
        print(name, file=sys.stderr)
END

client python "$dir/ours.py" >"$dir/ours.c" && ${CC:-cc} -I. -o "$dir/ours" "$dir/ours.c" &&
    "$dir/ours" >"$dir/all" || bail 'the header cannot be compiled'
client python "$dir/theirs.py" "$dir/all" >"$dir/theirs" 2>"$dir/known"
# The first process structure is older than the package.
awk 'NR == FNR { known[$1]; next } $1 in known' "$dir/known" "$dir/all" >"$dir/ours.txt"
is "$(awk '$2 == "-" { print $1 }' "$dir/all" | grep -vxFf "$dir/known")" nvmlProcessInfo_v1_t \
    'all structures but the oldest are described'
is "$(diff "$dir/ours.txt" "$dir/theirs")" '' "sizes and offsets agree in $(wc -l <"$dir/known") structures"

tap_done
