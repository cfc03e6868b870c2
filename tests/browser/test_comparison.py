"""The page of `pindiag compare` in Debian's chromium: it loads nothing, fits, and can be used by everyone."""

import msgspec
import pytest

from pindiag import api
from pindiag.report.comparison import render_comparison
from pindiag.store import RunDirectory

from ..unit.report import example, live
from .test_report import axe, browser, opened  # noqa: F401 - a fixture is used by its name

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Of two runs that differ in all that can differ."""
    folder = tmp_path_factory.mktemp("compared")
    for name, report, machine in (("base", example.confirmed(), "a"), ("new", live.agrees(), "b")):
        run = RunDirectory.create(folder / f"{name}-with-a-rather-long-name-as-runs-have-them")
        run.write_spec(msgspec.structs.replace(example.SPEC, args=[name]))
        run.write_report(msgspec.structs.replace(report, environment={"machine": machine, "torch": name}))
    compared = api.compare(*sorted(folder.iterdir()), force=True)
    (folder / "page.html").write_text(render_comparison(compared, "0"), encoding="utf-8")
    return folder / "page.html"


@pytest.mark.parametrize("media", [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"media": "print"}])
def test_axe_finds_nothing_and_nothing_is_loaded(browser, page_file, media):  # noqa: F811
    with opened(browser, page_file) as (page, said, asked):
        page.emulate_media(**media)
        assert axe.Axe().run(page).response["violations"] == []
        assert (said, asked) == ([], [page_file.as_uri()])


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_the_page_never_scrolls_sideways_and_reads_without_javascript(browser, page_file, width):  # noqa: F811
    size = {"width": width, "height": 720}
    with opened(browser, page_file, viewport=size, java_script_enabled=False) as (page, _, _):
        assert page.locator("html").evaluate("one => one.scrollWidth") <= width
        assert page.locator("h1").inner_text().startswith(("As written", "No difference"))
        assert page.get_by_text("The runs are of unlike machines.").is_visible()
