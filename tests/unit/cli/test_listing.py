"""`pindiag list` and `pindiag open`."""

import json
import webbrowser

import msgspec
import pytest

from ..report import example


def test_runs_are_listed_newest_first_with_target_gain_and_verdict(a_run, pindiag):
    a_run("pindiag-runs/old", started_utc="2026-01-01T00:00:00+00:00")
    a_run("pindiag-runs/deeper/new", example.no_difference(), started_utc="2026-02-01T12:30:00+00:00")
    said = pindiag("list")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "2026-02-01 12:30 UTC  train.py  no gain",
        f"  {example.no_difference().verdict.headline}",
        "  pindiag-runs/deeper/new",
        "",
        "2026-01-01 00:00 UTC  train.py  1.43 × (1.11–1.85)",
        f"  {example.confirmed().verdict.headline}",
        "  pindiag-runs/old",
    ]


def test_json_says_what_is_missing_and_why(a_run, pindiag):
    a_run("elsewhere/dead", report=None, module=True, target="package.train")
    a_run("elsewhere/good")
    found = {one["directory"]: one for one in json.loads(pindiag("list", "elsewhere", "--json").out)}
    dead, good = found["elsewhere/dead"], found["elsewhere/good"]
    assert (dead["status"], dead["target"], dead["ratio"], dead["headline"]) == (
        "no_report",
        "package.train",
        None,
        None,
    )
    assert dead["reason"] == "no report was written; make it: pindiag report elsewhere/dead"
    assert good["ratio"] == pytest.approx(example.confirmed().recommendation.versus_baseline.ratio)
    assert (good["firmness"], good["reason"]) == ("provisional", None)


def test_a_damaged_report_is_listed_with_its_reason_and_what_is_no_run_is_not(a_run, pindiag):
    (a_run("runs/damaged") / "report.json").write_text("{")
    inside = a_run("runs/damaged/kept/files")
    (a_run("runs/other") / "run.json").write_text('{"name": "npm"}')
    (only,) = json.loads(pindiag("list", "runs", "--json").out)
    assert inside.is_dir()
    assert only["directory"] == "runs/damaged"
    assert "report.json cannot be read" in only["reason"]


def test_a_run_directory_may_be_named_itself(a_run, pindiag):
    assert "  pindiag-runs/one\n" in pindiag("list", a_run()).out


@pytest.mark.parametrize("words", [["list"], ["list", "nowhere"], ["open"], ["open", "nowhere"]])
def test_nothing_found_is_an_error_with_a_next_step(words, pindiag):
    said = pindiag(*words)
    assert (said.code, said.out) == (2, "")
    assert "pindiag run" in said.err


def test_open_prints_the_newest_report_where_there_is_no_display(a_run, pindiag, monkeypatch):
    a_run("pindiag-runs/old", started_utc="2026-01-01T00:00:00+00:00")
    a_run("pindiag-runs/new", started_utc="2026-02-01T00:00:00+00:00")
    a_run("pindiag-runs/running", report=None, started_utc="2026-03-01T00:00:00+00:00")
    monkeypatch.setattr(webbrowser, "open", lambda uri: pytest.fail("a text browser would take the terminal"))
    monkeypatch.setattr("sys.platform", "linux")
    assert pindiag("open").out == "pindiag-runs/new/report.html\n"
    assert pindiag("open", "pindiag-runs/old").out == "pindiag-runs/old/report.html\n"


def test_open_opens_a_browser_where_there_is_a_display(a_run, pindiag, monkeypatch):
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda uri: opened.append(uri) or True)
    page = a_run() / "report.html"
    assert pindiag("open").out == "pindiag-runs/one/report.html\n"
    assert opened == [page.resolve().as_uri()]


def test_open_says_how_to_make_a_report_that_is_missing(a_run, pindiag):
    said = pindiag("open", a_run(report=None))
    assert said.code == 2
    assert "Make it: `pindiag report pindiag-runs/one`." in said.err
    assert "No run in pindiag-runs has a report." in pindiag("open").err


def test_what_others_wrote_does_not_steer_the_terminal(a_run, pindiag):
    verdict = msgspec.structs.replace(example.confirmed().verdict, headline="\x1b[2Jgone\x07\x00")
    a_run(report=msgspec.structs.replace(example.confirmed(), verdict=verdict), target="/x/\x1b]0;title.py")
    assert "\x1b" not in pindiag("list").out
    assert "␛[2Jgone␇␀" in pindiag("list").out
    assert "\x1b" not in pindiag("open", "no\x1b[2J").err
