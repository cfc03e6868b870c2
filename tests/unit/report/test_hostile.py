"""What others wrote (names, tracebacks, log lines, values) is shown as text or cut; no output obeys it."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import msgspec
import pytest
import synthetic_run

from pindiag import api
from pindiag.api.outcome import write
from pindiag.report.comparison import render_comparison
from pindiag.store import RunDirectory

from ..test_redacted_outputs import failing, planted
from .test_html import Page

LINE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"' onload=window.pwned=1 "
    "{{ 7*7 }} {% raw %} ${7*7} \x1b[2J\x1b]0;pwned\x07 \u202egnp\u2066 \x00 \u2028 ``` | [x](javascript:1) \ud83d"
)
NAME = "</script><script>window.pwned=1</script>{{ 7*7 }}'\"\u202e\x1b[31m.py"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028]")
LONG_BYTES = 10_000_000
MOST_BYTES = 2_000_000


class Hostile:
    """What `planted` and `failing` put in the place of words of others."""

    line = LINE.encode("utf-8", "replace").decode()
    secrets = (NAME,)
    cwd = "/tmp"
    folder = user = "x"


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    return synthetic_run.write_live_run(folder / "run", configurations=2, rounds=2, pairs=0, trace_kernels=5)


def renamed(value):
    """A record of a script of that name."""
    if isinstance(value, list):
        return [renamed(item) for item in value]
    if isinstance(value, dict):
        return {key: renamed(item) for key, item in value.items()}
    return value.replace("article_floats.py", NAME) if isinstance(value, str) else value


def written(clean, path, change):
    """A copy of a run with a change to its records, and its report."""
    run = RunDirectory.create(path)
    asked = clean.read_spec()
    target = asked.target.replace("article_floats.py", NAME)
    run.write_spec(msgspec.structs.replace(asked, target=target, args=["--x", Hostile.line]))
    records = renamed(change([json.loads(msgspec.json.encode(record)) for record in clean.records()]))
    (run.journal / "parent.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    run.sources.write_text("{}")
    run.target_log.write_text(Hostile.line)
    write(run, show_paths=False)
    return run


@pytest.fixture(scope="module", params=["fails", "measured"])
def run(request, clean, tmp_path_factory):
    changes = {
        "fails": lambda records: failing(records, Hostile),
        "measured": lambda records: [planted(record, Hostile) for record in records],
    }
    return written(clean, tmp_path_factory.mktemp("hostile") / "run", changes[request.param])


def obeys(html):
    """What in a page could act, beside its own style and script, which its policy names."""
    page = Page(html)
    for kind, content in re.findall(r"<(style|script)>(.*?)</\1>", html, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in html
    handlers = [name for _, name, _ in page.attributes if name.startswith("on") or name in ("style", "src")]
    links = [value for _, name, value in page.attributes if name.endswith("href") and not value.startswith("#")]
    return handlers, links, {"img", "iframe", "object", "form", "base", "link"} & set(page.tags)


def test_the_page_shows_it_and_holds_nothing_that_acts(run):
    html = run.report_html.read_text(encoding="utf-8")
    assert obeys(html) == ([], [], set())
    assert html.count("<script>") == 1
    text = Page(html).text
    assert "{{ 7*7 }}" in text
    assert "</script><script>window.pwned=1</script>" in text
    assert STEERING.search(html) is None


def test_summary_and_ticket_stay_plain(run):
    ticket = api.ticket(run.path, run.path / "t.zip").markdown
    for text in (run.summary_md.read_text(encoding="utf-8"), ticket):
        assert STEERING.search(text) is None
        assert text.count("```") % 2 == 0
        outside = re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL)
        assert re.search(r"(?<!\\)<(?:script|img|/script)", outside) is None


def test_report_json_is_json_without_characters_that_steer(run):
    raw = run.report_json.read_text(encoding="utf-8")
    assert json.loads(raw)["schema_version"]
    assert re.search("[\x00-\x08\x0b-\x1f]", raw) is None


def test_so_does_the_page_of_a_comparison(run):
    html = render_comparison(api.compare(run.path, run.path, force=True), "0")
    assert obeys(html) == ([], [], set())
    assert STEERING.search(html) is None


def test_a_line_of_ten_megabytes_is_cut(clean, tmp_path):
    """In a traceback, which is the longest text that a report holds."""

    def long(records):
        changed = failing(records, Hostile)
        for record in changed:
            if record["type"] == "target_failed":
                record["traceback"] += "ValueError: " + "x" * LONG_BYTES
        return changed

    run = written(clean, tmp_path / "run", long)
    html = run.report_html.read_text(encoding="utf-8")
    assert len(html.encode()) < MOST_BYTES
    assert re.search(r"cut, 1\d{7} characters", html)
    assert run.report_json.stat().st_size < MOST_BYTES
    assert run.summary_md.stat().st_size < 10_000
