"""Drives the live page of a fleet in headless Chromium: two recorders and a spare on this machine, one recorder is killed, the
page stops the run. Metrics are read by Prometheus' own tools.

usage: fleet_in_chromium.py CHROMIUM KEEPUP PICTURES SCRATCH
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.request

from playwright.sync_api import sync_playwright
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from live_in_chromium import WIDTHS, holds, until, word

HOSTS = (("daq1", "recorder"), ("daq2", "recorder"), ("daq3", "spare"))


def free_ports(number):
    """Consecutive ports that are free now."""
    for first in range(21_000, 30_000, 10):
        try:
            for port in range(first, first + number):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports")


def fleet_file(keepup, scratch, controller):
    text = f'name = "hall"\nlisten = "127.0.0.1:{controller}"\n[timing]\nlease = "3 s"\n[launcher]\npreset = "local"\nprogram = "{keepup}"\n'
    for name, role in HOSTS:
        volume = scratch / name
        volume.mkdir(parents=True)
        text += f'[[host]]\nname = "{name}"\nrole = "{role}"\nvolumes = ["{volume}"]\ndata = "127.0.0.1"\n'
    (scratch / "hall.toml").write_text(text)


def agent(controller, name):
    """Process of the agent that the controller started for a host."""
    children = subprocess.run(["pgrep", "-P", str(controller), "-a"], capture_output=True, text=True).stdout.splitlines()
    found = [line for line in children if line.endswith(f"--name {name}")]
    return int(found[0].split()[0])


def metrics(page):
    with urllib.request.urlopen(f"{page}metrics") as answer:
        text = answer.read().decode()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    asked = urllib.request.Request(f"{page}metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    with urllib.request.urlopen(asked) as answer:
        families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    received = {sample.labels["host"]: sample.value for sample in families["keepup_received_bytes"].samples}
    assert received["daq1"] > 0 and received["daq2"] > 0, received
    print(f"{len(families)} families of metrics, by promtool and by the reference parser")


def cell(name, title):
    """Text of a host's cell, as an expression of the page."""
    row = f"[...document.querySelectorAll('#hosts tbody tr')].find((row) => row.textContent.startsWith('{name}'))"
    return f"{row}?.querySelector('td[data-name=\"{title}\"]')?.textContent"


def look(page, pictures, name):
    for width, theme in zip(WIDTHS, ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'; document.dispatchEvent(new Event('themechange'))")
        page.wait_for_timeout(300)
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{name} at {width}: {wider} pixels wider than the page"
        page.screenshot(path=pictures / f"fleet-{name}-{width}-{theme}.png", full_page=True)


def watch(page, url, pictures, controller):
    messages = []
    page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(url)
    word(page, "RECORDING")
    for name in ("daq1", "daq2"):
        holds(page, f"{cell(name, 'state')} === 'recording' && /[1-9].*B\\/s/.test({cell(name, 'in')})")
    assert page.evaluate(cell("daq3", "state")) == "in reserve"
    hidden = page.evaluate("['volumes', 'streams', 'machine', 'catalog'].every((id) => document.getElementById(id)?.hidden ?? true)")
    assert hidden, "a section without content is shown"
    look(page, pictures, "recording")
    metrics(page.url)
    os.kill(agent(controller.pid, "daq1"), signal.SIGKILL)
    holds(page, f"{cell('daq1', 'state')} === 'LOST' && {cell('daq3', 'state')} === 'recording'")
    holds(page, "document.getElementById('warnings').textContent.includes('the streams of daq1 moved to daq3')")
    page.wait_for_selector("#moves li")
    look(page, pictures, "lost")
    page.click("#do-stop")
    page.click("#do-stop-now")
    word(page, "SEALED")
    assert not messages, messages


def main():
    chromium, keepup = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    pictures, scratch = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]).resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    port = free_ports(4)
    fleet_file(keepup, scratch, port + 3)
    log = scratch / "record.log"
    flags = ["--fleet-output", "runs", "--fleet-port", str(port), "--http", "127.0.0.1:0", "--pool", "64 MiB", "--json"]
    controller = subprocess.Popen([keepup, "record", "--fleet", "hall.toml", *flags], cwd=scratch,
                                  stdout=(scratch / "record.json").open("w"), stderr=log.open("w"))
    url = until("the page's address", lambda: re.search(r"live page: (\S+)", log.read_text())).group(1)
    until("the recorders listen", lambda: "recording hall-run-1 on 2 recorders" in log.read_text())
    source = subprocess.Popen([keepup, "source", "romanis", "--to", f"127.0.0.1:{port}", "--to", f"127.0.0.1:{port + 1}", "--streams", "16",
                               "--event", "20 kB", "--rate", "8 MB/s", "--time", "600s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            watch(browser.new_page(viewport={"width": 1280, "height": 900}), url, pictures, controller)
            browser.close()
        assert controller.wait(60) == 1, log.read_text()
        moves = json.loads((scratch / "record.json").read_text())["moves"]
        assert [(move["from"], move["to"]) for move in moves] == [("daq1", "daq3")], moves
        print("two recorders and a spare: one killed, its streams moved, stopped by the page")
    finally:
        source.kill()  # Otherwise it would wait for its recorders.
        source.wait()
        controller.terminate()
        controller.wait()


if __name__ == "__main__":
    main()
