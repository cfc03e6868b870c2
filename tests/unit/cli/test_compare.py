"""`pindiag compare` as it is called."""

import json
import re

import msgspec
import pytest

from pindiag.comparison_model import Comparison

from ..api.test_comparison import faster
from ..report import example


@pytest.fixture
def runs(a_run):
    told = msgspec.structs.replace(example.confirmed(), environment={"machine": "abc"})
    return a_run("base", told), a_run("slower", faster(told, 0.5))


def test_the_terminal_the_page_and_the_json_say_the_same(runs, pindiag, nowhere):
    said = pindiag("compare", *runs, "--html", "page.html", "--json", "-")
    assert said.code == 0
    compared = msgspec.json.decode(said.out, type=Comparison)
    page = (nowhere / "page.html").read_text()
    conclusion = said.err.splitlines()[0]
    assert conclusion.startswith("As written, the new run is slower: 0.50 × (95 % interval ")
    assert f"<h1>{conclusion}</h1>" in page
    assert compared.throughput[0].ratio == pytest.approx(0.5)
    for heading in ("Verdicts", "Throughput, samples/s", "A step as written, ms", "To be known"):
        assert heading in said.err
        assert heading in page


def test_the_page_loads_and_runs_nothing(runs, pindiag, nowhere):
    hostile = '<script>alert(1)</script>{{ 7 * 7 }}"\x1b[31m'
    for run in runs:
        report = json.loads((run / "report.json").read_text())
        report["verdict"]["headline"] = hostile
        (run / "report.json").write_text(json.dumps(report))
    pindiag("compare", *runs, "--html", "page.html")
    page = (nowhere / "page.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "{{ 7 * 7 }}" in page
    assert re.search(r"default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'", page)


def test_a_gate_exits_with_1_and_a_refusal_with_2(runs, pindiag):
    assert pindiag("compare", *runs, "--fail-on", "throughput:-5%").code == 1
    assert pindiag("compare", *runs, "--fail-on", "throughput:-60%", "--fail-on", "recommended:-5%").code == 1
    assert pindiag("compare", *reversed(runs), "--fail-on", "throughput:-5%").code == 0
    assert pindiag("compare", *runs, "--fail-on", "speed:-5%").code == 2
    assert pindiag("compare", runs[0], "nowhere").code == 2


def test_json_goes_to_a_file_and_one_that_cannot_be_written_is_an_error(runs, pindiag, nowhere):
    assert "slower" in pindiag("compare", *runs, "--json", "c.json").out
    assert msgspec.json.decode((nowhere / "c.json").read_bytes(), type=Comparison).new.source == "slower"
    said = pindiag("compare", *runs, "--json", "no/such/folder.json")
    assert said.code == 2
    assert "cannot be written" in said.err


def test_quiet_is_the_conclusion_in_one_line(runs, pindiag):
    said = pindiag("compare", *runs, "-q")
    assert said.out.startswith("As written, the new run is slower: 0.50 ×")
    assert said.out.count("\n") == 1


def test_files_are_written_although_nobody_reads_the_terminal(runs, pindiag, nowhere, monkeypatch):
    def closed(*args, **options):
        raise BrokenPipeError

    monkeypatch.setattr("pindiag.cli.console.sections", closed)
    monkeypatch.setattr("sys.stderr.close", lambda: None)
    assert pindiag("compare", *runs, "--html", "page.html").code == 0
    assert (nowhere / "page.html").stat().st_size > 0
