"""Drives the live page in headless Chromium: a run from configuration to a sealed recording, by the page alone.

A detector sends to a recorder with two volumes, one of them a small file system that fills up, so that a volume fails while
the page is looked at. Then the same by `keepup ctl` alone. Metrics are read by Prometheus' own tools on the way, events by the
subscriber of the book.

usage: live_in_chromium.py CHROMIUM KEEPUP PICTURES SCRATCH BOOK
"""
import errno
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from playwright.sync_api import sync_playwright
from prometheus_client.openmetrics.parser import text_string_to_metric_families

WIDTHS = (400, 1280)
PAGE_BYTES_MAX = 1_500_000


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


class Recorder:
    """`keepup record --controlled` with a page."""

    def __init__(self, keepup, scratch, volumes, name):
        self.log = scratch / f"{name}.log"
        arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--controlled", "--segment", "64 MiB",
                     "--pool", "64 MiB"]
        for volume in volumes:
            arguments += ["--volume", str(volume)]
        self.process = subprocess.Popen(arguments, stdout=(scratch / f"{name}.out").open("w"), stderr=self.log.open("w"))
        found = until("the page's address", lambda: re.search(r"live page: (http://([^/]+)/)#token=(\S+)", self.log.read_text()))
        self.page, self.host, self.token = found.groups()

    def get(self, path, headers=None):
        with urllib.request.urlopen(urllib.request.Request(self.page + path, headers=headers or {})) as answer:
            return answer.read().decode()

    def state(self):
        return json.loads(self.get("api/v1/run"))

    def end(self):
        self.process.terminate()
        return self.process.wait(60)


def detector(keepup, address, seconds):
    return subprocess.Popen([keepup, "source", "csl-old", "--to", address, "--time", f"{seconds}s", "--buffer", "1 GB"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def look(page, pictures, name):
    """Pictures at both widths in both themes; nothing may be wider than the page."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'; document.dispatchEvent(new Event('themechange'))")
            page.wait_for_timeout(1300)
            wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wider <= 0, f"{name} at {width}: {wider} pixels wider than the page"
            page.screenshot(path=pictures / f"live-{name}-{width}-{theme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})


def holds(page, expression, seconds=60):
    """Waits until it is true. The page's own policy forbids the ways of waiting that put text into scripts."""
    until(expression, lambda: page.evaluate(expression), seconds)


def word(page, wanted, seconds=60):
    holds(page, f"document.querySelector('#headline .word')?.textContent === '{wanted}'", seconds)


def first_paint(page, recorder):
    """How long it takes until something is seen, and how much comes over the line."""
    page.goto(f"{recorder.page}#token={recorder.token}")
    word(page, "IDLE")
    holds(page, "typeof echarts !== 'undefined'")
    total = page.evaluate("""() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .reduce((sum, entry) => sum + entry.decodedBodySize, 0)""")
    assert total < PAGE_BYTES_MAX, f"the page has {total} bytes"
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    print(f"first paint after {paint:.0f} ms, {total} bytes")
    assert recorder.token not in page.url, "the token stays out of the address"


def by_the_page(page, recorder, keepup, pictures):
    messages = []
    page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    first_paint(page, recorder)
    look(page, pictures, "idle")
    page.fill("#settings input[name=run]", "17")
    page.fill("#settings input[name=name]", "by-the-page")
    page.click("#settings >> text=add entry")
    page.fill("#settings input[name=key]", "sample")
    page.fill("#settings input[name=value]", "quartz <b>bold</b>")
    page.click("#settings button[type=submit]")
    word(page, "CONFIGURED")
    page.click("#do-arm")
    word(page, "ARMED")
    assert page.is_disabled("#do-arm") and page.is_enabled("#do-start")
    page.click("#do-start")
    word(page, "RECORDING")
    source = detector(keepup, recorder.state()["listen"], 600)
    holds(page, "[...document.querySelectorAll('.tile b')].some((b) => /^1[5-9]|^2[0-9]/.test(b.textContent))")
    holds(page, "document.querySelectorAll('#flow .plot svg path').length > 10")
    page.wait_for_selector("#worst button")
    page.click("#worst button")
    page.click("text=show its events")
    holds(page, "!document.querySelector('canvas.picture').hidden")
    return source, messages


def metrics(recorder):
    text = recorder.get("metrics")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    text = recorder.get("metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
    families = {family.name: family for family in text_string_to_metric_families(text)}
    received = families["keepup_received_bytes"].samples[0].value
    assert received > 1e6, f"{received} bytes received"
    print(f"{len(families)} families of metrics, by promtool and by the reference parser")


def subscribe(recorder, book):
    """The subscriber of the book, as it stands there."""
    program = re.search(r"```python\n(.*?)```", (book / "live.md").read_text(), re.S).group(1)
    environment = {**os.environ, "KEEPUP": recorder.host}
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("stream")]
    assert len(lines) >= 5, done.stdout
    print(f"the book's subscriber: {lines[-1]}")


def fill(volume):
    """Takes the free space except for a MiB, however much the recorder uses meanwhile."""
    with (volume / "ballast").open("wb") as ballast:
        while (left := (room := os.statvfs(volume)).f_bavail * room.f_frsize - (1 << 20)) > 0:
            try:
                os.posix_fallocate(ballast.fileno(), 0, os.fstat(ballast.fileno()).st_size + left)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def a_volume_fails(page, recorder, pictures, source):
    """The small volume is full after some seconds; the page says so while the other one goes on."""
    page.wait_for_selector("#warnings:not([hidden]) >> text=takes no more data", timeout=120_000)
    page.wait_for_selector("#volumes .bad-text")
    look(page, pictures, "failed-volume")
    assert recorder.state()["state"] == "recording", "the other volume goes on"
    page.click("#do-stop")
    page.click("#do-not-stop")
    page.click("#do-stop")
    assert recorder.state()["state"] == "recording", "one click does not stop"
    name = recorder.state()["name"]
    assert name in page.inner_text("#do-stop-now"), "the second step names the run"
    page.click("#do-stop-now")
    word(page, "SEALED", 120)
    look(page, pictures, "sealed")
    source.terminate()
    source.wait()
    # What was recorded is opened where it was made.
    holds(page, "[...document.querySelectorAll('#catalog summary')].length > 0")
    page.locator("#catalog summary", has_text="streams and volumes").first.click()
    page.get_by_text("browse events").first.click()
    page.locator(".browse canvas.picture").wait_for(timeout=60_000)
    look(page, pictures, "opened")


def by_ctl(keepup, recorder, scratch):
    environment = {**os.environ, "KEEPUP_TOKEN": recorder.token}

    def ctl(*words, code=0):
        command = [keepup, "ctl", "--to", recorder.page.rstrip("/"), *words]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=120)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    ctl("configure", "--name", "by-ctl", "--meta", "sample=quartz", "--stop-after", "200 events", "--volume", str(scratch / "good"))
    ctl("start", code=3)
    ctl("arm")
    ctl("start")
    source = detector(keepup, recorder.state()["listen"], 30)
    ctl("wait", "sealed", "--timeout", "60s")
    source.terminate()
    source.wait()
    last = recorder.state()["last"]
    assert last["received"]["events"] >= 200 and last["received"] == last["durable"], last
    assert "by-ctl" in ctl("recordings").splitlines()[0]
    assert "sample: quartz" in ctl("info", "last")
    ctl("cat", "last", "--from", "199", "--out", str(scratch / "event.raw"))
    assert (scratch / "event.raw").stat().st_size > 100_000
    return last


def opened(keepup, recording, run, sample):
    """The recording can be opened, and has what was said of it."""
    told = json.loads(subprocess.run([keepup, "info", recording, "--json"], check=True, capture_output=True, text=True).stdout)
    assert told["run"] == run and told["metadata"]["sample"] == sample, told
    verified = subprocess.run([keepup, "verify", recording], capture_output=True, text=True)
    print(verified.stdout.splitlines()[-1] if verified.stdout else verified.stderr)
    return verified.returncode


def main():
    chromium, keepup = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    pictures, scratch, book = map(pathlib.Path, sys.argv[3:6])
    pictures.mkdir(parents=True, exist_ok=True)
    (scratch / "good").mkdir(parents=True)
    (scratch / "small").mkdir()
    small = scratch / "small.img"
    with small.open("wb") as file:
        file.truncate(900 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(small)], check=True)
    subprocess.run(["mount", "-o", "loop", str(small), str(scratch / "small")], check=True)
    try:
        recorder = Recorder(keepup, scratch, [scratch / "good", scratch / "small"], "live")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            source, messages = by_the_page(page, recorder, keepup, pictures)
            look(page, pictures, "recording")
            metrics(recorder)
            subscribe(recorder, book)
            # What is left on the small volume goes while it is watched.
            fill(scratch / "small")
            a_volume_fails(page, recorder, pictures, source)
            assert not messages, messages
            assert "quartz <b>bold</b>" in page.eval_on_selector("#settings input[name=value]", "(input) => input.value")
            browser.close()
        opened(keepup, str(scratch / "good" / "by-the-page"), 17, "quartz <b>bold</b>")
        last = by_ctl(keepup, recorder, scratch)
        assert opened(keepup, str(scratch / "good" / "by-ctl"), last["run"], "quartz") == 0
        recorder.end()
        print("a run by the page, a run by ctl, a volume that failed in between")
    finally:
        subprocess.run(["umount", str(scratch / "small")], check=False)


if __name__ == "__main__":
    main()
