"""Reads Grafana dashboards strictly, by Grafana's own description of them: dashboard.py FILE...; prints what is wrong.

The description is that of grafana-foundation-sdk, which is generated from Grafana's schemas: its classes say which fields there
are and of which types, and so do its classes for the options of each kind of panel and for Prometheus' queries. The SDK
itself ignores what it does not know; here an unknown field is an error, and so are a wrong type, a value that is not
one of an enumeration, and a text that must be there and is not.

SPDX-License-Identifier: Apache-2.0
"""
import enum
import inspect
import json
import re
import sys
import types
import typing

from grafana_foundation_sdk.cog import encoder, plugins, runtime, variants
from grafana_foundation_sdk.models import dashboard

# What Grafana leaves open, and who knows it: Prometheus' data source has its formats in the annotation itself.
OPEN = {dashboard.AnnotationQuery: {"titleFormat": str, "textFormat": str}}


def fields(cls):
    """JSON name: (type, whether it must be given), as the class keeps and writes them."""
    names = re.findall(r'"(\w+)"\]? ?[:=] self\.(\w+)', inspect.getsource(cls.to_json))
    hints = typing.get_type_hints(cls)
    defaults = inspect.signature(cls.__init__).parameters
    return {shown: (hints[name], name in defaults and defaults[name].default == "") for shown, name in names}


def is_class(kind):
    return isinstance(kind, type) and hasattr(kind, "from_json")


def plain_fault(value, kind):
    """What is wrong with a value that is no object and no list."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        allowed = [member.value for member in kind]
        return None if value in allowed else f"{value!r} is none of {allowed}"
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return None
    if kind is int and isinstance(value, bool) or not isinstance(value, kind):
        return f"{value!r} is no {kind.__name__}"
    return None


def faults(value, kind, where):
    """Every difference between a value and its type."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind in (object, typing.Any):
        return
    if origin in (typing.Union, types.UnionType):
        tried = [list(faults(value, one, where)) for one in inside if value is None or one is not type(None)]
        if all(tried):
            yield from min(tried, key=len)
    elif kind is type(None):
        if value is not None:
            yield f"{where}: {value!r} is not null"
    elif origin is typing.Literal:
        if value not in inside:
            yield f"{where}: {value!r} is none of {list(inside)}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{where}: {value!r} is no list"
            return
        for i, one in enumerate(value):
            yield from faults(one, inside[0], f"{where}[{i}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{where}: {value!r} is no object"
            return
        for key, one in value.items():
            yield from faults(one, inside[1], f"{where}.{key}")
    elif is_class(kind):
        yield from object_faults(value, kind, where)
    else:
        fault = plain_fault(value, kind)
        if fault:
            yield f"{where}: {fault}"


def object_faults(value, cls, where):
    if not isinstance(value, dict):
        yield f"{where}: {value!r} is no object"
        return
    known = {name: (kind, False) for name, kind in OPEN.get(cls, {}).items()} | fields(cls)
    for name, (_, needed) in known.items():
        if needed and name not in value:
            yield f"{where}: there is no {name}"
    for name, one in value.items():
        if name not in known:
            yield f"{where}: '{name}' is not known; allowed: {', '.join(sorted(known))}"
        elif cls is dashboard.Dashboard and name == "panels":
            for i, panel in enumerate(one):
                yield from panel_faults(panel, f"{where}.panels[{i}]")
        else:
            yield from faults(one, known[name][0], f"{where}.{name}")


def reader_of(hook):
    """The class whose from_json an SDK's hook is."""
    return hook.__self__


def panel_faults(panel, where):
    """A row, or a panel whose kind says what its options are, and its data source what its queries are."""
    if panel.get("type") == "row":
        yield from object_faults(panel, dashboard.RowPanel, where)
        return
    yield from object_faults({k: v for k, v in panel.items() if k != "targets"}, dashboard.Panel, where)
    kind = runtime.panelcfg_config(panel.get("type", ""))
    if not kind:
        yield f"{where}: '{panel.get('type')}' is no kind of panel"
        return
    if kind.options_from_json_hook:
        yield from object_faults(panel.get("options", {}), reader_of(kind.options_from_json_hook), f"{where}.options")
    custom = panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})
    if kind.field_config_from_json_hook:
        yield from object_faults(custom, reader_of(kind.field_config_from_json_hook), f"{where}.fieldConfig.custom")
    elif custom:
        yield f"{where}: a {panel['type']} has nothing custom"
    for i, target in enumerate(panel.get("targets", [])):
        source = target.get("datasource", panel.get("datasource", {})).get("type")
        query = runtime.Runtime().dataquery_variants.get(source)
        if query:
            yield from object_faults(target, reader_of(query.from_json_hook), f"{where}.targets[{i}]")
        else:
            yield f"{where}.targets[{i}]: '{source}' is no data source"


def lost(given, kept, where):
    """What a reader and writer of others does not give back."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name not in kept and name not in OPEN[dashboard.AnnotationQuery]:
                yield f"{where}.{name} is lost"
            elif name in kept:
                yield from lost(value, kept[name], f"{where}.{name}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for i, (a, b) in enumerate(zip(given, kept)):
            yield from lost(a, b, f"{where}[{i}]")
    elif given != kept:
        yield f"{where}: {given!r} comes back as {kept!r}"


def main():
    plugins.register_default_plugins()
    assert issubclass(reader_of(runtime.Runtime().dataquery_variants["prometheus"].from_json_hook), variants.Dataquery)
    for name in sys.argv[1:]:
        given = json.load(open(name))
        found = list(object_faults(given, dashboard.Dashboard, "dashboard"))
        if not found:
            kept = json.loads(encoder.JSONEncoder(sort_keys=True).encode(dashboard.Dashboard.from_json(given)))
            found = list(lost(given, kept, "dashboard"))
        for fault in found:
            print(f"{name}: {fault}")


main()
