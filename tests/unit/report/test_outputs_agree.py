"""report.html, summary.md and report.json say the same: each is read on its own, and all their figures are compared."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest

from pindiag import figures
from pindiag.api.demonstration import demo
from pindiag.report import redact_report, render_html, render_markdown

from . import example, live

NUMBER = re.compile(r"\d[\d\u202f]*(?:\.\d+)?")
EXAMPLES = {
    "several": example.several,
    "sizes": example.sizes,
    "no_difference": example.no_difference,
    "unsafe": example.unsafe,
    "interrupted": example.interrupted,
    "disagrees": live.disagrees,
    "threads_lost": live.threads_lost,
}
COLUMNS = {
    "samples/s": (("samples_per_second", "median"), figures.significant),
    "× as written": (("versus_baseline", "ratio"), lambda value: f"{value:.2f}"),
    "Holm p": (("versus_baseline", "p_corrected"), figures.p_value),
    **{name: (("stage_ms", name), figures.milliseconds) for name in ("wait", "transfer", "optimizer", "script")},
    "pinned": (("memory_bytes", "pinned"), figures.byte_size),
    "shared": (("memory_bytes", "shm"), figures.byte_size),
    "main process": (("sampler", "main_cpu_percent"), figures.count),
    "one worker": (("sampler", "worker_cpu_percent"), figures.count),
    "start-up, s": (("startup_s",), lambda value: f"{value:.2f}"),
    "epoch": (("epoch_s",), figures.duration),
    "GPU: kernels": (("gpu", "kernel_ms"), figures.milliseconds),
    "copies, GB/s": (("gpu", "copy_gb_per_s"), figures.significant),
    "worker: fetch": (("worker_ms", "fetch"), figures.milliseconds),
    "hand-off": (("worker_ms", "hand_off"), figures.milliseconds),
}
"""Columns of the page's tables of trials: where their figures stand in report.json, and how they are written."""


class Tables(HTMLParser):
    """The rows of a page as lists of texts, under the column names of their table, and all that can be read."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.words, self._columns, self._row, self._link, self._hidden = [], [], [], None, None, False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self._hidden = tag in ("style", "script")
        if tag == "tr":
            self._row, self._link, self._id = [], None, given.get("id")
        elif tag in ("td", "th") and self._row is not None:
            self._row.append("")
        elif tag == "a" and given.get("href", "").startswith("#rec-"):
            self._link = self._link or given["href"].removeprefix("#rec-")

    def handle_endtag(self, tag):
        if tag == "thead":
            self._columns = self.rows.pop()[2]
        elif tag == "tr":
            self.rows.append((self._id, self._link, self._row, self._columns))
            self._row = None

    def handle_data(self, data):
        if self._hidden:
            return
        self.words.append(data)
        if self._row:
            self._row[-1] += data

    def cells(self):
        """Trial, column and text of each cell of a row that leads to a trial's record."""
        for _, trial, texts, columns in self.rows:
            if trial and len(texts) == len(columns):
                yield from ((trial, column, text) for column, text in zip(columns[1:], texts[1:], strict=True))

    def blocks(self):
        """The rows of the records, by block."""
        of_blocks = [one for one in self.rows if (one[0] or "").startswith("block-")]
        found = [(name, dict(zip(columns, texts, strict=True))) for name, _, texts, columns in of_blocks]
        return {int(name.removeprefix("block-")): cells for name, cells in found}


def outputs(report, spec=example.SPEC):
    redacted = redact_report(report, spec)
    html = render_html(redacted, example.drawing(redacted), spec)
    return html, render_markdown(redacted, spec), json.loads(msgspec.json.encode(redacted))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Of a real run, as they lie on disk."""
    directory, _ = demo(tmp_path_factory.mktemp("demo") / "run")
    html, summary, data = (directory / name for name in ("report.html", "summary.md", "report.json"))
    return html.read_text(encoding="utf-8"), summary.read_text(encoding="utf-8"), json.loads(data.read_bytes())


@pytest.fixture(scope="module", params=["recorded", *EXAMPLES])
def written(request, recorded):
    return recorded if request.param == "recorded" else outputs(EXAMPLES[request.param]())


def numbers(text):
    return set(NUMBER.findall(text))


def at(trial, path):
    for key in path:
        trial = None if trial is None else trial[key]
    return trial


def test_every_figure_of_the_summary_stands_in_the_page(written):
    html, summary, _ = written
    prose = re.sub(r"```diff.*?```", "", summary, flags=re.DOTALL)
    found = numbers(prose)
    assert len(found) > 3
    assert found - numbers(" ".join(Tables(html).words)) == set()


def test_every_cell_of_the_page_is_the_trials_figure(written):
    html, _, data = written
    trials, seen = {one["id"]: one for one in data["trials"]}, set()
    for trial, column, text in Tables(html).cells():
        if column not in COLUMNS or trial == data["baseline"] and column in ("× as written", "Holm p", "samples/s"):
            continue
        path, words = COLUMNS[column]
        value = at(trials[trial], path)
        seen.add(column)
        assert text == (words(value) if value is not None else text if text in ("–", "not measured") else None), (
            trial,
            column,
        )
    assert seen >= {"samples/s", "× as written", "wait", "transfer", "pinned", "start-up, s"}


def test_every_block_of_report_json_stands_in_the_records_with_its_figures(written):
    html, _, data = written
    shown = Tables(html).blocks()
    assert shown.keys() == {block["id"] for block in data["blocks"]}
    for block in data["blocks"]:
        cells = shown[block["id"]]
        assert (cells["steps"], cells["samples"]) == (str(block["steps"]), figures.count(block["samples"]))
        assert cells["seconds"] == f"{block['seconds']:.2f}"
        assert cells["samples/s"] == figures.significant(block["samples"] / block["seconds"])
        assert cells["journal"] == block["journal"]


def test_verdict_gain_and_verification_are_the_same_in_all_three(written):
    html, summary, data = written
    text = " ".join(Tables(html).words)
    for words in (data["verdict"]["headline"], data["verdict"]["lead"]):
        assert numbers(words) <= numbers(text)
        assert numbers(words) <= numbers(summary)
    gain = (data["recommendation"] or {}).get("versus_baseline")
    if gain and data["recommendation"]["trial"] != data["baseline"]:
        assert figures.ratio_with_interval(gain["ratio"], gain["ci95"]) in text
    if data["verification"]:
        fresh = figures.ratio_with_interval(data["verification"]["ratio"], data["verification"]["ci95"])
        assert fresh in text
        assert fresh in summary
