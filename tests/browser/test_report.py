"""A report in Debian's chromium: it loads nothing, says nothing on the console, fits, and can be used by everyone."""

import os
import re
import shutil
from contextlib import contextmanager

import pytest

from pindiag.report import redact_report, render_html

from ..unit.report import example, live

pytestmark = pytest.mark.browser

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECTIONS = ["why", "sweep", "step", "time", "factors", "causes", "method", "records", "glossary"]
VARIANTS = {
    "confirmed": (example.confirmed, example.SPEC),
    "verified": (example.verified, example.SPEC),
    "failed": (example.failed, example.SPEC),
    "interrupted": (example.interrupted, example.SPEC),
    "cpu_baseline": (example.cpu_baseline, example.BASELINE_SPEC),
    "empty": (example.empty, example.SPEC),
    "disagrees": (live.disagrees, example.SPEC),
    "ceilings_alone": (live.ceilings_alone, example.BASELINE_SPEC),
    "threads_lost": (live.threads_lost, example.SPEC),
}


@pytest.fixture(scope="module")
def browser():
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"no chromium at {CHROMIUM}: the browser tests need Debian's package")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, (make, spec) in VARIANTS.items():
        report = redact_report(make(), spec)
        drawing = example.drawing(report) if report.trials else example.NO_DRAWING
        (folder / f"{name}.html").write_text(render_html(report, drawing, spec), encoding="utf-8")
    return folder


@contextmanager
def opened(browser, path, **settings):
    """A page, and all that it said or asked for."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}, **settings})
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page, said, asked
    finally:
        context.close()


@pytest.mark.parametrize("name", VARIANTS)
def test_it_is_silent_alone_and_complete(browser, files, name):
    path = files / f"{name}.html"
    with opened(browser, path) as (page, said, asked):
        assert said == []
        assert asked == [path.as_uri()]
        assert [one for one in SECTIONS if page.locator(f"section#{one} h2").count() != 1] == []
        assert page.locator("h1").inner_text()


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_page_never_scrolls_sideways(browser, files, name, width):
    with opened(browser, files / f"{name}.html", viewport={"width": width, "height": 844}) as (page, _, _):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown = page.locator("figure > svg:visible")
        kinds = {shown.nth(index).get_attribute("class") for index in range(shown.count())}
        assert kinds <= ({"narrow"} if width < 700 else {"wide"})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["disagrees", "ceilings_alone", "threads_lost"])
def test_verdict_patch_and_ceilings_are_above_the_fold(browser, files, name, scheme):
    with opened(browser, files / f"{name}.html", color_scheme=scheme) as (page, _, _):
        for part in ("h1", ".lead", ".sure", ".patch", ".first figure > svg.wide"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= 720, part


def test_a_phones_first_screen_holds_verdict_patch_and_ceilings(browser, files):
    with opened(browser, files / "threads_lost.html", viewport={"width": 390, "height": 844}) as (page, _, _):
        for part in ("h1", ".lead", ".patch", ".first figure > svg.narrow"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= 844, part


@pytest.mark.parametrize("media", ["light", "dark", "print"])
@pytest.mark.parametrize("name", ["confirmed", "failed", "cpu_baseline", "empty", "disagrees", "ceilings_alone"])
def test_axe_finds_nothing(browser, files, name, media):
    settings = {} if media == "print" else {"color_scheme": media}
    with opened(browser, files / f"{name}.html", **settings, bypass_csp=True) as (page, _, _):
        if media == "print":
            page.emulate_media(media="print")
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []


def test_the_copy_button_copies_the_whole_patch(browser, files):
    with opened(browser, files / "confirmed.html") as (page, said, _):
        page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
        page.get_by_role("button", name="Copy").click()
        assert page.get_by_role("button", name="Copied").is_visible()
        assert page.evaluate("window.copied") == example.PATCH
        assert said == []


def test_without_a_clipboard_the_patch_is_selected(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; }")
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name=re.compile("Selected")).wait_for()
        assert "pin_memory=True" in page.evaluate("getSelection().toString()")


def test_a_column_sorts_both_ways_and_gaps_stay_last(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        table = page.get_by_role("region", name="Speed of all configurations")
        head = table.get_by_role("columnheader", name="wait")
        cells = "rows => rows.map(row => row.cells[5] ? parseFloat(row.cells[5].dataset.v) : null)"
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        falling = table.locator("tbody tr").evaluate_all(cells)
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        rising = table.locator("tbody tr").evaluate_all(cells)
        assert falling[-1] is None
        assert rising[-1] is None
        assert falling[:-1] == sorted(falling[:-1], reverse=True)
        assert rising[:-1] == sorted(rising[:-1])
        assert len(set(rising)) > 5


def test_it_reads_without_javascript(browser, files):
    with opened(browser, files / "confirmed.html", java_script_enabled=False) as (page, _, _):
        assert page.get_by_role("button").count() == 0
        assert page.locator("#rec-nw0-pin1-nb1").is_visible()
        assert "num_workers=0" in page.locator("[data-patch]").first.inner_text()


def test_a_figure_leads_to_its_blocks(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.locator(".lead a.rec").first.click()
        assert page.url.endswith("#rec-nw0-pin1-nb1")
        assert page.locator("tbody:target").inner_text().startswith("nw0-pin1-nb1")


def test_keyboard_reaches_the_verdict_first(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"


def test_print_shows_wide_charts_and_no_buttons(browser, files):
    with opened(browser, files / "confirmed.html", viewport={"width": 390, "height": 844}) as (page, _, _):
        page.emulate_media(media="print")
        assert page.locator("figure svg.narrow:visible").count() == 0
        assert page.locator("figure svg.wide:visible").count() == page.locator("figure svg.wide").count()
        assert page.locator("button.copy:visible").count() == 0
