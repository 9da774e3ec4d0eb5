#!/bin/sh
#
# Prints a row for every function that mocknvml/nvml.h declares, for tests that call all of them:
#
#     ROW(name, "kinds of its arguments", version of the structure it takes or 0)
#
# A kind is one letter: d device, g GPU instance, c compute instance, e event set, m GPM sample, i number,
# v structure with a version, t room for a text, p any other pointer.
#
# SPDX-License-Identifier: Apache-2.0

awk '
    /^typedef struct \{/ { first = ""; next }
    /^    / && first == "" { first = $0 }
    /^\} nvml[A-Za-z0-9_]*;/ {
        name = $2; sub(/;/, "", name)
        if (first ~ /unsigned int version;/) versioned[name] = 1
        first = "-"
        next
    }
    /^nvmlReturn_t nvml/ {
        name = $2; sub(/\(.*/, "", name)
        arguments = $0; sub(/^[^(]*\(/, "", arguments); sub(/\);$/, "", arguments)
        kinds = ""; version = "0"
        n = arguments == "void" ? 0 : split(arguments, list, /, */)
        for (i = 1; i <= n; i++) {
            type = list[i]; sub(/const /, "", type)
            pointer = type ~ /\*/
            sub(/ .*/, "", type)
            if (pointer && type in versioned) {
                number = match(type, /_v[0-9]_t$/) ? substr(type, RSTART + 2, 1) : 1
                version = type ~ /^nvmlGpm/ ? number : "NVML_STRUCT_VERSION(sizeof(" type "), " number ")"
                kinds = kinds "v"
            } else if (pointer) kinds = kinds (type == "char" && list[i] !~ /const/ ? "t" : "p")
            else if (type == "nvmlDevice_t") kinds = kinds "d"
            else if (type == "nvmlGpuInstance_t") kinds = kinds "g"
            else if (type == "nvmlComputeInstance_t") kinds = kinds "c"
            else if (type == "nvmlEventSet_t") kinds = kinds "e"
            else if (type == "nvmlGpmSample_t") kinds = kinds "m"
            else kinds = kinds "i"
        }
        printf "ROW(%s, \"%s\", %s)\n", name, kinds, version
    }' "$1"
