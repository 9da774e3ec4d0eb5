# tap.h's vocabulary for tests written in bash: tests/*.t.
#
#     #!/usr/bin/env bash
#     . "${0%/*}/tap.sh"
#     plan 3
#     grep -q fuse /proc/filesystems; ok $? 'the kernel knows FUSE'
#     is "$(echo a b)" 'a b'          'echo puts one blank between words'
#     like "$(uname -r)" '^[0-9]+\.'  'a kernel has a version'
#     tap_done
#
# Each check prints one test line and returns 0 when it passed, 1 when not; a failure prints its
# name, file:line, what was got and expected on stderr, and the script goes on: so no `set -e`.
# A check inside a pipe or a subshell is not counted.
# Tests run from the top of the tree; $BUILD is where the programs are, $PYTHON which Python.
# With TAP_NO_SKIP=1 in the environment a skipped test is a failed one.
#
# SPDX-License-Identifier: Apache-2.0

: "${BUILD:=build}" "${PYTHON:=/usr/bin/python3}"

tap_planned=0 # 0: no plan was announced
tap_ran=0
tap_failed=0
tap_open=1 # until tap_done
tap_undo=()

# plan COUNT: announce how many tests follow. Without it tap_done counts them.
plan() {
    ((tap_planned == 0 && tap_ran == 0)) || bail 'the plan must come once, before the first test'
    tap_planned=$1
    echo "1..$1"
}

# ok STATUS NAME: passes when STATUS, mostly $?, is 0.
ok() {
    tap_report "$1" "$2"
}

# is GOT WANT NAME: the same text.
is() {
    [[ $1 == "$2" ]]
    tap_report $? "$3" && return
    diag "         got: '$1'"$'\n'"    expected: '$2'"
    return 1
}

# like TEXT REGEX NAME: the text matches an extended regular expression.
like() {
    [[ $1 =~ $2 ]]
    tap_report $? "$3" && return
    diag "         got: '$1'"$'\n'"    to match: '$2'"
    return 1
}

# skip COUNT WHY: count the next COUNT tests as skipped; the caller jumps over them.
skip() {
    local left
    for ((left = $1; left > 0; left--)); do
        if tap_no_skip; then
            tap_report 1 "skipped: $2"
        else
            ((++tap_ran))
            echo "ok $tap_ran # SKIP $(tap_name "$2")"
        fi
    done
}

# skip_all WHY: leave the whole script out, before its first test.
skip_all() {
    ((tap_planned == 0 && tap_ran == 0)) || bail 'skip_all must come before the first test'
    if tap_no_skip; then
        plan 1
        tap_report 1 "skipped as a whole: $1"
        tap_done
    fi
    echo "1..0 # SKIP $(tap_name "$1")"
    tap_open=0
    exit 0
}

# diag TEXT: say something on stderr, each line as a TAP comment.
diag() {
    printf '# %s\n' "${1//$'\n'/$'\n'# }" >&2
}

# bail WHY: give up; prove stops the whole run.
bail() {
    echo "Bail out!  $1"
    tap_open=0
    exit 255
}

# at_exit COMMAND: do this when the script ends, however it ends; the last one added comes first.
at_exit() {
    tap_undo=("$1" "${tap_undo[@]}")
}

# tap_done: close the run and exit: with 0 only when tests ran, all passed and the plan was kept.
tap_done() {
    local status=0
    ((tap_planned || tap_ran == 0)) || echo "1..$tap_ran"
    ((tap_ran)) || { diag 'no test ran'; status=1; }
    ((tap_planned == 0 || tap_ran == tap_planned)) ||
        { diag "planned $tap_planned tests but ran $tap_ran"; status=1; }
    ((tap_failed == 0)) || { diag "$tap_failed of $tap_ran tests failed"; status=1; }
    tap_open=0
    exit $status
}

# What stands behind; tests do not call these.

tap_no_skip() {
    [[ ${TAP_NO_SKIP:-0} != 0 ]]
}

# On one line, and with no bare # which would begin a TAP directive.
tap_name() {
    local name=${1//$'\n'/ } hash='\#'
    printf '%s' "${name//\#/"$hash"}"
}

# Called by the checks only: the script's own line is two calls up.
tap_report() {
    ((++tap_ran))
    if (($1 == 0)); then
        echo "ok $tap_ran - $(tap_name "$2")"
        return 0
    fi
    ((++tap_failed))
    echo "not ok $tap_ran - $(tap_name "$2")"
    diag "  Failed test '$2'"$'\n'"  at ${BASH_SOURCE[2]}:${BASH_LINENO[1]}"
    return 1
}

# A script that ends before tap_done has failed, whatever its last command says. One that sets a
# trap of its own on EXIT loses this sentence and at_exit, not the verdict: the plan is not kept.
tap_exit() {
    local status=$? command
    for command in "${tap_undo[@]}"; do
        eval "$command"
    done
    if ((tap_open)); then
        diag "ended before tap_done, with status $status"
        exit $((status ? status : 1))
    fi
    exit $status
}
trap tap_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
