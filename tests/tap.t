#!/usr/bin/env bash
#
# tap.sh, tested by itself: each scenario is a script of its own, run with its output caught.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

tap=$(cd "${0%/*}" && pwd)/tap.sh
dir=$(mktemp -d)
at_exit 'rm -rf "$dir"'

# run [NAME=VALUE]: the scenario is on stdin; sets $out, $err and $status.
run() {
    { echo ". '$tap'"; cat; } >"$dir/scenario.t"
    env -u TAP_NO_SKIP "$@" bash "$dir/scenario.t" >"$dir/out" 2>"$dir/err"
    status=$?
    out=$(cat "$dir/out")
    err=$(cat "$dir/err")
}

run <<'END'
plan 3
true; ok $? 'ok'
is 'a b' 'a b' 'is'
like 'Tesla T4' '^Tesla (T4|K80)$' 'like'
tap_done
END
is "$status" 0 'all passed: status 0'
is "$out" $'1..3\nok 1 - ok\nok 2 - is\nok 3 - like' 'a plan and one line for each test'
is "$err" '' 'nothing for people to read'

run <<'END'
ok 0 'issue #7 # TODO'
ok 0 $'two\nlines & more'
tap_done
END
is "$status" 0 'no plan: status 0'
is "$out" $'ok 1 - issue \\#7 \\# TODO\nok 2 - two lines & more\n1..2' \
    'names are escaped and the plan comes last'

run <<'END'
plan 3
false; ok $? 'ok'
is $'a\nb' '*' 'is'
like 'Tesla T4' '^T4' 'like'
tap_done
END
is "$status" 1 'failures: status 1'
is "$out" $'1..3\nnot ok 1 - ok\nnot ok 2 - is\nnot ok 3 - like' 'the script went on'
like "$err" "^#   Failed test 'ok'"$'\n''#   at [^ ]*/scenario.t:3'$'\n' \
    'a failure names itself, its file and line'
like "$err" "#          got: 'a"$'\n'"# b'"$'\n'"#     expected: '\*'" 'is shows both'
like "$err" "#          got: 'Tesla T4'"$'\n'"#     to match: '\^T4'" 'like shows the regex'
like "$err" '# 3 of 3 tests failed$' 'the end counts them'

skips=$'plan 2\nskip 2 \'no fuse\'\ntap_done'
run <<<"$skips"
is "$status" 0 'skips pass'
is "$out" $'1..2\nok 1 # SKIP no fuse\nok 2 # SKIP no fuse' 'with the reason'
run TAP_NO_SKIP=1 <<<"$skips"
is "$status" 1 'TAP_NO_SKIP=1 makes them failures'
is "$out" $'1..2\nnot ok 1 - skipped: no fuse\nnot ok 2 - skipped: no fuse' 'which say so'
like "$err" 'scenario.t:[0-9]+' 'and where'

run <<<"skip_all 'no fuse'"
is "$status" 0 'a whole script can be skipped'
is "$out" '1..0 # SKIP no fuse' 'with the reason'
run TAP_NO_SKIP=1 <<<"skip_all 'no fuse'"
is "$status" 1 'TAP_NO_SKIP=1 makes that a failure'
is "$out" $'1..1\nnot ok 1 - skipped as a whole: no fuse' 'with the reason'

run <<<$'plan 2\nok 0 lonely\ntap_done'
is "$status" 1 'too few tests: status 1'
like "$err" 'planned 2 tests but ran 1' 'both counts are told'
run <<<'tap_done'
is "$status" 1 'no test at all: status 1'
is "$out" '' 'which must not look like a skipped script'
run <<<"bail 'no fuse'"
is "$status" 255 'bail: status 255'
is "$out" 'Bail out!  no fuse' 'bail stops everything'

run <<<$'ok 0 first\nexit 0'
is "$status" 1 'an early exit 0 is a failure'
like "$err" 'ended before tap_done' 'and says so'
run <<<$'set -e\nok 0 first\nfalse\ntap_done'
is "$status" 1 'a command that ends the script is a failure'

run <<'END'
at_exit 'echo "# one"'
at_exit 'echo "# two"'
ok 0 first
tap_done
END
is "$out" $'ok 1 - first\n1..1\n# two\n# one' 'at_exit runs at the end, the last first'
run <<<$'at_exit \'echo "# tidy"\'\nkill -TERM $$\ntap_done'
is "$out" '# tidy' 'and after a signal'
is "$status" 143 'which is not a success'

tap_done
