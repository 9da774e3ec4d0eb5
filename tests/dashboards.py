"""Checks Grafana dashboards: dashboards.py PAGE FILE...; prints what is wrong, a line each.

Their shape is what Grafana needs to load them from a file; every metric and label that a query names must be
on PAGE, the exporter's real /metrics. With --ask URL FILE... it asks the Prometheus there every query instead, with variables filled
in as Grafana does with everything chosen, and prints those without an answer, or without a label that the legend names.

SPDX-License-Identifier: Apache-2.0
"""
import json
import re
import sys
import urllib.parse
import urllib.request

FUNCTIONS = set("""sum avg min max count by on without and or unless rate vector ignoring group_left
    offset bool""".split())
GRID_WIDTH = 24


def page_labels(page):
    """Which labels each family of the page has."""
    labels = {}
    for name, text in re.findall(r"^(\w+)\{(.*)\} \S+$", page, re.M):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', text))
    return labels


def targets(dashboard):
    """(where, target) of each query of the panels."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['id']} '{panel['title']}'", target


def filled(expr, dashboard):
    """A query with its variables filled in."""
    for variable in dashboard["templating"]["list"]:
        value = variable["query"] if variable["type"] == "textbox" else ".*"
        expr = re.sub(r"\$%s\b" % variable["name"], value, expr)
    return expr.replace("$__rate_interval", "30s")


def query_faults(expr, labels):
    """What a query names that is not on the page."""
    bare = re.sub(r'"[^"]*"', '""', expr)
    families = re.findall(r"\bDCGM_\w+", bare)
    if not families:
        yield "names no metric"
    known = set()
    for family in families:
        if family not in labels:
            yield f"{family} is not on the page"
        known |= labels.get(family, set())
    for family, matchers in re.findall(r"\b(DCGM_\w+)\{([^}]*)\}", bare):
        for label in re.findall(r"(\w+)\s*[=!]", matchers):
            if label not in labels.get(family, ()):
                yield f"{family} has no label {label}"
    for group in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", bare):
        for label in re.findall(r"\w+", group):
            if label not in known:
                yield f"no metric of '{expr}' has a label {label}"
    rest = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(?:by|on)\s*\([^)]*\)", "", bare)
    for word in re.findall(r"\b[a-zA-Z_]\w*", rest):
        if word not in FUNCTIONS and not word.startswith("DCGM_"):
            yield f"'{word}' is not known"
    if "$" in expr:
        yield f"a variable is left over in '{expr}'"


def layout_faults(panels):
    """Panels that are outside of the grid or on each other."""
    taken = {}
    for panel in panels:
        grid = panel.get("gridPos", {})
        if sorted(grid) != ["h", "w", "x", "y"] or any(not isinstance(v, int) or v < 0 for v in grid.values()):
            yield f"panel {panel.get('id')} has no gridPos"
            continue
        if grid["x"] + grid["w"] > GRID_WIDTH or not grid["w"] or not grid["h"]:
            yield f"panel {panel['id']} does not fit into the grid"
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                if taken.setdefault((x, y), panel["id"]) != panel["id"]:
                    yield f"panels {taken[x, y]} and {panel['id']} are on each other"
                    return


def shape_faults(dashboard):
    """What Grafana would miss."""
    for key, kind in dict(uid=str, title=str, schemaVersion=int, version=int, panels=list, templating=dict,
                          time=dict, tags=list, refresh=str).items():
        if not isinstance(dashboard.get(key), kind):
            yield f"{key} is missing, or is no {kind.__name__}"
            return
    if not re.fullmatch(r"[\w-]{1,40}", dashboard["uid"]):
        yield "the uid cannot be one"
    if dashboard["schemaVersion"] < 36:
        yield "the schema is older than data sources by uid"
    if "id" in dashboard:
        yield "it has an id, which is the database's"
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    if variables.get("datasource", {}).get("type") != "datasource" or variables["datasource"]["query"] != "prometheus":
        yield "there is no variable for the data source"
    ids = [panel.get("id") for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids) or None in ids:
        yield "panels have no ids of their own"
    yield from layout_faults(dashboard["panels"])
    for panel in dashboard["panels"]:
        where = f"panel {panel.get('id')}"
        if not panel.get("title") or panel.get("type") not in ("timeseries", "stat", "table", "row"):
            yield f"{where} has no title or type"
        if panel.get("type") == "row":
            continue
        if not panel.get("targets"):
            yield f"{where} asks nothing"
        for thing in [panel, *panel.get("targets", [])]:
            if thing.get("datasource") != {"type": "prometheus", "uid": "${datasource}"}:
                yield f"{where} has a data source of its own"
        refs = [target.get("refId") for target in panel.get("targets", [])]
        if len(set(refs)) != len(refs) or None in refs:
            yield f"{where} has queries without a refId of their own"


def variable_faults(dashboard, labels):
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((\w+)(?:\{(\w+)=~\"\$\w+\"\})?, (\w+)\)", variable["query"]["query"])
        if not match:
            yield f"the query of ${variable['name']} is not known"
        elif not {match[3], match[2] or match[3]} <= labels.get(match[1], set()):
            yield f"the query of ${variable['name']} names what is not on the page"


def unanswered(dashboard, url):
    """What Prometheus has no answer to."""
    for where, target in targets(dashboard):
        expr = filled(target["expr"], dashboard)
        query = urllib.parse.urlencode({"query": expr})
        with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=30) as answer:
            result = json.load(answer)["data"]["result"]
        if not result:
            yield f"{where}: no answer: {expr}"
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            if result and not any(series["metric"].get(label) for series in result):
                yield f"{where}: no label {label}: {expr}"


def check(page, files):
    labels = page_labels(open(page).read())
    uids = set()
    for name in files:
        dashboard = json.load(open(name))
        faults = list(shape_faults(dashboard)) or list(variable_faults(dashboard, labels))
        if dashboard.get("uid") in uids:
            faults.append("another one has its uid")
        uids.add(dashboard.get("uid"))
        for where, target in targets(dashboard):
            faults += [f"{where}: {fault}" for fault in query_faults(filled(target["expr"], dashboard), labels)]
        for fault in faults:
            print(f"{name}: {fault}")


def main():
    if sys.argv[1] == "--ask":
        for name in sys.argv[3:]:
            print(*unanswered(json.load(open(name)), sys.argv[2]), sep="\n")
    else:
        check(sys.argv[1], sys.argv[2:])


main()
