#!/usr/bin/env bash
#
# The table of commands and what is made from it: help that fits a screen, sentences about bad usage, man
# pages, completions, docs/commands.md.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

cd "${0%/*}/.." || bail 'no top directory'
program=$(cd "$BUILD" && pwd)/fakegpufs
dir=$(mktemp -d)
at_exit 'rm -rf "$dir"'

# The names of all commands, as the page has them.
mapfile -t names < <("$program" help --markdown | sed -n 's/^## fakegpufs //p')
((${#names[@]} > 15)); ok $? 'there are commands'

# --- Help --------------------------------------------------------------------

# A screen has 24 lines of 80 columns, and ends with two examples.
fits() {
    "$program" "$@" | "$PYTHON" -c '
import sys
lines = [l.rstrip("\n") for l in sys.stdin]
if len(lines) > 24: print(len(lines), "lines")
for l in lines:
    if len(l) > 80: print(len(l), "columns:", l)
if lines[-3] != "examples:" or not all(l.startswith("  fakegpufs") for l in lines[-2:]): print("does not end with two examples")
if lines[-2] == lines[-1]: print("has one example twice")'
}
is "$(fits --help)" '' 'the help of the program fits a screen'
for name in "${names[@]}"; do
    is "$(fits $name --help)" '' "the help of $name fits a screen, and ends with two examples"
    is "$("$program" help $name)" "$("$program" $name --help)" "help $name is the same"
    is "$("$program" $name -h)" "$("$program" $name --help)" "so is $name -h"
done
for group in config clock; do
    is "$(fits $group --help)" '' "the help of the group $group fits a screen"
done
is "$("$program" help)" "$("$program" --help)" 'help is --help'
like "$("$program" --version)" '^fakegpufs [0-9]+[.][0-9]+' '--version'

# What an example shows is understood: nothing of it is bad usage.
while read -r example; do
    [[ $example != *' run '* && $example != *' exec '* && $example != *' mount '* && $example != *umount* &&
       $example != *' record '* && $example != *' replay '* && $example != *' scenario '* && $example != *--watch* ]] || continue
    said=$(cd "$dir" && PATH=${program%/*}:$PATH FAKEGPUFS_ROOT=$dir/nothing timeout 60 bash -c "set -o pipefail; $example" 2>&1 >/dev/null)
    [[ $said != *"--help'"* ]]; ok $? "an example is no bad usage: $example"
done < <(for name in "${names[@]}"; do "$program" $name --help | tail -n 2; done)

# --- Bad usage ---------------------------------------------------------------

# bad REGEX ARGUMENT...: exit code 64, one line on standard error, nothing on standard output.
bad() {
    local regex=$1 status
    shift
    timeout 20 "$program" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    is "$status $(wc -l <"$dir/err") $(wc -c <"$dir/out")" '64 1 0' "64 and one line: $*"
    like "$(<"$dir/err")" "$regex" "which is: $regex"
}
for name in "${names[@]}"; do
    bad "^fakegpufs $name: '--nonsense' is not an option; see 'fakegpufs $name --help'$" $name --nonsense
    bad "^fakegpufs $name: '-Z' is not an option; see " $name -Z
done
bad "^fakegpufs: a command is needed; see 'fakegpufs --help'$"
bad "^fakegpufs: 'mont' is not a command; did you mean 'mount'[?] see 'fakegpufs --help'$" mont
bad "^fakegpufs: 'config check' is not a command" 'config check'
bad "^fakegpufs config: one more word is needed; allowed: check, show, diff, schema; see 'fakegpufs config --help'$" config
bad "^fakegpufs config: 'chek' is not known; did you mean 'check'[?] allowed: " config chek
bad "'--gpu' is not an option; did you mean '--gpus'[?] see" mount --gpu 3
bad "'--gpu' is not an option; did you mean '--gpus'[?] see" mount --gpu=3
bad '--gpus lacks its argument N;' mount --gpus
bad '--config lacks its argument FILE;' mount -c
bad '--foreground takes no argument;' mount --foreground=yes
bad "--dev: 'fil' is not known; did you mean 'file'[?] allowed: char, file, null;" mount --dev fil
bad "FILE is missing;" config check
bad "'c' is not expected;" config check a b c
bad "'x' is not expected;" umount a x
bad "--for: '3' needs a unit" simulate --for 3
bad "--for: '0s' is out of range" simulate --for 0s
bad 'FAULT is missing' fault 0
bad 'COMMAND is missing' exec --gpus 1
bad "--max-index: '-1' is not a whole number" run --max-index -1
bad "'nonsense' is not a command" help nonsense
bad 'one at a time' help --man --markdown
bad "--completion: 'csh' is not known; .*allowed: bash, zsh, fish" help --completion csh

# --- How options are written -------------------------------------------------

csv=$("$program" simulate --gpus 1 --for 2s --every 1s)
like "$csv" $'^time_s,gpu,.*\n2.000,0,' 'an option and its argument'
is "$("$program" simulate --gpus=1 --for=2s --every=1s)" "$csv" '--name=value'
printf 'gpus: {count: 1}\n' >"$dir/node.yaml"
is "$("$program" simulate -c "$dir/node.yaml" --for 2s)" "$("$program" simulate "-c$dir/node.yaml" --for 2s)" '-cVALUE'
is "$("$program" config check "$dir/node.yaml" -- | wc -l)" 2 '-- ends the options'
cp "$dir/node.yaml" "$dir/--odd"
is "$(cd "$dir" && "$program" config check -- --odd | wc -l)" 2 'what follows -- is no option'

# --- Man pages ---------------------------------------------------------------

"$program" help --pages "$dir/pages"
is $? 0 'the pages are written'
is "$(cd "$dir/pages" && find . -type f | sort)" "$(cd "$BUILD/pages" && find . -type f | sort)" 'they are those that make installs'
diff -r "$dir/pages" "$BUILD/pages" >/dev/null; ok $? 'and the same'
groups=$(printf '%s\n' "${names[@]}" | cut -d ' ' -f 1 | sort -u)
is "$(cd "$dir/pages/man/man1" && ls fakegpufs-* | sed 's/fakegpufs-//; s/[.]1$//')" "$groups" 'each command, or group, has a man page'
for page in "$dir"/pages/man/man1/*; do
    warned=$(groff -man -Tutf8 -ww -rLL=80n "$page" 2>&1 >"$dir/text")
    is "$warned" '' "groff has nothing against ${page##*/}"
done
groff -man -Tascii -P-cbou "$dir/pages/man/man1/fakegpufs-run.1" >"$dir/text"
for option in $("$program" run --help | grep -oE -- '--[a-z-]+' | sort -u); do
    [[ $option == --help ]] || grep -q -- "$option" "$dir/text" || diag "run has no $option"
    grep -q -- "$option" "$dir/text"; ok $? "the man page of run has $option"
done
like "$(<"$dir/text")" 'EXIT STATUS.*daemon is gone.*64 +bad usage' 'and its exit codes'

make -s --no-print-directory install DESTDIR="$dir/root" PREFIX=/usr BUILD="$BUILD" >/dev/null 2>&1
for file in man/man1/fakegpufs-run.1 bash-completion/completions/fakegpufs zsh/site-functions/_fakegpufs fish/vendor_completions.d/fakegpufs.fish; do
    cmp -s "$dir/root/usr/share/$file" "$dir/pages/$file"; ok $? "installed: $file"
done
make -s --no-print-directory uninstall DESTDIR="$dir/root" PREFIX=/usr BUILD="$BUILD" >/dev/null 2>&1
is "$(find "$dir/root" -type f)" '' 'and removed again'

# --- Completions -------------------------------------------------------------

mkdir -p "$dir/mnt/gpus"/{0,1,by-uuid} "$dir/files/folder"
touch "$dir/files/file.yaml"

# bash_offers WORD...: what is offered for the last word, sorted.
bash_offers() {
    (cd "$dir/files" && FAKEGPUFS_ROOT=$dir/mnt bash -c '
        compopt() { :; } # there is no completion under way
        . "$0" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _fakegpufs && printf "%s\n" "${COMPREPLY[@]}" | sort -u | tr "\n" " "' \
        "$dir/pages/bash-completion/completions/fakegpufs" "$@")
}
# fish_offers WORD...: the same.
fish_offers() {
    (cd "$dir/files" && HOME=$dir FAKEGPUFS_ROOT=$dir/mnt fish --no-config -c "
        source $dir/pages/fish/vendor_completions.d/fakegpufs.fish
        complete -C '$*'" 2>/dev/null | cut -f 1 | sort | tr '\n' ' ')
}
# zsh_completes TEXT: what becomes of the line on the tab key in a zsh on a pseudo-terminal.
cat >"$dir/zsh.py" <<'END'
import os, pty, re, sys, time
functions, text = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", HOME=functions)
    os.execvp("zsh", ["zsh", "-f", "-i"])
def read_until(pattern):
    got, end = "", time.monotonic() + 30
    while not re.search(pattern, got) and time.monotonic() < end:
        got += os.read(fd, 4096).decode(errors="replace")
    return re.search(pattern, got)
os.write(fd, ("unsetopt zle_bracketed_paste; fpath=(%s $fpath); autoload -U compinit; compinit -u -D; "
              "fakegpufs() { print -r -- \"<${(j: :)@}>\"; }; print READ\"Y\"\n" % functions).encode())
read_until("READY")
os.write(fd, (text + "\t\n").encode())
print(read_until(r"<([^<>$]*)>").group(1))
os.close(fd)
END
zsh_completes() {
    (cd "$dir/files" && FAKEGPUFS_ROOT=$dir/mnt timeout 60 "$PYTHON" "$dir/zsh.py" "$dir/pages/zsh/site-functions" "$1" 2>&1)
}

# offers SHELL EXPECTED WORD...: exactly these.
offers() {
    local shell=$1 expected=$2
    shift 2
    is "$(${shell}_offers "$@")" "$expected" "$shell: fakegpufs ${*:2}"
}

all=$(printf '%s ' $groups)
for shell in bash fish; do
    command -v $shell >/dev/null || { skip 8 "there is no $shell"; continue; }
    offers $shell 'umount ' fakegpufs um
    offers $shell 'check ' fakegpufs config ch
    offers $shell '--model ' fakegpufs mount --mode
    offers $shell 'Tesla-K80 ' fakegpufs mount --model Tesla
    offers $shell 'char ' fakegpufs mount --dev ch
    offers $shell 'wave ' fakegpufs profile 0 wa
    offers $shell '--after ' fakegpufs fault 0 xid --af
    offers $shell 'file.yaml ' fakegpufs config check fi
done
offers bash "--help --version $all" fakegpufs ''
offers bash '0 1 ' fakegpufs fault ''
offers bash 'folder ' fakegpufs umount fo
offers bash 'setpriv ' fakegpufs exec --gpus 1 -- setpr
is "$(bash_offers fakegpufs run --m)" '--max-index --memory --mount ' 'bash: options of run'
if command -v zsh >/dev/null; then
    zsh -n "$dir/pages/zsh/site-functions/_fakegpufs"; ok $? 'zsh reads its completions'
    while IFS='|' read -r typed completed; do
        is "$(zsh_completes "$typed")" "$completed" "zsh: $typed"
    done <<'END'
fakegpufs um|umount
fakegpufs config ch|config check
fakegpufs mount --dev ch|mount --dev char
fakegpufs mount --mode|mount --model
fakegpufs profile 0 wa|profile 0 wave
fakegpufs config check fi|config check file.yaml
END
else
    skip 7 'there is no zsh'
fi

# --- The page ----------------------------------------------------------------

cmp -s <("$program" help --markdown) docs/commands.md; ok $? 'docs/commands.md is what `fakegpufs help --markdown` prints'

tap_done
