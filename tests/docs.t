#!/usr/bin/env bash
#
# Keeps docs/simulation.md, docs/configuration.md and their picture true: what they say is compared
# with what the program does.
#
#     the picture       is what docs/plot-simulation.py makes from this program, byte for byte
#     coefficients      every key of `physics:` is in the tables with its default, and matters
#     names             every profile, fault, signal, key of the schema is there
#     examples          every file is accepted, every command prints what the page says
#     links             lead somewhere
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"

cd "${0%/*}/.." || bail 'no top directory'
build=$(cd "$BUILD" && pwd) || bail "there is no directory '$BUILD'"
program=$build/fakegpufs
[[ -x $program ]] || bail "there is no program '$program': run make"
unset NUM_FAKE_GPUS METRIC_PROFILE GPU_PROFILES METRIC_UPDATE_INTERVAL

dir=$(mktemp -d)
at_exit 'rm -rf "$dir"'

# The checks: each prints what is wrong, and nothing when all is well.
cat >"$dir/check.py" <<'END'
import json, os, re, subprocess, sys
from pathlib import Path

program, scratch = sys.argv[1], Path(sys.argv[2])
simulation = Path("docs/simulation.md").read_text(encoding="utf-8")
configuration = Path("docs/configuration.md").read_text(encoding="utf-8")


def run(*arguments, **more):
    """What it prints, both streams; its exit status is in the text when it is a signal."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", **more)
    return done.stdout if done.returncode >= 0 else f"{done.stdout}killed by {-done.returncode}\n"


def is_good(said, file):
    return re.match(rf"{re.escape(str(file))}: (node |\d+ nodes? with )", said)


def accepted(text):
    """Nothing, or what the program has against a configuration."""
    file = scratch / "config.yaml"
    file.write_text(text, encoding="utf-8")
    said = run("config", "check", str(file))
    return "" if is_good(said, file) else said


def rows(page):
    """The rows of all tables: (section, first heading, [cell, …])."""
    section = heading = ""
    before = None
    for line in page.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and re.fullmatch(r"-+", cells[0]):
            heading = before[0]
        elif cells and before:
            yield section, heading, cells
        before = cells


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def blocks(page):
    """(language, text) of all fenced blocks."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.S | re.M)


def schema():
    return json.loads(run("config", "schema"))


def coefficients():
    """{key: default} as simulation.md has them."""
    return {code(c[0])[0]: c[1] for _, h, c in rows(simulation) if h == "coefficient"}


# --- coefficients -----------------------------------------------------------------------------

# Everything that a coefficient takes part in happens here, each second is looked at.
STORY = """
update_interval: 1s
gpus:
  - {count: 2, model: A100-SXM4-40GB}
  - model: RTX-4090
  - model: A100-SXM4-40GB
    metrics:
      temperature_gpu_c:
        timeline: {phases: [{time: 20s, value: 90}, {time: 2m, value: {ramp: {from: 90, to: 60, over: 60s}}}]}
workloads:
  - {devices: [0, 1], start: 5s, activity: [{time: 100s, utilization: 95}]}
  - {devices: 2, start: 5s, activity: [{time: 90s, utilization: 90, decoder: 60}]}
  - {devices: 3, activity: {utilization: 80}}
faults:
  - {at: 30s, gpu: 0, fault: thermal 2.2, for: 40s}
  - {at: 40s, gpu: 1, fault: power_brake, for: 20s}
"""


def story(physics):
    given = "".join(f"  {key}: {value}\n" for key, value in physics.items())
    file = scratch / "story.yaml"
    file.write_text(STORY + (f"physics:\n{given}" if given else ""), encoding="utf-8")
    return run("simulate", "-c", str(file), "--for", "150s", "--metrics", "all")


def less(value):
    """A fifth less, with the same unit."""
    amount, unit = re.fullmatch(r"([0-9.]+)(.*)", value).groups()
    return f"{float(amount) * 0.8:.6g}{unit}"


def check_coefficients():
    documented, known = coefficients(), schema()["properties"]["physics"]["properties"]
    for key in known.keys() - documented.keys():
        yield f"simulation.md does not have '{key}'"
    for key in documented.keys() - known.keys():
        yield f"simulation.md has '{key}', the program does not"
    again = {code(c[0])[0]: c[2] for _, h, c in rows(configuration) if h == "key of `physics`"}
    if again != documented:
        yield f"configuration.md has another default of {dict(again.items() ^ documented.items())}"


def check_defaults():
    documented, plain = coefficients(), story({})
    if not plain.startswith("time_s,"):
        yield plain
    elif story(documented) != plain:
        for key, value in documented.items():
            if story({key: value}) != plain:
                yield f"'{key}' is not {value} by default"


def check_effects():
    plain = story({})
    for key, value in coefficients().items():
        if story({key: less(value)}) == plain:
            yield f"'{key}: {less(value)}' changes nothing"


# --- names ------------------------------------------------------------------------------------


def check_profiles():
    table = {code(c[0])[0]: c for _, h, c in rows(simulation) if h == "profile"}
    for file in sorted(Path("schemas/profiles").glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        pin = re.search(r"^  temperature_gpu_c: (.*)$", text, re.M)
        row = table.get(file.stem)
        if not row:
            yield f"simulation.md does not have the profile '{file.stem}'"
        elif code(row[2]) != ([pin[1]] if pin else []):
            yield f"'{file.stem}' is {pin and pin[1]}, simulation.md says {row[2]}"
    (scratch / "cycle.yaml").write_text("profile: cycle\n", encoding="utf-8")
    cycle = re.search(r"^profile: \[(.*)\]$", run("config", "show", str(scratch / "cycle.yaml")), re.M)
    if cycle[1].split(", ") != list(table)[:7]:
        yield f"cycle is {cycle[1]}"


def check_faults():
    said = run("simulate", "--gpus", "1", "--for", "1s", "--at", "1s 0 fault none")
    table = {code(c[0])[0].split()[0] for _, h, c in rows(simulation) if h == "fault"}
    known = re.search(r"allowed: (.*)", said)[1].split(", ")
    yield from sorted(set(known) ^ table)


def check_signals():
    for kind in schema()["$defs"]["signal"]["anyOf"][1:]:
        for name, function in kind["properties"].items():
            row = [c for _, h, c in rows(simulation) if h == "signal" and f"`{name}`" == c[0]]
            if not row:
                yield f"simulation.md does not have the signal '{name}'"
                continue
            for parameter in function["properties"]:
                if parameter not in code(row[0][1]):
                    yield f"simulation.md does not have '{parameter}' of '{name}'"


def schema_keys(node, metrics):
    """The keys of all mappings; where a mapping has metrics for keys, without them."""
    if isinstance(node, list):
        for item in node:
            yield from schema_keys(item, metrics)
    elif isinstance(node, dict):
        properties = node.get("properties", {})
        if "temperature_gpu_c" in properties:
            properties = {key: node["properties"][key] for key in properties if key not in metrics}
        yield from properties
        for item in node.values():
            yield from schema_keys(item, metrics)


def check_keys():
    prose = re.sub(r"^```.*?^```$", "", configuration, flags=re.S | re.M)
    metrics = {line.split()[0] for line in run("metrics").splitlines()}
    yield from sorted(set(schema_keys(schema(), metrics)) - set(code(prose)))


# --- defaults and examples of configuration.md ------------------------------------------------


def check_shown_defaults():
    """What the program fills in by itself is in a row of that key."""
    (scratch / "empty.yaml").write_text("", encoding="utf-8")
    shown = run("config", "show", str(scratch / "empty.yaml"))
    shown = re.sub(r"^gpus:\n(?: .*\n)+", "", shown, flags=re.M)
    for key, value in re.findall(r'^ *(\w+): "?([^"\n]+)"?$', shown, re.M):
        if not any(f"`{key}`" in c[0] and value in c[2].split()
                   for _, h, c in rows(configuration) if len(c) == 4):
            yield f"{key}: {value}"


def example_file(section, heading, example):
    """A whole configuration around an example of a table."""
    key = example.partition(":")[0]
    of = re.fullmatch(r"key of `(\w+)`", heading)
    if of:
        return f"{of[1]}: {{{'nodes: 2, ' if key == 'cpus' else ''}{example}}}\n"
    if section == "The node":
        return f"{example}\n"
    if section == "GPUs":
        return f"numa: {{nodes: 2}}\ngpus: {{{example}}}\n"
    if section == "Workloads":
        return f"workloads: [{{{example}}}]\n"
    if section == "Faults":
        needs = {"gpu": "gpu: 0", "fault": "fault: hang"}
        needs.pop(key, None)
        return f"faults: [{{{', '.join([*needs.values(), example])}}}]\n"
    if key.startswith("gpu-"):
        needs = {"gpu-product": "gpu-product: T4", "gpu-count": "gpu-count: 1"}
        needs.pop(key, None)
        return f"nodes: {{a: {{{', '.join([*needs.values(), example])}}}}}\n"
    return None  # the form with nodes is an example of its own


def check_examples():
    count = 0
    for section, heading, cells in rows(configuration):
        if len(cells) != 4 or not heading.startswith("key"):
            continue
        for example in code(cells[3]):
            text = example_file(section, heading, example)
            count += text is not None
            if text and accepted(text):
                yield f"{example}: {accepted(text)}"
    if count < 60:
        yield f"only {count} examples were found"


def check_blocks():
    """Files are accepted unless called wrong; commands print what stands below them."""
    environment = {**os.environ, "PATH": f"{os.path.dirname(program)}:{os.environ['PATH']}"}
    for page in (simulation, configuration):
        for language, text in blocks(page):
            if language == "yaml":
                name = re.match(r"# (\S+)\n", text)[1]
                (scratch / name).write_text(text, encoding="utf-8")
                if not name.startswith("wrong-"):
                    # Shown with two nodes, it is for those who pick one.
                    said = run("config", "check", name, *(["node-a"] if "\nnodes:" in text else []), cwd=scratch)
                    if not is_good(said, name):
                        yield said
            elif language == "console":
                for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
                    done = subprocess.run(command, shell=True, cwd=scratch, env=environment, encoding="utf-8",
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    if done.stdout != wanted:
                        yield f"$ {command}\n{done.stdout}instead of\n{wanted}"


# --- links ------------------------------------------------------------------------------------


def anchors(page):
    for title in re.findall(r"^#+ (.*)$", page, re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def check_links():
    for name, page in (("simulation.md", simulation), ("configuration.md", configuration)):
        for link in re.findall(r"\]\(([^)]+)\)", page):
            path, _, anchor = link.partition("#")
            target = Path("docs") / (path or name)
            if not target.exists():
                yield f"{name}: {link}"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{name}: {link}"


print("\n".join(globals()[f"check_{sys.argv[3]}"]()))
END

check() {
    is "$("$PYTHON" "$dir/check.py" "$program" "$dir" "$1" 2>&1)" '' "$2"
}

"$PYTHON" docs/plot-simulation.py "$program" >"$dir/simulation.svg"
ok $? 'the picture can be drawn'
cmp "$dir/simulation.svg" docs/simulation.svg >&2 ||
    diag "to draw it anew: docs/plot-simulation.py $BUILD/fakegpufs >docs/simulation.svg"
cmp -s "$dir/simulation.svg" docs/simulation.svg
ok $? 'and is the one in docs/'

check coefficients 'every coefficient is in the tables'
check defaults 'with its default'
check effects 'and has an effect'
check profiles 'every profile is described as its file has it, and their cycle'
check faults 'every fault is described, and no other'
check signals 'every signal is described, with its parameters'
check keys 'configuration.md has every key of the schema'
check shown_defaults 'and the defaults that the program shows'
check examples 'every example in its tables is accepted'
check blocks 'every file is accepted and every command prints what the pages say'
check links 'every link leads somewhere'

tap_done
