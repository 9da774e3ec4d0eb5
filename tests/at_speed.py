"""A copy of Prometheus rules for GPUs whose clock runs faster: at_speed.py SPEED RULES.YAML; prints it.

Prometheus' own clock runs as ever, so a minute of the rules is to be a minute of the GPUs: every `for`, `interval` and
range is divided by SPEED. So is rate(), which is per second: a counter of seconds grows SPEED times as fast in a
second of Prometheus. What an increase() or a mean over such a range says is as it was. Functions whose answer would
change in another way are refused. Thresholds stay as they are, and so is how often a subquery looks, which is as often as
rules are evaluated.

SPDX-License-Identifier: Apache-2.0
"""
import re
import sys

import yaml

UNITS_MS = {"ms": 1, "s": 1000, "m": 60 * 1000, "h": 3600 * 1000, "d": 24 * 3600 * 1000}
REFUSED = r"\b(irate|deriv|predict_linear|holt_winters|offset|time|timestamp|hour|minute)\b|@|\[[^]]*:[^]]+\]"


def divided(duration, speed):
    parts = re.findall(r"(\d+)(ms|[smhd])", duration)
    if "".join(map("".join, parts)) != duration:
        sys.exit(f"'{duration}' is not a duration")
    total = sum(int(number) * UNITS_MS[unit] for number, unit in parts)
    if total % speed:
        sys.exit(f"{duration} cannot be divided by {speed}")
    return f"{total // speed}ms"


def expression(text, speed):
    refused = re.search(REFUSED, re.sub(r'"[^"]*"', '""', text))
    if refused:
        sys.exit(f"what becomes of '{refused[0]}' in '{text}' at another speed is not known")
    text, rates = re.subn(r"\brate\(([^()]*)\)", rf"(rate(\1) / {speed})", text)
    if rates != len(re.findall(r"\brate\b", text)):
        sys.exit(f"a rate in '{text}' is not of a plain series")
    return re.sub(r"\[([^]:]*)(:?)\]", lambda m: f"[{divided(m[1], speed)}{m[2]}]", text)


def main():
    speed = int(sys.argv[1])
    rules = yaml.safe_load(open(sys.argv[2]))
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["expr"] = expression(rule["expr"], speed)
        for part in [group, *group["rules"]]:
            for key in {"for", "keep_firing_for", "interval"} & part.keys():
                part[key] = divided(part[key], speed)
    yaml.safe_dump(rules, sys.stdout)


main()
