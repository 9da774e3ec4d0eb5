#!/bin/sh
#
# Prints a C source that holds the named files, so that the binaries carry their schemas.
# Paths are given from the top, as schemas/models/t4.yaml, and stored below the directory that comes first.
# A byte that is not plain printable ASCII becomes an octal escape: any content is safe.
#
#     schemas/embed.sh schema_files schemas schemas/models/*.yaml >build/schemas.c
#
# SPDX-License-Identifier: Apache-2.0

set -eu
array=$1 directory=$2
shift 2

cat <<END
/*
 * The files of $directory/, sorted by path. Made by schemas/embed.sh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include "sim/schemas.h"

extern const struct schema_file ${array}[];
const struct schema_file ${array}[] = {
END

[ $# = 0 ] || printf '%s\n' "$@" | LC_ALL=C sort | while IFS= read -r file; do
    [ -r "$file" ] || { echo "embed.sh: cannot read '$file'" >&2; exit 1; }
    printf '    { "%s",\n' "${file#"$directory"/}"
    # One line of C for each line of text; ? is escaped for the sake of trigraphs.
    od -An -v -tu1 "$file" | LC_ALL=C awk '
        function escape(byte) {
            if (byte == 10)
                return "\\n"
            if (byte < 32 || byte > 126 || byte == 34 || byte == 63 || byte == 92)
                return sprintf("\\%03o", byte)
            return sprintf("%c", byte)
        }
        {
            for (i = 1; i <= NF; i++) {
                line = line escape($i)
                size++
                if ($i == 10) {
                    print "      \"" line "\""
                    line = ""
                }
            }
        }
        END { printf "      \"%s\", %d },\n", line, size }'
done

cat <<'END'
    { 0 },
};
END
