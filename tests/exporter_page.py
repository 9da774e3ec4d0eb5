"""What a person sees on the exporter's live page, in a headless Chromium on a desktop and on a phone.

    exporter_page.py URL MOUNT

Prints a test line for each check, numbered from 1, and the plan at the end.

SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import sys
import tempfile
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tap import done, ok, until

URL, MOUNT = sys.argv[1], pathlib.Path(sys.argv[2])


def put(path, text):
    with open(MOUNT / path, "w") as f:
        f.write(text + "\n")


def start(profile):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
                 "disable-background-networking", "disable-component-update", "disable-dev-shm-usage",
                 "user-data-dir=" + profile):
        options.add_argument("--" + flag)
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def card(browser, gpu):
    return browser.find_element(By.ID, f"gpu-{gpu}").text


def saw(browser, gpu, name, *words):
    seen = until(lambda: card(browser, gpu), lambda text: all(w in text for w in words))
    ok(all(w in seen for w in words), name, seen)


def check_desktop(browser):
    browser.set_window_size(1280, 900)
    browser.get(URL)
    cards = until(lambda: browser.find_elements(By.TAG_NAME, "article"), lambda c: len(c) == 8)
    ok(len(cards) == 8, "there is one card for each GPU", len(cards))
    name = (MOUNT / "gpus/0/identity/name").read_text().strip()
    uuid = (MOUNT / "gpus/0/identity/uuid").read_text().strip()
    saw(browser, 0, "with its name and UUID", name, uuid)
    saw(browser, 0, "readings", "utilization", "memory", "power", "temperature", "clock", "400 W", "40.0 GiB")
    saw(browser, 1, "and the workload on it", "train", "default/trainer-0/main", "20.0 GiB", "%")
    saw(browser, 3, "an Xid is shown in words", "Xid 31")
    saw(browser, 5, "a GPU that fell off the bus, too", "fallen off the bus")
    color = browser.execute_script(
        "const li = document.querySelector('#gpu-3 .faults li');"
        "return getComputedStyle(li).color.match(/\\d+/g).map(Number)")
    ok(color[0] > 150 and color[0] > 2 * max(color[1:3]) - 40 and color[0] > color[1] + 80, "in red", color)
    ok("faulty" not in browser.find_element(By.ID, "gpu-0").get_attribute("class"),
       "a healthy GPU is not marked")


def check_live(browser):
    put("gpus/0/control/utilization_gpu_percent", "37")
    saw(browser, 0, "a change is seen without reloading", "37 %")
    length = "return document.querySelector('#gpu-0 .line').getAttribute('d').length"
    before = browser.execute_script(length)
    ok(until(lambda: browser.execute_script(length), lambda n: n > before) > before, "sparklines grow")
    put("gpus/0/control/utilization_gpu_percent", "auto")
    put("gpus/4/control/fault", "ecc dbe 1")
    saw(browser, 4, "a fault appears", "uncorrectable ECC")


def check_find(browser):
    visible = lambda: [a.get_attribute("id") for a in browser.find_elements(By.TAG_NAME, "article")
                       if a.is_displayed()]
    browser.find_element(By.ID, "find").send_keys("trainer-0")
    ok(until(visible, lambda v: v == ["gpu-1"]) == ["gpu-1"], "a pod can be found", visible())
    browser.find_element(By.ID, "find").clear()
    browser.find_element(By.ID, "find").send_keys(" ")
    browser.find_element(By.ID, "only").click()
    faulty = ["gpu-3", "gpu-4", "gpu-5"]
    ok(until(visible, lambda v: v == faulty) == faulty, "and the faulty ones", visible())


def check_phone(browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})
    browser.get(URL)
    until(lambda: browser.find_elements(By.TAG_NAME, "article"), lambda c: len(c) == 8)
    saw(browser, 0, "a phone shows it, too", "utilization")
    width = browser.execute_script("return document.documentElement.scrollWidth")
    ok(width <= 360, "and nothing is wider than its screen", width)
    lefts = browser.execute_script(
        "return [...document.querySelectorAll('article')].map(a => a.getBoundingClientRect().left)")
    ok(len(set(lefts)) == 1, "the cards stand below each other", lefts)


def check_requests(browser):
    urls = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    foreign = [u for u in urls if not u.startswith(URL) and not u.startswith("data:")]
    ok(urls and not foreign, "nobody but the exporter was asked", foreign)
    logs = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    ok(not logs, "the browser has nothing to complain about", logs)


def check_json():
    put("control/clock", "pause")
    put("gpus/6/control/fault", "sensor temperature_gpu_c")
    with urllib.request.urlopen(URL + "page.json") as answer:
        view = json.load(answer)
    wrong = [(gpu["index"], name, value)
             for gpu in view["gpus"] if not gpu["lost"] for name, value in gpu["metrics"].items()
             if value is not None
             and value != int((MOUNT / f"gpus/{gpu['index']}/metrics/{name}").read_text())]
    ok(len(view["gpus"]) == 8 and not wrong, "page.json has what the files have", wrong)
    metrics = view["gpus"][6]["metrics"]
    ok("temperature_gpu_c" in metrics and metrics["temperature_gpu_c"] is None,
       "a sensor that does not answer is null", metrics)
    ok("fan_speed_percent" not in metrics, "what a GPU does not have is not there")


def main():
    with tempfile.TemporaryDirectory() as profile:
        browser = start(profile)
        try:
            check_desktop(browser)
            check_live(browser)
            check_find(browser)
            check_phone(browser)
            check_requests(browser)
            check_json()
        finally:
            browser.quit()
    done()


main()
