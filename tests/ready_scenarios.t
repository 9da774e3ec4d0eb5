#!/usr/bin/env bash
#
# Every scenario here passes, and fails when what it expects is not so.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/scenarios.sh"

names=$("$fakegpufs" scenario --list | awk '{ print $1 }')
is "$(wc -w <<<"$names")" 8 'there are eight ready scenarios'
is "$names" "$(cd schemas/scenarios && ls | sed 's/[.]yaml$//')" 'those of schemas/scenarios'
is "$names" "$(grep -oE '^[|] [[]`[a-z-]+`' docs/scenarios.md | tr -cd 'a-z\n-')" 'and of the page on them'

# Every comparison turned round: what has to hold for a while, or at once, cannot hold as well.
mutate() {
    "$PYTHON" - "$1" <<'END'
import re, sys
text = open(sys.argv[1]).read()
opposite = {"above": "at_most", "at_most": "above", "below": "at_least", "at_least": "below",
            "equals": "differs", "differs": "equals"}
print(re.sub(r"\b(%s):(?= )" % "|".join(opposite), lambda m: opposite[m[1]] + ":", text), end="")
END
}

# try NAME FILE: the ready scenario of that name, or a file, passes as it is and fails turned round.
try() {
    local name=$1
    scenario "$name"
    is "$code" 0 "$name passes" || diag "$said"
    mutate "$2" >"$dir/mutant.yaml"
    scenario "$dir/mutant.yaml"
    is "$code" 1 "$name fails when it expects the contrary" || diag "$said"
    like "$said" "mutant.yaml:[0-9]+: expected .* last seen: .*, at [0-9hms.]+" \
        '… and says what was expected, what was there, and when'
}
for name in $names; do
    try "$name" "schemas/scenarios/$name.yaml"
done
# Those for alert rules are not built in; tests/alerts.t plays them for a Prometheus.
for file in k8s/observability/scenarios/*.yaml; do
    try "$file" "$file"
done
is "$(leftovers)" '' 'nothing is left behind of their mounts'
is "$(grep -c "$TMPDIR" /proc/self/mounts)" 0 'and nothing is mounted'

"$fakegpufs" scenario --show nvlink-flap | cmp -s - schemas/scenarios/nvlink-flap.yaml
ok $? 'a ready scenario can be shown'

tap_done
