"""The recording that the package ships, and the report that is made of it."""

from __future__ import annotations

import tarfile
from importlib import resources
from pathlib import Path

import pytest

from pindiag import api
from pindiag.api.demonstration import RECORDING, SAID, demo
from pindiag.errors import OutputRefused, TemplateMissing
from pindiag.report.sections.verdict import main_fix

WHOLE = Path(__file__).parents[2] / "data" / "h200" / "search_article_floats.tar.xz"
LARGEST_BYTES = 300_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return demo(tmp_path_factory.mktemp("demo") / "run")


def test_it_is_small_and_holds_what_was_recorded_and_nothing_else():
    shipped = resources.files("pindiag") / "recordings" / RECORDING
    assert len(shipped.read_bytes()) <= LARGEST_BYTES
    with shipped.open("rb") as packed, tarfile.open(fileobj=packed) as small, tarfile.open(WHOLE) as whole:
        names = small.getnames()
        for name in names:
            assert small.extractfile(name).read() == whole.extractfile(f"search_article_floats/{name}").read()
        all_names = {name.removeprefix("search_article_floats/") for name in whole.getnames()}
    assert {name for name in all_names if name.startswith("journal/")} <= set(names)


def test_every_output_says_that_it_is_a_recording(made):
    directory, report = made
    assert report.verdict.lead.startswith(SAID)
    for name in ("report.html", "summary.md", "report.json"):
        assert SAID in (directory / name).read_text(encoding="utf-8")


def test_a_report_or_a_ticket_made_of_it_later_says_so_once(made):
    directory, _ = made
    again = api.report(directory)
    assert again.verdict.lead.count(SAID) == 1
    assert SAID in (directory / "report.html").read_text(encoding="utf-8")
    assert SAID in api.ticket(directory, directory / "t.zip").markdown


def test_the_report_is_that_of_the_h200(made):
    _, report = made
    assert report.environment["gpu"] == "NVIDIA H200"
    assert report.recommendation.firmness == "verified"
    assert main_fix(report).patch.startswith("--- a/samples/article_floats.py\n")
    baseline = next(trial for trial in report.trials if trial.id == report.baseline)
    assert baseline.worker_ms.fetch is not None


def test_it_is_made_anew_in_its_own_folder_and_refuses_another_that_is_there(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, _ = demo()
    assert first == Path("pindiag-runs/demo-h200")
    (first / "report.html").unlink()
    assert (demo()[0] / "report.html").is_file()
    with pytest.raises(OutputRefused):
        demo(made[0])


def test_a_package_without_its_recording_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "files", lambda name: tmp_path)
    with pytest.raises(TemplateMissing, match="Install pindiag again"):
        demo(tmp_path / "run")
