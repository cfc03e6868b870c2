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
    "several": (example.several, example.SPEC),
    "no_difference": (example.no_difference, example.SPEC),
    "unsafe": (example.unsafe, example.SPEC),
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


@pytest.mark.parametrize("name", VARIANTS)
def test_the_page_never_scrolls_sideways(browser, files, name):
    """On a small phone, a phone, 1280 pixels zoomed to 200 %, and a desk."""
    with opened(browser, files / f"{name}.html") as (page, _, _):
        for width in (320, 390, 640, 1280):
            page.set_viewport_size({"width": width, "height": 720})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            kinds = page.locator("figure > svg:visible").evaluate_all("all => all.map(one => one.classList.value)")
            assert set(kinds) <= ({"narrow"} if width < 700 else {"wide"})


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


JUDGED = [
    "confirmed",
    "several",
    "no_difference",
    "unsafe",
    "failed",
    "interrupted",
    "cpu_baseline",
    "disagrees",
    "empty",
]
ALL = {"resultTypes": ["violations"], "preload": False}
MEDIA = [
    ({"color_scheme": "light"}, ALL),
    ({"color_scheme": "dark"}, {**ALL, "runOnly": ["color-contrast"]}),  # it differs in nothing else
    ({"media": "print"}, ALL),
]

WITHOUT_WHAT_IS_REPEATED = """() => {
  document.querySelectorAll("tbody").forEach((body) => [...body.rows].slice(3).forEach((row) => row.remove()));
  document.querySelectorAll("table").forEach((table) => [...table.tBodies].slice(3).forEach((body) => body.remove()));
  document.querySelectorAll("svg a[tabindex='-1']").forEach((mark) => mark.remove());
}"""
"""Rows of a table come from one line of a template, and axe takes seconds for hundreds of them: one page is judged
whole, of the others three rows of each table."""


@pytest.mark.parametrize("name", JUDGED)
def test_axe_finds_nothing_in_light_dark_and_print(browser, files, name):
    with opened(browser, files / f"{name}.html", bypass_csp=True) as (page, _, _):
        if name != "confirmed":
            page.evaluate(WITHOUT_WHAT_IS_REPEATED)
        for media, options in MEDIA:
            page.emulate_media(**media)
            found = axe.Axe().run(page, options=options).response["violations"]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], media


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
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.locator("button.copy").evaluate("one => one.remove()")
        whole = page.locator("body").text_content()
    with opened(browser, files / "confirmed.html", java_script_enabled=False) as (page, _, _):
        assert page.get_by_role("button").count() == 0
        assert page.locator("#rec-nw0-pin1-nb1").is_visible()
        assert "num_workers=0" in page.locator("[data-patch]").first.inner_text()
        assert page.locator("body").text_content() == whole


def test_a_figure_leads_to_its_blocks(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.locator(".lead a.rec").first.click()
        assert page.url.endswith("#rec-nw0-pin1-nb1")
        assert page.locator("tbody:target").inner_text().startswith("nw0-pin1-nb1")


def test_keyboard_reaches_the_verdict_first(browser, files):
    with opened(browser, files / "confirmed.html") as (page, _, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"


def test_everything_can_be_done_from_the_keyboard(browser, files):
    """Tab comes to all that can be used, shows where it is, and Enter uses it."""
    with opened(browser, files / "confirmed.html", bypass_csp=True) as (page, _, _):
        page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
        kinds = ("a[href]:not([tabindex='-1'])", "button", "summary", "[tabindex='0']")
        usable = page.locator(", ".join(f"{kind}:visible" for kind in kinds))
        page.evaluate(FOCUSED)
        for _ in range(usable.count()):
            page.keyboard.press("Tab")
        assert page.evaluate("[window.reached.size, window.unseen]") == [usable.count(), []]
        page.get_by_role("button", name="Copy").press("Enter")
        assert page.evaluate("window.copied") == example.PATCH
        head = page.get_by_role("region", name="Speed of all configurations").get_by_role("columnheader", name="wait")
        head.get_by_role("button").press("Space")
        assert head.get_attribute("aria-sort") == "descending"
        page.get_by_text("These steps in numbers").press("Enter")
        assert page.get_by_role("region", name="These steps in numbers").is_visible()
        page.set_viewport_size({"width": 320, "height": 720})
        page.get_by_role("region", name="Speed of all configurations").press("End")
        page.get_by_role("region", name="Speed of all configurations").press("ArrowRight")
        page.wait_for_function("document.activeElement.scrollLeft > 0")


FOCUSED = """() => {
  window.reached = new Set(); window.unseen = [];
  document.addEventListener("focusin", ({ target }) => {
    window.reached.add(target);
    if (getComputedStyle(target).outlineStyle === "none") window.unseen.push(target.outerHTML.slice(0, 80));
  });
}"""

DISPLAYED = "all => all.map(one => getComputedStyle(one).display)"
A4_LESS_MARGINS = {"width": 688, "height": 1000}
LOST = """() => [...document.querySelectorAll("main *, footer *")].filter((one) => {
  if (one.closest("nav, button") || one.closest("svg.narrow")) return false;
  const { width, right } = one.getBoundingClientRect();
  const boxless = getComputedStyle(one).display === "contents" || one.closest("svg");
  const hidden = one.textContent.trim() && !width && !boxless;
  return hidden || right > innerWidth + 1 || (one.clientWidth && one.scrollWidth > one.clientWidth + 1);
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("javascript", [True, False])
@pytest.mark.parametrize("name", ["confirmed", "several", "failed", "disagrees", "threads_lost"])
def test_nothing_is_lost_or_cut_in_print(browser, files, name, javascript):
    settings = {"viewport": A4_LESS_MARGINS, "java_script_enabled": javascript}
    with opened(browser, files / f"{name}.html", **settings) as (page, _, _):
        page.emulate_media(media="print")
        assert page.locator("body").evaluate(LOST) == []
        assert page.locator("figure svg.narrow:visible").count() == 0
        assert page.locator("figure svg.wide:visible").count() == page.locator("figure svg.wide").count()
        assert page.locator("button.copy:visible").count() == 0
        # A header that is repeated on the next page is printed without what is a box of its own in it.
        assert set(page.locator("th button").evaluate_all(DISPLAYED)) <= {"contents"}


def test_it_prints_to_a_pdf_of_many_pages(browser, files):
    with opened(browser, files / "confirmed.html") as (page, said, _):
        printed = page.pdf(format="A4", prefer_css_page_size=True)
        assert printed.startswith(b"%PDF-")
        assert int(re.search(rb"/Type /Pages\s*/Count (\d+)", printed)[1]) > 3
        assert said == []
