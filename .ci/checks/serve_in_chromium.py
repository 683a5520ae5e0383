"""Serves results and recordings and looks at them in headless Chromium.

The lists at both widths and in both themes, a report and a comparison opened from them and drawn, texts of a result that
look like markup, what a report may not do, and details of a recording.

usage: serve_in_chromium.py CHROMIUM KEEPUP PICTURES DIR...
"""
import json
import pathlib
import re
import subprocess
import sys
import urllib.request

from playwright.sync_api import sync_playwright

# What a stored report could try against the server that it came from.
ATTACK = """async () => {
    const tried = {};
    for (const [name, path, options] of [['read', '/api/v1/results', {}], ['command', '/api/v1/run/stop', { method: 'POST', body: '{}' }]]) {
        tried[name] = await fetch(path, options).then(() => 'let through', () => 'refused');
    }
    tried.origin = self.origin;
    try { tried.storage = localStorage.length; } catch { tried.storage = 'refused'; }
    try { tried.cookie = document.cookie; } catch { tried.cookie = 'refused'; }
    return tried;
}"""
DRAWN = """() => [...document.querySelectorAll('.plot')].map((plot) => plot.querySelectorAll('svg path').length)"""


def fetch(base, path):
    with urllib.request.urlopen(base + path, timeout=30) as answer:
        return json.load(answer)


def lists(browser, base, pictures):
    """The two tables, as wide as the page and with as many rows as there are entries."""
    results, recordings = fetch(base, "/api/v1/results"), fetch(base, "/api/v1/recordings")
    assert results["entries"] and recordings["entries"], (results, recordings)
    for width in (400, 1280):
        for theme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
            messages = []
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.goto(base)
            page.wait_for_selector("#catalog tbody tr")
            where = f"at {width} pixels, {theme}"
            rows = page.locator("#catalog .body > div:first-child > .wide tbody tr").count()
            assert rows == min(50, len(results["entries"])), f"{where}: {rows} rows"
            assert page.locator("#catalog .body > div:last-child > .wide tbody tr").count() == min(50, len(recordings["entries"]))
            wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wider <= 0, f"{where}: {wider} pixels wider than the page"
            assert not messages, f"{where}: {messages}"
            page.locator("#catalog .body").screenshot(path=pictures / f"catalog-{width}-{theme}.png")
            page.close()
    return results["entries"], recordings["entries"]


def looked_at(context, base):
    page = context.new_page()
    page.goto(base)
    page.wait_for_selector("#catalog tbody tr")
    return page


def reports(context, base, page, entries):
    """Opens a report by its link, and lets a script in it try what it must not."""
    with context.expect_page() as opened:
        page.locator("#catalog .body tbody tr a").first.click()
    report = opened.value
    refused = []
    report.on("requestfailed", lambda request: refused.append(request.url))
    report.wait_for_load_state()
    assert report.locator(".word").count() == 1, "the report has no verdict"
    tried = report.evaluate(ATTACK)
    assert tried == {"read": "refused", "command": "refused", "origin": "null", "storage": "refused", "cookie": "refused"}, tried
    report.close()
    charts = 0
    for entry in entries:
        report = context.new_page()
        messages = []
        report.on("pageerror", lambda error: messages.append(str(error)))
        answer = report.goto(f"{base}/results/{entry['id']}")
        assert answer.status == 200, (entry, answer.status)
        drawn = report.evaluate(DRAWN)
        assert all(shapes > 1 for shapes in drawn) and not messages, (entry["directory"], drawn, messages)
        before = report.evaluate("getComputedStyle(document.body).backgroundColor")
        report.click("#theme")
        assert report.evaluate("getComputedStyle(document.body).backgroundColor") != before, entry["directory"]
        charts += len(drawn)
        report.close()
    assert charts > 0
    return charts


def compared(context, page, entries):
    """Ticks three results, of which the last two are compared: they are the same test."""
    alike = [entry for entry in entries if "disk-v4" in entry["directory"]]
    assert len(alike) == 2, alike
    compare = page.get_by_text("Compare the two")
    others = [entry for entry in entries if entry not in alike][:1]
    for entry in others + alike:
        assert not compare.is_visible() or entry is alike[1]
        page.locator(f'[data-id="{entry["id"]}"]').check()
    assert page.locator("#catalog .body input:checked").count() == 2
    with context.expect_page() as opened:
        compare.click()
    report = opened.value
    report.wait_for_load_state()
    assert report.url.endswith(f"/compare?a={alike[0]['id']}&b={alike[1]['id']}"), report.url
    assert report.locator(".word").count() == 1, report.content()[:300]
    report.close()


def events_of_a_stream(page, pictures):
    """Opens a stream of a recording, and steps through its events."""
    page.get_by_text("browse events").first.click()
    place = page.locator(".browse")
    number, picture = place.locator("input[type=number]"), place.locator("canvas.picture")
    picture.wait_for(timeout=60_000)
    first, last = int(number.get_attribute("min")), int(number.get_attribute("max"))

    def shows(event):
        place.get_by_text(re.compile(f"^event {event:,} of 20")).wait_for(timeout=60_000)
        assert int(number.input_value()) == event

    shows(first)
    for button, event in [("next", first + 1), ("next", first + 2), ("before", first + 1), ("last", last), ("next", last), ("before", last - 1), ("first", first)]:
        place.get_by_text(button, exact=True).click()
        shows(event)
    number.fill(str(last - 2))
    number.press("Enter")
    shows(last - 2)
    drawn = picture.evaluate("(canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size")
    assert drawn > 2, "nothing is drawn"
    for width in (400, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"an event at {width} pixels: {wider} pixels wider than the page"
        place.screenshot(path=pictures / f"look-{width}.png")


def main():
    chromium, keepup, pictures = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    pictures.mkdir(parents=True, exist_ok=True)
    command = [keepup, "serve", "--http", "127.0.0.1:0", *sys.argv[4:]]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        base = next(line for line in server.stderr if line.startswith("live page: "))
        base = base.removeprefix("live page: ").split("/#")[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            entries, recordings = lists(browser, base, pictures)
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            page = looked_at(context, base)
            assert page.evaluate("document.querySelectorAll('#catalog .body b, #catalog .body script, #catalog .body img').length") == 0
            charts = reports(context, base, page, entries[:12])
            compared(context, page, entries)
            page.locator("#catalog .body > div:last-child details summary").first.click()
            page.locator("#catalog .body details[open] table tbody tr").first.wait_for(timeout=60_000)
            events_of_a_stream(page, pictures)
            page.locator("#catalog .body").screenshot(path=pictures / "catalog-recording.png")
            browser.close()
    finally:
        server.terminate()
    assert server.wait(timeout=60) == 0
    print(f"{len(entries)} results, {len(recordings)} recordings, {charts} charts in reports that may ask nothing")


main()
