#!/usr/bin/env python3
"""Draws docs/simulation.svg: one simulated A100 through idle, load, power cap and thermal throttle.

    docs/plot-simulation.py build/fakegpufs >docs/simulation.svg

Runs `PROGRAM simulate`, reads its CSV and writes an SVG to stdout. Every line of the picture is what
the program printed; nothing is smoothed. The same program gives the same bytes, and tests/docs.t
fails when the committed picture is another.

SPDX-License-Identifier: Apache-2.0
"""

import csv
import os
import statistics
import subprocess
import sys
from xml.sax.saxutils import escape

# --- the story --------------------------------------------------------------------------------

MODEL = "A100-SXM4-40GB"
LOAD = "{utilization: 98, tensor: 60, memory_utilization: 60}"
CAP_W, FULL_W, FAULT = 250, 400, 2.2

# name, second line, seconds, tint
PHASES = [
    ("idle", "nothing runs", 60, "#ffffff"),
    ("load", "98 % utilization", 90, "#eef4fa"),
    ("power cap", f"limit set to {CAP_W} W", 70, "#fff3d6"),
    ("cap lifted", f"back to {FULL_W} W", 60, "#eef4fa"),
    ("cooling fault", "→ thermal throttle", 90, "#fde6dc"),
    ("recovery", "cooling is back", 60, "#e6f4ee"),
    ("idle", "the load has ended", 80, "#ffffff"),
]

# What the environment may say about a configuration is not part of this story.
OTHERS = ("NUM_FAKE_GPUS", "METRIC_PROFILE", "GPU_PROFILES", "METRIC_UPDATE_INTERVAL")


def phase_times():
    """(start, end) of every phase, in seconds."""
    times, at = [], 0
    for _, _, seconds, _ in PHASES:
        times.append((at, at + seconds))
        at += seconds
    return times


TIMES = phase_times()
END = TIMES[-1][1]


def arguments():
    _, (load, _), (cap, lifted), _, (fault, fixed), (_, stop), _ = TIMES
    metrics = (
        "utilization_gpu_percent,clock_sm_mhz,clock_sm_max_mhz,power_usage_mw,power_limit_mw,"
        "temperature_gpu_c,temperature_memory_c,temperature_max_operating_c,temperature_slowdown_c,"
        "throttle_reasons"
    )
    return [
        "simulate", "--gpus", "1", "--model", MODEL, "--metrics", metrics,
        "--for", f"{END}s", "--every", "1s",
        "--workload", f"{{start: {load}s, activity: [{LOAD[:-1]}, time: {stop - load}s}}]}}",
        "--at", f"{cap}s 0 power_limit {CAP_W}W",
        "--at", f"{lifted}s 0 power_limit {FULL_W}W",
        "--at", f"{fault}s 0 fault thermal {FAULT} for {fixed - fault}s",
    ]  # fmt: skip


def simulate(program):
    """The CSV as columns: {name: [number, …]}."""
    environment = {k: v for k, v in os.environ.items() if k not in OTHERS}
    done = subprocess.run(
        [program, *arguments()], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"plot-simulation: {program} ended with status {done.returncode}")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


# --- paper ------------------------------------------------------------------------------------

WIDTH = 1000
LEFT, RIGHT = 76, 880  # of the plots; behind them is room for the names of lines
TOP = 136
GAP = 38  # between panels, for the next one's title
INK, DIM, GRID = "#1f2933", "#52606d", "#d5dbe1"

# Distinct for all kinds of colour vision, and each line is named beside itself anyway.
BLUE, GREEN, ORANGE, WINE, VIOLET = "#0072b2", "#00805d", "#c65102", "#a3195b", "#7353a6"

STYLE = """
text { font-family: system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif;
       font-size: 12px; fill: #1f2933 }
.title { font-size: 19px; font-weight: 600 }
.dim { fill: #52606d }
.phase { font-weight: 600; font-size: 12.5px }
.panel { font-weight: 600; font-size: 13px }
.small { font-size: 11px }
.line { fill: none; stroke-linejoin: round; stroke-linecap: round }
"""


def number(v):
    """Short, and the same everywhere: at most one decimal."""
    text = f"{v:.1f}"
    return text[:-2] if text.endswith(".0") else text


def across(seconds):
    return LEFT + (RIGHT - LEFT) * seconds / END


def text(x, y, words, classes="", anchor="start", fill=None):
    colour = f' style="fill:{fill}"' if fill else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" class="{classes}" text-anchor="{anchor}"{colour}>'
        f"{escape(words)}</text>"
    )


def rule(x1, y1, x2, y2, colour=GRID, width=1, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" '
        f'stroke="{colour}" stroke-width="{width}"{dashes}/>'
    )


def path(points, colour, width=1.8, dash=""):
    """A line through the points; those that lie between two equals are left out."""
    kept = [
        p
        for i, p in enumerate(points)
        if not (0 < i < len(points) - 1 and points[i - 1][1] == p[1] == points[i + 1][1])
    ]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    d = " ".join(f"{x},{y}" for x, y in kept)
    return f'<polyline class="line" stroke="{colour}" stroke-width="{width}"{dashes} points="{d}"/>'


def tints(top, height):
    """The background of a panel: the phases."""
    out = []
    for (_, _, _, tint), (start, end) in zip(PHASES, TIMES):
        x, width = across(start), across(end) - across(start)
        out.append(
            f'<rect x="{number(x)}" y="{number(top)}" width="{number(width)}" '
            f'height="{number(height)}" fill="{tint}"/>'
        )
        if start:
            out.append(rule(x, top, x, top + height, "#aab4be"))
    return out


class Panel:
    """One plot: a scale and what is drawn on it."""

    def __init__(self, top, height, title, low, high, ticks):
        self.top, self.height, self.low, self.high = top, height, low, high
        self.out = [*tints(top, height), text(LEFT, top - 8, title, "panel")]
        for tick in ticks:
            y = self.up(tick)
            self.out.append(rule(LEFT, y, RIGHT, y))
            self.out.append(text(LEFT - 8, y + 4, number(tick), "small dim", "end"))

    def up(self, value):
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def line(self, times, values, colour, **style):
        points = [(number(across(t)), number(self.up(v))) for t, v in zip(times, values)]
        self.out.append(path(points, colour, **style))

    def threshold(self, value, words, nudge=0):
        self.out.append(rule(LEFT, self.up(value), RIGHT, self.up(value), DIM, 1.2, "5 4"))
        self.name(value, words, DIM, nudge)

    def name(self, value, words, colour, nudge=0):
        """What a line is, behind its end; moved a little where two ends are close."""
        self.out.append(text(RIGHT + 8, self.up(value) + 4 + nudge, words, "small", fill=colour))

    def note(self, times, values, phase, words, colour):
        """What a line settles at: the median of the last 20 s of a phase."""
        end = TIMES[phase][1]
        settled = statistics.median(v for t, v in zip(times, values) if end - 20 <= t < end)
        x, y = across(end - 24), self.up(settled) + 17
        self.out.append(text(x, y, words.format(settled), "small", "middle", colour))


# --- panels -----------------------------------------------------------------------------------


def utilization_panel(top, d):
    p = Panel(top, 70, "Utilization, %", 0, 108, (0, 50, 100))
    p.line(d["time_s"], d["utilization_gpu_percent"], BLUE)
    return p


def clock_panel(top, d):
    p = Panel(top, 110, "SM clock, MHz", 0, 1650, (0, 500, 1000, 1500))
    p.threshold(d["clock_sm_max_mhz"][0], f"highest {d['clock_sm_max_mhz'][0]:.0f}")
    p.line(d["time_s"], d["clock_sm_mhz"], GREEN)
    for phase in (2, 4):
        p.note(d["time_s"], d["clock_sm_mhz"], phase, "{:.0f} MHz", GREEN)
    return p


def power_panel(top, d):
    watts = [mw / 1000 for mw in d["power_usage_mw"]]
    limit = [mw / 1000 for mw in d["power_limit_mw"]]
    p = Panel(top, 130, "Power, W", 0, 440, (0, 100, 200, 300, 400))
    p.line(d["time_s"], limit, DIM, width=1.2, dash="5 4")
    p.name(limit[-1], "power limit", DIM)
    p.line(d["time_s"], watts, ORANGE, width=1.5)
    for phase in (1, 2, 4):
        p.note(d["time_s"], watts, phase, "{:.0f} W", ORANGE)
    return p


def temperature_panel(top, d):
    p = Panel(top, 160, "Temperature, °C", 20, 100, (20, 40, 60, 80, 100))
    slowdown, operating = d["temperature_slowdown_c"][0], d["temperature_max_operating_c"][0]
    p.threshold(slowdown, f"slowdown {slowdown:.0f}", nudge=-2)
    p.threshold(operating, f"max operating {operating:.0f}", nudge=4)
    p.line(d["time_s"], d["temperature_memory_c"], VIOLET, width=1.4, dash="2 2.5")
    p.line(d["time_s"], d["temperature_gpu_c"], WINE, width=2)
    p.name(d["temperature_memory_c"][-1], "memory", VIOLET, nudge=-5)
    p.name(d["temperature_gpu_c"][-1], "GPU", WINE, nudge=5)
    for phase in (1, 2, 4):
        p.note(d["time_s"], d["temperature_gpu_c"], phase, "{:.0f} °C", WINE)
    return p


REASONS = [(0x1, "idle", DIM), (0x4, "power cap", ORANGE), (0x20, "software thermal", WINE)]


def reasons_panel(top, d):
    """A bar for each time that a bit of throttle_reasons is set."""
    row = 17
    p = Panel(top, row * len(REASONS), "What holds the clock down (throttle_reasons)", 0, 1, ())
    for k, (bit, words, colour) in enumerate(REASONS):
        y = top + k * row
        if k:
            p.out.append(rule(LEFT, y, RIGHT, y))
        p.out.append(text(RIGHT + 8, y + row - 4, words, "small", fill=colour))
        for start, end in stretches(d["time_s"], d["throttle_reasons"], bit):
            p.out.append(
                f'<rect x="{number(across(start))}" y="{number(y + 4)}" height="{row - 8}" '
                f'width="{number(across(end) - across(start))}" rx="2" fill="{colour}"/>'
            )
    return p


def stretches(times, masks, bit):
    found, start = [], None
    for t, mask in zip(times, masks):
        if int(mask) & bit and start is None:
            start = t
        elif not int(mask) & bit and start is not None:
            found.append((start, t))
            start = None
    return found + ([(start, times[-1])] if start is not None else [])


# --- the whole --------------------------------------------------------------------------------

PANELS = (utilization_panel, clock_panel, power_panel, temperature_panel, reasons_panel)


def draw_phases():
    out = tints(TOP - 68, 40)
    for (name, more, _, _), (start, end) in zip(PHASES, TIMES):
        middle = across((start + end) / 2)
        out.append(text(middle, TOP - 51, name, "phase", "middle"))
        out.append(text(middle, TOP - 36, more, "small dim", "middle"))
    return out


def draw_time(bottom):
    out = []
    for seconds in range(0, END + 1, 60):
        x = across(seconds)
        out.append(rule(x, bottom, x, bottom + 5, DIM))
        out.append(text(x, bottom + 18, f"{seconds // 60}:{seconds % 60:02}", "small dim", "middle"))
    out.append(rule(LEFT, bottom, RIGHT, bottom, DIM))
    out.append(text((LEFT + RIGHT) / 2, bottom + 36, "simulated time, min:s", "dim", "middle"))
    return out


def draw(d):
    panels, top = [], TOP
    for make in PANELS:
        panels.append(make(top, d))
        top += panels[-1].height + GAP
    bottom = top - GAP + 6
    height = bottom + 50
    title = f"One simulated {MODEL}: idle, load, power cap, thermal throttle"
    said = "Stacked plots of utilization, SM clock, power, temperature and throttle reasons over time."
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}" '
        f'width="{WIDTH}" height="{number(height)}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(said)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{number(height)}" rx="8" fill="#ffffff"/>',
        text(LEFT, 30, title, "title"),
        text(LEFT, 50, "As printed by fakegpufs simulate, one sample a second, seed 1.", "dim"),
        *draw_phases(),
    ]
    for p in panels:
        out += p.out
    return "\n".join([*out, *draw_time(bottom), "</svg>", ""])


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: plot-simulation.py PROGRAM >simulation.svg")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.write(draw(simulate(sys.argv[1])))


if __name__ == "__main__":
    main()
