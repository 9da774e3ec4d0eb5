#!/usr/bin/env bash
#
# Keeps docs/filesystem.md true: what it says is compared with what the program does.
#
#     generated blocks  are what the commands in their markers print now
#     paths             every row of the tables of the tree is described, and no other
#     modes             where a table gives one, it is that of the row
#     names             every mount option, every event; configurations are accepted
#     examples          of tables and console blocks are what a mount of the page's node shows
#     links             lead somewhere
#
# tests/docs_filesystem.t update    writes the generated blocks anew
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"

cd "${0%/*}/.." || bail 'no top directory'
[[ -x $fakegpufs ]] || bail "there is no program '$fakegpufs': run make"
unset NUM_FAKE_GPUS METRIC_PROFILE GPU_PROFILES METRIC_UPDATE_INTERVAL NODE_NAME

# The checks: each prints what is wrong, and nothing when all is well.
cat >"$dir/check.py" <<'END'
import errno, os, re, subprocess, sys
from pathlib import Path

program, scratch = sys.argv[1], Path(sys.argv[2])
mount = scratch / "mnt"
file = Path("docs/filesystem.md")
page = file.read_text(encoding="utf-8")
GENERATED = re.compile(r"(<!-- generated: fakegpufs (.*?) -->\n)(.*?)(<!-- end of generated -->\n)", re.S)
prose = GENERATED.sub("", page)
FILES = ("file", "control file", "link")  # what tables about paths begin with


def run(*arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8")
    return done.stdout


def code(text):
    """What stands in backticks, with {a,b} written out."""
    for span in re.findall(r"`([^`]+)`", text):
        braces = re.fullmatch(r"(.*)\{([^}:]*,[^}:]*)\}(.*)", span)
        if braces:
            yield from (braces[1] + choice + braces[3] for choice in braces[2].split(","))
        else:
            yield span


def tables(text):
    """(folder in the section's heading or "", names of the columns, cells) of every row of every table."""
    folder, columns, before = "", [], None
    for line in re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M).splitlines():
        if line.startswith("#"):
            folder = next((span for span in code(line) if span.endswith("/")), "")
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and re.fullmatch(r"-+", cells[0]):
            columns = before
        elif cells and before:
            yield folder, columns, cells
        before = cells


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.S | re.M)


def rows():
    """{path: (mode, access, kind)} of the tree."""
    return {line.split()[0]: tuple(line.split()[1:]) for line in run("paths").splitlines()}


def described():
    """{path: (columns, cells)}: what the tables of the page are about."""
    known, found = rows(), {}
    for folder, columns, cells in tables(prose):
        for name in code(cells[0]) if columns[0] in FILES else ():
            found.update({path: (columns, cells) for path in (folder + name, name) if path in known})
    return found


# --- generated --------------------------------------------------------------------------------


def generated():
    return GENERATED.sub(lambda m: m[1] + run(*m[2].split()) + m[4], page)


def check_update():
    file.write_text(generated(), encoding="utf-8")
    return []


def check_generated():
    markers = [m[2] for m in GENERATED.finditer(page)]
    if markers != ["metrics --markdown", "paths --markdown"]:
        yield f"the page has blocks of {markers}"
    elif page != generated():
        yield "the blocks have changed; to write them anew: tests/docs_filesystem.t update"


# --- paths ------------------------------------------------------------------------------------


def check_paths():
    """Metrics have their generated table; what stands alone in its section is in the heading or text."""
    known = rows()
    in_text = set(described()) | set(code(re.sub(r"^```.*?^```$", "", prose, flags=re.S | re.M)))
    metrics = {f"gpus/<i>/metrics/{line.split()[0]}" for line in run("metrics").splitlines()}
    if len(known) < 250 or not metrics <= set(known):
        yield f"there are {len(known)} paths"
    yield from sorted(set(known) - in_text - metrics)


def check_unknown():
    """Of a section about one folder, every row of a table with files is one of the tree."""
    known = rows()
    for folder, columns, cells in tables(prose):
        if folder and columns[0] in FILES:
            yield from (folder + name for name in code(cells[0])
                        if folder + name not in known and name not in known)


def check_controls():
    """Says what it takes and what it shows."""
    found = described()
    for path, (mode, access, kind) in rows().items():
        if not re.match(r"(gpus/<i>/|workloads/<workload>/|)control/|workloads/", path):
            continue
        columns, cells = found.get(path, ([], []))
        row = dict(zip(columns, cells))
        if not row.get("takes") or not row.get("shows"):
            yield f"{path}: {row}"
        elif (row["takes"] == "nothing") != (access == "r"):
            yield f"{path} takes {row['takes']}"


def check_modes():
    known, count = rows(), 0
    for path, (columns, cells) in described().items():
        mode = dict(zip(columns, cells)).get("mode")
        count += mode is not None
        if mode and mode != known[path][0]:
            yield f"{path} has {known[path][0]}, the page says {mode}"
    if count < 30:
        yield f"only {count} modes were found"


# --- names ------------------------------------------------------------------------------------


def check_options():
    known = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", run("mount", "--help").partition("examples:")[0]))
    documented = {word for _, columns, cells in tables(prose) if columns[0] == "option"
                  for span in code(cells[0]) for word in span.split() if word.startswith("-")}
    yield from sorted(known ^ documented)


def check_events():
    source = Path("sim/event.c").read_text(encoding="utf-8")
    known = {}
    for name, parts in re.findall(r'\[EVENT_\w+\] = \{ "(\w+)", (.*?) \}', source):
        known[name] = set(re.findall(r'"(\w+)"', parts))
    documented = {}
    for _, columns, cells in tables(prose):
        if columns[0] == "kind":
            documented.update({name: set(code(cells[1])) for name in code(cells[0])})
    if len(known) < 10:
        yield "no events were found"
    for name in sorted(known.keys() | documented.keys()):
        if known.get(name) != documented.get(name):
            yield f"{name}: {known.get(name)}, the page says {documented.get(name)}"


def check_files():
    for text in blocks("yaml"):
        name = re.match(r"# (\S+)\n", text)[1]
        (scratch / name).write_text(text, encoding="utf-8")
        said = run("config", "check", str(scratch / name))
        if ": node " not in said:
            yield said


# --- examples ---------------------------------------------------------------------------------


def for_first_gpu(text):
    identity = mount / "gpus/0/identity"
    bdf = (identity / "bus_id").read_text().strip()[4:].lower()
    for token, value in (("<i>", "0"), ("<minor>", (identity / "minor_number").read_text().strip()),
                         ("<bdf>", bdf), ("<root>", bdf[:7]), ("<node>", "worker-1"), ("<number>", "0")):
        text = text.replace(token, value)
    return text


def show(path):
    try:
        return os.readlink(path) if os.path.islink(path) else path.read_text().rstrip("\n")
    except OSError as e:
        return errno.errorcode[e.errno]


def check_examples():
    """Of GPU 0: a text in backticks, or an error. Targets of links likewise."""
    count = 0
    for path, (columns, cells) in described().items():
        row = dict(zip(columns, cells))
        wanted = row.get("example", "")
        if columns[0] == "link":
            wanted = row["leads to"]
        if not re.fullmatch(r"`.*`|E[A-Z]+", wanted) or "<uuid>" in path:
            continue
        count += 1
        wanted = for_first_gpu(wanted.strip("`"))
        got = show(mount / for_first_gpu(path))
        if got != wanted:
            yield f"{path} is {got}, the page says {wanted}"
    if count < 70:
        yield f"only {count} examples were found"


def session(block, at):
    """What each command of a block prints, run one after the other in one shell; and where it ends."""
    commands = re.findall(r"^\$ (.*)$", block, re.M)
    script = "".join(f"{command}\nprintf '\\001'\n" for command in commands) + "pwd\n"
    environment = {**os.environ, "LC_ALL": "C.UTF-8",
                   "PATH": f"{os.path.dirname(program)}:{scratch}:{os.environ['PATH']}"}
    done = subprocess.run(["timeout", "-k", "5", "60", "bash", "-c", script], cwd=at, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8")
    *printed, end = done.stdout.split("\001")
    return commands, [re.sub(r"^bash: line \d+: ", "bash: ", p, flags=re.M) for p in printed], end.strip()


def check_blocks():
    at, count = str(scratch), 0
    for block in blocks("console"):
        wanted = re.split(r"^\$ .*\n", block, flags=re.M)[1:]
        commands, printed, at = session(block, at)
        count += len(commands)
        if len(printed) != len(commands):
            yield f"{block} stopped after {printed}"
            return
        for command, got, want in zip(commands, printed, wanted):
            if got != want:
                yield f"$ {command}\n{got}instead of\n{want}"
    if count < 50:
        yield f"only {count} commands were found"


# --- links ------------------------------------------------------------------------------------


def anchors(text):
    for title in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def check_links():
    for link in re.findall(r"\]\(([^)]+)\)", prose):
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        if not target.exists():
            yield link
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield link


print("\n".join(globals()[f"check_{sys.argv[3]}"]()))
END

check() {
    is "$("$PYTHON" "$dir/check.py" "$fakegpufs" "$dir" "$1" 2>&1)" '' "$2"
}

if [[ ${1-} == update ]]; then
    "$PYTHON" "$dir/check.py" "$fakegpufs" "$dir" update || bail 'the page was not written'
    tap_open=0
    exit
fi

# why_no_mount: why nothing can be mounted here, or nothing.
why_no_mount() {
    local said
    [[ -e /dev/fuse ]] || { echo 'there is no /dev/fuse'; return; }
    ((EUID == 0)) || { echo 'only root can mount in these tests'; return; }
    said=$(bounded "$fakegpufs" mount --gpus 1 "$mnt" 2>&1) ||
        { [[ $said == *'Operation not permitted'* ]] && echo "nothing can be mounted: $said"; }
    bounded "$fakegpufs" umount "$mnt" 2>/dev/null
}

# build_example: the page's C program, as it would be built beside the sources.
build_example() {
    sed -n '/^```c$/,/^```$/{/^```/!p}' docs/filesystem.md >"$dir/power.c"
    ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror $(sanitizers) -I. -o "$dir/power" "$dir/power.c" \
        "$BUILD/libfusefs.a" "$BUILD/libsim.a" -lyaml -lm
}

# A program beside a sanitized library must be sanitized, too.
sanitizers() {
    ! grep -q __asan_init "$fakegpufs" || echo -fsanitize=address,undefined
    ! grep -q __tsan_init "$fakegpufs" || echo -fsanitize=thread
}

# usage STATUS REGEX NAME ARGUMENT...
usage() {
    local want=$1 regex=$2 name=$3 said status
    shift 3
    said=$("$fakegpufs" "$@" 2>&1)
    status=$?
    is "$status" "$want" "$name: exit code $want"
    like "$said" "$regex" "$name: says what it should"
}

usage 0 $'usage: fakegpufs paths .*examples:\n.*\n.*' 'paths --help' paths --help
usage 0 $'usage: fakegpufs metrics .*examples:\n.*\n.*' 'metrics --help' metrics --help
usage 64 "'--json' is not an option" 'paths --json' paths --json
usage 64 "'extra' is not expected" 'paths with two arguments' paths --markdown extra
usage 64 "'--json' is not an option" 'metrics --json' metrics --json
is "$("$fakegpufs" paths | wc -l)" "$(("$("$fakegpufs" paths --markdown | wc -l)" - 2))" \
    'paths lists as many rows in both forms'
is "$("$fakegpufs" paths | grep -c '[?%]')" 0 'and every placeholder has a name'

check generated 'the generated blocks are what the program prints'
check paths 'every path is described'
check unknown 'and no other'
check controls 'every control file says what it takes and shows'
check modes 'modes are those of the tree'
check options 'every mount option is there'
check events 'every event is there, with its keys'
check files 'the configuration is accepted'
check links 'every link leads somewhere'

why=$(why_no_mount)
if [[ $why ]]; then
    skip 3 "$why"
else
    mount_up -c "$dir/node.yaml"
    check examples 'examples in tables are what the files show'
    mount_down

    said=$(build_example 2>&1)
    is "$?$said" 0 'the C program can be built'
    check blocks 'every command prints what the page says'
    bounded "$fakegpufs" umount "$mnt"
fi

tap_done
