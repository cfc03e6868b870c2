import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest

from pindiag.errors import TemplateMissing
from pindiag.report import _templates, redact_report, render_html

from . import example, live

VARIANTS = {
    "confirmed": example.confirmed,
    "verified": example.verified,
    "sizes": example.sizes,
    "several": example.several,
    "unsafe": example.unsafe,
    "no_difference": example.no_difference,
    "suspected": example.suspected,
    "failed": example.failed,
    "interrupted": example.interrupted,
    "cpu_baseline": example.cpu_baseline,
    "empty": example.empty,
    "live": live.live,
    "agrees": live.agrees,
    "disagrees": live.disagrees,
    "threads_lost": live.threads_lost,
    "ceilings_alone": live.ceilings_alone,
}
SECTIONS = ["why", "sweep", "step", "time", "factors", "causes", "method", "records", "glossary"]


class Page(HTMLParser):
    """What stands in a page: ids, links, attributes, text."""

    def __init__(self, html):
        super().__init__()
        self.ids, self.targets, self.attributes, self.tags, self.words = [], [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            self.attributes.append((tag, name, value))
            if name == "id":
                self.ids.append(value)
            if name in ("href", "xlink:href") and value.startswith("#"):
                self.targets.append(value[1:])

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def spec_of(name):
    return example.BASELINE_SPEC if name in ("cpu_baseline", "ceilings_alone") else example.SPEC


def page_of(report, spec=example.SPEC, drawing=None):
    redacted = redact_report(report, spec)
    return render_html(redacted, drawing or example.drawing(redacted), spec)


@pytest.fixture(scope="module")
def pages():
    made = {}
    for name, make in VARIANTS.items():
        report = make()
        bare = name in ("failed", "empty")
        drawing = example.NO_DRAWING if bare else example.drawing(report, gpu=name != "cpu_baseline")
        made[name] = page_of(report, spec_of(name), drawing)
    return made


@pytest.fixture(params=VARIANTS)
def html(request, pages):
    return pages[request.param]


def test_every_section_is_there_and_every_link_leads_somewhere(html):
    page = Page(html)
    assert [one for one in SECTIONS if one not in page.ids] == []
    assert set(page.targets) - set(page.ids) == set()
    assert len(page.ids) == len(set(page.ids))


CHART = re.compile(r'<svg class="(?:narrow|wide)".*?</svg>', re.DOTALL)
FIGURE = re.compile(r"(?:not run: at most )?\d[\d\u202f]*(?:\.\d+)?(?: ×.*)?")


def test_every_figure_in_a_chart_leads_to_its_record(html):
    for svg in CHART.findall(html):
        root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
        parents = {child: parent for parent in root.iter() for child in parent}
        for text in root.iter("text"):
            above = [text]
            while above[-1] in parents:
                above.append(parents[above[-1]])
            on_axis = any("matplotlib.axis_" in (one.get("id") or "") for one in above)
            if not on_axis and FIGURE.fullmatch("".join(text.itertext()).strip()):
                assert any(one.tag == "a" and one.get("href", "").startswith("#rec-") for one in above), svg[:200]


def test_the_policy_holds_for_what_the_page_contains(html):
    page = Page(html)
    for kind in ("style", "script"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in html
    forbidden = {"style", "src", "srcset", "onclick", "onload", "formaction", "action", "background"}
    assert [one for one in page.attributes if one[1] in forbidden] == []
    assert not {"img", "link", "iframe", "object", "form", "base"} & set(page.tags)
    outside = [value for _, name, value in page.attributes if name.endswith("href") and not value.startswith("#")]
    assert outside == []


def test_size_and_one_heading(html):
    assert len(html.encode()) < 2_000_000
    assert Page(html).tags.count("h1") == 1


def test_no_stand_in_colour_is_left(html):
    assert re.search(r"#0(?P<n>[1-7])0(?P=n)0(?P=n)", html) is None


def test_names_paths_and_secrets_are_gone(html):
    for private in ("/home/ada", "s3cr3t-value-9"):
        assert private not in html
    assert "Redaction: on." in html


def test_same_report_same_bytes(pages):
    assert page_of(example.confirmed()) == pages["confirmed"]


def test_the_verdict_comes_with_its_gain_its_marks_and_its_patch(pages):
    text = Page(pages["confirmed"]).text
    assert "1.43 × faster" in text
    assert "Cause confirmed" in text
    assert "4 rounds; pindiag asks for 6" in text
    assert "Not verified in fresh pairs" in text
    assert "+ pin_memory=True," in text
    assert "Safety gate: not measured (the gate compares" in text
    assert '<strong><a class="rec" href="#rec-nw0-pin1-nb1" title="blocks ' in pages["confirmed"]


def test_headings_state_what_the_figures_show(pages):
    text = Page(pages["confirmed"]).text
    assert "Only “no workers, pin, non_blocking” and “no workers, pin, blocking” lie wholly above" in text
    assert "As recommended a step takes 13.6 instead of 19.6 ms: 8.5 ms less for the transfer and" in text
    assert "All 48 blocks were counted" in text
    assert "No configuration is faster than the script as written beyond the noise" in Page(pages["no_difference"]).text


def test_no_patch_is_shown_where_none_is_recommended(pages):
    for name in ("suspected", "unsafe", "no_difference", "interrupted", "failed", "empty", "cpu_baseline"):
        assert "data-patch" not in re.sub(r"<script>.*</script>", "", pages[name], flags=re.DOTALL), name


def test_fresh_pairs_are_shown_where_they_ran(pages):
    assert 'id="verification"' in pages["verified"]
    assert "4 fresh pairs that did not choose it bear the gain out" in Page(pages["verified"]).text
    assert 'id="verification"' not in pages["confirmed"]
    assert "not measured (the budget was spent)" in Page(pages["confirmed"]).text


def test_two_rounds_give_no_interval(pages):
    text = Page(pages["interrupted"]).text
    assert "Too few rounds for intervals: nothing is decided" in text
    assert "line: 95\u00a0% interval." not in text


def test_without_a_sweep_one_line_has_the_command(pages):
    text = Page(pages["cpu_baseline"]).text
    assert "To try other settings: pindiag run train.py --sweep" in text
    assert "No accelerator here" in text


def test_the_traceback_stands_there_once(pages):
    assert pages["failed"].count("mat1 and mat2 shapes") == 1


def test_every_block_has_its_line_and_every_gap_its_reason(pages):
    page = Page(pages["confirmed"])
    assert {f"block-{number}" for number in range(1, 49)} <= set(page.ids)
    for gap in example.confirmed().not_measured:
        assert gap.reason in page.text
    assert "failed: a worker was killed: /dev/shm is full" in page.text


def test_holes_say_why(pages):
    text = Page(pages["empty"]).text
    assert "not measured (no sample was taken)" in text
    assert "not measured (no profiler window was recorded)" in text


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202egnp.exe\u2066 {{ 7*7 }} "
    "'\" & $\\frac{1}{2}$ " + "x" * 9000
)


def test_hostile_text_is_shown_not_obeyed():
    report = example.confirmed()
    finding = msgspec.structs.replace(report.findings[0], title=HOSTILE, explanation=HOSTILE)
    trial = msgspec.structs.replace(report.trials[-1], reason=HOSTILE)
    hostile = msgspec.structs.replace(
        report,
        findings=[finding, *report.findings[1:]],
        trials=[*report.trials[:-1], trial],
        environment={**report.environment, "gpu": HOSTILE},
        target=msgspec.structs.replace(report.target, files_changed=[HOSTILE], exit=HOSTILE),
    )
    html = page_of(hostile)
    page = Page(html)
    assert html.count("<script>") == 1
    assert "img" not in page.tags
    for raw in ("\x1b", "\u202e", "\u2066"):
        assert raw not in html
    assert "␛[31m⟨U+202E⟩" in page.text
    assert "{{ 7*7 }}" in page.text
    assert re.search(r"cut, \d+ bytes", page.text)


def test_a_missing_template_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_templates.pindiag, "__file__", str(tmp_path / "pindiag" / "__init__.py"))
    with pytest.raises(TemplateMissing, match="templates"):
        _templates.template_root()


def test_templates_inside_the_package_win(tmp_path, monkeypatch):
    for folder in (tmp_path / "templates", tmp_path / "pindiag" / "templates"):
        folder.mkdir(parents=True)
        (folder / "report.html.j2").write_text("x")
    monkeypatch.setattr(_templates.pindiag, "__file__", str(tmp_path / "pindiag" / "__init__.py"))
    assert _templates.template_root() == tmp_path / "pindiag" / "templates"
    with pytest.raises(TemplateMissing, match=r"report\.css"):
        _templates.asset("report.css")
    with pytest.raises(TemplateMissing, match=r"summary\.md"):
        _templates.template("summary.md.j2")


def test_shown_paths_are_said_in_bold():
    report = redact_report(example.failed(), example.SPEC, show_paths=True)
    html = render_html(report, example.NO_DRAWING, example.SPEC)
    assert "<strong>Redaction of names and paths: off (--show-paths).</strong>" in html
    assert "/home/ada/work/train.py" in html


def test_ceilings_stand_on_the_first_screen_with_what_they_say(pages):
    screen = pages["live"].partition("<nav")[0]
    assert 'id="ceilings-wide-t">Only the pin thread is as slow as training<' in screen
    assert "The pin thread gives 3 610 samples/s at most." in Page(screen).text
    assert 'id="reached-wide-t"' not in pages["live"]
    assert "reached-wide-t" in pages["confirmed"]
    text = Page(pages["ceilings_alone"]).text
    assert "not measured (the script changes its batches in place)" in text
    assert "not measured (no pin thread was asked for)" in text


def test_the_sweep_and_its_table_hold_configurations_alone(pages):
    section = pages["live"].partition('<section id="sweep"')[2].partition("</section>")[0]
    assert "loader alone" not in section
    assert "its threads" not in section
    assert "not run: at most 1.08 ×" in section
    assert "not run: its ceiling cannot win; predicted at most 3 500 samples/s" in Page(section).text


def test_the_step_alone_stands_beside_the_configurations(pages):
    section = pages["live"].partition('<section id="step"')[2].partition("</section>")[0]
    assert ">Step alone</text>" in section
    assert "Loader alone" not in section


def test_tweaks_have_a_section_with_their_code(pages):
    section = pages["threads_lost"].partition('<section id="beyond"')[2].partition("</section>")[0]
    assert "<code>torch.set_num_threads(torch.get_num_threads())</code> at <code>train.py:20</code>" in section
    assert 'href="#rec-nw4-pin0-nb0+intraop_threads"' in section
    assert 'id="beyond"' not in pages["confirmed"]


def test_records_say_of_each_block_whether_it_ran_live(pages):
    records = pages["agrees"].partition('<section id="records"')[2]
    row = re.search(r'<tr id="block-2">(.*?)</tr>', records)[1]
    assert '<td class="n">3</td><td>live</td><td class="n">1</td>' in row
    assert "launch-003-4711.jsonl:11" in row
    assert "<td>fresh</td>" in re.search(r'<tr id="block-1000">(.*?)</tr>', records)[1]
    for kind in ("compute_only", "host_batch-pin1-nb1", "loader_only-nw8-pin1", "nw4-pin0-nb0+lazy_sync"):
        assert f'<tbody id="rec-{kind}">' in records


def test_where_live_and_fresh_disagree_both_ratios_stand_on_the_first_screen(pages):
    screen = Page(pages["disagrees"].partition("<nav")[0]).text
    assert "Live and fresh disagree: 1.43 × (1.11–1.85) live, 1.08 × (1.07–1.09) fresh; fresh decides" in screen
    section = Page(pages["disagrees"].partition('<section id="verification"')[2].partition("</section>")[0]).text
    assert "live, in one process 3 240 4 810 1.43 × (1.11–1.85) 4" in section
    assert "fresh pairs 3 280 3 530 1.08 × (1.07–1.09) 4" in section
