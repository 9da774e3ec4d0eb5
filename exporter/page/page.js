// The live page: asks page.json once a second while it is looked at, and draws one card for each GPU.
// Asks nothing of anybody but this exporter.
//
// SPDX-License-Identifier: Apache-2.0
"use strict";

const PERIOD_MS = 1000, POINTS = 180;
const $ = (id) => document.getElementById(id);

// --- numbers -----------------------------------------------------------------------------------

const round = (value, digits = 0) => value.toFixed(digits);
const gib = (bytes) => round(bytes / 2 ** 30, bytes < 100 * 2 ** 30 ? 1 : 0);

function duration(ns) {
  const s = Math.floor(ns / 1e9), parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  let rest = s;
  const words = parts.map(([size, unit]) => {
    const n = Math.floor(rest / size);
    rest %= size;
    return [n, unit];
  }).filter(([n], i) => n || i === 3);
  return words.slice(0, 2).map(([n, unit]) => n + unit).join(" ");
}

// --- what a card shows -------------------------------------------------------------------------

// metric: which drives the sparkline; most: the top of its scale; text: beside it.
const READINGS = [
  { title: "utilization", metric: "utilization_gpu_percent", most: () => 100,
    text: (m, v) => `${v} %` },
  { title: "memory", metric: "memory_used_bytes", most: (m) => m.memory_total_bytes,
    text: (m, v) => `${gib(v)} / ${gib(m.memory_total_bytes ?? 0)} GiB` },
  { title: "power", metric: "power_usage_mw", most: (m) => m.power_limit_mw,
    text: (m, v) => `${round(v / 1000)} / ${round((m.power_limit_mw ?? 0) / 1000)} W` },
  { title: "temperature", metric: "temperature_gpu_c", most: (m) => m.temperature_shutdown_c ?? 100,
    text: (m, v) => m.temperature_memory_c == null ? `${v} °C` : `${v} °C, memory ${m.temperature_memory_c}` },
  { title: "clock", metric: "clock_sm_mhz", most: (m) => m.clock_sm_max_mhz,
    text: (m, v) => `${v} / ${m.clock_sm_max_mhz ?? "?"} MHz` },
];

// Bits of throttle_reasons that mean trouble; idle, set clocks and a power cap are everyday.
const SLOWDOWNS = [[0x8, "hardware slowdown"], [0x20, "slowed by heat (software)"],
                   [0x40, "slowed by heat (hardware)"], [0x80, "power brake"]];

function faultsOf(gpu) {
  const m = gpu.metrics, faults = [];
  if (gpu.lost)
    faults.push("fallen off the bus");
  if (m.xid_last)
    faults.push(`Xid ${m.xid_last}: ${gpu.xid_message ?? ""}`);
  if (m.temperature_slowdown_c != null && m.temperature_gpu_c >= m.temperature_slowdown_c)
    faults.push(`${m.temperature_gpu_c} °C, above the slowdown limit of ${m.temperature_slowdown_c}`);
  for (const [bit, words] of SLOWDOWNS)
    if (m.throttle_reasons & bit)
      faults.push(words);
  if (m.ecc_dbe_volatile_total)
    faults.push(`${m.ecc_dbe_volatile_total} uncorrectable ECC errors`);
  if (m.remapped_rows_failure)
    faults.push("row remapping failed");
  else if (m.remapped_rows_pending)
    faults.push("row remapping pending");
  const silent = Object.keys(m).filter((name) => m[name] === null);
  if (silent.length)
    faults.push(`no reading of ${silent.join(", ")}`);
  return faults;
}

function restOf(gpu) {
  const m = gpu.metrics, words = [];
  if (m.pstate != null) words.push(`P${m.pstate}`);
  if (m.fan_speed_percent != null) words.push(`fan ${m.fan_speed_percent} %`);
  if (m.pcie_link_generation != null) words.push(`PCIe ${m.pcie_link_generation}.0 x${m.pcie_link_width}`);
  if (m.nvlink_links_active_count) words.push(`${m.nvlink_links_active_count} NVLinks`);
  if (m.ecc_sbe_volatile_total) words.push(`${m.ecc_sbe_volatile_total} corrected ECC errors`);
  if (gpu.instances.length)
    words.push("MIG " + gpu.instances.map((i) => `${i.profile}#${i.gi}`).join(" "));
  return words.join(" · ");
}

function matches(gpu, words, onlyFaulty) {
  if (onlyFaulty && !gpu.faults.length)
    return false;
  const text = [gpu.key, gpu.name, gpu.uuid, gpu.bus_id,
    ...gpu.processes.flatMap((p) => [p.workload, p.namespace, p.pod, p.container])].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

// --- drawing -----------------------------------------------------------------------------------

// Only what has changed is written: a browser lays out a page of a thousand cards again for every word.
function write(element, text) {
  if (element.textContent !== text)
    element.textContent = text;
}

function rows(parent, items, make, fill) {
  while (parent.children.length > items.length)
    parent.lastElementChild.remove();
  items.forEach((item, i) => fill(parent.children[i] ?? parent.appendChild(make()), item));
}

// Failed readings are gaps.
function spark(points, most) {
  const top = Math.max(most || 0, ...points.filter((p) => p != null), 1);
  const x = (i) => round(120 - (points.length - 1 - i) * 120 / (POINTS - 1), 1);
  const y = (v) => round(27 - v / top * 26, 1);
  let line = "", area = "", from = -1;
  points.forEach((v, i) => {
    if (v == null) {
      from = -1;
      return;
    }
    if (from < 0)
      from = i;
    line += `${from === i ? "M" : "L"}${x(i)} ${y(v)}`;
    if (i === points.length - 1 || points[i + 1] == null)
      area += `M${x(from)} 28${points.slice(from, i + 1).map((p, k) => `L${x(from + k)} ${y(p)}`).join("")}L${x(i)} 28Z`;
  });
  return { line, area };
}

class Card {
  constructor(gpu) {
    this.element = $("card").content.firstElementChild.cloneNode(true);
    this.points = READINGS.map(() => []);
    this.visible = true;
    for (const part of ["index", "name", "identity", "faults", "readings", "rest"])
      this[part] = this.element.querySelector("." + part);
    this.processes = this.element.querySelector("tbody");
    this.readings.append(...READINGS.map((reading) => {
      const row = $("reading").content.firstElementChild.cloneNode(true);
      row.querySelector("dt").textContent = reading.title;
      return row;
    }));
    this.element.id = "gpu-" + gpu.key;
  }

  take(gpu) {
    this.gpu = gpu;
    READINGS.forEach((reading, i) => {
      this.points[i].push(gpu.lost ? null : gpu.metrics[reading.metric] ?? null);
      if (this.points[i].length > POINTS)
        this.points[i].shift();
    });
  }

  draw() {
    const gpu = this.gpu;
    this.element.classList.toggle("faulty", gpu.faults.length > 0);
    this.element.classList.toggle("lost", gpu.lost);
    write(this.index, gpu.key);
    write(this.name, gpu.name);
    write(this.identity, `${gpu.uuid} · ${gpu.bus_id}`);
    write(this.rest, restOf(gpu));
    rows(this.faults, gpu.faults, () => document.createElement("li"), write);
    READINGS.forEach((reading, i) => this.drawReading(this.readings.children[i], reading, this.points[i]));
    rows(this.processes, gpu.processes, makeProcess, fillProcess);
    this.processes.parentElement.hidden = gpu.processes.length === 0;
  }

  drawReading(row, reading, points) {
    const m = this.gpu.metrics, value = m[reading.metric], shown = row.querySelector("dd");
    row.hidden = value === undefined;
    shown.classList.toggle("failed", value === null);
    write(shown, value == null ? "no reading" : reading.text(m, value));
    const path = spark(points, reading.most(m));
    row.querySelector(".line").setAttribute("d", path.line);
    row.querySelector(".area").setAttribute("d", path.area);
  }
}

function makeProcess() {
  const row = document.createElement("tr");
  for (let i = 0; i < 4; i++)
    row.appendChild(document.createElement("td")).className = i > 1 ? "number" : "";
  return row;
}

function fillProcess(row, p) {
  const pod = p.pod ? `${p.namespace}/${p.pod}${p.container ? "/" + p.container : ""}` : `pid ${p.pid}`;
  [p.workload, pod, `${gib(p.memory_bytes)} GiB`, `${p.utilization_percent} %`]
    .forEach((text, i) => write(row.children[i], text));
}

// --- the page ----------------------------------------------------------------------------------

const cards = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const card = cards.get(entry.target.id.slice(4));
    if (!card) continue;
    card.visible = entry.isIntersecting;
    if (card.visible) card.draw();
  }
}, { rootMargin: "400px" });

function keep(gpus) {
  for (const gpu of gpus)
    gpu.key = gpu.node === undefined ? `${gpu.index}` : `${gpu.node}/${gpu.index}`;
  const there = new Set(gpus.map((gpu) => gpu.key));
  for (const [key, card] of cards)
    if (!there.has(key)) {
      watcher.unobserve(card.element);
      card.element.remove();
      cards.delete(key);
    }
  for (const gpu of gpus) {
    gpu.faults = faultsOf(gpu);
    if (!cards.has(gpu.key)) {
      const card = new Card(gpu);
      cards.set(gpu.key, card);
      $("cards").append(card.element);
      watcher.observe(card.element);
    }
    cards.get(gpu.key).take(gpu);
  }
}

function show() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean), only = $("only").checked;
  for (const card of cards.values()) {
    card.element.hidden = !matches(card.gpu, words, only);
    if (card.visible && !card.element.hidden)
      card.draw();
  }
}

let last = { generation: -1 };

function summarize(view) {
  const sum = (pick) => view.gpus.reduce((total, gpu) => total + (gpu.lost ? 0 : pick(gpu.metrics) ?? 0), 0);
  const faulty = view.gpus.filter((gpu) => gpu.faults.length).length, n = view.gpus.length;
  const still = view.generation === last.generation;
  write($("summary"), [
    `${n} GPU${n === 1 ? "" : "s"}`,
    n ? `${round(sum((m) => m.utilization_gpu_percent) / n)} % busy` : "",
    `${round(sum((m) => m.power_usage_mw) / 1e6, 2)} kW`,
    `${gib(sum((m) => m.memory_used_bytes))} GiB in use`,
    faulty ? `${faulty} with faults` : "no faults",
    `up ${duration(view.time_ns)}${still ? ", clock stands still" : ""}`,
  ].filter(Boolean).join(" · "));
  document.title = (faulty ? `(${faulty}!) ` : "") + `${n} GPUs`;
  last = view;
}

function trouble(words) {
  $("trouble").hidden = !words;
  write($("trouble"), words);
}

async function ask() {
  const answer = await fetch("page.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok)
    throw new Error((await answer.text()).trim());
  return answer.json();
}

async function beat() {
  if (document.hidden)
    return;
  try {
    const view = await ask();
    keep(view.gpus);
    show();
    summarize(view);
    trouble("");
  } catch (error) {
    trouble(`No answer: ${error.message}. Asking again.`);
  }
}

async function live() {
  for (;;) {
    const began = performance.now();
    await beat();
    await new Promise((done) => setTimeout(done, Math.max(100, PERIOD_MS - (performance.now() - began))));
  }
}

$("find").addEventListener("input", show);
$("only").addEventListener("change", show);
live();
