#!/usr/bin/env bash
#
# Keeps the layers true: who may include whom, and that each file says what it is.
#
#     sim/       the world: its own headers, the C library's and libyaml's; no real clock, no
#                randomness but its own streams
#     fusefs/    its own and sim's; reader.[ch], the outside view, knows no state of sim
#     mocknvml/  its own, fusefs/reader.h and the metric registry: sim/metric.h, sim/unit.h
#     exporter/  the same, the log, the real clock, and sim's tools: texts, arenas, sentences, YAML and its tables
#     mocknvml/smi/  nvidia-smi: its own, mocknvml/nvml.h, hold.h and lost.h, nothing of the library behind it
#     k8s/       fusefs/reader.h, the log, the real clock, the registry, and sim's tools: texts, arenas, sentences
#     k8s/pods/, k8s/labels/  the programs: each its own and k8s/common, which knows neither. libcurl is for
#                k8s/common/http.c alone, JSON for k8s/labels/node.c
#     tests/     anything; nobody includes tests
#
# The rules are functions that print what breaks them, one `file:line: text` each. They are run
# on this tree, and on small wrong trees to see that they do catch something.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

top=$(cd "${0%/*}/.." && pwd)

# What sim/ may take from the system, besides <yaml.h> and anything below sys/.
libc='assert ctype dirent endian errno fcntl fenv float getopt glob inttypes libgen limits locale
      malloc math memory poll pthread regex sched semaphore setjmp signal stdalign stdarg
      stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time
      unistd wchar wctype'

# The metric registry: names and units, no state.
registry='sim/metric[.]h|sim/metrics[.]def|sim/unit[.]h'

# sources FOLDER...: their C files, one in a line. A folder may be missing.
sources() {
    local folder
    for folder in "$@"; do
        [[ ! -d $folder ]] || find "$folder" -name '*.[ch]' -o -name '*.def'
    done | LC_ALL=C sort
}

# includes FILE...: `file:line header` for each #include. A header that is ours is given from the
# top: "world.h" in sim/ is sim/world.h. The system's keep their <>.
includes() {
    (($#)) || return
    awk '
        FNR == 1 { folder = FILENAME; sub(/[^\/]*$/, "", folder) }
        /^[ \t]*#[ \t]*include/ {
            header = $0
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
            if (match(header, /^"[^"]*"/)) {
                header = substr(header, 2, RLENGTH - 2)
                if (header !~ /\//)
                    header = folder header
            } else if (match(header, /^<[^>]*>/)) {
                header = substr(header, 1, RLENGTH)
                if (header ~ /^<(sim|fusefs|mocknvml|exporter|k8s|tests)\//)
                    header = substr(header, 2, RLENGTH - 2)
            }
            print FILENAME ":" FNR " " header
        }' "$@"
}

# unless REGEX: of includes, those whose header does not match as a whole.
unless() {
    awk -v allowed="^($1)\$" '$2 !~ allowed { print $1 ": includes " $2 }'
}

# occurrences REGEX FILE...: the lines that match, comments left out.
occurrences() {
    local regex=$1
    shift
    (($#)) || return
    grep -HnE "$regex" "$@" | grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/?\*|//)'
}

rule_sim() {
    local headers
    headers=$(echo $libc | tr ' ' '|')
    includes $(sources sim) | unless "sim/.*|<($headers)[.]h>|<sys/.*>|<yaml[.]h>"
}

rule_fusefs() {
    includes $(sources fusefs) | unless 'fusefs/.*|sim/.*|<.*>'
}

rule_reader() {
    includes $(sources fusefs | grep -E '/reader[.][ch]$') | unless "fusefs/.*|$registry|<.*>"
    # Whoever knows the registry must not get more with it.
    includes $(sources sim | grep -E "^($registry)$") | unless "$registry|<.*>"
}

rule_outside() {
    local tools='sim/(arena|bind|library|schemas|suggest|text|why|yaml)[.]h'
    includes $(sources mocknvml) | unless "mocknvml/.*|fusefs/reader[.]h|$registry|<.*>"
    includes $(sources exporter) | unless "exporter/.*|fusefs/(reader|log|realtime)[.]h|$registry|$tools|<.*>"
}

rule_smi() {
    includes $(sources mocknvml/smi) | unless "mocknvml/((nvml|hold|lost)[.]h|smi/.*)|<.*>"
}

rule_k8s() {
    includes $(sources k8s) | unless "k8s/.*|fusefs/(reader|log|realtime)[.]h|$registry|sim/(arena|text|why)[.]h|<.*>"
    includes $(sources k8s/common) | unless "k8s/common/.*|fusefs/.*|sim/.*|<.*>"
    includes $(sources k8s/pods) | unless "k8s/(common|pods)/.*|fusefs/.*|sim/.*|<.*>"
    includes $(sources k8s/labels) | unless "k8s/(common|labels)/.*|fusefs/.*|sim/.*|<.*>"
    # A library is behind one file.
    includes $(sources k8s) | awk '
        $2 ~ /^<curl\// && $1 !~ /^k8s\/common\/http[.]c:/ || $2 == "<jansson.h>" && $1 !~ /^k8s\/labels\/node[.]c:/ {
            print $1 ": includes " $2
        }'
}

# One world and one metric registry, both in sim/.
rule_one_truth() {
    occurrences '^[[:space:]]*(struct world|enum metric(_id)?)[[:space:]]*(\{|$)' \
        $(sources fusefs mocknvml exporter k8s)
}

# The same seed and commands give the same bytes: sim/ asks nobody for the time or for luck.
rule_deterministic() {
    local clock='clock_gettime|gettimeofday|timespec_get|time'
    local luck='s?rand(_r)?|s?random(_r)?|[dlm]rand48|getrandom|getentropy|arc4random(_uniform)?'
    occurrences "(^|[^[:alnum:]_])($clock|$luck)[[:space:]]*\\([^)]|(^|[^[:alnum:]_])($luck)\\(\\)" \
        $(sources sim)
}

# The first thing in a file is a comment, and the comment holds the license.
rule_spdx() {
    local file
    for file in $(sources sim fusefs mocknvml exporter k8s tests); do
        awk '
            NR == 1 && !/^\/\*/ { exit }
            /SPDX-License-Identifier: Apache-2\.0/ { found = 1 }
            /\*\// { exit }
            END { exit !found }' "$file" ||
            echo "$file:1: does not begin with a comment that holds an SPDX line"
    done
}

# --- This tree --------------------------------------------------------------

cd "$top" || bail "no directory '$top'"
is "$(rule_sim)" '' 'sim/ knows itself, the C library and libyaml'
is "$(rule_fusefs)" '' 'fusefs/ knows itself and sim/'
is "$(rule_reader)" '' 'the reader and the metric registry know no state of sim/'
is "$(rule_outside)" '' 'mocknvml/ and exporter/ know the reader and the metric registry, and no state'
is "$(rule_smi)" '' 'nvidia-smi knows the interface alone'
is "$(rule_k8s)" '' 'k8s/ knows the reader, the metric registry and tools, and no state; its programs know nothing of each other'
is "$(rule_one_truth)" '' 'the world and the metric registry are defined in sim/ only'
is "$(rule_deterministic)" '' 'sim/ reads no real clock and no randomness of others'
is "$(rule_spdx)" '' 'each C file begins with a comment that holds an SPDX line'

# --- Wrong trees ------------------------------------------------------------

tree=$(mktemp -d)
at_exit 'rm -rf "$tree"'
cd "$tree" || bail "no directory '$tree'"
for rule in sim fusefs reader outside smi k8s one_truth deterministic spdx; do
    is "$(rule_$rule)" '' "no folders, nothing wrong: $rule"
done
mkdir -p sim fusefs mocknvml/smi exporter k8s/{common,pods,labels} tests

# caught RULE FILE LINE: the rule names FILE when it holds LINE.
caught() {
    echo "$3" >"$2"
    like "$(rule_$1)" "^$2:1: ?" "$1 catches $3 in $2"
    rm "$2"
}

# allowed RULE FILE LINE: the rule has nothing against it.
allowed() {
    echo "$3" >"$2"
    is "$(rule_$1)" '' "$1 allows $3 in $2"
    rm "$2"
}

caught  sim      sim/a.c      '#include "fusefs/node.h"'
caught  sim      sim/a.c      '#include "tests/tap.h"'
caught  sim      sim/a.h      '#include <fuse_lowlevel.h>'
caught  sim      sim/a.c      '  #  include  <microhttpd.h>'
caught  sim      sim/a.c      '#include <fusefs/node.h>'
caught  sim      sim/a.c      '#include "../fusefs/node.h"'
allowed sim      sim/a.c      '#include "sim/world.h"'
allowed sim      sim/a.c      '#include "world.h"'
allowed sim      sim/a.c      '#include <sys/mman.h>'
allowed sim      sim/a.c      '#include <yaml.h> /* strict */'
caught  fusefs   fusefs/a.c   '#include "exporter/http.h"'
caught  fusefs   fusefs/a.c   '#include "tests/tap.h"'
allowed fusefs   fusefs/a.c   '#include <fuse_lowlevel.h>'
caught  reader   fusefs/reader.c '#include "sim/world.h"'
caught  reader   sim/metric.h '#include "sim/world.h"'
caught  reader   sim/unit.h   '#include "sim/world.h"'
allowed reader   sim/metric.h '#include "sim/unit.h"'
allowed reader   fusefs/reader.h '#include "sim/metric.h"'
caught  outside  mocknvml/a.c '#include "sim/world.h"'
caught  outside  mocknvml/a.c '#include <sim/world.h>'
caught  outside  mocknvml/a.c '#include "fusefs/node.h"'
caught  outside  mocknvml/a.c '#include "fusefs/realtime.h"'
caught  outside  mocknvml/a.c '#include "exporter/http.h"'
caught  outside  exporter/a.c '#include "../sim/gpu.h"'
allowed outside  exporter/a.c '#include "fusefs/reader.h"'
allowed outside  exporter/a.c '#include "fusefs/realtime.h"'
allowed outside  mocknvml/a.c '#include "sim/metric.h"'
allowed outside  mocknvml/a.c '#include "nvml.h"'
caught  smi      mocknvml/smi/a.c '#include "mocknvml/library.h"'
caught  smi      mocknvml/smi/a.c '#include "fusefs/reader.h"'
allowed smi      mocknvml/smi/a.c '#include "mocknvml/lost.h"'
allowed smi      mocknvml/smi/a.c '#include "mocknvml/smi/api.h"'
caught  k8s      k8s/a.c      '#include "sim/world.h"'
caught  k8s      k8s/a.c      '#include "fusefs/node.h"'
allowed k8s      k8s/a.c      '#include "fusefs/reader.h"'
allowed k8s      k8s/a.c      '#include "fusefs/realtime.h"'
allowed k8s      k8s/a.c      '#include "sim/text.h"'
caught  k8s      k8s/common/a.c '#include "k8s/pods/plan.h"'
caught  k8s      k8s/pods/a.c '#include "k8s/labels/plan.h"'
caught  k8s      k8s/labels/a.c '#include "k8s/pods/plan.h"'
caught  k8s      k8s/labels/server.c '#include <curl/curl.h>'
caught  k8s      k8s/common/http.c '#include <jansson.h>'
allowed k8s      k8s/common/http.c '#include <curl/curl.h>'
allowed k8s      k8s/labels/node.c '#include <jansson.h>'
allowed k8s      k8s/pods/a.h '#include "k8s/common/mount.h"'
caught  one_truth fusefs/a.h  'struct world {'
allowed one_truth fusefs/a.h  'struct world *now;'
caught  deterministic sim/a.c '    now = clock_gettime(CLOCK_MONOTONIC, &ts);'
caught  deterministic sim/a.c '    x = time(NULL);'
caught  deterministic sim/a.c '    x = rand() % 6;'
allowed deterministic sim/a.c ' * depends on time (in s)'
allowed deterministic sim/a.c '    gpu_time(gpu);'
caught  spdx     sim/a.c      'int a; /* SPDX-License-Identifier: Apache-2.0 */'
caught  spdx     tests/a.h    '/* nothing */'
allowed spdx     sim/a.c      '/* SPDX-License-Identifier: Apache-2.0 */'

tap_done
