"""Opens HTML reports in headless Chromium and looks at what is there.

For every report, in both themes and at both widths: no message on the console, no request but the file itself, every chart
drawn with data, nothing wider than the page; and it prints to PDF with its charts.

usage: report_in_chromium.py CHROMIUM PICTURES REPORT.html...
"""
import pathlib
import sys

from playwright.sync_api import sync_playwright

WIDTHS = (400, 1280)
THEMES = ("light", "dark")
LARGEST_BYTES = 1_500_000

# What of each chart is drawn: shapes beyond axes, and whether the drawing is as wide as its place.
DRAWN = """() => [...document.querySelectorAll('.plot')].map((plot) => {
    const option = JSON.parse(document.getElementById('chart-' + plot.dataset.chart).textContent);
    const svg = plot.querySelector('svg');
    return {
        title: plot.getAttribute('aria-label'),
        points: option.series.reduce((sum, one) => sum + one.data.length, 0),
        series: option.series.length,
        shapes: svg ? svg.querySelectorAll('path, rect, circle').length : 0,
        width: svg ? svg.getBoundingClientRect().width : 0,
        room: plot.getBoundingClientRect().width,
        words: svg ? svg.querySelectorAll('text').length : 0,
    };
})"""


def look(page, report, width, theme):
    """One report at one width in one theme; returns how many charts it has."""
    messages, requests = [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.resolve().as_uri())
    where = f"{report.name} at {width} pixels, {theme}"
    charts = page.evaluate(DRAWN)
    for chart in charts:
        assert chart["series"] > 0 and chart["points"] > 0, f"{where}: no data: {chart}"
        assert chart["shapes"] > 5 and chart["words"] > 2, f"{where}: not drawn: {chart}"
        assert abs(chart["width"] - chart["room"]) < 2, f"{where}: not as wide as its place: {chart}"
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{where}: {wider} pixels wider than the page"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (theme == "light"), f"{where}: background {background}"
    top = page.evaluate("[...document.querySelectorAll('.word, .glance h2')].map((e) => e.getBoundingClientRect().top)")
    assert top and max(top) < 800, f"{where}: verdict, limit and what was not tested are not on the first screen: {top}"
    page.click("#theme")
    turned = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert turned != background, f"{where}: the button does not change the theme"
    page.click("#theme")
    assert len(page.evaluate(DRAWN)) == len(charts), where
    assert not messages, f"{where}: {messages}"
    others = [url for url in requests if not url.startswith("file:") or not url.endswith(report.name)]
    assert not others and len(requests) == 1, f"{where}: requests {requests}"
    return len(charts)


def main():
    chromium, pictures = sys.argv[1], pathlib.Path(sys.argv[2])
    pictures.mkdir(parents=True, exist_ok=True)
    charts = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for report in map(pathlib.Path, sys.argv[3:]):
            assert report.stat().st_size < LARGEST_BYTES, f"{report}: {report.stat().st_size} bytes"
            for width in WIDTHS:
                for theme in THEMES:
                    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
                    found = look(page, report, width, theme)
                    page.screenshot(path=pictures / f"{report.stem}-{width}-{theme}.png", full_page=True)
                    page.close()
            page = browser.new_page(color_scheme="dark")
            page.goto(report.resolve().as_uri())
            pdf = page.pdf(path=pictures / f"{report.stem}.pdf", format="A4")
            assert pdf.startswith(b"%PDF") and len(pdf) > 10_000, f"{report.name}: a PDF of {len(pdf)} bytes"
            after = page.evaluate(DRAWN)
            assert all(abs(chart["width"] - chart["room"]) < 2 for chart in after), f"{report.name}: after printing {after}"
            page.close()
            charts += found
        browser.close()
    print(f"{len(sys.argv) - 3} reports with {charts} charts: drawn, silent, no request, in both themes and widths")
    assert charts > 0


main()
